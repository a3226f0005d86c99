"""State evolution against independent fixed points, brute-force integrals and the solver itself."""

from dataclasses import fields

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.special import expit, ndtr
from scipy.stats import laplace, norm

from mvpa_gamp.gamp import (
    Bernoulli,
    Design,
    ElasticNet,
    Gaussian,
    GaussianMixture,
    Hinge,
    Laplace,
    Logistic,
    Probit,
    Robust,
    SolverSettings,
    StateEvolution,
    solve,
    state_evolution,
)
from mvpa_gamp.gamp.moments import gaussian_mean_and_slope, graded_edges, integrate
from mvpa_gamp.gamp.state_evolution import Channel, Estimate, Models, input_channel, output_channel

pytestmark = pytest.mark.whole

SPARSE = Bernoulli(0.1, Gaussian(0, 1))
HEAVY = Bernoulli(0.1, Gaussian(0, 10.0))


# --- an independent fixed point: Bernoulli-Gaussian weights, probit labels, both known


def normal(x, var):
    return np.exp(-(x**2) / (2 * var)) / np.sqrt(2 * np.pi * var)


def sparse_gaussian_mse(rate: float, tau: float) -> float:
    """Smallest mean squared error of w from w + N(0, tau), on a dense grid, from Bayes' rule alone."""
    r = np.linspace(-12, 12, 40_001) * np.sqrt(1 + tau)
    zero, slab = (1 - rate) * normal(r, tau), rate * normal(r, 1 + tau)
    mean = slab / (zero + slab) * r / (1 + tau)
    return rate - trapezoid((zero + slab) * mean**2, r)


def fixed_point(rate: float, var: float, ratio: float) -> tuple[float, float]:
    """Mean squared error and test-error rate from the scalar recursion of known models.

    Then 1 / tau_r is the Fisher information of p on the label, and labels are signs of z + N(0, var).
    """
    t = np.linspace(-12, 12, 4001)
    mse = rate
    for _ in range(1000):
        known, unknown = (rate - mse) / ratio, mse / ratio + var
        g = np.sqrt(known / unknown) * t
        fisher = normal(g, 1) ** 2 / np.maximum(ndtr(g) * ndtr(-g), 1e-300) / unknown
        old, mse = mse, sparse_gaussian_mse(rate, 1 / trapezoid(normal(t, 1) * fisher, t))
        if abs(mse - old) < 1e-9 * mse:
            break
    return mse, np.arccos(np.sqrt((rate - mse) / ratio / (rate / ratio + var))) / np.pi


@pytest.mark.parametrize("ratio", [0.3, 2.0])
@pytest.mark.parametrize("var", [0.01, 0.1])
@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_known_models_reach_the_independent_fixed_point(rate, var, ratio):
    mse, error_rate = fixed_point(rate, var, ratio)
    found = state_evolution(Probit(var), Bernoulli(rate, Gaussian(0, 1)), ratio)
    assert found.converged
    # both stop when a step changes less than 1e-7: what remains is at most some steps of that size
    np.testing.assert_allclose(found.mse[-1], mse, rtol=1e-5)
    np.testing.assert_allclose(found.error_rate[-1], error_rate, rtol=0, atol=1e-5)


# --- every expectation against brute force over two variables


def brute_output(given, truth, estimate, ratio, mode):
    """gain, noise, tau_r and test-error rate by summing over a grid of scores z and predictions p."""
    sigma = np.array([[0, estimate.overlap], [estimate.overlap, estimate.power]]) / ratio
    sigma[0, 0] = (estimate.mse + 2 * estimate.overlap - estimate.power) / ratio
    root = np.linalg.cholesky(sigma[::-1, ::-1])  # p first, then z given p
    t = np.linspace(-8, 8, 1601)
    p, z = root[0, 0] * t[:, None], root[1, 0] * t[:, None] + root[1, 1] * t
    weights = norm.pdf(t)[:, None] * norm.pdf(t) * (t[1] - t[0]) ** 2
    plus = expit(truth.likelihood.loss(-1.0, z) - truth.likelihood.loss(1.0, z))
    step = given.likelihood.score if mode == "sum-product" else given.likelihood.prox_score
    tau_s, slope, square, error = 0.0, 0.0, 0.0, 0.0
    for y, label in ((1.0, plus), (-1.0, 1 - plus)):
        s, tau = step(y, p, estimate.tau_w / ratio)
        tau_s += (weights * label * tau).sum()
        square += (weights * label * s**2).sum()
        slope += (weights * label * s * (t / root[1, 1])).sum()  # Stein: E (z - c p) s / v
        error += (weights * label * (y * p < 0)).sum() + 0.5 * (weights * label * (p == 0)).sum()
    return slope / tau_s, square / tau_s**2, 1 / tau_s, error


