"""Truncated normal moments in both tails, to 1e-12."""

import mpmath as mp
import numpy as np
import pytest

from mvpa_gamp.gamp.moments import inverse_mills, truncated_normal

POINTS = np.concatenate([-np.logspace(6, 1, 11), np.linspace(-9.7, 30.1, 61), [-4.0, 0.0, 37.0]])


def exact(c):
    """Mean, mean + c and variance, with enough digits to survive the cancellation."""
    with mp.workdps(60):
        c = mp.mpf(c)
        m = 1 / (mp.sqrt(mp.pi / 2) * _erfcx(-c / mp.sqrt(2)))
        return float(m), float(m + c), float(1 - m * (m + c))


def _erfcx(x):
    if x < 30:
        return mp.exp(x * x) * mp.erfc(x)
    # The asymptotic series, to 60 digits from x = 30 on.
    terms = [mp.mpf(1)]
    while abs(terms[-1]) > mp.mpf(10) ** -60:
        terms.append(-terms[-1] * (2 * len(terms) - 1) / (2 * x * x))
    return mp.fsum(terms) / (x * mp.sqrt(mp.pi))


def test_moments():
    want = np.array([exact(c) for c in POINTS]).T
    np.testing.assert_allclose(np.array(truncated_normal(POINTS)), want, rtol=1e-12)
    np.testing.assert_array_equal(inverse_mills(POINTS), truncated_normal(POINTS).mean)


def test_extremes_are_finite():
    mean, excess, var = truncated_normal(np.array([-1e300, -1e12, 40.0, 1e12, 1e300]))
    np.testing.assert_allclose(mean, [1e300, 1e12, 0, 0, 0], atol=1e-300)
    np.testing.assert_allclose(excess, [1e-300, 1e-12, 40, 1e12, 1e300], rtol=1e-12)
    np.testing.assert_allclose(var, [0, 1e-24, 1, 1, 1], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_is_kept(dtype):
    c = np.array([-1e6, -5.0, 0.0, 3.0], dtype=dtype)
    assert {part.dtype for part in (*truncated_normal(c), inverse_mills(c))} == {np.dtype(dtype)}
    np.testing.assert_allclose(truncated_normal(c), np.array(truncated_normal(c.astype(float))), rtol=2e-7)


def test_numbers_and_integers_are_taken():
    assert truncated_normal(0).mean == pytest.approx(np.sqrt(2 / np.pi))
