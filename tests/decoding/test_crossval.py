from dataclasses import replace

import numpy as np
import pytest

from mvpa_gamp.decoding import (
    cross_validate,
    fold_balanced_accuracies,
    fold_errors,
    held_out_answers,
    leave_one_run_out,
    make_tasks,
)
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.gamp.result import AT_CHANCE, FOUND_NOTHING
from mvpa_gamp.methods import METHODS, FoldFits

BASELINES = ["l1-lr-cv", "onebit-cs", "cdn", "tron"]


@pytest.fixture(scope="module")
def task(toy_study):
    (task,) = make_tasks(toy_study.conditions, [("cat", "scissors")])
    return toy_study.X[task.rows], task.y, toy_study.runs[task.rows]


@pytest.mark.parametrize("name", BASELINES)
def test_each_fold_is_scored_on_its_own_run(name, task):
    X, y, runs = task
    result = cross_validate(METHODS[name], X, y, runs)
    n_folds = len(np.unique(runs))
    folds = result.folds
    assert result.n_folds == n_folds and folds.coef.shape == (X.shape[1], n_folds)
    assert result.refit.coef.shape == (X.shape[1], 1)
    assert len(folds.status) == n_folds and len(result.refit.status) == 1
    assert all(value.shape == (n_folds,) for value in folds.parameters.values())
    error, balanced = fold_errors(result, y), fold_balanced_accuracies(result, y)
    for fold, run in enumerate(result.held_out):
        rows = runs == run
        predicted = np.where(X[rows] @ folds.coef[:, fold] + folds.intercept[fold] > 0, 1, -1)
        assert error[fold] == pytest.approx(np.mean(predicted != y[rows]))
        recall = [np.mean(predicted[y[rows] == sign] == sign) for sign in (1, -1)]
        assert balanced[fold] == pytest.approx(np.mean(recall))
    assert error.mean() < 0.2  # the toy categories are far apart


@pytest.mark.parametrize("name", BASELINES)
def test_the_refit_is_a_fit_on_all_rows(name, task):
    X, y, runs = task
    result = cross_validate(METHODS[name], X, y, runs)
    alone = METHODS[name].fit_folds(X, y, np.ones((len(y), 1), dtype=bool), runs)
    np.testing.assert_allclose(result.refit.coef, alone.coef, atol=1e-5)


def test_every_row_is_answered_by_the_fold_that_holds_its_run_out(task):
    X, y, runs = task
    result = cross_validate(METHODS["l1-lr-cv"], X, y, runs)
    said = held_out_answers([result])
    assert sorted(said.rows) == list(range(len(y)))
    np.testing.assert_array_equal(result.held_out[said.fold], runs[said.rows])
    np.testing.assert_array_equal(said.decision[:, 0], result.decision[said.rows, said.fold])
    np.testing.assert_array_equal(said.proba[:, 0], result.proba[said.rows, said.fold])


def test_given_folds_may_hold_a_row_out_twice(task):
    X, y, runs = task
    both = leave_one_run_out(runs)
    twice = both._replace(
        train=both.train[:, [0, 0, 1]], tested=both.tested[:, [0, 0, 1]], held_out=np.array([1, 2, 3])
    )
    result = cross_validate(METHODS["onebit-cs"], X, y, runs, scheme=Scheme(twice))
    said = held_out_answers([result])
    assert result.n_folds == 3 and len(said.rows) == twice.tested.sum()
    np.testing.assert_array_equal(fold_errors(result, y)[0], fold_errors(result, y)[1])


class Spy:
    """A method that keeps what it was given and answers with noise."""

    name, label, description = "spy", "Spy", "It looks."

    def fit_folds(self, X, y, train, runs):
        self.seen = (X, y, train, runs)
        return METHODS["onebit-cs"].fit_folds(X, y, train, runs)


def test_folds_and_refit_are_columns_of_one_call(task):
    X, y, runs = task
    spy = Spy()
    result = cross_validate(spy, X, y, runs)
    train = spy.seen[2]
    np.testing.assert_array_equal(train[:, :-1], leave_one_run_out(runs).train)
    assert train[:, -1].all() and result.coef.shape[1] == train.shape[1]


