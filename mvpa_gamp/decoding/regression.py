"""Predicting a number: cross-validation, permutation test and learning curve of the held-out predictions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.fit import columns_at_once, graph_for, haufe_pattern
from mvpa_gamp.decoding.folds import Folds
from mvpa_gamp.methods.fold_fits import FoldFits, Method

EXCHANGES = ("within", "groups", "all", "shift")
_WORTHWHILE = 0.05  # a test that cannot reach this p-value is hardly worth its time
_TIE = 1e-9


class NumberScores(NamedTuple):
    """How well held-out numbers are predicted.

    ``correlation`` is of all held-out predictions with the numbers, both as deviations from the mean of the
    training rows: this mean is low where the held-out numbers are high, so that raw predictions of nothing
    correlate negatively. ``within`` is the same after the mean of every group is taken away from both, NaN
    where groups have one row; ``r2`` is 1 minus the squared error relative to that of predicting the mean of
    the training rows; ``error`` the mean absolute error.
    """

    correlation: float
    within: float
    r2: float
    error: float


def fit_numbers(
    method: Method, X: Any, y: NDArray, runs: NDArray, folds: Folds, connectivity: Any = None
) -> FoldFits:
    """Fit ``method`` on every fold and on all rows; ``decision`` (M, F + 1) are predictions of all rows.

    >>> import numpy as np
    >>> from mvpa_gamp.decoding import leave_one_run_out
    >>> from mvpa_gamp.decoding.regression import fit_numbers, number_scores
    >>> from mvpa_gamp.methods.regression import find_regression
    >>> runs, X = np.repeat(np.arange(6), 10), np.random.default_rng(0).standard_normal((60, 30))
    >>> y = X[:, 4] * 2 + 7
    >>> folds = leave_one_run_out(runs)
    >>> fits = fit_numbers(find_regression("ridge"), X, y, runs, folds)
    >>> number_scores(y, fits.decision[:, :-1], folds, runs).correlation > 0.99
    True
    """
    train = np.hstack([folds.train, np.ones((len(y), 1), dtype=bool)])
    fits = method.fit_folds(X, y, train, runs, **graph_for(method, connectivity))
    pattern = haufe_pattern(X, fits.coef, train)
    return replace(fits, pattern=pattern, held_out=folds.held_out, tested=folds.tested)


def number_scores(y: NDArray, predicted: NDArray, folds: Folds, groups: Any) -> NumberScores:
    """The scores of held-out rows, from the predictions (M, F) of the folds."""
    fold, rows = np.nonzero(folds.tested.T)
    said, true = predicted[rows, fold], y[rows]
    usual = np.array([y[train].mean() for train in folds.train.T])[fold]
    scatter = float(np.square(true - usual).sum())
    r2 = 1 - float(np.square(true - said).sum()) / scatter if scatter else math.nan
    within = math.nan
    if groups is not None:
        at = np.unique(np.asarray(groups)[rows], return_inverse=True)[1]
        within = correlation(_around_means(said, at), _around_means(true, at))
    return NumberScores(
        correlation(said - usual, true - usual), within, r2, float(np.abs(true - said).mean())
    )


def correlation(a: NDArray, b: NDArray) -> float:
    """Pearson's correlation; NaN where one of the two does not vary."""
    a, b = a - a.mean(), b - b.mean()
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return (
        float(a @ b) / size if size > _TIE * max(1.0, float(np.abs(a).max() * np.abs(b).max())) else math.nan
    )


def _around_means(values: NDArray, groups: NDArray) -> NDArray:
    means = np.bincount(groups, values) / np.bincount(groups)
    return np.asarray(values - means[groups])


@dataclass(frozen=True)
class RegressionTest:
    """The observed correlation and R2, and those of n permutations of the numbers.

    ``exchange`` says what was permuted: "within" groups, whole "groups" with one number each, "all" rows, or
    "shift", by which the numbers of every group are moved along in their order, the last ones to its
    beginning. ``caution`` is empty or says what limits the p-values.
    """

    method: str
    correlation: float
    r2: float
    null_correlation: NDArray  # (n,)
    null_r2: NDArray  # (n,)
    exchange: str
    seed: int
    caution: str = ""

    @property
    def pvalue(self) -> float:
        """(1 + #{null correlation at least as large}) / (1 + n)."""
        return _share(self.correlation, self.null_correlation)

    @property
    def pvalue_r2(self) -> float:
        """The same of R2."""
        return _share(self.r2, self.null_r2)


def _share(observed: float, null: NDArray) -> float:
    """An undefined score, of predictions that do not vary, is no better than any other."""
    known = np.where(np.isnan(null), -np.inf, null)
    least = -np.inf if math.isnan(observed) else observed - _TIE
    return float((1 + np.count_nonzero(known >= least)) / (1 + null.size))


