"""Threads over blocks: as many as allowed, and never a different answer."""

from threading import Barrier

import numpy as np
import pytest

from mvpa_gamp import parallel
from mvpa_gamp.gamp import Bernoulli, Design, Gaussian, Logistic, SolverSettings, fit_em
from mvpa_gamp.methods import l1_logistic
from mvpa_gamp.methods.l1_solver import Settings


def test_the_environment_may_allow_fewer_threads_than_cores(monkeypatch):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    cores = parallel.allowed_threads()
    assert cores >= 1
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    assert parallel.allowed_threads() == 1
    for nonsense in ("0", "many", "-3", ""):
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", nonsense)
        assert parallel.allowed_threads() == cores
    monkeypatch.setenv("OMP_NUM_THREADS", str(cores + 7))
    assert parallel.allowed_threads() == cores


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
        monkeypatch.setattr(parallel, "allowed_threads", lambda count=count: count)
        settings = SolverSettings(max_iter=12, intercept=True)
        fits.append(fit_em(design, y, Logistic(), Bernoulli(0.01, Gaussian(0.0, 1e-2)), settings).result)
    for name in ("coef", "coef_var", "z", "tau_z", "p", "cavity_score"):
        np.testing.assert_array_equal(getattr(fits[0], name), getattr(fits[1], name), err_msg=name)


def test_the_l1_path_uses_the_allowed_threads_inside_a_limit_of_the_blas(monkeypatch):
    rng = np.random.default_rng(1)
    X, labels = rng.standard_normal((12, 30)), np.where(rng.random((90, 12)) < 0.5, -1.0, 1.0)
    labels[:, :2] = (-1.0, 1.0)
    lambdas = np.full((1, 90), 2.0)
    settings = Settings(tol=1e-4, max_iter=1000, fit_intercept=False)
    alone = l1_logistic.solve_path(X, labels, lambdas, settings)[0]
    everybody, one = Barrier(3, timeout=10), l1_logistic.solve_block  # 90 fits are three blocks

    def together(*given):
        everybody.wait()  # broken after ten seconds unless three threads are here at once
        return one(*given)

    monkeypatch.setattr(parallel, "allowed_threads", lambda: 3)
    monkeypatch.setattr(l1_logistic, "solve_block", together)
    with parallel.block_threads(1):  # as the commands do
        fits = l1_logistic.solve_path(X, labels, lambdas, settings)[0]
    np.testing.assert_array_equal(fits.decision, alone.decision)
