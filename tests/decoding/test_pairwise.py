"""All pairs and folds in one batch: equal to cross-validation pair by pair, whatever the chunks."""

import numpy as np
import pytest

from mvpa_gamp.coupling import class_pairs
from mvpa_gamp.decoding import cross_validate, fit, held_out_answers, leave_one_run_out, make_tasks
from mvpa_gamp.decoding.fit import Scheme, fit_pairs, pair_columns
from mvpa_gamp.methods import METHODS

METHOD = METHODS["gamp-bg-lr"]


@pytest.fixture(scope="module")
def three(toy_study):
    codes = np.unique(toy_study.conditions, return_inverse=True)[1]
    return toy_study.X, codes, toy_study.runs, Scheme(leave_one_run_out(toy_study.runs))


@pytest.fixture(scope="module")
def fits(three):
    return fit_pairs(METHOD, *three).fits


def test_two_classes_are_exactly_a_cross_validation(toy_study):
    (task,) = make_tasks(toy_study.conditions, [("cat", "shoe")])
    X, runs = toy_study.X[task.rows], toy_study.runs[task.rows]
    expected = cross_validate(METHOD, X, task.y, runs)
    (found,) = fit_pairs(
        METHOD, X, (task.y < 0).astype(int), runs, scheme=Scheme(leave_one_run_out(runs))
    ).fits
    for name in ("coef", "inclusion", "support", "decision", "proba", "pattern"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.status == expected.status


def test_each_pair_of_three_classes_is_its_own_cross_validation(three, fits):
    X, codes, runs, _ = three
    for pair, found in zip(class_pairs(3), fits, strict=True):
        rows = np.flatnonzero(np.isin(codes, pair))
        alone = cross_validate(METHOD, X[rows], np.where(codes[rows] == pair[0], 1.0, -1.0), runs[rows])
        np.testing.assert_allclose(found.coef, alone.coef, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(found.pattern, alone.pattern, rtol=1e-5, atol=1e-7)
        mine = found.at(rows)
        np.testing.assert_array_equal(mine.tested, alone.tested)
        np.testing.assert_allclose(mine.decision, alone.decision, rtol=1e-6, atol=1e-8)


def test_labels_are_given_to_the_pairs_they_belong_to():
    codes = np.array([0, 1, 2, 0, 1, 2])
    split = np.array([[1, 0], [1, 0], [1, 0], [0, 1], [0, 1], [0, 1]], dtype=bool)
    signs = pair_columns(codes, ((0, 1), (0, 2), (1, 2)), split)
    np.testing.assert_array_equal(signs[:, 0], [1, -1, 0, 0, 0, 0])
    np.testing.assert_array_equal(signs[:, 1], [0, 0, 0, 1, -1, 0])
    np.testing.assert_array_equal(signs[:, 2], [1, 0, -1, 0, 0, 0])
    np.testing.assert_array_equal(signs[:, 4], [0, 1, -1, 0, 0, 0])


@pytest.mark.parametrize("most", [1, 5, 7])
def test_chunks_change_nothing(three, fits, monkeypatch, most):
    monkeypatch.setattr(fit, "columns_at_once", lambda X: most)
    parts = fit_pairs(METHOD, *three).fits
    for part, whole in zip(parts, fits, strict=True):
        np.testing.assert_allclose(part.coef, whole.coef, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(part.decision, whole.decision, rtol=1e-6, atol=1e-8)
        np.testing.assert_array_equal(part.support, whole.support)
        assert part.parameters.keys() == whole.parameters.keys()


def test_processes_change_nothing(three, fits):
    parts = fit_pairs(METHOD, *three, n_jobs=2).fits
    for part, whole in zip(parts, fits, strict=True):
        np.testing.assert_allclose(part.coef, whole.coef, rtol=1e-6, atol=1e-9)
        np.testing.assert_array_equal(part.support, whole.support)


def test_labels_of_held_out_rows_change_nothing(three, fits):
    X, codes, runs, scheme = three
    planted = codes.copy()
    test = scheme.folds.tested[:, 2]
    planted[test] = (codes[test] + 1) % 3
    before, after = (
        held_out_answers(fits),
        held_out_answers(fit_pairs(METHOD, X, planted, runs, scheme=scheme).fits),
    )
    mine = before.fold == 2
    np.testing.assert_allclose(after.decision[mine], before.decision[mine], atol=1e-10)
    assert np.abs(after.decision[~mine] - before.decision[~mine]).max() > 1e-3  # there they were used


def test_a_method_without_posterior_has_no_such_columns(three):
    found = fit_pairs(METHODS["gamp-l1-lr"], *three).fits
    assert all(each.coef_std is None and each.inclusion is None for each in found)
    assert [each.refit.coef.shape for each in found] == [(60, 1)] * 3
