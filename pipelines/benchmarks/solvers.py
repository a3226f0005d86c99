"""L1 logistic regression without intercept by three peers, along a path of penalties.

Each solver takes X (M, N) float32, y (M,) -1/+1 and descending penalties (G,) of the problem
sum_m log(1 + exp(-y_m x_m' w)) + lambda |w|_1, and returns w for every penalty, (G, N). Each gets X in the
layout it likes and, where it can, starts each penalty from the one before: the kindest honest use.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

PathSolver = Callable[[NDArray, NDArray, NDArray], NDArray]

# Relative duality gap of our inner fits. celer stops on the same gap. The default of skglm, a bound of the
# gradient of the mean loss, reaches gaps of 3e-5 to 6e-4 on the phantom: no stricter than ours.
GAP = 1e-4


def skglm_path(X: NDArray, y: NDArray, lambdas: NDArray) -> NDArray:
    """Fit with skglm's prox-Newton working sets; float64 in Fortran order is its fastest form."""
    from skglm import SparseLogisticRegression

    X = np.asfortranarray(X, dtype=np.float64)
    model = SparseLogisticRegression(tol=GAP, fit_intercept=False, warm_start=True)
    coefs = []
    for lam in lambdas:
        model.alpha = lam / len(y)  # its loss is a mean
        coefs.append(_quietly(model.fit, X, y).coef_[0].copy())
    return np.array(coefs)


def celer_path(X: NDArray, y: NDArray, lambdas: NDArray) -> NDArray:
    """Fit with celer's prox-Newton path; it demands float64 throughout."""
    from celer import celer_path as path

    X = np.asfortranarray(X, dtype=np.float64)
    found = _quietly(path, X, y, "logreg", alphas=lambdas, tol=GAP, use_PN=True, max_iter=50, p0=10)
    return np.asarray(found[1]).T


def liblinear_path(X: NDArray, y: NDArray, lambdas: NDArray) -> NDArray:
    """Fit with scikit-learn's liblinear at its default tolerance; it has no warm start."""
    fits = [_quietly(liblinear(1.0 / lam, fit_intercept=False).fit, X, y) for lam in lambdas]
    return np.array([fit.coef_[0] for fit in fits])


def liblinear(C: float, fit_intercept: bool = True) -> Any:
    """scikit-learn's L1 logistic regression by liblinear, which turns X into float64 itself."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=C, solver="liblinear", fit_intercept=fit_intercept, random_state=0)
    # scikit-learn 1.8 replaced ``penalty`` by ``l1_ratio``.
    old = model.get_params().get("penalty") in ("l1", "l2")
    return model.set_params(**({"penalty": "l1"} if old else {"l1_ratio": 1.0}))


def find_C(X: NDArray, y: NDArray, target: int = 60, slack: int = 3, most: int = 14) -> tuple[float, int]:
    """Search by bisection on a log scale the C whose fit has about ``target`` non-zeros.

    Returns C and the number of non-zeros it gives, the closest of at most ``most`` fits.
    """
    low, high = 1e-5, 1e3
    best = (low, 0)
    for _ in range(most):
        C = float(np.sqrt(low * high))
        found = int(np.count_nonzero(_quietly(liblinear(C).fit, X, y).coef_))
        if abs(found - target) <= abs(best[1] - target):
            best = (C, found)
        if abs(found - target) <= slack:
            break
        low, high = (C, high) if found < target else (low, C)
    return best


def _quietly(fit: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call a peer without its convergence warnings: held-out errors tell how good its fits are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(*arguments, **named)
