"""Comparisons: pairs of conditions, or of groups of them, and the rows and labels each pair uses."""

import hashlib
import reprlib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_JOIN = "+"
_SPELLED = {_JOIN: "Plus", "*": "Any", "?": "One"}  # in file names, where only letters and digits may stand
_LONGEST = 48  # letters of a side in a file name: systems allow 255 for a name with two sides, method, map
_DOMINATES = 2.0  # a member with this many times the rows of the other members' mean decides for its side
Pair = tuple[str, str]
_SHOWN = 5  # values of labels that a message lists
# The six comparisons of the paper's Haxby table, in its order.
PAPER_PAIRS: tuple[Pair, ...] = (
    ("cat", "scissors"),
    ("cat", "shoe"),
    ("cat", "house"),
    ("bottle", "shoe"),
    ("bottle", "chair"),
    ("face", "chair"),
)


class Side(NamedTuple):
    """One side of a comparison as written, the conditions it means, and the names that match none."""

    text: str
    members: tuple[str, ...]
    unknown: tuple[str, ...] = ()


def read_side(text: str, known: Sequence[str]) -> Side:
    """The conditions among ``known`` that a side names: one, several joined by +, or patterns with * and ?.

    A condition of exactly that name wins, also where it contains + or *. Members come in the order of
    ``known``; letters count as written, capital or small.

    Parameters
    ----------
    text
        What the user wrote.
    known
        The conditions that there are.

    Returns
    -------
    Side
        Its text and its members.

    Examples
    --------
    >>> from mvpa_gamp.decoding import read_side
    >>> read_side("face_*+house", ["cat", "face_inv", "face_up", "house"]).members
    ('face_inv', 'face_up', 'house')
    """
    members, unknown = set(), []
    parts = text.split(_JOIN)
    while parts:
        # The longest run of parts that is a condition by itself, else a pattern of one part.
        whole = next((n for n in range(len(parts), 0, -1) if _JOIN.join(parts[:n]) in known), 1)
        part, parts = _JOIN.join(parts[:whole]), parts[whole:]
        found = [part] if part in known else [name for name in known if fnmatchcase(name, part)]
        members.update(found)
        unknown += [] if found else [part]
    return Side(text, tuple(name for name in dict.fromkeys(known) if name in members), tuple(unknown))


def file_side(side: Side) -> str:
    """A side for file names: ASCII letters and digits; + is spelled Plus, * Any, ? One; long ones are cut.

    >>> from mvpa_gamp.decoding import read_side
    >>> file_side(read_side("face*+cat", ["cat", "face_up"]))
    'faceAnyPluscat'
    """
    text = side.text
    if side.members != (text,):
        text = "".join(_SPELLED.get(letter, letter) for letter in text)
    plain = alphanumeric(text)
    if len(plain) <= _LONGEST:
        return plain
    return plain[: _LONGEST - 8] + hashlib.sha256(side.text.encode()).hexdigest()[:8]


def alphanumeric(name: str) -> str:
    """ASCII letters and digits of a name; other letters lose their accents or become their code point."""
    parts = []
    for letter in unicodedata.normalize("NFKD", name):
        if letter.isascii() and letter.isalnum():
            parts.append(letter)
        elif letter.isalnum():
            parts.append(f"u{ord(letter):x}")
    return "".join(parts) or "".join(f"u{ord(letter):x}" for letter in name) or "unnamed"


class MemberRows(NamedTuple):
    """How many rows a condition gives to its side of a comparison, in all and in every run."""

    side: str
    member: str
    rows: int
    by_run: dict[str, int]


def member_rows(sides: Sequence[Side], conditions: NDArray, runs: NDArray) -> list[MemberRows]:
    """The rows (M,) of every member of some sides, run by run."""
    names = np.unique(runs)
    out = []
    for side in sides:
        for member in side.members:
            mine = conditions == member
            counts = {str(run): int(np.count_nonzero(mine & (runs == run))) for run in names}
            out.append(MemberRows(side.text, member, int(mine.sum()), counts))
    return out


