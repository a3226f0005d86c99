"""The page of a number that was predicted: scores, predictions, test, curve and maps of some methods."""

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mvpa_gamp._version import __version__
from mvpa_gamp.decoding.regression import NumberCurve, NumberScores, RegressionTest
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.report.html import Renderer, data_url, method_cell, table
from mvpa_gamp.report.style import colour_of, look, svg

_EXCHANGED = {
    "within": "within each group",
    "groups": "between whole groups, each of which has one number",
    "all": "between all images",
    "shift": "by moving those of each group along in their order",
}
_SLICES = 7


class Counted(NamedTuple):
    """What a row of X is, and what belongs together: images of groups, or maps of participants."""

    image: str = "image"
    group: str = "group"

    def said(self, text: str) -> str:
        """A sentence about images of groups (of runs, in descriptions of methods), in these words."""
        if self == IMAGES:
            return text
        text = re.sub(r"\b(group|run)(s?)\b", rf"{self.group}\2", text)
        text = re.sub(r"\bImage(s?)\b", rf"{self.image.capitalize()}\1", text)
        return re.sub(r"\bimage(s?)\b", rf"{self.image}\1", text)


IMAGES = Counted()


@dataclass(frozen=True)
class NumberResult:
    """What one method made of a number: arrays of held-out images (T,), and what was asked besides."""

    method: Method
    scores: NumberScores
    true: NDArray  # (T,)
    predicted: NDArray  # (T,)
    group: NDArray | None  # (T,)
    status: Any  # pandas.DataFrame, one row per fit
    weights: Any = None  # image
    test: RegressionTest | None = None
    curve: NumberCurve | None = None


def regression_page(
    results: Sequence[NumberResult],
    about: dict[str, Any],
    background: Any = None,
    title: str = "",
    counted: Counted = IMAGES,
) -> str:
    """The self-contained HTML page; ``about`` has target, images, voxels, groups, folds and scaling."""
    target = about["target"]
    renderer = Renderer(Path(), False, target=target, c=counted)
    tested = [each for each in results if each.test is not None]
    cautions = [each.test.caution for each in tested if each.test]
    content = {
        "answers": [_answer(each, target) for each in results],
        "scores": _scores(results, counted),
        "figures": [(each.method.label, _scatter(each, target)) for each in results],
        "maps": [(each.method.label, _slices(each.weights, background)) for each in results if each.weights],
        "tests": _tests(tested),
        "exchanged": counted.said(_EXCHANGED[tested[0].test.exchange] if tested and tested[0].test else ""),
        "test_cautions": sorted({counted.said(each) for each in cautions if each}),
        "curve": _curve([each for each in results if each.curve is not None], counted),
        "methods": [
            (each.method.label, counted.said(each.method.description), each.method.reference)
            for each in results
        ],
        "about": about,
        "status": [
            (each.method.label, table(list(each.status.columns), [
                [_shown(value) for value in row] for row in each.status.itertuples(index=False)
            ])) for each in results
        ],
    }  # fmt: skip
    body = [renderer.section("regression", content)]
    return renderer.page(
        body,
        title=title or f"mvpa_gamp: {target}",
        heading=title or f"How well {target} is predicted",
        lead=about["description"],
        phantom=None,
        first=[("banner", "Caution", each) for each in about["cautions"]],
        rest=[],
        more="",
        facts={
            counted.said(name): about[name] for name in ("images", "voxels", "groups", "folds", "scaling")
        },
        version=__version__,
    )


def _answer(result: NumberResult, target: str) -> str:
    """One sentence: what was found, and how sure that is."""
    r, r2 = result.scores.correlation, result.scores.r2
    known = "predictions do not vary" if math.isnan(r) else f"correlate with {target} at r = {r:.2f}"
    better = (
        f"explain {100 * r2:.0f} % of its variance"
        if r2 > 0
        else "are no closer to it than the training mean"
    )
    sure = (
        ""
        if result.test is None
        else f" (p = {result.test.pvalue:.3g}, {result.test.null_r2.size} permutations)"
    )
    subject = "Held-out predictions" if not math.isnan(r) else "Held-out"
    return f"{result.method.label}: {subject} {known}{sure}, and {better}."


def _scores(results: Sequence[NumberResult], counted: Counted) -> Any:
    rows = [
        [
            method_cell(each.method.name, each.method.label),
            *(_shown(value) for value in each.scores),
        ]
        for each in results
    ]
    return table(["method", "correlation", f"within {counted.group}s", "R2", "mean absolute error"], rows)


def _tests(results: Sequence[NumberResult]) -> Any:
    rows = [
        [
            method_cell(each.method.name, each.method.label),
            _shown(each.test.pvalue),
            _shown(each.test.pvalue_r2),
        ]
        for each in results
        if each.test is not None
    ]
    return table(["method", "p of the correlation", "p of R2"], rows) if rows else None


def _shown(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "n/a"
    return f"{value:.3g}" if isinstance(value, float | np.floating) else str(value)


def _scatter(result: NumberResult, target: str) -> str:
    """Predictions over numbers, every group in a shade of its own."""
    with look():
        figure = Figure(figsize=(4.2, 3.6), layout="constrained")
        ax = figure.subplots()
        ax.axline((float(result.true.mean()), float(result.true.mean())), slope=1, color="0.8", lw=1)
        ax.scatter(result.true, result.predicted, s=10, color=colour_of(result.method.name), alpha=0.6, lw=0)
        ax.set_xlabel(target)
        ax.set_ylabel(f"predicted {target} (held out)")
        return data_url(svg(figure, None), "image/svg+xml")


def _curve(results: Sequence[NumberResult], counted: Counted) -> str:
    if not results:
        return ""
    with look():
        figure = Figure(figsize=(4.2, 3), layout="constrained")
        ax = figure.subplots()
        for each in results:
            curve = each.curve
            assert curve is not None
            colour = colour_of(each.method.name)
            ax.errorbar(
                curve.n_train_groups, curve.correlation, curve.standard_error, color=colour,
                label=each.method.label, capsize=2,
            )  # fmt: skip
        ax.set_xlabel(f"{counted.group}s trained on")
        ax.set_ylabel("correlation")
        ax.legend()
        return data_url(svg(figure, None), "image/svg+xml")


def _slices(weights: Any, background: Any) -> str:
    """The weights on some axial slices through them."""
    values = np.asarray(weights.dataobj, dtype=float)
    ground = None if background is None else np.asarray(background.dataobj, dtype=float)
    used = np.flatnonzero(np.abs(values).sum(axis=(0, 1)))
    shown = (
        np.unique(np.linspace(used[0], used[-1], _SLICES + 2).round().astype(int)[1:-1]) if used.size else [0]
    )
    limit = float(np.quantile(np.abs(values[values != 0]), 0.99)) if used.size else 1.0
    with look():
        figure = Figure(figsize=(9, 1.9), layout="constrained")
        axes = np.atleast_1d(figure.subplots(1, len(shown)))
        for ax, place in zip(axes, shown, strict=True):
            if ground is not None and ground.shape == values.shape:
                ax.imshow(np.rot90(ground[:, :, place]), cmap="gray")
            layer = np.rot90(np.ma.masked_equal(values[:, :, place], 0))
            drawn = ax.imshow(layer, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
            height = weights.affine[2, 2] * place + weights.affine[2, 3]
            ax.set_title(f"z = {height:.0f}", fontsize=8)
            ax.set_axis_off()
        figure.colorbar(drawn, ax=axes.tolist(), label="weight", shrink=0.8)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=120, metadata={"Software": None})
    return data_url(buffer.getvalue(), "image/png")
