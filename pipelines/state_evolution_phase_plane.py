"""Test error and weight error over the plane of M/N and K/N: average of many fits against state evolution.

The paper's figure state_evo_phaseplane: N = 1024, i.i.d. Bernoulli-Gaussian weights, probit labels, GAMP with
the true parameters. K > M is left out, as in the paper.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.special import ndtr

from mvpa_gamp.gamp import Bernoulli, Design, Gaussian, Probit, SolverSettings, solve, state_evolution

from .command import Options, parse
from .output import save_figure, style, write_record, write_table
from .trial_store import TrialStore

NAME = "state_evolution_phase_plane"
# The paper does not say how noisy its labels are. With unit weights z has variance K/M: mostly clean labels.
NOISE = 0.01
EMPIRICAL: Final = "--"
PREDICTED: Final = "-"


@dataclass(frozen=True)
class Plan:
    """Size of the experiment. Columns share X and differ in weights and labels."""

    n_features: int
    n_test: int
    n_designs: int
    n_columns: int
    ratios: tuple[float, ...]  # of M/N and of K/N


QUICK = Plan(1024, 1024, 2, 8, (0.05, *np.linspace(0.1, 1.0, 10).round(2).tolist()))
FULL = Plan(
    1024, 1024, 50, 20, tuple(np.linspace(0.05, 1.0, 20).round(2))
)  # 1000 fits per point, as the paper


def run(options: Options, plan: Plan | None = None) -> dict[str, Any]:
    """Measure, predict, write CSV, JSON and figure; returns the record."""
    plan = plan or (FULL if options.full else QUICK)
    store = TrialStore(options.out, NAME, {**asdict(plan), "seed": options.seed})
    rows = store.rows(_points(plan), lambda m, k: [_row(plan, m, k, options.seed)])
    write_table(options.out / f"{NAME}.csv", rows)
    with style():
        save_figure(_draw(rows, plan), options.out / NAME)
    record = {"plan": asdict(plan), "probit_var": NOISE, "slab_var": 1.0, **_summary(rows)}
    path = options.out / f"{NAME}.json"
    written = write_record(path, record, pipeline=NAME, options=options, seconds=store.seconds)
    store.finish()
    return written


def main(argv: Sequence[str] | None = None) -> int:
    options, own = parse(__doc__ or "", argv, _add_designs, name=NAME)
    plan = FULL if options.full else QUICK
    record = run(options, replace(plan, n_designs=own.designs or plan.n_designs))
    print(
        f"{record['points']} points, empirical minus predicted: "
        f"test error {record['error_rate_gap_mean']:+.4f} on average, "
        f"at most {record['error_rate_gap_largest']:.4f}; weight MSE "
        f"{record['mse_db_gap_mean']:+.2f} dB on average, at most {record['mse_db_gap_largest']:.2f} dB; "
        f"results in {options.out}"
    )
    return 0


def _add_designs(parser: argparse.ArgumentParser) -> None:
    said = (
        f"X per point, {FULL.n_columns} fits each (default: quick {QUICK.n_designs}, full {FULL.n_designs})"
    )
    parser.add_argument("--designs", type=int, metavar="N", help=said)


def _points(plan: Plan) -> Iterable[tuple[float, float]]:
    return [(m, k) for m in plan.ratios for k in plan.ratios if k <= m]


def _row(plan: Plan, ratio: float, rate: float, seed: int) -> dict[str, Any]:
    """Empirical and predicted errors of one point of the plane."""
    likelihood, prior = Probit(NOISE), Bernoulli(rate, Gaussian(0.0, 1.0))
    # A point's random numbers depend on the point alone, not on the grid it is part of.
    rng = np.random.default_rng([seed, round(1e6 * ratio), round(1e6 * rate)])
    n_rows = round(ratio * plan.n_features)
    fits = [_fits(plan, n_rows, likelihood, prior, rng) for _ in range(plan.n_designs)]
    error, mse, converged = (np.array(part) for part in zip(*fits, strict=True))
    predicted = state_evolution(likelihood, prior, n_rows / plan.n_features)
    return {
        "M/N": n_rows / plan.n_features,
        "K/N": rate,
        "fits": error.size,
        "converged": int(converged.sum()),
        "error_rate": error.mean(),
        "error_rate_se": error.std(ddof=1) / np.sqrt(error.size),
        "error_rate_predicted": predicted.error_rate[-1],
        "mse": mse.mean(),
        "mse_se": mse.std(ddof=1) / np.sqrt(mse.size),
        "mse_predicted": predicted.mse[-1],
        "prediction_converged": predicted.converged,
    }


def _fits(
    plan: Plan, n_rows: int, likelihood: Probit, prior: Bernoulli, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Test-error rate, weight MSE and convergence of fits that share one X, each (n_columns,)."""
    shape = (plan.n_features, plan.n_columns)
    X = rng.standard_normal((n_rows + plan.n_test, plan.n_features)) / np.sqrt(n_rows)
    w = rng.standard_normal(shape) * (rng.random(shape) < prior.rate)
    y = np.where(rng.random((len(X), plan.n_columns)) < ndtr(X @ w / np.sqrt(NOISE)), 1.0, -1.0)
    design = Design(X[:n_rows], np.ones((n_rows, plan.n_columns), dtype=bool))
    result = solve(design, y[:n_rows], likelihood, prior, SolverSettings(stop="fixed-point"))
    wrong = np.where(X[n_rows:] @ result.coef > 0, 1.0, -1.0) != y[n_rows:]
    return wrong.mean(axis=0), np.square(result.coef - w).mean(axis=0), result.converged


