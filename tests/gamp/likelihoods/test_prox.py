"""Proximal steps against a fine grid, against their optimality condition and against each other."""

import mpmath as mp
import numpy as np
import pytest

from mvpa_gamp.gamp.likelihoods import Hinge, Logistic, Probit, Robust, probit
from mvpa_gamp.gamp.likelihoods.scale_tuning import increasing_root

WIDTHS = {"Logistic": lambda m: 1 / m.scale, "Probit": lambda m: np.sqrt(m.var), "Hinge": lambda m: 1.0}


@pytest.fixture
def likelihood(proximal):
    """Those without max-sum steps have nothing to test here."""
    return proximal


def points(seed, size=60):
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], size)
    return y, y * rng.uniform(-30, 12, size) * rng.choice([0.1, 1.0], size), 10 ** rng.uniform(-4, 3, size)


def cost(likelihood, y, u, p, tau_p):
    return likelihood.loss(y, u) + np.square(u - p) / (2 * tau_p)


def test_is_the_minimum_on_a_fine_grid(likelihood):
    y, p, tau_p = points(0)
    u = likelihood.prox(y, p, tau_p).mean
    assert np.all(y * (u - p) >= -1e-15 * np.abs(p)), "the loss pulls towards the label"
    reach = np.abs(u - p) + 3 * np.sqrt(tau_p) + 1
    grid = p + reach * np.linspace(-1, 1, 40001)[:, None]
    best = cost(likelihood, y, grid, p, tau_p).min(axis=0)
    assert np.all(cost(likelihood, y, u, p, tau_p) <= best * (1 + 1e-13) + 1e-13)


def test_meets_the_optimality_condition(likelihood):
    """(u - p)/tau_p = -loss'(u), or between the two slopes of a kink."""
    y, p, tau_p = points(1)
    u = likelihood.prox(y, p, tau_p).mean
    pull = likelihood.loss_slopes(y, u).s
    at_kink = np.isin(y * u, likelihood.kinks)
    rounding = 1e-13 * (np.abs(p) + tau_p * np.abs(pull))
    assert np.all((np.abs(u - p - tau_p * pull) <= rounding) | at_kink)
    assert np.all((y * (u - p) <= tau_p * np.abs(pull) + rounding) | ~at_kink)


def test_score_and_point_tell_the_same(likelihood):
    y, p, tau_p = points(2)
    (u, var), (s, tau_s) = likelihood.prox(y, p, tau_p), likelihood.prox_score(y, p, tau_p)
    np.testing.assert_allclose(p + tau_p * s, u, rtol=1e-12, atol=1e-12)
    slope = np.maximum(1 - tau_p * tau_s, 0)
    np.testing.assert_allclose(var, tau_p * slope, rtol=1e-9, atol=1e-12 * tau_p.max())


def test_slope_is_the_derivative_of_the_point(likelihood):
    y, p, tau_p = points(3)
    h = 1e-6 * np.sqrt(tau_p)
    before, u, after = (likelihood.prox(y, p + shift, tau_p) for shift in (-h, 0 * h, h))
    smooth = np.abs(after.mean - before.mean) < 1e-3 * np.sqrt(tau_p)  # no jump between two minima inside
    slope = (after.mean - before.mean) / (2 * h)
    np.testing.assert_allclose((u.var / tau_p)[smooth], slope[smooth], rtol=1e-3, atol=1e-6)
    assert smooth.mean() > 0.95


def high_precision_prox(pull, x, t):
    """u = x + t pull(u) by bisection in 40 digits, pull positive and decreasing."""
    with mp.workdps(40):
        low, high = mp.mpf(x), mp.mpf(x) + t * pull(mp.mpf(x))
        for _ in range(150):
            middle = (low + high) / 2
            low, high = (middle, high) if middle < x + t * pull(middle) else (low, middle)
        return float(low), float(pull(low))


@pytest.mark.parametrize("kind", ["logistic", "probit"])
def test_digits(kind):
    """Point and score to 1e-12, the score also where it is 1e-100."""
    likelihood = {"logistic": Logistic(3.0), "probit": Probit(0.2)}[kind]
    pull = {
        "logistic": lambda u: 3 / (1 + mp.exp(3 * u)),
        "probit": lambda u: mp.npdf(u / mp.sqrt(0.2)) / (mp.erfc(-u / mp.sqrt(0.4)) / 2) / mp.sqrt(0.2),
    }[kind]
    x, t = (a.ravel() for a in np.meshgrid([-30.0, -2.0, 0.3, 4.0, 15.0], [1e-4, 0.5, 30.0, 1e3]))
    want_u, want_s = np.array([high_precision_prox(pull, *pair) for pair in zip(x, t, strict=True)]).T
    np.testing.assert_allclose(likelihood.prox(1.0, x, t).mean, want_u, rtol=1e-12)
    np.testing.assert_allclose(likelihood.prox_score(-1.0, -x, t).s, -want_s, rtol=1e-11)


