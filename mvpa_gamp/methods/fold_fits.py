"""The one contract of all methods: rows and folds in, checked once, and fitted columns out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..coupling import check_sortable
from ..feature_scale import scale_factor
from ..gamp.design import checked_matrix
from ..gamp.result import AT_CHANCE, FOUND_NOTHING
from ..gamp.stopping import training_areas

_BY_ROW = ("decision", "proba", "tested")  # (M, ...): what is known of every row


@dataclass(frozen=True)
class FoldFits:
    """What a method learnt in each of B columns of one X with M rows and N features.

    A column is a fold; after cross-validation the last one is the refit on all rows, and ``held_out`` and
    ``tested`` say what each of the F folds before it holds out. ``support`` is the paper's notion of a
    selected feature: a non-zero weight, or, for sum-product GAMP, a posterior inclusion probability above
    one half. ``status`` is a sentence per column. ``proba`` is P(y = +1) for all M rows, NaN for methods
    without a probability model; ``coef_std`` and ``inclusion`` are None for methods without a posterior.
    """

    coef: NDArray  # (N, B)
    intercept: NDArray  # (B,)
    support: NDArray  # (N, B) bool
    status: tuple[str, ...]  # B sentences
    converged: NDArray  # (B,) bool
    n_iter: NDArray  # (B,)
    seconds: float
    parameters: dict[str, NDArray]  # learnt or chosen, each (B,)
    decision: NDArray  # (M, B) X @ coef + intercept, held-out rows included
    proba: NDArray  # (M, B)
    coef_std: NDArray | None = None  # (N, B)
    inclusion: NDArray | None = None  # (N, B)
    pattern: NDArray | None = None  # (N, B) Haufe's pattern of each column's training rows
    held_out: NDArray | None = None  # (F,) the run that a fold holds out, or the fold's number
    tested: NDArray | None = None  # (M, F) bool: rows that a fold holds out
    models: NDArray | None = None  # (B,) objects that answer about new rows where coef and intercept do not

    @property
    def n_folds(self) -> int:
        """F, without the refit."""
        return self.coef.shape[1] if self.held_out is None else len(self.held_out)

    @property
    def folds(self) -> "FoldFits":
        """The columns of the folds, without the refit; arrays are views."""
        return self.take(slice(0, self.n_folds))

    @property
    def refit(self) -> "FoldFits":
        """The column of the refit on all rows."""
        return self.take(slice(self.n_folds, None))

    @property
    def failed(self) -> NDArray:
        """Columns (B,) that missed their end; one that found nothing, as permuted labels let it, did not."""
        return ~np.asarray(self.converged) & (np.asarray(self.status) != FOUND_NOTHING)

    @property
    def frequency(self) -> NDArray:
        """Share of folds that selected each feature, (N,)."""
        return self.support[:, : self.n_folds].mean(axis=1)

    def take(self, columns: Any) -> "FoldFits":
        """Some columns, by slice or numbers; what is held out and ``seconds`` stay those of the whole."""
        changes: dict[str, Any] = {
            item.name: getattr(self, item.name)[..., columns]
            for item in fields(self)
            if item.name not in ("held_out", "tested") and isinstance(getattr(self, item.name), np.ndarray)
        }
        chosen = np.arange(self.coef.shape[1])[columns]
        changes["status"] = tuple(self.status[column] for column in chosen)
        changes["parameters"] = {name: value[..., columns] for name, value in self.parameters.items()}
        return replace(self, **changes)

    def judged(self, signs: NDArray) -> "FoldFits":
        """A copy in which fits that converged say so if they predict their own training rows at chance.

        ``signs`` (M, B) are labels, 0 off training. Whoever has more features than rows can tell any labels
        apart, so that such a fit failed, unless it left all features out.
        """
        area, spread = training_areas(self.decision, signs, signs != 0)
        lost = np.flatnonzero(np.asarray(self.converged) & ~(area > 0.5 + spread))
        if not lost.size:
            return self
        wide = len(self.coef) > np.count_nonzero(signs, axis=0)
        status, converged = list(self.status), np.array(self.converged)
        for b in lost:
            status[b] = AT_CHANCE if wide[b] and np.any(self.coef[:, b]) else FOUND_NOTHING
        converged[lost] = False
        return replace(self, status=tuple(status), converged=converged)

    def replaced(self, columns: NDArray, other: "FoldFits") -> "FoldFits":
        """A copy whose ``columns`` are those of ``other``; what it has no word for is NaN."""

        def put(values: NDArray, new: Any) -> NDArray:
            out = values.copy()
            out[..., columns] = new
            return out

        names = [item.name for item in fields(self) if item.name not in ("held_out", "tested")]
        arrays = {name: value for name in names if isinstance(value := getattr(self, name), np.ndarray)}
        changes: dict[str, Any] = {name: put(old, getattr(other, name)) for name, old in arrays.items()}
        changes["status"] = tuple(put(np.array(self.status, dtype=object), other.status))
        given = other.parameters
        changes["parameters"] = {
            name: put(old.astype(float), given.get(name, np.nan)) for name, old in self.parameters.items()
        }
        return replace(self, seconds=self.seconds + other.seconds, **changes)

    def at(self, rows: NDArray) -> "FoldFits":
        """The same fits, their answers to some rows of X only."""
        known = {name: getattr(self, name) for name in _BY_ROW}
        return replace(self, **{name: value[rows] for name, value in known.items() if value is not None})

    @classmethod
    def join(cls, parts: Sequence["FoldFits"]) -> "FoldFits":
        """Columns of the same X side by side; their times add up."""
        if len(parts) == 1:
            return parts[0]
        changes: dict[str, Any] = {
            item.name: np.concatenate([getattr(part, item.name) for part in parts], axis=-1)
            for item in fields(cls)
            if item.name not in ("held_out", "tested")
            and isinstance(getattr(parts[0], item.name), np.ndarray)
        }
        changes["status"] = tuple(sentence for part in parts for sentence in part.status)
        changes["seconds"] = sum(part.seconds for part in parts)
        changes["parameters"] = {
            name: np.concatenate([part.parameters[name] for part in parts], axis=-1)
            for name in parts[0].parameters
        }
        return replace(parts[0], **changes)


class Method(Protocol):
    """A ready object: a name, a label for tables, a sentence for the methods text, facts, ``fit_folds``."""

    @property
    def name(self) -> str:
        """Name in METHODS and on the command line."""

    @property
    def label(self) -> str:
        """Short name for tables."""

    @property
    def description(self) -> str:
        """A sentence for the methods text."""

    @property
    def reference(self) -> str:
        """The work that describes it, as a paper would list it."""

    @property
    def short_reference(self) -> str:
        """The same as a text would cite it: authors, year."""

    @property
    def intercept(self) -> str:
        """What holds of the intercept: "free", "penalised" or "none"."""

    @property
    def has_posterior(self) -> bool:
        """Whether weights have standard deviations and inclusion probabilities."""

    @property
    def is_batched(self) -> bool:
        """Whether further label vectors are columns of the same solve, without a nested search each."""

    @property
    def uses_connectivity(self) -> bool:
        """Whether it wants to know which features are neighbours."""

    def fit_folds(
        self, X: Any, y: NDArray, train: NDArray, runs: NDArray, connectivity: Any = None
    ) -> FoldFits:
        """Fit one classifier per column of ``train`` (M, B); y is (M,) or (M, B) in -1/+1, runs (M,).

        Labels on rows with train = False are never read and may be NaN. ``runs`` serves nested tuning.
        ``connectivity`` is a sparse (N, N) adjacency of the features, as scikit-learn's ``grid_to_graph``
        makes it; methods without ``uses_connectivity`` ignore it.
        """


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

    Parameters
    ----------
    X
        Samples (M, N), dense or sparse.
    y
        Labels (M,) or (M, B).
    train
        Training rows (M, B) bool.
    runs
        The run (M,) of every sample.

    Returns
    -------
    FoldInput
        X, labels (M, B) with 0 off training rows, ``train`` and ``runs``.

    Examples
    --------
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

    >>> from mvpa_gamp.methods.fold_fits import check_number_input
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

    >>> from mvpa_gamp.methods.fold_fits import check_rows
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


# None, "balanced", or the weights of the classes -1 and +1.
ClassWeight = str | Mapping[int, float] | None


def check_class_weight(class_weight: Any) -> None:
    """Raise unless it is None, "balanced" or a positive weight for -1 and for +1."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    known = isinstance(class_weight, Mapping) and set(class_weight) == {-1, 1}
    if not known or not all(0 < float(weight) < np.inf for weight in class_weight.values()):
        raise ValueError(
            "class_weight must be None, 'balanced' or {-1: weight, 1: weight} with positive weights, got "
            f"{class_weight!r}. 'balanced' gives both classes the same total weight."
        )


