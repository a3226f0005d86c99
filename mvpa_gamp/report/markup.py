"""The few pieces of HTML the page is made of; everything that is text is escaped here."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from mvpa_gamp.imaging.surface_names import map_files

_LONG = 30  # letters of a cell that may be broken where a table is too wide
_TYPES = {".png": "image/png", ".svg": "image/svg+xml"}


def text(value: object) -> str:
    """A value as HTML text, safe inside elements and attributes."""
    return escape(str(value), quote=True)


def paragraph(*sentences: str, kind: str = "") -> str:
    """A paragraph of plain sentences (escaped)."""
    return f"<p{_class(kind)}>{text(' '.join(sentences))}</p>"


def section(anchor: str, title: str, *parts: str, many: bool = False) -> str:
    """A section that is always open; its title appears in the navigation.

    ``many``: of several comparisons, which paper shows with the answer and the first maps of each.
    """
    opening = f"<section{_class('many' if many else '')}{_named(anchor, title)}>"
    return f"{opening}\n<h2>{text(title)}</h2>\n" + "\n".join(parts) + "\n</section>"


def folded(
    anchor: str, title: str, said: str, *parts: str, unfolded: bool = False, bulk: bool = False
) -> str:
    """A section that opens on a click; ``said`` is what it comes to, in a line that is always there.

    ``bulk``: it grows with the number of comparisons, and paper shows it of a single one only.
    """
    top = f'<summary><h2>{text(title)}</h2> <span class="said">{text(said)}</span></summary>'
    inside = "\n".join(parts)
    kind = _class("bulk" if bulk else "")
    opening = f"<section{kind}{_named(anchor, title)}>\n<details{' open' * unfolded}>"
    return f"{opening}{top}\n{inside}\n</details></section>"


def block(anchor: str, title: str, head: str, *parts: str, unfolded: bool = False) -> str:
    """A part of a section, such as a comparison, that opens on a click; ``head`` (HTML) is always there."""
    inside = "\n".join(parts)
    return (
        f'<details class="block"{_named(anchor, title)}{" open" * unfolded}><summary>{head}</summary>\n'
        f"{inside}\n</details>"
    )


def figure(path: Path, caption: str, alt: str, kind: str = "wide", link: str = "") -> str:
    """A figure file put inside the page, with its caption (HTML); ``kind`` is wide, medium or beside."""
    return image_figure(path.read_bytes(), _TYPES[path.suffix], caption, alt, kind, link)


def image_figure(
    content: bytes, media: str, caption: str, alt: str, kind: str = "wide", link: str = ""
) -> str:
    """The same for an image that is not a file."""
    image = f'<img src="{data_url(content, media)}" alt="{text(alt)}">'
    below = f"<figcaption>{caption}{link}</figcaption>" if caption or link else ""
    return f'<figure class="{kind}">{image}{below}</figure>'


def data_url(content: bytes, kind: str) -> str:
    """The content of a file as an address."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def details(summary: str, *parts: str) -> str:
    """Something that opens on a click, without a script."""
    return f"<details><summary>{text(summary)}</summary>\n" + "\n".join(parts) + "\n</details>"


def file_link(path: Path, root: Path, linked: bool = True, words: str = "") -> str:
    """A link to a file of the results folder, or its name where the page does not stand in that folder.

    A map on surfaces may have a file for each hemisphere, which then has its own link.
    """
    files = map_files(path)
    if len(files) > 1 and linked:
        named = zip(files, "LR" if words else ("", ""), strict=True)
        links = " ".join(file_link(each, root, linked, name) for each, name in named)
        return f"{text(words)} {links}".strip()
    path = files[0].with_name(files[0].name.replace("hemi-L", "hemi-{L,R}")) if len(files) > 1 else files[0]
    if not linked:
        return f"<code>{text(path.name)}</code>"
    shown = text(words or path.name)
    return f'<a class="file" href="{text(quote(path.relative_to(root).as_posix()))}">{shown}</a>'


def file_list(files: Mapping[str, Path], root: Path, linked: bool = True) -> str:
    """Links to files by what they hold, side by side in columns."""
    items = "".join(f"<li>{file_link(path, root, linked, words)}</li>" for words, path in files.items())
    return f'<ul class="files">{items}</ul>'


def swatched(colour: str, label: str) -> str:
    """A name behind a spot of colour, broken between its words alone."""
    first, *others = label.split(" ")
    words = [f"{swatch(colour)}{text(first)}", *(text(word) for word in others)]
    return " ".join(f'<span class="whole">{word}</span>' for word in words)


def swatch(colour: str) -> str:
    """A spot of colour beside a name."""
    return f'<span class="swatch" style="background:{text(colour)}"></span>'


def cell(content: object, kind: str = "", value: object = None, header: bool = False, span: int = 1) -> str:
    """A table cell; ``value`` is the exact text of the number that ``content`` rounds."""
    tag = "th" if header else "td"
    inside = text(content)
    kind = f"{kind} long".strip() if len(inside) > _LONG and "wrap" not in kind else kind
    if value is not None:
        inside = f'<data value="{text(value)}">{inside}</data>'
    across = f' colspan="{span}"' if span > 1 else ""
    return f"<{tag}{_class(kind)}{across}>{inside}</{tag}>"


def html_cell(inside: str, kind: str = "", value: object = None) -> str:
    """A table cell of HTML; ``value`` is what a sortable table sorts it by."""
    inner = inside if value is None else f'<data value="{text(value)}">{inside}</data>'
    kind = f"{kind} long".strip() if value is not None and len(str(value)) > _LONG else kind
    return f"<td{_class(kind)}>{inner}</td>"


def headings(names: Sequence[str], left: int = 1) -> str:
    """The cells of a table's head; the first ``left`` columns hold words."""
    return "".join(cell(name, "name" if i < left else "", header=True) for i, name in enumerate(names))


def table(head: Sequence[str], body: Iterable[str], caption: str = "", kind: str = "") -> str:
    """A table from rows of cells; where it is wider than the page it scrolls, its caption does not.

    A table of the kind ``sortable`` is sorted by a click on a heading.
    """
    below = f"<figcaption>{caption}</figcaption>" if caption else ""
    head_rows = "".join(f"<tr>{row}</tr>" for row in head)
    body_rows = "\n".join(row if row.startswith("<tr") else f"<tr>{row}</tr>" for row in body)
    return (
        '<figure class="tabular"><div class="scroll" tabindex="0" role="region" aria-label="Table">'
        f"<table{_class(kind)}>"
        f"<thead>{head_rows}</thead><tbody>\n{body_rows}\n</tbody></table></div>{below}</figure>"
    )


def _named(anchor: str, title: str) -> str:
    """What the navigation knows a part of the page by."""
    return f' id="{text(anchor)}" data-title="{text(title)}"'


def _class(kind: str) -> str:
    """A class attribute, if there is one."""
    return f' class="{text(kind)}"' if kind else ""
