"""The look that all figures share: colours that colour-blind readers can tell apart, quiet axes."""

import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from mvpa_gamp.imaging.disk import write_atomic
from mvpa_gamp.methods import METHODS

INK, QUIET, RULE, WARNING = "#22282e", "#69727b", "#d5dade", "#b35c00"
# Okabe and Ito's palette without yellow, which is too light for lines on white.
COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d", "#8c564b", "#117733",
    "#882255", "#aa9900", "#332288", "#44aa99", "#999933", "#5b3a8e",
)  # fmt: skip
# One more than there are colours: counted round, no two of the first 240 methods have the same pair.
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "<", ">", "h", "p", "d", "8", "*", "H", ".")
# Of methods that are not in METHODS, by their name.
OTHER_COLOURS = ("#661100", "#888888", "#aa4499", "#6699cc")
# A method has its colour and its marker everywhere: page, group, decoder, docs, pipelines. Those that had
# them first keep them; new methods follow in the order of METHODS.
_FIRST = (
    "gamp-bg-lr", "l1-lr-cv", "onebit-cs", "gamp-bg-hl", "gamp-bg-pr", "gamp-bl-lr", "gamp-l1-lr", "cdn",
    "tron", "gamp-sbg-lr", "gamp-l1-lr-cv", "svm", "lda",
)  # fmt: skip
METHOD_ORDER = (*_FIRST, *(name for name in METHODS if name not in _FIRST))
# Pale only close to zero, so that small weights can be told from the grey brain.
WEIGHTS = LinearSegmentedColormap.from_list(
    "weights",
    [(0.0, "#053061"), (0.2, "#2166ac"), (0.42, "#8cc0e0"), (0.5, "#f7f7f7"),
     (0.58, "#f6ad85"), (0.8, "#c2352c"), (1.0, "#67001f")],
)  # fmt: skip
SHARES = LinearSegmentedColormap.from_list("shares", ["#fde725", "#5ec962", "#21918c", "#3b528b", "#440154"])
OVERLAP = LinearSegmentedColormap.from_list("overlap", ["#f4f7f9", "#9fc5dc", "#3b82b0", "#0b3c5d"])

_SMALL = 7.5
DPI = 180  # of figures as PNG
CUT = "Cut"  # of a PNG: rows of pixels of its headings, and down to the end of its first line

_RC: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.edgecolor": RULE,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "text.color": INK,
    "legend.frameon": False,
    "svg.hashsalt": "mvpa_gamp",  # equal figures give equal bytes
    "text.parse_math": False,  # a category called "$x$" is a name, not a formula
}


@contextmanager
def look() -> Iterator[None]:
    """Draw with the shared look, whatever the user's matplotlibrc says."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)
        yield


def colour_of(method: str) -> str:
    """The colour of a method, by its name."""
    if method not in METHOD_ORDER:
        return OTHER_COLOURS[_number(method) % len(OTHER_COLOURS)]
    return COLOURS[METHOD_ORDER.index(method) % len(COLOURS)]


def marker_of(method: str) -> str:
    """The marker of a method: shape says again what colour says."""
    place = METHOD_ORDER.index(method) if method in METHOD_ORDER else _number(method)
    return MARKERS[place % len(MARKERS)]


def _number(method: str) -> int:
    """A number that depends on nothing but the name."""
    return zlib.crc32(method.encode())


def svg(figure: Figure, banner: str | None) -> bytes:
    """The figure (with a layout of its own) as SVG, with nothing in it that changes from run to run.

    ``banner`` is the phantom's: it stays with the figure wherever the figure is copied.
    """
    if banner:
        figure.supxlabel(banner, x=0.995, ha="right", fontsize=_SMALL, color=WARNING)
    return _as_svg(figure)


def _as_svg(figure: Figure) -> bytes:
    """One drawing: ``savefig`` would draw twice, the first time for nothing."""
    buffer = io.BytesIO()
    FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


@dataclass(frozen=True)
class Drawn:
    """A figure as the page shows it and as a paper takes it."""

    png: bytes
    svg: bytes

    def write(self, stem: Path) -> None:
        """Write ``stem``.png and ``stem``.svg."""
        write_atomic(stem.with_name(stem.name + ".png"), self.png)
        write_atomic(stem.with_name(stem.name + ".svg"), self.svg)


def png_and_svg(figure: Figure, banner: str | None, cut: tuple[float, float] | None = None) -> Drawn:
    """The figure (without a layout) as PNG and SVG; the phantom's banner stands in the upper right corner.

    ``cut``: inches from the top at which headings and the first line end, where there are more lines.
    """
    if banner:
        figure.text(1, 1, banner, ha="right", va="top", fontsize=_SMALL, color=WARNING)
    image = io.BytesIO()
    about: dict[str, str | None] = {"Software": None}
    if cut:
        about[CUT] = " ".join(str(round(DPI * inches)) for inches in cut)
    drawing = _as_svg(figure)
    figure.set_dpi(DPI)
    FigureCanvasAgg(figure).print_png(image, metadata=about)
    return Drawn(image.getvalue(), drawing)
