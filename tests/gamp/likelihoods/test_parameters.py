"""Wrong parameters are refused in a sentence that says what came and what to do."""

import numpy as np
import pytest

from mvpa_gamp.gamp.likelihoods import LIKELIHOODS, Hinge, Logistic, Probit, Robust
from mvpa_gamp.gamp.parameters import expand, parameters, take


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, np.array([1.0, -2.0])])
def test_scale_and_variance_must_be_positive(value):
    with pytest.raises(
        ValueError, match=r"Logistic: scale must be positive and finite, got .* Give a positive number"
    ):
        Logistic(scale=value)
    with pytest.raises(ValueError, match=r"Probit: var must be positive and finite, got .* one per column"):
        Probit(var=value)


def test_moments_have_two_names():
    with pytest.raises(
        ValueError, match=r'moments must be "exact" or "variational", got \'laplace\'. Use "exact"'
    ):
        Logistic(moments="laplace")


@pytest.mark.parametrize("flip", [-0.01, 0.5, 1.0, np.nan, np.array([0.1, 0.6])])
def test_flip_lies_below_one_half(flip):
    with pytest.raises(ValueError, match=r"flip must lie in \[0, 0.5\), got .* fraction of wrong labels"):
        Robust(Logistic(), flip)


@pytest.mark.parametrize("base", ["logistic", Logistic, None, Robust(Hinge())])
def test_robust_needs_a_plain_likelihood(base):
    with pytest.raises(
        ValueError, match=r"base must be a plain likelihood such as Logistic\(\), got .* Give the"
    ):
        Robust(base)


@pytest.mark.parametrize("likelihood", [Hinge(), Logistic(), Robust(Probit())], ids=repr)
def test_unknown_names_are_not_learnt(likelihood):
    with pytest.raises(ValueError, match=r"cannot learn rate; learnable here: .* Correct the names"):
        likelihood.em_update(1.0, np.zeros((3, 1)), 1.0, learn=["rate"])


def test_learnable_names():
    assert Robust(Logistic()).learnable == ("flip", "base.scale")
    assert Robust(Logistic()).default_learn == ("flip",)
    assert Robust(Hinge()).learnable == ("flip",)
    assert [make.learnable for make in LIKELIHOODS.values()] == [("scale",), ("var",), ()]
    assert all(make.default_learn == () for make in LIKELIHOODS.values())


def test_parameters_expand_and_select_columns(likelihood):
    wide = expand(likelihood, 3)
    assert all(np.shape(value) == (3,) for value in parameters(wide).values())
    assert parameters(take(wide, 1)) == parameters(likelihood)
