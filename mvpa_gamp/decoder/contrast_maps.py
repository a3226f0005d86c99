"""Brain maps by contrast: a dictionary that makes an image when it is asked for one."""

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.classes import class_maps
from mvpa_gamp.imaging.brainmaps import to_image


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
