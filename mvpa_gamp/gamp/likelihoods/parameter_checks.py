"""Checks of likelihood parameters at construction, each with a sentence that says what to do."""

from collections.abc import Iterable
from typing import Any

import numpy as np


def require_positive(owner: str, name: str, value: Any) -> None:
    """Refuse a parameter that is not a positive finite number (or one per column)."""
    numbers = np.asarray(value, dtype=float)
    if not np.all(np.isfinite(numbers) & (numbers > 0)):
        raise ValueError(
            f"{owner}: {name} must be positive and finite, got {value!r}. "
            "Give a positive number, or one per column."
        )


def require_known(owner: str, learn: Iterable[str], learnable: tuple[str, ...]) -> frozenset[str]:
    """The names to learn as a set; refuse names the likelihood cannot learn."""
    names = frozenset([learn] if isinstance(learn, str) else learn)
    unknown = sorted(names - set(learnable))
    if unknown:
        known = ", ".join(learnable) or "none"
        raise ValueError(
            f"{owner}: cannot learn {', '.join(unknown)}; learnable here: {known}. Correct the names."
        )
    return names
