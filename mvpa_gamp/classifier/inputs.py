"""What GAMPClassifier is given: samples, classes, weights, models, and the graph of its features."""

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight

from ..coupling import check_sortable, class_pairs
from ..feature_scale import rescaled_prior
from ..gamp import Design
from ..gamp.likelihoods import LIKELIHOODS, Likelihood
from ..gamp.neighbours import FROM_EDGES, checked_graph, graph_entries
from ..gamp.parameters import check_sizes
from ..gamp.priors import Prior
from ..gamp.starts import start

# How numpy's own errors begin, of arrays that cannot be made.
NUMPY_ERRORS = ("could not convert", "setting an array element")
_FEW_FEATURES, _MOST_EDGES = 20, 0.5  # below, and up to which, a dense graph may be meant
_LEAST_MATCHED = 0.5  # share of features; with fewer the names are most likely of another kind
_EXAMPLES = 3
_EDGE_COLUMNS = 3  # a list of edges has two columns, or a third with weights; its rows need no names


def encode_classes(y: Any) -> tuple[NDArray, NDArray]:
    """Sorted classes and the number of each sample's class."""
    check_sortable("y", y)
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    if kind not in ("binary", "multiclass"):
        raise ValueError(f"y must hold one class per sample, got a target of type {kind}.")
    classes, codes = np.unique(y, return_inverse=True)
    if classes.size < 2:
        raise ValueError(
            f"y must hold two classes or more, got one class: {classes.tolist()}. Add samples of another "
            "class."
        )
    return classes, codes


def pair_labels(codes: NDArray, n_classes: int) -> NDArray:
    """Labels (n_samples, n_pairs): -1 for the first class of a pair, +1 for the second, 0 for others."""
    pairs = class_pairs(n_classes)
    return np.stack([1.0 * (codes == j) - 1.0 * (codes == i) for i, j in pairs], axis=1)


def sample_weights(X: Any, y: NDArray, classes: NDArray, sample_weight: Any, class_weight: Any) -> Any:
    """The weight of every sample (n_samples,), those of classes multiplied in; None where all are 1."""
    if sample_weight is None and class_weight is None:
        return None
    try:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    except ValueError as error:
        if not str(error).startswith(NUMPY_ERRORS):
            raise
        raise ValueError(f"sample_weight must hold numbers ({error}). Give one per sample.") from error
    codes = np.searchsorted(classes, y)
    weights = weights * _class_weights(class_weight, classes, y)[codes]
    empty = np.bincount(codes, weights, len(classes)) == 0
    if empty.any():
        raise ValueError(
            "Every class needs at least one sample with a positive weight, but all weights are zero for "
            f"{classes[empty].tolist()}. Leave the class out, or raise its weights."
        )
    return weights


def _class_weights(class_weight: Any, classes: NDArray, y: NDArray) -> NDArray:
    """The weight of every class."""
    by_class = compute_class_weight(class_weight, classes=classes, y=y)
    wrong = ~(np.isfinite(by_class) & (by_class >= 0))
    if wrong.any():
        raise ValueError(
            f"class_weight must be a number of 0 or more for every class, got {by_class[wrong][0]:g} for "
            f"{classes[wrong].tolist()[0]!r}. 'balanced' weights classes by how rare they are."
        )
    return by_class


def training_means(X: Any, train: NDArray, weights: NDArray | None) -> NDArray:
    """Mean of the training samples of every pair, (n_pairs, n_features), in the precision of X."""
    counts = train if weights is None else train * weights[:, None]
    shares = counts / counts.sum(axis=0)
    return np.asarray(shares.T @ X).astype(X.dtype)


def check_column_names(X: Any) -> None:
    """Refuse a table in which two columns have one name."""
    times = Counter(getattr(X, "columns", ()))
    repeated = [name for name, count in times.items() if count > 1]
    if repeated:
        raise ValueError(
            f"X must have a name of its own for every column, but {len(repeated):,} occur more than once: "
            f"{_examples(repeated)}. Rename or join them, or give the values alone (X.to_numpy())."
        )


