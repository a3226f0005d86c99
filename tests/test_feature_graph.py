"""Graphs that GAMPClassifier is given: by name, by function, in parts, and what is wrong with them."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.image import grid_to_graph
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvpa_gamp import GAMPClassifier
from mvpa_gamp.classifier.inputs import feature_graph
from mvpa_gamp.gamp import Design

pytestmark = pytest.mark.whole

NAMES = [f"gene{k}" for k in range(60)]
GRID = sparse.csr_array(grid_to_graph(6, 10).astype(float))
GRID.setdiag(0)
GRID.eliminate_zeros()


@pytest.fixture(scope="module")
def genes():
    """60 genes on a grid, six neighbours of which differ, and their classes."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(80) % 2, "yes", "no")
    X = rng.standard_normal((80, 60))
    X[:, [12, 13, 14, 22, 23, 24]] += 0.8 * (y == "yes")[:, None]
    return pd.DataFrame(X, columns=NAMES), y


def named(graph=GRID, names=NAMES):
    return pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(graph), index=names, columns=names)


def with_graph(graph, X, y):
    return GAMPClassifier(connectivity=graph).fit(X, y)


@pytest.fixture(scope="module")
def plain(genes):
    """The fit with the graph in the order of X."""
    return with_graph(GRID, *genes)


# --- by name


@pytest.mark.parametrize(
    "form",
    [
        lambda table: table.iloc[::-1, ::-1],
        lambda table: table.iloc[::-1],
        lambda table: table.sparse.to_dense().iloc[::-1, ::-1],
        lambda table: table.sparse.to_dense().astype(bool),
    ],
    ids=["both", "rows", "dense", "bool"],
)
def test_a_named_graph_follows_the_columns_of_x(genes, plain, form):
    found = with_graph(form(named()), *genes)
    np.testing.assert_array_equal(found.coef_, plain.coef_)
    assert (found.connectivity_ != GRID).nnz == 0


def test_a_table_without_names_is_in_the_order_of_x(genes, plain):
    X, y = genes
    for samples in (X, X.to_numpy()):
        found = with_graph(pd.DataFrame(GRID.toarray()), samples, y)
        np.testing.assert_array_equal(found.coef_, plain.coef_)


def test_names_that_x_does_not_have_are_an_error(genes):
    X, y = genes
    renamed = X.set_axis(range(1000, 1060), axis=1)  # numbers, as Entrez has them: scikit-learn ignores these
    for samples, graph in ((X.to_numpy(), named()), (renamed, named(names=range(1000, 1060)))):
        with pytest.raises(ValueError, match=r"has names but X has none .*set_output\(transform='pandas'\)"):
            with_graph(graph, samples, y)
    pipeline = make_pipeline(StandardScaler(), GAMPClassifier(connectivity=named()))
    with pytest.raises(ValueError, match="has names but X has none"):
        pipeline.fit(X, y)
    np.testing.assert_array_equal(
        pipeline.set_output(transform="pandas").fit(X, y)[-1].connectivity_.toarray(),
        with_graph(GRID, X, y).connectivity_.toarray(),
    )


def test_a_part_of_the_features_has_the_part_of_the_graph(genes):
    X, y = genes
    part = [*range(10, 30), 3, 41]
    found = with_graph(named().iloc[::-1, ::-1], X.iloc[:, part], y)
    wanted = with_graph(GRID[part][:, part], X.iloc[:, part], y)
    np.testing.assert_array_equal(found.coef_, wanted.coef_)
    steps = (VarianceThreshold(), SelectKBest(k=20), StandardScaler(), GAMPClassifier(connectivity=named()))
    fitted = make_pipeline(*steps).set_output(transform="pandas").fit(X, y)
    kept = [NAMES.index(name) for name in fitted[-1].feature_names_in_]
    assert len(kept) == 20
    assert (
        fitted[-1].connectivity_ != with_graph(GRID[kept][:, kept], X.iloc[:, kept], y).connectivity_
    ).nnz == 0


