"""Bad input is refused with what was expected, what came and what to do; odd input is survived."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

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
    fit_em,
    solve,
)
from mvpa_gamp.gamp.starts import named_prior, start_laplace, start_prior
from mvpa_gamp.methods import METHODS

pytestmark = pytest.mark.whole

MAX_SUM = SolverSettings(mode="max-sum", max_iter=20)
SHORT = SolverSettings(max_iter=5)


def problem(n_rows=20, n_features=6):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features))
    return X, np.where(np.arange(n_rows) % 2, 1.0, -1.0)


def refused(call, *parts):
    """``call`` raises a ValueError that holds all the given parts."""
    with pytest.raises(ValueError) as caught:
        call()
    for part in parts:
        assert part in str(caught.value), f"{part!r} is not in: {caught.value}"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", [np.array, sparse.csr_array, sparse.csc_array, np.float32])
def test_x_that_is_not_finite(value, form):
    X, _ = problem()
    X[3, 2] = X[4, 4] = value
    refused(lambda: Design(form(X)), "must be finite", "got 2", "Drop or repair")


@pytest.mark.parametrize("shape", [(5,), (0, 3), (3, 0), (2, 3, 4), ()])
def test_x_that_is_no_matrix(shape):
    refused(lambda: Design(np.ones(shape)), "samples x features", "got shape (")


@pytest.mark.parametrize("X", [np.full((3, 2), "a"), np.ones((3, 2), dtype=complex), np.full((3, 2), None)])
def test_x_that_holds_no_real_numbers(X):
    refused(lambda: Design(X), "real numbers", f"got type {X.dtype}", "Convert it to float")


def test_train_of_the_wrong_kind():
    X, _ = problem()
    refused(lambda: Design(X, np.ones((20, 2))), "must be boolean", "got dtype float64")
    refused(lambda: Design(X, np.arange(20)), "must be boolean", "got dtype int")


@pytest.mark.parametrize("shape", [(19,), (19, 2), (20, 0), (20, 2, 2), (6, 20)])
def test_train_of_the_wrong_shape(shape):
    X, _ = problem()
    refused(lambda: Design(X, np.ones(shape, dtype=bool)), "expected (20, B)", "got (")


def test_a_column_without_training_rows():
    X, _ = problem()
    train = np.ones((20, 4), dtype=bool)
    train[:, [1, 3]] = False
    refused(lambda: Design(X, train), "needs training rows", "columns [1, 3]", "Drop them")


@pytest.mark.parametrize(
    "center", [np.zeros(5), np.zeros((1, 6)), 0.0, np.full(6, np.nan), np.full(6, np.inf)]
)
def test_a_center_that_does_not_fit(center):
    X, _ = problem()
    refused(lambda: Design(X, center=center), "6 finite numbers, one per feature", f"{np.shape(center)}")


@pytest.mark.parametrize("shape", [(19,), (20, 3), (20, 1, 1), (), (1, 20)])
def test_labels_of_the_wrong_shape(shape):
    X, _ = problem()
    design = Design(X, np.ones((20, 2), dtype=bool))
    refused(lambda: solve(design, np.ones(shape), Logistic(), Laplace()), "(20,) or (20, 2)", f"got {shape}")


@pytest.mark.parametrize("tuned", [False, True])
@pytest.mark.parametrize("label", [0.0, 2.0, np.nan, np.inf])
def test_labels_other_than_plus_and_minus_one(label, tuned):
    X, y = problem()
    y[5] = label
    fit = fit_em if tuned else solve
    refused(lambda: fit(Design(X), y, Logistic(), Laplace()), "-1 or +1", f"{label}", "Map your two classes")


@pytest.mark.parametrize("settings", [SHORT, MAX_SUM])
@pytest.mark.parametrize("fit", [solve, fit_em])
@pytest.mark.parametrize(
    "y", [["face", "house"] * 10, np.array([1, -1, None, "house"] * 5, dtype=object), np.full(20, 1j)]
)
def test_labels_that_are_no_numbers(y, fit, settings):
    X, _ = problem()
    refused(
        lambda: fit(Design(X), y, Logistic(), Laplace(), settings), "-1 or +1", "got", "Map your two classes"
    )


@pytest.mark.parametrize("settings", [SHORT, MAX_SUM])
@pytest.mark.parametrize("shape", [(19,), (20, 2)])
def test_tuning_with_labels_of_the_wrong_shape(shape, settings):
    X, _ = problem()
    design = Design(X, np.ones((20, 3), dtype=bool))
    refused(
        lambda: fit_em(design, np.ones(shape), Logistic(), Laplace(), settings), "(20,) or (20, 3)", "got"
    )


def test_an_almost_flat_slab_with_uniform_variances_overflows_nowhere():
    X, y = problem(4, 2)
    flat = Bernoulli(1e-12, Laplace(0.0542))
    result = solve(
        Design(X), y, Robust(Hinge(), 0.0896), flat, SolverSettings(variance="uniform", max_iter=1)
    )
    assert all(np.isfinite(getattr(result, name)).all() for name in ("coef", "coef_var", "p", "tau_p"))


@pytest.mark.parametrize("settings", [SHORT, MAX_SUM])
def test_a_column_with_one_class(settings):
    X, y = problem()
    train = np.ones((20, 3), dtype=bool)
    train[y > 0, 1] = False
    refused(
        lambda: solve(Design(X, train), y, Logistic(), Laplace(), settings),
        "both classes",
        "columns [1]",
        "Drop these columns",
    )
    refused(lambda: fit_em(Design(X, train), y, Logistic(), Laplace(), settings), "both classes", "[1]")


NO_MAX_SUM = [
    Bernoulli(0.1, Gaussian()),
    Bernoulli(0.1, Laplace()),
    Bernoulli(0.1, ElasticNet()),
    GaussianMixture([0.5, 0.5], [0.0, 0.0], [1.0, 2.0]),
]


@pytest.mark.parametrize("prior", NO_MAX_SUM, ids=lambda prior: type(prior).__name__)
def test_priors_without_a_max_sum_step(prior):
    X, y = problem()
    for fit in (solve, fit_em):
        refused(
            lambda fit=fit: fit(Design(X), y, Logistic(), prior, MAX_SUM),
            type(prior).__name__,
            "max-sum",
            "mode='sum-product'",
            "Laplace",
        )


@pytest.mark.parametrize(
    ("name", "known"), [("mode", "'max-sum'"), ("stop", "'fixed-point'"), ("variance", "'uniform'")]
)
def test_unknown_settings(name, known):
    refused(lambda: SolverSettings(**{name: "fast"}), f"{name} must be one of", known, "got 'fast'")


def test_cavity_stop_of_max_sum():
    refused(
        lambda: SolverSettings(mode="max-sum", stop="cavity"), "mode='sum-product'", "Use stop='fixed-point'"
    )


@pytest.mark.parametrize("damping", [0.0, -0.1, 1.5, np.nan, np.inf])
def test_damping_out_of_range(damping):
    refused(lambda: SolverSettings(damping=damping), "(0, 1]", f"got {damping}", "Give 1 for no damping")


@pytest.mark.parametrize("name", ["max_iter", "patience"])
@pytest.mark.parametrize("value", [0, -3])
def test_counts_below_one(name, value):
    refused(
        lambda: SolverSettings(**{name: value}), f"{name} must be a whole number, at least 1", f"got {value}"
    )


@pytest.mark.parametrize("tol", [0.0, -1.0, np.nan])
def test_tolerance_that_is_not_positive(tol):
    refused(lambda: SolverSettings(tol=tol), "tol must be a positive number", f"got {tol}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_iter", "many"), ("max_iter", 1.5), ("max_iter", True), ("patience", np.inf), ("tol", "small"),
        ("tol", np.inf), ("damping", "half"),
    ],
)  # fmt: skip
def test_settings_of_the_wrong_kind(name, value):
    refused(lambda: SolverSettings(**{name: value}), f"{name} must be", f"got {value!r}")
    assert SolverSettings(max_iter=np.int64(3), tol=np.float32(0.5)).max_iter == 3


@pytest.mark.parametrize("rate", [1e-300, 1.0])
def test_a_probability_may_be_as_small_as_it_likes(rate):
    X, y = problem()
    found = solve(Design(X), y, Robust(Logistic(), 1e-200), Bernoulli(rate, Gaussian(0.0, 1e20)), SHORT)
    assert np.isfinite(found.coef).all() and np.isfinite(found.coef_var).all()


def test_weights_that_cannot_be_used():
    X, _ = problem()
    refused(lambda: Design(X, weights=["heavy"] * 20), "weights must hold numbers", "one weight per row")
    for size in (1e300, 1e-300):
        refused(
            lambda size=size: Design(X, weights=np.full(20, size)), "weights must be at most", f"got {size:g}"
        )
    refused(lambda: Design([[1.0, 2.0], [3.0]]), "rows of different length", "samples x features")
    design = Design(X)
    refused(lambda: fit_em(design, problem()[1], Logistic(), Laplace(), learn_prior=5), "names of parameters")


def test_unknown_prior_names_and_moments():
    X, _ = problem()
    for call in (lambda: named_prior("horseshoe"), lambda: start_prior("horseshoe", Design(X))):
        refused(call, "'horseshoe'", "bernoulli-gaussian", "laplace")
    refused(lambda: Logistic(moments="sampled"), '"exact" or "variational"', "'sampled'")


def test_unknown_parameters_to_learn():
    X, y = problem()
    design, prior = Design(X), start_prior("bernoulli-gaussian", Design(X))
    refused(
        lambda: fit_em(design, y, Logistic(), prior, SHORT, learn_prior=("rate", "slab.width")),
        "Bernoulli cannot learn 'slab.width'",
        "it can learn",
        "'slab.var'",
    )
    refused(
        lambda: fit_em(design, y, Logistic(), prior, SHORT, learn_likelihood="var"),
        "Logistic cannot learn 'var'",
        "'scale'",
    )


def test_max_sum_does_not_learn_the_likelihood():
    X, y = problem()
    refused(
        lambda: fit_em(Design(X), y, Logistic(), Laplace(), MAX_SUM, learn_likelihood=("scale",)),
        "prior parameters only",
        "'scale'",
        "mode='sum-product'",
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: Logistic(0.0),
        lambda: Logistic(np.nan),
        lambda: Probit(-1.0),
        lambda: Robust(Logistic(), -0.1),
        lambda: Laplace(0.0),
        lambda: Laplace(np.inf),
        lambda: Gaussian(0.0, -1.0),
        lambda: ElasticNet(0.0, 0.0),
        lambda: ElasticNet(-1.0, 1.0),
        lambda: Bernoulli(1.5, Gaussian()),
        lambda: Bernoulli(-0.1, Gaussian()),
        lambda: GaussianMixture([0.5, 0.6], [0.0, 0.0], [1.0, 1.0]),
    ],
)
def test_parameters_out_of_range(make):
    refused(make, "must", "got")


def test_parameters_with_the_wrong_number_of_columns():
    X, y = problem()
    refused(
        lambda: solve(Design(X, np.ones((20, 3), dtype=bool)), y, Logistic(), Laplace([1.0, 2.0])),
        "Laplace",
        "2 values for 3 fits",
        "one value per fit",
    )


RUNS = [
    (SolverSettings(max_iter=40), "bernoulli-gaussian"),
    (SolverSettings(stop="fixed-point", max_iter=40), "gaussian"),
    (SolverSettings(variance="uniform", intercept=True, max_iter=40), "bernoulli-laplace"),
    (SolverSettings(mode="max-sum", intercept=True, max_iter=40), "laplace"),
]


def tuned_fit(design, y, settings, name):
    max_sum = settings.mode == "max-sum"
    prior = start_laplace(design, y, Logistic()) if max_sum else start_prior(name, design)
    return fit_em(design, y, Logistic(), prior, settings).result


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("settings", "name"), RUNS)
def test_constant_features_are_harmless(settings, name, dtype):
    X, y = problem(40, 30)
    X[:, 4], X[:, 17], X[:, 20] = 0.0, 3.0, 0.0
    X[:, 9] += 2 * y
    design = Design(X.astype(dtype))
    found = tuned_fit(design, y, settings, name)
    for part in (found.coef, found.coef_var, found.p, found.tau_p, found.intercept):
        assert np.isfinite(part).all()
    assert np.mean((X @ found.coef + found.intercept > 0)[:, 0] == (y > 0)) > 0.8
    if settings.variance == "full":
        assert np.abs(found.coef[[4, 20]]).max() <= 1e-6  # nothing is known about an empty feature


@pytest.mark.parametrize(("settings", "name"), RUNS)
def test_x_of_zeros_alone(settings, name):
    _, y = problem()
    design = Design(np.zeros((20, 6)))
    found = tuned_fit(design, y, settings, name)
    assert np.isfinite(found.coef).all() and np.isfinite(found.p).all() and found.status[0]


@pytest.mark.parametrize("name", ["gamp-bg-lr", "gamp-bl-lr", "gamp-bg-pr", "gamp-bg-hl", "gamp-l1-lr"])
@pytest.mark.parametrize("case", ["one feature", "two rows", "separable", "equal features", "huge", "tiny"])
def test_odd_data_give_finite_fits(name, case):
    rng = np.random.default_rng(1)
    y = np.where(np.arange(24) % 2, 1.0, -1.0)
    X = rng.standard_normal((24, 10))
    if case == "one feature":
        X = X[:, :1]
    elif case == "two rows":
        X, y = X[:2], y[:2]
    elif case == "separable":
        X[:, 0] = 10 * y
    elif case == "equal features":
        X = np.repeat(X[:, :1] + y[:, None], 10, axis=1)
    else:
        X *= 1e8 if case == "huge" else 1e-8
    found = METHODS[name].fit_folds(X, y, np.ones((len(y), 1), dtype=bool), np.arange(len(y)))
    assert np.isfinite(found.coef).all() and np.isfinite(found.decision).all() and found.status[0]
    assert ((found.proba >= 0) & (found.proba <= 1)).all()


DTYPES = st.sampled_from([np.float64, np.float32, np.int64, np.bool_, np.complex128, np.dtype("<U3"), object])
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6)


@st.composite
def garbage(draw):
    """An array of any of some dtypes and shapes, holding zeros, ones, NaN, infinity or words."""
    dtype, shape = draw(DTYPES), draw(SHAPES)
    fill = draw(st.sampled_from([0, 1, -1, 0.5, np.nan, np.inf, -1e300, 1e-300, 3e38]))
    values = np.random.default_rng(draw(st.integers(0, 99))).choice([-1, 1], shape) * fill
    with np.errstate(all="ignore"):
        return np.asarray(np.nan_to_num(values) if dtype in (np.int64, np.bool_) else values).astype(dtype)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    bad=garbage(),
    where=st.sampled_from(["X", "y", "train", "center"]),
    mode=st.sampled_from([SHORT, MAX_SUM]),
)
def test_garbage_is_refused_and_nothing_else_happens(bad, where, mode):
    X, y = problem(6, 4)
    good = {"X": X, "y": y, "train": None, "center": None}
    given_ = {**good, where: bad}
    try:
        design = Design(given_["X"], given_["train"], given_["center"])
        found = solve(design, given_["y"], Logistic(), Laplace(), mode)
    except (ValueError, TypeError) as error:
        assert str(error)
    else:
        assert all(found.status) and found.coef.shape == design.shape[1:]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    X=garbage(),
    y=garbage(),
    train=garbage(),
    runs=garbage(),
    name=st.sampled_from(["gamp-bg-lr", "gamp-l1-lr"]),
)
def test_methods_refuse_garbage_with_a_sentence(X, y, train, runs, name):
    with pytest.raises((ValueError, TypeError)) as caught:
        METHODS[name].fit_folds(X, y, train, runs)
        raise ValueError("fitted")  # a lucky draw: also fine
    assert str(caught.value)


@settings(max_examples=40, deadline=None)
@given(
    X=hnp.arrays(np.float64, (6, 3), elements=st.floats(-1e6, 1e6)),
    bits=st.integers(1, 2**6 - 2),
    mode=st.sampled_from(["sum-product", "max-sum"]),
)
def test_any_finite_x_gives_a_finite_fit(X, bits, mode):
    y = np.where([bits >> k & 1 for k in range(6)], 1.0, -1.0)
    run = SolverSettings(mode=mode, max_iter=30, intercept=True)
    found = solve(Design(X), y, Logistic(), Laplace(), run)
    for part in (found.coef, found.coef_var, found.p, found.tau_p, found.intercept):
        assert np.isfinite(part).all()
    assert found.status[0].endswith(".")
