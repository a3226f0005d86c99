"""Likelihood and prior, as GAMPClassifier is given them: names or objects."""

from typing import Any

from numpy.typing import NDArray

from ..feature_scale import rescaled_prior
from ..gamp import Design
from ..gamp.held import check_sizes
from ..gamp.likelihoods import LIKELIHOODS, Likelihood
from ..gamp.priors import Prior
from ..gamp.starts import start


def chosen_likelihood(given: Any) -> Any:
    """The likelihood of a name, or the one that was given."""
    if isinstance(given, str):
        if given not in LIKELIHOODS:
            raise ValueError(
                f"Unknown likelihood {given!r}. Known likelihoods: {', '.join(LIKELIHOODS)}."
                f"{_of_tables(given)}"
            )
        return LIKELIHOODS[given]()
    if isinstance(given, type) or not isinstance(given, Likelihood):
        raise ValueError(f"likelihood must be a name or a likelihood of mvpa_gamp.gamp, got {_kind(given)}.")
    check_sizes(given)
    return given


def chosen_prior(
    given: Any, design: Design, labels: NDArray, likelihood: Any, mode: str, factor: float
) -> Any:
    """The prior of a name with its start, or the one that was given, for X times ``factor``."""
    if isinstance(given, Prior):
        rescaled = rescaled_prior(given, 1 / factor)
        check_sizes(rescaled)
        return rescaled
    if not isinstance(given, str):
        raise ValueError(f"prior must be a name or a prior object of mvpa_gamp.gamp, got {_kind(given)}.")
    return start(given, design, labels, likelihood, mode)


def _of_tables(name: str) -> str:
    """What to write for a method of the commands, whose names begin alike."""
    if not name.startswith("gamp-"):
        return ""
    return (
        " Names such as 'gamp-bg-lr' are methods of the commands and GAMPDecoder: write GAMPClassifier() for "
        "'gamp-bg-lr', GAMPClassifier(connectivity=graph) for 'gamp-sbg-lr'."
    )


def _kind(value: Any) -> str:
    """What came in place of a model; of a class, how to make one."""
    if isinstance(value, type):
        return f"the class {value.__name__}: write {value.__name__}()"
    return type(value).__name__
