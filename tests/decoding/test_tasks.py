import re

import numpy as np
import pytest

from mvpa_gamp.decoding import PAPER_PAIRS, Task, contrast_name, make_tasks, parse_pairs

HAXBY = ["face", "house", "cat", "bottle", "scissors", "shoe", "chair", "scrambledpix"]


def test_the_paper_compares_six_pairs():
    assert parse_pairs(None, HAXBY) == list(PAPER_PAIRS)
    assert [f"{a}-{b}" for a, b in PAPER_PAIRS] == [
        "cat-scissors", "cat-shoe", "cat-house", "bottle-shoe", "bottle-chair", "face-chair",
    ]  # fmt: skip


def test_without_the_papers_categories_all_pairs_are_taken():
    assert parse_pairs(None, ["left", "right", "none"]) == [
        ("left", "none"),
        ("left", "right"),
        ("none", "right"),
    ]
    assert parse_pairs(None, ["cat", "shoe", "tree"]) == [("cat", "shoe")]


def test_all_means_every_pair_once():
    assert len(parse_pairs("all", HAXBY)) == len(parse_pairs(["all"], HAXBY)) == 28


def test_named_pairs_keep_their_order_and_direction():
    assert parse_pairs(["house:face", "cat:shoe"], HAXBY) == [("house", "face"), ("cat", "shoe")]
    assert parse_pairs("face:house", HAXBY) == [("face", "house")]


def test_categories_may_contain_colons():
    assert parse_pairs(["a:b:c"], ["a:b", "c"]) == [("a:b", "c")]


@pytest.mark.parametrize(
    ("pairs", "categories", "message"),
    [
        (["face"], HAXBY, "written category:category, got 'face'. For example face:house"),
        (["face:tree"], HAXBY, "names 'tree', which the data do not contain. Choose among 'bottle', 'cat'"),
        (["face:face"], HAXBY, "two different categories, got 'face:face'"),
        (["face:cat", "cat:face"], HAXBY, "face:cat was given more than once"),
        ([], HAXBY, "No pair was given"),
        (None, ["face"], "at least two categories, but the data have 'face'"),
        ("all", [], "at least two categories, but the data have none"),
    ],
)
def test_bad_pairs_are_explained(pairs, categories, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_pairs(pairs, categories)


def test_a_task_has_the_rows_and_labels_of_its_pair():
    conditions = np.array(["cat", "rest", "shoe", "cat", "house"])
    (task,) = make_tasks(conditions, [("shoe", "cat")])
    assert isinstance(task, Task)
    np.testing.assert_array_equal(task.rows, [0, 2, 3])
    np.testing.assert_array_equal(task.y, [-1, 1, -1])
    assert (task.name, task.label) == ("shoeMinusCat", "shoe vs cat")


@pytest.mark.parametrize(
    ("positive", "negative", "name"),
    [
        ("cat", "scissors", "catMinusScissors"),
        ("../../etc", "<b>x</b>", "etcMinusBxb"),
        ("left hand", "right_hand", "lefthandMinusRighthand"),
        ("Äpfel", "1st", "ApfelMinus1st"),
        ("猫", "犬", "u732bMinusU72ac"),
        ("/", "", "u2fMinusUnnamed"),
    ],
)
def test_contrast_names_are_safe_in_file_names(positive, negative, name):
    assert contrast_name(positive, negative) == name
    assert name.isascii() and name.isalnum()


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("cat", "dog")], "'dog' has no rows. The data have 'a-b', 'ab', 'cat'; choose two"),
        ([("cat", "cat")], "got 'cat' twice"),
        (
            [("cat", "ab"), ("cat", "a-b")],
            "'cat vs ab' and 'cat vs a-b' would share the file name 'catMinusAb'",
        ),
        ([("cat", "ab"), ("cat", "ab")], "Give each pair once"),
    ],
)
def test_tasks_that_cannot_be_made_are_explained(pairs, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make_tasks(np.array(["cat", "ab", "a-b"]), pairs)
