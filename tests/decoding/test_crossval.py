from dataclasses import replace

import numpy as np
import pytest

from mvpa_gamp.decoding import cross_validate, make_tasks
from mvpa_gamp.methods import METHODS

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
    assert result.method == name
    assert result.fits.coef.shape == (X.shape[1], n_folds)
    assert result.refit.coef.shape == (X.shape[1], 1)
    assert len(result.fits.status) == n_folds and len(result.refit.status) == 1
    assert all(value.shape == (n_folds,) for value in result.fits.parameters.values())
    for fold, run in enumerate(result.folds.held_out):
        rows = runs == run
        predicted = np.where(X[rows] @ result.fits.coef[:, fold] + result.fits.intercept[fold] > 0, 1, -1)
        assert result.error[fold] == pytest.approx(np.mean(predicted != y[rows]))
        recall = [np.mean(predicted[y[rows] == sign] == sign) for sign in (1, -1)]
        assert result.balanced_accuracy[fold] == pytest.approx(np.mean(recall))
    assert result.error.mean() < 0.2  # the toy categories are far apart


@pytest.mark.parametrize("name", BASELINES)
def test_the_refit_is_a_fit_on_all_rows(name, task):
    X, y, runs = task
    result = cross_validate(METHODS[name], X, y, runs)
    alone = METHODS[name].fit_folds(X, y, np.ones((len(y), 1), dtype=bool), runs)
    np.testing.assert_allclose(result.refit.coef, alone.coef, atol=1e-5)


def test_predictions_have_one_row_per_sample_in_order(task):
    X, y, runs = task
    result = cross_validate(METHODS["l1-lr-cv"], X, y, runs)
    assert [p.row for p in result.predictions] == list(range(len(y)))
    assert [p.run for p in result.predictions] == runs.tolist()
    assert [p.label for p in result.predictions] == y.astype(int).tolist()
    for p in result.predictions:
        fold = int(np.flatnonzero(result.folds.held_out == p.run)[0])
        assert p.score == result.fits.decision[p.row, fold]
        assert p.probability == result.fits.proba[p.row, fold]
        assert p.predicted == (1 if p.score > 0 else -1)
    wrong = np.array([p.predicted != p.label for p in result.predictions])
    assert [wrong[runs == run].mean() for run in result.folds.held_out] == pytest.approx(list(result.error))


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
    np.testing.assert_array_equal(train[:, :-1], result.folds.train)
    assert train[:, -1].all()


@pytest.mark.parametrize("name", BASELINES)
def test_labels_of_a_held_out_run_change_nothing_in_the_fold_that_holds_it_out(name, task):
    X, y, runs = task
    before = cross_validate(METHODS[name], X, y, runs)
    planted = y.copy()
    planted[runs == 2] = np.random.default_rng(0).permutation(y[runs == 2]) * np.array([1, -1] * 4)
    assert (planted != y).any()
    after = cross_validate(METHODS[name], X, planted, runs)
    fold = int(np.flatnonzero(before.folds.held_out == 2)[0])
    np.testing.assert_allclose(after.fits.coef[:, fold], before.fits.coef[:, fold], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(after.fits.decision[:, fold], before.fits.decision[:, fold], atol=1e-10)
    for key, value in before.fits.parameters.items():
        np.testing.assert_allclose(after.fits.parameters[key][fold], value[fold], rtol=1e-9, atol=1e-12)
    others = np.arange(before.fits.coef.shape[1]) != fold
    assert np.abs(after.fits.coef - before.fits.coef)[:, others].max() > 1e-6  # there the labels were used


def test_a_run_with_one_class_is_scored_on_that_class(task):
    X, y, runs = task
    kept = (runs != 0) | (y > 0)
    result = cross_validate(METHODS["onebit-cs"], X[kept], y[kept], runs[kept])
    assert result.balanced_accuracy[0] == pytest.approx(1 - result.error[0])


def test_columns_are_taken_from_optional_fields_too(task):
    from mvpa_gamp.decoding.crossval import take_columns

    X, y, runs = task
    fits = METHODS["onebit-cs"].fit_folds(X, y, np.ones((len(y), 3), dtype=bool), runs)
    fits = replace(fits, inclusion=np.arange(180.0).reshape(60, 3))
    part = take_columns(fits, np.array([2]))
    np.testing.assert_array_equal(part.inclusion[:, 0], fits.inclusion[:, 2])
    assert part.coef_std is None and part.seconds == fits.seconds


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