def test_features_that_the_graph_does_not_know_have_no_neighbours_and_are_counted(genes):
    X, y = genes
    known = [k for k in range(60) if k not in (5, 20, 33, 59)]
    with pytest.warns(
        UserWarning, match=r"4 of 60 features are not in .*'gene5', 'gene20', 'gene33' and 1 more"
    ) as said:
        found = with_graph(named(GRID[known][:, known], [NAMES[k] for k in known]), X, y)
    assert len(said) == 1 and said[0].filename == __file__
    cut = GRID.toarray()
    cut[[5, 20, 33, 59]] = cut[:, [5, 20, 33, 59]] = 0
    np.testing.assert_array_equal(found.coef_, with_graph(cut, X, y).coef_)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (
            named(names=[f"ENSG{k}" for k in range(60)]),
            r"Only 0 of 60 features .*X has 'gene0', .*connectivity has 'ENSG0', .*\. Rename",
        ),
        (named(GRID[:29, :29], NAMES[:29]), r"Only 29 of 60 features .*X has 'gene29'"),
        (
            named().rename(index={"gene3": "other", "gene4": "one"}),
            r"2 of 60 rows have \('other', 'one'\) no .* 2 of 60 columns have \('gene3', 'gene4'\) no",
        ),
        (named().rename(columns={"gene3": "other"}), r"1 of 60 rows have \('gene3'\) .*1 of 60 columns"),
        (named(names=["gene0", "gene0", *NAMES[2:]]), r"once among the rows .*1 occur more often: 'gene0'"),
        (
            pd.concat([named(), named().iloc[[7]]]),
            r"once among the rows of connectivity, but 1 occur more often: 'gene7'",
        ),
        (named().rename(columns={"gene3": "gene4"}), r"once among the columns of connectivity.*: 'gene4'"),
        (
            pd.DataFrame({"from": NAMES[:4], "to": NAMES[1:5]}, index=[0, 0, 1, 1]),
            r"got a table of 4 x 2. From a list of edges",
        ),
        (
            pd.DataFrame({"from": NAMES[:4], "to": NAMES[1:5]}),
            r"one row and one column per feature, got a table of 4 x 2. From a list of edges, with i and j",
        ),
        (pd.DataFrame(GRID.toarray().astype(str), NAMES, NAMES), r"must hold real numbers, got type"),
    ],
    ids=["other names", "few", "rows", "columns", "repeated", "added", "twice", "indexed", "edges", "words"],
)  # fmt: skip
def test_tables_that_cannot_be_matched(genes, graph, message):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=message):
            with_graph(graph, *genes)


def test_repeated_names_of_x():
    """Newer versions of scikit-learn refuse them before."""
    with pytest.raises(ValueError, match=r"once among the columns of X, but 1 occur more often: 'gene1'"):
        feature_graph(named(), None, 60, ["gene1", *NAMES[1:]])


def test_a_sparse_table_is_never_made_dense(monkeypatch):
    """Of 7,000 features pandas needs 8 s to sort such a table by name."""
    n = 3000
    ring = sparse.diags_array([np.ones(n - 1)], offsets=[1], shape=(n, n))
    names = [f"g{k}" for k in range(n)]
    table = named(ring, names)
    monkeypatch.setattr(pd.DataFrame, "to_numpy", lambda self: pytest.fail("the table was made dense"))
    found = feature_graph(table, None, n, names[::-1])
    assert found.nnz == 2 * (n - 1)


# --- by function


def correlated(X):
    """Features whose correlation is above 0.2 are neighbours; a function that can be pickled."""
    return np.abs(np.corrcoef(np.asarray(X).T)) > 0.2


def test_a_function_makes_the_graph_from_the_training_samples(genes):
    X, y = genes
    given = []

    def graph(samples):
        given.append(samples)
        return samples.corr().abs() > 0.2

    found = with_graph(graph, X, y)
    np.testing.assert_array_equal(found.coef_, with_graph(correlated(X), X, y).coef_)
    assert given[0] is X
    folds = StratifiedKFold(4)
    model = GAMPClassifier(connectivity=graph)
    cross_val_score(model, X, y, cv=folds)
    for samples, (train, _) in zip(given[1:], folds.split(X, y), strict=True):
        pd.testing.assert_frame_equal(samples, X.iloc[train])
    seen = []
    GAMPClassifier(connectivity=lambda samples: seen.append(samples) or GRID).fit(X.to_numpy().tolist(), y)
    assert isinstance(seen[0], np.ndarray) and seen[0].shape == (80, 60)