MISMATCHED = Estimate(power=0.05, overlap=0.06, mse=0.07, tau_w=0.04)
OUTPUTS = [
    (Probit(0.05), Probit(0.05), "sum-product"),
    (Logistic(3.0), Probit(0.1), "sum-product"),
    (Probit(0.1), Logistic(4.0), "sum-product"),
    (Hinge(), Logistic(2.0), "sum-product"),
    (Hinge(), Hinge(), "sum-product"),
    (Robust(Probit(0.05), 0.1), Robust(Probit(0.05), 0.1), "sum-product"),
    (Robust(Hinge(), 0.1), Robust(Hinge(), 0.1), "sum-product"),
    (Logistic(3.0), Logistic(2.0), "max-sum"),
    (Probit(0.1), Robust(Logistic(2.0), 0.05), "max-sum"),
    (Hinge(), Probit(0.1), "max-sum"),
]


@pytest.mark.parametrize(("likelihood", "true_likelihood", "mode"), OUTPUTS)
def test_output_channel_is_the_double_integral(likelihood, true_likelihood, mode):
    given, truth = Models(likelihood, SPARSE), Models(true_likelihood, SPARSE)
    estimate = MISMATCHED
    if likelihood.kinks and mode == "max-sum":  # scores that reach the corner of the loss
        estimate = Estimate(power=0.5, overlap=0.55, mse=0.4, tau_w=0.2)
    channel, error = output_channel(given, truth, estimate, 0.5, mode)
    expected = brute_output(given, truth, estimate, 0.5, mode)
    gain, noise, tau_r, _ = expected
    jump = mode == "max-sum" and likelihood.kinks  # tau_s jumps between the points of the grid
    np.testing.assert_allclose(channel.tau_r, tau_r, rtol=1e-2 if jump else 1e-6)
    slopes = channel.gain / channel.tau_r, channel.noise / channel.tau_r**2
    np.testing.assert_allclose(slopes, (gain / tau_r, noise / tau_r**2), rtol=1e-4 if jump else 1e-6)
    np.testing.assert_allclose(error, expected[3], rtol=1e-4)


def test_error_rate_of_probit_labels_is_an_angle():
    found = state_evolution(Logistic(2.0), SPARSE, 0.7, true_likelihood=Probit(0.03))
    signal = 0.1 / 0.7
    angle = np.arccos(found.correlation * np.sqrt(signal / (signal + 0.03))) / np.pi
    np.testing.assert_allclose(found.error_rate, angle, rtol=1e-8)


def test_flipped_labels_count_as_errors():
    clean, noisy = Probit(0.03), Robust(Probit(0.03), 0.1)
    channel = Estimate(power=0.06, overlap=0.06, mse=0.04, tau_w=0.04)
    _, error = output_channel(Models(clean, SPARSE), Models(clean, SPARSE), channel, 0.5, "sum-product")
    _, flipped = output_channel(Models(clean, SPARSE), Models(noisy, SPARSE), channel, 0.5, "sum-product")
    np.testing.assert_allclose(flipped, 0.1 + 0.8 * error, rtol=1e-9)


def quantiles(prior, n: int) -> np.ndarray:
    """n equally likely weights that stand for the prior."""
    if isinstance(prior, Bernoulli):
        chosen = round(n * prior.rate)
        return np.concatenate([np.zeros(n - chosen), quantiles(prior.slab, chosen)])
    if isinstance(prior, GaussianMixture):
        parts = zip(prior.weights, prior.means, prior.variances, strict=True)
        return np.concatenate([quantiles(Gaussian(m, v), round(n * share)) for share, m, v in parts])
    u = (np.arange(n) + 0.5) / n
    return (
        laplace.ppf(u, scale=1 / prior.rate)
        if isinstance(prior, Laplace)
        else norm.ppf(u, prior.mean, prior.var**0.5)
    )