def _summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How far apart the averages and the predictions are."""
    table = {name: np.array([row[name] for row in rows], dtype=float) for name in rows[0]}
    error_gap = table["error_rate"] - table["error_rate_predicted"]
    db_gap = _db(table["mse"]) - _db(table["mse_predicted"])
    mse_gap = table["mse"] - table["mse_predicted"]
    return {
        "points": len(rows),
        "fits": int(table["fits"].sum()),
        "fits_converged": int(table["converged"].sum()),
        "predictions_converged": int(table["prediction_converged"].sum()),
        "error_rate_gap_mean": error_gap.mean(),
        "error_rate_gap_largest": np.abs(error_gap).max(),
        "error_rate_within_3_se": np.mean(np.abs(error_gap) <= 3 * table["error_rate_se"]),
        "mse_db_gap_mean": db_gap.mean(),
        "mse_db_gap_largest": np.abs(db_gap).max(),
        "mse_within_3_se": np.mean(np.abs(mse_gap) <= 3 * table["mse_se"]),
    }


def _draw(rows: Sequence[dict[str, Any]], plan: Plan) -> Figure:
    figure = Figure(figsize=(9.0, 4.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    error = [_plane(rows, plan, name) for name in ("error_rate", "error_rate_predicted")]
    mse = [_db(_plane(rows, plan, name)) for name in ("mse", "mse_predicted")]
    _contours(left, plan, error, 0.02, "{:.2f}")
    _contours(right, plan, mse, 2.0, "{:.0f}")
    left.set_title("(a) Test-error rate")
    right.set_title("(b) Weight MSE (dB)")
    lines = [
        Line2D(
            [],
            [],
            color="0.2",
            linestyle=EMPIRICAL,
            label=f"average of {rows[0]['fits']} fits, N = {plan.n_features}",
        ),
        Line2D([], [], color="0.2", linestyle=PREDICTED, label="state evolution"),
        Line2D([], [], color="0.2", linestyle="-.", linewidth=1.0, label="K = M"),
    ]
    figure.legend(handles=lines, loc="outside lower center", ncols=3)
    return figure


def _plane(rows: Sequence[dict[str, Any]], plan: Plan, name: str) -> np.ndarray:
    """A column of the table as a grid (K/N, M/N), NaN where K > M."""
    grid = np.full((len(plan.ratios), len(plan.ratios)), np.nan)
    for (m, k), row in zip(_points(plan), rows, strict=True):
        grid[plan.ratios.index(k), plan.ratios.index(m)] = row[name]
    return grid


def _contours(axes: Axes, plan: Plan, planes: Sequence[np.ndarray], spacing: float, form: str) -> None:
    """Level curves of the empirical and the predicted plane in the same colours, every other one labelled."""
    low, high = (f([f(plane) for plane in planes]) for f in (np.nanmin, np.nanmax))
    levels = spacing * np.arange(np.ceil(low / spacing), np.floor(high / spacing) + 1)
    for plane, line, width in zip(planes[::-1], (PREDICTED, EMPIRICAL), (1.8, 1.3), strict=True):
        drawn = axes.contour(
            plan.ratios,
            plan.ratios,
            np.ma.masked_invalid(plane),
            levels,
            cmap="viridis",
            vmin=low,
            vmax=high + 0.15 * (high - low),  # the palest yellow is hard to see on white
            linestyles=line,
            linewidths=width,
        )
    every_other = levels[np.round(levels / spacing) % 2 == 0]  # all of them would run into each other
    for label in axes.clabel(
        drawn,
        every_other,
        fmt=lambda level: form.format(level).replace("-", "\N{MINUS SIGN}"),
        fontsize=7.5,
        inline=False,
        colors="0.15",
    ):
        label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.6})
        label.set_zorder(5)
    ends = (0.0, max(plan.ratios))
    axes.plot(ends, ends, "-.", color="0.2", linewidth=1.0)
    axes.text(0.3 * ends[1], 0.72 * ends[1], "K > M", color="0.4", ha="center")
    axes.set(xlabel="training-to-feature ratio M/N", ylabel="discriminative-feature ratio K/N")
    axes.set(xlim=ends, ylim=ends, aspect="equal")


def _db(values: np.ndarray) -> np.ndarray:
    return 10 * np.log10(values)


if __name__ == "__main__":
    raise SystemExit(main())
