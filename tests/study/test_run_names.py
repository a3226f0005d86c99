"""Runs are shown by the names that the user gave them, and none is taken for another."""

import csv

from bids_tree import write_tree

from mvpa_gamp.__main__ import main as bids_main
from mvpa_gamp.haxby import main


def column(path, name):
    with path.open(newline="") as stream:
        return [row[name] for row in csv.DictReader(stream, delimiter="\t")]


def test_names_of_runs_stay_apart_and_are_shown(make_tiny, tmp_path):
    data = make_tiny(tmp_path / "data")
    names = ["1_11", "11_1", "1_2", "1_1"]
    lines = data.labels.read_text().splitlines()
    parts = [line.split("\t") for line in lines[1:]]
    data.labels.write_text("\n".join([lines[0], *(f"{a}\t{names[int(b)]}" for a, b in parts)]) + "\n")
    out = tmp_path / "out"
    more = ("--classes", "face", "house", "cat", "--cross", "face:house>>cat:house", "--methods", "svm")
    assert main(data.options(out, "--pairs", "face:house", *more, "--fold-maps", "--quiet")) == 0
    home, ordered = out / "sub-tiny", ["1_1", "1_2", "1_11", "11_1"]
    (folds,) = home.glob("*faceMinusHouse_desc-svm_folds.tsv")
    assert column(folds, "held_out_run") == [*ordered, "n/a"]
    (overlap,) = home.glob("*faceMinusHouse_desc-svm_jaccard.tsv")
    assert column(overlap, "held_out_run") == ordered
    for ending in ("faceMinusHouse*_predictions", "all_*_predictions", "*ToCat*_crosspredictions"):
        found = list(home.glob(f"*_contrast-{ending}.tsv"))
        assert found and all(set(column(path, "run")) == set(names) for path in found)
    assert (
        "run 1_11 held out" in next(home.glob("*faceMinusHouse_desc-svmFold03_stat-weight*.json")).read_text()
    )


def test_one_run_named_twice_is_refused(tmp_path, capsys):
    tree = write_tree(tmp_path / "bids", participants=("01",))
    for path in list(tree.root.rglob("sub-01*_run-02_*")):
        twin = path.with_name(path.name.replace("_run-02_", "_run-2_"))
        twin.write_bytes(path.read_bytes())
    given = [str(tree.root), str(tmp_path / "out"), "participant", "--methods", "svm", "--quiet"]
    code = bids_main([*given, "--contrasts", "face:house", "--participant-label", "01"])
    said = capsys.readouterr().err
    assert code == 1 and "one run of one series twice" in said and "_run-2_" in said, said
    assert "0 of 1 participant analysed" in said and not list((tmp_path / "out").glob("sub-*"))
