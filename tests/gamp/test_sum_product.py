"""Sum-product GAMP against posteriors that are known otherwise: sampled, or enumerated and integrated."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp, ndtr, ndtri

from mvpa_gamp.gamp import (
    Bernoulli,
    Design,
    Gaussian,
    Hinge,
    Laplace,
    Logistic,
    Probit,
    Robust,
    SolverSettings,
    solve,
)
from mvpa_gamp.gamp.iteration import resume
from mvpa_gamp.gamp.parameters import expand
from mvpa_gamp.gamp.result import FIXED_POINT
from mvpa_gamp.gamp.scalar_steps import Weights
from mvpa_gamp.gamp.starts import start_prior
from mvpa_gamp.gamp.stopping import bethe_free_energy

SETTLED = SolverSettings(stop="fixed-point", tol=1e-9)


def probit_samples(X, y, var, n_samples, rng):
    """Weights drawn from the posterior of probit regression: scores given weights, weights given scores."""
    cov = np.linalg.inv(X.T @ X + np.eye(X.shape[1]) / var)
    root, w = np.linalg.cholesky(cov), np.zeros(X.shape[1])
    drawn = np.empty((n_samples, w.size))
    for k in range(-200, n_samples):  # the first 200 forget the start
        margin = y * (X @ w)
        noisy = margin - ndtri(rng.random(len(y)) * ndtr(margin))  # N(margin, 1) given > 0
        w = cov @ (X.T @ (y * noisy)) + root @ rng.standard_normal(w.size)
        drawn[max(k, 0)] = w
    return drawn


@pytest.mark.parametrize(("n_rows", "n_features"), [(200, 30), (100, 60)])
@pytest.mark.parametrize("variance", ["full", "uniform"])
def test_probit_regression_agrees_with_sampling(n_rows, n_features, variance):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features))
    y = np.where(X @ (0.5 * rng.standard_normal(n_features)) + rng.standard_normal(n_rows) > 0, 1.0, -1.0)
    drawn = probit_samples(X, y, 0.25, 8000, rng)
    run = SolverSettings(stop="fixed-point", variance=variance)
    found = solve(Design(X), y, Probit(1.0), Gaussian(var=0.25), run)
    spread = drawn.std(axis=0)
    gap = (found.coef[:, 0] - drawn.mean(axis=0)) / spread
    # Measured 0.02 to 0.04 posterior standard deviations; sampling alone gives about 0.02.
    assert np.sqrt(np.mean(gap**2)) < 0.06 and np.abs(gap).max() < 0.2
    ratio = found.coef_var[:, 0] / spread**2  # full: 0.7 to 1.15, uniform: 0.7 to 1.35
    assert np.exp(np.abs(np.log(ratio))).max() < 1.6 and abs(np.log(ratio).mean()) < 0.1


def enumerated(X, y, rate, likelihood, n_nodes=41):
    """Posterior mean, inclusion probabilities and log-evidence, Bernoulli-Gaussian prior of variance 1.

    Every support is visited, and its weights are integrated by Gauss-Hermite quadrature.
    """
    nodes, mass = np.polynomial.hermite_e.hermegauss(n_nodes)
    log_mass = np.log(mass / np.sqrt(2 * np.pi))
    supports = np.array(list(itertools.product((0, 1), repeat=X.shape[1])))
    evidence, means = [], []
    for support in supports:
        grid = list(itertools.product(range(n_nodes), repeat=support.sum()))
        at = np.array(grid, dtype=int).reshape(len(grid), -1)
        w = np.zeros((len(grid), X.shape[1]))
        w[:, support == 1] = nodes[at]
        log_joint = log_mass[at].sum(axis=1) - likelihood.loss(y[:, None], X @ w.T).sum(axis=0)
        evidence.append(
            logsumexp(log_joint) + support.sum() * np.log(rate) + (1 - support).sum() * np.log(1 - rate)
        )
        means.append(np.exp(log_joint - logsumexp(log_joint)) @ w)
    share = np.exp(np.array(evidence) - logsumexp(evidence))
    return share @ np.array(means), share @ supports, logsumexp(evidence)


def energy(design, y, likelihood, prior, result):
    """Bethe free energy of a result."""
    models = expand(likelihood, 1), expand(prior, 1)
    state = resume(design, y[:, None], *models, result, SETTLED)
    return bethe_free_energy(state, y[:, None], design, *models)[0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("likelihood", [Logistic(), Probit(2.9)], ids=["logistic", "probit"])
def test_bernoulli_gaussian_posterior_agrees_with_enumeration(likelihood, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 3))
    y = np.where(X @ [1.0, 0.35, 0.0] + rng.logistic(size=60) > 0, 1.0, -1.0)
    prior, design = Bernoulli(0.3, Gaussian()), Design(X)
    mean, inclusion, log_evidence = enumerated(X, y, 0.3, likelihood)
    found = solve(design, y, likelihood, prior, SETTLED)
    assert found.status[0] == FIXED_POINT
    # Three features are far from the large-system limit; measured at most 0.02, 0.02 and 0.09.
    np.testing.assert_allclose(found.coef[:, 0], mean, atol=0.05)
    np.testing.assert_allclose(prior.inclusion(found.r, found.tau_r)[:, 0], inclusion, atol=0.05)
    assert energy(design, y, likelihood, prior, found) == pytest.approx(-log_evidence, abs=0.2)


@pytest.mark.parametrize("likelihood", [Logistic(), Hinge()], ids=["logistic", "hinge"])
@pytest.mark.parametrize("prior", [Bernoulli(0.2, Gaussian()), Laplace(2.0)], ids=["bernoulli", "laplace"])
def test_fixed_points_are_stationary_points_of_the_free_energy(likelihood, prior):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 30))
    y = np.where(X[:, :3].sum(axis=1) + rng.standard_normal(80) > 0, 1.0, -1.0)
    design, models = Design(X), (expand(likelihood, 1), expand(prior, 1))
    found = solve(design, y, likelihood, prior, SETTLED)
    state = resume(design, y[:, None], *models, found, SETTLED)

    def energy_at(r, tau_r):
        w, tau_w = prior.posterior(r, tau_r)
        moved = replace(state, weights=Weights(w, w, r, tau_r, found.pi), z=X @ w, tau_z=X**2 @ tau_w)
        return bethe_free_energy(moved, y[:, None], design, *models)[0]

    here = energy_at(found.r, found.tau_r)
    for _ in range(3):
        move, stretch = rng.standard_normal((2, 30, 1))
        for there in (
            lambda h, u=move: (found.r + h * u * np.sqrt(found.tau_r), found.tau_r),
            lambda h, u=stretch: (found.r, found.tau_r * np.exp(h * u)),
        ):
            slope = (energy_at(*there(1e-4)) - energy_at(*there(-1e-4))) / 2e-4
            # A step of 0.1 costs some hundredths; the slope is zero to the error of the differences.
            assert energy_at(*there(0.1)) + energy_at(*there(-0.1)) - 2 * here > 1e-3
            assert abs(slope) < 1e-6


def test_a_robust_likelihood_settles_though_its_free_energy_does_not_fall():
    # Rows with negative precision are cut to zero, so the fixed point lies beside the minimum.
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 30))
    y = np.where(X[:, :3].sum(axis=1) + rng.standard_normal(80) > 0, 1.0, -1.0)
    adaptive, constant = (
        solve(Design(X), y, Robust(Logistic(), 0.1), Gaussian(), SolverSettings(stop="fixed-point", **more))
        for more in ({}, {"adaptive": False, "damping": 0.3})
    )
    assert adaptive.status[0] == constant.status[0] == FIXED_POINT
    assert adaptive.n_iter[0] < 60
    np.testing.assert_allclose(adaptive.coef, constant.coef, atol=1e-3)


def folds(runs):
    return runs[:, None] != np.unique(runs)


@pytest.mark.parametrize("prior", ["bernoulli-gaussian", "gaussian"])
def test_fixed_points_exist_on_correlated_features(prior):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((120, 300))
    for j in range(1, 300):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.9**2) * X[:, j]
    y = np.where(X[:, ::60].sum(axis=1) + rng.standard_normal(120) > 0, 1.0, -1.0)
    design = Design(X, folds(np.arange(120) % 4))
    run = SolverSettings(stop="fixed-point", intercept=True)
    found = solve(design, y, Logistic(), start_prior(prior, design), run)
    assert (found.status == FIXED_POINT).all()


def test_fixed_points_exist_on_the_real_slice(haxby_slice):
    rows = np.isin(haxby_slice.conditions, ("cat", "scissors"))
    design = Design(haxby_slice.X[rows], folds(haxby_slice.runs[rows]))
    y = np.where(haxby_slice.conditions[rows] == "cat", 1.0, -1.0)
    run = SolverSettings(stop="fixed-point", intercept=True)
    found = solve(design, y, Probit(2.9), start_prior("bernoulli-gaussian", design), run)
    assert (found.status == FIXED_POINT).all()
