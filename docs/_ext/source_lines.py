"""Roles that lead from a page to lines of the living source, and break the build when a line is gone.

``{line}`gamp/iteration.py: p = state.z``` finds the one line of that file that holds the text.
``{cited}`14``` finds every place of the engine that cites line 14 of the paper's Algorithm 1, and
``{cited}`2:3``` line 3 of Algorithm 2. ``{equation}`probit_model``` finds every place that cites the equation
or table of that name. Line numbers are looked up at build time; links go to the pages of viewcode.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

PACKAGE = Path(__file__).resolve().parents[2] / "mvpa_gamp"
_ENGINE = "gamp"
_LINES = re.compile(r"\b[Ll]ines? (\d+)(?:( to | and |-)(\d+))?")
_ALGORITHM = re.compile(r"Algorithm (\d)")
_NUMBER = re.compile(r'<span class="linenos">(\s*)(\d+)</span>')
_log = logging.getLogger(__name__)


class Place(NamedTuple):
    """A line of a file; ``width`` is how many lines of an algorithm the citation there covers."""

    file: str
    line: int
    width: int = 1

    @property
    def page(self) -> str:
        """Where viewcode shows the file."""
        return "_modules/mvpa_gamp/" + self.file.removesuffix(".py")


def find_line(file: str, text: str) -> Place:
    """The one line of a file of the package that holds ``text``."""
    lines = (PACKAGE / file).read_text(encoding="utf-8").splitlines()
    found = [number for number, line in enumerate(lines, 1) if text in line]
    if len(found) != 1:
        raise LookupError(f"mvpa_gamp/{file} has {len(found)} lines with {text!r}, expected one")
    return Place(file, found[0])


def find_cited(number: int, algorithm: int = 1) -> list[Place]:
    """Every place of the engine that cites this line of an algorithm, the most particular first."""
    found = [place for place, cited, of in citations() if number in cited and of == algorithm]
    if not found:
        raise LookupError(f"no source file cites line {number} of Algorithm {algorithm}")
    return sorted(found, key=lambda place: place.width)


def find_equation(name: str) -> list[Place]:
    """Every place of the engine that cites an equation or table by its name."""
    word = re.compile(rf"\b(eq\.|Table) {name}\b")
    found = [Place(file, at) for file, at, text in _engine_lines() if word.search(text)]
    if not found:
        raise LookupError(f"no source file cites 'eq. {name}' or 'Table {name}'")
    return found


def citations() -> Iterator[tuple[Place, set[int], int]]:
    """Place, lines and algorithm of every citation in the engine."""
    for file, at, text in _engine_lines():
        for match in _LINES.finditer(text):
            first, joint, last = int(match[1]), match[2], int(match[3] or match[1])
            cited = {first, last} if joint == " and " else set(range(first, last + 1))
            of = _ALGORITHM.search(text, match.end())
            yield Place(file, at, len(cited)), cited, int(of[1]) if of else 1


def _engine_lines() -> Iterator[tuple[str, int, str]]:
    for path in sorted((PACKAGE / _ENGINE).rglob("*.py")):
        file = path.relative_to(PACKAGE).as_posix()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            yield file, number, line


class _SourceRole(SphinxRole):
    """Links to the places that a subclass finds, or a warning."""

    def places(self) -> list[Place]:
        """What the text of the role names."""
        raise NotImplementedError

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """One link per place, with a comma between."""
        try:
            found = self.places()
        except (LookupError, OSError) as error:
            _log.warning("%s: %s", self.rawtext, error, location=self.get_location())
            return [nodes.literal(self.text, self.text)], []
        out: list[nodes.Node] = []
        for place in found:
            self.env.note_dependency(str(PACKAGE / place.file))
            _targets(self.env).add((place.page, place.line))
            out += [nodes.Text(", ")] * bool(out) + [self._link(place)]
        return out, []

    def _link(self, place: Place) -> nodes.reference:
        up = "../" * self.env.docname.count("/")
        link = nodes.reference("", "", internal=True, refuri=f"{up}{place.page}.html#line-{place.line}")
        link["reftitle"] = f"mvpa_gamp/{place.file}"
        link += nodes.literal("", f"{place.file.rpartition('/')[2]}:{place.line}")
        return link


class LineRole(_SourceRole):
    """``file: text``."""

    def places(self) -> list[Place]:
        """The line that holds the text."""
        file, text = self.text.split(": ", 1)
        return [find_line(file, text)]


class CitedRole(_SourceRole):
    """``line`` or ``algorithm:line``."""

    def places(self) -> list[Place]:
        """Where the line is cited."""
        *algorithm, number = map(int, self.text.split(":"))
        return find_cited(number, *algorithm)


class EquationRole(_SourceRole):
    """The name by which the source cites an equation."""

    def places(self) -> list[Place]:
        """Where the equation is cited."""
        return find_equation(self.text)


def _targets(env: Any) -> set[tuple[str, int]]:
    if not hasattr(env, "source_line_targets"):
        env.source_line_targets = set()
    return env.source_line_targets


def _merge(app: Sphinx, env: Any, docnames: Any, other: Any) -> None:
    _targets(env).update(_targets(other))


def _add_anchors(app: Sphinx, pagename: str, template: str, context: dict, doctree: Any) -> None:
    """Give every numbered line of a source page an anchor."""
    if pagename.startswith("_modules/") and "body" in context:
        context["body"] = _NUMBER.sub(r'<span class="linenos" id="line-\2">\1\2</span>', str(context["body"]))


def _check_targets(app: Sphinx, error: Exception | None) -> None:
    """Every link must lead to an anchor: a file is shown where the API pages document one of its names."""
    if error is not None or app.builder.format != "html":
        return
    for page, line in sorted(_targets(app.env)):
        path = Path(app.outdir) / f"{page}.html"
        if not path.is_file() or f'id="line-{line}"' not in path.read_text(encoding="utf-8"):
            raise ExtensionError(
                f"{page}, line {line}: no such source page. Document a name of that file in docs/api."
            )


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the roles."""
    app.add_role("line", LineRole())
    app.add_role("cited", CitedRole())
    app.add_role("equation", EquationRole())
    app.connect("env-merge-info", _merge)
    app.connect("html-page-context", _add_anchors)
    app.connect("build-finished", _check_targets)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
