import numpy as np

from mvpa_gamp.decoding.fit import haufe_pattern


def test_the_pattern_is_the_covariance_with_the_decision():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 12)) @ rng.normal(size=(12, 12)) + 3.0
    coef = rng.normal(size=(12, 3))
    expected = np.cov(X.T) @ coef / np.var(X @ coef, axis=0, ddof=1)
    np.testing.assert_allclose(haufe_pattern(X, coef), expected, atol=1e-12)
    np.testing.assert_allclose(haufe_pattern(X, coef[:, 1]), expected[:, 1], atol=1e-12)
    single = haufe_pattern(X.astype(np.float32), coef.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=1e-4)  # single precision of values around 10


def test_no_decision_no_pattern():
    X = np.random.default_rng(1).normal(size=(40, 12))
    X[:, 0] = 1
    constant = np.zeros(12)
    constant[0] = 5
    assert not haufe_pattern(X, np.zeros(12)).any()
    assert not haufe_pattern(X, constant).any()


def test_noise_that_the_classifier_subtracts_has_no_pattern():
    """A voxel with a large weight but no signal: x1 = signal + noise, x2 = noise, w = (1, -1)."""
    rng = np.random.default_rng(4)
    signal, noise = rng.normal(size=(2, 20000))
    pattern = haufe_pattern(np.column_stack([signal + noise, noise]), np.array([1.0, -1.0]))
    np.testing.assert_allclose(pattern, [1, 0], atol=0.03)  # sampling error of 20,000 rows


def test_a_decision_too_small_for_float32_has_no_pattern():
    X = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
    coef = np.eye(3)[:, :2] * [1e-33, 1.0]
    with np.errstate(all="raise"):
        pattern = haufe_pattern(X, coef)
    assert not pattern[:, 0].any()
    np.testing.assert_allclose(pattern[:, 1], haufe_pattern(X, coef[:, 1]), rtol=1e-6)  # rounding of float32
