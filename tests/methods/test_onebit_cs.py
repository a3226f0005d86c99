import numpy as np
import pytest

from mvpa_gamp.decoding import leave_one_run_out
from mvpa_gamp.methods import OneBitCS
from mvpa_gamp.methods.onebit_cs import threshold


def study(seed=0, n_runs=5, n_features=400):
    rng = np.random.default_rng(seed)
    runs = np.repeat(np.arange(n_runs), 8)
    y = np.tile([1.0, -1.0], 4 * n_runs)
    X = rng.standard_normal((len(y), n_features))
    X[:, :12] += 0.5 * y[:, None]
    return X, y, runs


def test_threshold_keeps_the_largest_magnitudes():
    np.testing.assert_array_equal(threshold(np.array([1.0, -3.0, 2.0, 0.5]), 2), [0, -3, 2, 0])
    np.testing.assert_array_equal(threshold(np.array([1.0, -1.0, 1.0]), 2), [1, -1, 0])


def test_sizes_are_50_log_spaced_rates_of_n():
    sizes = OneBitCS().sizes(31_398)
    assert len(sizes) == 50 and sizes[0] == 31 and sizes[-1] == 4710
    exact = 31_398 * 0.001 * 150 ** (np.arange(50) / 49)
    assert np.abs(sizes - exact).max() <= 0.5  # rounded to whole features
    assert OneBitCS().sizes(3).tolist() == [1]


def test_it_equals_a_plain_nested_search():
    X, y, runs = study()
    method = OneBitCS()
    train = leave_one_run_out(runs).train
    fits = method.fit_folds(X, y, train, runs)
    for fold in range(train.shape[1]):
        rows = train[:, fold]
        errors = []
        for size in method.sizes(X.shape[1]):
            rates = []
            for run in np.unique(runs[rows]):
                inner, test = rows & (runs != run), rows & (runs == run)
                w = threshold(X[inner].T @ y[inner], size)
                rates.append(np.mean((X[test] @ w > 0) != (y[test] > 0)))
            errors.append(np.mean(rates))
        best = method.sizes(X.shape[1])[np.flatnonzero(np.array(errors) <= min(errors) + 1e-9)[0]]
        assert fits.parameters["n_kept"][fold] == best
        assert fits.parameters["inner_error"][fold] == pytest.approx(min(errors))
        np.testing.assert_allclose(fits.coef[:, fold], threshold(X[rows].T @ y[rows], best), atol=1e-12)


def test_it_has_no_intercept_and_no_probabilities():
    X, y, runs = study()
    fits = OneBitCS().fit_folds(X, y, leave_one_run_out(runs).train, runs)
    np.testing.assert_array_equal(fits.intercept, 0)
    assert np.isnan(fits.proba).all()
    assert fits.converged.all() and "closed form" in fits.status[0]
    np.testing.assert_array_equal(fits.support.sum(axis=0), fits.parameters["n_kept"])


@pytest.mark.parametrize("bad", [{"lowest_rate": 0.0}, {"highest_rate": 1.5}, {"n_rates": 0}])
def test_impossible_settings_are_explained(bad):
    with pytest.raises(ValueError, match=r"needs 0 < lowest_rate.*got OneBitCS\(.*Correct them"):
        OneBitCS(**bad)


def test_scaling_x_changes_no_prediction():
    X, y, runs = study()
    train = leave_one_run_out(runs).train
    fits = [OneBitCS().fit_folds(scale * X, y, train, runs) for scale in (1.0, 1e-3, 1e3)]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.support, fits[0].support)
        np.testing.assert_array_equal(other.decision > 0, fits[0].decision > 0)
