"""Odd arrays: what may happen to features, labels, folds and weights before they reach a fit."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Change = Callable[[Any, np.random.Generator], Any]

_SCALES = (
    1e-310, 1e-200, 1e-155, 1e-40, 1e-25, 1e-14, 1e-9, 1e-5, 1e4, 1e8, 1e13, 1e16, 1e25, 1e40,
    1e155, 1e200, 1e300,
)  # fmt: skip
_SIZES = (1e-12, 1e-6, 1e-3, 1e2, 1e4, 1e6, 1e8, 1e12)
_ODD = (np.nan, np.inf, -np.inf, 1e308)


def _at(value_of: Callable[[np.random.Generator], float], part: str) -> Change:
    """Write a value into one element, row or column, or everywhere."""

    def change(X: NDArray, rng: np.random.Generator) -> NDArray:
        X = X.copy()
        i, j = (int(rng.integers(side)) for side in X.shape)
        X[{"element": (i, j), "row": i, "column": (slice(None), j), "all": ...}[part]] = value_of(rng)
        return X

    return change


def _odd(rng: np.random.Generator) -> float:
    return float(rng.choice(_ODD))


def _times(part: str, sizes: tuple[float, ...]) -> Change:
    """Multiply all of X, a row or a column by a number."""

    def change(X: NDArray, rng: np.random.Generator) -> NDArray:
        X = X.copy()
        i, j = (int(rng.integers(side)) for side in X.shape)
        with np.errstate(all="ignore"):
            X[{"row": i, "column": (slice(None), j), "all": ...}[part]] *= rng.choice(sizes)
        return X

    return change


def _copied(X: NDArray, rng: np.random.Generator) -> NDArray:
    """Some columns become the same one, perhaps a large one."""
    X = X.copy()
    n = int(rng.integers(1, X.shape[1] + 1))
    X[:, :n] = X[:, [0]] * rng.choice([1.0, 1.0, 1e3, 1e9])
    return X


def _moved(X: NDArray, rng: np.random.Generator) -> NDArray:
    return X + rng.choice([1e2, 1e4, 1e6, 1e9, 1e12])


def _read_only(X: NDArray, rng: np.random.Generator) -> NDArray:
    X = X.copy()
    X.flags.writeable = False
    return X


def _frame(X: NDArray, rng: np.random.Generator) -> Any:
    import pandas

    return pandas.DataFrame(X, columns=[f"gene {k}" for k in range(X.shape[1])])


def _explicit_zeros(X: NDArray, rng: np.random.Generator) -> Any:
    X = sparse.csr_array(X)
    X.data[::3] = 0.0
    return X


VALUES: dict[str, Change] = {
    "scale": _times("all", _SCALES),
    "scale of a feature": _times("column", _SIZES),
    "scale of a row": _times("row", _SIZES),
    "element not finite": _at(_odd, "element"),
    "row not finite": _at(_odd, "row"),
    "feature not finite": _at(_odd, "column"),
    "constant feature": _at(lambda rng: float(rng.choice([0.0, 3.0, -1e5])), "column"),
    "constant X": _at(lambda rng: float(rng.choice([0.0, 1.0, 1e4])), "all"),
    "copied features": _copied,
    "large mean": _moved,
    "float32": lambda X, rng: X.astype(np.float32),
    "equal rows": lambda X, rng: np.repeat(X[:1], len(X), axis=0),
}
SHAPES: dict[str, Change] = {
    "one row": lambda X, rng: X[:1],
    "two rows": lambda X, rng: X[:2],
    "no row": lambda X, rng: X[:0],
    "one feature": lambda X, rng: X[:, :1],
    "no feature": lambda X, rng: X[:, :0],
    "a vector": lambda X, rng: X[:, 0],
    "three axes": lambda X, rng: X[..., None],
    "a number": lambda X, rng: 1.0,
    "transposed": lambda X, rng: X.T,
    "ragged": lambda X, rng: [list(row[: 1 + k % 3]) for k, row in enumerate(X)],
    "nothing": lambda X, rng: None,
    "a word": lambda X, rng: "features.csv",
}
TYPES: dict[str, Change] = {
    "complex": lambda X, rng: X + 1j,
    "words": lambda X, rng: X.astype(str),
    "objects": lambda X, rng: np.where(X > 2, None, X),
    "bool": lambda X, rng: X > 0,
    "int8": lambda X, rng: (10 * X).astype(np.int8),
    "half": lambda X, rng: X.astype(np.float16),
    "extended": lambda X, rng: X.astype(np.longdouble),
    "dates": lambda X, rng: X.astype("datetime64[s]"),
    "sparse with zeros": _explicit_zeros,
    "coo": lambda X, rng: sparse.coo_array(X),
    "sparse matrix": lambda X, rng: sparse.csc_matrix(X),
}
# The same numbers in another form: the same fit.
FORMS: dict[str, Change] = {
    "lists": lambda X, rng: X.tolist(),
    "Fortran order": lambda X, rng: np.asfortranarray(X),
    "a view": lambda X, rng: np.repeat(X, 2, axis=1)[:, ::2],
    "read only": _read_only,
    "data frame": _frame,
    "numbers as objects": lambda X, rng: X.astype(object),
}
LABELS: dict[str, Change] = {
    "one class": lambda y, rng: np.full(len(y), y[0]),
    "one of a class": lambda y, rng: np.where(np.arange(len(y)) == 0, y.min(), y.max()),
    "a missing label": lambda y, rng: np.where(np.arange(len(y)) == 3, np.nan, y),
    "infinite": lambda y, rng: np.where(np.arange(len(y)) == 3, np.inf, y),
    "zeros and ones": lambda y, rng: (y > 0).astype(int),
    "a third value": lambda y, rng: np.where(np.arange(len(y)) == 3, 0.5, y),
    "words": lambda y, rng: np.where(y > 0, "face", "house"),
    "long words": lambda y, rng: np.where(y > 0, "f" * 2000, "../h"),
    "objects": lambda y, rng: np.array(["face" if each > 0 else None for each in y], dtype=object),
    "mixed objects": lambda y, rng: np.array(["face" if each > 0 else 3 for each in y], dtype=object),
    "continuous": lambda y, rng: rng.standard_normal(len(y)),
    "all different": lambda y, rng: np.arange(len(y)),
    "three classes": lambda y, rng: np.arange(len(y)) % 3,
    "too short": lambda y, rng: y[:-1],
    "too long": lambda y, rng: np.r_[y, y],
    "empty": lambda y, rng: y[:0],
    "a matrix": lambda y, rng: np.column_stack([y, -y]),
    "a column": lambda y, rng: y[:, None],
    "bool": lambda y, rng: y > 0,
    "nothing": lambda y, rng: None,
    "a word": lambda y, rng: "labels",
    "a list": lambda y, rng: y.tolist(),
    "complex": lambda y, rng: y + 1j,
}
TRAIN: dict[str, Change] = {
    "no row": lambda t, rng: np.zeros_like(t),
    "one row": lambda t, rng: np.arange(len(t))[:, None] == np.arange(t.shape[1]),
    "all rows": lambda t, rng: np.ones_like(t),
    "no column": lambda t, rng: t[:, :0],
    "numbers": lambda t, rng: t.astype(float),
    "indices": lambda t, rng: np.flatnonzero(t[:, 0]),
    "too short": lambda t, rng: t[:-1],
    "a vector": lambda t, rng: t[:, 0],
    "transposed": lambda t, rng: t.T,
    "three axes": lambda t, rng: t[..., None],
    "nothing": lambda t, rng: None,
    "lists": lambda t, rng: t.tolist(),
    "random": lambda t, rng: rng.random(t.shape) < 0.5,
}
RUNS: dict[str, Change] = {
    "one run": lambda r, rng: np.zeros(len(r), dtype=int),
    "a run each": lambda r, rng: np.arange(len(r)),
    "words": lambda r, rng: np.array([f"run-{each}" for each in r]),
    "missing": lambda r, rng: np.where(np.arange(len(r)) == 2, np.nan, r),
    "objects": lambda r, rng: np.array([None if each == 0 else each for each in r], dtype=object),
    "too short": lambda r, rng: r[:-1],
    "a matrix": lambda r, rng: np.column_stack([r, r]),
    "huge": lambda r, rng: np.array([2**70 + int(each) for each in r], dtype=object),
    "nothing": lambda r, rng: None,
    "random": lambda r, rng: rng.integers(3, size=len(r)),
}
WEIGHTS: dict[str, Change] = {
    "zeros": lambda w, rng: np.zeros(len(w)),
    "some zeros": lambda w, rng: (rng.random(len(w)) < 0.7).astype(float),
    "negative": lambda w, rng: -w,
    "not finite": lambda w, rng: np.where(np.arange(len(w)) == 1, _odd(rng), w),
    "scaled": lambda w, rng: w * rng.choice([1e-300, 1e-12, 1e-3, 1e3, 1e12, 1e300]),
    "one large": lambda w, rng: np.where(np.arange(len(w)) == 1, rng.choice([1e3, 1e6, 1e9]), w),
    "too short": lambda w, rng: w[:-1],
    "a number": lambda w, rng: 2.0,
    "words": lambda w, rng: ["heavy"] * len(w),
    "whole numbers": lambda w, rng: rng.integers(0, 4, len(w)),
}
GRAPHS: dict[str, Change] = {
    "too small": lambda g, rng: g[:-1, :-1],
    "dense": lambda g, rng: g.toarray(),
    "no edge": lambda g, rng: sparse.csr_array(g.shape),
    "complete": lambda g, rng: sparse.csr_array(np.ones(g.shape)),
    "not finite": lambda g, rng: g * np.nan,
    "negative": lambda g, rng: -g,
    "directed": lambda g, rng: sparse.triu(g),
    "a word": lambda g, rng: "grid",
    "coo": lambda g, rng: g.tocoo(),
}
