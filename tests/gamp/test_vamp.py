"""VAMP in row space: its linear step, its fixed point, its columns and responses."""

import numpy as np
import pytest
from scipy import ndimage, sparse
from sklearn.feature_extraction.image import grid_to_graph
from sklearn.linear_model import Ridge

from mvpa_gamp.gamp import (
    ElasticNet,
    Gaussian,
    Laplace,
    RowSpace,
    SetColumns,
    VampSettings,
    solve_vamp,
    training_sets,
    vamp,
    vamp_evolution,
    vamp_steps,
)
from mvpa_gamp.gamp.neighbours import Neighbours
from mvpa_gamp.gamp.row_space import training_set

N_ROWS, N_FEATURES = 48, 60
GROUPS = np.arange(N_ROWS) // 8


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((N_ROWS, N_FEATURES)) * rng.uniform(0.5, 2, N_FEATURES) + 3
    w = np.where(np.arange(N_FEATURES) < 6, 1 / X.std(axis=0), 0.0)
    y = (X - X.mean(axis=0)) @ w + 0.3 * rng.standard_normal(N_ROWS)
    return X, y


def fit(X, Y, train, settings=None, groups=GROUPS, shrinkage=0.0, **given):
    space, settings = RowSpace(X), settings or VampSettings()
    sets = training_sets(space, train, groups, settings.rho, settings.white, shrinkage=shrinkage)
    return solve_vamp(space, sets, Y, settings, **given)


def scaled(X, rows):
    Z = X / X.std(axis=0)
    return Z - Z[rows].mean(axis=0)


def noise_of_groups(Z, groups, rho=1.0, white=1.0):
    """R in so many words: what a group shares beyond the common weights, and white noise."""
    K = Z @ Z.T
    same = groups[:, None] == groups
    R = rho * np.where(same, K, 0.0) / np.diag(K).mean() + white * np.eye(len(K))
    return R / (rho + white)


