"""Expectation maximisation of every registered prior in the scalar channel r = w + N(0, tau_r)."""

import numpy as np
import pytest

from mvpa_gamp.gamp.parameters import expand, parameters, take, with_parameters
from mvpa_gamp.gamp.priors import PRIORS, Bernoulli, ElasticNet, Gaussian, GaussianMixture, Laplace

every_prior = pytest.mark.parametrize("prior", [make() for make in PRIORS.values()], ids=PRIORS.keys())


@pytest.fixture
def data(rng):
    """Sparse, skewed weights seen through noise: (300, 2) r and tau_r."""
    w = rng.normal(0.4, 1.2, size=(300, 2)) * (rng.random((300, 2)) < 0.4)
    tau = rng.uniform(0.02, 0.5, size=w.shape)
    return w + np.sqrt(tau) * rng.normal(size=w.shape), tau


def log_likelihood(prior, r, tau):
    return prior.log_partition(r, tau).sum(axis=0)


@every_prior
def test_likelihood_never_falls(prior, data):
    """From a start far off, by all that a column learns by default: the first step is a clear gain."""
    r, tau = data
    prior = expand(prior.scaled(5.0), 2)
    values = [log_likelihood(prior, r, tau)]
    for _ in range(25):
        prior = prior.em_update(r, tau)
        values.append(log_likelihood(prior, r, tau))
    assert (np.diff(values, axis=0) > -1e-9).all()
    assert (values[1] > values[0] + 1e-3).all()


