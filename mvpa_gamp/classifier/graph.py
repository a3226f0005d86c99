"""The graph of neighbouring features that GAMPClassifier is given: made by a function, matched by name."""

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..gamp.neighbours import FROM_EDGES, checked_graph, graph_entries

_FEW_FEATURES, _MOST_EDGES = 20, 0.5  # below, and up to which, a dense graph may be meant
_LEAST_MATCHED = 0.5  # share of features; with fewer the names are most likely of another kind
_EXAMPLES = 3
_EDGE_COLUMNS = 3  # a list of edges has two columns, or a third with weights; its rows need no names


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
