import re

import numpy as np
import pytest

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.labels import UNLABELLED, Labels, read_labels, runs_in_order, shift_labels


def written(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "labels.txt"
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    "text",
    [
        "labels chunks\nrest 0\nface 0\nhouse 1\n",
        "labels\tchunks\nrest\t0\nface\t0\nhouse\t1\n",
        "labels,chunks\r\nrest,0\r\nface,0\r\nhouse,1\r\n",
        "\ufeffrun\ttrial_type\n0\trest\n0\tface\n1\thouse\n\n",
        "volume\tcondition\trun\n1\trest\t0.0\n2\tface\t0.0\n3\thouse\t1.0\n",
        '"Label","Run"\n"rest","0"\n"face","0"\n"house","1"\n',
    ],
)
def test_all_forms_say_the_same(tmp_path, text):
    labels = read_labels(written(tmp_path, text))
    assert labels.conditions.tolist() == ["rest", "face", "house"]
    assert labels.runs.tolist() == [0, 0, 1]
    assert labels.run_names is None


def test_runs_beyond_the_whole_numbers_of_floats_are_names(tmp_path):
    """2**64 + 1 and 2**64 + 2 are two runs, not one and no overflow."""
    names = [str(2**64 + k) for k in (1, 2)]
    labels = read_labels(written(tmp_path, f"labels chunks\na {names[0]}\na {names[1]}\n"))
    assert labels.runs.tolist() == [1, 2] and labels.run_names == {1: names[0], 2: names[1]}


def test_labels_may_hold_anything_but_the_separator(tmp_path):
    labels = read_labels(written(tmp_path, "labels\tchunks\n../../x\t0\n<b>two words</b>\t0\n\t1\n"))
    assert labels.conditions.tolist() == ["../../x", "<b>two words</b>", UNLABELLED]


def test_no_run_column(tmp_path):
    assert read_labels(written(tmp_path, "labels\trating\na\t1\nb\t2\n")).runs is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rest 0\nface 0\nhouse 1\n", "expected a header line with a column labels"),
        ("labels chunks\n", "got 1 lines of text"),
        ("", "got 0 lines of text"),
        ("labels chunks\nrest 0\nface\n", "expected 2 columns as in its header, got 1 in line 3"),
        ("labels\tchunks\nrest\t0\nface\t\n", "line 3 names no run"),
        ("onset\tduration\ttrial_type\n0\t1\tface\n", "lists events"),
        ("labels chunks\n\0\0\0\0 1\n", "is binary, expected text"),
        (
            "labels\tchunks\nrest\t0\n" + "x" * 140_000 + "\t0\n",
            r"line 3 .*more than 131,072.*correct that",
        ),
        ("labels chunks\nrest 0\nlabels chunks\nface 1\n", "line 3 is a second header line"),
        ("labels chunks\nrest 0\nCondition Run\nface 1\n", "line 3 is a second header line"),
        ("labels chunks\nrest 0\n" + "x" * 140_000 + " 0\n", "at most 1000 characters, got one of 140000"),
        ("labels labels chunks\nrest rest 0\nface face 1\n", "expected one column 'labels', got 2"),
    ],
)
def test_unusable_text(tmp_path, text, words):
    with pytest.raises(DataError, match=words):
        read_labels(written(tmp_path, text))


def test_unreadable_files(tmp_path):
    with pytest.raises(DataError, match="is not text in UTF-8"):
        read_labels(written(tmp_path, "labels chunks\ncaf\xe9 0\n", "latin-1"))
    with pytest.raises(DataError, match="found none there"):
        read_labels(tmp_path / "nowhere.txt")
    with pytest.raises(DataError, match="found none there"):
        read_labels(tmp_path)


def test_the_lag_moves_labels_within_runs():
    labels = Labels(np.array(list("abcdeABCDE")), np.repeat([7, 4], 5))
    assert shift_labels(labels, 0).tolist() == list("abcdeABCDE")
    gone = [UNLABELLED] * 2
    assert shift_labels(labels, 2).tolist() == [*gone, *"abc", *gone, *"ABC"]
    assert set(shift_labels(labels, 9)) == {UNLABELLED}


def test_runs_are_stretches_in_order_of_appearance():
    assert runs_in_order(np.array([3, 3, 1, 2, 2])) == [(3, slice(0, 2)), (1, slice(2, 3)), (2, slice(3, 5))]
    with pytest.raises(DataError, match="run 3 appears again at volume 4"):
        runs_in_order(np.array([3, 3, 1, 3]))


@pytest.mark.parametrize(
    ("written", "numbers", "names"),
    [
        (["1_1", "1_11", "11_1", "1_2"], [1, 3, 4, 2], {1: "1_1", 2: "1_2", 3: "1_11", 4: "11_1"}),
        (["10", "1e1"], [2, 1], {1: "1e1", 2: "10"}),
        (["run-10", "run-2"], [2, 1], {1: "run-2", 2: "run-10"}),
        (["\u0661", "\u0662"], [1, 2], {1: "\u0661", 2: "\u0662"}),
        (["nan", "1"], [2, 1], {1: "1", 2: "nan"}),
        (["3.0", "1.0"], [3, 1], None),
        (["-1", "+2"], [-1, 2], None),
    ],
)
def test_runs_are_names_unless_all_are_plain_whole_numbers(tmp_path, written, numbers, names):
    path = tmp_path / "labels.tsv"
    path.write_text("labels\tchunks\n" + "".join(f"a\t{run}\n" for run in written))
    labels = read_labels(path)
    assert labels.runs.tolist() == numbers and labels.run_names == names


@pytest.mark.parametrize("written", [("2", "02"), ("1", "1.0"), ("1", "+1")])
def test_a_run_is_written_in_one_way(tmp_path, written):
    path = tmp_path / "labels.tsv"
    path.write_text("labels\tchunks\n" + "".join(f"a\t{run}\n" for run in written))
    with pytest.raises(DataError, match=f"is written {re.escape(' and '.join(written))}. If both are one"):
        read_labels(path)


def test_names_that_differ_by_leading_zeros_are_one_run_named_twice(tmp_path):
    path, names = tmp_path / "labels.tsv", ("1_10", "1_1", "0.5", "0.05", "a0", "a", "run-10", "run-1")
    for written in (("run-2", "run-02"), ("ses-01_run-1", "ses-1_run-001"), names):
        path.write_text("labels\tchunks\n" + "".join(f"a\t{run}\n" for run in written))
        if written is names:
            assert len(set(read_labels(path).runs)) == len(names)
            continue
        with pytest.raises(DataError, match=r"differ by leading zeros only\. If both are one run"):
            read_labels(path)
