"""Parameters as columns: names, expansion, selection and merging, over every likelihood and prior."""

from dataclasses import dataclass

import numpy as np
import pytest

from mvpa_gamp.gamp import Bernoulli, Gaussian, GaussianMixture, Logistic, Probit, Robust
from mvpa_gamp.gamp.likelihoods import LIKELIHOODS
from mvpa_gamp.gamp.parameters import (
    check_sizes,
    expand,
    parameters,
    parameters_stated,
    put,
    take,
    with_parameters,
)
from mvpa_gamp.gamp.priors import PRIORS

MODELS = {
    **{name: make() for name, make in LIKELIHOODS.items()},
    **{name: make() for name, make in PRIORS.items()},
    "robust": Robust(Probit(2.0), 0.1),
}
EACH = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def assert_equal(one, other):
    assert type(one) is type(other)
    assert parameters(one).keys() == parameters(other).keys()
    for name, value in parameters(other).items():
        np.testing.assert_array_equal(parameters(one)[name], value, err_msg=name)


def test_nested_parameters_have_dotted_names():
    prior = Bernoulli(0.2, Gaussian(1.0, 2.0))
    assert parameters(prior) == {"rate": 0.2, "slab.mean": 1.0, "slab.var": 2.0}
    assert parameters(Robust(Logistic(3.0), 0.1)) == {"base.scale": 3.0, "flip": 0.1}


@EACH
def test_learnable_names_are_parameters(model):
    assert set(model.default_learn) <= set(model.learnable) <= set(parameters(model))


@EACH
def test_expanded_parameters_have_one_value_per_column(model):
    wide = expand(model, 3)
    for name, value in parameters(wide).items():
        plain = np.asarray(parameters(model)[name])
        np.testing.assert_array_equal(value, np.repeat(plain[..., None], 3, axis=-1))
    assert_equal(expand(wide, 3), wide)


@EACH
def test_taking_columns_and_putting_them_back(model):
    wide = expand(model, 4)
    # Mixture weights have to sum to one, so they stay.
    free = {name: value for name, value in parameters(wide).items() if not name.endswith("weights")}
    changed = with_parameters(wide, {name: value * np.linspace(0.5, 1, 4) for name, value in free.items()})
    merged = put(wide, np.array([3, 1]), take(changed, np.array([3, 1])))
    for name, value in parameters(merged).items():
        np.testing.assert_array_equal(value[..., [1, 3]], parameters(changed)[name][..., [1, 3]])
        np.testing.assert_array_equal(value[..., [0, 2]], parameters(wide)[name][..., [0, 2]])


def test_taking_from_plain_numbers_changes_nothing():
    assert take(Bernoulli(0.2, Gaussian()), np.array([0, 0])) == Bernoulli(0.2, Gaussian())


def test_putting_leaves_the_model_alone():
    wide = expand(Gaussian(0.0, 1.0), 2)
    put(wide, np.array([0]), expand(Gaussian(5.0, 5.0), 1))
    np.testing.assert_array_equal(wide.var, [1.0, 1.0])


def test_settings_of_a_model_survive():
    assert expand(Logistic(2.0, moments="variational"), 2).moments == "variational"


@dataclass(frozen=True)
class WithDegrees(Gaussian):
    degrees: int = 3


def test_whole_numbers_are_settings():
    """What ``check_parameter`` stores is a float; an int that a class keeps counts something."""
    wide = expand(WithDegrees(0, 2), 2)
    assert wide.degrees == 3 and set(parameters(wide)) == {"mean", "var"}
    np.testing.assert_array_equal(wide.var, [2.0, 2.0])


def test_classes_state_what_their_parameters_measure():
    """Squares may be 1e30 and shares tiny, wherever they are nested."""
    check_sizes(Bernoulli(1e-200, Gaussian(0.0, 1e29)))
    check_sizes(Robust(Probit(1e29), 1e-200))
    assert parameters_stated(Bernoulli(0.1, GaussianMixture([1.0], [0.0], [1.0])), "locations") == (
        "slab.means",
    )
    with pytest.raises(ValueError, match=r"Robust: base.scale must be zero or between 1e-15 and 1e\+15"):
        check_sizes(Robust(Logistic(1e20)))


def test_mixture_fields_are_components_by_columns():
    mixture = GaussianMixture([0.25, 0.75], [0.0, 1.0], [1.0, 2.0])
    assert expand(mixture, 5).weights.shape == (2, 5)
    assert take(expand(mixture, 5), np.array([1, 2])).means.shape == (2, 2)


def test_the_wrong_number_of_columns_is_refused():
    with pytest.raises(ValueError, match=r"Gaussian.* 2 values for 3 fits.*one value per fit"):
        expand(Gaussian(0.0, [1.0, 2.0]), 3)
