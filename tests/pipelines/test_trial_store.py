"""An interrupted experiment goes on where it was, and ends with the rows of an uninterrupted one."""

import json

import pytest

from pipelines.trial_store import TrialStore

KEYS = [(5, 0), (5, 1), (30, 0)]


class Stopped(Exception):
    """The run was killed."""


def _experiment(done, stop_at=None):
    def compute(sparsity, trial):
        if (sparsity, trial) == stop_at:
            raise Stopped
        done.append((sparsity, trial))
        return [{"sparsity": sparsity, "trial": trial, "error": (sparsity + trial) / 3}, {"sparsity": 0}]

    return compute


def test_an_interrupted_run_does_only_what_is_missing(tmp_path):
    first, second = [], []
    with pytest.raises(Stopped):
        TrialStore(tmp_path, "look", {"seed": 0}).rows(KEYS, _experiment(first, stop_at=(30, 0)))
    store = TrialStore(tmp_path, "look", {"seed": 0})
    rows = store.rows(KEYS, _experiment(second))
    assert (first, second) == (KEYS[:2], KEYS[2:])
    assert rows == TrialStore(tmp_path / "other", "look", {"seed": 0}).rows(KEYS, _experiment([]))
    store.finish()
    assert not store.path.exists()


def test_a_line_that_was_cut_is_done_again(tmp_path):
    store = TrialStore(tmp_path, "look", {"seed": 0})
    store.rows(KEYS, _experiment([]))
    store.path.write_text(store.path.read_text()[:-20])
    done = []
    again = TrialStore(tmp_path, "look", {"seed": 0})
    again.rows(KEYS, _experiment(done))
    assert done == KEYS[2:]
    assert len([json.loads(line) for line in again.path.read_text().splitlines()]) == 4


def test_trials_of_other_settings_do_not_count(tmp_path):
    TrialStore(tmp_path, "look", {"seed": 0}).rows(KEYS, _experiment([]))
    done = []
    TrialStore(tmp_path, "look", {"seed": 1}).rows(KEYS, _experiment(done))
    assert done == KEYS
