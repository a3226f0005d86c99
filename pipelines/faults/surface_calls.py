"""Odd calls of GAMPDecoder on surfaces: images, meshes and masks."""

from typing import Any

import numpy as np
from nilearn.surface import InMemoryMesh, PolyMesh, SurfaceImage

from mvpa_gamp import GAMPDecoder

from . import arrays
from .arrays import Change
from .bids_files import small_mesh
from .calls import not_between, not_finite
from .cases import Case, change

_MESH = small_mesh()
_SIZES = {part: mesh.n_vertices for part, mesh in _MESH.parts.items()}


def _values(name: str) -> Change:
    """What happens to a matrix, here to images x vertices of the left hemisphere."""

    def changed(image: SurfaceImage, rng: np.random.Generator) -> SurfaceImage:
        parts = dict(image.data.parts)
        parts["left"] = np.asarray(arrays.VALUES[name](parts["left"].T.copy(), rng)).T
        parts["right"] = parts["right"].astype(parts["left"].dtype)  # nilearn wants one type
        return SurfaceImage(_MESH, parts)

    return changed


def _cut(image: SurfaceImage) -> SurfaceImage:
    """Another mesh, of fewer vertices."""
    left = _MESH.parts["left"]
    smaller = InMemoryMesh(left.coordinates[:-1], left.faces[(left.faces < left.n_vertices - 1).all(axis=1)])
    mesh = PolyMesh(left=smaller, right=_MESH.parts["right"])
    return SurfaceImage(mesh, {"left": image.data.parts["left"][:-1], "right": image.data.parts["right"]})


def _ones(value: float) -> SurfaceImage:
    return SurfaceImage(_MESH, {part: np.full(size, value) for part, size in _SIZES.items()})


_IMAGES: dict[str, Change] = {name: _values(name) for name in arrays.VALUES} | {
    "one image": lambda x, rng: SurfaceImage(_MESH, {k: v[:, :1] for k, v in x.data.parts.items()}),
    "no time": lambda x, rng: SurfaceImage(_MESH, {k: v[:, 0] for k, v in x.data.parts.items()}),
    "a list": lambda x, rng: [x],
    "twice": lambda x, rng: [x, x],
    "an empty list": lambda x, rng: [],
    "another mesh": lambda x, rng: _cut(x),
    "two meshes": lambda x, rng: [x, _cut(x)],
    "an array": lambda x, rng: x.data.parts["left"],
    "a word": lambda x, rng: "hemi-L_bold.func.gii",
}
_MASKS: dict[str, Change] = {
    "empty": lambda mask, rng: _ones(0),
    "everything": lambda mask, rng: _ones(1),
    "not finite": lambda mask, rng: _ones(np.nan),
    "another mesh": lambda mask, rng: _cut(SurfaceImage(_MESH, {k: np.ones(n) for k, n in _SIZES.items()})),
    "an array": lambda mask, rng: np.ones(sum(_SIZES.values())),
    "a word": lambda mask, rng: "mask.gii",
    "nothing": lambda mask, rng: None,
}
_ODD: tuple[dict[str, Any], ...] = (
    {"smoothing_fwhm": 4.0}, {"method": "gamp-sbg-lr"}, {"method": "svm"}, {"whiten": True},
    {"standardize": None}, {"t_r": 2.0, "high_pass": 0.01}, {"detrend": True},
)  # fmt: skip


def draw(rng: np.random.Generator) -> Case:
    """A fit on two strips of triangles and its answers."""
    y = np.tile(np.repeat([1.0, -1.0], 4), 3)
    parts = {part: 100 + rng.standard_normal((size, len(y))) for part, size in _SIZES.items()}
    parts["left"][:3] += 2 * y
    given: dict[str, Any] = {"X": SurfaceImage(_MESH, parts), "y": y, "groups": np.repeat(np.arange(3), 8)}
    given |= {"mask": _ones(1), "own": {}}
    kind = str(rng.choice(["X", "y", "groups", "mask", "settings"]))
    if kind == "settings":
        given["own"] = _ODD[rng.integers(len(_ODD))]
        story = str(given["own"])
    else:
        odd = {"X": _IMAGES, "y": arrays.LABELS, "groups": arrays.RUNS, "mask": _MASKS}[kind]
        story = change(given, {kind: odd}, rng)
    return Case("GAMPDecoder on surfaces", kind, story, lambda: _decode(given), _wrong)


def _decode(given: dict[str, Any]) -> Any:
    decoder = GAMPDecoder(**({"method": "gamp-bg-lr", "mask": given["mask"]} | given["own"]))
    decoder.fit(given["X"], given["y"], given["groups"])
    return decoder, decoder.predict_proba(given["X"], given["groups"])


def _wrong(found: Any) -> str:
    """What is not as promised of a fitted decoder and its probabilities."""
    decoder, proba = found
    said = not_finite({"coef_": decoder.coef_, "proba": proba}) or not_between("proba", proba)
    return said or ("" if np.allclose(proba.sum(axis=1), 1) else "probabilities do not sum to one")
