"""Is cross-decoding better than chance? The labels of the training comparison shuffled within runs."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..methods.fold_fits import Method
from .balanced import mean_aucs
from .cross_folds import prepared_answers, training_sets
from .cross_tasks import Cross
from .crossval import share_by_fold
from .exchange import find_exchange
from .null import NullStatistics, failures
from .pairwise import solve_columns
from .permutation import PermutationPlan, PermutationTest, plan_permutations
from .preparation import Preparation

_WORTHWHILE = 0.05  # a test that cannot reach this p-value is hardly worth its time


def plan_cross_permutations(
    cross: Cross,
    runs: Any,
    n_features: int,
    n: int = 1000,
    *,
    seed: int = 0,
    exchange: str = "block",
    blocks: Any = None,
    prepared: bool = False,
    columns_at_once: int | None = None,
    ahead: bool = False,
) -> PermutationPlan:
    """Find the permutations of ``cross_permutation_test`` and lay them out in chunks.

    ``prepared``: every fold prepares an X of its own, so that a solve has one column per label vector.
    """
    runs = np.asarray(runs)
    if cross.shared:
        raise ValueError(cross.caution)
    mine, own = runs[cross.train.rows], None if blocks is None else np.asarray(blocks)[cross.train.rows]
    n_sets = 1 if prepared else training_sets(cross, cross.train.y[:, None], runs).signs.shape[1]
    plan = plan_permutations(
        cross.train.y, mine, n_features, n, seed=seed, exchange=exchange, blocks=own, n_folds=n_sets,
        columns_at_once=columns_at_once, ahead=ahead,
    )  # fmt: skip
    said = _caution(plan, find_exchange(cross.train.y, mine, exchange, own).caution)
    return replace(plan, caution=said, floor=1 / plan.n_distinct)


def _caution(plan: PermutationPlan, said: str) -> str:
    """Labels with renamed sides give the opposite accuracy here, not the same: smaller p-values exist."""
    if not said.startswith("Only"):
        return said
    smallest = 1 / plan.n_distinct
    if smallest <= _WORTHWHILE:
        return ""
    return (
        f"Only {plan.n_distinct} label vectors can be reached by exchanging {plan.exchange}s of the training "
        f"comparison within runs, so the p-value cannot fall below {smallest:.3g}. Give more runs."
    )


def cross_null(
    method: Method,
    X: Any,
    cross: Cross,
    labels: NDArray,
    runs: Any,
    *,
    preparation: Preparation | None = None,
    connectivity: Any = None,
    n_jobs: int = 1,
) -> NullStatistics:
    """Accuracies of cross-decoding with each of the label vectors (m_train, k) of the training rows.

    Labels of the test rows stay as they are. With a ``preparation`` X and ``runs`` are those of the study.
    """
    X, runs = np.asarray(X), np.asarray(runs)
    how: dict[str, Any] = {"connectivity": connectivity, "n_jobs": n_jobs}
    if preparation is None:
        decision, n_failed = _decisions(method, X, cross, labels, runs, **how)
    else:
        decision = np.empty((cross.test.rows.size, labels.shape[1]))
        n_failed = np.zeros(labels.shape[1], dtype=int)
        for each in prepared_answers(method, X, [(cross, labels)], runs, preparation, **how):
            decision[each.tested] = each.decision
            n_failed += failures(each.fits, labels.shape[1])
    positive = np.broadcast_to((cross.test.y > 0)[:, None], decision.shape)
    _, fold = np.unique(runs[cross.test.rows], return_inverse=True)
    right = (decision > 0) == positive
    scores = [share_by_fold(each, fold, int(fold.max()) + 1).mean() for each in right.T]
    said, first = decision[:, :, None], positive[:, :, None]
    return NullStatistics(np.array(scores), mean_aucs(said, first, ~first, fold), None, n_failed)


def _decisions(
    method: Method, X: NDArray, cross: Cross, labels: NDArray, runs: NDArray, connectivity: Any, n_jobs: int
) -> tuple[NDArray, NDArray]:
    """Decisions (T, k) about the tested rows, and fits (k,) that failed; all folds are columns of one X."""
    rows = cross.rows
    inner = cross.within(rows)
    sets = training_sets(inner, labels, runs[rows])
    train = sets.signs != 0
    fits = solve_columns(method, X[rows], sets.signs.astype(float), train, runs[rows], n_jobs, connectivity)
    by_vector = np.asarray(fits.decision).reshape(len(rows), labels.shape[1], -1)
    return by_vector[inner.test.rows, :, sets.column], failures(fits, labels.shape[1])


def cross_permutation_test(
    method: Method,
    X: Any,
    cross: Cross,
    runs: Any,
    n: int = 1000,
    *,
    seed: int = 0,
    exchange: str = "block",
    blocks: Any = None,
    connectivity: Any = None,
    preparation: Preparation | None = None,
    columns_at_once: int | None = None,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> PermutationTest:
    """Compare the accuracy of cross-decoding with that of n permutations of the training labels within runs.

    X is (M, N), runs (M,); arguments as for :func:`permutation_test`. Labels of the tested comparison stay as
    they are: chance overlap of what is learnt from noise with what tells the tested comparison apart is then
    part of the null. Exchanging the test labels instead would ignore it and be wrong far too often where the
    tested comparison can be decoded. Where the two codes are there but unrelated, the test is conservative.
    """
    plan = plan_cross_permutations(
        cross, runs, np.shape(X)[-1], n, seed=seed, exchange=exchange, blocks=blocks,
        prepared=preparation is not None, columns_at_once=columns_at_once,
    )  # fmt: skip
    how: dict[str, Any] = {"preparation": preparation, "connectivity": connectivity, "n_jobs": n_jobs}
    parts = []
    for chunk in plan.chunks:
        parts.append(cross_null(method, X, cross, plan.labels[:, chunk], runs, **how))
        if progress is not None:
            progress(plan.done(chunk), plan.n)
    return plan.joined(method.name, parts)
