"""Pairs of categories, and the rows and labels each pair uses."""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Pair = tuple[str, str]

# The six comparisons of the paper's Haxby table, in its order.
PAPER_PAIRS: tuple[Pair, ...] = (
    ("cat", "scissors"),
    ("cat", "shoe"),
    ("cat", "house"),
    ("bottle", "shoe"),
    ("bottle", "chair"),
    ("face", "chair"),
)


@dataclass(frozen=True)
class Task:
    """One comparison: the rows of either category, labelled +1 for ``positive`` and -1 for ``negative``."""

    positive: str
    negative: str
    rows: NDArray[np.integer]  # (m,) row numbers in the full sample matrix, ascending
    y: NDArray[np.floating]  # (m,)

    @property
    def name(self) -> str:
        """The contrast for file names, e.g. ``catMinusScissors``: ASCII letters and digits only."""
        return contrast_name(self.positive, self.negative)

    @property
    def label(self) -> str:
        """The comparison for people, e.g. ``cat vs scissors``."""
        return f"{self.positive} vs {self.negative}"


def contrast_name(positive: str, negative: str) -> str:
    """Return ``aMinusB`` with everything but ASCII letters and digits taken out of both names.

    >>> from mvpa_gamp.decoding import contrast_name
    >>> contrast_name("cat", "scrambled pix")
    'catMinusScrambledpix'
    """
    second = _alphanumeric(negative)
    return f"{_alphanumeric(positive)}Minus{second[0].upper()}{second[1:]}"


def make_tasks(conditions: Any, pairs: Iterable[Pair]) -> list[Task]:
    """Build the task of every pair from conditions (M,), the category of each row.

    Raises when a category has no rows, or when two pairs would write files of the same name.
    """
    conditions = np.asarray(conditions)
    tasks = [_make_task(conditions, *pair) for pair in pairs]
    seen: dict[str, Task] = {}
    for task in tasks:
        other = seen.setdefault(task.name.lower(), task)  # lower case: some file systems ignore it
        if other is not task:
            raise ValueError(
                f"The pairs {other.label!r} and {task.label!r} would share the file name {task.name!r}. "
                "Give each pair once, and categories names that differ in letters or digits."
            )
    return tasks


def parse_pairs(
    pairs: str | Sequence[str] | None, categories: Iterable[str], dropped: Sequence[str] = ()
) -> list[Pair]:
    """Turn a user's choice into pairs of categories.

    ``["face:house", ...]`` names pairs, "all" (or ["all"]) takes every pair, and None takes the paper's pairs
    as far as their categories are present, or every pair when none of the paper's is. ``dropped`` are
    conditions that were left out on purpose, such as rest: messages say so.

    >>> from mvpa_gamp.decoding import parse_pairs
    >>> parse_pairs("all", ["face", "house", "cat"])
    [('cat', 'face'), ('cat', 'house'), ('face', 'house')]
    """
    known = sorted({str(category) for category in categories})
    if len(known) < 2:
        raise ValueError(
            f"A comparison needs at least two categories, the data have {_listed(known)}. Check the labels."
        )
    if pairs is None:
        present = [pair for pair in PAPER_PAIRS if set(pair) <= set(known)]
        return present or list(combinations(known, 2))
    texts = [pairs] if isinstance(pairs, str) else list(pairs)
    if texts == ["all"]:
        return list(combinations(known, 2))
    if not texts:
        raise ValueError("No pair was given. Name pairs like face:house, or say all.")
    found = [_parse_pair(text, known, dropped) for text in texts]
    for pair in found:
        if found.count(pair) + found.count(pair[::-1]) > 1:
            raise ValueError(f"The pair {pair[0]}:{pair[1]} was given more than once. Give each pair once.")
    return found


def _parse_pair(text: str, known: list[str], dropped: Sequence[str]) -> Pair:
    """Split at the colon; where a category contains colons, the split with two known sides counts."""
    splits = [(text[:i], text[i + 1 :]) for i, letter in enumerate(text) if letter == ":"]
    if not splits:
        raise ValueError(
            f"A pair is written category:category, got {text!r}. For example face:house, or all."
        )
    matches = [split for split in splits if set(split) <= set(known)]
    if not matches:
        unknown = [name for name in splits[0] if name not in known]
        resting = [name for name in unknown if name in dropped]
        if resting:
            raise ValueError(
                f"The pair {text!r} names {_listed(resting)}, whose volumes are left out as rest and cannot "
                f"be compared. Choose among {_listed(known)}, or rename the condition in the label file."
            )
        raise ValueError(
            f"The pair {text!r} names {_listed(unknown)}, which the data do not have. "
            f"Choose among {_listed(known)}."
        )
    first, second = matches[0]
    if first == second:
        raise ValueError(
            f"A pair compares two different categories, got {text!r}. Choose among {_listed(known)}."
        )
    return first, second


def check_signs(labels: NDArray) -> None:
    """Raise a ValueError unless every label is -1 or +1."""
    if labels.dtype.kind not in "fiu" or not np.isin(labels, (-1, 1)).all():
        raise ValueError(
            "y must be -1 or +1 in every row, got something else. "
            "Make it with np.where(conditions == 'face', 1, -1), for example."
        )


def _make_task(conditions: NDArray, positive: str, negative: str) -> Task:
    if positive == negative:
        raise ValueError(f"A pair compares two different categories, got {positive!r} twice. Name two.")
    for category in (positive, negative):
        if not (conditions == category).any():
            raise ValueError(
                f"The category {category!r} has no rows. The data have {_listed(np.unique(conditions))}; "
                "choose two of them."
            )
    rows = np.flatnonzero((conditions == positive) | (conditions == negative))
    return Task(positive, negative, rows, np.where(conditions[rows] == positive, 1.0, -1.0))


def _alphanumeric(name: str) -> str:
    """ASCII letters and digits of a name; other letters lose their accents or become their code point."""
    parts = []
    for letter in unicodedata.normalize("NFKD", name):
        if letter.isascii() and letter.isalnum():
            parts.append(letter)
        elif letter.isalnum():
            parts.append(f"u{ord(letter):x}")
    return "".join(parts) or "".join(f"u{ord(letter):x}" for letter in name) or "unnamed"


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(repr(str(name)) for name in names) or "none"
