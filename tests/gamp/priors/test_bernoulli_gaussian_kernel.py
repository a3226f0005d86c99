"""The compiled Bernoulli-Gaussian step against the plain one, element by element and in a whole fit."""

import numpy as np
import pytest

from mvpa_gamp.gamp import (
    Bernoulli,
    Design,
    Gaussian,
    Laplace,
    Logistic,
    SolverSettings,
    batch,
    fit_em,
)
from mvpa_gamp.gamp.compiled import is_worth_it
from mvpa_gamp.gamp.parameters import expand
from mvpa_gamp.gamp.priors import bernoulli_gaussian_kernel
from mvpa_gamp.gamp.scalar_steps import Weights, step_function
from mvpa_gamp.gamp.starts import start_prior

N_COLUMNS = 3


def narrow(values):
    return np.asfortranarray(values, dtype=np.float32)


def weights_of(make, log_odds):
    """Weights whose inclusions are kept if every one of them has a rate of its own."""
    nothing = np.empty((0, N_COLUMNS), np.float32)
    return Weights(*(narrow(make()) for _ in range(4)), nothing if log_odds is None else narrow(make()))


def both_steps(prior, adjoint, precision, last=None, at=None, log_odds=None):
    """(new weights, contribution) of the plain and of the compiled step."""
    n_features = len(adjoint)
    at = at or slice(0, n_features)
    last = last or weights_of(lambda: np.zeros((at.stop, N_COLUMNS)), log_odds)
    mix = np.linspace(0.1, 1, N_COLUMNS).astype(np.float32)
    found = []
    for compiled in (False, True):
        new = weights_of(lambda: np.full((at.stop, N_COLUMNS), 7.0), log_odds)
        step = step_function(expand(prior, N_COLUMNS), "sum-product", compiled, log_odds)
        found.append((new, step(last, new, at, narrow(adjoint), narrow(precision), mix)))
    return found


def assert_same(plain, fused, rtol):
    (new, done), (new_fused, done_fused) = plain, fused
    for name, wanted, got in zip(new._fields, new, new_fused, strict=True):
        scale = np.abs(wanted).max(initial=0)
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=1e-6 * scale, err_msg=name)
    np.testing.assert_allclose(
        done_fused.tau_w, done.tau_w, rtol=10 * rtol, atol=1e-6 * np.abs(done.tau_w).max()
    )
    assert set(done.sums) == set(done_fused.sums)
    for name, wanted in done.sums.items():
        # The first moment may cancel: its error is measured by the second.
        scale = (
            np.sqrt(done.sums["slab.second"] * done.sums["slab.count"]) if name == "slab.first" else wanted
        )
        assert (np.abs(done_fused.sums[name] - wanted) <= 1e-5 * np.abs(scale) + 1e-30).all(), name
    np.testing.assert_allclose(done_fused.moved, done.moved, rtol=1e-5)


@pytest.mark.parametrize("mean", [0.0, 0.05])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_compiled_step_equals_the_plain_one(mean, scale):
    rng = np.random.default_rng(0)
    prior = Bernoulli(0.05, Gaussian(mean * scale, (0.1 * scale) ** 2))
    precision = rng.gamma(2.0, 150.0, (1000, N_COLUMNS)) / scale**2
    adjoint = rng.standard_normal(precision.shape) * 2 * np.sqrt(precision)
    last = weights_of(lambda: 0.1 * scale * rng.standard_normal(precision.shape), None)
    assert_same(*both_steps(prior, adjoint, precision, last), rtol=2e-5)


@pytest.mark.parametrize("at", [slice(0, 700), slice(300, 1000)], ids=["first block", "last block"])
def test_every_weight_may_have_a_rate_of_its_own(at):
    rng = np.random.default_rng(6)
    prior, n = Bernoulli(0.05, Gaussian(0.02, 0.01)), at.stop - at.start
    precision = rng.gamma(2.0, 150.0, (n, N_COLUMNS))
    adjoint = rng.standard_normal(precision.shape) * 2 * np.sqrt(precision)
    log_odds = narrow(rng.normal(-4, 3, (1000, N_COLUMNS)))
    plain, fused = both_steps(prior, adjoint, precision, at=at, log_odds=log_odds)
    assert_same(plain, fused, rtol=2e-5)
    new, done = fused
    np.testing.assert_allclose(new.pi[at].sum(axis=0), done.sums["slab.count"], rtol=1e-5)
    slab = prior.slab.posterior(new.r[at], new.tau_r[at]).mean
    np.testing.assert_allclose(new.w[at], new.pi[at] * slab, rtol=1e-5, atol=1e-7)
    assert (new.pi[: at.start] == 7.0).all()
    one_rate, _ = both_steps(prior, adjoint, precision, at=at)
    assert np.abs(one_rate[0].w[at] - new.w[at]).max() > 1e-3


def test_the_same_rate_everywhere_is_one_rate():
    rng = np.random.default_rng(7)
    precision = rng.gamma(2.0, 150.0, (600, N_COLUMNS))
    adjoint = rng.standard_normal(precision.shape) * 2 * np.sqrt(precision)
    prior = Bernoulli(0.05, Gaussian(0.0, 0.01))
    log_odds = narrow(np.full(precision.shape, np.log(0.05 / 0.95)))
    for one, local in zip(
        both_steps(prior, adjoint, precision),
        both_steps(prior, adjoint, precision, log_odds=log_odds),
        strict=True,
    ):
        for name in ("w", "r", "tau_r"):
            np.testing.assert_array_equal(getattr(one[0], name), getattr(local[0], name))


