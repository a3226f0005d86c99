"""Sentences before the table: unbalanced comparisons, and methods that select next to nothing."""

from types import SimpleNamespace

from mvpa_gamp.report.cautions import cautions
from mvpa_gamp.results.tables import AVERAGE


def results(positive=10, negative=10, voxels=5.0, converged=4, n_runs=4):
    numbers = {"method": "cdn", "voxels": voxels, "status": "ok", "folds": 4, "folds_converged": converged}
    rows = [
        {"contrast": "faceMinusHouse", "comparison": "face vs house", **numbers},
        {"contrast": AVERAGE, "comparison": "average", **numbers},
    ]
    task = {"label": "face vs house", "positive_volumes": positive, "negative_volumes": negative}
    study = {"data": {"n_runs": n_runs}}
    return SimpleNamespace(tasks=[task], rows=rows, labels={"cdn": "CDN"}, study=study)


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
