"""M-steps maximise what they claim to, climb the likelihood of the data, and respect columns and weights."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit

from mvpa_gamp.gamp.likelihoods import LIKELIHOODS, Hinge, Logistic, Probit, Robust
from mvpa_gamp.gamp.likelihoods.logistic import SCALE_RANGE, variational_fit
from mvpa_gamp.gamp.likelihoods.robust import FLIP_RANGE
from mvpa_gamp.gamp.likelihoods.scale_tuning import expected_slope, training_rows
from mvpa_gamp.gamp.parameters import expand, parameters, take, with_parameters


def simulate(likelihood, rows, seed, spread=2.0):
    """Gaussians N(p, tau_p) and labels drawn from them through a likelihood with predict_proba."""
    rng = np.random.default_rng(seed)
    p, tau_p = spread * rng.standard_normal((rows, 1)), rng.uniform(0.2, 2.0, (rows, 1))
    y = np.where(rng.random((rows, 1)) < likelihood.predict_proba(p, tau_p), 1.0, -1.0)
    return y, p, tau_p


def rescaled(likelihood, factor):
    values = parameters(likelihood)
    factors = {name: 0.5 if name in likelihood.shares else factor for name in likelihood.learnable}
    return with_parameters(likelihood, {name: factors[name] * values[name] for name in factors})


# Every registered likelihood that can learn, from starts that are too low and too high, and robust ones.
REGISTERED = [make() for make in LIKELIHOODS.values() if make().learnable]
LEARNERS = [
    *((rescaled(each, factor), each.learnable) for each in REGISTERED for factor in (0.2, 6.0)),
    *((Robust(each, 0.1), ("flip", *(f"base.{name}" for name in each.learnable))) for each in REGISTERED),
    (Logistic(30.0), ("scale",)),
    (Robust(Logistic(0.7), 0.2), ("flip", "base.scale")),
    (Robust(Probit(3.0), 0.05), ("base.var",)),
    (Robust(Probit(), 0.3), ("flip",)),
]


@pytest.mark.parametrize(("likelihood", "learn"), LEARNERS, ids=repr)
def test_every_step_climbs_the_likelihood_of_the_data(likelihood, learn):
    data = simulate(Logistic(2.0), 300, seed=0)
    values = [likelihood.log_partition(*data).sum()]
    for _ in range(4):
        likelihood = likelihood.em_update(*data, learn=learn)
        values.append(likelihood.log_partition(*data).sum())
    assert np.diff(values).min() > -1e-9
    assert values[1] > values[0] + 1e-3, "a start that is far off is left at once"


def test_maximises_the_expected_log_likelihood(learning):
    """Against adaptive quadrature of E[log p(y|z; new)] under the posterior of the present parameter."""
    likelihood = rescaled(learning, 0.3)
    for name in likelihood.learnable:
        _assert_maximised(likelihood, name)


def _assert_maximised(likelihood, name):
    y, p, tau_p = simulate(Logistic(1.0), 6, seed=1)
    tau_p[0], p[0], y[0] = 90.0, -4.0, 1.0  # a posterior much narrower than its Gaussian

    def expected(parameter):
        new = with_parameters(likelihood, {name: parameter})
        return sum(posterior_mean(lambda z, m=m: -new.loss(y[m], z)[0], m) for m in range(6))

    def posterior_mean(function, m):
        def joint(z):
            return np.exp(-likelihood.loss(y[m], z)[0] - (z - p[m, 0]) ** 2 / (2 * tau_p[m, 0]))

        ends = p[m, 0] - 9 * np.sqrt(tau_p[m, 0]), p[m, 0] + 9 * np.sqrt(tau_p[m, 0])
        kwargs = {"points": [0.0, 1.0, 4.0], "limit": 200, "epsabs": 1e-13, "epsrel": 1e-12}
        return quad(lambda z: function(z) * joint(z), *ends, **kwargs)[0] / quad(joint, *ends, **kwargs)[0]

    found = getattr(likelihood.em_update(y, p, tau_p, learn=[name]), name)[0]
    h = 1e-3 * found
    low, middle, high = expected(found - h), expected(found), expected(found + h)
    assert middle > max(low, high)
    offset = 0.5 * h * (low - high) / (low - 2 * middle + high)  # of the vertex of the parabola
    assert abs(offset) < 1e-4 * found  # 64 nodes are good to 1e-7 here, for heavy tails to 2e-5


@pytest.mark.parametrize(
    ("truth", "start", "learn", "within"),
    [
        (Logistic(2.0), Logistic(0.5), "scale", 0.3),
        (Probit(0.5), Probit(3.0), "var", 0.2),
    ],
    ids=["logistic", "probit"],
)
def test_recovers_a_known_parameter(truth, start, learn, within):
    """1,500 labels fix the parameters to about 0.1 and 0.07; the EM step contracts by about a half."""
    data = simulate(truth, 1500, seed=2)
    for _ in range(25):
        start = start.em_update(*data, learn=[learn])
    assert abs(getattr(start, learn)[0] - getattr(truth, learn)) < within


def test_recovers_a_known_flip_rate():
    y, p, tau_p = simulate(Logistic(2.0), 4000, seed=3, spread=4.0)
    y = np.where(np.random.default_rng(4).random(y.shape) < 0.15, -y, y)
    likelihood = Robust(Logistic(2.0), 0.01)
    for _ in range(40):
        likelihood = likelihood.em_update(y, p, tau_p)
    assert abs(likelihood.flip[0] - 0.15) < 0.02  # the standard error of a rate of 0.15 is 0.006


def test_flip_is_the_mean_probability_of_a_wrong_label():
    """p(wrong | y) = flip P*(-y) / (flip P*(-y) + (1 - flip) P*(y)) for a normalised base."""
    y, p, tau_p = simulate(Probit(), 50, seed=5)
    right = np.where(y > 0, Probit().predict_proba(p, tau_p), 1 - Probit().predict_proba(p, tau_p))
    wrong = 0.1 * (1 - right) / (0.1 * (1 - right) + 0.9 * right)
    np.testing.assert_allclose(
        Robust(Probit(), 0.1).em_update(y, p, tau_p).flip, wrong.mean(axis=0), rtol=1e-12
    )


def test_flip_stays_in_range():
    sure = np.full((10, 1), 40.0)
    assert Robust(Hinge(), 0.2).em_update(1.0, sure, 1.0).flip == FLIP_RANGE[0]
    assert Robust(Hinge(), 0.499).em_update(-1.0, sure, 1.0).flip == FLIP_RANGE[1]


def test_scale_stays_in_range():
    """Gaussians that leave no doubt about right (wrong) labels would send the scale to infinity (zero)."""
    sure, certain = np.full((10, 1), 5.0), np.full((10, 1), 1e-6)
    low, high = SCALE_RANGE
    assert Logistic().em_update(1.0, sure, certain, learn="scale").scale == pytest.approx(high)
    for moments in ("exact", "variational"):
        new = Logistic(1.0, moments).em_update(-1.0, sure, certain, learn="scale")
        assert new.scale == pytest.approx(low)


def test_variational_scale_solves_the_equation_of_the_paper():
    y, p, tau_p = simulate(Logistic(1.0), 200, seed=6)
    (z, _), _, xi = variational_fit(y, p, tau_p, 1.5)
    new = Logistic(1.5, "variational").em_update(y, p, tau_p, learn=["scale"]).scale
    equation = np.sum(0.5 * (z * y - xi) + xi * expit(-new * xi))
    assert abs(equation) < 1e-7


@pytest.mark.parametrize(
    ("likelihood", "learn"), [*LEARNERS, (Logistic(2.0, "variational"), ("scale",))], ids=repr
)
def test_columns_and_weights(likelihood, learn):
    """A column equals its own fit; rows of weight zero may hold anything; an empty column keeps its value.

    Every column starts at values of its own.
    """
    values, factors = parameters(likelihood), np.array([1.0, 0.5, 0.25, 0.7])
    likelihood = with_parameters(expand(likelihood, 4), {name: factors * values[name] for name in learn})
    rng = np.random.default_rng(7)
    y, p = rng.choice([-1.0, 1.0], (40, 4)), 2 * rng.standard_normal((40, 4))
    tau_p, weights = rng.uniform(0.1, 5.0, (40, 4)), (rng.random((40, 4)) < 0.7).astype(float)
    weights[:, 3] = 0.0
    unused = weights == 0
    dirty = (np.where(unused, junk, good) for junk, good in ((np.nan, y), (1e300, p), (np.nan, tau_p)))
    batched = likelihood.em_update(*dirty, learn=learn, weights=weights)
    for k in range(3):
        used = weights[:, k] > 0
        alone = take(likelihood, k).em_update(y[used, k], p[used, k], tau_p[used, k], learn=learn)
        np.testing.assert_allclose(_values(take(batched, k)), _values(alone), rtol=1e-9)
    np.testing.assert_allclose(_values(take(batched, 3)), _values(take(likelihood, 3)), rtol=1e-14)


def _values(model):
    return [float(value) for value in parameters(model).values()]


def test_nothing_to_learn_returns_the_same_object(likelihood):
    y, p, tau_p = simulate(Logistic(), 10, seed=8)
    assert likelihood.em_update(y, p, tau_p, learn=()) is likelihood
    if not likelihood.default_learn:
        assert likelihood.em_update(y, p, tau_p) is likelihood


def test_robust_learns_its_flip_rate_by_default(robust):
    y, p, tau_p = simulate(Logistic(), 10, seed=9)
    new = robust.em_update(y, p, tau_p)
    assert new.base == robust.base
    assert new.flip.shape == (1,)
    assert new.flip != robust.flip


def test_scale_tuning_is_for_log_concave_likelihoods():
    """Another one may have several peaks in its scale, of which a root of the slope finds any."""
    rows = training_rows(1.0, np.zeros((3, 1)), 1.0)
    with pytest.raises(
        ValueError, match=r"needs a log-concave likelihood, got Robust.* Write an M-step that"
    ):
        expected_slope(Robust(Logistic()), rows, 1.0, lambda g: (expit(-g), expit(g) * expit(-g)))
