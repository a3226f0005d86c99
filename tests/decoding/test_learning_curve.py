import numpy as np
import pytest
from scipy.special import expit

from mvpa_gamp.decoding import cross_validate, fold_errors
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.learning_curve import independent_share, learning_curve
from mvpa_gamp.methods import METHODS

pytestmark = pytest.mark.whole

GAMP = METHODS["gamp-bg-lr"]


def study(rng, n_runs=8, rows=40, n_features=200, n_active=10, n_factors=0, w=None):
    """Labels from the logistic model of sparse weights on i.i.d. features, or on a few shared factors."""
    X = rng.standard_normal((n_runs * rows, n_features))
    if n_factors:
        factors = rng.standard_normal((len(X), n_factors))
        X = 0.3 * X + factors @ rng.standard_normal((n_factors, n_features)) / np.sqrt(n_factors)
    if w is None:
        w = np.zeros(n_features)
        w[rng.choice(n_features, n_active, replace=False)] = rng.choice([-1, 1], n_active)
    z = X @ w
    y = np.where(rng.random(len(X)) < expit(4 * z / np.sqrt(np.mean(z**2))), 1.0, -1.0)
    return X.astype(np.float32), y, np.repeat(np.arange(n_runs), rows), w


@pytest.fixture(scope="module")
def independent():
    X, y, runs, w = study(np.random.default_rng(0))
    return learning_curve(GAMP, X, y, runs, n_splits=8), w


# --- measured -------------------------------------------------------------------------------------------


def test_the_curve_rises_and_ends_at_leave_one_run_out(independent):
    curve, _ = independent
    X, y, runs, _ = study(np.random.default_rng(0))
    np.testing.assert_array_equal(curve.n_train_runs, [2, 4, 6, 7])
    np.testing.assert_array_equal(curve.n_splits, [8, 8, 8, 8])
    assert curve.accuracy[-1] > curve.accuracy[0] + 0.03
    folds = fold_errors(cross_validate(GAMP, X, y, runs), y)
    assert curve.accuracy[-1] == pytest.approx(1 - folds.mean(), abs=0.01)  # float32 batches of other widths
    assert curve.standard_error[-1] == pytest.approx(folds.std(ddof=1) / np.sqrt(8), abs=0.01)


def test_training_runs_are_never_tested_and_test_labels_never_read():
    seen = []

    class Spy:
        name, is_batched, has_posterior = "spy", False, False

        def fit_folds(self, X, y, train, runs):
            seen.append(train)
            return METHODS["onebit-cs"].fit_folds(X, np.where(train, y[:, None], np.nan), train, runs)

    X, y, runs, _ = study(np.random.default_rng(1), n_runs=5, rows=8, n_features=20)
    curve = learning_curve(Spy(), X, y, runs, n_train_runs=[3, 2, 4], n_splits=5)
    np.testing.assert_array_equal(curve.n_train_runs, [2, 3, 4])
    for size, train in zip(curve.n_train_runs, seen, strict=True):
        assert train.shape == (40, 5)
        assert len(np.unique(train, axis=1).T) == 5  # distinct subsets
        of_runs = train.reshape(5, 8, 5)
        assert (of_runs.all(axis=1) == of_runs.any(axis=1)).all()  # whole runs
        assert (of_runs.all(axis=1).sum(axis=0) == size).all()


