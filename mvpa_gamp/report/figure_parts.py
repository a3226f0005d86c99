"""A figure of maps in two parts: its first line at once, the other lines on a click."""

import io
from pathlib import Path

from PIL import Image

from mvpa_gamp.report.html import data_url
from mvpa_gamp.report.style import CUT


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