INPUTS = [
    (SPARSE, SPARSE, "sum-product"),
    (Bernoulli(0.2, Laplace(2.0)), SPARSE, "sum-product"),
    (ElasticNet(1.0, 0.5), Bernoulli(0.3, Laplace(1.0)), "sum-product"),
    (Gaussian(0.3, 2.0), GaussianMixture((0.25, 0.75), (-1, 0.5), (0.01, 0.2)), "sum-product"),
    (GaussianMixture((0.25, 0.75), (-1, 0.5), (0.01, 0.2)), Laplace(1.5), "sum-product"),
    (Laplace(0.8), Bernoulli(0.3, Gaussian(0, 1)), "max-sum"),
    (ElasticNet(0.5, 0.5), Laplace(1.5), "max-sum"),
]


def density(prior, w) -> np.ndarray:
    if isinstance(prior, GaussianMixture):
        return sum(
            share * density(Gaussian(mean, var), w)
            for share, mean, var in zip(prior.weights, prior.means, prior.variances, strict=True)
        )
    return (
        laplace.pdf(w, scale=1 / prior.rate)
        if isinstance(prior, Laplace)
        else normal(w - prior.mean, prior.var)
    )


@pytest.mark.parametrize(("prior", "true_prior", "mode"), INPUTS)
def test_input_channel_is_the_double_integral(prior, true_prior, mode):
    channel = Channel(gain=1.3, noise=0.4, tau_r=0.6)
    found = input_channel(Models(None, prior), Models(None, true_prior), channel, mode)
    t, w = np.linspace(-8, 8, 641), np.linspace(-20, 20, 2001)
    slab, rate = (
        (true_prior.slab, true_prior.rate) if isinstance(true_prior, Bernoulli) else (true_prior, 1.0)
    )
    weights = rate * density(slab, w) * (w[1] - w[0])
    weights[w == 0] += 1 - rate
    w_hat, tau_w = getattr(prior, "prox" if mode == "max-sum" else "posterior")(
        channel.gain * w[:, None] + np.sqrt(channel.noise) * t, np.array(channel.tau_r)
    )
    weights = weights[:, None] * normal(t, 1) * (t[1] - t[0])
    gaps = [w_hat**2, w[:, None] * w_hat, (w[:, None] - w_hat) ** 2, tau_w]
    expected = [(weights * gap).sum() for gap in gaps]
    # the grid has the corner of the Laplace density at 0, and a proximal variance jumps between its points
    np.testing.assert_allclose(found[:3], expected[:3], rtol=5e-4)
    np.testing.assert_allclose(found.tau_w, expected[3], rtol=1e-2 if mode == "max-sum" else 5e-4)


# --- what must hold for any pair of models that match


MATCHED = [
    (Probit(0.01), Bernoulli(0.001, Gaussian(0, 1000.0)), 0.1),  # rare, heavy
    (Probit(0.01), Bernoulli(0.001, Laplace(0.01)), 0.3),
    (Probit(1e-6), Bernoulli(0.01, Laplace(0.1)), 3.0),  # high SNR, mse near 0
    (Logistic(1e3), Bernoulli(0.1, Gaussian(0, 1)), 4.0),
    (Logistic(1.0), Bernoulli(0.1, GaussianMixture((0.5, 0.5), (-1, 1), (1e-6, 1e-6))), 1.0),
    (Robust(Logistic(5.0), 0.1), Bernoulli(0.1, ElasticNet(1.0, 1.0)), 1.0),
    (Probit(100.0), Gaussian(0, 1e-3), 0.05),  # hardly any information
    (Probit(0.1), Gaussian(2.0, 0.5), 1.0),  # weights that are not centred
    (Probit(0.1), Laplace(1.0), 1.0),
]


@pytest.mark.parametrize(("likelihood", "prior", "ratio"), MATCHED)
def test_matched_models_know_their_own_error(likelihood, prior, ratio):
    found = state_evolution(likelihood, prior, ratio)
    assert found.converged and found.status.startswith("Converged")
    np.testing.assert_allclose(found.tau_w, found.mse, rtol=1e-7)
    np.testing.assert_allclose(found.gain, 1, rtol=1e-7)
    np.testing.assert_allclose(found.noise, found.tau_r, rtol=1e-7)
    np.testing.assert_allclose(found.overlap, found.power, rtol=1e-7)
    assert np.all(np.diff(found.mse) <= 1e-9 * found.mse[0])  # each iteration knows more
    assert np.all((found.error_rate > 0) & (found.error_rate < 0.5))