def row_weights(Y: NDArray, class_weight: ClassWeight) -> NDArray:
    """The weight of every row in every column, (M, B), from labels Y (M, B): -1, +1, or 0 off training.

    Without a class weight it is 1 on training rows; "balanced" is scikit-learn's n / (2 n_k) with n training
    rows, n_k of them in the row's class. Rows that do not train have weight 0.

    >>> import numpy as np
    >>> from mvpa_gamp.methods.fold_fits import row_weights
    >>> row_weights(np.array([[1.0], [-1.0], [-1.0], [-1.0], [0.0]]), "balanced")[:, 0].round(3).tolist()
    [2.0, 0.667, 0.667, 0.667, 0.0]
    """
    check_class_weight(class_weight)
    positive, negative = Y > 0, Y < 0
    if class_weight is None:
        return (positive | negative).astype(np.float64)
    if isinstance(class_weight, Mapping):
        return positive * float(class_weight[1]) + negative * float(class_weight[-1])
    counts = [np.maximum(side.sum(axis=0), 1) for side in (positive, negative)]
    half = (positive | negative).sum(axis=0) / 2
    return positive * (half / counts[0]) + negative * (half / counts[1])


def weights_classes(method: Method) -> bool:
    """Whether a method can weigh the classes."""
    return is_dataclass(method) and any(field.name == "class_weight" for field in fields(method))


