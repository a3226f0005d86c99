"""Generated input: odd calls and odd commands end in a sentence, or in results that are right."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from mvpa_gamp.haxby import main as decode
from mvpa_gamp.results.files import read_tsv
from pipelines.faults import bids_input, command_input, commands, kept, python_input
from pipelines.faults.__main__ import main
from pipelines.faults.calls import judged, not_finite
from pipelines.faults.campaigns import run
from pipelines.faults.outcomes import ELSE, NAMED, RIGHT, Outcome, added, counts, table
from pipelines.faults.pvalues import Permuted, pvalue
from pipelines.faults.results import not_right

pytestmark = pytest.mark.filterwarnings("ignore")  # the judge of a call reads its warnings itself


def test_a_hundred_odd_calls_end_in_a_sentence_or_in_right_results():
    outcomes = list(python_input.campaign(100, seed=0))
    assert not [each for each in outcomes if each.verdict == ELSE]
    found = [each.verdict for each in outcomes]
    assert found.count(NAMED) > 40 and found.count(RIGHT) > 20
    assert {each.target for each in outcomes} > {
        "`solve`", "`fit_em`", "`fit_folds`", "`GAMPClassifier`", "`GAMPDecoder`", "`permutation_test`"
    }  # fmt: skip


def test_odd_commands_end_in_a_sentence_or_in_right_results():
    outcomes = list(command_input.campaign(16, seed=0))
    assert not [each for each in outcomes if each.verdict == ELSE]
    found = [each.verdict for each in outcomes]
    assert found.count(NAMED) > 6 and found.count(RIGHT) > 1


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


def test_a_signal_stops_the_campaign_and_is_no_fault():
    with pytest.raises(KeyboardInterrupt):
        commands.run(lambda options: 143, [])


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
    folds.write_text("")
    assert "other content" in not_right(out)


@pytest.fixture(scope="module")
def tested(tiny, tmp_path_factory):
    """A study with tests of comparisons, of all classes and of a cross."""
    out = tmp_path_factory.mktemp("tested") / "results"
    asked = ("--pairs", "face:house", "--classes", "face", "house", "cat", "--cross-session", "0-2>3")
    assert decode(tiny.options(out, *asked, "--methods", "svm", "--permutations", "7", "--quiet")) == 0
    assert not_right(out) == ""
    return out


@pytest.mark.parametrize(
    ("table", "first"), [("inference", "faceMinusHouse"), ("classes", "svm\tall"), ("cross", "")]
)
def test_the_judge_of_results_knows_a_wrong_p_value(tested, table, first):
    path = tested / "sub-tiny" / f"sub-tiny_{table}.tsv"
    header, *rows = (line.split("\t") for line in path.read_text().splitlines())
    tested_rows = (row for row in rows if row[header.index("p_value")] != "n/a")
    row = next(row for row in tested_rows if "\t".join(row).startswith(first))
    row[header.index("p_value")] = "0.9"
    wrong = "\n".join("\t".join(cells) for cells in (header, *rows)) + "\n"
    assert "p-value 0.9" in not_right_after(tested, path, lambda text: wrong)


@pytest.mark.parametrize(
    ("areas", "expected"), [("0.6 0.6 0.9", 0.25), ("0.8 0.6 0.9", 0.5), ("n/a 0.6 0.9", 0.5)]
)
def test_equal_accuracies_are_ordered_by_their_area(areas, expected, tmp_path):
    rows = [f"{accuracy}\t{area}" for accuracy, area in zip((0.7, 0.7, 0.5), areas.split(), strict=True)]
    (tmp_path / "null.tsv").write_text("\n".join(["accuracy\tauc", *rows]) + "\n")
    test = Permuted("", score=0.7, auc=0.8, smallest=0.1, p=np.nan, null=tmp_path / "null.tsv")
    assert pvalue(test) == expected
    assert pvalue(test._replace(auc=np.nan)) == 0.75  # what is not known counts against the data
    assert pvalue(test._replace(score=0.9, smallest=0.3)) == 0.3


def test_the_table_counts_and_adds_up(capsys):
    outcomes = [
        Outcome("solve", ("X",), NAMED, ""),
        Outcome("solve", ("X",), RIGHT, ""),
        Outcome("a", ("y",), ELSE, ""),
    ]
    lines = table(counts(outcomes)).splitlines()
    assert lines[2:] == [
        "| a | y | 1 | 0 | 0 | 1 |",
        "| solve | X | 2 | 1 | 1 | 0 |",
        "| all | | 3 | 1 | 1 | 1 |",
    ]
    assert main(["python", "--full", "3", "--seeds", "0"]) == 0
    assert "| all | | 3 |" in capsys.readouterr().out


def test_seeds_run_side_by_side_are_added_up_and_kept(tmp_path, capsys, monkeypatch):
    asked = ["python", "--full", "2", "--counts", str(tmp_path / "counts.jsonl")]
    assert main([*asked, "--seeds", "0-2", "--jobs", "2"]) == 0
    together = capsys.readouterr().out.split("seeds of python")[0]
    assert "| all | | 6 |" in together
    assert main([*asked, "--seeds", "0-2"]) == 0  # nothing is left to do
    assert capsys.readouterr().out.endswith("3 seeds of python, 0 of them in 0 s now\n")
    alone = added(run("python", 2, seed).counted for seed in range(3))
    assert table(alone) in together
    monkeypatch.setattr(kept, "commit", lambda: "another")
    with pytest.raises(SystemExit, match="The counts of one table come from one commit"):
        main([*asked, "--seeds", "3"])


def test_the_campaign_of_the_documentation_writes_its_table_and_record(tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.faults.__main__.PLAN", {"python": (2, 4)})
    asked = ["all", "--share", "0.5", "--out", str(tmp_path)]
    assert main(asked) == 0
    first = (tmp_path / "faults.csv").read_text()
    assert first.splitlines()[0] == "given_to,fault,tried,named,right,else"
    assert first.splitlines()[-1].startswith("all calls,,4,")
    record = json.loads((tmp_path / "faults.json").read_text())
    assert record["tried"] == {"python": 4} and record["provenance"]["command"].endswith("all --share 0.5")
    monkeypatch.setattr("pipelines.faults.campaigns.run", lambda *_: pytest.fail("nothing was left to do"))
    assert main(asked) == 0 and (tmp_path / "faults.csv").read_text() == first
