"""Test error against the share of wrong training labels: standard and robust logistic classifiers.

The paper's robust experiment: M = 8192 examples of N = 512 features, x | y ~ N(y mu, I / M) with mu such
that the Bayes error is 0.05, and a share of the training labels flipped. Genie-aided classifiers are given
the true scale 2 M mu (and the true flip rate); tuned ones learn the prior's variance (and the flip rate,
from 0.01 and once more from 0.4: the better fit by leave-one-out score counts). All true weights are equal
here, so variants that learn the prior's mean too are shown beside them. All flip rates are columns of one
solve. The quick run has a quarter of the rows and features: what matters is their ratio.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from mvpa_gamp.gamp import Design, Gaussian, Logistic, Robust, SolverSettings, fit_em, solve
from mvpa_gamp.gamp.starts import start_prior

from .command import Options, parse_trials
from .output import style, write_trials
from .trial_store import TrialStore

NAME = "robust_labels"
BAYES_ERROR = 0.05
FIRST_FLIP = 0.01  # where tuning of the flip rate begins, as in the paper
PAPER_SCALE = 100.0  # of the tuned classifiers in the paper, with a prior of variance 1
_NO_FLIP = 1e-6  # a robust likelihood wants a flip rate above 0


@dataclass(frozen=True)
class Size:
    """How large the experiment is."""

    n_rows: int
    n_features: int
    flips: tuple[float, ...]
    n_trials: int


QUICK = Size(2048, 128, (0.0, 0.1, 0.2, 0.3, 0.4), 4)
FULL = Size(8192, 512, (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4), 20)


@dataclass(frozen=True)
class Problem:
    """One training set whose columns differ in the share of flipped labels."""

    design: Design  # (M, N, B)
    labels: NDArray  # (M, B) as given to the classifiers
    flips: NDArray  # (B,)
    mu: float

    @property
    def true_scale(self) -> float:
        """Scale of the logistic posterior of a label when all weights are 1: 2 M mu."""
        return 2 * self.design.shape[0] * self.mu

    def error(self, coef: NDArray) -> NDArray:
        """Phi(-mu sum(w) sqrt(M) / |w|), the error of each column on new, clean examples, (B,)."""
        w = coef.astype(float)
        length = np.maximum(np.linalg.norm(w, axis=0), np.finfo(float).tiny)
        return ndtr(-self.mu * np.sqrt(self.design.shape[0]) * w.sum(axis=0) / length)


class Fit(NamedTuple):
    """Weights (N, B) and, where it was learnt, the flip rate (B,)."""

    coef: NDArray
    flip: NDArray | None = None
    iterations: NDArray | None = None


def wrong_labels(size: Size, rng: np.random.Generator) -> Problem:
    """Balanced classes; the rows flipped at one rate are also flipped at every higher one."""
    flips = np.array(size.flips)
    mu = ndtri(1 - BAYES_ERROR) / np.sqrt(size.n_rows * size.n_features)
    y = np.where(np.arange(size.n_rows) % 2, 1.0, -1.0)
    X = rng.standard_normal((size.n_rows, size.n_features)) / np.sqrt(size.n_rows) + mu * y[:, None]
    wrong = rng.permutation(size.n_rows)[:, None] < flips * size.n_rows
    design = Design(X.astype(np.float32), np.ones((size.n_rows, len(flips)), dtype=bool))
    return Problem(design, np.where(wrong, -y[:, None], y[:, None]), flips, float(mu))


def genie(likelihood: Callable[[Problem], Any]) -> Callable[[Problem], Fit]:
    """GAMP at the true parameters, run to the end: what the model says, whatever the stopping rule."""

    def fit(problem: Problem) -> Fit:
        settings = SolverSettings(stop="fixed-point")
        result = solve(problem.design, problem.labels, likelihood(problem), Gaussian(), settings)
        return Fit(result.coef, None, result.n_iter)

    return fit


def tuned(
    likelihood: Any,
    learn: tuple[str, ...] = ("var",),
    start: Gaussian | None = None,
    settings: SolverSettings | None = None,
) -> Callable[[Problem], Fit]:
    """GAMP that learns the prior's parameters, and the flip rate of a robust likelihood.

    ``start`` is the first prior; None for the package's own start.
    """

    def fit(problem: Problem) -> Fit:
        prior = start or start_prior("gaussian", problem.design)
        found = fit_em(
            problem.design, problem.labels, likelihood, prior, settings or SolverSettings(), learn_prior=learn
        )
        flip = getattr(found.likelihood, "flip", None)
        return Fit(found.result.coef, flip, found.result.n_iter)

    return fit


def class_means(problem: Problem) -> Fit:
    """No message passing at all: the difference of the class means, X'y."""
    return Fit(np.asarray(problem.design.X.T @ problem.labels))


@dataclass(frozen=True)
class Classifier:
    """One line of the figure: panel 0 holds the paper's four, panel 1 the variants."""

    label: str
    fit: Callable[[Problem], Fit]
    panel: int
    colour: str
    marker: str
    line: str


