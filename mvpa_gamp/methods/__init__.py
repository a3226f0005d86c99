"""What the tables compare: every classifier behind one contract, ``fit_folds``."""

from typing import Any

from .fold_fits import FoldFits, FoldInput, Method, check_fold_input
from .gamp import GAMP_METHODS, GampMethod
from .gram import LinearSVM, ShrinkageLDA
from .l1_logistic import L1LogisticCV
from .liblinear import CDN, TRON
from .onebit_cs import OneBitCS
from .scikit import ScikitClassifier
from .vamp import BUDGET, VAMP_METHODS, VampMethod

_ALL: tuple[Any, ...] = (
    *GAMP_METHODS,
    *VAMP_METHODS,
    L1LogisticCV(),
    OneBitCS(),
    CDN(),
    TRON(),
    LinearSVM(),
    ShrinkageLDA(),
)

METHODS: dict[str, Method] = {method.name: method for method in _ALL}


def find_method(given: Any) -> Method:
    """The method of a name, a method as it is given, or a classifier of scikit-learn as a method.

    Parameters
    ----------
    given
        A name, a method, or a classifier.

    Returns
    -------
    Method
        What has ``fit_folds``.

    Examples
    --------
    >>> from mvpa_gamp.methods import find_method
    >>> find_method("gamp-bg-lr").label
    'GAMP BG-LR'
    """
    if isinstance(given, str) and given in METHODS:
        return METHODS[given]
    if isinstance(given, str):
        raise ValueError(f"Unknown method {given!r}. Known methods: {', '.join(METHODS)}.")
    if hasattr(given, "fit_folds"):
        method: Method = given
        return method
    if isinstance(given, type) or type(given).__name__ == "GAMPClassifier" or not _is_classifier(given):
        raise ValueError(
            "method must be a name in mvpa_gamp.methods.METHODS, one of its objects or a classifier of "
            f"scikit-learn, got {_kind(given)}. For GAMPClassifier() write "
            "'gamp-bg-lr', with a connectivity 'gamp-sbg-lr'."
        )
    return ScikitClassifier(given)


def _kind(given: Any) -> str:
    """What came in place of a method; of a class, how to make one."""
    if isinstance(given, type):
        return f"the class {given.__name__}: write {given.__name__}()"
    return type(given).__name__


def _is_classifier(given: Any) -> bool:
    """Whether scikit-learn takes it for a classifier."""
    if not (hasattr(given, "fit") and hasattr(given, "get_params")):
        return False
    from sklearn.base import is_classifier

    return bool(is_classifier(given))


__all__ = [
    "BUDGET",
    "CDN",
    "METHODS",
    "TRON",
    "FoldFits",
    "FoldInput",
    "GampMethod",
    "L1LogisticCV",
    "LinearSVM",
    "Method",
    "OneBitCS",
    "ShrinkageLDA",
    "VampMethod",
    "check_fold_input",
    "find_method",
]
