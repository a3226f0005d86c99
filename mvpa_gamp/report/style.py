"""The look that all figures share: colours that colour-blind readers can tell apart, quiet axes."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

INK, QUIET, RULE, WARNING = "#22282e", "#69727b", "#d5dade", "#b35c00"
# Okabe and Ito's palette without yellow, which is too light for lines on white.
COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d", "#8c564b", "#117733",
    "#882255", "#aa9900", "#332288", "#999933",
)  # fmt: skip
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "<", ">", "h", "p", "d", "*")
# Pale only close to zero, so that small weights can be told from the grey brain.
WEIGHTS = LinearSegmentedColormap.from_list(
    "weights",
    [(0.0, "#053061"), (0.2, "#2166ac"), (0.42, "#8cc0e0"), (0.5, "#f7f7f7"),
     (0.58, "#f6ad85"), (0.8, "#c2352c"), (1.0, "#67001f")],
)  # fmt: skip
SHARES = LinearSegmentedColormap.from_list("shares", ["#fde725", "#5ec962", "#21918c", "#3b528b", "#440154"])
OVERLAP = LinearSegmentedColormap.from_list("overlap", ["#f4f7f9", "#9fc5dc", "#3b82b0", "#0b3c5d"])

_SMALL = 7.5

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


def colour(index: int) -> str:
    """The colour of the index-th method."""
    return COLOURS[index % len(COLOURS)]


def marker(index: int) -> str:
    """The marker of the index-th method: shape says again what colour says."""
    return MARKERS[index % len(MARKERS)]


def svg(figure: Figure, banner: str | None) -> bytes:
    """The figure (with a layout of its own) as SVG, with nothing in it that changes from run to run.

    ``banner`` is the phantom's: it stays with the figure wherever the figure is copied.
    """
    FigureCanvasSVG(figure)
    if banner:
        figure.supxlabel(banner, x=0.995, ha="right", fontsize=_SMALL, color=WARNING)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def png(figure: Figure, banner: str | None, dpi: int = 144) -> bytes:
    """The figure (without a layout) as PNG, cut to what is drawn; the phantom's banner stands above it."""
    FigureCanvasAgg(figure)
    if banner:
        above = 1 + 0.3 / figure.get_figheight()
        figure.text(1, above, banner, ha="right", va="bottom", fontsize=_SMALL, color=WARNING)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None}, bbox_inches="tight")
    return buffer.getvalue()
