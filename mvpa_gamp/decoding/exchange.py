"""What may be exchanged under the null: blocks (or samples) of one run, drawn before any fit."""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .tasks import shown_values

KINDS = ("block", "sample")

_WORTHWHILE = 0.05  # a test that cannot reach this p-value is hardly worth its time


def permuted_labels(
    y: Any, runs: Any, n: int, seed: int = 0, exchange: str = "block", blocks: Any = None
) -> NDArray:
    """Labels (M, n) shuffled within runs, one column per permutation; y is -1/+1 or class numbers.

    Column i comes from the i-th child of ``SeedSequence(seed)``: more permutations add columns and change
    none. The observed labels may be among them, as in any random sample of permutations.

    Parameters
    ----------
    y
        Labels (M,) in -1/+1, or class numbers.
    runs
        The run (M,) of every sample.
    n
        Columns.
    seed
        Of the random numbers: equal seeds give equal results.
    exchange
        "block" exchanges blocks of samples as wholes, "sample" single ones, for independent samples.
    blocks
        The block (M,) of every sample; None: stretches of equal labels.

    Returns
    -------
    ndarray
        Labels (M, n), int8.

    Examples
    --------
    >>> from mvpa_gamp.decoding import permuted_labels
    >>> permuted_labels([1, 1, -1, -1] * 2, [1] * 4 + [2] * 4, n=3).T
    array([[-1, -1,  1,  1,  1,  1, -1, -1],
           [ 1,  1, -1, -1,  1,  1, -1, -1],
           [-1, -1,  1,  1,  1,  1, -1, -1]], dtype=int8)
    """
    return find_exchange(y, runs, exchange, blocks).draw(n, seed)


class Exchange(NamedTuple):
    """What is exchanged: U blocks or samples, each a set of rows of one run and one label."""

    of_row: NDArray  # (M,) number of the block of each row
    labels: NDArray  # (U,) of the blocks
    of_run: list[NDArray]  # per run, the numbers of its blocks
    asked: str  # "block" or "sample"

    @property
    def kind(self) -> str:
        """What is moved: "sample" where every block is a single row."""
        return "sample" if self.labels.size == self.of_row.size else "block"

    def draw(self, n: int, seed: int) -> NDArray:
        """Labels (M, n) of n permutations."""
        if n < 1:
            raise ValueError(f"n must be at least 1 permutation, got {n}. 1000 is usual.")
        shuffled = np.empty((self.labels.size, n), dtype=self.labels.dtype)
        for column, child in enumerate(np.random.SeedSequence(seed).spawn(n)):
            rng = np.random.default_rng(child)
            for members in self.of_run:
                shuffled[members, column] = rng.permutation(self.labels[members])
        return shuffled[self.of_row]

    def every(self) -> NDArray:
        """All distinct label vectors (M, n_distinct), the observed one among them."""
        runs = [list(_arrangements(tuple(self.labels[members].tolist()))) for members in self.of_run]
        order = np.argsort(np.concatenate(self.of_run))  # of the blocks, from run by run to their numbers
        vectors = np.array([sum(parts, ()) for parts in product(*runs)], dtype=self.labels.dtype)
        return vectors.T[order][self.of_row]

    def others(self, most: int) -> NDArray | None:
        """All label vectors (M, n_distinct - 1) but the observed one; None where these are more than most."""
        if self.n_distinct - 1 > most:
            return None
        every = self.every()
        return every[:, (every != self.labels[self.of_row][:, None]).any(axis=0)]

    @property
    def _counts(self) -> NDArray:
        """Blocks of every run (rows) and class (columns)."""
        classes = np.unique(self.labels)
        return np.array([(self.labels[at][:, None] == classes).sum(axis=0) for at in self.of_run])

    @property
    def n_distinct(self) -> int:
        """Distinct label vectors: the product over runs of their multinomial coefficients."""
        return math.prod(
            math.factorial(int(run.sum())) // math.prod(math.factorial(int(count)) for count in run)
            for run in self._counts
        )

    @property
    def smallest_pvalue(self) -> float:
        """The p-value that no number of permutations gets below.

        Where every run has as many blocks of each class, labels with the K classes renamed are among the
        permutations and give the same accuracy, so the observed one comes K! times.
        """
        counts = self._counts
        renamed = math.factorial(counts.shape[1]) if (counts == counts[:, :1]).all() else 1
        return renamed / self.n_distinct

    def check(self) -> None:
        """Refuse labels that an exchange within runs cannot change."""
        if self.n_distinct == 1:
            raise ValueError(
                f"Exchanging each {self.kind} within its run changes no label, because every run contains "
                "only one class. Number the runs so that each contains several classes."
            )

    @property
    def caution(self) -> str:
        """What a reader must know about the p-value, or nothing."""
        if self.smallest_pvalue > _WORTHWHILE:
            other = (
                "Give more runs, or exchange='sample' if rows are independent (block averages, trial-wise "
                "maps)."
                if self.kind == "block"
                else "Give more runs."
            )
            return (
                f"Only {self.n_distinct} label vectors can be reached by exchanging {self.kind}s within "
                f"runs, so the p-value cannot fall below {self.smallest_pvalue:.3g}. {other}"
            )
        neighbours = self.labels.size > 1 and bool((self.labels[1:] == self.labels[:-1]).mean() > 0.5)
        if self.asked == "sample" and neighbours:
            return (
                "Single samples were exchanged although samples come in blocks of one label: if samples of a "
                "block are correlated, as fMRI volumes are, the p-value is too small. Use exchange='block'."
            )
        return ""


