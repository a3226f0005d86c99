"""Odd calls of the engine: ``solve`` and ``fit_em``."""

from typing import Any

import numpy as np

from mvpa_gamp.gamp import Bernoulli, Design, EmResult, GampResult, Gaussian, Logistic, fit_em, solve
from mvpa_gamp.gamp.parameters import parameters

from . import arrays, models
from .calls import not_between, not_finite
from .cases import Case, change, matrix

_ARRAYS = {
    "X": {**arrays.VALUES, **arrays.SHAPES, **arrays.TYPES},
    "y": arrays.LABELS,
    "train": arrays.TRAIN,
    "weights": arrays.WEIGHTS,
}


def draw(target: str, rng: np.random.Generator) -> Case:
    """A call of ``solve`` or ``fit_em`` of which the arrays, the models, the settings or all are odd."""
    X, y, train, _ = matrix(rng)
    given: dict[str, Any] = {"X": X, "y": y, "train": train, "weights": np.ones(len(y)), "prior": None}
    given |= {"likelihood": None, "settings": models.usual_settings(rng)}
    kind = str(rng.choice(["arrays", "models", "settings", "several"]))
    said = []
    if kind in ("arrays", "several"):
        said.append(change(given, _ARRAYS, rng))
    if kind in ("models", "several"):
        given["models"] = int(rng.integers(2**31))  # drawn inside the call, which may refuse them
        said.append(f"models {given['models']}")
    if kind in ("settings", "several"):
        given["settings"] |= models.odd_settings(rng)
    said.append(str(given["settings"]))
    if rng.random() < 0.3 and isinstance(given["X"], np.ndarray) and given["X"].dtype == float:
        with np.errstate(all="ignore"):
            given["X"] = given["X"].astype(np.float32)
        said.append("float32")
    return Case(target, kind, "; ".join(said), lambda: call(target, given), _wrong)


def call(target: str, given: dict[str, Any]) -> Any:
    """The call itself."""
    rng = np.random.default_rng(given.get("models"))
    odd = "models" in given
    prior = models.prior(rng) if odd else Bernoulli(0.1, Gaussian())
    likelihood = models.likelihood(rng) if odd else Logistic()
    settings = models.settings(given["settings"])
    design = Design(given["X"], given["train"], weights=given["weights"])
    return {"solve": solve, "fit_em": fit_em}[target](design, given["y"], likelihood, prior, settings)


def _wrong(found: Any) -> str:
    """What is not as promised: finite arrays, variances that are not negative, sentences, probabilities."""
    tuned = isinstance(found, EmResult)
    result: GampResult = found.result if tuned else found
    parts = {name: value for name, value in vars(result).items() if name not in ("status", "cavity_score")}
    if not np.isnan(result.cavity_score).all():  # max-sum has none
        parts["cavity_score"] = result.cavity_score
    said = not_finite(parts)
    if tuned:
        learnt = {**parameters(found.prior), **parameters(found.likelihood)}
        said = said or not_finite(learnt) or not_between("inclusion", found.inclusion())
    said = said or not_between("coef_var", result.coef_var, 0, np.inf)
    return said or ("" if all(str(each).endswith(".") for each in result.status) else "no sentence")
