"""Which parameters expectation maximisation learns: names are checked, and what the data cannot tell refused.

A likelihood whose scale grows and weights that shrink give the same scores. So the two can be learnt only one
at a time: a run that moves both drifts along that line, and may end with no weight at all.
"""

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .parameters import Models, learnt_names, parameters
from .result import AT_BOUND, FOUND_NOTHING, SUCCESS


def names_to_learn(likelihood: Any, prior: Any, of_likelihood: Any, of_prior: Any) -> Models:
    """The names to learn of likelihood and prior; None means each model's ``default_learn``.

    Where a scale of the likelihood is learnt, the default of the prior leaves out what scales the weights,
    with a warning; names that say both are refused.
    """
    learn = Models(learnt_names(likelihood, of_likelihood), learnt_names(prior, of_prior))
    names = identifiable_names(likelihood, prior, learn.likelihood, learn.prior)
    if names == learn.prior:
        return learn
    scale = ", ".join(name for name in learn.likelihood if name in likelihood.scale_names)
    size = ", ".join(name for name in learn.prior if name not in names)
    cause = (
        f"The likelihood's {scale} and the prior's {size} both set the size of the scores, and the data "
        "cannot tell them apart"
    )
    others = tuple(name for name in learn.likelihood if name not in likelihood.scale_names)
    choice = f"learn_prior={names!r} to keep {size}, or learn_likelihood={others!r} to keep {scale}"
    if of_prior is not None:
        raise ValueError(f"{cause}: both cannot be learnt. Use {choice}.")
    warnings.warn(f"{cause}: {size} keeps its starting value. To choose, set {choice}.", stacklevel=3)
    return Models(learn.likelihood, names)


def identifiable_names(
    likelihood: Any, prior: Any, of_likelihood: Iterable[str], of_prior: tuple[str, ...]
) -> tuple[str, ...]:
    """``of_prior`` without what scales the weights, where a scale of the likelihood is learnt as well.

    A prior that keeps any of its scales fixed, such as the l2 of an elastic net, keeps all its names.
    """
    if not any(name in likelihood.scale_names for name in of_likelihood):
        return of_prior
    scales = _scale_names(prior)
    others = tuple(name for name in of_prior if name not in scales)
    return others if set(scales) <= set(of_prior) else of_prior


def at_bounds(models: Models, learn: Models, status: NDArray) -> NDArray:
    """``status`` (B,), in which columns say so whose learnt parameters ended at a bound of their range."""
    status = status.astype(object)
    for part, model, names in zip(Models._fields, models, learn, strict=True):
        ranges, values = model.useful_range, parameters(model)
        for name in (name for name in names if name in ranges):
            low, high = ranges[name]
            ended = np.isin(status, (*SUCCESS, FOUND_NOTHING))
            for column in np.flatnonzero(ended & ((values[name] <= low) | (values[name] >= high))):
                value = float(values[name][column])
                status[column] = AT_BOUND.format(name=f"{part}.{name}", value=value)
    return status.astype(str)


def _scale_names(prior: Any) -> tuple[str, ...]:
    """Parameters that change when the weights are doubled."""
    doubled = parameters(prior.scaled(2.0))
    return tuple(
        name for name, value in parameters(prior).items() if not np.array_equal(value, doubled[name])
    )