@every_prior
def test_statistics_add_over_blocks_and_weights_drop_rows(prior, data):
    r, tau = data
    _, whole = prior.expect(r, tau)
    parts = [prior.expect(r[rows], tau[rows])[1] for rows in (slice(0, 90), slice(90, 300))]
    keep = np.arange(300) % 3 > 0
    _, weighted = prior.expect(r, tau, weights=np.broadcast_to(keep[:, None].astype(float), r.shape))
    _, dropped = prior.expect(r[keep], tau[keep])
    for name, value in whole.items():
        np.testing.assert_allclose(sum(part[name] for part in parts), value, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(weighted[name], dropped[name], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(whole["count"], [300.0, 300.0])


@every_prior
def test_em_update_is_maximize_after_expect(prior, data):
    r, tau = data
    for learn in (None, prior.learnable, prior.learnable[:1], ()):
        direct = parameters(prior.em_update(r, tau, learn))
        for name, value in parameters(prior.maximize(prior.expect(r, tau)[1], learn)).items():
            np.testing.assert_array_equal(direct[name], value)
            if learn is not None and name not in learn:
                np.testing.assert_array_equal(value, parameters(prior)[name])


def expected_log_likelihood(new, old, r, tau):
    """E[log p(w, choice; new) | r; old] summed over r, on a fine grid: what the M-step should maximise.

    ``new`` and ``old`` are lists of hidden choices, see ``branches``.
    """
    grid = np.linspace(-9, 9, 6001)[:, None]
    noise = -0.5 * ((grid - r) ** 2 / tau + np.log(2 * np.pi * tau))
    mass, gain = 0.0, 0.0
    for (old_mass, density), (new_mass, new_density) in zip(old, new, strict=True):
        if density is None:
            atom = old_mass * np.exp(-0.5 * (r**2 / tau + np.log(2 * np.pi * tau)))
            mass, gain = mass + atom, gain + atom * np.log(new_mass)
            continue
        # tau = 1e-30 turns the log-partition into the log-density of the prior itself.
        joint = old_mass * np.exp(density(grid, 1e-30) + noise) * (grid[1] - grid[0])
        mass = mass + joint.sum(axis=0)
        gain = gain + (joint * (np.log(new_mass) + new_density(grid, 1e-30))).sum(axis=0)
    return (gain / mass).sum()


def moved(prior, name, at, by):
    """The prior with one number of a parameter moved; shares of a mixture still sum to one."""
    value = np.array(parameters(prior)[name], dtype=float)
    value[at] += by
    if name.endswith("weights"):
        value /= value.sum(axis=0)
    return with_parameters(prior, {name: value})


CASES = {name: make() for name, make in PRIORS.items()}
CASES |= {"elastic net, wide": ElasticNet(0.5, 0.3), "gaussian off centre": Gaussian(0.1, 0.8)}


@pytest.mark.parametrize("case", CASES)
def test_m_step_maximises_the_expected_log_likelihood(case, branches):
    """All that can be learnt together, and each parameter alone."""
    prior = CASES[case]
    # Tails between Gaussian and Laplace: an elastic net has both parameters inside its range.
    r, tau = np.array([-2.2, -0.3, 0.1, 0.3, 0.7, 1.9]), np.full(6, 0.1)

    def gain(new):
        return expected_log_likelihood(branches(new), branches(prior), r, tau)

    for learn in (prior.learnable, *((name,) for name in prior.learnable if len(prior.learnable) > 1)):
        found = take(prior.em_update(r[:, None], tau[:, None], learn), 0)
        for name in learn:
            for at in np.ndindex(np.shape(parameters(found)[name])):
                _assert_maximised(gain, found, name, at)


def _assert_maximised(gain, found, name, at):
    """The M-step went to the vertex of the parabola through three values, or to the end of a range."""
    size = abs(float(np.asarray(parameters(found)[name])[at]))
    h = 2e-3 * max(size, 0.1)
    middle, high = (gain(moved(found, name, at, by)) for by in (0.0, h))
    if size == 0 and not name.endswith("mean"):
        assert middle >= high, name
        return
    low = gain(moved(found, name, at, -h))
    assert middle > max(low, high), name
    offset = 0.5 * h * (low - high) / (low - 2 * middle + high)
    assert abs(offset) < 0.05 * h, name


def test_elastic_net_updates_stop_at_their_special_cases():
    """Sums heavier-tailed than a Laplace give l2 = 0, lighter-tailed than a Gaussian l1 = 0."""
    sums = {"count": np.array([1.0, 1.0, 1.0]), "abs": np.ones(3), "square": np.array([2.5, 1.2, 1.8])}
    both = ElasticNet().maximize(sums)
    np.testing.assert_allclose(both.l1[:2], [1.0, 0.0])
    np.testing.assert_allclose(both.l2[:2], [0.0, 1 / 2.4])
    assert both.l1[2] > 0 and both.l2[2] > 0
    assert ElasticNet(1.0, 5.0).maximize(sums, ["l1"]).l1.tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(ElasticNet(1.0, 0.0).maximize(sums, ["l1"]).l1, 1.0)
    assert ElasticNet(2.0, 1.0).maximize(sums, ["l2"]).l2.tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(ElasticNet(0.0, 1.0).maximize(sums, ["l2"]).l2, 0.5 / sums["square"])


@pytest.mark.parametrize("l1, l2", [(1.0, 1.0), (0.01, 3.0), (30.0, 1e-2), (1e-4, 1e-4), (1e3, 10.0)])
def test_elastic_net_update_inverts_its_moments(l1, l2):
    """The posterior under no data (huge tau_r) is the prior, whose own sums must give it back."""
    prior = ElasticNet(l1, l2)
    _, sums = prior.expect(np.zeros((1, 1)), 1e30)
    for learn in (("l1", "l2"), ("l1",), ("l2",)):
        found = prior.maximize(sums, learn)
        np.testing.assert_allclose(found.l1, l1, rtol=1e-6)
        # Far in the Laplace regime l2 changes the moments by parts in l1^2 / (2 l2) only.
        np.testing.assert_allclose(found.l2, l2, rtol=1e-13 * max(1, l1**2 / l2) ** 1.5 + 1e-7)


RECOVERED = {
    "gaussian": Gaussian(0.0, 0.5),
    "laplace": Laplace(3.0),
    "gaussian-mixture": GaussianMixture((0.5, 0.3, 0.2), (-2.0, 0.1, 1.5), (0.1, 0.05, 0.2)),
    "bernoulli-gaussian": Bernoulli(0.05, Gaussian(0.0, 2.0)),
    "bernoulli-laplace": Bernoulli(0.2, Laplace(0.7)),
}


def draw(prior, size, rng):
    if isinstance(prior, Bernoulli):
        return draw(prior.slab, size, rng) * (rng.random(size) < prior.rate)
    if isinstance(prior, GaussianMixture):
        which = rng.choice(len(prior.weights), size=size, p=prior.weights)
        return prior.means[which] + np.sqrt(prior.variances[which]) * rng.normal(size=size)
    if isinstance(prior, Laplace):
        return rng.laplace(scale=1 / prior.rate, size=size)
    return prior.mean + np.sqrt(prior.var) * rng.normal(size=size)


@pytest.mark.parametrize("name", RECOVERED)
def test_em_recovers_the_parameters_of_simulated_weights(name, rng):
    truth, prior = RECOVERED[name], PRIORS[name]()
    n = 20_000
    tau = rng.uniform(0.01, 0.1, size=(n, 1))
    r = draw(truth, (n, 1), rng) + np.sqrt(tau) * rng.normal(size=(n, 1))
    for _ in range(150):
        prior = prior.em_update(r, tau)
    # About four standard errors of the least certain parameter (1000 non-zero weights).
    for key, value in parameters(truth).items():
        np.testing.assert_allclose(np.squeeze(parameters(prior)[key]), value, rtol=0.15, atol=0.02)
    assert log_likelihood(prior, r, tau) >= log_likelihood(truth, r, tau) - 0.5


def test_elastic_net_reaches_the_best_likelihood_it_can(rng):
    """l1 and l2 trade off, so the likelihood is compared and not the parameters."""
    truth = ElasticNet(1.5, 0.5)
    w = rng.laplace(scale=1 / 1.5, size=80_000)
    w = w[rng.random(w.size) < np.exp(-0.5 * w**2)][:20_000, None]
    r = w + 0.2 * rng.normal(size=w.shape)
    prior = ElasticNet(1.0, 1.0)
    for _ in range(60):
        prior = prior.em_update(r, 0.04)
    assert log_likelihood(prior, r, 0.04) > log_likelihood(truth, r, 0.04) - 0.5
    np.testing.assert_allclose([*prior.l1, *prior.l2], [1.5, 0.5], rtol=0.15)


@every_prior
def test_a_failed_or_empty_column_keeps_its_parameters(prior, data):
    r, tau = data
    r = r.copy()
    r[5, 1] = np.nan
    old = expand(prior, 2)
    new = parameters(old.em_update(r, tau))
    alone = parameters(old.em_update(data[0], tau))
    for name, value in parameters(old).items():
        np.testing.assert_array_equal(new[name][..., 1], value[..., 1])
        np.testing.assert_array_equal(new[name][..., 0], alone[name][..., 0])
    empty = parameters(old.em_update(data[0], tau, weights=np.zeros_like(tau)))
    for name, value in parameters(old).items():
        np.testing.assert_allclose(empty[name], value, rtol=1e-15)


@every_prior
def test_learning_from_nothing_but_zeros_never_degenerates(prior):
    r, tau = np.zeros((50, 1)), np.full((50, 1), 1e-9)
    for _ in range(60):
        prior = prior.em_update(r, tau)
    mean, var = prior.posterior(np.array([[0.0], [1.0]], dtype=np.float32), 0.1)
    assert np.isfinite(mean).all() and (var > 0).all()
    assert all(np.isfinite(value).all() for value in parameters(prior).values())


def test_rate_stays_off_its_ends_and_an_unused_slab_stands_still():
    sums = {"count": np.array([10.0, 10.0]), "slab.count": np.array([0.0, 10.0])}
    sums |= {"slab.first": np.zeros(2), "slab.second": np.array([0.0, 7.0])}
    new = Bernoulli(0.1, Gaussian(0.0, 3.0)).maximize(sums)
    np.testing.assert_allclose(new.rate, [1e-10, 1 - 1e-10], rtol=1e-12)
    np.testing.assert_allclose(new.slab.var, [3.0, 0.7])


def test_laplace_rate_is_count_over_summed_size(data):
    r, tau = data
    _, sums = Laplace(2.0).expect(r, tau)
    np.testing.assert_allclose(Laplace(2.0).maximize(sums).rate, 300 / sums["abs"], rtol=1e-14)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"Gaussian cannot learn 'rate'; it can learn 'mean', 'var'."):
        Gaussian().em_update(np.zeros((2, 1)), 1.0, learn=["rate"])
    with pytest.raises(ValueError, match=r"Bernoulli cannot learn 'var'; it can learn 'rate', 'slab.mean'"):
        Bernoulli().maximize({}, "var")