def dominant(counts: Sequence[int]) -> int | None:
    """The place of a member that has at least twice the rows of the other members' mean, if there is one.

    >>> dominant([90, 30, 40]), dominant([40, 30]), dominant([40])
    (0, None, None)
    """
    if len(counts) < 2:
        return None
    place = int(np.argmax(counts))
    others = (sum(counts) - counts[place]) / (len(counts) - 1)
    return place if counts[place] >= _DOMINATES * others else None


@dataclass(frozen=True)
class Task:
    """One comparison: the rows of either category, labelled +1 for ``positive`` and -1 for ``negative``.

    A side may be a group of categories, such as ``face_up+face_inv`` or ``face*``; ``members`` are those of
    the two sides, empty where both are single categories.
    """

    positive: str
    negative: str
    rows: NDArray[np.integer]  # (m,) row numbers in the full sample matrix, ascending
    y: NDArray[np.floating]  # (m,)
    members: tuple[tuple[str, ...], ...] = ()

    @property
    def sides(self) -> tuple[Side, Side]:
        """The two sides, each with the categories it means."""
        first, second = self.members or ((self.positive,), (self.negative,))
        return Side(self.positive, first), Side(self.negative, second)

    @property
    def name(self) -> str:
        """The contrast for file names, e.g. ``catMinusScissors``: ASCII letters and digits only."""
        return contrast_name(*(file_side(side) for side in self.sides))

    @property
    def label(self) -> str:
        """The comparison for people, e.g. ``cat vs scissors``."""
        return f"{self.positive} vs {self.negative}"


def contrast_name(positive: str, negative: str) -> str:
    """Return ``aMinusB`` with everything but ASCII letters and digits removed from both names.

    Parameters
    ----------
    positive, negative
        The names of both sides.

    Returns
    -------
    str
        Letters and digits alone, as names of files have it.

    Examples
    --------
    >>> from mvpa_gamp.decoding import contrast_name
    >>> contrast_name("cat", "scrambled pix")
    'catMinusScrambledpix'
    """
    second = alphanumeric(negative)
    return f"{alphanumeric(positive)}Minus{second[0].upper()}{second[1:]}"


def make_tasks(conditions: Any, pairs: Iterable[Pair]) -> list[Task]:
    """Build the task of every pair from conditions (M,), the category of each row.

    A side may be a group: ``("face_up+face_inv", "house")`` or ``("face*", "house*")``. Raises when a
    category has no rows, or when two pairs would write files of the same name.

    Parameters
    ----------
    conditions
        The category (M,) of every row.
    pairs
        The two sides of every comparison.

    Returns
    -------
    list of Task
        One per pair, in their order: rows, labels y (m,) in -1/+1, and names.

    Examples
    --------
    >>> from mvpa_gamp.decoding import make_tasks
    >>> (task,) = make_tasks(["face", "rest", "house", "face"], [("face", "house")])
    >>> task.rows.tolist(), task.y.tolist()
    ([0, 2, 3], [1.0, -1.0, 1.0])
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
    as far as their categories are present, or every pair when none of the paper's is. A side may be several
    categories, ``face_up+face_inv:house``, or a pattern, ``face*:house*``; a category of exactly that name
    wins. ``dropped`` are conditions that were left out on purpose, such as rest: messages say so.

    Parameters
    ----------
    pairs
        What the user chose.
    categories
        Those that the data have.
    dropped
        Conditions that were left out on purpose, for messages.

    Returns
    -------
    list of tuple
        The names of both sides of every comparison.

    Examples
    --------
    >>> from mvpa_gamp.decoding import parse_pairs
    >>> parse_pairs("all", ["face", "house", "cat"])
    [('cat', 'face'), ('cat', 'house'), ('face', 'house')]
    """
    known = sorted({str(category) for category in categories})
    if len(known) < 2:
        raise ValueError(
            f"A comparison needs at least two categories, but the data have {listed(known)}. Check the "
            "labels."
        )
    if pairs is None:
        present = [pair for pair in PAPER_PAIRS if set(pair) <= set(known)]
        return present or list(combinations(known, 2))
    texts = [pairs] if isinstance(pairs, str) else list(pairs)
    if texts == ["all"]:
        return list(combinations(known, 2))
    if not texts:
        raise ValueError("No pair was given. Give pairs such as face:house, or all.")
    found = [parse_pair(text, known, dropped) for text in texts]
    meant = [frozenset(read_side(side, known).members for side in pair) for pair in found]
    for pair, sides in zip(found, meant, strict=True):
        if meant.count(sides) > 1:
            raise ValueError(f"The pair {pair[0]}:{pair[1]} was given more than once. Give each pair once.")
    return found


