"""Parameters at and beyond what float32 can compute with: finite results and a sentence for every column."""

from itertools import product

import numpy as np
import pytest

from mvpa_gamp import GAMPClassifier
from mvpa_gamp.gamp import (
    Bernoulli,
    Design,
    ElasticNet,
    Gaussian,
    GaussianMixture,
    Laplace,
    Logistic,
    Robust,
    SolverSettings,
    fit_em,
    solve,
)
from mvpa_gamp.gamp.likelihoods import LIKELIHOODS
from mvpa_gamp.gamp.moments import floored
from mvpa_gamp.gamp.parameters import (
    check_sizes,
    expand,
    held,
    parameters,
    parameters_stated,
    with_parameters,
)
from mvpa_gamp.gamp.priors import PRIORS
from mvpa_gamp.methods import GampMethod

pytestmark = pytest.mark.whole

LIMIT = 1e15
SETTINGS = [
    {"mode": mode, "variance": variance, "max_iter": max_iter, "intercept": max_iter == 5}
    for mode, variance, max_iter in product(("sum-product", "max-sum"), ("full", "uniform"), (1, 2, 5))
]


def problem(dtype, n_columns=2):
    """Folds of which every other one is separable, and a feature that is zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((16, 6))
    X[:, 5] = 0
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    y[[1, 4]] *= -1
    train = np.ones((16, n_columns), dtype=bool)
    train[[1, 4], 1::2] = False
    return Design(X.astype(dtype), train), y


def at_its_limits(model):
    """The model with a column for every parameter as large, and one for it as small, as it may be."""
    squares, shares = (parameters_stated(model, fact) for fact in ("squares", "shares"))
    sizes = {name: LIMIT**2 if name in squares else LIMIT for name in parameters(model)}
    extremes = [
        (name, extreme)
        for name, value in parameters(model).items()
        if name not in shares or not np.ndim(value)  # shares of a mixture sum to 1
        for extreme in ((1e-300, 0.49) if name in shares else (sizes[name], 1 / sizes[name]))
    ]
    wide = expand(model, 2 * len(extremes) or 2)  # each with overlapping and with separable data
    values = parameters(wide)
    for k, (name, extreme) in enumerate(extremes):
        values[name][..., 2 * k : 2 * k + 2] = extreme
    return with_parameters(wide, values), len(extremes)


bases = {
    **{name: make() for name, make in LIKELIHOODS.items()},
    "variational": Logistic(moments="variational"),
}
robust = {f"robust-{name}": Robust(base, 0.1) for name, base in bases.items()}


def check_finite(found):
    """What the engine promises of every column: finite arrays, no negative variance, and a sentence."""
    result = getattr(found, "result", found)
    for name, values in vars(result).items():
        if name not in ("status", "cavity_score"):  # max-sum has no such score
            assert np.isfinite(values).all(), name
    assert (result.coef_var >= 0).all() and (result.tau_p >= 0).all() and (result.tau_r > 0).all()
    assert all(sentence.endswith(".") for sentence in result.status)
    if found is not result:
        assert all(np.isfinite(each).all() for each in parameters(found.prior).values())
        assert ((found.inclusion() >= 0) & (found.inclusion() <= 1)).all()


def check_all_settings(likelihood, prior, n_columns=2):
    for given, dtype in product(SETTINGS, (np.float32, np.float64)):
        if given["mode"] in likelihood.modes and given["mode"] in prior.modes:
            (design, y), settings = problem(dtype, n_columns), SolverSettings(**given)
            check_finite(solve(design, y, likelihood, prior, settings))
            if given["mode"] == "sum-product":
                check_finite(fit_em(design, y, likelihood, prior, settings))
    if "max-sum" in likelihood.modes and "max-sum" in prior.modes:  # hundreds of iterations between updates
        learnt = {"learn_prior": () if likelihood.kinks else None, "learn_likelihood": ()}
        design, y = problem(np.float32, n_columns)
        settings = SolverSettings(mode="max-sum", max_iter=5)
        check_finite(fit_em(design, y, likelihood, prior, settings, max_em_iter=1, **learnt))


@pytest.mark.parametrize("name", PRIORS)
def test_priors_at_their_limits_give_finite_results(name):
    prior, n_extremes = at_its_limits(PRIORS[name]())
    assert n_extremes >= 2
    check_all_settings(Logistic(), prior, 2 * n_extremes)
    check_all_settings(Robust(Logistic(), 0.4), prior, 2 * n_extremes)


@pytest.mark.parametrize("name", bases | robust)
def test_likelihoods_at_their_limits_give_finite_results(name):
    likelihood, n_extremes = at_its_limits((bases | robust)[name])
    for prior in (Bernoulli(0.1, Gaussian()), Laplace(1 / LIMIT)):  # which is almost flat
        check_all_settings(likelihood, prior, 2 * n_extremes or 2)


@pytest.mark.parametrize(
    ("prior", "name", "used"),
    [
        (Gaussian(0.0, 1e300), "var", "1.e+30"),
        (Gaussian(0.0, 1e-300), "var", "1.e-30"),
        (Laplace(1e-30), "rate", "1.e-15"),
        (Bernoulli(0.1, Laplace(1e20)), "slab.rate", "1.e+15"),
        (Bernoulli(0.1, Gaussian(0.0, 1e300)), "slab.var", "1.e+30"),
        (ElasticNet(1.0, 1e40), "l2", "1.e+30"),
        (GaussianMixture([0.5, 0.5], [0.0, 0.0], [1.0, 1e-200]), "variances", "[1.e+00 1.e-30]"),
    ],
)
def test_a_parameter_beyond_its_limit_is_named_in_the_status(prior, name, used):
    check_all_settings(Robust(Logistic(), 0.1), prior)
    design, y = problem(np.float32)
    for fit in (solve, fit_em):
        found = fit(design, y, Logistic(), prior, SolverSettings(max_iter=5))
        result = getattr(found, "result", found)
        assert not result.converged.any()
        assert f"{name} must be zero or between" in result.status[0]
        assert f"the fit was made with {used}. Give a value in this range" in result.status[0]
    with pytest.raises(ValueError, match=f"{name} must be zero or between.*float32.*or rescale X"):
        GAMPClassifier(prior=prior).fit(np.asarray(design.X), y)


@pytest.mark.parametrize("fit", [solve, fit_em])
@pytest.mark.parametrize(
    "prior", [Gaussian(-1e200, 1.0), GaussianMixture([0.5, 0.5], [1e30, 0.0], [1e-67, 1.0])], ids=repr
)
def test_a_mean_beyond_its_limit_is_refused(prior, fit):
    """No value within is near to it: at 1e15 with a variance of 1e-30 arithmetic would overflow."""
    design, y = problem(np.float32)
    with pytest.raises(ValueError, match=r"means? must be zero or between 1e-15 and 1e\+15.*or rescale X"):
        fit(design, y, Logistic(), prior, SolverSettings(max_iter=5))


def test_a_column_beyond_its_limit_keeps_no_other_from_its_fit():
    design, y = problem(float)
    found = solve(design, y, Logistic(), Gaussian(0.0, [1.0, 1e300]))
    alone = solve(design, y, Logistic(), Gaussian(0.0, [1.0, 1e30]))
    np.testing.assert_array_equal(found.coef, alone.coef)  # 1e300 is as flat as 1e30
    assert found.status[0] == alone.status[0] and found.converged.tolist() == [True, False]


def test_max_sum_tuning_names_it_too():
    design, y = problem(float)
    found = fit_em(design, y, Logistic(), Laplace(1e-30), SolverSettings(mode="max-sum"), max_em_iter=1)
    assert "rate must be zero or between 1e-15 and 1e+15" in found.result.status[0]


def test_models_within_their_limits_are_left_as_they_are():
    prior = Bernoulli([1e-300, 1.0], Gaussian(0.0, 1e30))
    same, status = held(prior, 2)
    assert parameters(same)["slab.var"].tolist() == [1e30, 1e30] and same.rate.tolist() == [1e-300, 1.0]
    assert status.tolist() == ["", ""]
    check_sizes(prior)


def test_methods_refuse_a_likelihood_beyond_its_limit():
    with pytest.raises(ValueError, match=r"Robust: base.scale must be zero or between 1e-15 and 1e\+15"):
        GampMethod("x", "x", "", Robust(Logistic(1e20)), "laplace")


@pytest.mark.parametrize("variance", ["full", "uniform"])
def test_columns_that_never_leave_their_start_have_the_score_of_their_start(variance):
    """A steep logistic function far from a narrow prior: no step is finite in float32."""
    design, y = problem(np.float32)
    steep, narrow = Logistic(1e10), Gaussian(-1000.0, 1e-30)
    settings = SolverSettings(mode="sum-product", variance=variance, max_iter=5)
    result = solve(design, y, steep, narrow, settings)
    rows = steep.log_partition(y[:, None], result.p, floored(result.tau_p))
    want = [rows[design.train[:, k], k].mean() for k in range(2)]
    assert (result.kept_iter == 0).all() and np.isfinite(want).all()
    np.testing.assert_allclose(result.cavity_score, want, rtol=1e-9)