def test_the_python_that_is_compiled_says_the_same(monkeypatch):
    rng = np.random.default_rng(4)
    precision = rng.gamma(2.0, 150.0, (300, N_COLUMNS))  # more than one run of sums
    adjoint = rng.standard_normal(precision.shape) * 2 * np.sqrt(precision)
    python = bernoulli_gaussian_kernel._bernoulli_gaussian
    monkeypatch.setattr(bernoulli_gaussian_kernel, "_kernel", lambda: python)
    assert_same(*both_steps(Bernoulli(0.05, Gaussian(0.3, 0.01)), adjoint, precision), rtol=2e-5)


def test_a_block_is_written_to_its_own_features_only():
    rng = np.random.default_rng(1)
    precision = rng.gamma(2.0, 1.0, (50, N_COLUMNS))
    plain, fused = both_steps(
        Bernoulli(0.1, Gaussian()), rng.standard_normal((50, N_COLUMNS)), precision, at=slice(30, 80)
    )
    assert_same(plain, fused, rtol=2e-5)
    assert (fused[0].w[:30] == 7.0).all() and (fused[0].r[30:] != 7.0).all()


@pytest.mark.parametrize("rate", [1e-10, 0.5, 1 - 1e-7])
def test_extremes_stay_finite_and_close(rate):
    precision = np.repeat(10.0 ** np.arange(-30, 12, 2), 11)[:, None] * np.ones(N_COLUMNS)
    z = np.tile(np.array([0, 1e-3, 0.1, 1, 3, 5, 8, 13, 30, 100, 1e3]), len(precision) // 11)[:, None]
    with np.errstate(over="ignore", under="ignore"):
        plain, fused = both_steps(Bernoulli(rate, Gaussian(0.0, 0.3)), z * np.sqrt(precision), precision)
    assert all(np.isfinite(part).all() for part in (*fused[0], fused[1].tau_w))
    np.testing.assert_allclose(fused[0].w, plain[0].w, rtol=2e-4, atol=1e-6)
    assert (fused[1].tau_w >= 0).all()


def test_a_broken_column_breaks_alone():
    rng = np.random.default_rng(2)
    adjoint, precision = rng.standard_normal((40, N_COLUMNS)), rng.gamma(2.0, 1.0, (40, N_COLUMNS))
    adjoint[3, 1] = np.nan
    _, (new, done) = both_steps(Bernoulli(0.1, Gaussian()), adjoint, precision)
    assert np.isnan(new.w[3, 1]) and np.isnan(done.moved[:2, 1]).all()
    assert np.isfinite(new.w[:, [0, 2]]).all() and np.isfinite(done.moved[:, [0, 2]]).all()


def test_other_priors_take_the_plain_step():
    assert step_function(Laplace(), "sum-product", fused=True).__module__.endswith("scalar_steps")
    assert is_worth_it(10**7) and not is_worth_it(10**5)


def test_a_whole_fit_agrees_without_the_compiler(monkeypatch):
    rng = np.random.default_rng(3)
    n_rows, n_features = 60, 1 << 15
    X = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    y = np.where(np.arange(n_rows) % 2, 1.0, -1.0)
    X[:, :20] += y[:, None].astype(np.float32)
    train = np.arange(n_rows)[:, None] % 5 != np.arange(5)
    design = Design(X, train, center="train")
    settings = SolverSettings(max_iter=25, intercept=True)
    fits = {}
    for compiled in (True, False):
        monkeypatch.setattr(batch, "is_worth_it", lambda _, c=compiled: c)
        fits[compiled] = fit_em(design, y, Logistic(), start_prior("bernoulli-gaussian", design), settings)
    fused, plain = fits[True], fits[False]
    np.testing.assert_array_equal(fused.result.kept_iter, plain.result.kept_iter)
    np.testing.assert_allclose(fused.result.z, plain.result.z, atol=2e-3 * np.abs(plain.result.z).max())
    np.testing.assert_allclose(fused.prior.rate, plain.prior.rate, rtol=1e-3)


def test_the_step_in_float64_equals_the_plain_one_to_rounding():
    rng = np.random.default_rng(8)
    prior = expand(Bernoulli(0.05, Gaussian(0.02, 0.01)), N_COLUMNS)
    precision = np.asfortranarray(rng.gamma(2.0, 150.0, (300, N_COLUMNS)))
    adjoint = np.asfortranarray(rng.standard_normal(precision.shape) * 2 * np.sqrt(precision))
    adjoint[:3] *= 1e3
    log_odds = np.asfortranarray(rng.normal(-2, 1, precision.shape))
    mix, at = np.linspace(0.1, 1, N_COLUMNS), slice(0, 300)
    for odds in (None, log_odds):
        kept = np.empty((300 if odds is not None else 0, N_COLUMNS), order="F")
        last = Weights(*(np.asfortranarray(rng.standard_normal(precision.shape)) for _ in range(4)), kept)
        found = []
        for compiled in (False, True):
            new = Weights(*(np.zeros_like(part) for part in last))
            step = step_function(prior, "sum-product", compiled, odds)
            found.append((new, step(last, new, at, adjoint, precision, mix)))
        (new, done), (new_fused, done_fused) = found
        for wanted, got in zip((*new, done.tau_w), (*new_fused, done_fused.tau_w), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-14)
        for name, wanted in done.sums.items():
            np.testing.assert_allclose(done_fused.sums[name], wanted, rtol=1e-10)
        np.testing.assert_allclose(done_fused.moved, done.moved, rtol=1e-11)
