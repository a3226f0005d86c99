"""Rates that follow neighbours: what a graph means, what it changes, and what it must not change."""

from dataclasses import fields, replace

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, logit
from sklearn.feature_extraction.image import grid_to_graph
from sklearn.metrics import average_precision_score

from mvpa_gamp.gamp import (
    Bernoulli,
    Design,
    Gaussian,
    Laplace,
    Logistic,
    SolverSettings,
    batch,
    fit_em,
    solve,
)
from mvpa_gamp.gamp.moments import Slopes
from mvpa_gamp.gamp.neighbours import SHARE, Neighbours
from mvpa_gamp.gamp.result import NOT_FINITE
from mvpa_gamp.gamp.starts import start_prior

SIDE = 16
GRID = grid_to_graph(SIDE, SIDE)
NOBODY = sparse.csr_array((SIDE**2, SIDE**2))
RUN = SolverSettings(intercept=True, damping=0.2)
# Sums in another order, amplified over some ten iterations.
TOLERANCE = {np.float64: 1e-10, np.float32: 1e-4}


def blob(dtype=np.float64, seed=0, n_columns=4):
    """Features on a grid, of which a disc of 21 differs between the classes; folds; where the disc is."""
    rng = np.random.default_rng(seed)
    rows, columns = np.divmod(np.arange(SIDE**2), SIDE)
    planted = (rows - 5) ** 2 + (columns - 9) ** 2 <= 6
    y = np.where(np.arange(80) % 2, 1.0, -1.0)
    X = rng.standard_normal((80, SIDE**2)) + 0.25 * y[:, None] * planted
    train = (np.arange(80) // 2 % n_columns)[:, None] != np.arange(n_columns)
    return X.astype(dtype), y, train, planted


def fit(X, y, train, graph=GRID, run=RUN, name="bernoulli-gaussian", likelihood=None):
    design = Design(X, train, center="train", connectivity=graph)
    return fit_em(design, y, likelihood or Logistic(), start_prior(name, design), run)


def assert_same(found, wanted, columns=slice(None), features=slice(None), tolerance=1e-10):
    for name in ("coef", "coef_var", "pi"):
        one, other = getattr(found.result, name), getattr(wanted.result, name)[features, columns]
        np.testing.assert_allclose(one, other, atol=tolerance * np.abs(other).max(initial=0), rtol=0)
    np.testing.assert_array_equal(found.result.n_iter, wanted.result.n_iter[columns])
    np.testing.assert_array_equal(found.result.status, wanted.result.status[columns])


# --- the graph


def test_rates_are_means_over_neighbours_with_a_share_for_the_column():
    graph = sparse.coo_array(([1, 1, 5], ([0, 1, 2], [1, 2, 2])), shape=(4, 4))  # a row of three, one alone
    pi = np.asfortranarray([[0.1, 0.3], [0.5, 0.7], [0.9, 0.2], [0.6, 0.6]])
    rate = np.array([0.2, 0.4])
    found = Neighbours(graph, 4, float).log_odds(pi, rate, np.empty_like(pi))
    means = np.array([pi[1], (pi[0] + pi[2]) / 2, pi[1]])
    np.testing.assert_allclose(expit(found[:3]), (1 - SHARE) * rate + SHARE * means, rtol=1e-12)
    np.testing.assert_array_equal(found[3], logit(rate))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rates_at_their_limits_stay_finite(dtype):
    pi = np.asfortranarray(np.tile([[0.0, 1.0]], (SIDE**2, 1)), dtype=dtype)
    rate = np.array([1e-60, 1 - 1e-10])
    with np.errstate(all="raise", under="ignore"):
        found = Neighbours(GRID, SIDE**2, dtype).log_odds(pi, rate, np.empty_like(pi))
    assert np.isfinite(found).all() and (found[:, 0] < -50).all() and (found[:, 1] > 10).all()


@pytest.mark.parametrize(
    "form",
    [
        lambda graph: graph.tocsc(),
        lambda graph: graph.toarray(),
        lambda graph: sparse.triu(graph),  # one direction
        lambda graph: graph.astype(bool),
        lambda graph: 7.5 * graph - 3 * sparse.eye_array(SIDE**2),  # weights and diagonal
    ],
    ids=["csc", "dense", "one direction", "bool", "weighted"],
)
def test_edges_count_and_nothing_else_of_the_matrix(form):
    X, y, train, _ = blob()
    assert_same(fit(X, y, train, form(GRID)), fit(X, y, train), tolerance=0)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (NOBODY[:-1], r"connectivity must be \(256, 256\), .*got shape \(255, 256\). Make it for the same"),
        (np.ones(256), r"connectivity must be a matrix, \(256, 256\), .*got ndarray. From a list of edges"),
        (sparse.eye_array(256) * np.nan, r"connectivity must be finite, got NaN"),
        (sparse.eye_array(256, dtype=complex), r"connectivity must hold real numbers, got type complex128"),
        (np.full((256, 256), "a"), r"connectivity must hold real numbers, got type <U1"),
    ],
    ids=["shape", "vector", "nan", "complex", "words"],
)
def test_wrong_graphs_are_explained(graph, message):
    with pytest.raises(ValueError, match=message):
        Design(blob()[0], connectivity=graph)


