"""The logistic integral where it is hardest, and the paper's variational step beside it."""

import numpy as np
import pytest
from scipy.optimize import brentq

from mvpa_gamp.gamp.likelihoods import (
    Logistic,
    logistic,
    logistic_integral,
)
from mvpa_gamp.gamp.likelihoods.logistic_integral import WORTH_COMPILING, integrate


def test_values_measured_elsewhere():
    """At p = 0, tau_p = 100: exact 7.85 and 38.3, variational 6.4 and 12.8."""
    np.testing.assert_allclose(np.array(Logistic().posterior(1.0, 0.0, 100.0)), [7.85, 38.3], atol=0.05)
    np.testing.assert_allclose(
        np.array(Logistic(moments="variational").posterior(1.0, 0.0, 100.0)), [6.4, 12.8], atol=0.05
    )


def test_seams_between_the_sums(exact):
    """Both sides of every switch: t = 1/4, 1, 2, 4, 12, 40, x = -t/2, x = t/2, repeats, the far end."""
    t = np.array([1 - 1e-9, 1 + 1e-9, 1.0, 1.0, 3.0, 3.0, 3.0, 10.0, 10.0, 2.0, 2.0])
    x = np.array([0.2, 0.2, -0.5, 0.5, -1.5 - 1e-9, 1.5 + 1e-9, 4.5, -5.0, 5.0, 39.0 - 1e-9, 39.0 + 1e-9])
    switches = np.outer([0.25, 2.0, 4.0, 12.0, 40.0], [1 - 1e-9, 1 + 1e-9]).ravel()
    t = np.concatenate([t, switches, switches, switches])
    x = np.concatenate([x, 0.2 * switches, -0.45 * switches, 2.0 + switches])
    want = exact(Logistic(), 1.0, x, t)
    got = integrate(x, t)
    np.testing.assert_allclose(got.log_z, want.log_partition, rtol=1e-10)
    np.testing.assert_allclose(got.s, want.s, rtol=1e-10)
    np.testing.assert_allclose(got.tau_s, want.tau_s, rtol=1e-10)
    np.testing.assert_allclose(got.var, want.var, rtol=1e-10)


@pytest.mark.parametrize("compiled", [True, False])
def test_compiled_loops_equal_numpy(compiled, monkeypatch):
    """Many elements at once take the compiled sums (or the Python they are made from), a few take NumPy's."""
    if compiled:
        pytest.importorskip("numba")
    else:
        loops = (getattr(logistic_integral, f"_{name}_loop") for name in logistic_integral.Kernels._fields)
        kernels = logistic_integral.Kernels(*loops)
        for module in (logistic, logistic_integral):
            monkeypatch.setattr(module, "compiled_kernels", lambda: kernels)
    rng = np.random.default_rng(0)
    n_elements = 2 * WORTH_COMPILING
    y, p = rng.choice([-1.0, 1.0], n_elements), 5 * rng.standard_normal(n_elements)
    tau_p = 10 ** rng.uniform(-6, 3, n_elements)
    looped = (*Logistic().evaluate(y, p, tau_p)[0], *Logistic().prox_score(y, p, tau_p))
    for module in (logistic, logistic_integral):
        monkeypatch.setattr(module, "WORTH_COMPILING", n_elements + 1)
    plain = (*Logistic().evaluate(y, p, tau_p)[0], *Logistic().prox_score(y, p, tau_p))
    for one, other in zip(looped, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-11)  # the sums of both stop at about 1e-12


def test_narrow_posteriors_under_wide_gaussians():
    """At x = -t/2 the posterior tends to sech(z/2)/(2 pi), of mean 0 and variance pi^2, as t grows."""
    t = np.logspace(4, 12, 9)
    result = integrate(-0.5 * t, t)
    np.testing.assert_allclose(result.var, np.pi**2, rtol=60 / t.min())
    assert np.all(np.abs(result.mean) < 1e-3)
    np.testing.assert_allclose(result.s, 0.5, rtol=1e-12)
    np.testing.assert_allclose(result.tau_s * t, 1.0, rtol=20 / t.min())


