"""The comparisons of a study: pairs that are named, pairs among classes, and both sides of crosses."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from .cross_tasks import parse_cross
from .groups import read_side
from .tasks import Pair, Task, check_known, listed, make_tasks, parse_pairs

ALL = ("all",)
_Found = TypeVar("_Found")


class Classes(NamedTuple):
    """K classes that are decoded together; each may be a group of conditions."""

    names: tuple[str, ...]
    members: tuple[tuple[str, ...], ...]
    rows: NDArray  # (m,) rows of the study that belong to a class, ascending
    codes: NDArray  # (m,) class numbers
    tasks: tuple[Task, ...]  # the pairs, in the order of ``class_pairs``


def parse_classes(classes: Sequence[str], known: Sequence[str], dropped: Sequence[str] = ()) -> list[str]:
    """The classes asked for, sorted as written: conditions, groups of them, or all there are.

    >>> from mvpa_gamp.decoding import parse_classes
    >>> parse_classes(["house", "face*"], ["cat", "face_inv", "face_up", "house"])
    ['face*', 'house']
    """
    known = sorted(known)
    names = known if tuple(classes) == ALL else sorted(dict.fromkeys(classes))
    sides = [read_side(name, known) for name in names]
    check_known("The list of classes", [part for side in sides for part in side.unknown], known, dropped)
    if len(names) < 2:
        raise ValueError(f"expected at least two classes, got {listed(names)}. Choose among {listed(known)}.")
    members = [member for side in sides for member in side.members]
    twice = [member for member in dict.fromkeys(members) if members.count(member) > 1]
    if twice:
        raise ValueError(
            f"{listed(twice)} belongs to two of the classes {listed(names)}. Each condition may be in one "
            "class only: name fewer, or a narrower pattern."
        )
    return names


def make_classes(conditions: NDArray, names: Sequence[str]) -> Classes:
    """The rows and pairs of classes from :func:`parse_classes`; conditions (M,) are those of the study.

    >>> import numpy as np
    >>> from mvpa_gamp.decoding import make_classes
    >>> found = make_classes(np.array(["cat", "face", "rest", "face"]), ["cat", "face"])
    >>> found.rows.tolist(), found.codes.tolist()
    ([0, 1, 3], [0, 1, 1])
    """
    known = [str(name) for name in np.unique(conditions)]
    members = tuple(read_side(name, known).members for name in names)
    codes = np.full(len(conditions), -1)
    for number, mine in enumerate(members):
        codes[np.isin(conditions, mine)] = number
    rows = np.flatnonzero(codes >= 0)
    tasks = make_tasks(conditions, combinations(names, 2))
    return Classes(tuple(names), members, rows, codes[rows], tuple(tasks))


def design_pairs(
    pairs: Sequence[str] | None,
    classes: Sequence[str],
    crosses: Sequence[str],
    known: Sequence[str],
    dropped: Sequence[str] = (),
    option: str = "--pairs",
) -> list[Pair]:
    """Every comparison that a study makes, once: named pairs, pairs among classes, both sides of crosses.

    None for ``pairs`` means the default ones, an empty list none. Of two spellings or directions of one
    comparison that of the classes counts, then the first. Messages begin with the option they are about.
    """
    named: list[Pair] = []
    among: list[Pair] = []
    if pairs is None or len(pairs):
        named = _of(option, lambda: parse_pairs(pairs, known, dropped))
    if classes:
        among = list(combinations(_of("--classes", lambda: parse_classes(classes, known, dropped)), 2))
    crossed = [
        pair
        for text in crosses
        for both in _of("--cross", lambda text=text: parse_cross(text, known, dropped))  # type: ignore[misc]
        for pair in both
    ]
    places: dict[frozenset[tuple[str, ...]], Pair] = {}
    for pair in (*named, *among, *crossed):
        places.setdefault(_meaning(pair, known), pair)
    places |= {_meaning(pair, known): pair for pair in among}
    return list(places.values())


def _meaning(pair: Pair, known: Sequence[str]) -> frozenset[tuple[str, ...]]:
    return frozenset(read_side(side, sorted(known)).members for side in pair)


def _of(option: str, read: Callable[[], _Found]) -> _Found:
    """What was read, or an error that names the option."""
    try:
        return read()
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from error
