"""What may be exchanged under the null: blocks (or samples) of one run, drawn before any fit."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .tasks import check_signs

UNITS = ("block", "sample")

_WORTHWHILE = 0.05  # a test that cannot reach this p-value is hardly worth its time


def permuted_labels(
    y: Any, runs: Any, n: int, seed: int = 0, unit: str = "block", blocks: Any = None
) -> NDArray:
    """Labels (M, n) int8 shuffled within runs, one column per permutation.

    Column i comes from the i-th child of ``SeedSequence(seed)``: more permutations add columns and change
    none. The observed labels may be among them, as in any random sample of permutations.

    >>> from mvpa_gamp.decoding import permuted_labels
    >>> permuted_labels([1, 1, -1, -1] * 2, [1] * 4 + [2] * 4, n=3).T
    array([[-1, -1,  1,  1,  1,  1, -1, -1],
           [ 1,  1, -1, -1,  1,  1, -1, -1],
           [-1, -1,  1,  1,  1,  1, -1, -1]], dtype=int8)
    """
    if n < 1:
        raise ValueError(f"n must be at least 1 permutation, got {n}. 1000 is usual.")
    units = exchange_units(y, runs, unit, blocks)
    shuffled = np.empty((units.labels.size, n), dtype=np.int8)
    for column, child in enumerate(np.random.SeedSequence(seed).spawn(n)):
        rng = np.random.default_rng(child)
        for members in units.of_run:
            shuffled[members, column] = rng.permutation(units.labels[members])
    return shuffled[units.of_row]


class Units(NamedTuple):
    """What is exchanged: U units, each a set of rows of one run and one label."""

    of_row: NDArray  # (M,) number of the unit of each row
    labels: NDArray  # (U,) int8
    of_run: list[NDArray]  # per run, the numbers of its units

    @property
    def n_distinct(self) -> int:
        """Distinct label vectors: the product over runs of (units of the run over units labelled +1)."""
        return math.prod(math.comb(at.size, np.count_nonzero(self.labels[at] > 0)) for at in self.of_run)

    @property
    def smallest_pvalue(self) -> float:
        """The p-value that no number of permutations gets below.

        Where every run has as many units of either class, labels with both classes swapped are among the
        permutations and give the same accuracy, so the observed one always comes twice.
        """
        mirrored = all(self.labels[at].sum() == 0 for at in self.of_run)
        return (2 if mirrored else 1) / self.n_distinct

    def caution(self, unit: str) -> str:
        """What a reader must know about the p-value, or nothing."""
        if self.smallest_pvalue > _WORTHWHILE:
            other = (
                "Give more runs, or unit='sample' if rows are independent (block averages, trial-wise maps)."
                if unit == "block"
                else "Give more runs."
            )
            return (
                f"Only {self.n_distinct} label vectors can be reached by exchanging {unit}s within runs, "
                f"so the p-value cannot fall below {self.smallest_pvalue:.3g}. {other}"
            )
        neighbours = self.labels.size > 1 and bool((self.labels[1:] == self.labels[:-1]).mean() > 0.5)
        if unit == "sample" and neighbours:
            return (
                "Single samples were exchanged although samples come in blocks of one label: if samples of a "
                "block are correlated, as fMRI volumes are, the p-value is too small. Use unit='block'."
            )
        return ""


def exchange_units(y: Any, runs: Any, unit: str, blocks: Any) -> Units:
    """Find the units of y (M,) in -1/+1 and runs (M,).

    ``blocks`` (M,) names the block of each row. Without it a block is a stretch of rows of one label and run,
    which joins neighbouring blocks of one label: name the blocks where such neighbours occur.
    """
    labels, runs = _checked(y, runs)
    if unit not in UNITS:
        raise ValueError(f"unit must be 'block' or 'sample', got {unit!r}. Blocks are the safe choice.")
    if unit == "sample":
        if blocks is not None:
            raise ValueError("blocks were given with unit='sample'. Use unit='block', or leave blocks out.")
        of_row = np.arange(labels.size)
    elif blocks is None:
        changes = (labels[1:] != labels[:-1]) | (runs[1:] != runs[:-1])
        of_row = np.concatenate([[0], np.cumsum(changes)])
    else:
        of_row = _given_blocks(labels, runs, np.asarray(blocks))
    first = np.unique(of_row, return_index=True)[1]
    of_run = [np.flatnonzero(runs[first] == run) for run in np.unique(runs)]
    return Units(of_row, labels[first].astype(np.int8), of_run)


def blocks_of_volumes(conditions: Any, runs: Any, volumes: Any) -> NDArray:
    """The block (M,) of each volume: a stretch of successive volumes of one condition and run.

    ``volumes`` (M,) are places in the series, so that volumes left out (rest, other conditions) end a block.

    >>> blocks_of_volumes(["face", "face", "face", "cat"], [1, 1, 1, 1], [4, 5, 9, 10]).tolist()
    [0, 0, 1, 2]
    """
    conditions, runs, volumes = np.asarray(conditions), np.asarray(runs), np.asarray(volumes)
    changes = (conditions[1:] != conditions[:-1]) | (runs[1:] != runs[:-1]) | (np.diff(volumes) != 1)
    return np.concatenate([[0], np.cumsum(changes)])


def _given_blocks(labels: NDArray, runs: NDArray, blocks: NDArray) -> NDArray:
    """Number the given blocks; the same name in two runs means two blocks."""
    if blocks.shape != labels.shape:
        raise ValueError(
            f"blocks must name the block of each of the {labels.size} rows, got shape {blocks.shape}. "
            "Give one block per row, or None to find them from labels and runs."
        )
    _, run = np.unique(runs, return_inverse=True)
    names, block = np.unique(blocks, return_inverse=True)
    _, of_row = np.unique(run * names.size + block, return_inverse=True)
    positive = np.bincount(of_row, labels > 0)
    mixed = np.flatnonzero((positive > 0) & (positive < np.bincount(of_row)))
    if mixed.size:
        row = np.flatnonzero(of_row == mixed[0])[0]
        raise ValueError(
            f"A block must have one label, but block {blocks[row]!r} of run {runs[row]!r} has both. "
            "Split it where the condition changes, or leave blocks out."
        )
    return of_row


def _checked(y: Any, runs: Any) -> tuple[NDArray, NDArray]:
    labels, runs = np.asarray(y), np.asarray(runs)
    if labels.ndim != 1 or labels.shape != runs.shape or labels.size == 0:
        raise ValueError(
            f"y and runs must have one entry per row, got shapes {labels.shape} and {runs.shape}. "
            "A permutation test takes one comparison at a time."
        )
    check_signs(labels)
    return labels, runs
