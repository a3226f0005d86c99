import numpy as np
import pytest
from scipy import sparse
from sklearn.covariance import LedoitWolf

from mvpa_gamp.decoding import (
    blocks_of_volumes,
    cross_validate,
    fit_tasks,
    fit_whitening,
    fold_errors,
    haufe_pattern,
    leave_one_run_out,
    make_tasks,
    whitened_folds,
)
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.preparation import NoiseWhitening
from mvpa_gamp.decoding.whitening import _dual, _gram, _of_rows, _primal, _within_blocks
from mvpa_gamp.methods import METHODS

pytestmark = pytest.mark.whole

GAMP = METHODS["gamp-bg-lr"]


def correlated(rng, n_rows=60, n_features=40, rows=5):
    """Rows in blocks, features of unequal and correlated noise, block means of their own."""
    blocks = np.arange(n_rows) // rows
    mixing = rng.standard_normal((n_features, n_features)) * np.linspace(0.1, 3, n_features)
    means = 5 * rng.standard_normal((n_rows // rows, n_features))
    return rng.standard_normal((n_rows, n_features)) @ mixing + means[blocks], blocks


def power(covariance, exponent):
    values, vectors = np.linalg.eigh(covariance)
    return (vectors * values**exponent) @ vectors.T


# --- algebra --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_features", [12, 40, 150])
def test_both_forms_are_the_root_of_ledoit_and_wolfs_covariance(n_features):
    X, blocks = correlated(np.random.default_rng(0), n_features=n_features)
    train = np.arange(60) >= 10
    known = LedoitWolf(assume_centered=True).fit(_within_blocks(X[train], blocks[train]))
    expected = X @ power(known.covariance_, -0.5)
    rows, gram = np.flatnonzero(train), _gram(X)
    primal, dual = _primal(X, blocks, rows), _dual(X, blocks, rows, gram)
    assert primal.shrinkage == pytest.approx(known.shrinkage_, rel=1e-10)
    assert dual.shrinkage == pytest.approx(known.shrinkage_, rel=1e-10)
    for white in (primal.apply(X), dual.apply(X), _of_rows(dual, X, gram, np.arange(60))):
        np.testing.assert_allclose(white, expected, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("n_features", [20, 150])
def test_weights_go_back_to_voxels(n_features):
    X, blocks = correlated(np.random.default_rng(1), n_features=n_features)
    whitening = fit_whitening(X, blocks, np.arange(60) < 50)
    v = np.random.default_rng(2).standard_normal((n_features, 3))
    np.testing.assert_allclose(X @ whitening.back(v), whitening.apply(X) @ v, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(whitening.back(v[:, 1]), whitening.back(v)[:, 1], rtol=1e-9, atol=1e-12)


def test_whitened_noise_is_white_where_rows_abound():
    rng, blocks = np.random.default_rng(3), np.arange(5000) // 5
    X = rng.standard_normal((5000, 10)) @ (np.eye(10) + 0.5 * np.eye(10, k=1))
    noise = _within_blocks(fit_whitening(X, blocks).apply(X), blocks)
    np.testing.assert_allclose(noise.T @ noise / 5000, np.eye(10), atol=0.05)


def test_folds_are_those_of_separate_fits_and_differ():
    X, blocks = correlated(np.random.default_rng(4), n_features=150)
    folds = leave_one_run_out(np.repeat([1, 2, 3], 20))
    rows = np.array([3, 30, 59])
    found = [white for _, white in whitened_folds(X, blocks, folds.train, rows)]
    for train, white in zip(folds.train.T, found, strict=True):
        np.testing.assert_allclose(white, fit_whitening(X, blocks, train).apply(X[rows]), rtol=1e-9)
    assert np.abs(found[0] - found[1]).max() > 0.1


def test_blocks_may_be_split_between_training_and_test():
    X, blocks = correlated(np.random.default_rng(5), n_features=150)
    train = np.arange(60) % 5 > 0
    alone = fit_whitening(X[train], blocks[train])
    np.testing.assert_allclose(fit_whitening(X, blocks, train).apply(X), alone.apply(X), rtol=1e-9)


@pytest.mark.parametrize("n_features", [20, 150])
def test_float32_stays_float32_and_agrees(n_features):
    X, blocks = correlated(np.random.default_rng(6), n_features=n_features)
    X = X.astype(np.float32)
    (_, single), (_, double) = (
        next(whitened_folds(x, blocks, np.ones(60, bool))) for x in (X, X.astype(float))
    )
    assert single.dtype == np.float32 and fit_whitening(X, blocks).apply(X).dtype == np.float32
    # Directions of strong noise nearly cancel: X is rounded, then multiplied by 1 / scale.
    np.testing.assert_allclose(single, double, atol=1e-4 * np.abs(double).max())


@pytest.mark.parametrize("n_features", [20, 150])
def test_constant_and_equal_voxels_stay_finite(n_features):
    """Rows of one block alike, voxels constant or the same: eigenvalues of 0 in either form."""
    X, blocks = correlated(np.random.default_rng(7), n_features=n_features)
    X[:, 0], X[:, 1], X[10:20] = 3.0, X[:, 2], X[10]
    whitening = fit_whitening(X, blocks)
    white = whitening.apply(X)
    assert np.isfinite(white).all() and np.isfinite(whitening.back(np.ones(n_features))).all()
    np.testing.assert_allclose(white[:, 0], 3.0 / whitening.scale, rtol=1e-9)  # only scaled
    np.testing.assert_allclose(white[:, 1], white[:, 2], atol=1e-9 * np.abs(white).max())


# --- what is held out -----------------------------------------------------------------------------------


def weak_effect(rng, effect, n_runs=6, rows=8, n_features=200):
    """Three conditions, strong noise along some directions, an effect of two conditions in all voxels."""
    shown = np.concatenate([np.repeat(rng.permutation(["a", "b", "c"]), rows) for _ in range(n_runs)])
    runs = np.repeat(np.arange(n_runs), 3 * rows)
    directions = np.linalg.qr(rng.standard_normal((n_features, n_features)))[0]
    noise = rng.standard_normal((runs.size, n_features)) * np.sqrt(n_features / np.arange(1, n_features + 1))
    contrast = 1.0 * (shown == "a") - (shown == "b")
    X = noise @ directions.T + effect * np.outer(contrast, rng.standard_normal(n_features))
    return X, shown, runs, blocks_of_volumes(shown, runs, np.arange(runs.size))


class MeanDifference:
    """The cheapest decoder there is: w = X'y on the training rows."""

    name = "mean-difference"

    def fit_folds(self, X, y, train, runs, connectivity=None):
        fits = METHODS["onebit-cs"].fit_folds(X, y, train, runs)
        object.__setattr__(fits, "coef", X.T @ np.where(train, y.reshape(len(y), -1), 0))
        object.__setattr__(fits, "decision", X @ fits.coef)
        return fits


def errors(effect, n_sets=20):
    """Error without whitening, whitened by training rows, and whitened by all rows."""
    cheap, found = MeanDifference(), []
    for k in range(n_sets):
        X, shown, runs, blocks = weak_effect(np.random.default_rng(k), effect)
        (task,) = make_tasks(shown, [("a", "b")])
        trapped = fit_whitening(X, blocks).apply(X)
        fits = [
            cross_validate(cheap, X[task.rows], task.y, runs[task.rows]),
            fit_tasks([cheap], X, [task], runs, Scheme(preparation=NoiseWhitening(blocks)))[
                cheap.name, task.name
            ],
            cross_validate(cheap, trapped[task.rows], task.y, runs[task.rows]),
        ]
        found.append([fold_errors(each, task.y).mean() for each in fits])
    return np.mean(found, axis=0)


def test_a_held_out_run_changes_nothing_in_its_fold():
    X, shown, runs, blocks = weak_effect(np.random.default_rng(8), 0.3, n_runs=4)
    (task,) = make_tasks(shown, [("a", "b")])
    other = X.copy()
    other[runs == 2] = 7 * np.random.default_rng(9).standard_normal(other[runs == 2].shape) - 3
    methods = [MeanDifference(), GAMP]
    before, after = (
        fit_tasks(methods, x, [task], runs, Scheme(preparation=NoiseWhitening(blocks))) for x in (X, other)
    )
    trained = runs[task.rows] != 2
    for (name, _), first in before.items():
        second = after[name, task.name]
        rounding = 0 if name == "mean-difference" else 1e-10  # the solver centres X, which is rounded
        for what in ("coef", "support", "intercept", "pattern"):
            one, other = (getattr(each, what)[..., 2] for each in (first, second))
            np.testing.assert_allclose(one, other, rtol=rounding, atol=rounding)
        np.testing.assert_allclose(first.decision[trained, 2], second.decision[trained, 2], rtol=rounding)
        assert np.abs(first.coef[:, 1] - second.coef[:, 1]).max() > 1e-3  # it does train the other folds


def test_whitening_by_all_runs_is_a_trap():
    """Fitted with the held-out run's block boundaries, errors shrink to a fraction of the honest ones."""
    plain, honest, trapped = errors(0.15)
    assert 0.35 < plain < 0.45 and 0.2 < honest < 0.3  # whitening helps
    assert trapped < 0.4 * honest


def test_without_an_effect_neither_leaves_chance_level():
    """Why the trap is not seen by a check on noise: boundaries name no class."""
    assert (np.abs(errors(0.0) - 0.5) < 0.08).all()


# --- fits -----------------------------------------------------------------------------------------------


def test_one_pass_serves_comparisons_and_methods(toy_study):
    X, shown, runs = toy_study
    blocks = blocks_of_volumes(shown, runs, np.arange(runs.size))
    tasks = make_tasks(shown, [("cat", "scissors"), ("cat", "shoe")])
    methods = [GAMP, METHODS["onebit-cs"]]
    together = fit_tasks(methods, X, tasks, runs, Scheme(preparation=NoiseWhitening(blocks)))
    assert set(together) == {(m.name, t.name) for m in methods for t in tasks}
    for task in tasks:
        alone = fit_tasks([GAMP], X, [task], runs, Scheme(preparation=NoiseWhitening(blocks)))[
            GAMP.name, task.name
        ]
        fits = together[GAMP.name, task.name]
        np.testing.assert_allclose(fits.coef, alone.coef, rtol=1e-8, atol=1e-12)
        assert fits.n_folds == 6 and fits.coef.shape == (60, 7) and fits.coef_std is None
        shown_rows = X[task.rows] @ fits.coef + fits.intercept
        np.testing.assert_allclose(shown_rows, fits.decision, rtol=1e-6, atol=1e-8)
        train = np.column_stack([~fits.tested, np.ones(len(task.rows), bool)])
        np.testing.assert_allclose(fits.pattern, haufe_pattern(X[task.rows], fits.coef, train))
        assert fold_errors(fits, task.y).mean() < 0.25


def test_a_run_without_the_comparison_is_no_fold_of_it(toy_study):
    X, shown, runs = toy_study
    kept = (runs != 3) | (shown == "shoe")
    X, shown, runs = X[kept], shown[kept], runs[kept]
    blocks = blocks_of_volumes(shown, runs, np.arange(runs.size))
    (task,) = make_tasks(shown, [("cat", "scissors")])
    fits = fit_tasks([METHODS["onebit-cs"]], X, [task], runs, Scheme(preparation=NoiseWhitening(blocks)))[
        "onebit-cs", task.name
    ]
    assert fits.held_out.tolist() == [0, 1, 2, 4, 5] and fits.coef.shape[1] == 6
    assert fits.tested.shape == (task.rows.size, 5)


def test_neighbours_reach_the_method(toy_study):
    X, shown, runs = toy_study
    graph, seen = sparse.eye_array(60, format="csr"), []

    class Spy:
        name, uses_connectivity = "spy", True

        def fit_folds(self, X, y, train, runs, connectivity=None):
            seen.append(connectivity)
            return METHODS["onebit-cs"].fit_folds(X, y, train, runs)

    blocks = blocks_of_volumes(shown, runs, np.arange(runs.size))
    fit_tasks(
        [Spy()],
        X,
        make_tasks(shown, [("cat", "shoe")]),
        runs,
        Scheme(preparation=NoiseWhitening(blocks), connectivity=graph),
    )
    assert len(seen) == 7 and all(each is graph for each in seen)


def test_the_real_slice_is_decoded_better(haxby_slice):
    X, shown, runs = haxby_slice
    blocks = blocks_of_volumes(shown, runs, np.arange(runs.size))
    tasks = make_tasks(shown, [("bottle", "shoe"), ("cat", "scissors"), ("bottle", "scissors")])
    found = fit_tasks([GAMP], X, tasks, runs, Scheme(preparation=NoiseWhitening(blocks)))
    white = [fold_errors(found[GAMP.name, task.name], task.y).mean() for task in tasks]
    plain = [
        fold_errors(cross_validate(GAMP, X[task.rows], task.y, runs[task.rows]), task.y).mean()
        for task in tasks
    ]
    assert np.mean(white) < np.mean(plain) - 0.01, (white, plain)
    assert np.mean(white) > 0.02  # 28 pairs have 8 %; with block boundaries of the held-out run it is 3 %


# --- refusals -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"blocks": np.arange(8)}, "one row in every block.*do without whitening"),
        ({"train": np.arange(8) < 1}, "at least 2 training rows, got 1"),
        ({"train": np.arange(8) < 2}, "only two such rows"),
        ({"X": np.ones((8, 3))}, "do not differ"),
        ({"X": np.full((8, 3), np.nan)}, "must be finite"),
        ({"X": np.ones((7, 3))}, "Give all rows of the study"),
        ({"X": sparse.eye_array(8, 3, format="csr")}, "dense X"),
        ({"train": np.arange(8)}, "True or False per row"),
    ],
)
def test_refusals_say_what_to_do(change, words):
    X = np.random.default_rng(0).standard_normal((8, 3))
    with pytest.raises(ValueError, match=words):
        fit_whitening(**{"X": X, "blocks": np.arange(8) // 2, **change})
