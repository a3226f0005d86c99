"""Images and labels given run by run: lists of the same length, as first-level models take them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def join_runs(counts: Sequence[int], y: Any, groups: Any) -> tuple[Any, NDArray | None]:
    """Labels of all images, and their groups; ``counts`` are the images of every image file.

    Where y is a list of lists, one for each image, they are joined, and without groups every one is a run.
    """
    if not isinstance(y, (list, tuple)) or not y or any(np.ndim(part) != 1 for part in y):
        return y, groups
    sizes = [len(part) for part in y]
    if sizes != list(counts):
        raise ValueError(
            f"y: expected a label per image in each of {len(counts)} runs ({_listed(counts)}), got "
            f"{len(sizes)} lists ({_listed(sizes)}). Give one list of labels per image file, in their order."
        )
    if isinstance(groups, (list, tuple)) and all(np.ndim(part) == 1 for part in groups):
        groups = np.concatenate([np.asarray(part) for part in groups])
    runs = np.repeat(np.arange(1, len(sizes) + 1), sizes)
    return np.concatenate([np.asarray(part) for part in y]), runs if groups is None else groups


def _listed(sizes: Sequence[int]) -> str:
    """The first few sizes."""
    return ", ".join(map(str, list(sizes)[:6])) + (" ..." if len(sizes) > 6 else "")
