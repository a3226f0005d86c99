"""Docstrings of the package, which are plain text, as reStructuredText.

Lines ``name : text`` (as in NumPy's sections, or on their own) become a list, comments behind the fields of
records are added to it, and characters that would be markup (``|w|``, ``coef_``) are kept as they are.
"""

import ast
import inspect
import re
import textwrap
from typing import Any

from sphinx.application import Sphinx

_ITEM = re.compile(r"^([\w.*]+(?:, [\w.*]+)*) : (.*)")
_KEPT = re.compile(r"(``.+?``|:\w+:`[^`]+`)")  # literals and roles
_MARKUP = re.compile(r"([|*`]|(?<=\w)_(?!\w))")


def as_rst(lines: list[str]) -> list[str]:
    """The docstring with sections, items and plain text in reStructuredText."""
    out: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        if at + 1 < len(lines) and line.strip() and re.fullmatch(r"-{3,}", lines[at + 1].strip()):
            out += [f".. rubric:: {line.strip()}", ""]
            at += 2
        elif line.startswith(">>>"):
            stop = next((k for k in range(at, len(lines)) if not lines[k].strip()), len(lines))
            out += lines[at:stop]
            at = stop
        elif match := _ITEM.match(line):
            stop = at + 1
            while stop < len(lines) and lines[stop].startswith(" "):
                stop += 1
            out += ["" if out and out[-1].strip() and not out[-1].startswith("* ") else None]
            out += _item(match[1], match[2], lines[at + 1 : stop])
            at = stop
            if at < len(lines) and lines[at].strip() and not _ITEM.match(lines[at]):
                out.append("")
        else:
            out.append(_escaped(line))
            at += 1
    return [line for line in out if line is not None]


def _item(names: str, text: str, body: list[str]) -> list[str]:
    """One entry of a list; a body that begins a sentence is set off from the line before."""
    rest = " ".join(line.strip() for line in body)
    names = ", ".join(f"**{_escaped(name)}**" for name in names.split(", "))
    begins = rest[:1].isupper() or rest[:1].isdigit()
    joint = " – " if begins and not text.endswith(".") else " "
    return [f"* {names} : " + _escaped(f"{text}{joint}{rest}".strip())]


def _escaped(line: str) -> str:
    """``line`` without markup, but for literals and roles."""
    parts = _KEPT.split(line)
    return "".join(part if k % 2 else _MARKUP.sub(r"\\\1", part) for k, part in enumerate(parts))


def field_comments(record: Any) -> dict[str, str]:
    """Field name to the comment behind it, in the source of a dataclass or named tuple."""
    source = textwrap.dedent(inspect.getsource(record))
    lines = source.splitlines()
    body = ast.parse(source).body[0].body  # type: ignore[attr-defined]
    found = {}
    for node in body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            comment = lines[node.end_lineno - 1][node.end_col_offset :].partition("# ")[2]
            if comment and not comment.startswith("noqa"):
                found[node.target.id] = comment
    return found


def _process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    if not name.startswith("mvpa_gamp"):
        return
    lines[:] = as_rst(lines)
    is_record = inspect.isclass(obj) and (hasattr(obj, "__dataclass_fields__") or hasattr(obj, "_fields"))
    comments = field_comments(obj) if is_record else {}
    if comments:
        listed = (f"* **{_escaped(field)}** : {_escaped(text)}" for field, text in comments.items())
        lines += ["", *listed, ""]


def _skip(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Fields of named tuples are in the list already; routing methods of scikit-learn have no place here."""
    hidden = type(obj).__name__ == "_tuplegetter" or name.endswith("_request")
    return True if hidden else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the two hooks of autodoc."""
    app.connect("autodoc-process-docstring", _process)
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