def parse_pair(text: str, known: Sequence[str], dropped: Sequence[str] = ()) -> Pair:
    """The two sides of ``a:b``; where a category contains colons, the split with two known sides counts."""
    splits = [(text[:i], text[i + 1 :]) for i, letter in enumerate(text) if letter == ":"]
    if not splits:
        raise ValueError(
            f"A pair is written category:category, got {text!r}. For example face:house, or all."
        )
    read = [(read_side(first, known), read_side(second, known)) for first, second in splits]
    clear = [sides for sides in read if not sides[0].unknown and not sides[1].unknown]
    if not clear:
        check_known(f"The pair {text!r}", [name for side in read[0] for name in side.unknown], known, dropped)
    first, second = clear[0]
    check_apart(f"pair {text!r}", (first, second), known)
    return first.text, second.text


def check_known(what: str, unknown: Sequence[str], known: Sequence[str], dropped: Sequence[str]) -> None:
    """Raise a ValueError about names and patterns that no category has."""
    resting = [name for name in unknown if name in dropped]
    if resting:
        raise ValueError(
            f"{what} names {listed(resting)}, whose volumes are left out as rest and cannot "
            f"be compared. Choose among {listed(known)}, or rename the condition in the label file."
        )
    if unknown:
        raise ValueError(
            f"{what} names {listed(unknown)}, which the data do not contain. Choose among {listed(known)}."
        )


def check_apart(what: str, sides: Sequence[Side], known: Sequence[str]) -> None:
    """Raise a ValueError where a category is on two sides."""
    members = [name for side in sides for name in side.members]
    twice = [name for name in dict.fromkeys(members) if members.count(name) > 1]
    if not twice:
        return
    if all(len(side.members) == 1 for side in sides):
        raise ValueError(
            f"A pair compares two different categories, got {what.split(' ', 1)[1]}. "
            f"Choose among {listed(known)}."
        )
    raise ValueError(
        f"The {what} has {listed(twice)} on both sides. Each category may be on one side only: name fewer, "
        "or a narrower pattern."
    )


def shown_values(labels: NDArray) -> str:
    """The distinct values of some labels, for a message: the first few of many."""
    distinct = list(dict.fromkeys(labels.ravel().tolist()))
    few = ", ".join(reprlib.repr(value) for value in distinct[:_SHOWN])
    return few + (", ..." if len(distinct) > _SHOWN else "")


def check_signs(labels: NDArray) -> None:
    """Raise a ValueError unless every label is -1 or +1."""
    if labels.dtype.kind not in "fiu" or not np.isin(labels, (-1, 1)).all():
        raise ValueError(
            f"y must be -1 or +1 in every row, got {shown_values(labels)}. "
            "Make it with np.where(conditions == 'face', 1, -1), for example."
        )


def _make_task(conditions: NDArray, positive: str, negative: str) -> Task:
    known = [str(name) for name in np.unique(conditions)]
    if positive == negative:
        raise ValueError(f"A pair compares two different categories, got {positive!r} twice. Name two.")
    sides = read_side(positive, known), read_side(negative, known)
    for side in sides:
        for category in side.unknown:
            raise ValueError(
                f"The category {category!r} has no rows. The data have {listed(known)}; choose two of them."
            )
    check_apart(f"pair {positive + ':' + negative!r}", sides, known)
    first, second = (np.isin(conditions, side.members) for side in sides)
    rows = np.flatnonzero(first | second)
    grouped = any(side.members != (side.text,) for side in sides)
    members = tuple(side.members for side in sides) if grouped else ()
    return Task(positive, negative, rows, np.where(first[rows], 1.0, -1.0), members)


def listed(names: Iterable[Any]) -> str:
    """Names for a message, long ones cut."""
    words = [str(name) for name in names]
    return ", ".join(repr(word if len(word) <= 60 else word[:57] + "...") for word in words) or "none"
