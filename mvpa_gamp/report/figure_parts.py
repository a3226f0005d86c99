"""A figure of maps in two parts: its first line at once, the other lines on a click."""

import io
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from mvpa_gamp.report.markup import details, image_figure
from mvpa_gamp.report.style import CUT


def maps_figure(
    path: Path, caption: str, alt: str, others: Sequence[str], link: str = "", on_surface: bool = False
) -> str:
    """A figure (PNG) with its caption (HTML); ``others`` names the lines after the first, which are folded.

    Paper shows them of a single comparison only; of several comparisons one row of views of a surface.
    """
    first, *rest = figure_parts(path)
    kind = "wide maps surface" if on_surface else "wide maps"
    shown = image_figure(first, "image/png", caption, alt, kind, link)
    for part in rest:
        below = image_figure(part, "image/png", "", f"{alt}: other methods", "wide maps")
        shown += details(f"The same maps, same places: {', '.join(others)}", below)
    return shown


def figure_parts(path: Path) -> list[bytes]:
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
