"""A directive that documents names of a module: a table of them, then each with its docstring.

    ```{api} mvpa_gamp.stability
    jaccard
    nogueira
    ```

A constant has no docstring, so its line says what it is: ``PAPER_PAIRS: the six comparisons``. A line ``*``
stands for every class of the module, such as those of a registry. The role
``{sentence}`gamp.result.CAVITY``` shows the text of such a constant.
"""

import importlib
import inspect
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole


class SentenceRole(SphinxRole):
    """The text that a constant of the package holds."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Look it up."""
        module, _, name = f"mvpa_gamp.{self.text}".rpartition(".")
        text = getattr(importlib.import_module(module), name)
        return [nodes.emphasis(text, text)], []


class ApiDirective(SphinxDirective):
    """Expands into autosummary, autoclass, autofunction and data."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Read the names and let the parser do the rest."""
        module = importlib.import_module(self.arguments[0])
        self.env.note_dependency(str(inspect.getsourcefile(module)))
        lines = [each for line in self.content if line.strip() for each in _names(module, line)]
        named = [line.partition(":") for line in lines]
        shown = [name for name, _, about in named if not about]
        rst = [f".. currentmodule:: {module.__name__}", ""]
        if shown:
            rst += [".. autosummary::", "   :nosignatures:", "", *(f"   {name}" for name in shown), ""]
        for name, _, about in named:
            rst += _constant(name, about.strip()) if about else _object(name, getattr(module, name))
        box = nodes.container()
        self.state.nested_parse(_lines(["```{eval-rst}", *rst, "```"], self), self.content_offset, box)
        return box.children


def _names(module: Any, line: str) -> list[str]:
    if line.strip() != "*":
        return [line]
    return [name for name, value in vars(module).items() if inspect.isclass(value) and name[0] != "_"]


def _object(name: str, value: Any) -> list[str]:
    if not inspect.isclass(value):
        return [f".. autofunction:: {name}", ""]
    foreign = [base.__name__ for base in value.__mro__ if not base.__module__.startswith("mvpa_gamp")]
    return [f".. autoclass:: {name}", "   :members:", f"   :inherited-members: {','.join(foreign)}", ""]


def _constant(name: str, about: str) -> list[str]:
    return [f".. py:data:: {name}", "", f"   {about}", ""]


def _lines(text: list[str], directive: SphinxDirective) -> Any:
    from docutils.statemachine import StringList

    source, line = directive.get_source_info()
    return StringList(text, items=[(source, line)] * len(text))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("api", ApiDirective)
    app.add_role("sentence", SentenceRole())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
