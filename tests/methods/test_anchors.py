"""The baselines on the real Haxby slice, and a small made-up twin that always runs."""

import numpy as np
import pytest

from mvpa_gamp.decoding import PAPER_PAIRS, cross_validate, fold_errors, make_tasks
from mvpa_gamp.methods import METHODS
from mvpa_gamp.stability import jaccard


def table(study, name, pairs):
    """Mean over pairs of error, number of selected features and consistency."""
    rows = []
    for task in make_tasks(study.conditions, pairs):
        result = cross_validate(METHODS[name], study.X[task.rows], task.y, study.runs[task.rows])
        assert result.converged.all()
        support = result.folds.support
        rows.append((fold_errors(result, task.y).mean(), support.sum(axis=0).mean(), jaccard(support)))
    return np.mean(rows, axis=0)


def test_l1_lr_cv_on_the_real_slice(haxby_slice):
    error, voxels, consistency = table(haxby_slice, "l1-lr-cv", PAPER_PAIRS)
    # Reference: liblinear, nested, another grid: 12.0 %, 43 voxels, consistency 48 %.
    assert error == pytest.approx(0.120, abs=0.015)
    assert voxels == pytest.approx(43, abs=8)
    assert consistency == pytest.approx(0.48, abs=0.06)


def test_onebit_cs_on_the_real_slice(haxby_slice):
    error, voxels, consistency = table(haxby_slice, "onebit-cs", PAPER_PAIRS)
    # Reference: an independent nested search, 23.3 %, 18 voxels, consistency 56 %.
    assert error == pytest.approx(0.233, abs=0.03)
    assert voxels == pytest.approx(18, abs=4)
    assert consistency == pytest.approx(0.56, abs=0.06)


@pytest.mark.parametrize("name", ["l1-lr-cv", "onebit-cs"])
def test_baselines_on_the_toy_study(toy_study, name):
    error, voxels, consistency = table(toy_study, name, [("cat", "scissors"), ("cat", "shoe")])
    assert error < 0.15  # six of the 60 features tell a pair apart, at two standard deviations
    assert 2 <= voxels <= 30
    assert consistency > 0.3  # random supports of these sizes reach about 0.05