def explain_not_numbers(X: Any, error: ValueError) -> str:
    """What in X is no number, where it can be found."""
    expected = "X must be a numeric matrix (samples x features), "
    names = list(X.columns) if hasattr(X, "columns") else None
    try:
        cells = np.asarray(X, dtype=object)
    except ValueError:
        cells = np.empty((0, 0), dtype=object)
    for row, column in np.ndindex(cells.shape if cells.ndim == 2 else (0, 0)):
        if not _is_number(cells[row, column]):
            name = column if names is None else names[column]
            return (
                f"{expected}got {cells[row, column]!r} in column {name!r}, row {row}. Convert this column to "
                "numbers, or leave it out."
            )
    return f"{expected}got something else ({error}). Convert it to numbers."


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def chosen_likelihood(given: Any) -> Any:
    """The likelihood of a name, or the one that was given."""
    if isinstance(given, str):
        if given not in LIKELIHOODS:
            raise ValueError(
                f"Unknown likelihood {given!r}. Known likelihoods: {', '.join(LIKELIHOODS)}."
                f"{_of_tables(given)}"
            )
        return LIKELIHOODS[given]()
    if isinstance(given, type) or not isinstance(given, Likelihood):
        raise ValueError(f"likelihood must be a name or a likelihood of mvpa_gamp.gamp, got {_kind(given)}.")
    check_sizes(given)
    return given


def chosen_prior(
    given: Any, design: Design, labels: NDArray, likelihood: Any, mode: str, factor: float
) -> Any:
    """The prior of a name with its start, or the one that was given, for X times ``factor``."""
    if isinstance(given, Prior):
        rescaled = rescaled_prior(given, 1 / factor)
        check_sizes(rescaled)
        return rescaled
    if not isinstance(given, str):
        raise ValueError(f"prior must be a name or a prior object of mvpa_gamp.gamp, got {_kind(given)}.")
    return start(given, design, labels, likelihood, mode)


def _of_tables(name: str) -> str:
    """What to write for a method of the commands, whose names begin alike."""
    if not name.startswith("gamp-"):
        return ""
    return (
        " Names such as 'gamp-bg-lr' are methods of the commands and GAMPDecoder: write GAMPClassifier() for "
        "'gamp-bg-lr', GAMPClassifier(connectivity=graph) for 'gamp-sbg-lr'."
    )


def _kind(value: Any) -> str:
    """What came in place of a model; of a class, how to make one."""
    if isinstance(value, type):
        return f"the class {value.__name__}: write {value.__name__}()"
    return type(value).__name__


def feature_graph(connectivity: Any, X: Any, n_features: int, names: Sequence[str] | None) -> Any:
    """The neighbours of every feature, (n_features, n_features) CSR in the order of X; None without a graph.

    ``connectivity`` is what GAMPClassifier was given; a callable is called with X. ``names`` are those of
    the columns of X, by which the rows and columns of a DataFrame are found.
    """
    if connectivity is None:
        return None
    graph = _made_from(connectivity, X) if callable(connectivity) else connectivity
    if hasattr(graph, "index") and hasattr(graph, "columns"):
        graph = _of_table(graph, names)
    edges = checked_graph(graph, n_features)
    _warn_of_dense(edges)
    return edges


def _made_from(function: Callable[[Any], Any], X: Any) -> Any:
    """What a function makes of X, if it can be called with X alone."""
    try:
        signature(function).bind(X)
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        raise ValueError(
            f"A function given as connectivity is called with X, the samples of each fit, but {name} cannot "
            f"be ({error}). Give a function of one argument, such as def {_function_name(name)}(X): ..., or "
            "the graph itself."
        ) from error
    except ValueError:  # some compiled functions do not tell their arguments
        pass
    return function(X)


def _function_name(name: str) -> str:
    return name if name.isidentifier() else "graph"  # "<lambda>"


