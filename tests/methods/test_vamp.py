"""VAMP methods: many classes in one fit, selection, calibrated probabilities."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from mvpa_gamp.coupling import class_pairs, classify
from mvpa_gamp.decoding import Scheme, held_out_answers, null_statistics
from mvpa_gamp.decoding.fit import fit_pairs
from mvpa_gamp.decoding.scores import class_maps, score_classes
from mvpa_gamp.gamp.vamp_classes import rank_matched
from mvpa_gamp.methods import METHODS

VAMP = METHODS["vamp-bg"]
N_CLASSES = 4


@pytest.fixture(scope="module")
def study():
    """Four classes in six runs of four blocks; each class has two voxels of sixty."""
    rng = np.random.default_rng(0)
    codes, runs = np.tile(np.repeat(np.arange(N_CLASSES), 5), 6), np.repeat(np.arange(6), 20)
    X = rng.standard_normal((120, 60))
    X[np.arange(120), 2 * codes] += 2
    X[np.arange(120), 2 * codes + 1] += 2
    return X, codes, runs


def fitted(method, study, **given):
    X, codes, runs = study
    return fit_pairs(method, X, codes, runs, Scheme(**given)).fits


def test_classes_are_one_fit_and_its_pairs_say_the_same(study):
    fits = fitted(VAMP, study)
    X, codes, _ = study
    assert len(fits) == 6 and fits[0].coef.shape == (60, 7)
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.inclusion, fits[0].inclusion)
    decisions = dict(zip(class_pairs(N_CLASSES), (fit.decision for fit in fits), strict=True))
    np.testing.assert_allclose(decisions[0, 1] + decisions[1, 3], decisions[0, 3], rtol=1e-6, atol=1e-6)
    for fit in fits:
        np.testing.assert_allclose(X @ fit.coef + fit.intercept, fit.decision, atol=1e-6)
    said = held_out_answers(fits)
    judged = classify(said.decision, said.proba, N_CLASSES)
    wanted = np.exp(said.decision[:, 0]) / (1 + np.exp(said.decision[:, 0]))
    found = judged.proba[:, 0] / (judged.proba[:, 0] + judged.proba[:, 1])
    np.testing.assert_allclose(found, wanted, atol=1e-6)  # coupling gives back what the classes said
    assert score_classes("accuracy", said, codes, np.arange(N_CLASSES)).fold_scores.mean() > 0.9


def test_every_class_has_a_weight_map_and_all_share_an_inclusion_map(study):
    fits = fitted(VAMP, study)
    weights = class_maps([fit.coef[:, -1] for fit in fits], N_CLASSES, signed=True)
    assert all(set(np.argsort(-weights[:, k])[:2]) == {2 * k, 2 * k + 1} for k in range(N_CLASSES))
    assert set(np.flatnonzero(fits[0].inclusion[:, -1] > 0.5)) == set(range(8))


def test_labels_of_a_held_out_run_change_no_fit_that_holds_it_out(study):
    X, codes, runs = study
    planted = np.where(runs == 2, 3 - codes, codes)
    before, after = fitted(VAMP, study), fitted(VAMP, (X, planted, runs))
    for one, two in zip(before, after, strict=True):
        np.testing.assert_allclose(one.coef[:, 2], two.coef[:, 2], atol=1e-12)
        assert np.abs(one.coef[:, 1] - two.coef[:, 1]).max() > 1e-3


def test_pairs_stay_where_weights_are_of_two_classes(study):
    method = replace(VAMP, class_weight={-1: 1.0, 1: 2.0})
    assert not method.joins_classes and VAMP.joins_classes
    inclusions = [fit.inclusion for fit in fitted(method, study)]
    assert not np.array_equal(inclusions[0], inclusions[1])


def test_permutations_of_classes_are_the_same_fits(study):
    X, codes, runs = study
    both = np.column_stack([codes, np.roll(codes, 5)])
    found = null_statistics(VAMP, X, both, runs)
    said = held_out_answers(fitted(VAMP, study))
    right = classify(said.decision, said.proba, N_CLASSES).predicted == codes[said.rows]
    assert found.score[0] == pytest.approx(right.mean()) and found.score.shape == (2,)


def test_a_class_that_a_fold_lacks_is_explained(study):
    X, codes, runs = study
    with pytest.raises(ValueError, match="Every fold needs training rows of all 4 classes, but fold 1 has"):
        fitted(VAMP, (X, np.where((codes == 2) & (runs != 1), 1, codes), runs))


def test_neighbours_serve_all_classes(study):
    graph = sparse.eye_array(60, k=1)
    fits = fitted(METHODS["vamp-sbg"], study, connectivity=graph)
    assert fits[0].inclusion[:8, -1].min() > 0.5
    with pytest.raises(ValueError, match="vamp-sbg needs to know which features are neighbours"):
        fitted(METHODS["vamp-sbg"], study)


def test_selection_has_the_expected_size_and_is_never_empty():
    inclusion = np.column_stack([np.full(10, 0.04), np.linspace(0, 0.4, 10)])
    support = rank_matched(inclusion)
    assert support.sum(axis=0).tolist() == [1, 2] and support[-2:, 1].all()


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_probabilities_are_those_of_held_out_rows(share):
    rng = np.random.default_rng(1)
    y, runs = np.where(rng.random(480) < share, 1.0, -1.0), np.arange(480) // 60
    X = rng.standard_normal((480, 40)) + 0.4 * y[:, None] * (np.arange(40) < 4)
    train = runs[:, None] != np.arange(8)
    fits = VAMP.fit_folds(X, y, train, runs)
    proba, truth = fits.proba[~train], np.broadcast_to(y[:, None] > 0, train.shape)[~train]
    for low, high in ((0, 0.5), (0.5, 0.8), (0.8, 1)):
        mine = (proba > low) & (proba <= high)
        error = np.sqrt(0.25 / mine.sum())
        assert mine.sum() > 10 and abs(truth[mine].mean() - proba[mine].mean()) < 3 * error


def test_runs_with_one_row_per_class_have_no_weights_of_their_own():
    rng = np.random.default_rng(2)
    y, pairs = np.tile([1.0, -1.0], 12), np.repeat(np.arange(12), 2)
    X = rng.standard_normal((24, 20)) + y[:, None] * (np.arange(20) < 3)
    once = VAMP.fit_folds(X, y, np.ones((24, 1), dtype=bool), pairs)
    twice = VAMP.fit_folds(X, y, np.ones((24, 1), dtype=bool), pairs // 2)
    assert once.parameters["noise"][0] < twice.parameters["noise"][0] - 0.1
