"""All pairs and folds in one batch: equal to cross-validation pair by pair, whatever the chunks."""

import numpy as np
import pytest

from mvpa_gamp.decoding import cross_validate, leave_one_run_out, make_tasks, pairwise
from mvpa_gamp.decoding.pairwise import fit_pairs, held_out_answers, pair_columns
from mvpa_gamp.methods import METHODS

METHOD = METHODS["gamp-bg-lr"]


def splits_of(runs):
    train = leave_one_run_out(runs).train
    return [(np.flatnonzero(rows), np.flatnonzero(~rows)) for rows in train.T]


@pytest.fixture(scope="module")
def three(toy_study):
    codes = np.unique(toy_study.conditions, return_inverse=True)[1]
    return toy_study.X, codes, toy_study.runs, splits_of(toy_study.runs)


@pytest.fixture(scope="module")
def fits(three):
    return fit_pairs(METHOD, *three)


def test_two_classes_are_exactly_a_cross_validation(toy_study):
    (task,) = make_tasks(toy_study.conditions, [("cat", "shoe")])
    X, runs = toy_study.X[task.rows], toy_study.runs[task.rows]
    expected = cross_validate(METHOD, X, task.y, runs)
    found = fit_pairs(METHOD, X, (task.y < 0).astype(int), runs, splits_of(runs))
    np.testing.assert_array_equal(found.refit.coef, expected.refit.coef)
    np.testing.assert_array_equal(found.refit.inclusion, expected.refit.inclusion)
    np.testing.assert_array_equal(found.support[:, 0], expected.fits.support)
    order = np.argsort(found.rows)
    said = expected.predictions
    np.testing.assert_array_equal(found.decision[order, 0], [each.score for each in said])
    np.testing.assert_array_equal(found.proba[order, 0], [each.probability for each in said])
    assert tuple(found.status[0]) == (*expected.fits.status, *expected.refit.status)


def test_each_pair_of_three_classes_is_its_own_cross_validation(three, fits):
    X, codes, runs, _ = three
    place = {row: t for t, row in enumerate(fits.rows)}
    for p, pair in enumerate(fits.pairs):
        rows = np.flatnonzero(np.isin(codes, pair))
        alone = cross_validate(METHOD, X[rows], np.where(codes[rows] == pair[0], 1.0, -1.0), runs[rows])
        np.testing.assert_allclose(fits.refit.coef[:, p], alone.refit.coef[:, 0], rtol=1e-6, atol=1e-9)
        said = [fits.decision[place[row], p] for row in rows]
        np.testing.assert_allclose(said, [each.score for each in alone.predictions], rtol=1e-6, atol=1e-8)


def test_labels_are_given_to_the_pairs_they_belong_to():
    codes = np.array([0, 1, 2, 0, 1, 2])
    splits = [(np.array([0, 1, 2]), np.array([3, 4, 5])), (np.array([3, 4, 5]), np.array([0, 1, 2]))]
    train, targets = pair_columns(codes, ((0, 1), (0, 2), (1, 2)), splits)
    np.testing.assert_array_equal(train[:, 0], [1, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(train[:, 1], [0, 0, 0, 1, 1, 0])
    np.testing.assert_array_equal(train[:, 4], [0, 1, 1, 0, 0, 0])
    np.testing.assert_array_equal(targets[:, 2], [1, 0, -1, 1, 0, -1])


@pytest.mark.parametrize("most", [1, 5, 7])
def test_chunks_change_nothing(three, fits, monkeypatch, most):
    monkeypatch.setattr(pairwise, "columns_at_once", lambda X: most)
    parts = fit_pairs(METHOD, *three)
    np.testing.assert_allclose(parts.refit.coef, fits.refit.coef, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(parts.decision, fits.decision, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(parts.support, fits.support)
    np.testing.assert_array_equal(parts.voxels, fits.voxels)
    assert parts.parameters.keys() == fits.parameters.keys()


def test_processes_change_nothing(three, fits):
    parts = fit_pairs(METHOD, *three, n_jobs=2)
    np.testing.assert_allclose(parts.refit.coef, fits.refit.coef, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(parts.support, fits.support)


def test_labels_of_held_out_rows_change_nothing(three, fits):
    X, codes, runs, splits = three
    planted = codes.copy()
    test = splits[2][1]
    planted[test] = (codes[test] + 1) % 3
    after = fit_pairs(METHOD, X, planted, runs, splits)
    mine = fits.fold == 2
    np.testing.assert_allclose(after.decision[mine], fits.decision[mine], atol=1e-10)
    assert np.abs(after.decision[~mine] - fits.decision[~mine]).max() > 1e-3  # there they were used


def test_several_labellings_are_one_batch(three, fits):
    X, codes, runs, splits = three
    other = np.roll(codes, 4)
    first, second = held_out_answers(METHOD, X, [codes, other], runs, splits)
    np.testing.assert_allclose(first[0], fits.decision, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(first[1], fits.proba, rtol=1e-7, atol=1e-9)
    alone = fit_pairs(METHOD, X, other, runs, splits)
    np.testing.assert_allclose(second[0], alone.decision, rtol=1e-7, atol=1e-9)


def test_a_method_without_posterior_has_no_such_columns(three):
    found = fit_pairs(METHODS["gamp-l1-lr"], *three)
    assert found.refit.coef_std is None and found.refit.inclusion is None
    assert found.refit.coef.shape == (60, 3)
