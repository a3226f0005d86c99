"""Groups, classes and sessions of a BIDS dataset."""

import json
from pathlib import Path

import pytest

from mvpa_gamp.__main__ import main
from mvpa_gamp.results.files import read_tsv
from mvpa_gamp.study import run as study_run


def arguments(tree, out, *more):
    return [str(tree.root), str(out), "participant", *more]


def test_groups_classes_and_sessions_of_a_dataset(bids_tree, tmp_path, monkeypatch):
    monkeypatch.setattr(study_run, "build_report", _not_drawn)
    asked = ("--contrasts", "c*+house:face", "--classes", "face", "house", "cat")
    more = ("--cross-session", "ses-01>>ses-02", "--methods", "onebit-cs", "--participant-label", "02")
    assert main(arguments(bids_tree, tmp_path / "out", *asked, *more, "--quiet")) == 0
    home = tmp_path / "out" / "sub-02"
    study = json.loads((home / "summary.json").read_text())
    assert study["tasks"][0]["members"] == {"c*+house": ["cat", "house"], "face": ["face"]}
    assert study["classes"]["names"] == ["cat", "face", "house"]
    rows = read_tsv(next(home.glob("sub-02_*_cross.tsv")))
    assert rows[0]["cross"] == "c*+house vs face, ses-01 → ses-02" and len(rows) == 4
    assert all(row["runs"] == "3" for row in rows)
    assert (
        main(arguments(bids_tree, tmp_path / "out", "--resume", "--participant-label", "02", "--quiet")) == 0
    )


def test_runs_that_one_participant_lacks_are_no_error_of_the_command(bids_tree, tmp_path):
    """Only sub-02 has sessions: alone, another one is skipped."""
    more = ("--contrasts", "face:house", "--cross-session", "ses-01>>ses-02", "--methods", "svm", "--quiet")
    assert main(arguments(bids_tree, tmp_path / "out", *more, "--participant-label", "03")) == 1
    assert (tmp_path / "out" / "logs" / "sub-03_skipped.json").is_file()


def _not_drawn(root: Path) -> Path:
    (root / "index.html").write_text("not drawn")
    return root / "index.html"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--contrasts", "fac*:hou*+tree"), ("--contrasts", "'tree'")),
        (("--classes", "face", "tree"), ("--classes: ", "'tree'")),
        (("--cross", "face:house>cat:tree"), ("--cross: ", "'tree'")),
        (("--cross", "face:house>face:house"), ("--cross: ", "on the same comparison", "Name two")),
        (("--cross", "face+cat:house>>house:cat+face"), ("--cross: ", "on the same comparison")),
        (("--cross-session", "1-2>2-4"), ("--cross-session: ", "Run 2 is trained on and tested on")),
        (("--cross-session", "1-2>later"), ("--cross-session: ", "names 'later'", "1-6>7-12")),
        (("--cross-session", "3-1>>ses-02"), ("--cross-session: ", "names '3-1'")),
        (("--cross-session", "1-2"), ("--cross-session: ", "quotation marks")),
        (("--cross-session", "1-2>3-9"), ("--cross-session: sub-01: ", "'3-9'", "applies to all 3")),
        (("--cross-session", "ses-07>>ses-02"), ("--cross-session: sub-01: ", "'ses-07'", "runs 1, 2, 3")),
        (("--cross-session", "1>9", "--participant-label", "03"), ("--cross-session: sub-03: ", "'9'")),
        (("--fold-confounds", "no-{participant}.tsv"), ("--fold-confounds ", "no-01.tsv: ", "found no file")),
    ],
)
def test_designs_of_conditions_nobody_has_are_refused(bids_tree, tmp_path, capsys, more, words):
    assert main(arguments(bids_tree, tmp_path / "out", *more)) == 2
    (said,) = [line for line in capsys.readouterr().err.splitlines() if "error: " in line]
    assert all(word in said for word in words), said
    assert not (tmp_path / "out").exists()
