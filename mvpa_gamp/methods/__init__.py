"""What the tables compare: every classifier behind one contract, ``fit_folds``."""

from typing import Any

from .fold_fits import FoldFits, Method
from .fold_input import FoldInput, check_fold_input
from .gamp import GAMP_METHODS, GampMethod
from .l1_logistic import L1LogisticCV
from .lda import ShrinkageLDA
from .liblinear import CDN, TRON
from .onebit_cs import OneBitCS
from .svm import LinearSVM
from .vamp import VAMP_METHODS, VampMethod

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
    """The method of a name, or a method as it is given.

    >>> from mvpa_gamp.methods import find_method
    >>> find_method("gamp-bg-lr").label
    'GAMP BG-LR'
    """
    if isinstance(given, str) and given in METHODS:
        return METHODS[given]
    if isinstance(given, str):
        raise ValueError(f"Unknown method {given!r}. Known methods: {', '.join(METHODS)}.")
    if not hasattr(given, "fit_folds"):
        raise ValueError(
            "method must be a name in mvpa_gamp.methods.METHODS or one of its objects, got "
            f"{type(given).__name__}. For GAMPClassifier() write 'gamp-bg-lr', with a connectivity "
            "'gamp-sbg-lr'."
        )
    method: Method = given
    return method


__all__ = [
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
