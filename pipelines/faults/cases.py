"""A case: a call with odd input, and what is wrong with a result of it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .arrays import Change


class Case(NamedTuple):
    """What is called, what kind of thing is odd, in words, the call, and the judge of its result."""

    target: str
    kind: str
    story: str
    call: Callable[[], Any]
    wrong: Callable[[Any], str]


def matrix(rng: np.random.Generator) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """X (M, N), y (M,) in -1/+1, train (M, F) of leave-one-run-out, runs (M,); one feature tells y."""
    n_runs, n_features = int(rng.integers(3, 6)), int(rng.integers(2, 30))
    runs = np.repeat(np.arange(n_runs), 6)
    y = np.tile(np.repeat([1.0, -1.0], 3), n_runs)
    X = rng.standard_normal((len(y), n_features))
    X[:, 0] += 1.5 * y
    return X, y, runs[:, None] != np.unique(runs), runs


def change(given: dict[str, Any], changes: dict[str, dict[str, Change]], rng: np.random.Generator) -> str:
    """Change one of the arrays given, and say how."""
    name = str(rng.choice(list(changes)))
    how = str(rng.choice(list(changes[name])))
    with np.errstate(all="ignore"):
        given[name] = changes[name][how](given[name], rng)
    return f"{name}: {how}"
