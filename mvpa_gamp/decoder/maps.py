"""What a fitted decoder shows: brain maps by contrast, made when asked for, their view, and tables."""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from nilearn.plotting import view_img
from numpy.typing import NDArray

from mvpa_gamp.coupling import Answers
from mvpa_gamp.decoding.scores import class_maps
from mvpa_gamp.imaging.brainmaps import coordinates, to_image
from mvpa_gamp.imaging.spaces import is_surface
from mvpa_gamp.methods.fold_fits import FoldFits
from mvpa_gamp.results.cells import consistency


class ContrastMaps(Mapping):
    """Images of one kind, by contrast ``"a-b"``: for signed maps positive values favour a.

    ``"b-a"`` gives the same map seen from b. Each class is a key as well: the mean over the pairs that it is
    part of, seen from that class. ``as_nilearn``: with two classes the maps by class have the sign of
    nilearn's ``coef_img_``, the opposite one, and a warning says so. Holds vectors (N,), so many contrasts
    cost little memory.
    """

    def __init__(
        self,
        vectors: NDArray,
        pairs: list[tuple[Any, Any]],
        mask_img: Any,
        signed: bool,
        as_nilearn: bool = False,
    ) -> None:
        self._vectors = np.asarray(vectors, dtype=np.float32)  # (N, P)
        self._pairs, self._mask_img, self._signed, self._as_nilearn = pairs, mask_img, signed, as_nilearn
        self._classes = list(dict.fromkeys(name for pair in pairs for name in pair))
        self._keys: list[Any] = [contrast_key(*pair) for pair in pairs]
        self._keys += [name for name in self._classes if name not in self._keys]

    def vector(self, key: Any) -> NDArray:
        """The values (N,) of a map at the mask's voxels."""
        column, sign = self._find(key)
        if column is None:
            return self._of_class(self._classes.index(key))
        values = self._vectors[:, column]
        return -values if self._signed and sign < 0 else values

    def _of_class(self, number: int) -> NDArray:
        """The mean of the maps of a class and each other one."""
        maps = class_maps(list(self._vectors.T), len(self._classes), self._signed)[:, number]
        if self._as_nilearn and len(self._classes) == 2:
            name, other, (a, b) = self._classes[number], self._classes[1 - number], self._pairs[0]
            warnings.warn(
                f"The map of {name!r} follows nilearn's sign: with two classes, positive values in the map "
                f"of one class favour the other one, {other!r}. In the map of {contrast_key(a, b)!r} they "
                f"favour {a!r}.",
                stacklevel=4,
            )
            maps = -maps
        return maps.astype(np.float32)

    def __getitem__(self, key: Any) -> Any:
        return to_image(self.vector(key), self._mask_img)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: object) -> bool:
        try:
            self._find(key)
        except KeyError:
            return False
        return True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._keys))})"

    def _find(self, key: Any) -> tuple[int | None, int]:
        """The column and sign of a contrast; no column for a class."""
        for column, (a, b) in enumerate(self._pairs):
            if key == contrast_key(a, b):
                return column, 1
            if key == contrast_key(b, a):
                return column, -1
        if key in self._classes:
            return None, 1
        raise KeyError(
            f"no map of {key!r}; there are maps of pairs of classes and of classes: "
            f"{', '.join(map(repr, self._keys[:10]))}" + (" ..." if len(self._keys) > 10 else "")
        )


def contrast_key(a: Any, b: Any) -> str:
    """The key of a pair: ``"face-house"``."""
    return f"{a}-{b}"


_MAPS = {
    "weight": "coef_img_",
    "weightsd": "coef_std_img_",
    "pip": "inclusion_img_",
    "pattern": "pattern_img_",
    "selfreq": "selection_freq_img_",
}  # by the names of the maps' files
_SIGNED = ("weight", "pattern")


def view_map(decoder: Any, contrast: Any, stat: str, threshold: Any) -> Any:
    """nilearn's ``view_img`` of a map on the mean of the images."""
    if stat not in _MAPS or getattr(decoder, _MAPS[stat]) is None:
        known = [name for name, attribute in _MAPS.items() if getattr(decoder, attribute) is not None]
        raise ValueError(f"stat: expected one of {', '.join(known)}, got {stat!r}. Change it.")
    maps = getattr(decoder, _MAPS[stat])
    key = decoder.contrasts_[0] if contrast is None else contrast
    if key not in maps:
        raise ValueError(
            f"contrast: expected one of {', '.join(map(repr, decoder.contrasts_[:10]))}, got {key!r}. "
            "Change it."
        )
    signed = stat in _SIGNED
    if is_surface(decoder.mask_img_):
        return _view_surface(maps[key], f"{key}: {stat}", threshold, signed)
    peak = coordinates(decoder.mask_img_)[np.argmax(np.abs(maps.vector(key)))]
    with warnings.catch_warnings():
        # nilearn takes the median of a masked background, which NumPy remarks upon; nothing is masked.
        warnings.filterwarnings("ignore", message=".*'partition' will ignore the 'mask'")
        return view_img(
            maps[key],
            bg_img=decoder._data.mean_img,
            cut_coords=tuple(peak.tolist()),  # the voxel of the largest value
            threshold=threshold,
            title=f"{key}: {stat}",
            symmetric_cmap=signed,
            vmin=None if signed else 0,
            cmap="RdBu_r" if signed else "viridis",
        )


