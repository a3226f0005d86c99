"""The input of every method: shapes, types and labels are settled here once."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..coupling import check_sortable
from ..feature_scale import scale_factor
from ..gamp.design import checked_matrix


class FoldInput(NamedTuple):
    """Checked input of ``fit_folds``: M rows, N features, B columns."""

    X: Any  # (M, N) ndarray, or scipy.sparse.csr_array; float32 or float64
    Y: NDArray  # (M, B) float64: -1 or +1 on training rows, 0 elsewhere
    train: NDArray  # (M, B) bool
    runs: NDArray  # (M,)
    factor: float = 1.0  # what gives X a usual scale, for methods that do not feel one


def check_fold_input(X: Any, y: Any, train: Any, runs: Any) -> FoldInput:
    """Check what ``fit_folds`` was given, or raise a ValueError that says what to change.

    X is (M, N), dense or scipy.sparse, finite, and of a scale that float32 can hold; y is (M,) or (M, B)
    with -1/+1 on training rows; train is a boolean (M, B) matrix whose columns each hold both classes; runs
    is (M,). Labels on rows outside training are replaced by 0 before anything looks at them, so they may be
    NaN.

    >>> import numpy as np
    >>> from mvpa_gamp.methods import check_fold_input
    >>> y, train = [1, -1, 1, np.nan], np.array([[True], [True], [True], [False]])
    >>> check_fold_input(np.ones((4, 2)), y, train, runs=[1, 1, 2, 2]).Y[:, 0]
    array([ 1., -1.,  1.,  0.])
    """
    matrix = checked_matrix(X)
    matrix = sparse.csr_array(matrix) if sparse.issparse(matrix) else matrix
    n_rows = matrix.shape[0]
    train = _check_train(train, n_rows)
    Y = _check_labels(y, train)
    return FoldInput(matrix, Y, train, _check_runs(runs, n_rows), scale_factor(matrix))


def check_number_input(X: Any, y: Any, train: Any, runs: Any) -> FoldInput:
    """As ``check_fold_input`` for targets that are any numbers, finite on training rows and not all equal.

    >>> from mvpa_gamp.methods.fold_input import check_number_input
    >>> check_number_input([[1.0], [2.0], [3.0]], [0.5, 2.5, 9.0], [[True], [True], [False]], [1, 1, 2]).Y.T
    array([[0.5, 2.5, 0. ]])
    """
    matrix = checked_matrix(X)
    matrix = sparse.csr_array(matrix) if sparse.issparse(matrix) else matrix
    n_rows = matrix.shape[0]
    train = _check_train(train, n_rows)
    values = np.asarray(y)
    if values.shape not in ((n_rows,), train.shape) or values.dtype.kind not in "fiub":
        raise ValueError(
            f"y must hold a number for each of {n_rows} rows (and each fold), got shape {values.shape} of "
            f"type {values.dtype}. Give one number per row."
        )
    Y = np.where(train, values.reshape(n_rows, -1), 0).astype(np.float64)
    if not np.isfinite(Y).all():
        raise ValueError("y must be finite on training rows, got NaN or infinity. Leave those rows out.")
    if not train.any(axis=0).all():
        raise ValueError("Every fold needs training rows, but one has none. Leave that fold out.")
    return FoldInput(matrix, Y, train, _check_runs(runs, n_rows), scale_factor(matrix))


def check_rows(X: Any, runs: Any, dense: bool = False) -> tuple[Any, NDArray]:
    """X (M, N) and the run (M,) of every row, or a ValueError that says what to change.

    >>> from mvpa_gamp.methods.fold_input import check_rows
    >>> X, runs = check_rows([[1.0, 2.0], [3.0, 4.0]], [1, 2])
    >>> X.shape, runs.tolist()
    ((2, 2), [1, 2])
    """
    matrix = checked_matrix(X)
    if dense and sparse.issparse(matrix):
        raise ValueError("X must be a dense matrix here, got a sparse one. Use X.toarray() if memory allows.")
    return matrix, _check_runs(runs, matrix.shape[0])


def _check_train(train: Any, n_rows: int) -> NDArray:
    array = np.asarray(train)
    if array.ndim != 2 or array.shape[0] != n_rows or array.shape[1] == 0:
        raise ValueError(
            f"train must have one row per row of X ({n_rows}) and one column per fold, "
            f"got shape {array.shape}. Use leave_one_run_out(runs).train, or train[:, None] for one fold."
        )
    if array.dtype != bool:
        raise ValueError(
            f"train must be boolean, True where a row is used for training, got type {array.dtype}. "
            "Turn row numbers into a mask first."
        )
    return array


def _check_labels(y: Any, train: NDArray) -> NDArray:
    labels = np.asarray(y)
    n_rows, n_columns = train.shape
    if labels.shape not in ((n_rows,), (n_rows, n_columns)):
        raise ValueError(
            f"y must have shape ({n_rows},) or ({n_rows}, {n_columns}), like train, got {labels.shape}. "
            "Give one label per row, or one per row and fold."
        )
    if labels.dtype.kind not in "fiu":
        raise ValueError(f"y must hold the numbers -1 and +1, got type {labels.dtype}. {_MAKE_LABELS}")
    Y = np.where(train, labels.reshape(n_rows, -1), 0).astype(np.float64)
    wrong = train & (np.abs(Y) != 1)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"y must be -1 or +1 on training rows, got {Y[row, column]:g} in row {row} (fold {column}). "
            + _MAKE_LABELS
        )
    for sign, name in ((1, "+1"), (-1, "-1")):
        missing = ~(Y * sign > 0).any(axis=0)
        if missing.any():
            raise ValueError(
                f"Every fold needs training rows of both classes, but fold {np.flatnonzero(missing)[0]} "
                f"has no row labelled {name}. Leave that fold out, or join runs."
            )
    return Y


_MAKE_LABELS = "Make it with np.where(conditions == 'face', 1, -1), for example."


def _check_runs(runs: Any, n_rows: int) -> NDArray:
    array = np.asarray(runs)
    if array.shape != (n_rows,):
        raise ValueError(
            f"runs must name the run of each of the {n_rows} rows of X, got shape {array.shape}. "
            "Give one run per row."
        )
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError("runs must name a run for every row, got NaN. Number the runs.")
    check_sortable("runs", array)
    return array
