"""Sum-product steps of every registered prior, against quadrature in 30 digits and against each other."""

import numpy as np
import pytest

from mvpa_gamp.gamp.parameters import expand, parameters, take, with_parameters
from mvpa_gamp.gamp.priors import PRIORS, Bernoulli, ElasticNet, Gaussian, GaussianMixture, Laplace

UNEVEN = GaussianMixture(weights=(0.6, 0.3, 0.1), means=(0.0, 1.0, -3.0), variances=(0.01, 2.0, 0.5))
OTHERS = {
    "gaussian-off-centre": Gaussian(mean=0.5, var=0.2),
    "laplace-strong": Laplace(rate=30.0),
    "elastic-net-only-l2": ElasticNet(l1=0.0, l2=0.7),
    "elastic-net-only-l1": ElasticNet(l1=3.0, l2=0.0),
    "mixture-uneven": UNEVEN,
    "mixture-empty-component": GaussianMixture((1.0, 0.0), (0.0, 1.0), (1.0, 1.0)),
    "bernoulli-rare": Bernoulli(rate=1e-6, slab=Gaussian(var=1e-3)),
    "bernoulli-off-centre": Bernoulli(rate=0.3, slab=Gaussian(mean=2.0, var=0.5)),
    "bernoulli-laplace-strong": Bernoulli(rate=0.01, slab=Laplace(20.0)),
    "bernoulli-uneven": Bernoulli(rate=0.05, slab=UNEVEN),
    "bernoulli-never-zero": Bernoulli(rate=1.0, slab=Gaussian()),
}
RESCALED = {f"{name} x 4": make().scaled(4.0) for name, make in PRIORS.items() if not make().has_atom}
CASES = {**{name: make() for name, make in PRIORS.items()}, **RESCALED, **OTHERS}
every_prior = pytest.mark.parametrize("prior", CASES.values(), ids=CASES.keys())

# r over twelve decades and both signs, tau_r from 1e-6 to 50; some r of the size of the noise.
R = np.array([-20, -8, -2, -0.5, -1e-2, -1e-3, 1e-6, 1e-3, 2e-2, 0.3, 1, 4, 12, 20, -1e-5, 1e-9])
TAU = np.array([1e-6, 0.3, 50, 1e-2, 1e-4, 1e-6, 2, 30, 1e-3, 1e-2, 5, 50, 8, 1e-4, 1, 0.1])


@every_prior
def test_moments_match_quadrature(prior, exact):
    found = prior.posterior(R, TAU)
    log_partition, inclusion = prior.log_partition(R, TAU), prior.inclusion(R, TAU)
    for i, (r, tau) in enumerate(zip(R, TAU, strict=True)):
        truth = exact(prior, r, tau)
        # The components of a symmetric mixture cancel near r = 0: there the posterior scale sets the error.
        assert found.mean[i] == pytest.approx(truth.mean, rel=1e-9, abs=1e-15 * truth.var**0.5)
        assert found.var[i] == pytest.approx(truth.var, rel=1e-11)
        assert log_partition[i] == pytest.approx(truth.log_partition, rel=1e-12, abs=1e-12)
        assert inclusion[i] == pytest.approx(truth.inclusion, rel=1e-12)


@pytest.mark.parametrize("name", [name for name in CASES if "laplace" in name or "elastic" in name])
def test_statistics_match_quadrature(name, exact):
    prior = CASES[name]
    prefix = "slab." if isinstance(prior, Bernoulli) else ""
    for r, tau in zip(R[::3], TAU[::3], strict=True):
        _, sums = prior.expect(np.array([r]), np.array([tau]))
        truth = exact(prior, r, tau)
        assert sums[prefix + "abs"] == pytest.approx(truth.mean_abs, rel=1e-11)
        assert sums[prefix + "square"] == pytest.approx(truth.mean_square, rel=1e-11)
        assert sums[prefix + "count"] == pytest.approx(truth.inclusion, rel=1e-12)


@every_prior
@pytest.mark.parametrize("tau", [1e-3, 0.5, 20.0])
def test_moments_are_derivatives_of_the_log_partition(prior, tau):
    """mean = r + tau d/dr log Z and var = tau d/dr mean, by fourth-order differences."""
    r, h = np.linspace(-5, 5, 41), 1e-3 * np.sqrt(tau)

    def slope(f):
        return (8 * (f(r + h) - f(r - h)) - (f(r + 2 * h) - f(r - 2 * h))) / (12 * h)

    mean, var = prior.posterior(r, tau)
    # Differences of log Z carry rounding of about 1e-13 |log Z| / h, times tau.
    np.testing.assert_allclose(r + tau * slope(lambda x: prior.log_partition(x, tau)), mean, atol=1e-7)
    np.testing.assert_allclose(
        tau * slope(lambda x: prior.posterior(x, tau).mean), var, rtol=1e-6, atol=1e-11
    )