def _view_surface(image: Any, title: str, threshold: Any, signed: bool) -> Any:
    """nilearn's ``view_surf`` of a map, both hemispheres, on inflated meshes where they are known."""
    from nilearn.plotting import view_surf

    from mvpa_gamp.imaging.cortex import cortex_of

    cortex = cortex_of(image)
    sulci = None if cortex.sulci is None else cortex.image(np.concatenate(list(cortex.sulci.values())))
    return view_surf(
        cortex.drawn or cortex.mesh,
        image,
        bg_map=sulci,
        hemi="both" if len(cortex.parts) == 2 else cortex.parts[0],
        threshold=threshold,
        title=title,
        symmetric_cmap=signed,
        vmin=None if signed else 0,
        cmap="RdBu_r" if signed else "viridis",
    )


def predictions_table(
    rows: NDArray, groups: NDArray | None, fold: NDArray, true: NDArray, said: Answers, classes: NDArray
) -> pd.DataFrame:
    """One row per held-out image; ``true`` are class numbers, folds count from 1."""
    table: dict[str, Any] = {
        "row": rows,
        "group": np.full(len(rows), None, dtype=object) if groups is None else groups,
        "fold": fold + 1,
        "true": classes[true],
        "predicted": classes[said.predicted],
    }
    table |= {f"probability_{name}": said.proba[:, k] for k, name in enumerate(classes)}
    return pd.DataFrame(table)


def confusion_table(counts: NDArray, classes: NDArray) -> pd.DataFrame:
    """Counts of held-out images: rows are true classes, columns predicted ones."""
    return pd.DataFrame(
        counts, index=pd.Index(classes, name="true"), columns=pd.Index(classes, name="predicted")
    )


def stability_table(fits: Sequence[FoldFits], names: list[str]) -> pd.DataFrame:
    """Consistency of the folds' selections by contrast; NaN where there is a single fold.

    Short names and a rounded number of voxels, so that a line fits into a terminal.
    """
    rows = [_stability(each.folds.support) for each in fits]
    return pd.DataFrame(rows, index=pd.Index(names, name="contrast"))


def _stability(support: NDArray) -> dict[str, float]:
    out = {"voxels": round(float(support.sum(axis=0).mean()), 1)}
    if support.shape[1] < 2:
        return out | dict.fromkeys(("jaccard", "chance", "nogueira", "low", "high"), math.nan)
    found = consistency(support)
    overlap = found["consistency_percent"] / 100, found["chance_consistency_percent"] / 100
    index = (found[name] for name in ("nogueira", "nogueira_low", "nogueira_high"))
    return out | dict(zip(("jaccard", "chance", "nogueira", "low", "high"), (*overlap, *index), strict=True))


def learnt_parameters(fits: Sequence[FoldFits], classes: NDArray, names: list[str]) -> dict[Any, Any]:
    """What every fold learnt, by contrast (of two classes also by class) and parameter, as lists."""
    found = [{key: values[:-1].tolist() for key, values in each.parameters.items()} for each in fits]
    learnt: dict[Any, Any] = dict(zip(names, found, strict=True))
    return learnt | (dict.fromkeys(classes.tolist(), found[0]) if len(classes) == 2 else {})


def status_table(fits: Sequence[FoldFits], names: list[str]) -> pd.DataFrame:
    """One row per fit: contrast, fold ("refit" for the one on all images), and how it ended."""
    tables = []
    for name, each in zip(names, fits, strict=True):
        assert each.held_out is not None
        tables.append(pd.DataFrame({
            "contrast": name,
            "fold": [*range(1, each.n_folds + 1), "refit"],
            "held_out": [*each.held_out.tolist(), None],
            "converged": each.converged,
            "n_iter": each.n_iter,
            "voxels": each.support.sum(axis=0),
            "intercept": each.intercept,
            **each.parameters,
            "status": each.status,
        }))  # fmt: skip
    return pd.concat(tables, ignore_index=True)
