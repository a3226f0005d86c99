"""Permutation tests of several classes, or of any splits: labels exchanged within groups, all folds again."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..methods.fold_fits import Method
from .exchange import blocks_of_volumes
from .pairwise import HeldOutAnswers, Split, columns_at_once, held_out_answers
from .permutation import PermutationTest


def permutation_test_of_classes(
    method: Method, X: NDArray, codes: NDArray, groups: NDArray, splits: Sequence[Split],
    score: Callable[[NDArray, HeldOutAnswers], float], n: int = 1000, *, seed: int = 0, unit: str = "block",
    blocks: NDArray | None = None, n_jobs: int = 1,
) -> PermutationTest:  # fmt: skip
    """Repeat the whole cross-validation of all pairs of classes with labels exchanged within groups.

    ``codes`` (M,) are class numbers 0..K-1; ``score(codes, answers)`` scores the held-out answers of one
    labelling. ``unit="block"`` exchanges the rows of ``blocks`` (M,) as wholes, by default stretches of one
    class and group; ``unit="sample"`` single rows, which is right for independent ones only.
    """
    labelings, n_distinct = permuted_codes(codes, groups, n, seed, unit, blocks)
    labelings.insert(0, codes)
    n_columns = len(splits) * math.comb(int(codes.max()) + 1, 2)
    step = max(1, columns_at_once(X) // n_columns)
    scores: list[float] = []
    failed: list[int] = []
    for start in range(0, len(labelings), step):
        some = labelings[start : start + step]
        answers = held_out_answers(method, X, some, groups, splits, n_jobs)
        scores += [score(labels, answer) for labels, answer in zip(some, answers, strict=True)]
        failed += [answer.n_failed for answer in answers]
    caution = ""
    if n_distinct < 20:
        caution = (
            f"Only {n_distinct} labellings can be reached by exchanging {unit}s within groups, so the "
            f"p-value cannot fall below {1 / n_distinct:.3g}. Give more groups."
        )
    return PermutationTest(
        method.name, scores[0], np.array(scores[1:]), n_distinct, seed, unit, caution, sum(failed[1:])
    )


def permuted_codes(
    codes: NDArray, groups: NDArray, n: int, seed: int, unit: str, blocks: NDArray | None = None
) -> tuple[list[NDArray], int]:
    """n labellings (M,) with the labels of blocks or samples shuffled within groups, and how many there are.

    Labelling i comes from the i-th child of ``SeedSequence(seed)``.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1 permutation, got {n}. 1000 is usual.")
    if unit not in ("block", "sample"):
        raise ValueError(f"unit must be 'block' or 'sample', got {unit!r}. Blocks are the safe choice.")
    each = np.arange(len(codes))
    if unit == "sample":
        of_row = each
    elif blocks is None:
        of_row = blocks_of_volumes(codes, groups, each)
    else:
        of_row = np.unique(blocks, return_inverse=True)[1]
    first = np.unique(of_row, return_index=True)[1]
    labels = codes[first]
    members = [np.flatnonzero(groups[first] == group) for group in np.unique(groups)]
    n_distinct = math.prod(_arrangements(labels[at]) for at in members)
    if n_distinct == 1:
        raise ValueError(
            f"Exchanging each {unit} within its group can give no other labels: every group holds one class. "
            "Give groups that hold several classes."
        )
    out = []
    for child in np.random.SeedSequence(seed).spawn(n):
        rng = np.random.default_rng(child)
        shuffled = labels.copy()
        for at in members:
            shuffled[at] = rng.permutation(labels[at])
        out.append(shuffled[of_row])
    return out, n_distinct


def _arrangements(labels: NDArray) -> int:
    """Distinct orders of some labels: their multinomial coefficient."""
    counts = np.unique(labels, return_counts=True)[1]
    return math.factorial(int(counts.sum())) // math.prod(math.factorial(int(count)) for count in counts)