@pytest.mark.parametrize("graph", [GRID, named(), correlated], ids=["sparse", "table", "function"])
def test_connectivity_is_a_parameter_like_any_other(genes, graph):
    X, y = genes
    model = clone(GAMPClassifier(connectivity=graph))
    assert isinstance(model.get_params()["connectivity"], type(graph))
    again = pickle.loads(pickle.dumps(model.fit(X, y)))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    search = GridSearchCV(clone(model), {"connectivity": [None, graph]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.6
    assert clone(model).set_params(connectivity=None).fit(X, y).connectivity_ is None


def test_a_function_that_returns_no_graph(genes):
    with pytest.raises(ValueError, match=r"connectivity must be a matrix, \(60, 60\).*got NoneType"):
        with_graph(lambda X: None, *genes)


def no_argument():
    return GRID


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (no_argument, r"no_argument cannot be \(too many.*def no_argument\(X\)"),
        (lambda: GRID, r"def graph\(X\)"),
    ],
)
def test_a_function_that_does_not_take_x(genes, function, words):
    with pytest.raises(ValueError, match=rf"is called with X, the samples of each fit, but .*{words}"):
        with_graph(function, *genes)


def test_an_error_within_the_function_is_left_as_it_is(genes):
    with pytest.raises(TypeError, match="unsupported operand"):
        with_graph(lambda X: X + None + "graph", np.asarray(genes[0]), genes[1])


# --- graphs that are wrong, or doubtful


PAIRS = [(0, 1), (1, 2), (5, 6)]


@pytest.mark.parametrize(
    "edges",
    [PAIRS, np.array(PAIRS), np.array(PAIRS).T, [("gene0", "gene1")]],
    ids=["list", "array", "two rows", "names"],
)
def test_a_list_of_edges_is_told_how_to_become_a_graph(genes, edges):
    with pytest.raises(
        ValueError, match=r"must be \(60, 60\).*got shape .*From a list of edges, with i and j"
    ):
        with_graph(edges, *genes)


@pytest.mark.parametrize("graph", ["grid", {0: [1]}, [[0, 1], [0]], 3.0])
def test_a_graph_that_is_no_matrix(genes, graph):
    with pytest.raises(
        ValueError, match=r"connectivity must be a matrix, \(60, 60\).*From a list of edges.*networkx"
    ):
        with_graph(graph, *genes)


def test_a_graph_of_features_that_a_step_has_dropped(genes):
    X, y = genes
    with pytest.raises(
        ValueError, match=r"must be \(20, 20\).*got shape \(60, 60\).*If a step of a Pipeline"
    ):
        make_pipeline(SelectKBest(k=20), GAMPClassifier(connectivity=GRID)).fit(X, y)


def test_a_table_is_refused_where_names_are_not_looked_at(genes):
    with pytest.raises(ValueError, match="got a table, whose names are not read here"):
        Design(genes[0].to_numpy(), connectivity=named())


def test_a_graph_that_joins_everything_is_doubted(genes):
    X, y = genes
    with pytest.warns(UserWarning, match="links 100% of all pairs.*threshold to correlations") as said:
        with_graph(np.abs(np.corrcoef(X.T)), X, y)
    assert said[0].filename == __file__


def test_negative_entries_are_refused_but_not_on_the_diagonal(genes, plain):
    degrees = sparse.diags_array(np.asarray(GRID.sum(axis=1)).ravel())
    with pytest.raises(
        ValueError, match=r"must not be negative, got 208 entries below zero, as a graph Laplacian"
    ):
        with_graph(degrees - GRID, *genes)
    np.testing.assert_array_equal(with_graph(GRID - degrees, *genes).coef_, plain.coef_)


def test_an_empty_graph_is_the_plain_prior_at_equal_steps(genes):
    X, y = genes
    nobody = sparse.csr_array((60, 60))
    fits = [GAMPClassifier(connectivity=graph, damping=0.1).fit(X, y) for graph in (nobody, None)]
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-5, atol=1e-7)
