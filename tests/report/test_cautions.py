"""Sentences before the table: unbalanced comparisons, and methods that select next to nothing."""

from pathlib import Path

import numpy as np

from mvpa_gamp.methods import METHODS
from mvpa_gamp.report.page import cautions
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.summary import Summary
from mvpa_gamp.results.tables import AVERAGE


def results(positive=10, negative=10, voxels=5.0, converged=4, n_runs=4):
    numbers = {"method": "cdn", "voxels": voxels, "status": "ok", "folds": 4, "folds_converged": converged}
    rows = [
        {"contrast": "faceMinusHouse", "comparison": "face vs house", **numbers},
        {"contrast": AVERAGE, "comparison": "average", **numbers},
    ]
    task = {"label": "face vs house", "positive_volumes": positive, "negative_volumes": negative}
    method = {"name": "cdn", "label": "CDN"}
    summary = Summary(
        data={"n_runs": n_runs}, processing={}, seed=0, phantom=False, banner=None, subjects=["01"],
        tasks=[task], methods=[method], maps={}, rows=[],
    )  # fmt: skip
    return Results(ResultsFolder(Path("nowhere")), summary, rows, [])


def decoded(accuracies):
    """Results whose folds have these balanced accuracies."""
    out, n = results(), len(accuracies)
    for row in out.rows:
        row |= {
            "folds": n,
            "folds_converged": n,
            "chance_balanced_accuracy_percent": 50.0,
            "balanced_accuracy_percent": 100 * np.mean(accuracies),
            "balanced_accuracy_se_percent": 100 * np.std(accuracies, ddof=1) / np.sqrt(n),
        }
    return out


def run_accuracies(seed, swapped=()):
    """Balanced accuracies of eight runs of noise, or of an effect that is exchanged in some runs."""
    rng = np.random.default_rng(seed)
    runs, y = np.repeat(np.arange(8), 6), np.tile([1.0, -1.0], 24)
    X = rng.standard_normal((48, 40))
    X[:, :5] += 3 * (len(swapped) > 0) * (y * np.where(np.isin(runs, swapped), -1, 1))[:, None]
    train = runs[:, None] != np.unique(runs)
    signs = np.sign(METHODS["onebit-cs"].fit_folds(X, y, train, runs).decision)
    sides = [~train & (y == side)[:, None] for side in (1, -1)]
    return np.mean([np.sum((signs == y[:, None]) & at, axis=0) / at.sum(axis=0) for at in sides], axis=0)


def test_nothing_to_say_about_balanced_comparisons_with_selections():
    assert cautions(results()) == []
    assert cautions(results(positive=8)) == []  # at the limit


def test_always_saying_the_more_frequent_category_is_named_as_the_rival():
    (said,) = cautions(results(positive=30, negative=10))
    assert said.startswith("face vs house is unbalanced, 30 against 10 volumes")
    assert "is correct in 75 %" in said  # thirty of forty


def test_a_method_that_selects_nothing_is_named_once_with_its_comparisons():
    (said,) = cautions(results(voxels=0.4))
    assert said.startswith("CDN selects less than one voxel per fold on face vs house:")


def test_fits_that_did_not_converge_are_counted():
    assert cautions(results(converged=3)) == ["1 of 4 fits did not converge, see Convergence."]


def test_without_runs_scores_may_be_too_good():
    (said,) = cautions(results(n_runs=None))
    assert "scores are too good" in said


def test_labels_exchanged_in_half_of_the_runs_are_far_below_chance_and_noise_rarely_is():
    def alarms(n, **given):
        return [said for seed in range(n) for said in cautions(decoded(run_accuracies(seed, **given)))]

    found = alarms(20, swapped=(1, 3, 4, 6))
    assert len(found) >= 12
    assert found[0].startswith("Balanced accuracy is far below chance: face vs house (CDN ")
    assert "Check the labels of every run" in found[0]
    assert len(alarms(200)) <= 8


def test_somewhat_below_chance_or_with_few_folds_is_no_caution():
    assert cautions(decoded([0.42, 0.41, 0.43, 0.42, 0.41])) == []
    assert cautions(decoded([0.0, 0.9, 0.1, 0.4])) == []
    assert cautions(decoded([0.1, 0.1])) == []
    assert "far below" in cautions(decoded([0.25, 0.25, 0.25]))[0]
