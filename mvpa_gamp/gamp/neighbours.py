"""Features that are neighbours: inclusion rates that follow the surroundings of every weight.

Expectation maximisation gives a column one rate, the mean inclusion of its weights. With neighbours every
weight has a rate of its own, a mean over its surroundings with a share for the whole column. Any graph will
do: voxels that touch, edges of a surface mesh, genes of one pathway.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logit

from ..parallel import BlockMap
from .moments import Array
from .settings import ResolvedSettings

# Share of the neighbours in a rate; the rest is the column's own, so that a weight may leave zero although
# its neighbours are zero. Measured on fMRI: 0.8 to 1 decode alike (8.4 to 8.6 % error), 0.5 is worse (8.8 %).
SHARE = 0.9

# What errors say about how to make a graph.
FROM_EDGES = (
    "From a list of edges, with i and j the numbers of their ends among the n columns of X: "
    "scipy.sparse.coo_array((np.ones(len(i)), (i, j)), shape=(n, n)). From networkx: "
    "nx.to_scipy_sparse_array(G, nodelist=list(X.columns))."
)
_AFTER_SELECTION = (
    " If a step of a Pipeline selects features, give GAMPClassifier a DataFrame with the names of all "
    "features, and call set_output(transform='pandas') on the Pipeline."
)
_ANY_EDGE = "Every entry that is not zero is an edge, whatever its value."


class Neighbours:
    """The mean over the neighbours of every feature, for a graph of N features.

    ``connectivity`` is an (N, N) adjacency in scikit-learn's sense: an entry that is not zero joins two
    features, in both directions, whatever its value; entries of the diagonal do not count, and negative ones
    elsewhere are refused.
    """

    def __init__(self, connectivity: Any, n_features: int, dtype: Any) -> None:
        graph = checked_graph(connectivity, n_features)
        degree = np.diff(graph.indptr)
        self.alone = np.flatnonzero(degree == 0)  # numbers of the features without neighbours
        weights = np.repeat(1 / np.maximum(degree, 1), degree).astype(dtype)
        self._mean = sparse.csr_array((weights, graph.indices, graph.indptr), shape=graph.shape)

    def some_edges(self, most: int) -> tuple[NDArray, NDArray]:
        """The ends (E,) of edges, evenly taken from all; each is there in both directions."""
        one = np.repeat(np.arange(self._mean.shape[0]), np.diff(self._mean.indptr))
        taken = np.unique(np.linspace(0, one.size - 1, min(most, one.size)).astype(int))
        return one[taken], self._mean.indices[taken]

    def log_odds(
        self, pi: Array, rate: Array, out: Array, over_columns: BlockMap = map, factor: Array | float = 1.0
    ) -> Array:
        """Log-odds of (1 - k) rate + k times the mean of ``pi`` over the neighbours, k = ``SHARE``.

        ``pi`` (N, B) are inclusion probabilities, ``rate`` (B,) the rates of the columns, which features
        without neighbours take as they are; ``factor`` (B,) multiplies ``pi``. Writes to ``out`` (N, B), in
        Fortran order like ``pi``.
        """
        alone = logit(rate)
        least, most = np.finfo(out.dtype).tiny, 1 - np.finfo(out.dtype).eps
        shares = SHARE * np.broadcast_to(factor, rate.shape)

        def visit(column: int) -> None:
            rates = self._mean @ pi[:, column]
            rates *= out.dtype.type(shares[column])
            rates += (1 - SHARE) * float(rate[column])
            np.clip(rates, least, most, out=rates)
            rates /= 1 - rates
            np.log(rates, out=out[:, column])
            out[self.alone, column] = alone[column]

        for _ in over_columns(visit, range(pi.shape[1])):
            pass
        return out


def check_neighbours(prior: Any, settings: ResolvedSettings) -> None:
    """Refuse what neighbours cannot serve: a prior without an atom at zero, max-sum, a fixed point."""
    if settings.mode != "sum-product":
        raise ValueError(
            f"connectivity needs mode='sum-product', got {settings.mode!r}: neighbours share inclusion "
            "probabilities, which this mode does not have. Use mode='sum-product' or leave connectivity out."
        )
    if not prior.has_atom:
        raise ValueError(
            "connectivity needs a prior that is zero with some probability, got "
            f"{type(prior).__name__}. Use Bernoulli(rate, slab) or leave connectivity out."
        )
    if settings.stop != "cavity":
        raise ValueError(
            f"connectivity needs stop='cavity', got {settings.stop!r}: the free energy that guides a run to "
            "its fixed point assumes one inclusion rate per fit. Use stop='cavity' or leave connectivity out."
        )


def checked_graph(connectivity: Any, n_features: int) -> Any:
    """The graph as a symmetric CSR array of ones without a diagonal, or a sentence about what is wrong."""
    if hasattr(connectivity, "columns"):
        raise ValueError(
            "connectivity must be an array or a sparse matrix in the order of the columns of X, got a table, "
            "whose names are not read here. GAMPClassifier matches names: after a fit, take its "
            "connectivity_."
        )
    try:
        graph = connectivity if sparse.issparse(connectivity) else np.asarray(connectivity)
    except ValueError:
        graph = np.array(None)  # rows of different length
    if graph.ndim != 2:
        raise ValueError(
            f"connectivity must be a matrix, ({n_features}, {n_features}), sparse or dense, got "
            f"{type(connectivity).__name__}. {FROM_EDGES}"
        )
    if graph.shape != (n_features, n_features):
        raise ValueError(
            f"connectivity must be ({n_features}, {n_features}), one row and column per feature of X, "
            f"got shape {graph.shape}. {_shape_advice(graph.shape, n_features)}"
        )
    return _edges(graph_entries(graph))


def _shape_advice(shape: tuple[int, int], n_features: int) -> str:
    """What to do about a matrix of another shape; with two columns, or two rows, it is a list of edges."""
    if 2 in shape:
        return FROM_EDGES
    dropped = shape[0] == shape[1] > n_features
    same = "Make it for the same features, in the same order, as the columns of X."
    return same + (_AFTER_SELECTION if dropped else "")


def graph_entries(graph: Any) -> sparse.coo_array:
    """The entries of a matrix that are not zero, if each can be an edge."""
    if graph.dtype.kind not in "fiub":
        raise ValueError(f"connectivity must hold real numbers, got type {graph.dtype}. {_ANY_EDGE}")
    entries = sparse.coo_array(graph)
    if not np.isfinite(entries.data).all():
        raise ValueError(f"connectivity must be finite, got NaN or infinite entries. {_ANY_EDGE}")
    negative = np.count_nonzero((entries.data < 0) & (entries.row != entries.col))
    if negative:
        raise ValueError(
            f"connectivity must not be negative, got {negative:,} entries below zero, as a graph Laplacian "
            f"or correlations have. {_ANY_EDGE} Take abs(connectivity) if these are edges too, or leave them "
            "out."
        )
    return entries


def _edges(graph: sparse.coo_array) -> Any:
    """Ones wherever two different features are joined in either direction."""
    joined: NDArray = (graph.data != 0) & (graph.row != graph.col)
    row, col = graph.row[joined], graph.col[joined]
    ends = np.concatenate([row, col]), np.concatenate([col, row])
    edges = sparse.csr_array((np.ones(2 * row.size), ends), shape=graph.shape)
    edges.sum_duplicates()
    edges.data[:] = 1
    return edges
