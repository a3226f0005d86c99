"""Cavity score, Bethe free energy, uniform variances and sparse X."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from mvpa_gamp.gamp import Bernoulli, Design, Gaussian, Logistic, Probit, SolverSettings, fit_em, solve
from mvpa_gamp.gamp.iteration import resume
from mvpa_gamp.gamp.parameters import expand
from mvpa_gamp.gamp.stopping import bethe_free_energy


def problem(n_rows=300, n_features=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features)) / np.sqrt(n_rows)
    w = rng.standard_normal(n_features) * (rng.random(n_features) < 0.2) * 4
    return X, np.where(X @ w + 0.5 * rng.standard_normal(n_rows) > 0, 1.0, -1.0), w


def test_cavity_score_is_close_to_real_leave_one_out():
    X, y, _ = problem(80, 30)
    prior, likelihood = Gaussian(var=3.0), Probit(0.25)
    run = SolverSettings(stop="fixed-point")
    whole = solve(Design(X), y, likelihood, prior, run)
    left_out = ~np.eye(80, dtype=bool)
    each = solve(Design(X, left_out), y, likelihood, prior, run)
    rows = np.arange(80)
    real = likelihood.log_partition(y, each.p[rows, rows], each.tau_p[rows, rows]).mean()
    assert whole.cavity_score[0] == pytest.approx(real, abs=0.02)  # finite size: 80 rows


def test_bethe_free_energy_is_lowest_at_the_fixed_point():
    X, y, _ = problem()
    likelihood, prior = expand(Probit(0.25), 1), expand(Gaussian(var=3.0), 1)
    design, labels, run = Design(X), y[:, None], SolverSettings(stop="fixed-point", tol=1e-9)
    there = solve(design, y, likelihood, prior, run)
    state = resume(design, labels, likelihood, prior, there, run)

    def energy_at(shift):
        w = there.coef + shift
        # the posterior that has mean w under a Gaussian prior: r = w (var + tau_r) / var
        r = w * (3.0 + there.tau_r) / 3.0
        moved = replace(state, weights=state.weights._replace(w=w, r=r), z=X @ w)
        return bethe_free_energy(moved, labels, design, likelihood, prior)[0]

    here = energy_at(0.0)
    rng = np.random.default_rng(1)
    for _ in range(5):
        direction = rng.standard_normal((150, 1))
        # stationary: first order vanishes, second order is positive
        up, down = energy_at(1e-3 * direction), energy_at(-1e-3 * direction)
        assert abs(up - down) < 1e-2 * (up + down - 2 * here) and up + down > 2 * here


def test_uniform_variances_agree_with_full_ones_on_iid_features():
    X, y, w = problem(400, 200)
    prior = Bernoulli(0.2, Gaussian(var=16.0))
    full, uniform = (
        solve(Design(X), y, Probit(0.25), prior, SolverSettings(stop="fixed-point", variance=kind)).coef[:, 0]
        for kind in ("full", "uniform")
    )
    assert np.corrcoef(full, uniform)[0, 1] > 0.99
    assert np.corrcoef(full, w)[0, 1] > 0.9


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize("variance", ["full", "uniform"])
def test_sparse_x_gives_the_dense_result(form, variance):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((120, 90)) * (rng.random((120, 90)) < 0.2)
    y = np.where(X[:, :5].sum(axis=1) + 0.1 * rng.standard_normal(120) > 0, 1.0, -1.0)
    run = SolverSettings(intercept=True, variance=variance)
    dense, thin = (
        fit_em(Design(matrix, center=X.mean(axis=0)), y, Logistic(), Bernoulli(0.1, Gaussian()), run).result
        for matrix in (X, form(X))
    )
    np.testing.assert_allclose(thin.coef, dense.coef, atol=1e-8)
    np.testing.assert_allclose(thin.p, dense.p, atol=1e-8)
