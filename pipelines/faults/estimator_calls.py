"""Odd calls of GAMPClassifier and of the methods of the tables."""

from typing import Any

import numpy as np
from scipy import sparse

from mvpa_gamp import GAMPClassifier
from mvpa_gamp.methods import METHODS, FoldFits

from . import arrays, models
from .calls import not_between, not_finite
from .cases import Case, change, matrix

_X = {**arrays.VALUES, **arrays.SHAPES, **arrays.TYPES}
_ODD: dict[str, tuple[Any, ...]] = {
    "likelihood": ("cauchy", None, 3, GAMPClassifier),
    "prior": ("horseshoe", None, 3, "laplace", "gaussian", "elastic-net", "bernoulli-gaussian-mixture"),
    "center": ("train", None, 2, True, False),
    "learn_prior": (("rate", "width"), "rate", (), 5),
    "learn_likelihood": (("scale",), ("var",), 5),
    "class_weight": ("balanced", "equal", {-1.0: 3}, {"x": 1}, {-1.0: -1.0, 1.0: 1.0}, {-1.0: np.nan}),
    "em": (False, None, "no"),
    "solver": ("vamp", "vamp", "vamp", "gamp", "newton", None),
}  # fmt: skip


def draw_classifier(rng: np.random.Generator) -> Case:
    """A fit of GAMPClassifier and its answers."""
    X, y, _, _ = matrix(rng)
    given: dict[str, Any] = {"X": X, "y": y, "weights": None, "connectivity": None}
    kind = str(rng.choice(["arrays", "models", "settings", "forms", "new samples"]))
    own: dict[str, Any] = {"max_iter": (2, 60, None)[rng.integers(3)]}
    new = X
    if kind == "arrays":
        given |= {"weights": np.ones(len(y)), "connectivity": _path(X.shape[1])}
        changes = {"X": _X, "y": arrays.LABELS, "weights": arrays.WEIGHTS, "connectivity": arrays.GRAPHS}
        story = change(given, changes, rng)
        new = given["X"]
    elif kind == "forms":
        story = change(given, {"X": arrays.FORMS}, rng)
    elif kind == "new samples":
        story = change(changed := {"X": X}, {"X": _X}, rng)
        new = changed["X"]
    elif kind == "models":
        number = int(rng.integers(2**31))
        own |= models.usual_settings(rng)
        own["fit_intercept"] = own.pop("intercept")
        own["models"], story = number, f"models {number}, {own}"
    else:
        own |= _setting(rng)
        story = str(own)
    given["own"], given["new"] = own, new
    base = X if kind == "forms" else None
    return Case("GAMPClassifier", kind, story, lambda: _classify(given), lambda found: _wrong(found, base))


def _path(n_features: int) -> Any:
    """A graph in which every feature has the one before and the one after as neighbours."""
    ones = np.ones(n_features - 1)
    return sparse.diags_array([ones, ones], offsets=[-1, 1]).tocsr()


def _setting(rng: np.random.Generator) -> dict[str, Any]:
    """A setting of the classifier, or of its solver, that is odd."""
    if rng.random() < 0.5:
        odd = models.odd_settings(rng)
        odd.pop("patience", None), odd.pop("adaptive", None)
        return {"fit_intercept" if name == "intercept" else name: value for name, value in odd.items()}
    name = str(rng.choice(list(_ODD)))
    return {name: _ODD[name][rng.integers(len(_ODD[name]))]}


def _classify(given: dict[str, Any]) -> tuple[Any, Any, Any]:
    own = dict(given["own"])
    if "models" in own:
        rng = np.random.default_rng(own.pop("models"))
        own |= {"prior": models.prior(rng), "likelihood": models.likelihood(rng)}
    model = GAMPClassifier(connectivity=given["connectivity"], **own)
    model.fit(given["X"], given["y"], given["weights"])
    return model, model.predict_proba(given["new"]), given["new"]


def _wrong(found: tuple[Any, Any, Any], base: Any) -> str:
    """What is not as promised of a fitted classifier and its probabilities."""
    model, proba, new = found
    names = ("coef_", "coef_std_", "intercept_", "inclusion_prob_")
    said = not_finite({name: getattr(model, name) for name in names} | {"proba": proba})
    said = said or not_finite(model.hyperparameters_)
    said = said or not_between("inclusion_prob_", model.inclusion_prob_) or not_between("proba", proba)
    if not said and not np.allclose(proba.sum(axis=1), 1):
        said = "probabilities do not sum to one"
    if not said and not (model.predict(new) == model.classes_[proba.argmax(axis=1)]).all():
        said = "predicted classes are not the most probable ones"
    if not said and len(model.classes_) == 2:
        second = model.predict(new) == model.classes_[1]
        said = "" if ((model.decision_function(new) > 0) == second).all() else "log-odds and class differ"
    if base is not None and not said and not np.allclose(model.predict_proba(base), proba, atol=1e-6):
        said = "another form of the same X gives other probabilities"
    return said


def draw_method(rng: np.random.Generator) -> Case:
    """A call of ``fit_folds`` of any method."""
    X, y, train, runs = matrix(rng)
    given: dict[str, Any] = {"X": X, "y": y, "train": train, "runs": runs}
    name = str(rng.choice(list(METHODS)))
    changes = {"X": _X, "y": arrays.LABELS, "train": arrays.TRAIN, "runs": arrays.RUNS}
    if METHODS[name].uses_connectivity:
        given["connectivity"] = _path(X.shape[1])
        changes["connectivity"] = arrays.GRAPHS
    story = change(given, changes, rng)
    kind = story.split(":")[0]
    return Case(
        "fit_folds", kind, f"{name}, {story}", lambda: METHODS[name].fit_folds(**given),
        lambda fits: _wrong_fits(fits, given["X"]),
    )  # fmt: skip


def _other_decision(decision: Any, X: Any, coef: Any, intercept: Any) -> str:
    """Whether decision values are what weights and intercept give, to rounding of float32."""
    X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=float)
    size = np.abs(X) @ np.abs(coef) + np.abs(intercept)
    near = np.abs(X @ coef + intercept - decision) <= 1e-4 * size + 1e-9 * min(1.0, np.abs(X).max())
    return "" if near.all() else "decision values are not those of the weights"


def _wrong_fits(fits: FoldFits, X: Any) -> str:
    """What is not as promised of the fits of a method."""
    parts = {name: getattr(fits, name) for name in ("coef", "intercept", "decision", "coef_std")}
    said = not_finite(parts)
    if not np.isnan(fits.proba).all():  # a method without a probability model has none
        said = said or not_between("proba", fits.proba)
    if fits.inclusion is not None:
        said = said or not_between("inclusion", fits.inclusion)
    said = said or _other_decision(fits.decision, X, fits.coef, fits.intercept)
    return said or ("" if all(fits.status) else "no status")
