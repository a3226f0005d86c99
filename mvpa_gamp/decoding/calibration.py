"""Features (voxels, genes) at a false-discovery rate that the user's own permuted labels calibrate.

Inclusion probabilities alone do not keep a rate in fMRI: volumes are correlated and neighbours lend each
other probability. Here the same fits are made to permuted labels, as columns of one solve, and a set of
features is selected only if permuted labels give sets of its size and strength rarely enough.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..methods import find_method
from ..methods.fold_fits import Method
from .exchange import Exchange, find_exchange
from .fit import Scheme, solve_columns
from .localisation import within_runs
from .tasks import check_signs

N_PERMUTATIONS = 199  # p-values down to 0.005, and a mean number of false voxels with a small error
# The search looks at thresholds that no map exceeds in more voxels than this: larger sets are not sparse.
_MOST_VOXELS = 2000
_COUNTABLE = 10_000  # more arrangements than this are never the limit
_MORE_RUNS = "Give more runs or a larger rate."
_TIE = 1e-9  # of estimated rates, which are ratios of counts


@dataclass(frozen=True, eq=False)
class FdrSelection:
    """Features selected at a false-discovery rate, and what permuted labels say about them.

    ``estimate`` is the estimated rate of the selected set, NaN where it is empty. ``pvalue`` is the share of
    labellings, the observed one among them, whose best set looks at least as good; a set is
    selected only where it is at most ``fdr``. ``smallest`` is the smallest p-value that the labellings allow.
    ``of`` is the word for a feature, ``advice`` what to do where there are too few labellings.
    """

    method: str
    fdr: float
    strength: NDArray  # (N,) inclusion probability times squared correlation with the labels within runs
    selected: NDArray  # (N,) bool
    estimate: float
    pvalue: float
    n: int  # labellings beside the observed one
    smallest: float
    seed: int
    of: str = "feature"
    advice: str = _MORE_RUNS

    @property
    def verdict(self) -> str:
        """What was selected or why nothing was, in a sentence."""
        count = int(np.count_nonzero(self.selected))
        if self.smallest > self.fdr:
            return (
                f"No {self.of} can be reported at a false-discovery rate of {self.fdr:.3g}: only "
                f"{self.n + 1} arrangement{'s' * (self.n > 0)} of the labels {'were' if self.n else 'was'} "
                f"available, too few for a rate below {self.smallest:.2g}. {self.advice}"
            )
        rare = (
            f"permuted labels gave as good a set in {100 * self.pvalue:.1f} % of {self.n + 1} arrangements "
            f"of the labels (the real one and {self.n} permutations)"
        )
        if count:
            return (
                f"{count} {self.of}{'s' * (count > 1)} at an estimated false-discovery rate of "
                f"{100 * self.estimate:.1f} % (nominal {100 * self.fdr:.1f} %); {rare}."
            )
        if self.pvalue > self.fdr:
            return (
                f"No {self.of} can be reported at a false-discovery rate of {100 * self.fdr:.1f} %: {rare}."
            )
        return (
            f"No {self.of} can be reported: every set has an estimated false-discovery rate above "
            f"{100 * self.fdr:.1f} %."
        )


class Judged(NamedTuple):
    """The decision about one map of strengths."""

    selected: NDArray  # (N,) bool
    estimate: float
    pvalue: float


@dataclass(frozen=True, eq=False)
class Calibration:
    """Strengths of the observed labels and of permuted ones, ready to select at any rate.

    ``null`` (K, n) holds the K largest strengths of every permuted labelling, largest first.
    """

    method: str
    strength: NDArray  # (N,) of the observed labels
    null: NDArray
    smallest: float
    seed: int
    advice: str = _MORE_RUNS  # where there are too few labellings
    exchange: str = "block"  # what was exchanged; ``planted_check`` does the same

    def select(self, fdr: float = 0.05, of: str = "feature") -> FdrSelection:
        """The largest set whose estimated false-discovery rate is at most ``fdr``, named by ``of``."""
        found = self.judge(self.strength, fdr)
        if self.smallest > fdr:
            found = Judged(np.zeros_like(found.selected), float("nan"), found.pvalue)
        how = self.null.shape[1], self.smallest, self.seed
        return FdrSelection(self.method, fdr, self.strength, *found, *how, of, self.advice)

    def judge(self, strength: NDArray, fdr: float) -> Judged:
        """Select from a map of strengths (N,) of other labels, or of the observed ones.

        A set holds the k strongest features of a map. Its estimated rate is V / k, with V the mean number of
        features at least as strong over all labellings, this one included, so that V is never 0. The best set
        of every labelling is found in the same way; where those of permuted labels are as good too often
        (p above ``fdr``), nothing is selected.
        """
        check_rate(fdr)
        own = largest(strength[:, None])[:, 0]
        lowest = 0.0 if own.size == strength.size else max(own[-1], self.null[-1].max())
        rates = self._rates(own, self._stronger(own) + _ranks(own), lowest)
        others = np.searchsorted(own[::-1], self.null, side="left")
        best = self._rates(self.null, self._stronger_null + own.size - others, lowest).min(axis=0)
        pvalue = float(1 + np.count_nonzero(best <= rates.min() + _TIE)) / (1 + best.size)
        within = np.flatnonzero(rates <= fdr)
        if pvalue > fdr or not within.size:
            return Judged(np.zeros(strength.size, dtype=bool), float("nan"), pvalue)
        last = within[-1]
        return Judged(strength >= own[last], float(rates[last]), pvalue)

    def _rates(self, maps: NDArray, stronger: NDArray, lowest: float) -> NDArray:
        """Estimated rate of the k strongest voxels of a map (K,) or maps (K, n), k = 1, ..., K.

        ``stronger`` counts voxels of all labellings that are at least as strong. Thresholds that are not
        above ``lowest`` are not judged: where maps are cut off, counts would be too small there.
        """
        ranks = np.arange(1, len(maps) + 1).reshape(-1, *[1] * (maps.ndim - 1))
        rates = stronger / ranks / (1 + self.null.shape[1])
        return np.where(maps > lowest, rates, np.inf)

    @cached_property
    def _pooled(self) -> NDArray:
        """All strengths of permuted labels, smallest first."""
        return np.sort(self.null, axis=None)

    @cached_property
    def _stronger_null(self) -> NDArray:
        """How many strengths of permuted labels reach each of them, (K, n)."""
        return self._stronger(self.null)

    def _stronger(self, strengths: NDArray) -> NDArray:
        """How many strengths of permuted labels reach each of some strengths."""
        return self._pooled.size - np.searchsorted(self._pooled, strengths, side="left")


def calibrate(
    method: Method | str,
    X: Any,
    y: Any,
    runs: Any,
    scheme: Scheme | None = None,
    *,
    n: int = N_PERMUTATIONS,
    n_jobs: int = 1,
) -> Calibration:
    """Fit the observed and n permuted label vectors to all rows, and keep the strengths of features.

    ``method`` is one of ``METHODS`` or its name. X is (M, N), y (M,) in -1/+1, runs (M,). Labels are
    exchanged within runs as the ``scheme`` says, in blocks or one by one where samples are independent of
    each other; without runs all samples are of one run, np.zeros(M). X is as all rows prepare it. Where
    at most n + 1 labellings exist, each is used once. Labels and their opposites count as one: they give the
    same strengths. The strength of a feature is its inclusion probability times r^2, the share of its
    variance within runs that the labels explain: high for a feature that the decoder uses and that carries
    information. Inclusion alone falls again when effects are so strong that few features suffice, while it
    is as high as ever for chance effects of permuted labels. Where very many features carry the same
    information, all inclusions are small, and most features of a selection are not needed by the decoder.

    If no feature carries information, the chance of selecting any is at most the rate, exactly, for
    labellings are then alike. Where some features carry information, the share of false ones among those
    selected is only estimated, and may be higher than the rate: 11 % at a nominal 5 % for weak effects in
    3,000 independent features of 72 samples, 21 % in 7,129 genes. ``planted_check`` measures it in the
    user's own X.

    Parameters
    ----------
    method
        One of ``METHODS``, or its name.
    X
        Samples (M, N).
    y
        Labels (M,) in -1/+1.
    runs
        The run (M,) of every sample.
    scheme
        Folds, rows, what folds do to X, and what is exchanged; None: leave one run out.
    n
        Permutations.
    n_jobs
        Processes.

    Returns
    -------
    Calibration
        Strengths (N,) for the real labels, the largest of permuted ones; ``select(fdr)`` selects.

    Examples
    --------
    >>> import numpy as np
    >>> from mvpa_gamp.decoding import calibrate
    >>> runs, y = np.repeat(np.arange(8), 10), np.tile(np.repeat([1, -1], 5), 8)
    >>> X = np.random.default_rng(0).standard_normal((80, 30))
    >>> X[:, 4] -= y
    >>> found = calibrate("gamp-bg-lr", X, y, runs).select(fdr=0.05)
    >>> np.flatnonzero(found.selected).tolist(), found.n, found.smallest
    ([4], 127, 0.0078125)
    """
    method = find_method(method)
    if refusal := fdr_refusal(method):
        raise ValueError(refusal)
    check_signs(np.asarray(y))
    scheme = scheme or Scheme()
    X, runs = scheme.prepared(np.asarray(X), np.asarray(runs))
    moved = find_exchange(y, runs, **scheme.exchanged)
    moved.check()
    labels, place = _labellings(moved, n, scheme.seed)
    strengths = voxel_strengths(method, X, labels, runs, scheme.connectivity, n_jobs)
    smallest = max(moved.smallest_pvalue, 1 / place.size)
    null = largest(strengths)[:, place[1:]]
    advice = _advice(moved, place.size - 1)
    observed = strengths[:, place[0]].copy()
    return Calibration(method.name, observed, null, smallest, scheme.seed, advice, scheme.exchange)


def voxel_strengths(
    method: Method, X: Any, labels: NDArray, runs: Any, connectivity: Any = None, n_jobs: int = 1
) -> NDArray:
    """Strengths (N, n) of features for labels (M, n): inclusion in a fit to all rows times r^2 in runs."""
    X, runs = np.asarray(X), np.asarray(runs)
    fits = solve_columns(method, X, labels, runs, n_jobs, connectivity)
    assert fits.inclusion is not None
    correlation = within_runs(X, runs).T @ within_runs(labels.astype(X.dtype), runs)
    return fits.inclusion * correlation**2


def largest(strengths: NDArray) -> NDArray:
    """The K largest strengths of every map (N, n), largest first: (K, n)."""
    n_kept = min(_MOST_VOXELS, len(strengths))
    if n_kept < len(strengths):
        strengths = np.partition(strengths, len(strengths) - n_kept, axis=0)[-n_kept:]
    return -np.sort(-strengths, axis=0)


def fdr_refusal(method: Method) -> str:
    """Why a method supports no false-discovery rate, or nothing.

    Parameters
    ----------
    method
        One of ``METHODS``.

    Returns
    -------
    str
        A sentence; empty where nothing stands against it.

    Examples
    --------
    >>> from mvpa_gamp.decoding import fdr_refusal
    >>> from mvpa_gamp.methods import METHODS
    >>> fdr_refusal(METHODS["vamp-sbg"])
    ''
    """
    if method.has_posterior:
        return ""
    return (
        f"Selection at a false-discovery rate needs inclusion probabilities, which {method.name!r} does not "
        "have. Choose a Bernoulli method such as 'vamp-sbg'."
    )


def _advice(moved: Exchange, n: int) -> str:
    """What helps where n labellings beside the observed one are too few."""
    if 1 / (n + 1) > moved.smallest_pvalue:  # more of them exist
        exist = round(1 / moved.smallest_pvalue)
        count = f"; {exist} arrangements exist" if exist < _COUNTABLE else ""
        return f"Give a larger n (here {n}{count}) or a larger rate."
    if moved.asked == "sample":
        return "Give more samples or a larger rate."
    if len(moved.of_run) > 1:
        return _MORE_RUNS
    return (
        "One run has few blocks to exchange: give exchange='sample' if samples are independent of each "
        "other, else more runs, or a larger rate."
    )


def check_rate(fdr: float) -> None:
    """Refuse what is no rate."""
    if not 0 < fdr < 1:
        raise ValueError(f"fdr must be a rate between 0 and 1, got {fdr}. 0.05 is usual.")


def _labellings(moved: Exchange, n: int, seed: int) -> tuple[NDArray, NDArray]:
    """Label vectors (M, U), each once, opposites as one, and the column of the observed and of each other."""
    observed = moved.labels[moved.of_row]
    if moved.n_distinct <= 2 * (n + 1):
        labels = np.unique(_one_sign(np.column_stack([observed, moved.every()])), axis=1)
        if labels.shape[1] <= n + 1:
            at = int((labels == _one_sign(observed[:, None])).all(axis=0).argmax())
            return labels, np.array([at, *(k for k in range(labels.shape[1]) if k != at)])
    drawn = _one_sign(np.column_stack([observed, moved.draw(n, seed)]))
    labels, place = np.unique(drawn, axis=1, return_inverse=True)
    return labels, place.reshape(-1)


def _one_sign(labels: NDArray) -> NDArray:
    """Labels (M, n), turned round where that makes the first one positive."""
    return labels * labels[:1]


def _ranks(own: NDArray) -> NDArray:
    """How many voxels of a map (K,), largest first, are at least as strong as each."""
    return own.size - np.searchsorted(own[::-1], own, side="left")
