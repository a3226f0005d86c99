"""The few pieces of HTML the page is made of; everything that is text is escaped here."""

import base64
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

_TYPES = {".png": "image/png", ".svg": "image/svg+xml"}


def text(value: object) -> str:
    """A value as HTML text, safe inside elements and attributes."""
    return escape(str(value), quote=True)


def paragraph(*sentences: str, kind: str = "") -> str:
    """A paragraph of plain sentences (escaped)."""
    return f"<p{_class(kind)}>{text(' '.join(sentences))}</p>"


def section(anchor: str, title: str, *parts: str) -> str:
    """A section with an anchor for the navigation."""
    return f'<section id="{text(anchor)}">\n<h2>{text(title)}</h2>\n' + "\n".join(parts) + "\n</section>"


def figure(path: Path, caption: str, alt: str, kind: str = "wide") -> str:
    """A figure file put inside the page, with its caption (HTML); ``kind`` is wide, medium or beside."""
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    source = f"data:{_TYPES[path.suffix]};base64,{data}"
    return (
        f'<figure class="{kind}"><img src="{source}" alt="{text(alt)}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def details(summary: str, *parts: str) -> str:
    """Something that opens on a click, without a script."""
    return f"<details><summary>{text(summary)}</summary>\n" + "\n".join(parts) + "\n</details>"


def cell(content: object, kind: str = "", value: object = None, header: bool = False, span: int = 1) -> str:
    """A table cell; ``value`` is the exact text of the number that ``content`` rounds."""
    tag = "th" if header else "td"
    inside = text(content)
    if value is not None:
        inside = f'<data value="{text(value)}">{inside}</data>'
    across = f' colspan="{span}"' if span > 1 else ""
    return f"<{tag}{_class(kind)}{across}>{inside}</{tag}>"


def headings(names: Sequence[str], left: int = 1) -> str:
    """The cells of a table's head; the first ``left`` columns hold words."""
    return "".join(cell(name, "name" if i < left else "", header=True) for i, name in enumerate(names))


def table(head: Sequence[str], body: Iterable[str], caption: str = "", kind: str = "") -> str:
    """A table from rows of cells; where it is wider than the page it scrolls, its caption does not."""
    below = f"<figcaption>{caption}</figcaption>" if caption else ""
    head_rows = "".join(f"<tr>{row}</tr>" for row in head)
    body_rows = "\n".join(row if row.startswith("<tr") else f"<tr>{row}</tr>" for row in body)
    return (
        f'<figure class="tabular"><div class="scroll" tabindex="0"><table{_class(kind)}>'
        f"<thead>{head_rows}</thead><tbody>\n{body_rows}\n</tbody></table></div>{below}</figure>"
    )


def _class(kind: str) -> str:
    """A class attribute, if there is one."""
    return f' class="{text(kind)}"' if kind else ""
