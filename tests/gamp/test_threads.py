"""Threads over blocks: as many as allowed, and never a different answer."""

import numpy as np
import pytest

from mvpa_gamp.gamp import Bernoulli, Design, Gaussian, Logistic, SolverSettings, fit_em, threads


def test_the_environment_may_allow_fewer_threads_than_cores(monkeypatch):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    cores = threads.allowed_threads()
    assert cores >= 1
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    assert threads.allowed_threads() == 1
    for nonsense in ("0", "many", "-3", ""):
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", nonsense)
        assert threads.allowed_threads() == cores
    monkeypatch.setenv("OMP_NUM_THREADS", str(cores + 7))
    assert threads.allowed_threads() == cores


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_number_of_threads_does_not_change_a_bit(monkeypatch, dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 60_000)).astype(dtype)
    y = np.where(np.arange(50) % 2, 1.0, -1.0)
    X[:, :10] += y[:, None].astype(dtype)
    design = Design(X, np.arange(50)[:, None] % 5 != np.arange(3), center="train")
    assert design.n_blocks >= 6
    fits = []
    for count in (1, 3):
        monkeypatch.setattr(threads, "allowed_threads", lambda count=count: count)
        settings = SolverSettings(max_iter=12, intercept=True)
        fits.append(fit_em(design, y, Logistic(), Bernoulli(0.01, Gaussian(0.0, 1e-2)), settings).result)
    for name in ("coef", "coef_var", "z", "tau_z", "p", "cavity_score"):
        np.testing.assert_array_equal(getattr(fits[0], name), getattr(fits[1], name), err_msg=name)
