"""Brain maps by contrast: a dictionary that makes an image when it is asked for one."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.brainmaps import to_image


class ContrastMaps(Mapping):
    """Images of one kind, by contrast ``"a-b"``: for signed maps positive values speak for a.

    ``"b-a"`` gives the same map seen from b. With two classes each class is a key as well, and the map is
    seen from that class. Holds vectors (N,), so many contrasts cost little memory.
    """

    def __init__(self, vectors: NDArray, pairs: list[tuple[Any, Any]], mask_img: Any, signed: bool) -> None:
        self._vectors = np.asarray(vectors, dtype=np.float32)  # (N, P)
        self._pairs, self._mask_img, self._signed = pairs, mask_img, signed
        self._keys: list[Any] = [contrast_key(*pair) for pair in pairs]
        if len(pairs) == 1:
            self._keys += [name for name in pairs[0] if name not in self._keys]

    def vector(self, key: Any) -> NDArray:
        """The values (N,) of a map at the mask's voxels."""
        column, sign = self._find(key)
        values = self._vectors[:, column]
        return -values if self._signed and sign < 0 else values

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

    def _find(self, key: Any) -> tuple[int, int]:
        for column, (a, b) in enumerate(self._pairs):
            if key == contrast_key(a, b) or (len(self._pairs) == 1 and key == a):
                return column, 1
            if key == contrast_key(b, a) or (len(self._pairs) == 1 and key == b):
                return column, -1
        raise KeyError(
            f"no map of {key!r}; maps are of pairs of classes: {', '.join(map(repr, self._keys[:10]))}"
            + (" ..." if len(self._keys) > 10 else "")
        )


def contrast_key(a: Any, b: Any) -> str:
    """The key of a pair: ``"face-house"``."""
    return f"{a}-{b}"