def _of_table(table: Any, names: Sequence[str] | None) -> Any:
    """The entries of a DataFrame in the order of X."""
    rows, columns = list(table.index), list(table.columns)
    if len(columns) > _EDGE_COLUMNS:
        for what, given in (("rows of connectivity", rows), ("columns of connectivity", columns)):
            _check_unique(what, given)
    if len(rows) != len(columns):
        raise ValueError(
            f"connectivity must have one row and one column per feature, got a table of {len(rows):,} x "
            f"{len(columns):,}. {FROM_EDGES}"
        )
    values = table.sparse.to_coo() if hasattr(table, "sparse") else table.to_numpy()
    numbered = list(range(len(rows)))
    if rows == numbered and columns == numbered:  # as pandas numbers what has no names
        return values
    if names is None:
        raise ValueError(
            "connectivity has names but X has none (scikit-learn knows names of columns that are strings), "
            "so they cannot be matched. Use .set_output(transform='pandas') in a pipeline, make the column "
            "names of X strings, or give connectivity as an array in the order of X."
        )
    _check_names(rows, columns, names)
    _check_matched(names, rows)
    return _renumbered(graph_entries(values), _places(rows, names), _places(columns, names), len(names))


def _renumbered(graph: sparse.coo_array, rows: NDArray, columns: NDArray, n: int) -> sparse.coo_array:
    """A graph with new numbers of its rows and columns, without those whose number is -1."""
    row, column = rows[graph.row], columns[graph.col]
    kept = (row >= 0) & (column >= 0)
    return sparse.coo_array((graph.data[kept], (row[kept], column[kept])), shape=(n, n))


def _places(wanted: Sequence[Any], names: Sequence[str]) -> NDArray:
    """The column of X that has each name, -1 where none has."""
    place = {name: number for number, name in enumerate(names)}
    return np.array([place.get(name, -1) for name in wanted], dtype=int)


def _check_names(rows: list[Any], columns: list[Any], names: Sequence[str]) -> None:
    """Refuse names that do not say which feature is meant."""
    _check_unique("columns of X", list(names))
    without_column, without_row = _absent(rows, columns), _absent(columns, rows)
    if without_column or without_row:
        raise ValueError(
            "connectivity must have the same names in rows and columns, but "
            f"{_counted(without_column, rows, 'rows')} no column of their name and "
            f"{_counted(without_row, columns, 'columns')} no row. Use the same names for both."
        )


def _check_unique(what: str, given: list[Any]) -> None:
    repeated = [name for name, times in Counter(given).items() if times > 1]
    if repeated:
        raise ValueError(
            f"Names must occur once among the {what}, but {len(repeated):,} occur more often: "
            f"{_examples(repeated)}. Join or rename them, or give connectivity as an array in the order of X."
        )


def _check_matched(names: Sequence[str], rows: list[Any]) -> None:
    """Count features that the graph does not know; refuse a graph that knows few."""
    missing = _absent(names, rows)
    if len(missing) > (1 - _LEAST_MATCHED) * len(names):
        raise ValueError(
            f"Only {len(names) - len(missing):,} of {len(names):,} features of X are in connectivity, so the "
            f"names may be of different kinds: X has {_examples(missing)}; connectivity has "
            f"{_examples(_absent(rows, names) or rows)}. Rename one of them, or give connectivity as an "
            "array in the order of X."
        )
    if missing:
        warnings.warn(
            f"{len(missing):,} of {len(names):,} features are not in connectivity, so they have no "
            f"neighbours: {_examples(missing)}.",
            stacklevel=5,
        )


def _absent(names: Sequence[Any], among: Collection[Any]) -> list[Any]:
    """Names that are not among some others, in their order."""
    known = set(among)
    return [name for name in names if name not in known]


def _counted(some: list[Any], whole: list[Any], what: str) -> str:
    return f"{len(some):,} of {len(whole):,} {what} have" + (f" ({_examples(some)})" if some else "")


def _examples(names: Sequence[Any]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - _EXAMPLES
    return ", ".join(repr(name) for name in names[:_EXAMPLES]) + (f" and {more:,} more" if more > 0 else "")


def _warn_of_dense(edges: Any) -> None:
    """A graph in which almost everything is joined says nothing about where features are."""
    n = edges.shape[0]
    if n >= _FEW_FEATURES and edges.nnz > _MOST_EDGES * n * n:
        warnings.warn(
            f"connectivity links {edges.nnz / (n * (n - 1)):.0%} of all pairs of features, so neighbours "
            "carry no information. Every non-zero entry is an edge: apply a threshold to correlations first.",
            stacklevel=4,
        )
