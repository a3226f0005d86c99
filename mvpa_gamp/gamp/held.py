"""Parameters of a size that float32 can compute with; others are refused, or brought within and named.

Weights and what is measured in their units may be 1e-15 to 1e15 in size, as X, and squares of these 1e-30 to
1e30; zero is a size too, and shares may have any. A solve loses nothing: a prior of variance 1e30 is flat.
"""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .models import Models
from .parameters import expand, parameters, parameters_stated, with_parameters

Model = TypeVar("Model")
_LARGEST, _LARGEST_SQUARE = 1e15, 1e30


def check_sizes(model: Any) -> None:
    """Refuse a model with a parameter that float32 cannot compute with: somebody mistyped it."""
    for name, value in parameters(model).items():
        if np.any(_within(model, name, value) != value):
            raise ValueError(f"{_sentence(model, name, value)}. Give a value in this range, or rescale X.")


def held(model: Model, n_columns: int) -> tuple[Model, NDArray]:
    """The model with one value per column, each within its limits; and where one was not, a status (B,).

    Columns do not see each other: one with parameters beyond the limits keeps no other from its fit.
    """
    wide, status = expand(model, n_columns), np.full(n_columns, "", dtype=object)
    values = parameters(wide)
    within = {name: _within(wide, name, value) for name, value in values.items()}
    for name in (name for name in values if name in parameters_stated(wide, "locations")):
        if np.any(within[name] != values[name]):  # no value within is near to it
            given = parameters(model)[name]
            raise ValueError(f"{_sentence(model, name, given)}. Give a value in this range, or rescale X.")
    for name, value in values.items():
        for column in np.flatnonzero((within[name] != value).reshape(-1, n_columns).any(axis=0)):
            found, used = value[..., column], within[name][..., column]
            status[column] = (
                f"Not converged at the parameters given: {_sentence(model, name, found)}; the fit was made "
                f"with {_shown(used)}. Give a value in this range, or rescale X."
            )
    return (with_parameters(wide, within) if status.any() else wide), status


def held_models(likelihood: Any, prior: Any, n_columns: int) -> tuple[Models, NDArray]:
    """Both models of a solve, and the status of columns whose likelihood or prior was not within."""
    (likelihood, of_likelihood), (prior, of_prior) = held(likelihood, n_columns), held(prior, n_columns)
    return Models(likelihood, prior), np.where(of_likelihood == "", of_prior, of_likelihood)


def _limits(model: Any, name: str) -> tuple[float, float]:
    """Smallest and largest size of a parameter besides zero."""
    if name in parameters_stated(model, "shares"):
        return 0.0, np.inf
    largest = _LARGEST_SQUARE if name in parameters_stated(model, "squares") else _LARGEST
    return 1 / largest, largest


def _within(model: Any, name: str, value: Any) -> NDArray:
    """The nearest value within the limits, of the same sign; zero stays."""
    value = np.asarray(value)
    return np.where(value == 0, value, np.copysign(np.clip(np.abs(value), *_limits(model, name)), value))


def _sentence(model: Any, name: str, value: Any) -> str:
    low, high = _limits(model, name)
    return (
        f"{type(model).__name__}: {name} must be zero or between {low:g} and {high:g} in size, which float32 "
        f"can compute with, got {_shown(value)}"
    )


def _shown(value: Any) -> str:
    return np.array2string(np.asarray(value), precision=4)