def test_with_everything_included_and_white_noise_it_is_ridge(data):
    X, y = data
    train = np.ones((N_ROWS, 1), dtype=bool)
    settings = VampSettings(rate=1.0, rho=0.0, white=0.5, least_iter=1, max_iter=1)
    found = fit(X, y[:, None], train, settings)
    Z = scaled(X, np.arange(N_ROWS))
    variance, d = y.var(), np.mean(np.square(Z).sum(axis=1))
    noise = variance * 0.5 / 1.5
    penalty = noise / ((variance - noise) / d)
    ridge = Ridge(alpha=penalty).fit(Z, y)
    # The prior of weights is the one that the linear step assumed, so its answer stays as it is.
    np.testing.assert_allclose(found.coef[:, 0, 0] * X.std(axis=0), ridge.coef_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(found.z[:, 0, 0], ridge.predict(Z), rtol=1e-5, atol=1e-6)
    assert found.gap[0] < 1e-6 and found.converged[0]
    np.testing.assert_allclose(X @ found.coef[:, 0] + found.intercept[0], found.z[:, 0], rtol=1e-8)


def test_left_out_scores_are_those_of_fits_without_the_group(data):
    X, y = data
    space = RowSpace(X)
    of = training_set(space.gram, np.ones(N_ROWS), GROUPS, 1.0, 1.0, 0.0)
    precision = of.s + 7.0
    dual = of.basis @ ((y - y.mean()) @ of.basis / precision)
    found = of.leave_group_out((y - y.mean())[:, None], dual[:, None], precision)[:, 0]
    Z = scaled(X, np.arange(N_ROWS))
    R, t = noise_of_groups(Z, GROUPS), y - y.mean()
    for group in range(6):
        # R joins no two groups, so leaving one out is a fit to the other rows.
        out, others = group == GROUPS, group != GROUPS
        K = Z @ Z.T
        inverse = np.linalg.inv(K[np.ix_(others, others)] + 7.0 * R[np.ix_(others, others)])
        expected = K[np.ix_(out, others)] @ inverse @ t[others]
        np.testing.assert_allclose(found[out], expected, rtol=1e-6)


def test_the_decomposition_is_that_of_the_whitened_rows(data):
    X, _ = data
    counts = np.where(np.arange(N_ROWS) < 40, 1.0, 0.0)
    of = training_set(RowSpace(X).gram, counts, GROUPS, 0.7, 1.3)
    Z = scaled(X, of.rows)[of.rows]
    R = noise_of_groups(Z, GROUPS[of.rows], 0.7, 1.3)
    np.testing.assert_allclose(of.basis @ of.basis.T, np.linalg.inv(R), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(of.basis.T @ (Z @ Z.T) @ of.basis, np.diag(of.s), atol=1e-8)


def test_a_row_of_weight_two_is_two_rows(data):
    X, y = data
    weights = np.where(np.arange(N_ROWS) % 5 == 0, 2.0, 1.0)
    copies = np.repeat(np.arange(N_ROWS), weights.astype(int))
    space = RowSpace(X)
    space_of_copies = RowSpace(X)
    space_of_copies.X, space_of_copies.gram = X[copies], space.gram[np.ix_(copies, copies)]
    one = training_sets(space, np.ones((N_ROWS, 1), dtype=bool), GROUPS, weights=weights)
    two = training_sets(space_of_copies, np.ones((len(copies), 1), dtype=bool), GROUPS[copies])
    weighted = solve_vamp(space, one, y[:, None])
    copied = solve_vamp(space_of_copies, two, y[copies][:, None])
    np.testing.assert_allclose(weighted.coef, copied.coef, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(weighted.left_out[copies], copied.left_out, rtol=1e-6)


@pytest.mark.parametrize(
    "slab", [None, Laplace(rate=2**0.5), ElasticNet()], ids=["gaussian", "laplace", "net"]
)
def test_it_finds_the_weights_whatever_the_slab(data, slab):
    X, y = data
    found = fit(X, y[:, None], np.ones((N_ROWS, 1), dtype=bool), VampSettings(rho=0, white=0.1), slab=slab)
    assert np.argsort(-found.inclusion[:, 0])[:6].max() < 6
    assert found.converged[0] and (found.coef_var > 0).all()


def test_responses_share_their_inclusions_and_columns_share_nothing(data):
    X, y = data
    train = GROUPS[:, None] != np.arange(3)
    rng = np.random.default_rng(1)
    Y = np.stack([np.repeat(y[:, None], 3, axis=1), rng.standard_normal((N_ROWS, 3))], axis=2)
    together = fit(X, Y, train)
    assert together.coef.shape == (N_FEATURES, 3, 2) and together.inclusion.shape == (N_FEATURES, 3)
    alone = fit(X, Y[:, 1:2], train[:, 1:2])
    np.testing.assert_allclose(alone.coef[:, 0], together.coef[:, 1], rtol=1e-8, atol=1e-12)
    with_junk = np.where(train[:, :, None], Y, np.nan)
    np.testing.assert_allclose(fit(X, with_junk, train).coef, together.coef)


def test_the_same_response_twice_is_the_response_once_with_twice_the_evidence(data):
    X, y = data
    train = np.ones((N_ROWS, 1), dtype=bool)
    twice = fit(X, np.repeat(y[:, None, None], 2, axis=2), train)
    np.testing.assert_allclose(twice.coef[:, :, 0], twice.coef[:, :, 1])


def test_units_of_features_and_targets_do_not_matter(data):
    X, y = data
    train, units = np.ones((N_ROWS, 1), dtype=bool), np.random.default_rng(0).uniform(0.1, 10, N_FEATURES)
    plain, moved = fit(X, y[:, None], train), fit(X * units + 5, 100 * y[:, None] - 3, train)
    np.testing.assert_allclose(moved.coef[:, 0, 0] * units, 100 * plain.coef[:, 0, 0], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(moved.z, 100 * plain.z - 3, rtol=1e-6)


def test_precisions_sparse_and_large_means_agree(data):
    X, y = data
    train = np.ones((N_ROWS, 1), dtype=bool)
    plain = fit(X, y[:, None], train)
    largest = np.abs(plain.coef).max()
    for same in (X.astype(np.float32), sparse.csr_array(X), (X + 1000).astype(np.float32)):
        found = fit(same, y[:, None], train)
        assert found.coef.dtype == same.dtype
        np.testing.assert_allclose(found.coef, plain.coef, atol=1e-3 * largest)
        np.testing.assert_allclose(found.z, plain.z, atol=1e-2)


def test_neighbours_move_a_fixed_budget(data):
    X, y = data
    train = np.ones((N_ROWS, 1), dtype=bool)
    chain = Neighbours(sparse.eye_array(N_FEATURES, k=1), N_FEATURES, X.dtype)
    plain, spatial = fit(X, y[:, None], train), fit(X, y[:, None], train, neighbours=chain)
    assert spatial.inclusion[:6].min() > plain.inclusion[:6].min()
    assert not np.allclose(spatial.inclusion, plain.inclusion)


def test_a_fit_whose_estimates_differ_says_so(data):
    X, y = data
    settings = VampSettings(max_iter=1, least_iter=1, tol=1e-9, rate=0.01)
    found = fit(X, y[:, None], np.ones((N_ROWS, 1), dtype=bool), settings)
    assert not found.converged[0] and found.status[0].startswith("Not converged: the two estimates")


def test_what_cannot_be_fitted_is_explained(data):
    X, _ = data
    train = np.ones((N_ROWS, 1), dtype=bool)
    with pytest.raises(ValueError, match="differ between its training rows"):
        fit(X, np.ones((N_ROWS, 1)), train)
    with pytest.raises(ValueError, match="No feature of X varies"):
        RowSpace(np.ones((4, 3)))
    with pytest.raises(ValueError, match="VampSettings needs"):
        VampSettings(rate=0.0)


def test_constant_features_get_no_weight(data):
    X, y = data
    X = np.column_stack([X, np.full(N_ROWS, 7.3)])
    found = fit(X, y[:, None], np.ones((N_ROWS, 1), dtype=bool))
    assert found.coef[-1, 0, 0] == 0 and SetColumns._fields == ("of", "columns")


def test_smoothness_is_that_of_the_field():
    """Noise smoothed by a Gaussian of deviation s has neighbours with correlation exp(-1 / 4 s^2)."""
    graph, shape = grid_to_graph(24, 24, 24), (24, 24, 24)
    rng = np.random.default_rng(0)
    for deviation in (0.0, 2.0):
        rows = (
            ndimage.gaussian_filter(rng.standard_normal(shape), deviation, mode="wrap") for _ in range(12)
        )
        X = np.stack([each.ravel() for each in rows])
        found = RowSpace(X).smoothness(Neighbours(graph, X.shape[1], X.dtype))
        width = 8 * np.log(2) * deviation**2
        assert found == pytest.approx(max(1, width - 1) ** 1.5, rel=0.25)
    assert RowSpace(X).smoothness(None) == 1


def test_rows_of_independent_features_are_shrunk_and_those_of_few_patterns_are_not():
    rng = np.random.default_rng(0)
    everything = np.ones((40, 1), dtype=bool)
    noise, patterns = rng.standard_normal((40, 3000)), rng.standard_normal((5, 3000))
    shrunk, shared = (
        training_sets(RowSpace(X), everything, np.arange(40))[0].of.shrinkage
        for X in (noise, rng.standard_normal((40, 5)) @ patterns + 0.3 * noise)
    )
    assert shrunk > 0.85 and shared < 0.1


def test_the_compiled_pass_gives_what_the_plain_one_gives(monkeypatch):
    pytest.importorskip("numba", reason="Numba is not installed")
    rng = np.random.default_rng(5)
    X, train = rng.standard_normal((40, 700)).astype(np.float32), np.arange(40)[:, None] % 5 != np.arange(3)
    Y = rng.standard_normal((40, 3, 2)) + 2 * X[:, :2][:, None]
    graph = Neighbours(sparse.eye_array(700, k=1), 700, X.dtype)
    found = []
    for compiled in (False, True):
        monkeypatch.setattr(vamp_steps, "is_worth_it", lambda n, answer=compiled: answer)
        found.append(fit(X, Y, train, groups=np.arange(40) % 5, shrinkage=None, neighbours=graph))
    plain, fused = found
    np.testing.assert_allclose(fused.inclusion, plain.inclusion, atol=1e-4)
    np.testing.assert_allclose(fused.coef, plain.coef, atol=1e-4 * np.abs(plain.coef).max())
    np.testing.assert_allclose(fused.z, plain.z, atol=1e-4)


# --- state evolution


def errors_of(rng, n_rows, n_features, rate, white, spread, n_iter):
    """Squared errors of the two estimates of one undamped fit, and the setting in its own units."""
    U = np.linalg.qr(np.column_stack([np.ones(n_rows), rng.standard_normal((n_rows, n_rows - 1))]))[0][:, 1:]
    V = np.linalg.qr(rng.standard_normal((n_features, n_rows - 1)))[0]
    values = np.geomspace(1, spread, n_rows - 1)
    X = (U * values) @ V.T
    X /= X.std(axis=0)
    w = rng.standard_normal(n_features) * (rng.random(n_features) < rate)
    d = np.square(X - X.mean(axis=0)).sum() / n_rows
    y = X @ w + np.sqrt(white * rate * d) * rng.standard_normal(n_rows)
    settings = VampSettings(rate=rate, rho=0.0, white=white, damping=1.0)
    space = RowSpace(X)
    sets = training_sets(space, np.ones((n_rows, 1), bool), np.arange(n_rows), 0.0, white, shrinkage=0.0)
    targets, scale = vamp._standardised(y[None, None, :], sets)
    state = vamp._start(space, sets, targets, settings, Gaussian(), None)
    truth, found = w / scale[0], []
    unit = state.slab.var[0]
    for _ in range(n_iter):
        linear = vamp_steps.linear_step(space, sets, targets, state)
        before = state.next_r2[:, 0] @ [state.w[0, 0], state.r1[0, 0], state.r2[0, 0]]
        second = linear.kept[0] * before + (linear.dual[0, 0] @ X) * space.inverse_scale
        vamp_steps.denoise(space, linear, state, 1.0, None)
        found.append([np.mean(np.square(each - truth)) / unit for each in (second, state.w[0, 0])])
        vamp_steps.to_next(state, 1.0)
    return np.array(found), np.maximum(sets[0].of.s, 0) * unit, state.noise[0]


def test_state_evolution_tells_the_errors_of_every_iteration():
    """Random rotations, singular values from 1 to 20: simulated errors lie around those of the scalars."""
    size = {"n_rows": 240, "n_features": 720, "rate": 0.1, "white": 0.05, "spread": 20.0, "n_iter": 6}
    fits = [errors_of(np.random.default_rng([7, k]), **size) for k in range(5)]
    found = np.array([errors for errors, *_ in fits])
    _, squares, noise = fits[0]
    told = np.column_stack(vamp_evolution(squares, 720, 0.1, 1.0, noise, 6))
    se = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert told[-1, 1] < 0.7 * told[0, 1]  # there is something to follow
    np.testing.assert_array_less(np.abs(found.mean(axis=0) - told), 3 * se + 0.02 * told)


def test_state_evolution_ends_where_ridge_is_exact():
    """Everything included: the error of the linear step is that of ridge, and nothing changes any more."""
    squares = np.geomspace(1, 50, 40)
    told = vamp_evolution(squares, 100, 1.0, 2.0, 0.5, 3)
    exact = (np.sum(1 / (squares / 0.5 + 0.5)) + 60 * 2.0) / 100
    np.testing.assert_allclose(told.linear, exact, rtol=1e-6)
