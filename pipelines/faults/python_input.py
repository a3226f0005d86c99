"""Odd input to Python: arrays, models and settings that a program may hand to the package by mistake.

Every call must end in one of two ways: with a ValueError or TypeError whose sentence was written for it, or
with finite results that keep what the documentation promises.
"""

from collections.abc import Callable, Iterator

import numpy as np

from . import decoder_calls, engine_calls, estimator_calls, statistics_calls, surface_calls
from .calls import judged
from .cases import Case
from .outcomes import Outcome

# Shares of the cases; a decoder's fit takes longest.
_TARGETS: dict[str, tuple[float, Callable[[np.random.Generator], Case]]] = {
    "solve": (0.2, lambda rng: engine_calls.draw("solve", rng)),
    "fit_em": (0.2, lambda rng: engine_calls.draw("fit_em", rng)),
    "fit_folds": (0.2, estimator_calls.draw_method),
    "statistics": (0.15, statistics_calls.draw),
    "GAMPClassifier": (0.15, estimator_calls.draw_classifier),
    "GAMPDecoder": (0.08, decoder_calls.draw),
    "surfaces": (0.02, surface_calls.draw),
}
# What is unusual, in the words of the table.
_GIVEN = {
    "solve": "arrays, models, settings",
    "fit_em": "arrays, models, settings",
    "fit_folds": "X, y, folds, runs, graph; all methods",
    "GAMPClassifier": "arrays, their form, models, settings, new samples",
    "GAMPDecoder": "images, mask, labels, groups, covariates, settings",
    "GAMPDecoder on surfaces": "images, meshes, masks, labels, groups, settings",
}


def case(seed: int, number: int) -> Case:
    """One case of a campaign, the same whenever it is asked for."""
    rng = np.random.default_rng([seed, number])
    shares = [share for share, _ in _TARGETS.values()]
    target = str(rng.choice(list(_TARGETS), p=shares))
    return _TARGETS[target][1](rng)


def campaign(n: int, seed: int) -> Iterator[Outcome]:
    """n calls, judged."""
    for number in range(n):
        each = case(seed, number)
        verdict, said = judged(each.call, each.wrong)
        given = _GIVEN.get(each.target, "X, y, runs and what goes with them")
        said = f"case {seed}, {number}: {each.kind}: {each.story}: {said}"
        yield Outcome(f"`{each.target}`", (given,), verdict, said)