# --- what it does


def test_a_planted_blob_is_found_with_neighbours_and_missed_without():
    precision = {"near": [], "alone": []}
    for seed in range(5):
        X, y, _, planted = blob(seed=seed)
        for name, graph in (("near", GRID), ("alone", None)):
            pi = fit(X, y, None, graph).inclusion()[:, 0]
            precision[name].append(average_precision_score(planted, pi))
    near, alone = np.mean(precision["near"]), np.mean(precision["alone"])
    assert near > alone + 0.15, (near, alone)


def test_a_shuffled_graph_does_not_help():
    found = []
    for seed in range(5):
        X, y, _, planted = blob(seed=seed)
        mixed = np.random.default_rng(seed).permutation(SIDE**2)
        shuffled = GRID.tocsr()[mixed][:, mixed]
        pairs = (fit(X, y, None, graph).inclusion()[:, 0] for graph in (GRID, shuffled))
        found.append([average_precision_score(planted, pi) for pi in pairs])
    true, wrong = np.mean(found, axis=0)
    assert true > wrong + 0.15, (true, wrong)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["bernoulli-gaussian", "bernoulli-laplace"])
def test_an_empty_graph_is_the_plain_prior(name, dtype):
    X, y, train, _ = blob(dtype)
    found, plain = (fit(X, y, train, graph, name=name) for graph in (NOBODY, None))
    np.testing.assert_allclose(found.result.coef, plain.result.coef, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(found.inclusion(), plain.inclusion(), rtol=1e-4, atol=1e-7)
    assert not plain.result.pi.size and found.result.pi.shape == plain.result.coef.shape
    fixed = [
        solve(Design(X, train, connectivity=graph), y, Logistic(), Bernoulli(0.1, Gaussian()), RUN)
        for graph in (NOBODY, None)
    ]
    np.testing.assert_allclose(fixed[0].coef, fixed[1].coef, rtol=1e-5, atol=1e-7)


def test_features_without_neighbours_take_the_rate_of_the_column():
    X, y, train, _ = blob()
    cut = GRID.toarray()
    cut[: SIDE**2 // 2] = cut[:, : SIDE**2 // 2] = 0  # half of the grid stands alone
    found = fit(X, y, train, cut)
    assert np.isfinite(found.result.coef).all() and found.result.converged.all()
    rate = fit(X, y, train, NOBODY)
    assert np.abs(found.result.pi - rate.result.pi).max() > 1e-3


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_is_returned_belongs_together(dtype):
    """Mean and variance of the weights follow from r, tau_r and the inclusions of the same iterate."""
    X, y, train, _ = blob(dtype)
    found = fit(X, y, train)
    result, slab = found.result, found.prior.slab
    mean, var = slab.posterior(result.r, result.tau_r)
    pi = found.inclusion()
    assert pi is result.pi and pi.dtype == dtype and (result.kept_iter < result.n_iter).any()
    np.testing.assert_allclose(result.coef, pi * mean, rtol=1e-5)
    np.testing.assert_allclose(result.coef_var, pi * (var + (1 - pi) * mean**2), rtol=1e-3, atol=1e-7)
    one_rate = found.prior.inclusion(result.r, result.tau_r)
    assert np.abs(one_rate - pi).max() > 0.05  # the rate of the column tells another story


# --- columns and features


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_batched_equals_looped_in_any_order(dtype):
    X, y, train, _ = blob(dtype)
    together = fit(X, y, train)
    for columns in ([0], [3], [2, 0], [3, 1, 0, 2]):
        part = fit(X, y, train[:, columns])
        assert_same(part, together, columns, tolerance=TOLERANCE[dtype])


def test_permuted_features_with_a_permuted_graph():
    X, y, train, _ = blob()
    order = np.random.default_rng(1).permutation(SIDE**2)
    found = fit(X[:, order], y, train, GRID.tocsr()[order][:, order])
    assert_same(found, fit(X, y, train), features=order, tolerance=1e-9)


def test_labels_of_held_out_rows_are_never_read():
    X, y, train, _ = blob()
    hidden = np.where(train, y[:, None], np.nan)
    assert_same(fit(X, hidden, train), fit(X, y, train), tolerance=0)


def test_sparse_x_gives_the_same():
    X, y, train, _ = blob()
    assert_same(fit(sparse.csr_array(X), y, train), fit(X, y, train), tolerance=1e-7)


def test_float32_selects_what_float64_selects():
    found = [fit(*blob(dtype)[:3]) for dtype in (np.float32, np.float64)]
    one, other = (each.inclusion() for each in found)
    np.testing.assert_allclose(one, other, atol=1e-3)
    np.testing.assert_array_equal(one > 0.5, other > 0.5)
    assert (other > 0.5).any()


def test_the_fused_step_gives_the_fit_of_the_plain_one(monkeypatch):
    X, y, train, _ = blob(np.float32)
    plain = fit(X, y, train)
    monkeypatch.setattr(batch, "is_worth_it", lambda n_products: True)
    assert_same(fit(X, y, train), plain, tolerance=1e-3)


class Spoilt(Logistic):
    """A logistic likelihood whose slopes break in all columns once scores have left zero."""

    def evaluate(self, y, p, tau_p):
        (s, tau_s), log_partition = super().evaluate(y, p, tau_p)
        return Slopes(np.where(np.asarray(self.scale) > 1 + 1e-9, np.nan, s), tau_s), log_partition


def test_a_column_that_fails_is_taken_back_alone_with_its_inclusions():
    X, y, train, _ = blob()
    scale = np.array([1.0, 1.0 + 1e-6, 1.0, 1.0])
    found, wanted = fit(X, y, train, likelihood=Spoilt(scale)), fit(X, y, train)
    good = scale == 1
    assert found.result.status[1] == NOT_FINITE
    for item in fields(found.result):
        values = getattr(found.result, item.name)
        if item.name not in ("status", "cavity_score"):
            assert np.isfinite(values).all(), item.name
            np.testing.assert_allclose(
                values[..., good], getattr(wanted.result, item.name)[..., good], rtol=1e-8, atol=1e-10
            )
    np.testing.assert_allclose(found.result.pi[:, 1], found.prior.rate[1])


def test_a_warm_start_goes_on_with_its_inclusions():
    X, y, train, _ = blob()
    design, prior = Design(X, train, connectivity=GRID), Bernoulli(0.05, Gaussian(0.0, 0.1))
    first = solve(design, y, Logistic(), prior, RUN)
    again = solve(design, y, Logistic(), prior, replace(RUN, max_iter=1, damping=1e-6), warm=first)
    forgotten = replace(first, pi=np.empty((0, 4)))
    other = solve(design, y, Logistic(), prior, replace(RUN, max_iter=1, damping=1e-6), warm=forgotten)
    assert np.abs(other.pi - first.pi).max() > 2 * np.abs(again.pi - first.pi).max()


# --- settings


def test_the_default_step_is_larger_with_neighbours():
    assert SolverSettings().resolved().damping == 0.1
    assert SolverSettings().resolved(neighbours=True).damping == 0.2
    assert SolverSettings(damping=0.05).resolved(neighbours=True).damping == 0.05
    X, y, train, _ = blob()
    assert_same(fit(X, y, train, run=SolverSettings(intercept=True)), fit(X, y, train), tolerance=0)


@pytest.mark.parametrize("go", [solve, fit_em])
@pytest.mark.parametrize(
    ("prior", "settings", "message"),
    [
        (Laplace(), {"mode": "max-sum"}, r"connectivity needs mode='sum-product', got 'max-sum'.*Use mode="),
        (
            Laplace(),
            {},
            r"connectivity needs a prior that is zero .*got Laplace. Use Bernoulli",
        ),
        (
            Bernoulli(),
            {"stop": "fixed-point"},
            r"connectivity needs stop='cavity', got 'fixed-point'.*Use stop='cavity' or leave connectivity",
        ),
    ],
    ids=["max-sum", "no atom", "fixed-point"],
)
def test_what_neighbours_cannot_serve_is_refused(go, prior, settings, message):
    X, y, train, _ = blob()
    design = Design(X, train, connectivity=GRID)
    with pytest.raises(ValueError, match=message):
        go(design, y, Logistic(), prior, SolverSettings(**settings))


def test_a_part_of_the_features_has_no_neighbours_left():
    with pytest.raises(ValueError, match=r"lose their neighbours. Use mode='sum-product'"):
        Design(blob()[0], connectivity=GRID).restrict(np.arange(5), float)
