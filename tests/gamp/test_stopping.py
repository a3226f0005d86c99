"""The cavity stop: what ends a run, and that a last digit neither ends it nor chooses another state."""

import numpy as np
import pytest
from sklearn.feature_extraction.image import grid_to_graph

from mvpa_gamp.gamp import SolverSettings
from mvpa_gamp.gamp.result import CAVITY
from mvpa_gamp.gamp.stopping import Stopping
from mvpa_gamp.methods import METHODS

SUM_PRODUCT = ("gamp-bg-lr", "gamp-sbg-lr", "gamp-bl-lr", "gamp-bg-pr", "gamp-bg-hl")
_GRAPH = grid_to_graph(15, 20)


def _ends(scores, patience=10):
    """The iteration at which runs with these scores, (n_iter, B), end."""
    stopping = Stopping(SolverSettings(patience=patience).resolved(), scores.shape[1])
    columns = np.arange(scores.shape[1])
    for iteration in range(1, len(scores) + 1):
        stopping.note_score(columns, scores[iteration - 1, columns], iteration - 1)
        none = np.zeros(columns.size, dtype=int)
        columns = columns[~stopping.ended(columns, none > 0, none, iteration)]
        if not columns.size:
            break
    assert (stopping.status == CAVITY).all()
    return stopping.n_iter


def _creeping(n_columns):
    """Scores that rise for ever by less and less, as on separable data, at as many speeds as columns."""
    speed = np.geomspace(0.5, 3.0, n_columns)
    return -0.1 - 0.59 * np.exp(-0.3 * np.arange(300.0)[:, None]) - speed / (30 + np.arange(300.0)[:, None])


def test_a_last_digit_moves_the_end_of_a_creeping_run_by_an_iteration_at_most():
    scores = _creeping(4000)
    ends = _ends(scores)
    assert 15 < ends.min() < ends.max() < 150
    rng = np.random.default_rng(0)
    nudged = _ends(scores + 1e-6 * rng.standard_normal(scores.shape))
    assert np.abs(nudged - ends).max() == 1  # counted from the last clear gain it moved by 4


def test_a_run_ends_a_patience_after_its_last_clear_gain():
    step = np.where(np.arange(60) < 20, -0.6, -0.3)[:, None]
    assert _ends(step).tolist() == [30]


def test_a_run_that_never_rises_ends_after_three_times_the_patience():
    assert _ends(np.full((60, 1), -0.7)).tolist() == [30]


def test_a_patience_beyond_any_run_takes_no_memory():
    stopping = Stopping(SolverSettings(patience=10**12).resolved(), 3)
    stopping.note_score(np.arange(3), np.zeros(3), 0)
    assert not stopping.ended(np.arange(3), np.zeros(3, bool), np.zeros(3, int), 1).any()


def _separable(seed):
    """96 volumes x 300 features in float32, six of them strong, in six runs."""
    rng = np.random.default_rng(seed)
    runs, y = np.repeat(np.arange(6), 16), np.tile(np.repeat([1, -1], 8), 6)
    X = rng.standard_normal((96, 300)).astype(np.float32)
    X[:, rng.choice(300, 6, replace=False)] += np.float32(rng.uniform(1, 6)) * y[:, None]
    return X, y.astype(float), runs, runs[:, None] != np.unique(runs)


def _change(before, after):
    """Largest change of a weight, as a share of the largest weight of its column."""
    return np.max(np.abs(after - before).max(axis=0) / np.abs(before).max(axis=0))


@pytest.mark.parametrize("name", SUM_PRODUCT)
def test_a_unit_in_the_last_place_of_separable_data_does_not_choose_another_state(name):
    for seed in range(5):
        X, y, runs, train = _separable(seed)
        away = np.random.default_rng(seed).choice([-np.inf, np.inf], X.shape).astype(np.float32)
        before, after = (
            METHODS[name].fit_folds(given, y, train, runs, connectivity=_GRAPH)
            for given in (X, np.nextafter(X, away))
        )
        np.testing.assert_array_equal(before.n_iter, after.n_iter)
        assert _change(before.coef, after.coef) < 1e-5  # float32 resolves 1e-7; seen: 1e-6


@pytest.mark.parametrize("name", SUM_PRODUCT)
def test_held_out_features_do_not_choose_another_state(name):
    X, y, runs, train = _separable(7)
    noisy = np.where((runs == 2)[:, None], 1e3 * X[::-1], X)
    before, after = (
        METHODS[name].fit_folds(given, y, train, runs, connectivity=_GRAPH).coef[:, 2:3]
        for given in (X, noisy)
    )
    assert _change(before, after) < 1e-5
