"""Odd calls of what is computed beyond a fit: permutations, crosses, regions, curves, whitening."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mvpa_gamp.decoding import (
    NoiseWhitening,
    carries_information,
    cross_decode,
    decode_regions,
    fit_confounds,
    learning_curve,
    make_crosses,
    permutation_test,
)
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.methods import METHODS

from . import arrays
from .calls import not_between, not_finite
from .cases import Case, change, matrix

_N = 4  # permutations
_X = {**arrays.VALUES, **arrays.SHAPES, **arrays.TYPES}
_METHODS = ("gamp-bg-lr", "svm", "lda", "gamp-bg-hl")
_REGIONS: dict[str, arrays.Change] = {
    "none": lambda r, rng: [],
    "an empty one": lambda r, rng: [*r, np.array([], dtype=int)],
    "overlapping": lambda r, rng: [*r, r[0]],
    "beyond X": lambda r, rng: [np.array([10**6])],
    "masks": lambda r, rng: [np.arange(50) < 3],
    "words": lambda r, rng: ["left"],
    "numbers": lambda r, rng: [0.5],
}
_COVARIATES: dict[str, arrays.Change] = {
    "constant": lambda c, rng: np.ones_like(c),
    "missing": lambda c, rng: np.where(np.arange(len(c))[:, None] == 3, np.nan, c),
    "too short": lambda c, rng: c[:-1],
    "a vector": lambda c, rng: c[:, 0],
    "words": lambda c, rng: c.astype(str),
    "huge": lambda c, rng: c * 1e200,
    "as many as rows": lambda c, rng: rng.standard_normal((len(c), len(c))),
}


def draw(rng: np.random.Generator) -> Case:
    """A call of one of them, of which one array is odd."""
    X, y, _, runs = matrix(rng)
    given: dict[str, Any] = {"X": X, "y": y, "runs": runs, "method": METHODS[str(rng.choice(_METHODS))]}
    given |= {"regions": [np.array([0]), np.array([1])], "covariates": rng.standard_normal((len(y), 2))}
    name = str(rng.choice(list(_CALLS)))
    call, wrong, names = _CALLS[name]
    changes = {"X": _X, "y": arrays.LABELS, "runs": arrays.RUNS, "regions": _REGIONS}
    changes["covariates"] = _COVARIATES
    story = change(given, {each: changes[each] for each in names}, rng)
    return Case(name, story.split(":")[0], story, lambda: call(given), wrong)


def _permute(given: dict[str, Any]) -> Any:
    return permutation_test(given["method"], given["X"], given["y"], given["runs"], n=_N)


def _wrong_test(found: Any) -> str:
    """A p-value that its own null does not give."""
    said = not_finite({"null": found.null, "score": found.score}) or not_between("null", found.null)
    equal = np.abs(found.null - found.score) <= 1e-9
    better = (found.null > found.score + 1e-9) | (equal & ~(found.null_auc < found.auc - 1e-9))
    p = (1 + np.count_nonzero(better)) / (1 + found.null.size)
    return said or ("" if p - 1e-9 <= found.pvalue <= 1 else f"p = {found.pvalue}, its null gives {p}")


def _cross(given: dict[str, Any]) -> Any:
    """Face against house, tested on cat against chair, whose rows are every second one."""
    y = given["y"]
    names = np.where(y > 0, "face", "house"), np.where(y > 0, "cat", "chair")
    conditions = np.where(np.arange(len(y)) % 2, *names)
    crosses = make_crosses(conditions, ["face:house>cat:chair"])
    noise = NoiseWhitening(conditions) if len(y) % 4 else None
    return cross_decode(given["method"], given["X"], crosses, given["runs"], scheme=Scheme(preparation=noise))


def _wrong_cross(found: Any) -> str:
    """An accuracy that the decision values do not give."""
    for each in found:
        said = not_finite({"decision": each.decision})
        right = (each.decision > 0) == (each.y > 0)
        accuracy = np.mean([right[each.run == run].mean() for run in np.unique(each.run)])
        if said or not np.isclose(accuracy, each.accuracy):
            return said or f"accuracy {each.accuracy}, decision values give {accuracy}"
    return ""


def _regions(given: dict[str, Any]) -> Any:
    method = METHODS["gamp-bg-lr"]
    return decode_regions(method, given["X"], given["y"], given["runs"], given["regions"], n=_N)


def _wrong_regions(found: Any) -> str:
    said = not_between("accuracy", found.accuracy) or not_between("pvalue", found.pvalue, 1 / (1 + _N))
    return said or not_between("family-wise less plain p-values", found.family_wise - found.pvalue)


def _curve(given: dict[str, Any]) -> Any:
    return learning_curve(given["method"], given["X"], given["y"], given["runs"], n_splits=2)


def _information(given: dict[str, Any]) -> Any:
    return carries_information(given["X"], given["y"], given["runs"], n=_N)


def _wrong_information(found: Any) -> str:
    said = not_between("correlation", found.correlation, -1 - 1e-6, 1 + 1e-6)
    return said or not_between("pvalue", found.pvalue, 1 / (1 + found.n))


def _confounds(given: dict[str, Any]) -> Any:
    cleaned = fit_confounds(given["X"], given["covariates"])
    return cleaned.apply(given["X"], given["covariates"])


_CALLS: dict[str, tuple[Callable[[dict[str, Any]], Any], Callable[[Any], str], tuple[str, ...]]] = {
    "permutation_test": (_permute, _wrong_test, ("X", "y", "runs")),
    "cross_decode": (_cross, _wrong_cross, ("X", "runs")),
    "decode_regions": (_regions, _wrong_regions, ("X", "y", "runs", "regions")),
    "learning_curve": (_curve, lambda found: not_between("accuracy", found.accuracy), ("X", "y", "runs")),
    "carries_information": (_information, _wrong_information, ("X", "y", "runs")),
    "fit_confounds": (_confounds, lambda found: not_finite({"X": found}), ("X", "covariates")),
}
