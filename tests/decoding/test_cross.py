"""Train on one comparison, test on another: what is trained on what, and what the p-values promise."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import kstest

from mvpa_gamp.decoding import (
    FoldConfounds,
    NoiseWhitening,
    cross_decode,
    cross_permutation_test,
    cross_validate,
    fit_confounds,
    fit_tasks,
    leave_one_run_out,
    make_crosses,
    make_tasks,
    permuted_labels,
    session_crosses,
)
from mvpa_gamp.decoding.cross import cross_null, plan_cross_permutations
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.preparation import in_sequence
from mvpa_gamp.methods import METHODS

pytestmark = pytest.mark.whole

GAMP = METHODS["gamp-bg-lr"]


class MeanDifference:
    """The cheapest decoder there is, for checks over many data sets: w = X'y on the training rows."""

    name = "mean-difference"

    def fit_folds(self, X, y, train, runs):
        decision = X @ (X.T @ np.where(train, y, 0))
        good = np.ones(decision.shape[1], dtype=bool)
        return SimpleNamespace(decision=decision, proba=decision, inclusion=None, failed=~good)


def study(seed, signal="", n_runs=6, per_run=2, rows=2, n_features=30, size=1.2):
    """Four conditions in shuffled blocks that share noise; signal: A, B, unshared (both) or shared."""
    rng = np.random.default_rng([5, seed])
    order = np.concatenate([rng.permutation(np.repeat(list("abcd"), per_run)) for _ in range(n_runs)])
    shown, blocks = np.repeat(order, rows), np.repeat(np.arange(order.size), rows)
    X = rng.standard_normal((shown.size, n_features))
    X += rng.standard_normal((order.size, n_features))[blocks]
    first, second = (1.0 * (shown == "a") - (shown == "b")), (1.0 * (shown == "c") - (shown == "d"))
    if signal in ("A", "unshared"):
        X[:, :4] += size * first[:, None]
    if signal in ("B", "unshared"):
        X[:, 10:14] += size * second[:, None]
    if signal == "shared":
        X[:, :4] += size * (first + second)[:, None]
    return X, shown, np.repeat(np.arange(n_runs), shown.size // n_runs), blocks


# --- who is trained and tested on what --------------------------------------------------------------------


def test_a_tested_run_is_never_trained_on():
    X, shown, runs, _ = study(0)
    seen = []

    class Spy:
        name = "spy"

        def fit_folds(self, X, y, train, runs):
            seen.append((y, train, runs))
            return GAMP.fit_folds(X, np.where(train, y, np.nan), train, runs)

    crosses = make_crosses(shown, ["a:b>>c:d"])
    (found,) = cross_decode(Spy(), X, crosses, runs)
    ((y, train, inner),) = seen
    assert train.shape[1] == 6 and set(shown[found.rows]) == {"c", "d"}
    trained = shown[np.isin(shown, list("abcd"))][train.any(axis=1)]
    assert set(trained) == {"a", "b"}
    left_out = {tuple(np.setdiff1d(np.unique(inner), np.unique(inner[column]))) for column in train.T}
    assert left_out == {(run,) for run in range(6)}  # each column lacks one run, and each run is lacking once
    assert (y[train] == np.broadcast_to(np.where(shown == "a", 1, -1)[:, None], y.shape)[train]).all()


def test_decisions_are_those_of_the_folds_of_the_training_comparison():
    X, shown, runs, _ = study(1, "shared")
    (task,) = make_tasks(shown, [("a", "b")])
    fits = cross_validate(GAMP, X[task.rows], task.y, runs[task.rows])
    (found,) = cross_decode(GAMP, X, make_crosses(shown, ["a:b>>c:d"]), runs)
    by_hand = np.einsum("tn,nt->t", X[found.rows], fits.coef[:, found.run]) + fits.intercept[found.run]
    np.testing.assert_allclose(found.decision, by_hand, atol=1e-6)
    assert found.accuracy == pytest.approx(np.mean((by_hand > 0) == (shown[found.rows] == "c")))
    assert found.accuracy > 0.8 and found.balanced_accuracy == pytest.approx(found.accuracy)
    assert found.auc > 0.9 and found.chance == 0.5 and found.trained.coef.shape == (30, 6)


def test_all_crosses_in_one_solve_are_each_one_alone():
    X, shown, runs, _ = study(2, "shared")
    tasks = make_tasks(shown, [("a", "b")])
    crosses = [*make_crosses(shown, ["a:b>c:d", "a+c:b>>d:c"]), *session_crosses(tasks, ["0-2>3-5"], runs)]
    together = cross_decode(GAMP, X, crosses, runs)
    assert len(together) == 5
    for cross, found in zip(crosses, together, strict=True):
        (alone,) = cross_decode(GAMP, X, [cross], runs)
        np.testing.assert_allclose(found.decision, alone.decision, atol=1e-6)
        np.testing.assert_allclose(found.trained.coef, alone.trained.coef, atol=1e-6)


def test_some_runs_train_and_others_test_with_one_fit():
    X, shown, runs, _ = study(3, "A")
    tasks = make_tasks(shown, [("a", "b")])
    there, back = session_crosses(tasks, ["0,1,3>2,4-5"], runs)
    assert there.label == "a vs b, runs 0,1,3 → runs 2,4-5" and back.train_on == "runs 2,4-5"
    assert there.name.isalnum() and there.name != back.name
    found = cross_decode(GAMP, X, [there], runs)[0]
    trained = np.isin(runs[tasks[0].rows], [0, 1, 3])
    by_hand = GAMP.fit_folds(X[tasks[0].rows], tasks[0].y, trained[:, None], runs[tasks[0].rows])
    np.testing.assert_allclose(found.trained.coef, by_hand.coef, atol=1e-6)
    np.testing.assert_allclose(found.decision, by_hand.decision[~trained, 0], atol=1e-6)
    assert found.runs.tolist() == [2, 4, 5] and found.accuracy > 0.75


def test_sessions_have_names():
    _, shown, runs, _ = study(3)
    sessions = np.where(runs < 2, "pre", "post")
    tasks = make_tasks(shown, [("a", "b")])
    (cross,) = session_crosses(tasks, ["ses-pre>>ses-post"], runs, sessions)
    assert set(runs[cross.train.rows]) == {0, 1} and set(runs[cross.test.rows]) == {2, 3, 4, 5}
    assert cross.label == "a vs b, ses-pre → ses-post"


def test_whitened_crosses_use_the_noise_of_training_runs_alone():
    X, shown, runs, blocks = study(4, "shared")
    (task,) = make_tasks(shown, [("a", "b")])
    folds, whiten = leave_one_run_out(runs), NoiseWhitening(blocks)
    fits = fit_tasks([GAMP], X, [task], runs, Scheme(folds, preparation=NoiseWhitening(blocks)))[
        GAMP.name, task.name
    ]
    (found,) = cross_decode(
        GAMP, X, make_crosses(shown, ["a:b>>c:d"]), runs, scheme=Scheme(preparation=whiten)
    )
    by_hand = np.einsum("tn,nt->t", X[found.rows], fits.coef[:, found.run]) + fits.intercept[found.run]
    np.testing.assert_allclose(found.decision, by_hand, atol=1e-6)
    np.testing.assert_allclose(found.trained.coef, fits.folds.coef, atol=1e-6)
    assert ((found.proba > 0.5) == (found.decision > 0)).all()
    changed = X.copy()
    changed[runs == 5] = np.random.default_rng(0).standard_normal(changed[runs == 5].shape)
    (cross,) = session_crosses([task], ["0-4>>5"], runs)
    same = [
        cross_decode(GAMP, each, [cross], runs, scheme=Scheme(preparation=whiten))[0].trained.coef
        for each in (X, changed)
    ]
    np.testing.assert_array_equal(*same)


def test_covariates_of_training_runs_alone_are_regressed_out_of_both_comparisons():
    """Slowness tells both comparisons apart, and nothing else does: no shared code is left without it."""
    rng = np.random.default_rng(7)
    X, shown, runs, _ = study(5)
    slow = 1.0 * np.isin(shown, ["a", "c"]) + 0.1 * rng.standard_normal(shown.size)
    X = X + 4 * np.outer(slow, rng.standard_normal(X.shape[1]))
    (cross,) = make_crosses(shown, ["a:b>>c:d"])
    confounds = FoldConfounds(slow[:, None])
    assert cross_decode(GAMP, X, [cross], runs)[0].accuracy > 0.95
    (found,) = cross_decode(GAMP, X, [cross], runs, scheme=Scheme(preparation=confounds))
    assert found.accuracy < 0.75
    for run in (0, 5):  # by hand: least squares on all rows of other runs, applied to the tested run
        train = runs != run
        clean = fit_confounds(X, slow[:, None], train).apply(X, slow[:, None])
        mine = cross.train.rows
        fits = GAMP.fit_folds(clean[mine], cross.train.y, train[mine][:, None], runs[mine])
        tested = found.run == run
        by_hand = clean[found.rows[tested]] @ fits.coef[:, 0] + fits.intercept[0]
        np.testing.assert_allclose(found.decision[tested], by_hand, atol=1e-6)


@pytest.mark.parametrize("kind", ["whitened", "without covariates", "both"])
def test_prepared_permutations_are_crosses_with_exchanged_labels(kind):
    X, shown, runs, blocks = study(6, "shared")
    confounds = FoldConfounds(np.random.default_rng(1).standard_normal((shown.size, 2)))
    steps = [confounds if kind != "whitened" else None, NoiseWhitening(blocks)]
    preparation = in_sequence(steps if kind != "without covariates" else steps[:1])
    (cross,) = make_crosses(shown, ["a:b>>c:d"])
    test = cross_permutation_test(
        GAMP, X, cross, runs, 6, scheme=Scheme(blocks=blocks, preparation=preparation)
    )
    labels = permuted_labels(cross.train.y, runs[cross.train.rows], 6, blocks=blocks[cross.train.rows])
    for drawn, score in zip(labels.T, test.null, strict=True):
        other = replace(cross, train=replace(cross.train, y=drawn.astype(float)))
        (found,) = cross_decode(GAMP, X, [other], runs, scheme=Scheme(preparation=preparation))
        assert found.accuracy == pytest.approx(score, abs=1e-12)
    (observed,) = cross_decode(GAMP, X, [cross], runs, scheme=Scheme(preparation=preparation))
    assert test.score == pytest.approx(observed.accuracy) and test.pvalue == 1 / 7


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a:b"], "expected face:house>cat:chair (train on the first comparison"),
        (["a:b"], "Put it in quotation marks: a shell takes > for a file"),
        (["a:b>c:x"], "The pair 'c:x' names 'x', which the data do not contain"),
        (["a:b>b:a"], "trains and tests on the same comparison"),
        (["a:b>c:d", "c:d>>a:b"], "was given more than once"),
        (["a:a>c:d"], "two different categories, got 'a:a'"),
    ],
)
def test_crosses_that_cannot_be_are_explained(texts, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make_crosses(np.array(list("abcd")), texts)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0-2", 'expected "1-6>7-12" or "ses-1>ses-2"'),
        ("0-2>2-5", "Run 2 is trained on and tested on in runs 0-2 → runs 2-5"),
        (
            "0-2>7",
            "names '7', which is no run, range of runs or session of the data. Choose among the",
        ),
        ("0-2>3-9", "names '3-9', which is no run, range of runs or session of the data. Choose among the"),
        ("ses-1>3-5", "names 'ses-1', which is no run, range of runs or session"),
    ],
)
def test_runs_that_cannot_be_chosen_are_explained(text, message):
    _, shown, runs, _ = study(0)
    with pytest.raises(ValueError, match=re.escape(message)):
        session_crosses(make_tasks(shown, [("a", "b")]), [text], runs)