def test_a_very_wide_gaussian_sees_a_step():
    """For t >> 1 the logistic function is the step at 0: half the mass, truncated normal moments."""
    mean, var = Logistic().posterior(1.0, 0.0, 1e12)
    np.testing.assert_allclose([mean / 1e6, var / 1e12], [np.sqrt(2 / np.pi), 1 - 2 / np.pi], rtol=1e-10)
    assert Logistic().log_partition(1.0, 0.0, 1e12) == pytest.approx(-np.log(2), rel=1e-14)


def test_scale_is_a_change_of_units():
    y, p, tau_p = np.meshgrid([-1.0, 1.0], np.linspace(-3, 3, 7), [0.01, 1.0, 50.0])
    scaled, standard = Logistic(5.0), Logistic(1.0)
    for step, units in {"posterior": (5, 25), "prox": (5, 25), "score": (1 / 5, 1 / 25)}.items():
        first, second = getattr(standard, step)(y, 5 * p, 25 * tau_p)
        np.testing.assert_allclose(
            getattr(scaled, step)(y, p, tau_p), (first / units[0], second / units[1]), rtol=1e-12
        )


def algorithm_2(y, scale, p, tau_p):
    """The paper's listing, line by line."""
    xi = np.sqrt(tau_p + p**2)
    for _ in range(2000):
        sigma = 1 / (1 + np.exp(-scale * xi))
        lam = scale / (2 * xi) * (sigma - 0.5)
        tau_z = tau_p / (1 + 2 * tau_p * lam)
        z = tau_z * (p / tau_p + scale * y / 2)
        xi = np.sqrt(tau_z + z**2)
    return z, tau_z


def test_variational_is_algorithm_2():
    y, p, tau_p = np.meshgrid([-1.0, 1.0], np.linspace(-6, 6, 13), [0.01, 1.0, 50.0])
    likelihood = Logistic(1.7, "variational")
    mean, var = likelihood.posterior(y, p, tau_p)
    np.testing.assert_allclose((mean, var), algorithm_2(y, 1.7, p, tau_p), rtol=1e-9, atol=1e-9)
    (s, tau_s), log_partition = likelihood.evaluate(y, p, tau_p)
    np.testing.assert_allclose(s, (mean - p) / tau_p, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(tau_s, (1 - var / tau_p) / tau_p, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(log_partition, Logistic(1.7).log_partition(y, p, tau_p))


def test_variational_extremes_stay_finite():
    y, p, tau_p = np.meshgrid([-1.0, 1.0], [-1e6, -1.0, 0.0, 1.0, 1e6], np.logspace(-12, 12, 13))
    likelihood = Logistic(1.0, "variational")
    (s, tau_s), _ = likelihood.evaluate(y, p, tau_p)
    mean, var = likelihood.posterior(y, p, tau_p)
    assert all(np.all(np.isfinite(values)) for values in (s, tau_s, mean, var))
    assert np.all(var > 0)
    assert np.all(tau_s >= 0)


def test_the_variational_parameter_is_the_fixed_point_of_algorithm_2():
    """Plain repetition takes about sqrt(tau_p) steps; at 1e8 it was stopped far from the root."""
    for p, tau_p in ((0.3, 1e-3), (-40.0, 2.0), (-0.3, 1e4), (700.0, 1e6), (-5.0, 1e8)):

        def repeated(xi, p=p, tau_p=tau_p):
            tau_z = tau_p / (1 + tau_p * np.tanh(xi / 2) / (2 * xi))
            return np.hypot(np.sqrt(tau_z), tau_z * (p / tau_p + 0.5))

        root = brentq(lambda xi: repeated(xi) - xi, 1e-3, 2 * np.hypot(np.sqrt(tau_p), p), rtol=1e-14)
        found = logistic.variational_fit(1.0, p, tau_p, 1.0)
        assert found.xi == pytest.approx(root, rel=1e-9)
        assert found.moments.mean == pytest.approx(found.moments.var * (p / tau_p + 0.5), rel=1e-12)
