"""Several conditions as one side of a comparison: who belongs to it, names of files, balance."""

import re

import numpy as np
import pytest

from mvpa_gamp.decoding import make_classes, make_tasks, parse_classes, parse_pairs, read_side
from mvpa_gamp.decoding.designs import design_pairs
from mvpa_gamp.decoding.tasks import Side, dominant, file_side, member_rows

KNOWN = ["cat", "face_inv", "face_up", "house_1", "house_2"]


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("cat", ("cat",)),
        ("face_up+cat", ("cat", "face_up")),
        ("face_*", ("face_inv", "face_up")),
        ("house_?+c*", ("cat", "house_1", "house_2")),
        ("Face*", ()),
    ],
)
def test_a_side_names_conditions_and_patterns(text, members):
    side = read_side(text, KNOWN)
    assert side.members == members and bool(side.unknown) == (not members)


def test_a_condition_of_exactly_that_name_wins():
    known = ["a", "a*", "a+b", "ab", "b", "c"]
    assert read_side("a*", known).members == ("a*",)
    assert read_side("a+b", known).members == ("a+b",)
    assert read_side("a+b+c", known).members == ("a+b", "c")
    assert read_side("c+b", known).members == ("b", "c")


def test_groups_make_the_task_of_their_members():
    conditions = np.array(["cat", "face_up", "house_1", "face_inv", "house_2", "cat"])
    (task,) = make_tasks(conditions, [("face*", "house_1+house_2")])
    np.testing.assert_array_equal(task.rows, [1, 2, 3, 4])
    np.testing.assert_array_equal(task.y, [1, -1, 1, -1])
    assert task.members == (("face_inv", "face_up"), ("house_1", "house_2"))
    assert task.label == "face* vs house_1+house_2" and task.name == "faceAnyMinusHouse1Plushouse2"
    (alone,) = make_tasks(conditions, [("cat", "house_1")])
    assert alone.members == () and alone.sides == (Side("cat", ("cat",)), Side("house_1", ("house_1",)))


def test_names_of_files_are_ascii_unique_and_short():
    known = ["face", "face_up", "house"]
    names = {make_tasks(known, [(a, "house")])[0].name for a in ("face", "face*", "face+face_up", "face_up")}
    assert len(names) == 4 and all(name.isascii() and name.isalnum() for name in names)
    long = [f"condition_{k}" for k in range(40)]
    sides = [file_side(read_side("+".join(long[:n]), long)) for n in (30, 31)]
    assert len(set(sides)) == 2 and all(len(side) <= 48 for side in sides)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("face*:fac*", "has 'face_inv', 'face_up' on both sides. Each category may be on one side only"),
        ("face_up+cat:cat", "has 'cat' on both sides"),
        ("dog*:cat", "names 'dog*', which the data do not contain. Choose among 'cat'"),
        ("face_up+dog:cat", "names 'dog', which the data do not contain"),
        ("face_up+rest:cat", "names 'rest', whose volumes are left out as rest"),
    ],
)
def test_groups_that_cannot_be_are_explained(pair, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_pairs([pair], KNOWN, ["rest"])


def test_one_group_in_two_spellings_is_one_pair():
    with pytest.raises(ValueError, match="given more than once"):
        parse_pairs(["face*:cat", "cat:face_up+face_inv"], KNOWN)


def test_balance_counts_members_by_run_and_names_who_dominates():
    conditions = np.array(["a"] * 6 + ["b"] * 2 + ["c"] * 4)
    runs = np.array([1, 1, 1, 1, 2, 2, 1, 2, 1, 1, 2, 2])
    rows = member_rows([Side("a+b", ("a", "b"))], conditions, runs)
    assert [(row.member, row.rows, row.by_run) for row in rows] == [
        ("a", 6, {"1": 4, "2": 2}),
        ("b", 2, {"1": 1, "2": 1}),
    ]
    assert dominant([6, 2]) == 0 and dominant([3, 5]) is None and dominant([9]) is None


def test_classes_may_be_groups_and_must_not_share_conditions():
    assert parse_classes(["house*", "cat"], KNOWN) == ["cat", "house*"]
    assert parse_classes(["all"], KNOWN) == KNOWN
    found = make_classes(np.array(["house_2", "cat", "face_up", "house_1"]), ["cat", "house*"])
    np.testing.assert_array_equal(found.rows, [0, 1, 3])
    np.testing.assert_array_equal(found.codes, [1, 0, 1])
    for classes, message in (
        (["cat"], "at least two classes, got 'cat'"),
        (["cat", "c*"], "'cat' belongs to two of the classes"),
        (["cat", "dog"], "The list of classes names 'dog', which the data do not contain"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            parse_classes(classes, KNOWN)


def test_a_study_makes_every_comparison_once():
    found = design_pairs(
        ["house_1:cat"], ["cat", "face_up", "house_1"], ["cat:face_up>house_1:house_2"], KNOWN
    )
    assert found == [("cat", "house_1"), ("cat", "face_up"), ("face_up", "house_1"), ("house_1", "house_2")]
    assert design_pairs([], [], ["cat:face*>>house_1:house_2"], KNOWN) == [
        ("cat", "face*"),
        ("house_1", "house_2"),
    ]
    with pytest.raises(ValueError, match=r"^--classes: expected at least two"):
        design_pairs(None, ["cat"], [], KNOWN)
