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

_ALL: tuple[Any, ...] = (
    *GAMP_METHODS,
    L1LogisticCV(),
    OneBitCS(),
    CDN(),
    TRON(),
    LinearSVM(),
    ShrinkageLDA(),
)

METHODS: dict[str, Method] = {method.name: method for method in _ALL}

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
    "check_fold_input",
]
