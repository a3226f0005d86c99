"""Scores of known answers are scikit-learn's scores."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, make_scorer, roc_auc_score

from mvpa_gamp.decoding.scores import ANY_CLASSES, TWO_CLASSES, check_scoring_name, mean_score, score_rows

NAMES = np.array(["cat", "face", "house"])


def answers(n_classes, seed=0, n_rows=60):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(n_classes), n_rows)
    decision = np.log(proba[:, 1] / proba[:, 0]) if n_classes == 2 else np.log(proba)
    return rng.integers(0, n_classes, n_rows), decision, proba, proba.argmax(axis=1), np.arange(n_rows) % 3


@pytest.mark.parametrize(
    ("name", "n_classes"), [(n, 2) for n in (*ANY_CLASSES, *TWO_CLASSES)] + [(n, 3) for n in ANY_CLASSES]
)
def test_every_listed_scorer_works(name, n_classes):
    assert check_scoring_name(name, n_classes) == name
    assert np.isfinite(score_rows(name, NAMES[:n_classes], *answers(n_classes))).all()


def test_scores_are_those_of_scikit_learn():
    true, decision, _, predicted, part = data = answers(2)
    classes = NAMES[:2]
    rows = [part == k for k in range(3)]
    expected = [accuracy_score(true[r], predicted[r]) for r in rows]
    np.testing.assert_allclose(score_rows("accuracy", classes, *data), expected)
    expected = [roc_auc_score(true[r], decision[r]) for r in rows]
    np.testing.assert_allclose(score_rows("roc_auc", classes, *data), expected)
    expected = [f1_score(true[r], predicted[r]) for r in rows]  # the second class is the positive one
    np.testing.assert_allclose(score_rows("f1", classes, *data), expected)
    mine = make_scorer(f1_score, pos_label="cat")
    expected = [f1_score(true[r], predicted[r], pos_label=0) for r in rows]
    np.testing.assert_allclose(score_rows(mine, classes, *data), expected)


def test_a_part_with_one_class_has_no_area_under_the_curve():
    true, decision, proba, predicted, part = answers(2)
    true[part == 1] = 0
    scores = score_rows("roc_auc", NAMES[:2], true, decision, proba, predicted, part)
    assert np.isnan(scores[1]) and np.isfinite(scores[[0, 2]]).all()


def one_class_is_refused(estimator, X, y):
    if len(np.unique(y)) < 2:
        raise ValueError("needs both classes")
    return 0.5


def test_a_scorer_that_refuses_a_part_with_one_class_leaves_it_undefined():
    true, decision, proba, predicted, part = answers(2)
    true[part == 1] = 0
    part[part == 2] = 3  # nothing was tested in part 2
    scores = score_rows(one_class_is_refused, NAMES[:2], true, decision, proba, predicted, part)
    np.testing.assert_array_equal(scores, [0.5, np.nan, np.nan, 0.5])
    assert mean_score(scores) == 0.5 and np.isnan(mean_score(scores[1:3]))


def test_a_scorer_that_fails_otherwise_is_heard():
    def broken(estimator, X, y):
        raise ValueError("broken scorer")

    with pytest.raises(ValueError, match="broken scorer"):
        score_rows(broken, NAMES[:2], *answers(2))


@pytest.mark.parametrize(
    ("scoring", "n_classes", "message"),
    [
        ("roc_auc", 3, "compares two classes, but y has 3. Use 'roc_auc_ovr'"),
        ("f1", 4, "Use 'f1_macro'"),
        ("r2", 2, "scorer of classes or a callable"),
        ("nonsense", 2, "Choose among accuracy"),
        (3, 2, "got 3"),
    ],
)
def test_scores_that_make_no_sense_are_refused(scoring, n_classes, message):
    with pytest.raises(ValueError, match=message):
        check_scoring_name(scoring, n_classes)


def test_no_scoring_means_accuracy():
    assert check_scoring_name(None, 5) == "accuracy"
