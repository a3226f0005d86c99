"""The Haxby table: the paper's numbers are complete, real and simulated data cannot be confused."""

import argparse
import csv
import json
import shutil

import numpy as np
import pytest

from mvpa_gamp.decoding.tasks import PAPER_PAIRS
from mvpa_gamp.study.options import DEFAULT_METHODS
from pipelines.command import Options
from pipelines.haxby_table import NAME, PHANTOM_LABEL, beside_the_paper, choose_source, run
from pipelines.paper_haxby_table import COLUMNS, ORDER, PRINTED, printed

SHAPE = (8, 9, 8)
METHODS = ("gamp-bg-lr", "onebit-cs")


@pytest.fixture(autouse=True)
def _no_data_folder(monkeypatch):
    monkeypatch.delenv("MVPA_GAMP_DATA", raising=False)


@pytest.fixture(scope="module")
def phantom(tmp_path_factory):
    out = tmp_path_factory.mktemp("table")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("MVPA_GAMP_DATA", raising=False)
        source = choose_source(None, True, 0, SHAPE)
        return out, run(Options(full=False, seed=0, out=out), source, methods=METHODS)


@pytest.fixture
def real_folder(tiny, tmp_path):
    """The test suite's tiny volumes, taken for real ones."""
    folder = tmp_path / "volumes"
    folder.mkdir()
    shutil.copy(tiny.bold, folder / "bold.nii.gz")
    shutil.copy(tiny.mask, folder / "mask.nii.gz")
    text = tiny.labels.read_text().replace("\t", " ")
    (folder / "labels.txt").write_text(text.replace("face", "bottle").replace("house", "chair"))
    return folder


def table(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_the_papers_table_is_complete():
    names = [f"{a} vs {b}" for a, b in PAPER_PAIRS]
    assert list(PRINTED) == [*names, "average"]
    assert set(COLUMNS.values()) == set(ORDER) and set(DEFAULT_METHODS) - {"vamp-sbg"} <= set(COLUMNS)
    for measures in PRINTED.values():
        assert list(measures) == ["error_percent", "sparsity_percent", "consistency_percent", "seconds"]
        assert all(len(values) == len(ORDER) for values in measures.values())


@pytest.mark.parametrize(
    ("measure", "within"),
    [("error_percent", 0.06), ("sparsity_percent", 0.006), ("consistency_percent", 0.6), ("seconds", 2.6)],
)
def test_the_papers_averages_follow_from_its_rows(measure, within):
    """A misread digit would show: half a unit of the last printed digit is allowed.

    Only the paper's mean TFOCS time is further off: it prints 1358 s, its six rows give 1360.5 s.
    """
    pairs = [row[measure] for name, row in PRINTED.items() if name != "average"]
    assert np.abs(np.mean(pairs, axis=0) - PRINTED["average"][measure]).max() <= within


def test_printed_numbers_by_method():
    assert printed("face vs chair", "gamp-bg-lr", "error_percent") == 6.9
    assert printed("face vs chair", "tron", "error_percent") is None
    assert printed("face vs house", "gamp-bg-lr", "error_percent") is None


def test_everything_from_the_phantom_says_so(phantom):
    out, record = phantom
    assert sorted(path.name for path in out.iterdir()) == [
        f"{NAME}_phantom.{s}" for s in ("csv", "json", "pdf", "png")
    ]
    rows = table(out / f"{NAME}_phantom.csv")
    assert {row["data"] for row in rows} == {PHANTOM_LABEL}
    assert len(rows) == len(METHODS) * 7
    assert record["simulated"] is True and PHANTOM_LABEL in record["headline"]
    assert json.loads((out / f"{NAME}_phantom.json").read_text())["data"] == PHANTOM_LABEL


def test_numbers_are_possible_and_stand_beside_the_papers(phantom):
    for row in phantom[1]["rows"]:
        assert 0 <= row["error_percent"] <= 60 and 0 <= row["consistency_percent"] <= 100
        assert row["paper_error_percent"] == printed(row["comparison"], row["method"], "error_percent")
        assert row["seconds"] > 0


def test_averages_are_those_of_the_rows(phantom):
    rows = [row for row in phantom[1]["rows"] if row["method"] == "onebit-cs"]
    *pairs, average = rows
    assert average["comparison"] == "average" and len(pairs) == 6
    for measure in ("error_percent", "voxels", "seconds"):
        assert average[measure] == pytest.approx(np.mean([row[measure] for row in pairs]))


def test_the_papers_average_is_not_set_beside_fewer_comparisons(phantom):
    _, record = phantom
    some = [row for row in record["rows"] if row["comparison"] in ("cat vs house", "average")]
    shown = beside_the_paper(some, choose_source(None, True, 0))
    by_name = {row["comparison"]: row["paper_error_percent"] for row in shown}
    assert by_name["average"] is None and by_name["cat vs house"] is not None


def test_real_volumes_are_never_called_a_phantom(real_folder, tmp_path):
    source = choose_source(real_folder, False, 0)
    out = tmp_path / "out"
    own = argparse.Namespace(data=real_folder, phantom=False)
    record = run(Options(full=False, seed=0, out=out), source, own, ("onebit-cs",))
    assert record["simulated"] is False and "phantom" not in json.dumps(record["rows"]).lower()
    assert {path.stem for path in out.iterdir()} == {f"{NAME}_part"}
    assert str(tmp_path) not in (out / f"{NAME}_part.json").read_text()
    assert {row["comparison"] for row in record["rows"]} == {"bottle vs chair", "average"}


def test_data_are_found_through_the_environment(real_folder, monkeypatch):
    assert choose_source(None, False, 0).word == "phantom"
    real_folder.rename(real_folder.with_name("haxby_slice"))
    monkeypatch.setenv("MVPA_GAMP_DATA", str(real_folder.parent))
    assert choose_source(None, False, 0).word == "part"
    assert choose_source(None, True, 0).word == "phantom"


def test_bad_folders_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such file or folder. Correct the name"):
        choose_source(tmp_path / "nowhere", False, 0)
    with pytest.raises(FileNotFoundError, match=r"missing: bold.nii.gz, labels.txt, mask.nii.gz"):
        choose_source(tmp_path, False, 0)