def usual_exchange(y: NDArray, groups: Any, is_series: bool) -> str:
    """What may be exchanged: volumes of a series are shifted, other rows permuted within their group.

    Groups that have one number each, such as the age of a participant, are exchanged as wholes.
    """
    if is_series:
        return "shift"
    if groups is None:
        return "all"
    _, at, counts = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    if counts.max() == 1:
        return "all"
    first = np.zeros(len(counts))
    first[at[::-1]] = y[::-1]
    return "groups" if (first[at] == y).all() else "within"


def permuted_numbers(y: NDArray, groups: Any, n: int, seed: int, exchange: str) -> NDArray:
    """Numbers (M, n) of n permutations; column i comes from the i-th child of ``SeedSequence(seed)``.

    >>> import numpy as np
    >>> from mvpa_gamp.decoding.regression import permuted_numbers
    >>> permuted_numbers(np.array([1.0, 2, 3, 7, 8, 9]), [1, 1, 1, 2, 2, 2], 2, 0, "shift").T.tolist()
    [[2.0, 3.0, 1.0, 8.0, 9.0, 7.0], [3.0, 1.0, 2.0, 8.0, 9.0, 7.0]]
    """
    if exchange not in EXCHANGES:
        raise ValueError(f"exchange: expected one of {', '.join(EXCHANGES)}, got {exchange!r}. Change it.")
    if n < 1:
        raise ValueError(f"n must be at least 1 permutation, got {n}. 1000 is usual.")
    at = np.zeros(len(y), dtype=int)
    if groups is not None and exchange != "all":
        at = np.unique(np.asarray(groups), return_inverse=True)[1]
    members = [np.flatnonzero(at == group) for group in range(at.max() + 1)]
    if exchange == "groups":
        if any(np.ptp(y[rows]) for rows in members):
            raise ValueError("exchange='groups' needs one number per group. Use exchange='within'.")
        values = np.array([y[rows[0]] for rows in members])
    out = np.empty((len(y), n))
    for column, child in enumerate(np.random.SeedSequence(seed).spawn(n)):
        rng = np.random.default_rng(child)
        if exchange == "groups":
            out[:, column] = rng.permutation(values)[at]
            continue
        for rows in members:
            moved = (
                np.roll(y[rows], rng.integers(rows.size)) if exchange == "shift" else rng.permutation(y[rows])
            )
            out[rows, column] = moved
    return out


def _caution(y: NDArray, groups: Any, exchange: str) -> str:
    """What limits the p-values, where few other arrangements exist."""
    at = (
        np.zeros(len(y), dtype=int)
        if groups is None or exchange == "all"
        else np.unique(np.asarray(groups), return_inverse=True)[1]
    )
    sizes = np.bincount(at)
    if exchange == "groups":
        total = math.lgamma(len(sizes) + 1)
    elif exchange == "shift":
        total = float(np.log(sizes).sum())
    else:
        ties = (np.unique(y[at == g], return_counts=True)[1] for g in range(len(sizes)))
        total = sum(math.lgamma(size + 1) for size in sizes) - sum(
            math.lgamma(count + 1) for counts in ties for count in counts
        )
    if math.exp(min(total, 50.0)) >= 1 / _WORTHWHILE:
        return ""
    count = round(math.exp(total))
    return (
        f"Only {count} arrangements of the numbers exist, so the p-value cannot fall below {1 / count:.3g}. "
        "Give more images, or more groups."
    )


