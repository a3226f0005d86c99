"""Columns that train on about the same rows, so that products can skip all other rows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .dense_kernels import ROWS_AT_ONCE
from .moments import Array

# A column joins a set when its rows and those of the set agree in at least this share of the larger number.
_SHARED = 0.75


@dataclass(frozen=True)
class ColumnSets:
    """B columns in G sets, and the rows that each set uses: all that its columns train on.

    Folds of one comparison are a set. The rows of a set are a multiple of ``ROWS_AT_ONCE``, its last one
    repeated where needed. Every column is in one set.
    """

    rows: NDArray  # row numbers, set by set
    row_at: NDArray  # (G + 1,) where the rows of each set begin
    columns: NDArray  # (B,) column numbers, set by set
    column_at: NDArray  # (G + 1,) where the columns of each set begin
    n_rows: NDArray  # (G,) rows of each set without the repeated ones

    def take(self, columns: NDArray) -> "ColumnSets":
        """Some of the columns, in ascending order and numbered anew, on the same rows."""
        of_set = np.empty(self.columns.size, dtype=int)
        of_set[self.columns] = np.repeat(np.arange(self.n_rows.size), np.diff(self.column_at))
        return _joined(of_set[columns], self._row_lists())

    def _row_lists(self) -> list[NDArray]:
        starts = zip(self.row_at, self.n_rows, strict=False)
        return [self.rows[at : at + n] for at, n in starts]

    def packed(self, values: Array) -> NDArray:
        """Values (M, B) of each column on the rows of its set, (B, R), zero where rows are repeated."""
        out = np.zeros((values.shape[1], int(np.diff(self.row_at).max())), dtype=values.dtype)
        for g, rows in enumerate(self._row_lists()):
            columns = self.columns[self.column_at[g] : self.column_at[g + 1]]
            out[columns, : rows.size] = values[rows][:, columns].T
        return out

    def arrays(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """What the kernels read."""
        return self.rows, self.row_at, self.columns, self.column_at


def column_sets(train: NDArray) -> ColumnSets:
    """The columns of ``train`` (M, B) by the rows they train on."""
    used: list[NDArray] = []
    of_set = np.empty(train.shape[1], dtype=int)
    for column, rows in enumerate(train.T):
        size = np.count_nonzero(rows)
        for g, members in enumerate(used):
            if np.count_nonzero(members & rows) >= _SHARED * max(size, np.count_nonzero(members)):
                members |= rows
                of_set[column] = g
                break
        else:
            of_set[column] = len(used)
            used.append(rows.copy())
    return _joined(of_set, [np.flatnonzero(members) for members in used])


def one_set(n_rows: int, n_columns: int) -> ColumnSets:
    """Every column uses every row."""
    return _joined(np.zeros(n_columns, dtype=int), [np.arange(n_rows)])


def _joined(of_set: NDArray, rows: list[NDArray]) -> ColumnSets:
    """Sets from the set of every column and the rows of every set."""
    padded = [np.append(each, np.repeat(each[-1:], -each.size % ROWS_AT_ONCE)) for each in rows]
    counts = np.bincount(of_set, minlength=len(rows))
    return ColumnSets(
        rows=np.concatenate(padded).astype(np.uint64),  # without a sign: no test for negative ones
        row_at=_starts([each.size for each in padded]),
        columns=np.argsort(of_set, kind="stable").astype(np.uint64),
        column_at=_starts(counts.tolist()),
        n_rows=np.array([each.size for each in rows]),
    )


def _starts(sizes: list[int]) -> NDArray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
