"""L1-penalised logistic regression tuned by nested leave-one-run-out: the paper's TFOCS baseline."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from ..feature_scale import rescaled
from ..parallel import block_threads
from .fold_fits import BECKER_2011, ClassWeight, FoldFits, check_class_weight, check_fold_input, row_weights
from .l1_solver import Fits, Settings, null_fits, solve_block
from .nested import Choice, NestedPlan, choose, nested_plan


@dataclass(frozen=True)
class L1LogisticCV:
    """L1 logistic regression: sum_m log(1 + exp(-y_m (x_m' w + b))) + lambda |w|_1 is minimised.

    Lambda is chosen by nested cross-validation.
    The ``n_lambdas`` candidates of a training set are log-spaced from ``top`` to ``bottom`` times
    1/2 max_n sum_m |x_mn|, the largest penalty at which any labels could give non-zero weights. Labels
    play no part, so an inner fit serves all folds that leave out its runs. On z-scored fMRI ``top`` keeps a
    few voxels or none, and at ``bottom`` the training data are separated. The candidate with the least mean
    error over the inner folds wins, ties to the larger penalty. Inner fits are solved to a duality gap of
    ``tuning_tol``, the reported ones to ``tol``, both relative to the objective at w = 0. As in the paper's
    model there is no intercept; with ``fit_intercept`` there is one, and it is not penalised. Class weights
    multiply the losses of the rows, and the errors of the inner folds.

    >>> import numpy as np
    >>> from mvpa_gamp.methods import L1LogisticCV
    >>> runs, y = np.repeat(np.arange(6), 8), np.tile(np.repeat([1, -1], 4), 6)
    >>> X = np.random.default_rng(0).standard_normal((48, 20)) + y[:, None] * (np.arange(20) == 5)
    >>> fits = L1LogisticCV(n_lambdas=5).fit_folds(X, y, runs[:, None] != np.unique(runs), runs)
    >>> fits.parameters["lambda"].shape, bool(fits.support[5].all())
    ((6,), True)
    """

    n_lambdas: int = 10
    top: float = 0.5
    bottom: float = 0.0025
    tol: float = 1e-6
    tuning_tol: float = 1e-4
    max_iter: int = 10_000
    fit_intercept: bool = False
    class_weight: ClassWeight = None

    name: ClassVar[str] = "l1-lr-cv"
    label: ClassVar[str] = "L1-LR (CV)"
    reference: ClassVar[str] = BECKER_2011
    short_reference: ClassVar[str] = "Becker et al., 2011"
    has_posterior: ClassVar[bool] = False
    is_batched: ClassVar[bool] = False
    uses_connectivity: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_class_weight(self.class_weight)
        if not (0 < self.bottom <= self.top and self.n_lambdas >= 1 and self.tol > 0 and self.tuning_tol > 0):
            raise ValueError(
                "L1LogisticCV needs 0 < bottom <= top, at least one lambda and positive tolerances, "
                f"got {self}. Correct them."
            )

    @property
    def description(self) -> str:
        """A sentence for the methods text."""
        return (
            "L1-penalised logistic regression was solved by accelerated proximal gradient with backtracking "
            f"to a certified duality gap; its penalty was chosen from {self.n_lambdas} log-spaced values by "
            "nested leave-one-run-out cross-validation."
        )

    @property
    def intercept(self) -> str:
        """None, as in the paper's model, unless asked for."""
        return "free" if self.fit_intercept else "none"

    def fit_folds(
        self, X: Any, y: NDArray, train: NDArray, runs: NDArray, connectivity: Any = None
    ) -> FoldFits:
        """Fit one classifier per column of ``train``; see ``Method.fit_folds``."""
        start = perf_counter()
        data = check_fold_input(X, y, train, runs)
        data = data._replace(X=rescaled(data.X, data.factor))
        plan = nested_plan(data.Y, data.runs)
        weights = row_weights(plan.labels.T, self.class_weight).T
        labels = plan.labels * weights
        lambdas = self.lambdas(data.X, labels)
        path = solve_path(data.X, labels, lambdas, self._settings(self.tuning_tol))
        choice = choose(plan, np.stack([fits.decision for fits in path]), weights)
        lam = lambdas[choice.candidate, plan.outer]
        fits = self._refine(data.X, labels[plan.outer], plan, path, lam, choice)
        coef = rescaled(fits.coef.toarray().T, data.factor)
        return FoldFits(
            coef=coef,
            intercept=fits.intercept,
            support=coef != 0,
            status=tuple(self._status(*each) for each in zip(fits.gap, fits.n_iter, strict=True)),
            converged=fits.gap <= self.tol,
            n_iter=fits.n_iter,
            seconds=perf_counter() - start,
            parameters={"lambda": lam / data.factor, "inner_error": choice.error, "duality_gap": fits.gap},
            decision=fits.decision.T,
            proba=expit(fits.decision.T),
        )

    def lambdas(self, X: Any, labels: NDArray) -> NDArray:
        """The candidate penalties of each fit, (G, U), largest first; labels (U, M) tell rows and weights."""
        used = np.abs(labels).astype(X.dtype)
        reference = 0.5 * np.max(np.asarray(used @ abs(X)), axis=1).astype(np.float64)
        if not reference.all():
            raise ValueError("X is zero on all training rows of a fold: nothing to learn. Check the data.")
        return np.geomspace(self.top, self.bottom, self.n_lambdas)[:, None] * reference

    def _settings(self, tol: float) -> Settings:
        return Settings(tol, self.max_iter, self.fit_intercept)

    def _refine(
        self, X: Any, labels: NDArray, plan: NestedPlan, path: list[Fits], lam: NDArray, choice: Choice
    ) -> Fits:
        """Solve each column at its chosen penalty lam (B,) to the final tolerance."""
        tuned = join([path[g].take([fit]) for g, fit in zip(choice.candidate, plan.outer, strict=True)])
        fits = solve(X, labels, lam, tuned, self._settings(self.tol))
        before = np.cumsum([step.n_iter for step in path], axis=0)
        return fits._replace(n_iter=fits.n_iter + before[choice.candidate, plan.outer])

    def _status(self, gap: float, n_iter: int) -> str:
        reached = f"duality gap {gap:.1e} of the null objective after {n_iter} iterations"
        if gap <= self.tol:
            return f"converged: {reached}"
        return f"not converged: {reached}, {self.tol:.0e} was asked for; raise max_iter or tol"


_FITS_PER_BLOCK = 40  # fixed, so that results do not depend on the number of cores

Result = TypeVar("Result")


def solve_path(X: Any, labels: NDArray, lambdas: NDArray, settings: Settings) -> list[Fits]:
    """Solve every fit for a descending sequence of its own penalties, each from the one before.

    labels (U, M) are -1/+1 on training rows and 0 elsewhere; lambdas is (G, U). Returns G records.
    """

    def path(block: slice) -> list[Fits]:
        fits = [null_fits(labels[block], X.shape[1], settings.fit_intercept)]
        for lam in lambdas[:, block]:
            fits.append(solve_block(X, labels[block], lam, fits[-1], settings))
        return fits[1:]

    return [join(parts) for parts in zip(*_over_blocks(path, len(labels)), strict=True)]


def solve(X: Any, labels: NDArray, lam: NDArray, start: Fits, settings: Settings) -> Fits:
    """Solve every fit for its penalty lam (U,) from ``start``."""

    def one(block: slice) -> Fits:
        return solve_block(X, labels[block], lam[block], start.take(block), settings)

    return join(_over_blocks(one, len(labels)))


def join(parts: Sequence[Fits]) -> Fits:
    """Put fits of the same X one after the other."""
    coef = sparse.vstack([part.coef for part in parts], format="csr")
    return Fits(coef, *(np.concatenate(arrays) for arrays in zip(*(part[1:] for part in parts), strict=True)))


def _over_blocks(work: Callable[[slice], Result], n_fits: int) -> list[Result]:
    """Call ``work`` on slices of the fits, side by side."""
    blocks = [slice(start, start + _FITS_PER_BLOCK) for start in range(0, n_fits, _FITS_PER_BLOCK)]
    with block_threads(len(blocks), per_thread=1) as over_blocks:
        return list(over_blocks(work, blocks))