def test_damping_moves_no_fixed_point():
    models = (Logistic(1.0), Laplace(0.5), 0.8)
    truth = {"true_prior": Bernoulli(0.1, Gaussian(0, 10)), "mode": "max-sum"}
    plain, damped = (state_evolution(*models, **truth, damping=step, tol=1e-8) for step in (1.0, 0.4))
    assert plain.converged and damped.converged and damped.n_iter > plain.n_iter
    for item in fields(StateEvolution):
        if item.name != "status":
            np.testing.assert_allclose(
                getattr(damped, item.name)[-1], getattr(plain, item.name)[-1], rtol=1e-6
            )


def test_a_penalty_that_keeps_all_weights_at_zero():
    found = state_evolution(Logistic(1.0), Laplace(50.0), 0.5, true_prior=SPARSE, mode="max-sum")
    assert found.converged
    assert found.power[-1] < 1e-12 and found.error_rate[-1] > 0.4
    np.testing.assert_allclose(found.mse[-1], 0.1, rtol=1e-6)


def test_a_hinge_that_starts_without_curvature():
    """At w = 0 and tau_p < 1 no row is near the corner: tau_s is 0, or all but 0 in sum-product mode."""
    models = (Hinge(), Laplace(2.0), 1.0)
    truth = {"true_prior": HEAVY, "true_likelihood": Probit(0.1), "mode": "max-sum"}
    one, other = (state_evolution(*models, **truth, damping=step) for step in (0.5, 0.3))
    assert one.converged and other.converged
    np.testing.assert_allclose(one.mse[-1], other.mse[-1], rtol=1e-5)
    linear = state_evolution(Hinge(), Bernoulli(1e-3, Gaussian(0, 1)), 1.0)
    assert linear.converged and linear.error_rate[-1] < 0.5


def test_labels_without_precision_are_said():
    found = state_evolution(Robust(Hinge(), 0.1), SPARSE, 1.0)
    assert found.n_iter == 0 and not found.converged
    assert "mean precision is not positive, which robust likelihoods can cause" in found.status


def test_iteration_limit_is_said():
    found = state_evolution(Probit(0.01), SPARSE, 0.5, max_iter=2)
    assert found.n_iter == 2 and not found.converged
    assert found.status.startswith("Not converged: the iteration limit was reached")


# --- the solver


def simulate(
    likelihood, prior, ratio, n_features, n_columns, seed, true_likelihood=None, true_prior=None, **settings
):
    """Mean squared errors and test-error rates of columns that share X, each with its own weights and labels.

    Weights are permuted quantiles of their prior, and a test sample counts with the probability of its
    label: less noise, so a sharper comparison.
    """
    rng = np.random.default_rng(seed)
    truth, n_rows = true_likelihood or likelihood, round(ratio * n_features)
    X = rng.standard_normal((n_rows + 4000, n_features), dtype=np.float32) / np.float32(n_rows**0.5)
    w = rng.permuted(np.tile(quantiles(true_prior or prior, n_features)[:, None], n_columns), axis=0)
    z = (X @ w.astype(np.float32)).astype(float)
    plus = expit(truth.loss(-1.0, z) - truth.loss(1.0, z))
    y = np.where(rng.random(z.shape) < plus, 1.0, -1.0)[:n_rows]
    design = Design(X[:n_rows], np.ones((n_rows, n_columns), dtype=bool))
    result = solve(design, y, likelihood, prior, SolverSettings(stop="fixed-point", **settings))
    wrong = np.where(X[n_rows:] @ result.coef > 0, 1 - plus[n_rows:], plus[n_rows:])
    return result, np.square(result.coef - w).mean(axis=0), wrong.mean(axis=0)


def z_score(values, expected) -> float:
    return (np.mean(values) - expected) / (np.std(values, ddof=1) / np.sqrt(np.size(values)))


