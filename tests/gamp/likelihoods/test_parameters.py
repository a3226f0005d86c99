"""Wrong parameters are refused in a sentence that says what came and what to do."""

import numpy as np
import pytest

from mvpa_gamp.gamp.likelihoods import LIKELIHOODS, Hinge, Logistic, Probit, Robust
from mvpa_gamp.gamp.parameters import expand, parameters, take


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, np.array([1.0, -2.0])])
def test_scale_and_variance_must_be_positive(value):
    with pytest.raises(
        ValueError, match=r"Logistic: scale must be positive and finite, got .* Give one number"
    ):
        Logistic(scale=value)
    with pytest.raises(
        ValueError, match=r"Probit: var must be positive and finite, got .* one value per fit"
    ):
        Probit(var=value)


def test_moments_have_two_names():
    with pytest.raises(
        ValueError, match=r'moments must be "exact" or "variational", got \'laplace\'. Use "exact"'
    ):
        Logistic(moments="laplace")


@pytest.mark.parametrize("flip", [-0.01, 0.5, 1.0, np.nan, np.array([0.1, 0.6])])
def test_flip_lies_below_one_half(flip):
    with pytest.raises(
        ValueError, match=r"flip must be the fraction of wrong labels, in \[0, 0.5\), got .* Give one"
    ):
        Robust(Logistic(), flip)


@pytest.mark.parametrize("base", ["logistic", Logistic, None, Robust(Hinge())])
def test_robust_needs_a_plain_likelihood(base):
    with pytest.raises(
        ValueError, match=r"base must be a plain likelihood such as Logistic\(\), got .* Give the"
    ):
        Robust(base)


@pytest.mark.parametrize("likelihood", [Hinge(), Logistic(), Robust(Probit())], ids=repr)
def test_unknown_names_are_not_learnt(likelihood):
    with pytest.raises(ValueError, match=r"cannot learn 'rate'; (it can learn '|none of its)"):
        likelihood.em_update(1.0, np.zeros((3, 1)), 1.0, learn=["rate"])


def test_learnable_names():
    assert Robust(Logistic()).learnable == ("flip", "base.scale")
    assert Robust(Logistic()).default_learn == ("flip",)
    assert Robust(Hinge()).learnable == ("flip",)
    assert (Logistic().learnable, Probit().learnable, Hinge().learnable) == (("scale",), ("var",), ())


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_a_named_likelihood_learns_nothing_by_default(name):
    """The scale of the weights is learnt; what else the likelihood can learn is learnt on request."""
    assert LIKELIHOODS[name]().default_learn == ()


def test_parameters_expand_and_select_columns(likelihood):
    wide = expand(likelihood, 3)
    assert all(np.shape(value) == (3,) for value in parameters(wide).values())
    assert parameters(take(wide, 1)) == parameters(likelihood)


@pytest.mark.parametrize(
    "make",
    [Logistic, Probit, lambda values: Robust(Probit(values), values)],
    ids=["logistic", "probit", "robust"],
)
def test_a_list_is_as_good_as_an_array(make):
    values = [0.1, 0.4]
    y, z, tau = np.array([[1.0, -1.0]] * 3), np.linspace(-2, 2, 6).reshape(3, 2), np.ones((3, 2))
    from_list, from_array = make(values), make(np.array(values))
    np.testing.assert_array_equal(from_list.loss(y, z), from_array.loss(y, z))
    for step in ("evaluate", "posterior", "prox", "prox_score"):
        given, wanted = (getattr(each, step)(y, z, tau) for each in (from_list, from_array))
        np.testing.assert_array_equal(given[0], wanted[0], err_msg=step)
    learnt = [each.em_update(y, z, tau, learn=each.learnable) for each in (from_list, from_array)]
    assert all(
        np.array_equal(a, b) for a, b in zip(*(parameters(each).values() for each in learnt), strict=True)
    )