def test_a_fold_without_a_category_to_train_on_is_refused():
    shown, runs = np.tile(list("abcd"), 3), np.repeat([0, 1, 2], 4)
    shown = np.where((shown == "a") & (runs > 0), "e", shown)
    with pytest.raises(ValueError, match="without run 0, which is tested, only one of the two categories"):
        cross_decode(GAMP, np.zeros((12, 3)), make_crosses(shown, ["a:b>>c:d"]), runs)


# --- p-values -------------------------------------------------------------------------------------------


def test_the_null_exchanges_training_labels_and_keeps_the_test():
    X, shown, runs, blocks = study(6, "shared")
    (cross,) = make_crosses(shown, ["a:b>>c:d"])
    test = cross_permutation_test(GAMP, X, cross, runs, 9, scheme=Scheme(blocks=blocks))
    (found,) = cross_decode(GAMP, X, [cross], runs)
    assert test.score == pytest.approx(found.accuracy) and test.pvalue == 1 / 10 and test.exchange == "block"
    mine = cross.train.rows
    drawn = permuted_labels(cross.train.y, runs[mine], 9, blocks=blocks[mine])
    np.testing.assert_allclose(test.null, cross_null(GAMP, X, cross, drawn, runs).score, atol=1e-12)
    small = cross_permutation_test(GAMP, X, cross, runs, 9, columns_at_once=13, scheme=Scheme(blocks=blocks))
    np.testing.assert_allclose(small.null, test.null, atol=1e-12)
    swapped = cross_null(GAMP, X, cross, -cross.train.y[:, None], runs).score
    assert swapped[0] == pytest.approx(1 - found.accuracy, abs=0.03)  # renamed sides: the opposite