SIMULATIONS = {
    "probit": (Probit(0.01), SPARSE, 0.5, {}),
    "logistic": (Logistic(5.0), SPARSE, 0.5, {}),
    "bernoulli-laplace": (Logistic(5.0), Bernoulli(0.1, Laplace(1.0)), 0.5, {}),
    "hinge": (Hinge(), HEAVY, 0.5, {}),
    "hinge on probit labels": (Hinge(), HEAVY, 0.5, {"true_likelihood": Probit(0.1)}),
    "robust": (Robust(Probit(0.01), 0.05), SPARSE, 0.5, {}),
    "not robust": (Probit(0.01), SPARSE, 0.5, {"true_likelihood": Robust(Probit(0.01), 0.05)}),
    "wrong rate": (Probit(0.01), Bernoulli(0.3, Gaussian(0, 1)), 0.5, {"true_prior": SPARSE}),
    "l1 logistic": (Logistic(1.0), Laplace(1.0), 0.5, {"true_prior": HEAVY, "mode": "max-sum"}),
    "hinge max-sum": (
        Hinge(),
        Gaussian(0, 1.0),
        0.5,
        {"true_prior": HEAVY, "true_likelihood": Probit(0.1), "mode": "max-sum"},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMULATIONS)
def test_solver_agrees_within_its_standard_error(name):
    likelihood, prior, ratio, more = SIMULATIONS[name]
    found = state_evolution(likelihood, prior, ratio, **more)
    assert found.converged
    seeds = [[list(SIMULATIONS).index(name), design] for design in range(2)]
    runs = [simulate(likelihood, prior, ratio, 4000, 4, seed, **more) for seed in seeds]
    assert all(result.converged.all() for result, _, _ in runs)
    z_mse = z_score([mse for _, mse, _ in runs], found.mse[-1])
    z_error = z_score([error for _, _, error in runs], found.error_rate[-1])
    print(f"{name}: z of mse {z_mse:.2f}, of error rate {z_error:.2f}")
    assert abs(z_mse) < 3 and abs(z_error) < 3


def test_every_undamped_iteration_of_the_solver_is_predicted():
    found = state_evolution(Probit(0.01), SPARSE, 0.5)
    for n_iter in (1, 2, 4, 8):
        _, mse, error = simulate(
            Probit(0.01), SPARSE, 0.5, 1000, 20, n_iter, damping=1.0, adaptive=False, max_iter=n_iter
        )
        assert abs(z_score(mse, found.mse[n_iter - 1])) < 3
        assert abs(z_score(error, found.error_rate[n_iter - 1])) < 3


# --- bad input


@pytest.mark.parametrize("ratio", [0, -1, np.nan, np.inf, [0.5, 1.0]])
def test_bad_ratio(ratio):
    with pytest.raises(ValueError, match="ratio must be M/N, a positive number"):
        state_evolution(Probit(0.1), SPARSE, ratio)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"mode": "sum"}, "mode must be one of 'sum-product', 'max-sum', got 'sum'"),
        ({"mode": "max-sum"}, "A Bernoulli prior has no max-sum step. Use mode='sum-product'"),
        ({"damping": 0}, r"damping must be a step in \(0, 1\], got 0"),
        ({"max_iter": 0}, "max_iter must be at least 1 and tol positive, got 0"),
        ({"tol": -1.0}, "max_iter must be at least 1 and tol positive, got 1000 and -1.0"),
    ],
)
def test_bad_settings(more, says):
    with pytest.raises(ValueError, match=says):
        state_evolution(Probit(0.1), SPARSE, 0.5, **more)


def test_one_number_per_parameter_and_exact_moments():
    with pytest.raises(ValueError, match=r"var must be one number here, got shape \(2,\)"):
        state_evolution(Probit(np.array([0.1, 0.2])), SPARSE, 0.5)
    for likelihood in (Logistic(moments="variational"), Robust(Logistic(moments="variational"))):
        with pytest.raises(ValueError, match=r"needs exact moments.*Use Logistic\(moments='exact'\)"):
            state_evolution(likelihood, SPARSE, 0.5)


# --- quadrature


def test_integrals_with_a_kink_a_jump_and_a_narrow_peak():
    def functions(x):
        return np.stack([np.abs(x - 0.3), x > 0.7, norm.pdf(x, 0.1, 1e-6), x**20])

    found = integrate(functions, graded_edges(-1, 1, [0.1]))
    np.testing.assert_allclose(found, [(1.3**2 + 0.7**2) / 2, 0.3, 1.0, 2 / 21], rtol=1e-8)


def test_gaussian_mean_and_slope_of_a_kinked_function():
    mean = np.array([-3.0, 0.0, 0.9, 1.0, 30.0])
    for var in (1e-8, 1.0, 100.0):
        sd = np.sqrt(var)
        value, slope = gaussian_mean_and_slope(lambda z: np.maximum(z, 1.0), mean, var, [1.0])
        t = (mean - 1) / sd
        np.testing.assert_allclose(value, 1 + sd * (t * norm.cdf(t) + norm.pdf(t)), rtol=1e-9)
        np.testing.assert_allclose(slope, norm.cdf(t), rtol=1e-7, atol=1e-9)