def regression_test(
    method: Method,
    X: Any,
    y: NDArray,
    runs: NDArray,
    folds: Folds,
    n: int = 1000,
    *,
    groups: Any = None,
    exchange: str = "within",
    seed: int = 0,
    connectivity: Any = None,
) -> RegressionTest:
    """Compare correlation and R2 of held-out predictions with those of n permutations of the numbers.

    All folds of all permutations are columns of a few calls of ``fit_folds``. ``runs`` (M,) serve the method;
    ``groups`` (M,) or None say within what numbers are exchanged.
    """
    vectors = np.column_stack([y, permuted_numbers(y, groups, n, seed, exchange)])
    n_folds, graph = len(folds.held_out), graph_for(method, connectivity)
    step = max(1, columns_at_once(X) // n_folds)
    found = []
    for start in range(0, vectors.shape[1], step):
        some = vectors[:, start : start + step]
        train = np.tile(folds.train, some.shape[1])
        fits = method.fit_folds(X, np.repeat(some, n_folds, axis=1), train, runs, **graph)
        said = fits.decision.reshape(len(y), -1, n_folds)
        found += [number_scores(each, said[:, k], folds, None) for k, each in enumerate(some.T)]
    first, *null = found
    return RegressionTest(
        method=method.name,
        correlation=first.correlation,
        r2=first.r2,
        null_correlation=np.array([each.correlation for each in null]),
        null_r2=np.array([each.r2 for each in null]),
        exchange=exchange,
        seed=seed,
        caution=_caution(y, groups, exchange),
    )


@dataclass(frozen=True)
class NumberCurve:
    """Correlation and R2 of held-out predictions for K numbers of training groups, means over subsets."""

    method: str
    n_train_groups: NDArray  # (K,)
    correlation: NDArray  # (K,)
    r2: NDArray  # (K,)
    standard_error: NDArray  # (K,) of the correlation, over subsets
    n_splits: NDArray  # (K,)


def number_curve(
    method: Method, X: Any, y: NDArray, groups: NDArray, *, n_train_groups: Sequence[int] | None = None,
    n_splits: int = 20, seed: int = 0, connectivity: Any = None,
) -> NumberCurve:  # fmt: skip
    """Measure correlation and R2 with fewer training groups: random subsets train, the other groups test."""
    names = np.unique(groups)
    if names.size < 3:
        raise ValueError(f"A learning curve needs at least 3 groups, got {names.size}. Give more.")
    usual = sorted({max(2, round(share * names.size)) for share in (0.25, 0.5, 0.75)} | {names.size - 1})
    sizes = usual if n_train_groups is None else sorted(set(map(int, n_train_groups)))
    if not sizes or sizes[0] < 1 or sizes[-1] >= names.size:
        raise ValueError(
            f"n_train_groups: expected numbers from 1 to {names.size - 1}, got {list(sizes)}. Change them."
        )
    rng, points = np.random.default_rng(seed), []
    for size in sizes:
        chosen = {tuple(np.sort(rng.choice(names.size, size, replace=False))) for _ in range(3 * n_splits)}
        train = np.column_stack([np.isin(groups, names[list(each)]) for each in sorted(chosen)[:n_splits]])
        fits = method.fit_folds(X, y, train, groups, **graph_for(method, connectivity))
        scores = []
        for column in range(train.shape[1]):
            one = Folds(train[:, [column]], ~train[:, [column]], np.arange(1))
            scores.append(number_scores(y, fits.decision[:, [column]], one, None))
        r, r2 = np.array([each.correlation for each in scores]), np.array([each.r2 for each in scores])
        error = np.nanstd(r, ddof=1) / math.sqrt(len(r)) if len(r) > 1 else math.nan
        points.append((np.nanmean(r), np.nanmean(r2), error, len(r)))
    r, r2, error, count = (np.array(part) for part in zip(*points, strict=True))
    return NumberCurve(method.name, np.array(sizes), r, r2, error, count)


def number_folds(cv: Any, y: NDArray, groups: Any) -> tuple[Folds, str]:
    """Folds of rows with numbers y (M,), and a sentence about them, from scikit-learn's forms of ``cv``.

    With groups None leaves one group out and a number means that many folds of whole groups; without, folds
    (None: five) get every so-manieth row in the order of y, so that all have its whole range.

    >>> import numpy as np
    >>> from mvpa_gamp.decoding.regression import number_folds
    >>> number_folds(3, np.arange(6.0), None)[0].tested.astype(int).sum(axis=0).tolist()
    [2, 2, 2]
    """
    count = None if cv is None else int(cv) if isinstance(cv, (int, np.integer)) else 0
    if count == 0:
        from sklearn.model_selection import check_cv

        splits = list(check_cv(cv).split(np.zeros((len(y), 1)), y, groups))
        tested, train = (np.zeros((len(y), len(splits)), dtype=bool) for _ in range(2))
        for column, (of_train, of_test) in enumerate(splits):
            train[of_train, column] = tested[of_test, column] = True
        if (train & tested).any() or not (train.any(axis=0).all() and tested.any(axis=0).all()):
            raise ValueError("cv: expected folds that test rows they do not train on, got others. Change cv.")
        return Folds(
            train, tested, np.arange(1, len(splits) + 1)
        ), f"Cross-validation uses {len(splits)} given splits."
    names = np.arange(len(y)) if groups is None else np.unique(np.asarray(groups))
    most = names.size
    count = count if count is not None else (min(5, most) if groups is None else most)
    if not 2 <= count <= most:
        what = "images" if groups is None else "groups"
        raise ValueError(f"cv: expected 2 to {most} folds, the number of {what}, got {count}. Change cv.")
    if groups is None:
        number = np.empty(len(y), dtype=int)
        number[np.argsort(y, kind="stable")] = np.arange(len(y)) % count
        sentence = f"Cross-validation uses {count} folds with the same spread of the target."
    else:
        at = np.unique(np.asarray(groups), return_inverse=True)[1]
        means = np.bincount(at, y) / np.bincount(at)
        of_group = np.empty(most, dtype=int)
        of_group[np.argsort(means, kind="stable")] = np.arange(most) % count
        number = at if count == most else of_group[at]
        sentence = f"Cross-validation leaves whole groups out, in {count} folds."
        if count == most:
            sentence = f"Cross-validation leaves one of {most} groups out at a time."
    tested = number[:, None] == np.arange(count)
    held_out = names if groups is not None and count == most else np.arange(1, count + 1)
    return Folds(~tested, tested, held_out), sentence