def find_exchange(y: Any, runs: Any, exchange: str = "block", blocks: Any = None) -> Exchange:
    """Find what y (M,), in -1/+1 or class numbers, and runs (M,) allow to exchange.

    ``blocks`` (M,) names the block of each row. Without it a block is a stretch of rows of one label and run,
    which joins neighbouring blocks of one label: name the blocks where such neighbours occur.
    """
    labels, runs = _checked(y, runs)
    if exchange not in KINDS:
        raise ValueError(
            f"exchange must be 'block' or 'sample', got {exchange!r}. Blocks are the safe choice."
        )
    if exchange == "sample":
        if blocks is not None:
            raise ValueError(
                "blocks were given with exchange='sample'. Use exchange='block', or leave blocks out."
            )
        of_row = np.arange(labels.size)
    elif blocks is None:
        of_row = blocks_of_volumes(labels, runs, np.arange(labels.size))
    else:
        of_row = _given_blocks(labels, runs, np.asarray(blocks))
    first = np.unique(of_row, return_index=True)[1]
    of_run = [np.flatnonzero(runs[first] == run) for run in np.unique(runs)]
    return Exchange(of_row, labels[first], of_run, exchange)


def blocks_of_volumes(conditions: Any, runs: Any, volumes: Any) -> NDArray:
    """The block (M,) of each volume: a stretch of successive volumes of one condition and run.

    ``volumes`` (M,) are places in the series, so that volumes left out (rest, other conditions) end a block.

    Parameters
    ----------
    conditions
        The category (M,) of every row.
    runs
        The run (M,) of every sample.
    volumes
        Places (M,) in the series.

    Returns
    -------
    ndarray
        Block numbers (M,) from 0.

    Examples
    --------
    >>> blocks_of_volumes(["face", "face", "face", "cat"], [1, 1, 1, 1], [4, 5, 9, 10]).tolist()
    [0, 0, 1, 2]
    """
    conditions, runs, volumes = np.asarray(conditions), np.asarray(runs), np.asarray(volumes)
    changes = (conditions[1:] != conditions[:-1]) | (runs[1:] != runs[:-1]) | (np.diff(volumes) != 1)
    return np.concatenate([[0], np.cumsum(changes)])


def _arrangements(labels: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Every distinct order of some labels, once."""
    if not labels:
        yield ()
    for first in sorted(set(labels)):
        at = labels.index(first)
        for rest in _arrangements(labels[:at] + labels[at + 1 :]):
            yield (first, *rest)


def _given_blocks(labels: NDArray, runs: NDArray, blocks: NDArray) -> NDArray:
    """Number the given blocks; the same name in two runs means two blocks."""
    if blocks.shape != labels.shape:
        raise ValueError(
            f"blocks must name the block of each of the {labels.size} rows, got shape {blocks.shape}. "
            "Give one block per row, or None to find them from labels and runs."
        )
    _, run = np.unique(runs, return_inverse=True)
    names, block = np.unique(blocks, return_inverse=True)
    _, first, of_row = np.unique(run * names.size + block, return_index=True, return_inverse=True)
    mixed = np.flatnonzero(labels != labels[first][of_row])
    if mixed.size:
        row = mixed[0]
        raise ValueError(
            f"A block must have one label, but block {blocks[row]!r} of run {runs[row]!r} has several. "
            "Split it where the condition changes, or leave blocks out."
        )
    return of_row


def _checked(y: Any, runs: Any) -> tuple[NDArray, NDArray]:
    """Labels as small whole numbers, and runs."""
    labels, runs = np.asarray(y), np.asarray(runs)
    if labels.ndim != 1 or labels.shape != runs.shape or labels.size == 0:
        raise ValueError(
            f"y and runs must have one entry per row, got shapes {labels.shape} and {runs.shape}. "
            "A permutation test takes one comparison at a time."
        )
    whole = labels.dtype.kind in "fiu" and np.isfinite(labels).all() and (labels == np.round(labels)).all()
    if not whole or labels.min() < -1:
        raise ValueError(
            "y must be -1 or +1, or a class number from 0 on, in every row, got "
            f"{shown_values(labels)}. Make it with np.where(conditions == 'face', 1, -1), for example."
        )
    return labels.astype(np.int8 if labels.max() < 128 else np.int32), runs
