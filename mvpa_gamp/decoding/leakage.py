"""What could make scores too good, looked for before the first fit: a sentence for each finding.

Every check asks a question that labels, runs and rows can answer; what they cannot answer is not asked. How
often each one is wrong on sound designs and data is measured in docs/leakage.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .exchange import blocks_of_volumes
from .folds import Folds
from .scores import roc_areas
from .ties import order_findings, run_findings

RESPONSE = 5.0  # s from a stimulus to the peak of the BOLD response
_LONGEST_LAG = 10.0  # s: by then the response to the end of a stimulus has fallen below half of its peak
_MIXED = 0.1  # share of a study's volumes that may lie in a neighbour's response unmentioned
_SHOWN = 3  # examples in a sentence
SAME = 0.9999  # correlation of two rows that are copies up to cleaning and rounding
SEPARATED = 0.95  # share of pairs of voxels in order: sound masks reached 0.84, masks of the labels 1
_PROBED = 1024  # voxels of the first look
_FIRST_LOOK = 0.999  # a correlation over all voxels of SAME is hardly below this over those
_FEWEST = 10  # voxels below which rows are alike by chance
_FEWEST_VOXELS = 20  # inside and outside, for the shares to mean something
_NEIGHBOURS = 0.1  # extra correlation of neighbours across runs that scanning alone would not bring
_CERTAIN = 5.0  # standard errors


@dataclass(frozen=True)
class Evidence:
    """What the checks may look at: M rows, and what is known about them.

    ``places`` are positions in the series, None where rows are not in the order of a scan. ``kind`` is
    "volume", or another word where every row is a sample by itself. ``lag`` is the shift of the labels in
    volumes, None where it is not known. ``around`` are rows (M, S) of voxels that touch the mask from
    outside.
    """

    X: NDArray  # (M, N)
    conditions: NDArray  # (M,)
    runs: NDArray  # (M,)
    pairs: Sequence[tuple[Any, Any]]  # the comparisons
    places: NDArray | None = None
    kind: str = "volume"
    folds: Folds | None = None  # None: leave one run out
    sessions: NDArray | None = None  # (M,)
    t_r: float | None = None
    lag: int | None = None
    around: NDArray | None = None
    fingerprints: NDArray | None = None  # (M,) digests of the raw volumes
    word: str = "run"  # what ``runs`` are called

    @property
    def blocks(self) -> NDArray:
        """The block (M,) of each row: successive volumes of one condition and run, or single samples."""
        if self.kind != "volume":
            return np.arange(len(self.runs))
        places = np.arange(len(self.runs)) if self.places is None else self.places
        return blocks_of_volumes(self.conditions, self.runs, places)


@dataclass(frozen=True)
class Finding:
    """One way in which scores may be too good: which check found it, and what to do, in a sentence."""

    check: str
    sentence: str


@dataclass(frozen=True)
class Checked:
    """The names of the checks that could be made, and what they found."""

    checks: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = field(default=())

    def as_json(self) -> dict[str, Any]:
        """The form of summary.json."""
        found = [{"check": each.check, "sentence": each.sentence} for each in self.findings]
        return {"checked": list(self.checks), "findings": found}

    @property
    def sentences(self) -> list[str]:
        """What was found."""
        return [each.sentence for each in self.findings]


def find_leakage(evidence: Evidence) -> Checked:
    """Make every check that the evidence allows; the order is that of the sentences.

    Parameters
    ----------
    evidence
        Samples, conditions, runs, comparisons, and what else is known.

    Returns
    -------
    Checked
        The checks that could be made, and what they found.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> conditions, runs = np.tile(np.repeat(["face", "house"], 4), 8), np.repeat(np.arange(8), 8)
    >>> places = np.arange(64) + 5 * runs
    >>> given = Evidence(rng.normal(size=(64, 30)), conditions, runs, [("face", "house")], places)
    >>> [finding.check for finding in find_leakage(given).findings]
    ['order']
    """
    made = {
        "folds": _split_over_folds(evidence),
        "blocks": _split_blocks(evidence),
        "repeats": _repeats(evidence),
        "runs": run_findings(*_table(evidence), evidence.pairs, _sessions(evidence), evidence.word),
        "order": order_findings(*_table(evidence), evidence.pairs, evidence.word)
        if evidence.places is not None
        else None,
        "lag": _lag(evidence),
        "mask": _mask(evidence),
    }
    able = {name: sentences for name, sentences in made.items() if sentences is not None}
    found = [Finding(name, sentence) for name, sentences in able.items() for sentence in sentences]
    return Checked(tuple(able), tuple(found))


def _table(evidence: Evidence) -> tuple[NDArray, NDArray]:
    """Condition and run of every block, in their order."""
    first = np.unique(evidence.blocks, return_index=True)[1]
    return evidence.conditions[first], evidence.runs[first]


def _sessions(evidence: Evidence) -> NDArray | None:
    """The session of every block."""
    if evidence.sessions is None:
        return None
    return evidence.sessions[np.unique(evidence.blocks, return_index=True)[1]]


def _split_over_folds(evidence: Evidence) -> list[str] | None:
    """Blocks that a given cross-validation trains and tests on in the same fold."""
    folds, block = evidence.folds, evidence.blocks
    if folds is None:
        return None
    total = int(block.max()) + 1
    trained, tested = (
        np.stack([np.bincount(block, rows, total) > 0 for rows in mask.T])
        for mask in (folds.train, folds.tested)
    )
    split = (trained & tested).any(axis=0)
    if not split.any():
        return []
    fold = int((trained & tested).any(axis=1).argmax()) + 1
    first = np.flatnonzero(block == np.flatnonzero(split)[0])
    return [
        f"{split.sum()} of {total} blocks are split over folds: fold {fold}, for example, trains on some "
        f"images of a block of {evidence.conditions[first[0]]} in {evidence.word} "
        f"{evidence.runs[first[0]]} and tests others of the same block. Images of a block resemble each "
        f"other, so scores are too high: hold out whole {evidence.word}s (cv=None), or at least whole "
        "blocks."
    ]


def _split_blocks(evidence: Evidence) -> list[str] | None:
    """Blocks that go on across the border of a run: the run numbers cut them in two.

    Where runs are stretches of the series, both pieces must be shorter than any whole block of the study,
    which two neighbouring runs that happen to meet in one condition are not.
    """
    places = evidence.places
    if places is None or evidence.kind != "volume":
        return None
    conditions, runs = evidence.conditions, evidence.runs
    joined = blocks_of_volumes(conditions, np.zeros(len(runs)), places)
    pieces = blocks_of_volumes(conditions, runs, places)
    if len(np.unique(runs)) <= int(np.count_nonzero(runs[1:] != runs[:-1])):  # runs are interleaved
        return continued_rows(evidence.X, conditions, runs, places, evidence.word)
    sizes, first = np.bincount(pieces), np.unique(pieces, return_index=True)[1]
    parts = np.bincount(joined[first])  # pieces of every joined block
    whole = sizes[parts[joined[first]] == 1]
    cut = [k for k in np.flatnonzero(parts > 1) if _is_cut(sizes[joined[first] == k], whole)]
    if not cut:
        return []
    row = int(np.flatnonzero(joined == cut[0])[0])
    after, many = runs[np.flatnonzero(joined == cut[0])[-1]], len(cut) > 1
    return [
        f"{len(cut)} block{'s' * many} of one condition {'go' if many else 'goes'} on across the boundary "
        f"between two {evidence.word}s: {conditions[row]} at the end of {evidence.word} {runs[row]} and "
        f"the start of {after}, for example. Neighbouring volumes are then in both training and test sets, "
        f"and scores are too high: correct the {evidence.word} numbers in the labels."
    ]


def _is_cut(pieces: NDArray, whole: NDArray) -> bool:
    """Whether pieces that meet at the border of runs are shorter than every whole block."""
    return bool(pieces.max() < (whole.min() if whole.size else pieces.sum()))


def _repeats(evidence: Evidence) -> list[str]:
    """Volumes that stand in two runs."""
    pairs = repeated_rows(evidence.X, evidence.runs, evidence.fingerprints)
    if not len(pairs):
        return []
    places = np.arange(len(evidence.runs)) if evidence.places is None else evidence.places
    a, b = pairs[0]
    rows = len(np.unique(pairs))
    return [
        f"{rows} of {len(evidence.runs)} volumes occur in more than one {evidence.word} (equal, or "
        f"correlated by more than 0.9999): volume {places[a] + 1} in {evidence.word} {evidence.runs[a]} "
        f"and volume {places[b] + 1} in {evidence.word} {evidence.runs[b]}, for example (counted from 1). "
        "They are used for both training and testing: check that no file was given twice."
    ]


def _lag(evidence: Evidence) -> list[str] | None:
    """Labels whose volumes hold the response to a neighbouring block of another condition.

    The response to [onset, end) is taken to fill [onset + 5 s, end + 5 s). With labels shifted by the lag a
    block is labelled in [onset + lag, end + lag); what a neighbour's interval covers of it is mixed.
    """
    if evidence.places is None or evidence.t_r is None or evidence.lag is None or evidence.kind != "volume":
        return None
    t_r, lag = evidence.t_r, evidence.lag * evidence.t_r
    if lag > _LONGEST_LAG:
        return [
            f"The labels are shifted by {evidence.lag} volumes, {lag:.3g} s, but the response peaks about "
            f"5 s after a stimulus and is gone after 10 s: give a lag of about "
            f"{max(1, round(RESPONSE / t_r))} volumes (--lag-trs; TR {t_r:.3g} s)."
        ]
    early, late = _in_neighbours(evidence, (RESPONSE - lag) / t_r)
    mixed, total = early + late, len(evidence.runs)
    if mixed < _MIXED * total:
        return []
    short = early >= late
    return [
        f"{mixed} of {total} labelled volumes ({100 * mixed / total:.0f} %) contain the response to the "
        f"{'previous' if short else 'next'} block, which has another condition: with blocks this close and "
        f"a TR of {t_r:.3g} s (from the header, or --t-r), a lag of {evidence.lag} volumes is too "
        f"{'short' if short else 'long'}, unless the labels were already shifted. Give --lag-trs "
        f"{max(1, round(RESPONSE / t_r))}, or leave a gap between blocks."
    ]


def _in_neighbours(evidence: Evidence, late: float) -> tuple[int, int]:
    """Volumes at the start and at the end of blocks that lie in a neighbour's response.

    ``late`` is how many volumes the labels come before the response (negative: after it).
    """
    assert evidence.places is not None
    block, places = evidence.blocks, evidence.places
    first = np.unique(block, return_index=True)[1]
    last = np.r_[first[1:], len(block)] - 1
    conditions, runs = evidence.conditions[first], evidence.runs[first]
    meet = (conditions[1:] != conditions[:-1]) & (runs[1:] == runs[:-1])
    gap = places[first[1:]] - places[last[:-1]] - 1
    sizes = last - first + 1
    # Tolerance: onsets are whole volumes, and half a volume of overlap is not one.
    before = np.clip(np.floor(late - gap + 0.5), 0, sizes[1:])[meet]
    after = np.clip(np.floor(-late - gap + 0.5), 0, sizes[:-1])[meet]
    return int(before.sum()), int(after.sum())


def _mask(evidence: Evidence) -> list[str] | None:
    """A mask that the labels themselves could have drawn."""
    if evidence.around is None:
        return None
    found = selected_by_labels(evidence.X, evidence.around, evidence.conditions, evidence.pairs)
    if found is None:
        return None
    share, what = found
    if not what:
        return []
    return [
        f"The mask looks as if it had been selected with these labels: {what} is larger inside in "
        f"{100 * share:.1f} % of pairs of a voxel in the mask and an adjacent one outside, as after "
        "thresholding. A mask selected on the data that are decoded makes scores too high: use one from "
        "anatomy, an atlas or other runs (GAMP itself selects voxels within each fold)."
    ]


def repeated_rows(X: NDArray, runs: NDArray, fingerprints: NDArray | None = None) -> NDArray:
    """Pairs (k, 2) of rows of different runs that are copies: equal raw volumes, or correlation above 0.9999.

    A first look at 1,024 voxels finds the candidates, all voxels decide: 864 x 31,398 takes a fraction of a
    second. Fewer than ten voxels are not compared.
    """
    found = _equal(fingerprints, runs) if fingerprints is not None else []
    if X.shape[1] >= _FEWEST:
        places = np.linspace(0, X.shape[1] - 1, min(_PROBED, X.shape[1])).astype(int)
        rows = _unit(X[:, places])
        close = np.triu(rows @ rows.T > _FIRST_LOOK, 1) & (runs[:, None] != runs)
        for a, b in np.argwhere(close):
            if float(np.dot(*_unit(X[[a, b]]))) > SAME:
                found.append((int(a), int(b)))
    return np.array(sorted(set(found)), dtype=int).reshape(-1, 2)


def _equal(fingerprints: NDArray, runs: NDArray) -> list[tuple[int, int]]:
    """The first row of every digest, and each other one of another run."""
    first: dict[int, int] = {}
    pairs = []
    for row, digest in enumerate(fingerprints.tolist()):
        origin = first.setdefault(digest, row)
        if runs[origin] != runs[row]:
            pairs.append((origin, row))
    return pairs


def continued_rows(
    X: NDArray, conditions: NDArray, runs: NDArray, places: NDArray, word: str = "run"
) -> list[str]:
    """Where groups are interleaved: are neighbours of one condition in two groups more alike than others?

    Compares correlations of neighbouring rows with those of rows of the same condition and other groups that
    are far apart in the series.
    """
    rows = _unit(X)
    near = (np.diff(places) == 1) & (conditions[1:] == conditions[:-1]) & (runs[1:] != runs[:-1])
    if near.sum() < _FEWEST or X.shape[1] < _FEWEST:
        return []
    close = np.einsum("ij,ij->i", rows[:-1][near], rows[1:][near])
    same = (conditions[:, None] == conditions) & (runs[:, None] != runs)
    far = np.triu(same & (np.abs(places[:, None] - places) > _FEWEST))
    if far.sum() < _FEWEST:
        return []
    others = (rows @ rows.T)[far]
    extra = float(close.mean() - others.mean())
    if extra < _NEIGHBOURS or extra < _CERTAIN * float(others.std()) / np.sqrt(close.size):
        return []
    return [
        f"Neighbouring images of one class in different {word}s correlate by {close.mean():.2f}, images "
        f"far apart by {others.mean():.2f}: the {word}s cut through blocks of one scan, so neighbouring "
        "images are in both training and test sets and scores are too high. Use the runs of the scanner "
        f"as {word}s."
    ]


def selected_by_labels(
    X: NDArray, around: NDArray, conditions: NDArray, pairs: Sequence[tuple[Any, Any]]
) -> tuple[float, str] | None:
    """Do labels separate the voxels of a mask from those that touch it? (share, statistic), None: too few.

    The share is that of pairs (inside, outside) whose inside voxel has the larger statistic: F over all
    conditions, or |t| of a comparison. The statistic is empty where no share reaches 0.95.
    """
    if min(X.shape[1], around.shape[1]) < _FEWEST_VOXELS:
        return None
    probed = np.linspace(0, X.shape[1] - 1, min(2 * _PROBED, X.shape[1])).astype(int)
    inside, outside = (_Spread.of(part, conditions) for part in (X[:, probed], around))
    names = np.unique(conditions).tolist()
    tried = [("the F statistic of the conditions", names)] if len(names) > 2 else []
    tried += [(f"the difference between {a} and {b}", [a, b]) for a, b in pairs]
    best = max((_share_larger(inside.f(classes), outside.f(classes)), what) for what, classes in tried)
    return best if best[0] >= SEPARATED else (best[0], "")


class _Spread(NamedTuple):
    """Number of rows, means and sums of squares (N,) around them, by class."""

    classes: dict[Any, tuple[int, NDArray, NDArray]]

    @classmethod
    def of(cls, X: NDArray, conditions: NDArray) -> "_Spread":
        parts = {
            name: np.asarray(X[conditions == name], dtype=float) for name in np.unique(conditions).tolist()
        }
        return cls({name: (len(v), v.mean(axis=0), v.var(axis=0) * len(v)) for name, v in parts.items()})

    def f(self, names: Sequence[Any]) -> NDArray:
        """F (N,) of a one-way analysis of variance over the rows of some classes; of two it is t squared."""
        sizes, means, squares = (np.array(each) for each in zip(*map(self.classes.get, names), strict=True))
        grand = (sizes[:, None] * means).sum(axis=0) / sizes.sum()
        between = (sizes[:, None] * (means - grand) ** 2).sum(axis=0) / (len(names) - 1)
        return np.asarray(between / np.maximum(squares.sum(axis=0) / (sizes.sum() - len(names)), 1e-12))


def _share_larger(inside: NDArray, outside: NDArray) -> float:
    """P(inside > outside) over all pairs, ties half."""
    first = np.arange(inside.size + outside.size) < inside.size
    return float(roc_areas(np.r_[inside, outside], first, ~first))


def _unit(X: NDArray) -> NDArray:
    """Rows with mean zero and length one; constant rows are zero."""
    rows = X - X.mean(axis=1, keepdims=True)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1)
