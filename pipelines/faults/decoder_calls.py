"""Odd calls of GAMPDecoder: images, masks, labels, groups and settings."""

from typing import Any

import nibabel
import numpy as np

from mvpa_gamp import GAMPDecoder

from . import arrays
from .arrays import Change
from .calls import not_between, not_finite
from .cases import Case, change

_AFFINE = np.diag([3.0, 3.0, 4.0, 1.0])
_SHAPE = (5, 6, 4)


def _image(values: Any, affine: Any = _AFFINE) -> Any:
    return nibabel.Nifti1Image(np.asarray(values, dtype=np.float32), affine)


def _rows(name: str) -> Change:
    """What happens to a matrix, here to volumes x voxels."""

    def changed(volumes: Any, rng: np.random.Generator) -> Any:
        values = np.asarray(volumes.dataobj, dtype=float)
        rows = arrays.VALUES[name](values.reshape(-1, values.shape[3]).T.copy(), rng)
        return _image(np.asarray(rows).T.reshape(*values.shape[:3], -1))

    return changed


def _volumes(part: Any) -> Change:
    return lambda image, rng: part(np.asarray(image.dataobj))


_IMAGES: dict[str, Change] = {name: _rows(name) for name in arrays.VALUES} | {
    "one volume": _volumes(lambda values: _image(values[..., 0])),
    "no volume": _volumes(lambda values: _image(values[..., :0])),
    "a list of volumes": _volumes(lambda v: [_image(v[..., k]) for k in range(v.shape[3])]),
    "a list of runs": _volumes(lambda v: [_image(v[..., k : k + 8]) for k in range(0, v.shape[3], 8)]),
    "an empty list": lambda image, rng: [],
    "an array": _volumes(lambda values: values),
    "a word": lambda image, rng: "bold.nii.gz",
    "nothing": lambda image, rng: None,
    "other grids": _volumes(lambda v: [_image(v[..., 0]), _image(v[:4, ..., 1])]),
    "five axes": _volumes(lambda values: _image(values[..., None])),
    "integers": _volumes(lambda values: nibabel.Nifti1Image(values.astype(np.int16), _AFFINE)),
    "another affine": _volumes(lambda values: _image(values, np.diag([2.0, 3.0, 4.0, 1.0]))),
}
_MASKS: dict[str, Change] = {
    "empty": lambda mask, rng: _image(np.zeros(_SHAPE)),
    "everything": lambda mask, rng: _image(np.ones(_SHAPE)),
    "one voxel": lambda mask, rng: _image(np.arange(120).reshape(_SHAPE) == 60),
    "not finite": lambda mask, rng: _image(np.full(_SHAPE, np.nan)),
    "three values": lambda mask, rng: _image(np.arange(120).reshape(_SHAPE) % 3),
    "another grid": lambda mask, rng: _image(np.ones((3, 3, 3))),
    "four axes": lambda mask, rng: _image(np.ones((*_SHAPE, 2))),
    "an array": lambda mask, rng: np.ones(_SHAPE),
    "a word": lambda mask, rng: "mask.nii.gz",
    "far away": lambda mask, rng: _image(np.ones(_SHAPE), _AFFINE + 500 * np.eye(4, k=3)),
    "nothing": lambda mask, rng: None,
}
_COVARIATES: dict[str, Change] = {
    "constant": lambda c, rng: np.ones_like(c),
    "missing": lambda c, rng: np.where(np.arange(len(c))[:, None] == 3, np.nan, c),
    "too short": lambda c, rng: c[:-1],
    "a vector": lambda c, rng: c[:, 0],
    "words": lambda c, rng: c.astype(str),
    "as many as images": lambda c, rng: rng.standard_normal((len(c), len(c))),
    "huge": lambda c, rng: c * 1e200,
}
_ODD: dict[str, tuple[Any, ...]] = {
    "method": ("gamp-bg-lr", "lda", "svm", "cdn", "vamp-bg", "vamp-sbg", "magic", None),
    "cv": (2, 1, 0, 400, "loo", [], [(np.r_[:8], np.r_[8:16])], [(np.r_[:8], np.r_[99:100])]),
    "scoring": ("roc_auc", "balanced_accuracy", "r2", None, 5),
    "smoothing_fwhm": (4.0, 0.0, -1.0, 1e9, 1e-300, np.nan, "fast", "wide"),
    "standardize": (False, None, "psc", "maybe", 3),
    "detrend": (True, "yes"),
    "whiten": (True,),
    "high_pass": (0.01, -1.0, 10.0, np.nan, "slow"),
    "low_pass": (0.1, 1e-300, "fast"),
    "t_r": (2.0, 0.0, -1.0, np.inf, "two"),
    "ignore": ("house", "rest", ["face", "house"], 3),
    "random_state": (None, -1, 1.5, "seed", np.random.default_rng(0)),
    "class_weight": ("balanced", "equal", 3),
    "n_jobs": (0, 1.5, "all"),
}


def draw(rng: np.random.Generator) -> Case:
    """A fit of GAMPDecoder and its answers."""
    y = np.tile(np.repeat([1.0, -1.0], 4), 3)
    volumes = 100 + rng.standard_normal((*_SHAPE, len(y)))
    volumes[2, 3, 1] += 2 * y
    inside = np.zeros(_SHAPE)
    inside[1:4, 1:5, 1:3] = 1
    given: dict[str, Any] = {"X": _image(volumes), "y": y, "groups": np.repeat(np.arange(3), 8)}
    given |= {"mask": _image(inside), "fold_confounds": None, "own": {}}
    kind = str(rng.choice(["X", "y", "groups", "mask", "fold_confounds", "settings"]))
    if kind == "settings":
        name = str(rng.choice(list(_ODD)))
        given["own"] = {name: _ODD[name][rng.integers(len(_ODD[name]))]}
        if "pass" in name:
            given["own"].setdefault("t_r", 2.0)
        story = str(given["own"])
    else:
        if kind == "fold_confounds":
            given[kind] = rng.standard_normal((len(y), 2))
        changes = {"X": _IMAGES, "y": arrays.LABELS, "groups": arrays.RUNS, "mask": _MASKS}
        story = change(given, {kind: (changes | {"fold_confounds": _COVARIATES})[kind]}, rng)
    return Case("GAMPDecoder", kind, story, lambda: _decode(given), _wrong)


def _decode(given: dict[str, Any]) -> Any:
    decoder = GAMPDecoder(**({"method": "gamp-bg-lr", "mask": given["mask"]} | given["own"]))
    covariates = given["fold_confounds"]
    decoder.fit(given["X"], given["y"], given["groups"], fold_confounds=covariates)
    groups = given["groups"]
    return decoder, decoder.predict_proba(given["X"], groups, fold_confounds=covariates)


def _wrong(found: Any) -> str:
    """What is not as promised of a fitted decoder and its probabilities."""
    decoder, proba = found
    said = not_finite({"coef_": decoder.coef_, "intercept_": decoder.intercept_, "proba": proba})
    said = said or not_between("proba", proba) or not_between("fold_scores_", _known(decoder.fold_scores_))
    return said or ("" if np.allclose(proba.sum(axis=1), 1) else "probabilities do not sum to one")


def _known(scores: Any) -> Any:
    return scores[~np.isnan(scores)]