def test_conditions_in_both_comparisons_are_cautioned_and_not_tested():
    X, shown, runs, _ = study(6)
    (cross,) = make_crosses(shown, ["a:b>>a:d"])
    assert cross.shared == ("a",) and "a is part of both comparisons" in cross.caution
    assert cross_decode(GAMP, X, [cross], runs)[0].accuracies.size == 6
    with pytest.raises(ValueError, match="there is no permutation test"):
        plan_cross_permutations(cross, runs, 30, 9)


def test_few_labellings_are_cautioned():
    _, shown, runs, _ = study(6, n_runs=3, per_run=1)
    (cross,) = make_crosses(shown, ["a:b>>c:d"])
    plan = plan_cross_permutations(cross, runs, 30, 9)
    assert plan.n_distinct == 8 and "cannot fall below 0.125" in plan.caution
    assert plan.floor == 1 / 8  # turned labels give another accuracy here
    _, shown, runs, _ = study(6, n_runs=5, per_run=1)  # of one comparison the smallest would be 1 / 16
    assert plan_cross_permutations(make_crosses(shown, ["a:b>>c:d"])[0], runs, 30, 9).caution == ""


def many_tests(signal, n_sets, n=19):
    """P-values by exchanging training labels and, for contrast, with ties broken at random, test labels."""
    right, wrong, accuracies = [], [], []
    for k in range(n_sets):
        X, shown, runs, blocks = study(100 + k, signal)
        (cross,) = make_crosses(shown, ["a:b>>c:d"])
        test = cross_permutation_test(
            MeanDifference(), X, cross, runs, n, scheme=Scheme(seed=k, blocks=blocks)
        )
        rng = np.random.default_rng([6, k])
        right.append(test.pvalue - rng.random() / (1 + n))
        signs = cross_null_signs(X, cross, runs)
        mine = cross.test.rows
        labels = permuted_labels(cross.test.y, runs[mine], n, seed=k, blocks=blocks[mine])
        wrong.append(_randomised(test.score, (signs[:, None] == (labels > 0)).mean(axis=0), rng))
        accuracies.append(test.score)
    return np.array(right), np.array(wrong), np.array(accuracies)


