"""Pages from templates: what templates are given to write tables, links and pictures with.

Everything that is text is escaped by the templates; what is HTML already comes as ``Markup``.
"""

import base64
import hashlib
import io
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from PIL import Image

from mvpa_gamp.imaging.names import map_files
from mvpa_gamp.report.style import CUT, OVERLAP, colour_of

_LONG = 30  # letters of a cell that may be broken where a table is too wide
_FEWEST = 3  # categories of a matrix
_TYPES = {".png": "image/png", ".svg": "image/svg+xml"}


class Cell(NamedTuple):
    """A cell of a table; ``value`` is the exact text of the number that ``text`` rounds, for sorting."""

    text: str
    kind: str = ""
    value: object = None
    title: str = ""
    span: int = 1


class Table(NamedTuple):
    """Rows of cells below one or more rows of headings; the last row may be the average of the others."""

    heads: Sequence[Sequence[Cell]]
    rows: Sequence[Sequence[Cell]]
    average: bool = False


class Pair(NamedTuple):
    """Two categories, where their comparison is on the page, and its accuracy (None where it failed)."""

    positive: str
    negative: str
    place: str
    accuracy: float | None = None
    chance: float = 50.0
    measure: str = "correct"


def cell(text: object, kind: str = "", value: object = None, title: str = "") -> Cell:
    """A cell, which may be broken where it is long."""
    shown = text if isinstance(text, Markup) else str(text)
    measured = value if isinstance(text, Markup) else text
    if measured is not None and len(str(measured)) > _LONG and "wrap" not in kind:
        kind = f"{kind} long".strip()
    return Cell(shown, kind, value, title)


def name(text: object) -> Cell:
    """A cell of words."""
    return cell(text, "name")


def method_cell(method: str, label: str) -> Cell:
    """A method behind a spot of its colour."""
    shown = Markup("{}<span>{}</span>").format(swatch(method), label)
    return cell(shown, "name", label)


def table(head: Sequence[str | Markup], rows: Iterable[Sequence[object]], left: int = 1) -> Table:
    """A table with one line of headings, of which the first ``left`` stand above words."""
    heads = [cell(each, "name" if i < left else "") for i, each in enumerate(head)]
    body = [[each if isinstance(each, Cell) else cell(each) for each in row] for row in rows]
    return Table([heads], body)


def swatch(method: str) -> Markup:
    """A spot in the colour of a method."""
    return Markup('<span class="swatch" style="background:{}"></span>').format(colour_of(method))


def swatched(method: str, label: str) -> Markup:
    """A method behind a spot of its colour, broken between its words alone."""
    first, *others = label.split(" ")
    whole = Markup('<span class="whole">{}</span>')
    words = [whole.format(swatch(method) + first), *(whole.format(word) for word in others)]
    return Markup(" ").join(words)


def file_link(path: Path, root: Path, linked: bool = True, words: str = "") -> Markup:
    """A link to a file of the results folder, or its name where the page does not stand in that folder.

    A map on surfaces may have a file for each hemisphere, which then has its own link.
    """
    files = map_files(path)
    if len(files) > 1 and linked:
        sides = zip(files, "LR" if words else ("", ""), strict=True)
        links = Markup(" ").join(file_link(each, root, linked, side) for each, side in sides)
        return Markup("{} {}").format(words, links) if words else links
    path = files[0].with_name(files[0].name.replace("hemi-L", "hemi-{L,R}")) if len(files) > 1 else files[0]
    if not linked:
        return Markup("<code>{}</code>").format(path.name)
    address = quote(path.relative_to(root).as_posix())
    return Markup('<a class="file" href="{}">{}</a>').format(address, words or path.name)


