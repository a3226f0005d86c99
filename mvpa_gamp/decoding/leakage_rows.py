"""Rows that should not be so alike, and voxels that the labels may have chosen."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

SAME = 0.9999  # correlation of two rows that are copies up to cleaning and rounding
SEPARATED = 0.95  # share of pairs of voxels in order: sound masks reached 0.84, masks of the labels 1
_PROBED = 1024  # voxels of the first look
_FIRST_LOOK = 0.999  # a correlation over all voxels of SAME is hardly below this over those
_FEWEST = 10  # voxels below which rows are alike by chance
_FEWEST_VOXELS = 20  # inside and outside, for the shares to mean something
_NEIGHBOURS = 0.1  # extra correlation of neighbours across runs that scanning alone would not bring
_CERTAIN = 5.0  # standard errors


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
    """P(inside > outside) over all pairs, ties half: Mann and Whitney's share."""
    n = inside.size
    ranks = rankdata(np.r_[inside, outside])
    return float((ranks[:n].sum() - n * (n + 1) / 2) / (n * outside.size))


def _unit(X: NDArray) -> NDArray:
    """Rows with mean zero and length one; constant rows are zero."""
    rows = X - X.mean(axis=1, keepdims=True)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1)
