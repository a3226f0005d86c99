"""Methods that predict a number, behind the contract of all methods: ``decision`` is the prediction."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..gamp import RowSpace, VampSettings, solve_vamp, training_sets
from ..gamp.neighbours import Neighbours
from ..gamp.row_space import SetColumns, TrainingSet
from ..gamp.vamp_classes import rank_matched, runs_or_rows
from .fold_fits import HOERL_1970, RANGAN_2019, FoldFits, Method, check_number_input
from .gram import weights_of_rows
from .scikit import ScikitRegressor

_SHARES = np.logspace(-3, 3, 13)  # penalties tried, in units of the mean diagonal of the centred Gram matrix


@dataclass(frozen=True)
class RidgeRegression:
    """Ridge regression whose penalty is chosen by leaving out each training run, in closed form.

    Features are divided by their standard deviation over all rows. Runs may deviate from the common weights
    by weights of their own (``rho`` times as large as white noise; 0: plain ridge). Columns with the same
    training rows share one eigendecomposition; every column has a penalty of its own, that of the smallest
    squared error of the runs left out. With one training run, rows are left out.

    >>> import numpy as np
    >>> from mvpa_gamp.methods.regression import RidgeRegression
    >>> rng, runs = np.random.default_rng(0), np.repeat(np.arange(6), 10)
    >>> X = rng.standard_normal((60, 30))
    >>> fits = RidgeRegression().fit_folds(X, X[:, 4] * 2 + 7, runs[:, None] != np.arange(6), runs)
    >>> int(np.abs(fits.coef[:, 0]).argmax()), fits.decision.shape
    (4, (60, 6))
    """

    rho: float = 0.0

    name: ClassVar[str] = "ridge"
    label: ClassVar[str] = "Ridge"
    description: ClassVar[str] = (
        "Ridge regression, whose penalty was chosen by leaving out runs of the training data; every voxel "
        "has a weight and none is selected."
    )
    reference: ClassVar[str] = HOERL_1970
    short_reference: ClassVar[str] = "Hoerl and Kennard, 1970"
    intercept: ClassVar[str] = "free"
    has_posterior: ClassVar[bool] = False
    is_batched: ClassVar[bool] = True
    uses_connectivity: ClassVar[bool] = False

    def fit_folds(
        self, X: Any, y: NDArray, train: NDArray, runs: NDArray, connectivity: Any = None
    ) -> FoldFits:
        """Fit one regression per column of ``train``; y is (M,) or (M, B), any numbers."""
        began = time.perf_counter()
        data = check_number_input(X, y, train, runs)
        space, groups = RowSpace(data.X), runs_or_rows(data.runs, data.train)
        dual, chosen = np.zeros(data.Y.shape), np.empty(data.Y.shape[1])
        for part in training_sets(space, data.train, groups, self.rho, 1.0, shrinkage=0.0):
            at = np.ix_(part.of.rows, part.columns)
            dual[at], chosen[part.columns] = _ridge(part.of, data.Y[at])
        scale = space.inverse_scale.astype(float)[:, None]
        coef = weights_of_rows(data.X, dual) * np.square(scale)
        score = np.asarray(data.X @ coef, dtype=float)
        rest = np.where(data.train, data.Y - score, 0.0)
        intercept = rest.sum(axis=0) / data.train.sum(axis=0)
        return FoldFits(
            coef=coef,
            intercept=intercept,
            support=coef != 0,
            status=tuple(f"closed form, penalty {value:.3g}" for value in chosen),
            converged=np.ones(len(chosen), dtype=bool),
            n_iter=np.ones(len(chosen), dtype=int),
            seconds=time.perf_counter() - began,
            parameters={"penalty": chosen},
            decision=score + intercept,
            proba=np.full(score.shape, np.nan),
        )


@dataclass(frozen=True)
class VampRegression:
    """Bernoulli-Gaussian weights and a Gaussian likelihood of the number, by VAMP in row space.

    As ``VampMethod``, of which it differs only in its targets: every run may deviate from the common weights,
    and as many voxels as the sum of inclusion probabilities count as selected, those of the largest.

    >>> import numpy as np
    >>> from mvpa_gamp.methods.regression import REGRESSIONS
    >>> rng, runs = np.random.default_rng(0), np.repeat(np.arange(6), 10)
    >>> X = rng.standard_normal((60, 30))
    >>> fits = REGRESSIONS["vamp-bg-reg"].fit_folds(X, X[:, 4] * 2 + 7, runs[:, None] != np.arange(6), runs)
    >>> int(fits.inclusion[:, 0].argmax())
    4
    """

    name: str
    label: str
    description: str
    settings: VampSettings = field(default_factory=VampSettings)
    uses_connectivity: bool = False

    reference: ClassVar[str] = RANGAN_2019
    short_reference: ClassVar[str] = "Rangan et al., 2019"
    intercept: ClassVar[str] = "free"
    has_posterior: ClassVar[bool] = True
    is_batched: ClassVar[bool] = True

    def fit_folds(
        self, X: Any, y: NDArray, train: NDArray, runs: NDArray, connectivity: Any = None
    ) -> FoldFits:
        """Fit one regression per column of ``train``; y is (M,) or (M, B), any numbers."""
        began = time.perf_counter()
        data = check_number_input(X, y, train, runs)
        space = RowSpace(data.X)
        neighbours = None
        if self.uses_connectivity:
            if connectivity is None:
                raise ValueError(f"{self.name} needs a connectivity, got None. Use vamp-bg-reg without one.")
            neighbours = Neighbours(connectivity, space.shape[1], space.dtype)
        groups = runs_or_rows(data.runs, data.train)
        sets: Sequence[SetColumns] = training_sets(
            space, data.train, groups, self.settings.rho, self.settings.white
        )
        found = solve_vamp(space, sets, data.Y, self.settings, None, neighbours)
        return FoldFits(
            coef=found.coef[:, :, 0],
            intercept=found.intercept[:, 0],
            support=rank_matched(found.inclusion),
            status=tuple(str(sentence) for sentence in found.status),
            converged=found.converged,
            n_iter=found.n_iter,
            seconds=time.perf_counter() - began,
            parameters={"prior.rate": found.rate, "noise": found.noise, "gap": found.gap},
            decision=found.z[:, :, 0],
            proba=np.full(found.z.shape[:2], np.nan),
            coef_std=np.sqrt(found.coef_var[:, :, 0]),
            inclusion=found.inclusion,
        )


def _ridge(rows: TrainingSet, Y: NDArray) -> tuple[NDArray, NDArray]:
    """Dual weights (n, k) of k targets (n, k), and the penalty of each, in units of the mean diagonal."""
    targets, candidates = Y.T, _SHARES * max(rows.d, np.finfo(float).tiny)
    errors = np.empty((len(candidates), len(targets)))
    duals = []
    for place, penalty in enumerate(candidates):
        precision = rows.s + penalty
        dual = rows.dual(targets, np.broadcast_to(precision, targets.shape))
        left_out = rows.leave_group_out(rows.centred(targets).T, dual.T, precision)
        errors[place] = np.square(rows.centred(targets).T - left_out).sum(axis=0)
        duals.append(rows.zero_sum(dual))
    best = errors.argmin(axis=0)
    return np.stack(duals)[best, np.arange(len(targets))].T, _SHARES[best]


_HOW = (
    "Vector approximate message passing with a {prior} prior and a Gaussian likelihood of the number, in "
    "which every run has weights that deviate from the common ones; the inclusion rate, the variance of "
    "the weights and the noise were fixed, without tuning or cross-validation."
)

_ALL: tuple[Any, ...] = (
    VampRegression("vamp-bg-reg", "VAMP BG", _HOW.format(prior="Bernoulli-Gaussian")),
    VampRegression(
        "vamp-sbg-reg", "VAMP sBG", _HOW.format(prior="spatial Bernoulli-Gaussian"), uses_connectivity=True
    ),
    RidgeRegression(),
)

REGRESSIONS: dict[str, Method] = {method.name: method for method in _ALL}


def find_regression(given: Any) -> Method:
    """The method of a name in ``REGRESSIONS``, a method as it is given, or a regressor of scikit-learn.

    >>> from mvpa_gamp.methods.regression import find_regression
    >>> find_regression("ridge").label
    'Ridge'
    """
    if isinstance(given, str) and given in REGRESSIONS:
        return REGRESSIONS[given]
    if hasattr(given, "fit_folds"):
        method: Method = given
        return method
    if hasattr(given, "get_params") and not isinstance(given, type):
        from sklearn.base import is_regressor

        if is_regressor(given):
            return ScikitRegressor(given)
    shown = (
        f"the class {given.__name__}: write {given.__name__}()" if isinstance(given, type) else repr(given)
    )
    raise ValueError(
        f"method: expected one of {', '.join(REGRESSIONS)}, or a regressor of scikit-learn, got {shown}. "
        "Change method."
    )