@every_prior
@pytest.mark.parametrize("dtype, r_decades, tau_decades", [(np.float64, 6, 12), (np.float32, 4, 8)])
def test_extremes_stay_finite(prior, dtype, r_decades, tau_decades):
    """No warning either: the test run turns warnings into errors."""
    size = np.concatenate([[0.0], 10.0 ** np.arange(-12, r_decades + 1)])
    r, tau = np.meshgrid(np.concatenate([-size, size]), 10.0 ** np.arange(-tau_decades, tau_decades + 1))
    r, tau = r.astype(dtype), tau.astype(dtype)
    (mean, var), sums = prior.expect(r, tau)
    log_partition, inclusion = prior.log_partition(r, tau), prior.inclusion(r, tau)
    for value in (mean, var, log_partition, inclusion):
        assert value.dtype == dtype and value.shape == r.shape and np.isfinite(value).all()
    assert (var > 0).all() and (inclusion > 0).all() and (inclusion <= 1).all()
    assert all(value.dtype == np.float64 and np.isfinite(value).all() for value in sums.values())
    prior.maximize(sums).posterior(r, tau)


@every_prior
def test_float32_agrees_with_float64(prior, rng):
    r, tau = rng.normal(scale=2, size=(200, 3)), rng.uniform(0.05, 3, size=(200, 3))
    narrow, narrow_sums = prior.expect(r.astype(np.float32), tau.astype(np.float32))
    wide, wide_sums = prior.expect(r, tau)
    np.testing.assert_allclose(narrow.mean, wide.mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(narrow.var, wide.var, rtol=1e-4)
    for name, value in wide_sums.items():
        np.testing.assert_allclose(narrow_sums[name], value, rtol=1e-4, atol=1e-4)


@every_prior
def test_results_do_not_depend_on_layout_or_batch(prior, rng):
    """Fortran blocks, broadcast tau_r, and per-column parameters equal one column, one element at a time."""
    r, tau = np.asfortranarray(rng.normal(size=(30, 4))), rng.uniform(0.1, 2, size=4)
    expected, expected_sums = prior.expect(r, np.tile(tau, (30, 1)))
    columns = expand(prior, 4)
    for model, tau_r in ((prior, tau[None]), (columns, tau), (columns, np.tile(tau, (30, 1)))):
        found, sums = model.expect(r, tau_r)
        np.testing.assert_allclose(found, expected, rtol=1e-13)
        assert found.var.shape == r.shape and found.var.flags.writeable
        for name, value in expected_sums.items():
            np.testing.assert_allclose(sums[name], value, rtol=1e-12, atol=1e-13)
    for b in range(4):
        one = take(columns, b)
        single = one.posterior(r[5, b], tau[b])
        assert single.mean.shape == ()
        np.testing.assert_allclose(single, [part[5, b] for part in expected], rtol=1e-13)
        np.testing.assert_allclose(one.inclusion(r[:, b], tau[b]), prior.inclusion(r, tau)[:, b], rtol=1e-13)


@every_prior
def test_inputs_are_left_alone(prior, rng):
    r, tau = rng.normal(size=(10, 2)), rng.uniform(0.1, 1, size=(10, 2))
    before = r.copy(), tau.copy()
    moments, _ = prior.expect(r, tau)
    moments.mean[:] = moments.var[:] = 0
    prior.log_partition(r, tau)
    np.testing.assert_array_equal((r, tau), before)


@pytest.mark.parametrize("name", PRIORS)
def test_one_value_per_column_equals_a_loop(name, rng):
    """Every column uses its own values, in steps, sums and updates."""
    wide, factors = expand(PRIORS[name](), 3), np.array([0.25, 0.5, 1.0])
    free = {key: value for key, value in parameters(wide).items() if not key.endswith("weights")}
    prior = with_parameters(wide, {key: factors * value for key, value in free.items()})
    r, tau = rng.normal(size=(30, 3)), rng.uniform(0.1, 2, size=(30, 3))
    found, learnt = prior.expect(r, tau), parameters(prior.em_update(r, tau, prior.learnable))
    for b in range(3):
        one, given = take(prior, b), (r[:, b], tau[:, b])
        moments, sums = one.expect(*given)
        np.testing.assert_allclose([part[:, b] for part in found[0]], moments, rtol=1e-13)
        np.testing.assert_allclose(prior.log_partition(r, tau)[:, b], one.log_partition(*given), rtol=1e-13)
        np.testing.assert_allclose(prior.inclusion(r, tau)[:, b], one.inclusion(*given), rtol=1e-13)
        for key, value in sums.items():
            np.testing.assert_allclose(found[1][key][..., b], value, rtol=1e-12, atol=1e-13)
        for key, value in parameters(one.em_update(*given, prior.learnable)).items():
            np.testing.assert_allclose(learnt[key][..., b], value, rtol=1e-9, err_msg=key)


def test_columns_with_their_own_parameters(rng):
    r, tau = rng.normal(size=(20, 2)), rng.uniform(0.1, 1, size=(20, 2))
    both = Bernoulli(
        rate=np.array([0.1, 0.7]), slab=ElasticNet(l1=np.array([0.0, 3.0]), l2=np.array([2.0, 0.0]))
    )
    mixed = both.posterior(r, tau)
    for b, single in enumerate((Bernoulli(0.1, ElasticNet(0.0, 2.0)), Bernoulli(0.7, ElasticNet(3.0, 0.0)))):
        np.testing.assert_allclose(
            [part[:, b] for part in mixed], single.posterior(r[:, b], tau[:, b]), rtol=1e-14
        )


def test_special_cases_of_the_elastic_net_are_exact(rng):
    r, tau = rng.normal(scale=3, size=200), 10 ** rng.uniform(-6, 2, size=200)
    for special, plain in (
        (ElasticNet(0.0, 0.7), Gaussian(var=1 / 1.4)),
        (ElasticNet(3.0, 0.0), Laplace(3.0)),
    ):
        np.testing.assert_allclose(special.posterior(r, tau), plain.posterior(r, tau), rtol=1e-14)
        np.testing.assert_allclose(special.prox(r, tau), plain.prox(r, tau), rtol=1e-14)
        np.testing.assert_allclose(
            special.log_partition(r, tau), plain.log_partition(r, tau), rtol=1e-12, atol=1e-13
        )


@pytest.mark.parametrize(
    "prior", [Laplace(1.0), Laplace(50.0), ElasticNet(1e-3, 1.0), ElasticNet(200.0, 5.0)], ids=repr
)
def test_mean_keeps_its_digits_near_zero(prior):
    """The mean is odd with slope var / tau_r at 0, however small r and however strong the pull to zero."""
    r, tau = 10.0 ** np.arange(-15, -6, 0.25), np.array([[1e-3], [1.0], [40.0]])
    slope = prior.posterior(0.0, tau).var / tau
    # The next term of the series is relatively (r / scale)^2, the scale being at least that of the prior.
    scale = np.sqrt(prior.posterior(0.0, 1e12).var)
    found = prior.posterior(r, tau).mean
    assert (np.abs(found / (slope * r) - 1) < 2e-10 + 10 * (r / np.minimum(scale, np.sqrt(tau))) ** 2).all()
    np.testing.assert_array_equal(prior.posterior(-r, tau).mean, -found)


def test_one_component_is_a_gaussian_and_rate_one_is_the_slab(rng):
    r, tau = rng.normal(size=50), rng.uniform(0.01, 5, size=50)
    gaussian = Gaussian(mean=0.3, var=2.0)
    for same in (GaussianMixture([1.0], [0.3], [2.0]), Bernoulli(1.0, gaussian)):
        np.testing.assert_allclose(same.posterior(r, tau), gaussian.posterior(r, tau), rtol=1e-13)
        np.testing.assert_allclose(same.log_partition(r, tau), gaussian.log_partition(r, tau), rtol=1e-13)


def test_tiny_inclusion_probabilities_keep_their_digits():
    """r = 0 under a slab far away: P(w != 0) is about exp(-320)."""
    prior = Bernoulli(rate=1e-6, slab=Gaussian(mean=8.0, var=0.05))
    log_odds = np.log(1e-6 / (1 - 1e-6)) - 64 / (2 * 0.1) + 0.5 * np.log(0.05 / 0.1)
    assert prior.inclusion(0.0, 0.05) == pytest.approx(np.exp(log_odds), rel=1e-12)


def test_a_narrow_prior_off_centre_stays_at_its_mean_in_float32():
    """Variances of 1e-30 and tau_r of 1e30: their ratio underflows, and the mean was lost with it."""
    r, tau_r = np.float32([[3e14, -3e14]]), np.float32([[1e30, 1e30]])
    mean, var = Gaussian(mean=-1000.0, var=1e-30).posterior(r, tau_r)
    np.testing.assert_allclose(mean, -1000.0)
    np.testing.assert_allclose(var, 1e-30, rtol=1e-6)
    with np.errstate(all="raise", under="ignore"):
        inclusion = Bernoulli(0.2, Gaussian(mean=-1000.0, var=1e-30)).inclusion(r, tau_r)
    np.testing.assert_allclose(inclusion, 0.2, rtol=1e-5)
