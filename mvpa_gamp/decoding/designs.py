"""What a study compares: pairs that are named, pairs among classes, and comparisons trained on one side
and tested on another, or on other runs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from .tasks import (
    Pair,
    Task,
    alphanumeric,
    check_known,
    listed,
    make_tasks,
    parse_pair,
    parse_pairs,
    read_side,
)

_ARROW, _ONE_WAY = ">", ">>"
_SESSION = "ses-"
_RUNS_EXPECTED = '"1-6>7-12" or "ses-1>ses-2" (train on the first, test on the others, and the other way)'
_Half = TypeVar("_Half")
ALL = ("all",)
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Cross:
    """Train on one comparison, test on another; the first side of one corresponds to the first of the other.

    A run that is tested is never trained on. ``train_on`` and ``test_on`` say in words which runs belong to
    either part where they were chosen ("runs 1-6"); then both comparisons are the same.
    """

    train: Task
    test: Task
    train_on: str = ""
    test_on: str = ""

    @property
    def label(self) -> str:
        """For people, e.g. ``face vs house → cat vs chair`` or ``face vs house, runs 1-6 → runs 7-12``."""
        if self.train_on:
            return f"{self.train.label}, {self.train_on} → {self.test_on}"
        return f"{self.train.label} → {self.test.label}"

    @property
    def name(self) -> str:
        """For file names: ASCII letters and digits."""
        if not self.train_on:
            return f"{self.train.name}To{_capital(self.test.name)}"
        parts = [alphanumeric(part.replace("-", "to")) for part in (self.train_on, self.test_on)]
        return f"{self.train.name}{_capital(parts[0])}To{_capital(parts[1])}"

    @property
    def rows(self) -> NDArray:
        """Rows of either comparison, ascending."""
        return np.union1d(self.train.rows, self.test.rows)

    @property
    def shared(self) -> tuple[str, ...]:
        """Categories of both comparisons, unless the two are the same on other runs."""
        if self.train_on:
            return ()
        trained, tested = ({n for side in t.sides for n in side.members} for t in (self.train, self.test))
        return tuple(sorted(trained & tested))

    @property
    def caution(self) -> str:
        """What a reader must know about the accuracy, or nothing."""
        if not self.shared:
            return ""
        return (
            f"{', '.join(self.shared)} is part of both comparisons of {self.label}: recognising it is enough "
            "to be above (or, on opposite sides, below) chance, which shows no shared code, and there is no "
            "permutation test."
        )

    def within(self, rows: NDArray) -> "Cross":
        """The same with rows counted among ``rows``, ascending row numbers that hold all of its own."""
        train, test = (replace(t, rows=np.searchsorted(rows, t.rows)) for t in (self.train, self.test))
        return replace(self, train=train, test=test)


def make_crosses(conditions: Any, crosses: Sequence[str], dropped: Sequence[str] = ()) -> list[Cross]:
    """Crosses from texts: ``face:house>cat:chair`` is both directions, ``face:house>>cat:chair`` only one.

    ``conditions`` (M,) are the categories of the rows; all four sides may be groups as in
    :func:`parse_pairs`.

    Parameters
    ----------
    conditions
        The category (M,) of every row.
    crosses
        What the user wrote.
    dropped
        Conditions that were left out on purpose, for messages.

    Returns
    -------
    list of Cross
        One per direction: the comparison to train on and the one to test.

    Examples
    --------
    >>> from mvpa_gamp.decoding import make_crosses
    >>> [cross.label for cross in make_crosses(["a", "b", "c", "d"], ["a:b>c:d", "a:c>>b:d"])]
    ['a vs b → c vs d', 'c vs d → a vs b', 'a vs c → b vs d']
    """
    conditions = np.asarray(conditions)
    known = [str(name) for name in np.unique(conditions)]
    pairs = [pair for text in crosses for pair in parse_cross(text, known, dropped)]
    tasks = [[make_tasks(conditions, [pair])[0] for pair in both] for both in pairs]
    found = [Cross(train, test) for train, test in tasks]
    for cross in found:
        if set(cross.train.rows) == set(cross.test.rows) and len(cross.shared) == len(known_of(cross)):
            raise ValueError(
                f"{cross.label} trains and tests on the same comparison, as plain decoding does. Name "
                "two comparisons."
            )
    return distinct_crosses(found)


def known_of(cross: Cross) -> set[str]:
    """All categories of a cross."""
    return {name for task in (cross.train, cross.test) for side in task.sides for name in side.members}


def parse_cross(text: str, known: Sequence[str], dropped: Sequence[str] = ()) -> list[tuple[Pair, Pair]]:
    """The comparisons trained on and tested on, one way or both ways."""
    what = "face:house>cat:chair (train on the first comparison, test on the second, and the other way)"
    return split_arrow(text, what, lambda part: parse_pair(part, known, dropped))


def refuse_same(crosses: Sequence[str]) -> None:
    """Raise a ValueError where both halves of ``a:b>a:b`` name one comparison, whatever the data are."""
    for text, arrow in product(crosses, (_ONE_WAY, _ARROW)):
        halves = [_spelled(half) for half in text.split(arrow)]
        if len(halves) == 2 and halves[0] == halves[1] and ":" in text:
            raise ValueError(
                f"{text!r} trains and tests on the same comparison, as plain decoding does. Name two "
                "comparisons."
            )


def refuse_runs(texts: Sequence[str]) -> None:
    """Raise a ValueError where a text of :func:`session_crosses` cannot be used, whatever the data are."""
    for text in texts:
        for train, test in split_arrow(text, _RUNS_EXPECTED, _named_runs):
            both = [max(a[0], b[0]) for a, b in product(train, test) if a[0] <= b[1] and b[0] <= a[1]]
            if both:
                raise ValueError(
                    f"Run {min(both)} is trained on and tested on in {text!r}. Name it on one side only."
                )


def _named_runs(part: str) -> list[tuple[int, int]]:
    """First and last run of every range in a half of a text; sessions have none."""
    out = []
    for item in (each.strip() for each in part.split(",")):
        low, dash, high = item.partition("-")
        if low.isdecimal() and (not dash or high.isdecimal()) and int(low) <= int(high or low):
            out.append((int(low), int(high or low)))
        elif not item.removeprefix(_SESSION) or not item.startswith(_SESSION):
            raise ValueError(f"{part!r} names {item!r}; expected {_RUNS_EXPECTED}. Correct it.")
    return out


def _spelled(pair: str) -> frozenset[frozenset[str]]:
    """The names of both sides of a comparison as text, whatever their order."""
    return frozenset(frozenset(name.strip() for name in side.split("+")) for side in pair.split(":"))


def split_arrow(text: str, expected: str, read: Callable[[str], _Half]) -> list[tuple[_Half, _Half]]:
    """The two halves of ``a>b``, in both directions, or of ``a>>b`` in that one; ``read`` understands each.

    Names may contain > themselves: the first place where both halves can be read counts.
    """
    troubles = []
    for arrow in (_ONE_WAY, _ARROW):
        at = text.find(arrow)
        while at >= 0:
            try:
                halves = read(text[:at]), read(text[at + len(arrow) :])
                return [halves] if arrow == _ONE_WAY else [halves, halves[::-1]]
            except ValueError as error:
                troubles.append(error)
            at = text.find(arrow, at + 1)
    if troubles:
        raise troubles[0]
    raise ValueError(
        f"expected {expected}, got {text!r}. Put it in quotation marks: a shell takes > for a file."
    )


def session_crosses(
    tasks: Sequence[Task], texts: Sequence[str], runs: Any, sessions: Any = None, counted: str = "run"
) -> list[Cross]:
    """Every comparison trained on some runs and tested on others: ``1-6>7-12`` both ways, ``>>`` one way.

    A part lists runs, ranges of runs and sessions, separated by commas: ``1,2,5-8`` or ``ses-pre``. ``runs``
    and, where they are known, ``sessions`` (M,) are those of the rows of the tasks; ``counted`` says what the
    numbers of runs count.

    Parameters
    ----------
    tasks
        The comparisons.
    texts
        What the user wrote.
    runs, sessions
        The run, and the session or None, (M,) of every row of the study.
    counted
        What the numbers of runs count.

    Returns
    -------
    list of Cross
        One per comparison and direction.

    Examples
    --------
    >>> import numpy as np
    >>> from mvpa_gamp.decoding import make_tasks, session_crosses
    >>> tasks = make_tasks(np.tile(["a", "b"], 4), [("a", "b")])
    >>> [cross.label for cross in session_crosses(tasks, ["1-2>>3,4"], np.repeat([1, 2, 3, 4], 2))]
    ['a vs b, runs 1-2 → runs 3,4']
    """
    runs = np.asarray(runs)
    sessions = None if sessions is None else np.asarray(sessions)
    parts = [
        pair
        for text in texts
        for pair in split_arrow(text, _RUNS_EXPECTED, lambda t: _runs_of(t, runs, sessions, counted))
    ]
    found = []
    for (train_on, trained), (test_on, tested) in parts:
        both = trained & tested
        if both.any():
            raise ValueError(
                f"{_capital(counted)} {runs[both][0]} is trained on and tested on in {train_on} → "
                f"{test_on}. Name it on one side only."
            )
        for task in tasks:
            found.append(Cross(_only(task, trained), _only(task, tested), train_on, test_on))
    return distinct_crosses(found)


def check_crosses(crosses: Sequence[Cross], runs: Any) -> None:
    """Raise a ValueError where a fold of a cross lacks a category to train on, or nothing is left to test."""
    runs = np.asarray(runs)
    for cross in crosses:
        for task, part, use in ((cross.train, cross.train_on, "train"), (cross.test, cross.test_on, "test")):
            if len(np.unique(task.y)) < 2:
                raise ValueError(
                    f"{cross.label}: {part or 'the data'} hold only one of the two categories of "
                    f"{task.label} to {use} on. Choose other runs."
                )
        for run in np.unique(runs[cross.test.rows]):
            if len(np.unique(cross.train.y[runs[cross.train.rows] != run])) < 2:
                raise ValueError(
                    f"{cross.label}: without run {run}, which is tested, only one of the two categories of "
                    f"{cross.train.label} is left to train on. Each must occur in another run; give more."
                )


def distinct_crosses(crosses: Sequence[Cross]) -> list[Cross]:
    """The same, each of which must have a file name of its own."""
    seen: dict[str, Cross] = {}
    for cross in crosses:
        other = seen.setdefault(cross.name.lower(), cross)
        if other is not cross:
            raise ValueError(
                f"{cross.label} was given more than once, or shares its file name {cross.name!r} with "
                f"{other.label}. Give each once."
            )
    return list(crosses)


def _runs_of(text: str, runs: NDArray, sessions: NDArray | None, counted: str) -> tuple[str, NDArray]:
    """Some runs in words, and which rows (M,) are theirs."""
    chosen = np.zeros(len(runs), dtype=bool)
    items = [item.strip() for item in text.split(",")]
    for item in items:
        mine = _rows_of(item, runs, sessions)
        if not mine.any():
            named = [] if sessions is None else [f"{_SESSION}{name}" for name in np.unique(sessions)]
            known = f"the {counted}s {', '.join(map(str, np.unique(runs)))}"
            raise ValueError(
                f"{text!r} names {item!r}, which is no {counted}, range of {counted}s or session of "
                f"the data. Choose among {known}{f' and the sessions {listed(named)}' if named else ''}."
            )
        chosen |= mine
    kind = "" if all(item.startswith(_SESSION) for item in items) else f"{counted}{'s' * (len(text) > 1)} "
    return kind + text.replace(" ", ""), chosen


def _rows_of(item: str, runs: NDArray, sessions: NDArray | None) -> NDArray:
    """The rows of a run, a range between two runs that are there, or a session; none where it is neither."""
    if item.startswith(_SESSION):
        none = np.zeros(len(runs), dtype=bool)
        return none if sessions is None else np.asarray(sessions) == item.removeprefix(_SESSION)
    low, dash, high = item.partition("-")
    if not low.isdecimal() or (dash and not high.isdecimal()):
        return np.zeros(len(runs), dtype=bool)
    ends = [int(low), int(high if dash else low)]
    if not np.isin(ends, runs).all():  # a range that ends outside of the data is a slip, not a wish
        return np.zeros(len(runs), dtype=bool)
    return (runs >= ends[0]) & (runs <= ends[1])


def _only(task: Task, mask: NDArray) -> Task:
    """A comparison on some rows of the study."""
    kept = mask[task.rows]
    return replace(task, rows=task.rows[kept], y=task.y[kept])


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]


class Classes(NamedTuple):
    """K classes that are decoded together; each may be a group of conditions."""

    names: tuple[str, ...]
    members: tuple[tuple[str, ...], ...]
    rows: NDArray  # (m,) rows of the study that belong to a class, ascending
    codes: NDArray  # (m,) class numbers
    tasks: tuple[Task, ...]  # the pairs, in the order of ``class_pairs``


def parse_classes(classes: Sequence[str], known: Sequence[str], dropped: Sequence[str] = ()) -> list[str]:
    """The classes asked for, sorted as written: conditions, groups of them, or all there are.

    Parameters
    ----------
    classes
        What the user wrote.
    known
        The conditions that there are.
    dropped
        Conditions that were left out on purpose, for messages.

    Returns
    -------
    list of str
        One text per class.

    Examples
    --------
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

    Parameters
    ----------
    conditions
        The category (M,) of every row.
    names
        One text per class.

    Returns
    -------
    Classes
        Rows (m,) of all classes, class numbers (m,), and the comparison of every pair.

    Examples
    --------
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