def cross_null_signs(X, cross, runs):
    """Predictions of the mean difference, by hand."""
    said = np.empty(cross.test.rows.size, dtype=bool)
    for run in np.unique(runs):
        kept = runs[cross.train.rows] != run
        weights = X[cross.train.rows[kept]].T @ cross.train.y[kept]
        tested = runs[cross.test.rows] == run
        said[tested] = X[cross.test.rows[tested]] @ weights > 0
    return said


def _randomised(score, null, rng):
    ties = np.abs(null - score) < 1e-9
    above = np.count_nonzero((null > score) & ~ties)
    return (above + rng.random() * (1 + np.count_nonzero(ties))) / (1 + null.size)


@pytest.mark.parametrize("signal", ["", "B"])
def test_p_values_are_uniform_without_a_shared_code(signal):
    """Also where the tested comparison can be decoded; then exchanging test labels is wrong too often."""
    right, wrong, accuracies = many_tests(signal, 200)
    assert kstest(right, "uniform").pvalue > 0.01 and abs(accuracies.mean() - 0.5) < 0.04
    assert (right <= 0.05).mean() < 0.1
    if signal:
        assert (wrong <= 0.05).mean() > 0.12


def test_unshared_codes_are_at_chance_and_a_shared_one_is_found():
    right, _, accuracies = many_tests("unshared", 60)
    assert abs(accuracies.mean() - 0.5) < 0.05 and (right <= 0.05).mean() <= 0.05
    right, _, accuracies = many_tests("shared", 20)
    assert accuracies.mean() > 0.85 and (right <= 0.1).mean() > 0.85  # of 19 permutations


# --- real volumes -----------------------------------------------------------------------------------------


def crossed(study, text):
    crosses = make_crosses(study.conditions, [text])
    return [found.accuracy for found in cross_decode(GAMP, study.X, crosses, study.runs)]


def test_animate_against_inanimate_crosses_on_the_real_slice(haxby_slice):
    """What tells faces from houses tells cats from chairs: animate things share a code in this slice."""
    there, back = crossed(haxby_slice, "face:house>cat:chair")
    assert there > 0.55 and back > 0.85


def test_no_preparation_may_be_given_as_none():
    assert Scheme(preparation=None).preparation == Scheme().preparation