def test_a_seed_gives_one_curve():
    X, y, runs, _ = study(np.random.default_rng(1), n_runs=6, rows=8, n_features=20)
    method = METHODS["onebit-cs"]
    curves = [
        learning_curve(method, X, y, runs, n_splits=4, scheme=Scheme(seed=seed)).accuracy
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(curves[0], curves[1])
    assert (curves[0] != curves[2]).any()


# --- predicted ------------------------------------------------------------------------------------------


def test_prediction_agrees_on_independent_features(independent):
    curve, w = independent
    assert curve.refusal == ""
    assert np.abs(curve.accuracy - curve.predicted)[1:].max() < 0.06
    assert (np.diff(curve.predicted) > 0).all()
    ahead = curve.extrapolate(15)
    assert ahead.n_train_runs == 15 and ahead.low < ahead.accuracy < ahead.high
    assert curve.predicted[-1] < ahead.accuracy < 1
    assert 0.05 < ahead.high - ahead.low < 0.25
    X, y, runs, _ = study(np.random.default_rng(99), n_runs=40, w=w)
    fit = GAMP.fit_folds(X, y, (runs < 15)[:, None], runs)  # what 15 runs give in truth, on 1,000 new rows
    reached = np.mean((fit.decision[:, 0] > 0)[runs >= 15] == (y > 0)[runs >= 15])
    assert ahead.low < reached < ahead.high


@pytest.mark.parametrize("n_factors", [20, 60])
def test_correlated_features_are_not_extrapolated(n_factors):
    X, y, runs, _ = study(np.random.default_rng(3), rows=16, n_features=120, n_factors=n_factors)
    curve = learning_curve(GAMP, X, y, runs, n_train_runs=[7], n_splits=4)
    assert np.isfinite(curve.predicted).all()  # drawn beside the curve all the same
    assert "No extrapolation" in curve.refusal and "independent" in curve.refusal
    with pytest.raises(ValueError, match="Read the measured curve only"):
        curve.extrapolate(20)


def test_a_prediction_that_misses_the_curve_is_refused():
    """Class means in many features: labels do not follow the logistic model of the prediction."""
    rng = np.random.default_rng(4)
    y, runs = np.tile(np.repeat([1.0, -1.0], 9), 8), np.repeat(np.arange(8), 18)
    X = rng.standard_normal((y.size, 200)).astype(np.float32)
    X[:, :30] += 0.5 * y[:, None]
    curve = learning_curve(GAMP, X, y, runs, n_train_runs=[7], n_splits=4)
    assert curve.accuracy[-1] > 0.95
    for words in ("training runs the accuracy is", "standard error", "state evolution"):
        assert words in curve.refusal


def test_effective_dimensions_tell_correlated_features():
    shares = [independent_share(np.random.default_rng(k).standard_normal((60, 90))) for k in range(20)]
    assert abs(np.mean(shares) - 1) < 0.01 and np.std(shares) < 0.02
    few = study(np.random.default_rng(5), n_runs=4, n_factors=5)[0]
    assert independent_share(few) < 0.15


@pytest.mark.parametrize("name", ["onebit-cs", "gamp-l1-lr"])
def test_other_methods_have_a_curve_without_prediction(name):
    X, y, runs, _ = study(np.random.default_rng(1), n_runs=4, rows=10, n_features=20)
    curve = learning_curve(METHODS[name], X, y, runs, n_splits=3)
    np.testing.assert_array_equal(curve.n_train_runs, [2, 3])
    assert np.isnan(curve.predicted).all() and (curve.accuracy > 0).all()
    with pytest.raises(ValueError, match=f"not '{name}'"):
        curve.extrapolate(6)


# --- errors ---------------------------------------------------------------------------------------------


def test_looking_too_far_is_refused(independent):
    curve, _ = independent
    with pytest.raises(ValueError, match="1 and 24 training runs, got 100"):
        curve.extrapolate(100)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_train_runs": [0, 2]}, "from 1 to 3"),
        ({"n_train_runs": [4]}, "a run is left for testing"),
        ({"n_train_runs": []}, "from 1 to 3"),
        ({"n_splits": 0}, "at least 3 runs and 1 split"),
        ({"runs": np.repeat([0, 1], 20)}, "at least 3 runs"),
        ({"y": np.zeros(40)}, r"-1 or \+1"),
        ({"y": np.repeat([1.0, -1.0, 1.0, -1.0], 10), "n_train_runs": [1]}, "contains both classes"),
    ],
)
def test_errors_say_what_to_do(change, words):
    X, y, runs, _ = study(np.random.default_rng(1), n_runs=4, rows=10, n_features=20)
    with pytest.raises(ValueError, match=words):
        learning_curve(**{"method": METHODS["onebit-cs"], "X": X, "y": y, "runs": runs, **change})