@pytest.mark.parametrize("name", BASELINES)
def test_labels_of_a_held_out_run_change_nothing_in_the_fold_that_holds_it_out(name, task):
    X, y, runs = task
    before = cross_validate(METHODS[name], X, y, runs)
    planted = y.copy()
    planted[runs == 2] = np.random.default_rng(0).permutation(y[runs == 2]) * np.array([1, -1] * 4)
    assert (planted != y).any()
    after = cross_validate(METHODS[name], X, planted, runs)
    fold = int(np.flatnonzero(before.held_out == 2)[0])
    np.testing.assert_allclose(after.folds.coef[:, fold], before.folds.coef[:, fold], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(after.folds.decision[:, fold], before.folds.decision[:, fold], atol=1e-10)
    for key, value in before.folds.parameters.items():
        np.testing.assert_allclose(after.folds.parameters[key][fold], value[fold], rtol=1e-9, atol=1e-12)
    others = np.arange(before.folds.coef.shape[1]) != fold
    assert np.abs(after.folds.coef - before.folds.coef)[:, others].max() > 1e-6  # there the labels were used


def test_a_run_with_one_class_is_scored_on_that_class(task):
    X, y, runs = task
    kept = (runs != 0) | (y > 0)
    result = cross_validate(METHODS["onebit-cs"], X[kept], y[kept], runs[kept])
    y = y[kept]
    assert fold_balanced_accuracies(result, y)[0] == pytest.approx(1 - fold_errors(result, y)[0])


def test_columns_are_taken_and_joined_with_their_optional_fields(task):
    X, y, runs = task
    fits = METHODS["onebit-cs"].fit_folds(X, y, np.ones((len(y), 3), dtype=bool), runs)
    fits = replace(fits, inclusion=np.arange(180.0).reshape(60, 3))
    part = fits.take(np.array([2]))
    np.testing.assert_array_equal(part.inclusion[:, 0], fits.inclusion[:, 2])
    assert part.coef_std is None and part.seconds == fits.seconds
    whole = FoldFits.join([fits.take(slice(0, 2)), part])
    np.testing.assert_array_equal(whole.inclusion, fits.inclusion)
    np.testing.assert_array_equal(whole.decision, fits.decision)
    assert whole.status == fits.status and whole.parameters.keys() == fits.parameters.keys()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y: y[:-1], r"one label per row \(48 rows\), got shape \(47,\)"),
        (lambda y: np.where(y > 0, "cat", "dog"), "must be -1 or .1 in every row"),
        (lambda y: (y + 1) / 2, "np.where"),
    ],
)
def test_bad_labels_are_explained(task, change, message):
    X, y, runs = task
    with pytest.raises(ValueError, match=message):
        cross_validate(METHODS["onebit-cs"], X, change(y), runs)


class Lost:
    """A method that says it converged, with weights that tell no training rows apart, or with none at all."""

    name = "lost"

    def fit_folds(self, X, y, train, runs):
        fits = METHODS["gamp-bg-lr"].fit_folds(X, y, train, runs)
        coef = fits.coef.copy()
        coef[:, :2], coef[:, 0] = 1e-3 * np.random.default_rng(0).standard_normal((len(coef), 2)), 0.0
        decision = X @ coef
        decision[:, 1] = 1.0
        return replace(fits, coef=coef, decision=decision)


def test_any_fit_at_chance_on_its_own_rows_has_a_status_of_its_own():
    rng = np.random.default_rng(0)
    runs, y = np.repeat(np.arange(4), 6), np.tile([1.0, 1.0, 1.0, -1.0, -1.0, -1.0], 4)
    X = rng.standard_normal((24, 60)) + y[:, None] * (np.arange(60) < 5)
    fits = cross_validate(Lost(), X, y, runs)
    assert fits.status[:2] == (FOUND_NOTHING, AT_CHANCE)
    assert fits.converged.tolist() == [False, False, True, True, True]
    assert fits.failed.tolist() == [False, True, False, False, False]
