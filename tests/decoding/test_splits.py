"""Cross-validation in all the forms that scikit-learn and nilearn users write."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, StratifiedKFold

from mvpa_gamp.decoding.folds import make_splits

CODES = np.tile([0, 1, 2], 12)
CLASSES = np.array(["cat", "face", "house"])
GROUPS = np.repeat([7, 3, 5, 9], 9)


def test_groups_are_left_out_one_at_a_time_in_sorted_order():
    splits = make_splits(None, CODES, CLASSES, GROUPS)
    assert splits.folds.held_out.tolist() == [3, 5, 7, 9] and splits.leave_one_group_out
    for (train, test), group in zip(splits.folds.rows(), splits.folds.held_out, strict=True):
        np.testing.assert_array_equal(test, np.flatnonzero(group == GROUPS))
        np.testing.assert_array_equal(train, np.flatnonzero(group != GROUPS))
    assert "one of 4 groups" in splits.sentence


def test_a_number_beside_groups_is_that_many_folds_of_whole_groups():
    splits = make_splits(2, CODES, CLASSES, GROUPS)
    assert splits.sentence == "Cross-validation leaves whole groups out, in 2 folds."
    for train, test in splits.folds.rows():
        assert not set(GROUPS[train]) & set(GROUPS[test]) and len(set(GROUPS[test])) == 2
    assert make_splits(4, CODES, CLASSES, GROUPS).leave_one_group_out
    with pytest.raises(ValueError, match="2 to 4 folds of whole groups, got 5"):
        make_splits(5, CODES, CLASSES, GROUPS)


@pytest.mark.parametrize(("cv", "count"), [(None, 5), (3, 3), (np.int64(4), 4)])
def test_without_groups_folds_are_stratified(cv, count):
    splits = make_splits(cv, CODES, CLASSES, None)
    expected = list(StratifiedKFold(count).split(CODES, CODES))
    assert len(splits.folds.held_out) == count and not splits.leave_one_group_out
    for (train, test), (a, b) in zip(splits.folds.rows(), expected, strict=True):
        np.testing.assert_array_equal(train, a)
        np.testing.assert_array_equal(test, b)
    assert "give groups" in splits.sentence
    assert splits.folds.held_out.tolist() == list(range(1, count + 1))


def test_few_images_get_fewer_folds():
    assert len(make_splits(None, np.array([0, 0, 0, 1, 1, 1]), CLASSES[:2], None).folds.held_out) == 3


def test_splitters_and_iterables_are_taken_as_they_are():
    splits = make_splits(GroupKFold(2), CODES, CLASSES, GROUPS)
    assert len(splits.folds.held_out) == 2 and not splits.leave_one_group_out
    assert len(make_splits(ShuffleSplit(3, random_state=0), CODES, CLASSES, None).folds.held_out) == 3
    given = iter([(np.arange(18), np.arange(18, 36))])
    ((train, test),) = make_splits(given, CODES, CLASSES, None).folds.rows()
    assert train.tolist() == list(range(18)) and test.tolist() == list(range(18, 36))
    masks = [(np.arange(36) < 18, np.arange(36) >= 18)]
    assert make_splits(masks, CODES, CLASSES, None).folds.rows()[0][1].tolist() == list(range(18, 36))


def test_one_group_of_many_is_not_leave_one_group_out():
    only = [(np.flatnonzero(GROUPS != 3), np.flatnonzero(GROUPS == 3))]
    splits = make_splits(only, CODES, CLASSES, GROUPS)
    assert splits.folds.held_out.tolist() == [3] and not splits.leave_one_group_out


@pytest.mark.parametrize(
    ("cv", "codes", "groups", "message"),
    [
        (None, CODES, np.zeros(36), "at least two groups, got 1"),
        (1, CODES, None, "expected 2 to 12 folds"),
        (20, CODES, None, "expected 2 to 12 folds.*'cat', got 20"),
        (None, np.array([0, 0, 0, 1]), None, "at least two images of every class, got 1 of"),
        ([], CODES, None, "at least one split"),
        ([(np.arange(30), np.arange(29, 36))], CODES, None, "fold 1 tests images that it trains on"),
        ([(np.arange(30), np.arange(0))], CODES, None, "fold 1 holds no image out"),
        (KFold(3), np.repeat([0, 1, 2], 12), None, "fold 1 trains on no image of 'cat'"),
    ],
)
def test_bad_splits_are_explained(cv, codes, groups, message):
    with pytest.raises(ValueError, match=message):
        make_splits(cv, codes, CLASSES[: codes.max() + 1], groups)
