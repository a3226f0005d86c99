"""Several conditions as one side of a comparison: names joined by +, and wildcards."""

import hashlib
import unicodedata
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_JOIN = "+"
_SPELLED = {_JOIN: "Plus", "*": "Any", "?": "One"}  # in file names, where only letters and digits may stand
_LONGEST = 48  # letters of a side in a file name: systems allow 255 for a name with two sides, method, map
_DOMINATES = 2.0  # a member with this many times the rows of the other members' mean decides for its side


class Side(NamedTuple):
    """One side of a comparison as written, the conditions it means, and the names that match none."""

    text: str
    members: tuple[str, ...]
    unknown: tuple[str, ...] = ()


def read_side(text: str, known: Sequence[str]) -> Side:
    """The conditions among ``known`` that a side names: one, several joined by +, or patterns with * and ?.

    A condition of exactly that name wins, also where it contains + or *. Members come in the order of
    ``known``; letters count as written, capital or small.

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