_STANDARD, _ROBUST = "#0072b2", "#d55e00"
CLASSIFIERS: Mapping[str, Classifier] = {
    "standard-genie": Classifier(
        "standard, genie", genie(lambda p: Logistic(p.true_scale)), 0, _STANDARD, "s", "-"
    ),
    "robust-genie": Classifier(
        "robust, genie",
        genie(lambda p: Robust(Logistic(p.true_scale), flip=np.maximum(p.flips, _NO_FLIP))),
        0, _ROBUST, "o", "-",
    ),
    "standard-em": Classifier("standard, EM", tuned(Logistic()), 0, _STANDARD, "s", "--"),
    "robust-em": Classifier("robust, EM", tuned(Robust(Logistic(), flip=FIRST_FLIP)), 0, _ROBUST, "o", "--"),
    "standard-em-mean": Classifier(
        "standard, EM, mean learnt too", tuned(Logistic(), ("mean", "var")), 1, _STANDARD, "D", "-."
    ),
    "robust-em-mean": Classifier(
        "robust, EM, mean learnt too", tuned(Robust(Logistic(), flip=FIRST_FLIP), ("mean", "var")),
        1, _ROBUST, "D", "-.",
    ),
    "standard-em-paper-start": Classifier(
        "standard, EM, the paper's start", tuned(Logistic(PAPER_SCALE), start=Gaussian()),
        1, _STANDARD, "^", "--",
    ),
    "robust-em-paper-start": Classifier(
        "robust, EM, the paper's start",
        tuned(Robust(Logistic(PAPER_SCALE), flip=FIRST_FLIP), start=Gaussian()), 1, _ROBUST, "^", "--",
    ),
    "class-means": Classifier("difference of class means", class_means, 1, "#4d4d4d", "x", ":"),
}  # fmt: skip


def trial_rows(
    size: Size, trial: int, seed: int, classifiers: Mapping[str, Classifier] = CLASSIFIERS
) -> list[dict[str, Any]]:
    """Fit every classifier to one training set, all flip rates together."""
    problem = wrong_labels(size, np.random.default_rng([seed, trial]))
    rows = []
    for name, classifier in classifiers.items():
        began = time.perf_counter()
        fit = classifier.fit(problem)
        seconds = (time.perf_counter() - began) / len(size.flips)
        for column, (flip, error) in enumerate(zip(size.flips, problem.error(fit.coef), strict=True)):
            rows.append({
                "classifier": name,
                "flip": flip,
                "trial": trial,
                "error": float(error),
                "learnt_flip": None if fit.flip is None else float(fit.flip[column]),
                "iterations": None if fit.iterations is None else int(fit.iterations[column]),
                "seconds": round(seconds, 3),
            })  # fmt: skip
    return rows


def summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean and standard error over trials, per classifier and flip rate."""
    groups: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["classifier"], row["flip"]), []).append(row)
    means = []
    for (name, flip), group in groups.items():
        errors = np.array([row["error"] for row in group])
        learnt = [row["learnt_flip"] for row in group if row["learnt_flip"] is not None]
        means.append({
            "classifier": name,
            "flip": flip,
            "trials": len(group),
            "error": float(errors.mean()),
            "error_se": float(errors.std(ddof=1) / np.sqrt(len(errors))) if len(errors) > 1 else None,
            "learnt_flip": float(np.mean(learnt)) if learnt else None,
            "seconds": float(np.mean([row["seconds"] for row in group])),
        })  # fmt: skip
    return means


def draw(means: Sequence[dict[str, Any]], size: Size) -> Figure:
    """The paper's four classifiers, and the variants."""
    figure = Figure(figsize=(8.8, 4.2))
    panels = figure.subplots(1, 2, sharey=True)
    for name, classifier in CLASSIFIERS.items():
        line = [row for row in means if row["classifier"] == name]
        if line:
            _draw_line(panels[classifier.panel], line, classifier)
    for axes, title in zip(panels, ("the paper's classifiers", "variants"), strict=True):
        axes.axhline(BAYES_ERROR, color="black", linestyle=":", label="Bayes error")
        axes.set(xlabel="share of wrong training labels", title=title, ylim=(0.0, None))
        axes.legend(loc="upper left", fontsize=8)
    panels[0].set_ylabel("test error rate (clean labels)")
    figure.suptitle(f"M = {size.n_rows:,}, N = {size.n_features}, {size.n_trials} trials", fontsize=9.5)
    return figure


def _draw_line(axes: Any, line: Sequence[dict[str, Any]], classifier: Classifier) -> None:
    axes.errorbar(
        [row["flip"] for row in line],
        [row["error"] for row in line],
        yerr=None if line[0]["error_se"] is None else [row["error_se"] for row in line],
        color=classifier.colour,
        marker=classifier.marker,
        linestyle=classifier.line,
        markerfacecolor="white" if classifier.line == "--" else classifier.colour,
        capsize=2,
        label=classifier.label,
    )


def headline(means: Sequence[dict[str, Any]]) -> str:
    """Errors at the flip rate nearest to a fifth."""
    flip = min((row["flip"] for row in means), key=lambda value: abs(value - 0.2))
    words = [f"{row['classifier']} {row['error']:.3f}" for row in means if row["flip"] == flip]
    return f"test error with {flip:.0%} wrong labels (Bayes {BAYES_ERROR}): " + ", ".join(words)


def run(options: Options, size: Size) -> dict[str, Any]:
    """Fit, write table, record and figure, and return the record."""
    store = TrialStore(options.out, NAME, {**asdict(size), "seed": options.seed, "n_trials": None})
    keys = [(trial,) for trial in range(size.n_trials)]
    rows = store.rows(keys, lambda trial: trial_rows(size, trial, options.seed))
    means = summary(rows)
    record = {"headline": headline(means), "bayes_error": BAYES_ERROR, **asdict(size)}
    with style():
        written = write_trials(NAME, options, rows, means, draw(means, size), record, store.seconds)
    store.finish()
    return written


def main(argv: Sequence[str] | None = None) -> int:
    print(run(*parse_trials(__doc__ or "", argv, NAME, QUICK, FULL, "training sets"))["headline"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
