"""What folds fit on their training rows: confounds, whitening, both; permutations and curves with them."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import kstest

from mvpa_gamp.decoding import (
    FoldConfounds,
    InSequence,
    LabelVectors,
    NoiseWhitening,
    cross_validate,
    fit_confounds,
    fit_tasks,
    fit_whitening,
    fold_errors,
    haufe_pattern,
    joint_null,
    learning_curve,
    leave_one_run_out,
    make_tasks,
    permutation_test,
    permuted_labels,
    prepared_by_all,
)
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.preparation import Unchanged, in_sequence
from mvpa_gamp.methods import METHODS

pytestmark = pytest.mark.whole

GAMP = METHODS["gamp-bg-lr"]
KINDS = ("whitened", "confounds", "both")


class MeanDifference:
    """The cheapest decoder there is, for checks over many data sets."""

    name, uses_connectivity = "mean-difference", False

    def fit_folds(self, X, y, train, runs, connectivity=None):
        target = np.where(train, y.reshape(len(y), -1), 0)
        decision = X @ (X.T @ (target - np.where(train, target.sum(axis=0) / train.sum(axis=0), 0)))
        decision = decision - np.where(train, decision, 0).sum(axis=0) / train.sum(axis=0)
        proba = 1 / (1 + np.exp(-3 * decision / np.abs(decision).max(axis=0)))
        good = np.ones(decision.shape[1], dtype=bool)
        said = {"decision": decision, "proba": proba, "failed": ~good, "coef": None}
        return SimpleNamespace(**said, inclusion=None, support=np.ones((X.shape[1], good.size), bool))

    @staticmethod
    def join(parts):
        return parts[0]


@pytest.fixture
def cheap():
    """Quick fits."""
    return MeanDifference()


def noise(rng, n_runs=5, per_condition=2, rows=3, n_features=12, effect=0.0):
    """Blocks of three conditions; correlated voxels, rows of a block alike, two covariates that matter."""
    order = [rng.permutation(np.repeat(["a", "b", "c"], per_condition)) for _ in range(n_runs)]
    shown, blocks = (
        np.repeat(np.concatenate(order), rows),
        np.arange(n_runs * 3 * per_condition * rows) // rows,
    )
    runs = np.repeat(np.arange(n_runs), 3 * per_condition * rows)
    covariates = rng.standard_normal((shown.size, 2)) + rng.standard_normal((blocks[-1] + 1, 2))[blocks]
    mixing = np.eye(n_features) + 0.7 * np.eye(n_features, k=1)
    X = (
        rng.standard_normal((shown.size, n_features))
        + rng.standard_normal((blocks[-1] + 1, n_features))[blocks]
    ) @ mixing
    X += covariates @ rng.standard_normal((2, n_features)) + effect * np.outer(
        shown == "a", np.arange(n_features) < 3
    )
    return SimpleNamespace(X=X, shown=shown, runs=runs, blocks=blocks, covariates=covariates)


def preparation(kind, data):
    whitening, confounds = NoiseWhitening(data.blocks), FoldConfounds(data.covariates)
    return {"whitened": whitening, "confounds": confounds, "both": InSequence(confounds, whitening)}[kind]


@pytest.fixture(scope="module")
def data():
    found = noise(np.random.default_rng(0), effect=1.5)
    (found.task,) = make_tasks(found.shown, [("a", "b")])
    found.own_blocks = found.blocks[found.task.rows]
    return found


# --- confound regression --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_coefficients_are_those_of_least_squares_on_the_training_rows(data, dtype):
    train, X = data.runs != 1, data.X.astype(dtype)
    fitted = fit_confounds(X, data.covariates, train)
    design = np.column_stack([np.ones(train.sum()), data.covariates[train]])
    known = np.linalg.lstsq(design, data.X[train], rcond=None)[0]
    rounding = 1e-9 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(fitted.slopes, known[1:], atol=rounding)
    left = fitted.apply(X, data.covariates)
    assert left.dtype == dtype
    expected = data.X - data.covariates @ known[1:] + data.covariates[train].mean(axis=0) @ known[1:]
    np.testing.assert_allclose(left, expected, atol=10 * rounding)
    np.testing.assert_allclose(left[train].mean(axis=0), data.X[train].mean(axis=0), atol=10 * rounding)


def test_covariates_that_are_constant_or_say_the_same_are_no_problem(data):
    one = data.covariates[:, :1]
    several = np.hstack([one, 1000 * one + 7, np.full_like(one, 3.0)])
    alone, together = (fit_confounds(data.X, each).apply(data.X, each) for each in (one, several))
    np.testing.assert_allclose(together, alone, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_held_out_run_changes_nothing_in_its_fold(data, kind):
    held = data.runs == 2
    other = SimpleNamespace(**vars(data))
    other.X, other.covariates = data.X.copy(), data.covariates.copy()
    other.X[held] = 7 * np.random.default_rng(1).standard_normal(data.X[held].shape) - 3
    other.covariates[held] = 5.0
    train = ~held[:, None]
    first, second = (next(preparation(kind, each).groups(each.X, train)) for each in (data, other))
    np.testing.assert_array_equal(first.X[~held], second.X[~held])
    assert np.abs(first.X[held] - second.X[held]).max() > 0.1


def test_a_covariate_that_carries_all_information_leaves_chance():
    rng = np.random.default_rng(3)
    shown, runs = np.tile(np.repeat(["a", "b"], 6), 8), np.repeat(np.arange(8), 12)
    slow = (shown == "a") + 0.5 * rng.standard_normal(96)
    X = rng.standard_normal((96, 30)) + 2 * np.outer(slow, rng.standard_normal(30))
    (task,) = make_tasks(shown, [("a", "b")])
    raw = fold_errors(cross_validate(GAMP, X, task.y, runs), task.y).mean()
    found = fit_tasks([GAMP], X, [task], runs, Scheme(preparation=FoldConfounds(slow[:, None])))[
        GAMP.name, task.name
    ]
    assert raw < 0.25 and 0.4 < fold_errors(found, task.y).mean() < 0.6


def test_weights_stay_those_of_voxels_and_keep_their_deviations(data):
    steps = preparation("confounds", data)
    fits = fit_tasks([GAMP], data.X, [data.task], data.runs, Scheme(preparation=steps))[
        GAMP.name, data.task.name
    ]
    assert fits.coef_std is not None and fits.n_folds == 5
    rows, folds = data.task.rows, leave_one_run_out(data.runs)
    for column, fold in enumerate(steps.groups(data.X, folds.train, rows)):
        alone = GAMP.fit_folds(fold.X, data.task.y, folds.train[rows][:, [column]], data.runs[rows])
        np.testing.assert_allclose(fits.coef[:, column], alone.coef[:, 0], rtol=1e-9)
        known = haufe_pattern(fold.X, alone.coef, folds.train[rows][:, [column]])
        np.testing.assert_allclose(fits.pattern[:, column], known[:, 0], rtol=1e-6)


# --- in sequence ----------------------------------------------------------------------------------------


def test_both_are_one_after_the_other(data):
    train, rows = data.runs != 0, np.array([1, 20, 50])
    fold = next(preparation("both", data).groups(data.X, train[:, None], rows))
    clean = fit_confounds(data.X, data.covariates, train).apply(data.X, data.covariates)
    whitening = fit_whitening(clean, data.blocks, train)
    np.testing.assert_allclose(fold.X, whitening.apply(clean)[rows], rtol=1e-9)
    np.testing.assert_allclose(fold.voxels, clean[rows], rtol=1e-12)
    np.testing.assert_allclose(fold.fitted.apply(data.X[rows], data.covariates[rows]), fold.X, rtol=1e-9)
    v = np.random.default_rng(2).standard_normal(12)
    np.testing.assert_allclose(clean[rows] @ fold.fitted.back(v), fold.X @ v, rtol=1e-9)
    assert fold.fitted.mixes and in_sequence([None, None]) == Unchanged()


# --- permutations ---------------------------------------------------------------------------------------


def permuted(data, kind, **how):
    return permutation_test(
        GAMP,
        data.X,
        data.task.y,
        data.runs,
        7,
        max_inclusion=True,
        **how,
        scheme=Scheme(blocks=data.own_blocks, rows=data.task.rows, preparation=preparation(kind, data)),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_score_is_that_of_the_fits_and_chunks_do_not_matter(data, kind):
    test = permuted(data, kind)
    fits = fit_tasks([GAMP], data.X, [data.task], data.runs, Scheme(preparation=preparation(kind, data)))
    fits = fits[GAMP.name, data.task.name]
    assert test.score == pytest.approx(1 - fold_errors(fits, data.task.y).mean(), abs=1e-12)
    pieces = permuted(data, kind, columns_at_once=3)
    np.testing.assert_allclose(pieces.null, test.null, atol=1e-12)
    np.testing.assert_allclose(pieces.max_inclusion, test.max_inclusion, atol=1e-6)


def test_a_permutation_is_a_study_of_its_own_with_those_labels(data):
    """Preparing X once for all label vectors is exact: labels have no part in it."""
    steps, y = preparation("both", data), data.task.y
    labels = permuted_labels(y, data.runs[data.task.rows], 2, blocks=data.own_blocks)
    (found,) = joint_null(
        [LabelVectors(GAMP, data.task.rows, labels, True)], data.X, data.runs, Scheme(preparation=steps)
    )
    for column, own in enumerate(labels.T):
        task = SimpleNamespace(name="t", rows=data.task.rows, y=own.astype(float))
        fits = fit_tasks([GAMP], data.X, [task], data.runs, Scheme(preparation=steps))[GAMP.name, "t"]
        assert found.score[column] == pytest.approx(1 - fold_errors(fits, own).mean(), abs=1e-12)
        largest = fits.folds.inclusion.mean(axis=1).max()
        assert found.max_inclusion[column] == pytest.approx(largest, rel=1e-6)


def test_comparisons_share_a_pass_and_may_lack_a_run(data, cheap):
    kept = (data.runs != 3) | (data.shown != "b")
    X, runs, shown = data.X[kept], data.runs[kept], data.shown[kept]
    steps = NoiseWhitening(data.blocks[kept])
    asked = [
        LabelVectors(cheap, t.rows, t.y[:, None].astype(int))
        for t in make_tasks(shown, [("a", "b"), ("a", "c")])
    ]
    together = joint_null(asked, X, runs, Scheme(preparation=steps))
    for each, found in zip(asked, together, strict=True):
        (alone,) = joint_null([each], X, runs, Scheme(preparation=steps))
        np.testing.assert_allclose(found.score, alone.score)


def uniform_pvalues(cheap, kind, n_sets, leak=False):
    """P-values of as many data sets of noise, spread over their steps."""
    out = []
    for k in range(n_sets):
        rng = np.random.default_rng([5, k])
        data = noise(rng)
        (task,) = make_tasks(data.shown, [("a", "b")])
        if leak:  # voxels chosen with all labels, those of the held-out run too, before any fold
            order = np.argsort(-np.abs(task.y @ (data.X[task.rows] - data.X[task.rows].mean(axis=0))))
            data.X = data.X[:, order[:4]]
        test = permutation_test(
            cheap,
            data.X,
            task.y,
            data.runs,
            19,
            scheme=Scheme(
                seed=k, blocks=data.blocks[task.rows], rows=task.rows, preparation=preparation(kind, data)
            ),
        )
        out.append(test.pvalue - rng.random() / (1 + test.null.size))
    return out


@pytest.mark.parametrize("kind", ["whitened", "both"])
def test_pvalues_are_uniform_on_noise(cheap, kind):
    assert kstest(uniform_pvalues(cheap, kind, 60), "uniform").pvalue > 0.01


def test_pvalues_are_not_uniform_where_held_out_labels_leak(cheap):
    assert kstest(uniform_pvalues(cheap, "whitened", 60, leak=True), "uniform").pvalue < 1e-4


# --- curves, refits, refusals ---------------------------------------------------------------------------


def test_a_learning_curve_prepares_every_subset_by_itself(data):
    steps, rows, y = preparation("both", data), data.task.rows, data.task.y
    curve = learning_curve(
        GAMP, data.X, y, data.runs, n_train_runs=(4,), n_splits=5, scheme=Scheme(preparation=steps, rows=rows)
    )
    fits = fit_tasks([GAMP], data.X, [data.task], data.runs, Scheme(preparation=steps))[
        GAMP.name, data.task.name
    ]
    assert curve.accuracy[0] == pytest.approx(1 - fold_errors(fits, y).mean(), abs=1e-12)  # all but one run
    assert "X is prepared again for every subset" in curve.refusal and np.isnan(curve.predicted).all()


def test_the_refit_is_prepared_by_all_rows(data):
    fold = prepared_by_all(NoiseWhitening(data.blocks), data.X, data.task.rows)
    np.testing.assert_allclose(fold.X, fit_whitening(data.X, data.blocks).apply(data.X)[data.task.rows])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.ones((4, 1)), "a line of covariates for every row"),
        (np.array([[1.0], [np.nan], [3.0]]), r"got nan in row 2, column 1"),
        (np.ones((3, 0)), "a line of covariates for every row"),
    ],
)
def test_refusals_say_what_to_do(given, words):
    with pytest.raises(ValueError, match=words):
        fit_confounds(np.ones((3, 2)), given)


def test_new_rows_need_covariates(data):
    fitted = fit_confounds(data.X, data.covariates)
    with pytest.raises(ValueError, match="new rows need them too"):
        fitted.apply(data.X)
    with pytest.raises(ValueError, match="Expected 2 covariates for each of 90 rows"):
        fitted.apply(data.X, data.covariates[:, :1])
