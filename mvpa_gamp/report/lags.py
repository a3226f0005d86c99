"""The page of accuracy over lags: a curve per comparison and method, and the p-values of every lag."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mvpa_gamp._version import __version__
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.report.html import Renderer, data_url, method_cell, table
from mvpa_gamp.report.style import QUIET, colour_of, look, marker_of, svg
from mvpa_gamp.report.words import ALPHA, NONE, two_digits


class Lag(NamedTuple):
    """Accuracy (0 to 1) with labels shifted by some volumes, its standard error over runs, and p-values."""

    lag_trs: int
    seconds: float | None
    accuracy: float
    accuracy_se: float
    p_value: float | None
    p_value_all_lags: float | None  # corrected


@dataclass(frozen=True)
class LagCurve:
    """All lags of a comparison by a method."""

    comparison: str
    method: Method
    lags: Sequence[Lag]

    @property
    def best(self) -> Lag:
        """The lag with the highest accuracy."""
        return max(self.lags, key=lambda lag: lag.accuracy)

    @property
    def sentence(self) -> str:
        """The answer, with what choosing a lag does to it."""
        best = self.best
        where = f"{best.lag_trs} volumes" + ("" if best.seconds is None else f" ({best.seconds:g} s)")
        who = f"{self.comparison}, {self.method.label}"
        text = f"{who}: highest at a lag of {where}, {100 * best.accuracy:.1f} %"
        if best.p_value_all_lags is None:
            return f"{text} correct. The highest of {len(self.lags)} lags is too good by having been chosen."
        above = [lag.lag_trs for lag in self.lags if (lag.p_value_all_lags or 1) <= ALPHA]
        said = f"lags {', '.join(map(str, above))} are" if above else "no lag is"
        return (
            f"{text} correct (p = {best.p_value_all_lags:.2g}, corrected for all lags); {said} above chance."
        )


def lag_page(curves: Sequence[LagCurve], about: dict[str, Any], banner: str = "") -> str:
    """The self-contained HTML page."""
    renderer, tested = Renderer(Path(), False), any(lag.p_value for curve in curves for lag in curve.lags)
    content = {
        "answers": [curve.sentence for curve in curves],
        "figures": [
            (name, _drawn([c for c in curves if c.comparison == name], banner))
            for name in dict.fromkeys(curve.comparison for curve in curves)
        ],
        "table": _table(curves),
        "tested": tested,
        "about": about,
        "methods": {curve.method.label: curve.method for curve in curves}.values(),
    }
    return renderer.page(
        [renderer.section("lags", content)],
        title="mvpa_gamp: lags",
        heading="Accuracy over time after onset",
        lead=about["description"],
        phantom=banner or None,
        first=[],
        rest=[],
        more="",
        facts={name: about[name] for name in ("voxels", "runs", "permutations")},
        version=__version__,
    )


def _drawn(curves: Sequence[LagCurve], banner: str) -> str:
    with look():
        figure = Figure(figsize=(5.4, 3.2), layout="constrained")
        ax = figure.subplots()
        for curve in curves:
            x, y, error = ([getattr(lag, name) for lag in curve.lags]
                           for name in ("lag_trs", "accuracy", "accuracy_se"))  # fmt: skip
            ax.errorbar(
                x, [100 * each for each in y], [100 * each for each in error], capsize=2, lw=1.2, ms=4,
                color=colour_of(curve.method.name), marker=marker_of(curve.method.name),
                label=curve.method.label,
            )  # fmt: skip
        ax.axhline(50, color=QUIET, lw=0.7, ls=(0, (4, 3)))
        ax.set_xlabel("lag of the labels (volumes)")
        ax.set_ylabel("accuracy (%)")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.legend()
        return data_url(svg(figure, banner or None), "image/svg+xml")


def _table(curves: Sequence[LagCurve]) -> Any:
    rows = [
        [
            curve.comparison,
            method_cell(curve.method.name, curve.method.label),
            str(lag.lag_trs),
            NONE if lag.seconds is None else f"{lag.seconds:g}",
            f"{100 * lag.accuracy:.1f} ± {100 * lag.accuracy_se:.1f}",
            *(NONE if p is None else two_digits(p) for p in (lag.p_value, lag.p_value_all_lags)),
        ]
        for curve in curves
        for lag in curve.lags
    ]
    head = ["Comparison", "Method", "Lag (volumes)", "Seconds", "Accuracy %", "p", "p (all lags)"]
    return table(head, rows, 2)