def data_url(content: bytes, kind: str) -> str:
    """The content of a file as an address."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def picture(path: Path) -> str:
    """A figure file as an address."""
    return data_url(path.read_bytes(), _TYPES[path.suffix])


def figure_parts(path: Path) -> list[str]:
    """A figure of maps as addresses: its first line, and the other lines, which are folded."""
    return [data_url(part, "image/png") for part in cut_parts(path)]


def cut_parts(path: Path) -> list[bytes]:
    """The image down to its first line, and the other lines below the same headings; or the whole image."""
    with Image.open(path) as opened:
        if CUT not in opened.info:
            return [path.read_bytes()]
        heading, end = map(int, opened.info[CUT].split())
        image = opened.convert("RGB")
    width, height = image.size
    rest = Image.new("RGB", (width, heading + height - end), "white")
    rest.paste(image.crop((0, 0, width, heading)), (0, 0))
    rest.paste(image.crop((0, end, width, height)), (0, heading))
    return [_png(image.crop((0, 0, width, end))), _png(rest)]


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def accuracy_matrix(pairs: Sequence[Pair]) -> dict[str, Any] | None:
    """Rows and columns of the categories with a cell per pair; None where there would hardly be any."""
    names = list(dict.fromkeys(each for pair in pairs for each in (pair.positive, pair.negative)))
    if len(names) < _FEWEST or len(names) == 2 * len(pairs):  # no category is in two pairs
        return None
    known = {frozenset((pair.positive, pair.negative)): pair for pair in pairs}
    rows = [
        (one, [_matrix_cell(known.get(frozenset((one, other))), one, other) for other in names])
        for one in names
    ]
    return {"names": names, "rows": rows}


def _matrix_cell(pair: Pair | None, one: str, other: str) -> dict[str, Any] | None:
    if pair is None or one == other:
        return None
    out: dict[str, Any] = {"pair": pair, "label": f"{one} against {other}"}
    if pair.accuracy is None:
        return out
    share = min(1.0, max(0.0, (pair.accuracy - pair.chance) / max(100 - pair.chance, 1e-9)))
    red, green, blue, _ = (round(255 * float(part)) for part in OVERLAP(0.85 * share))
    return out | {"colour": f"rgb({red},{green},{blue})", "ink": "#fff" if share > 0.55 else "#22282e"}


class Contents:
    """What the navigation lists: every section, and every block inside, in the order of the page."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, str, list[tuple[str, str]]]] = []

    def section(self, anchor: str, title: str) -> str:
        """Take down a section; templates write what comes back, which is nothing."""
        self.entries.append((anchor, title, []))
        return ""

    def block(self, anchor: str, title: str) -> str:
        """Take down a part of the last section."""
        self.entries[-1][2].append((anchor, title))
        return ""


class Renderer:
    """Writes the sections of one page, in their order, and then the page around them."""

    def __init__(self, root: Path, linked: bool, **shared: Any) -> None:
        self.contents = Contents()
        link = partial(file_link, root=root, linked=linked)
        self.shared = {"contents": self.contents, "link": link, "linked": linked, **shared}

    def section(self, template: str, content: Mapping[str, Any] | None) -> str:
        """A section from its template; nothing where there is nothing to say."""
        if content is None:
            return ""
        return _environment().get_template(f"{template}.html").render({**self.shared, **content}).strip()

    def page(self, body: Sequence[str], **content: Any) -> str:
        """The self-contained page: nothing is fetched, and no script runs but its own, known by its hash."""
        css, turning, script = (own_file(each) for each in ("page.css", "surface_viewer.js", "page.js"))
        script = turning + script
        digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
        own = {"css": Markup(css), "script": Markup(script), "digest": digest}
        parts = Markup("\n".join(part for part in body if part))
        return self.section("page", {**own, "body": parts, **content}) + "\n"


def own_file(name: str) -> str:
    """The text of a file beside this module."""
    return resources.files("mvpa_gamp.report").joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    out = Environment(
        loader=PackageLoader("mvpa_gamp.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=StrictUndefined,
    )  # fmt: skip
    out.globals |= {"swatch": swatch, "picture": picture}
    return out
