"""Generated input: odd calls and odd commands end in a sentence, or in results that are right."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from mvpa_gamp.haxby import main as decode
from mvpa_gamp.results.files import read_tsv
from pipelines.faults import bids_input, command_input, commands, python_input
from pipelines.faults.__main__ import main
from pipelines.faults.calls import judged, not_finite
from pipelines.faults.outcomes import ELSE, NAMED, RIGHT, Outcome, counts, table
from pipelines.faults.results import not_right

pytestmark = pytest.mark.filterwarnings("ignore")  # the judge of a call reads its warnings itself


def test_a_hundred_odd_calls_end_in_a_sentence_or_in_right_results():
    outcomes = list(python_input.campaign(100, seed=0))
    assert not [each for each in outcomes if each.verdict == ELSE]
    found = [each.verdict for each in outcomes]
    assert found.count(NAMED) > 40 and found.count(RIGHT) > 20
    assert {each.target for each in outcomes} > {
        "solve", "fit_em", "fit_folds", "GAMPClassifier", "GAMPDecoder", "permutation_test"
    }  # fmt: skip


def test_odd_commands_end_in_a_sentence_or_in_right_results():
    outcomes = list(command_input.campaign(30, seed=0))
    assert not [each for each in outcomes if each.verdict == ELSE]
    found = [each.verdict for each in outcomes]
    assert found.count(NAMED) > 12 and found.count(RIGHT) > 4


def test_odd_datasets_end_in_a_sentence_or_in_right_results():
    outcomes = list(bids_input.campaign(8, seed=2))
    assert not [each for each in outcomes if each.verdict == ELSE]
    found = [each.verdict for each in outcomes]
    assert found.count(NAMED) >= 3 and found.count(RIGHT) >= 1


def test_a_case_is_the_same_whenever_it_is_asked_for():
    once, again = (python_input.case(3, 7) for _ in range(2))
    assert once[:3] == again[:3]
    assert python_input.case(3, 8)[:3] != once[:3]


def not_right_after(out, path, change):
    """What the judge says when a table was written with other numbers, its digest in the manifest too."""
    manifest, before = out / "logs" / "manifest.tsv", path.read_bytes()
    listed = manifest.read_text()
    path.write_text(change(path.read_text()))
    assert path.read_bytes() != before
    old, new = (hashlib.sha256(content).hexdigest() for content in (before, path.read_bytes()))
    manifest.write_text(listed.replace(old, new))
    said = not_right(out)
    path.write_bytes(before)
    manifest.write_text(listed)
    return said


def raising(error):
    def call():
        raise error

    return call


@pytest.mark.parametrize(
    "call",
    [
        raising(ValueError("a sentence of somebody else, which no user knows")),
        raising(KeyError("rate")),
        lambda: np.array([np.inf]) - np.inf,  # a warning about arithmetic
        lambda: int("face"),  # an error that Python wrote
    ],
)
def test_the_judge_knows_what_is_neither_a_sentence_nor_a_result(call):
    assert judged(call, lambda found: "")[0] == ELSE


def test_the_judge_knows_results_that_are_not_right():
    assert judged(lambda: np.array([np.nan]), lambda found: not_finite({"coef": found})) == (
        ELSE,
        "not finite: coef",
    )
    assert judged(lambda: np.ones(2), lambda found: not_finite({"coef": found})) == (RIGHT, "")


def test_the_judge_of_commands_knows_an_exit_code_and_what_was_written(tmp_path, monkeypatch):
    given = command_input.draw(tmp_path, np.random.default_rng(0))
    assert commands.judged(lambda options: 1, given, tmp_path / "out")[0] == ELSE
    (tmp_path / "out").mkdir()
    assert commands.judged(lambda options: 0, given, tmp_path / "out") == (ELSE, "out: no manifest")


def test_the_judge_of_results_computes_tables_again(tiny, tmp_path):
    out = tmp_path / "results"
    asked = ("--pairs", "face:house", "--methods", "svm", "--permutations", "3", "--quiet")
    assert decode(tiny.options(out, *asked)) == 0 and not_right(out) == ""
    own = out / "sub-tiny" / "sub-tiny_"
    folds = Path(f"{own}contrast-faceMinusHouse_desc-svm_folds.tsv")
    first = f"\t{read_tsv(folds)[0]['error_percent']}\t"
    assert not_right_after(out, folds, lambda text: text.replace(first, "\t77\t", 1)).startswith(
        "error rates"
    )
    inference = Path(f"{own}inference.tsv")
    row = read_tsv(inference)[0]["p_value"]
    assert "p-value" in not_right_after(out, inference, lambda text: text.replace(f"\t{row}\t", "\t0.9\t", 1))
    folds.write_text("")
    assert "other content" in not_right(out)


def test_the_table_counts_and_adds_up(capsys):
    outcomes = [
        Outcome("solve", ("X",), NAMED, ""),
        Outcome("solve", ("X",), RIGHT, ""),
        Outcome("a", ("y",), ELSE, ""),
    ]
    lines = table(counts(outcomes)).splitlines()
    assert lines[2:] == [
        "| `a` | y | 1 | 0 | 0 | 1 |",
        "| `solve` | X | 2 | 1 | 1 | 0 |",
        "| all | | 3 | 1 | 1 | 1 |",
    ]
    assert main(["python", "--full", "3", "--seed", "0"]) == 0
    assert "| all | | 3 |" in capsys.readouterr().out