def test_hinge_slope_is_zero_on_the_kink():
    p = np.array([-3.0, -1.0, 0.0, 1.0, 2.0])  # tau_p = 2 pulls -1 exactly onto the kink
    u, var = Hinge().prox(1.0, p, 2.0)
    np.testing.assert_array_equal(u, [-1.0, 1.0, 1.0, 1.0, 2.0])
    np.testing.assert_array_equal(var, [2.0, 0.0, 0.0, 0.0, 2.0])
    s, tau_s = Hinge().prox_score(-1.0, -p, 2.0)
    np.testing.assert_array_equal(s, [-1.0, -1.0, -0.5, 0.0, 0.0])
    np.testing.assert_array_equal(tau_s, [0.0, 0.5, 0.5, 0.5, 0.0])


@pytest.mark.parametrize("flip", [0.0, 1e-6, 0.05, 0.4])
@pytest.mark.parametrize("base", [Logistic(), Logistic(20.0), Probit(), Hinge()], ids=repr)
def test_robust_finds_the_lower_of_two_minima(base, flip):
    """Where the loss is steeper than the parabola: widths and depths on both sides of the jump."""
    likelihood, width = Robust(base, flip), WIDTHS[type(base).__name__](base)
    p, tau_p = (
        a.ravel() for a in np.meshgrid(np.linspace(-25, 3, 29) * width, np.logspace(-1, 3, 9) * width**2)
    )
    u, _ = likelihood.prox(1.0, p, tau_p)
    high = base.prox(1.0, p, tau_p).mean
    grid = np.concatenate([p + (high - p) * np.linspace(0, 1, 4001)[:, None], np.ones((1, p.size))])
    values = cost(likelihood, 1.0, grid, p, tau_p)
    excess = cost(likelihood, 1.0, u, p, tau_p) - values.min(axis=0)
    assert np.all(excess <= 1e-13 * np.maximum(1, values.min(axis=0)))


def test_robust_over_hinge_stays_on_the_kink_with_slope_zero():
    u, var = Robust(Hinge(), 0.01).prox(-1.0, np.array([-0.2, 0.5]), 2.0)
    np.testing.assert_array_equal(u, [-1.0, -1.0])
    np.testing.assert_array_equal(var, 0.0)
    s, tau_s = Robust(Hinge(), 0.01).prox_score(-1.0, np.array([-0.2, 0.5]), 2.0)
    np.testing.assert_allclose(s, [-0.4, -0.75])
    np.testing.assert_array_equal(tau_s, 0.5)


def test_robust_without_flips_is_the_base(plain):
    y, p, tau_p = points(5)
    for step in ("posterior", "score", *(("prox", "prox_score") if "max-sum" in plain.modes else ())):
        same = getattr(Robust(plain, 0.0), step)(y, p, tau_p)
        np.testing.assert_allclose(
            same, getattr(plain, step)(y, p, tau_p), rtol=1e-9, atol=1e-12, err_msg=step
        )


def test_root_finding_survives_flat_and_kinked_functions():
    low, high = np.full(4, -1e12), np.full(4, 1e12)
    target = np.array([-3e5, 0.0, 1e-9, 7.0])
    step = increasing_root(lambda x: (np.sign(x - target), np.zeros(4)), low, high, np.zeros(4))
    np.testing.assert_allclose(step, target, rtol=1e-14, atol=1e-14)
    cubic = increasing_root(lambda x: ((x - target) ** 3, 3 * (x - target) ** 2), low, high, np.zeros(4))
    np.testing.assert_allclose(cubic, target, rtol=1e-6, atol=1e-6)  # a triple root has a third of the digits
    outside = increasing_root(lambda x: (x - 5.0, np.ones(4)), low, np.full(4, 2.0), np.zeros(4))
    np.testing.assert_allclose(outside, 2.0)


def test_a_steep_probit_takes_a_few_steps(monkeypatch):
    """At tau_p / var = 1e60 Newton's method from the left alone was not there after 200 steps."""
    seen = []

    def counting(evaluate, *given):
        seen.append(0)

        def counted(g):
            seen[-1] += 1
            return evaluate(g)

        return increasing_root(counted, *given)

    monkeypatch.setattr(probit, "increasing_root", counting)
    rng = np.random.default_rng(0)
    tau_p = 10 ** rng.uniform(-3, 30, 500)
    p = rng.standard_normal(500) * tau_p ** rng.uniform(0, 1, 500)
    for var in (1.0, 1e-30):
        u = Probit(var).prox(1.0, p, tau_p).mean
        at = (u > 0) & (u > 1.01 * p)  # where the optimality condition does not cancel
        assert np.count_nonzero(at) > 200
        slope = Probit(var).loss_slopes(1.0, u[at])[0]
        np.testing.assert_allclose(u[at] - p[at], tau_p[at] * slope, rtol=1e-7)
    assert max(seen) <= 8