def with_class_weight(method: Method, class_weight: ClassWeight) -> Method:
    """The same method with weighted classes; raises for one that has no such setting.

    >>> from mvpa_gamp.methods import METHODS
    >>> from mvpa_gamp.methods.fold_fits import with_class_weight
    >>> with_class_weight(METHODS["svm"], "balanced").class_weight
    'balanced'
    """
    check_class_weight(class_weight)
    if class_weight is None:
        return method
    if not weights_classes(method):
        raise ValueError(
            f"{method.name!r} does not support class weights. Leave out the method or the class weight."
        )
    return replace(method, class_weight=class_weight)  # type: ignore[type-var]


ZINIEL_2015 = (
    "Ziniel J, Schniter P, Sederberg P (2015). Binary linear classification and feature selection via "
    "generalized approximate message passing. IEEE Transactions on Signal Processing 63(8), 2020–2032. "
    "doi:10.1109/TSP.2015.2407311"
)
RANGAN_2019 = (
    "Rangan S, Schniter P, Fletcher AK (2019). Vector approximate message passing. IEEE Transactions on "
    "Information Theory 65(10), 6664–6684. doi:10.1109/TIT.2019.2916359"
)
MENG_2016 = (
    "Meng X, Wu S, Kuang L, Huang D, Lu J (2016). Approximate message passing with nearest neighbor sparsity "
    "pattern learning. arXiv:1601.00543"
)
BECKER_2011 = (
    "Becker SR, Candès EJ, Grant MC (2011). Templates for convex cone problems with applications to sparse "
    "signal recovery. Mathematical Programming Computation 3, 165–218. doi:10.1007/s12532-011-0029-5"
)
PLAN_2013 = (
    "Plan Y, Vershynin R (2013). Robust 1-bit compressed sensing and sparse logistic regression: a convex "
    "programming approach. IEEE Transactions on Information Theory 59(1), 482–494. "
    "doi:10.1109/TIT.2012.2207945"
)
FAN_2008 = (
    "Fan RE, Chang KW, Hsieh CJ, Wang XR, Lin CJ (2008). LIBLINEAR: a library for large linear "
    "classification. Journal of Machine Learning Research 9, 1871–1874."
)
CORTES_1995 = (
    "Cortes C, Vapnik V (1995). Support-vector networks. Machine Learning 20, 273–297. doi:10.1007/BF00994018"
)
PEDREGOSA_2011 = (
    "Pedregosa F, Varoquaux G, Gramfort A, et al. (2011). Scikit-learn: machine learning in Python. Journal "
    "of Machine Learning Research 12, 2825–2830."
)
HOERL_1970 = (
    "Hoerl AE, Kennard RW (1970). Ridge regression: biased estimation for nonorthogonal problems. "
    "Technometrics 12(1), 55–67. doi:10.1080/00401706.1970.10488634"
)
LEDOIT_2004 = (
    "Ledoit O, Wolf M (2004). A well-conditioned estimator for large-dimensional covariance matrices. "
    "Journal of Multivariate Analysis 88(2), 365–411. doi:10.1016/S0047-259X(03)00096-4"
)
