"""What others put into a results folder stays, and what others wrote there leads nowhere."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
from bids_tree import write_tree

from mvpa_gamp.__main__ import main as bids_main
from mvpa_gamp.haxby import main
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.study.lock import FolderLock

pytestmark = pytest.mark.whole

QUICK = ("--contrasts", "face:house", "--methods", "svm", "--quiet")


def everything(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def refused(code, capsys, *words):
    said = capsys.readouterr().err.strip().splitlines()
    assert code == 2 and len(said) == 1, said
    for word in words:
        assert word in said[0], said


@pytest.fixture(scope="module")
def study(tiny, tmp_path_factory):
    out = tmp_path_factory.mktemp("study") / "out"
    assert main(tiny.options(out, "--pairs", "face:house", "--quiet")) == 0
    return out


@pytest.fixture
def results(study, tmp_path):
    return shutil.copytree(study, tmp_path / "out")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return write_tree(tmp_path_factory.mktemp("dataset") / "bids", participants=("01", "02"))


@pytest.fixture(scope="module")
def both(dataset, tmp_path_factory):
    """The results of two participants and their group."""
    out = tmp_path_factory.mktemp("both") / "out"
    assert bids_main([str(dataset.root), str(out), "participant", *QUICK]) == 0
    assert bids_main([str(dataset.root), str(out), "group", "--quiet"]) == 0
    return out


# --- --overwrite


@pytest.mark.parametrize("option", ["--overwrite", "--resume"])
def test_a_file_called_config_toml_makes_no_results_folder(tiny, tmp_path, capsys, option):
    out = tmp_path / "bids"
    for name in ("sub-01/func/sub-01_bold.nii.gz", "sub-02/raw.txt", "figures/mine.png", "README.md"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("precious")
    (out / "config.toml").write_text("[study]\nseed = 0\n")
    before = everything(out)
    refused(main(tiny.options(out, option, "--pairs", "face:house")), capsys, "no results of an earlier run")
    assert everything(out) == before


def test_overwrite_removes_what_was_written_and_names_what_stays(tiny, results, capsys):
    mine = [results / name for name in ("sub-tiny/raw.txt", "figures/mine.png", "sub-99/x.nii", "notes.txt")]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("precious")
    edited = next(results.glob("sub-tiny/*_consistency.tsv"))
    edited = edited.rename(edited.with_name("kept.tsv"))
    changed = next(results.glob("sub-tiny/*faceMinusHouse*_predictions.tsv"))
    changed.write_text("changed by hand")
    assert main(tiny.options(results, "--pairs", "face:cat", "--overwrite")) == 0
    said = capsys.readouterr().err
    assert all(path.read_text() == "precious" for path in mine) and edited.exists()
    assert "Not removed from" in said and "notes.txt" in said and "figures/mine.png" in said
    assert [path.name for path in results.rglob("*faceMinusHouse*")] == [changed.name]
    assert not list((results / "work").glob("*faceMinusHouse*"))


def test_a_folder_of_another_kind_of_study_is_refused(tiny, both, results, dataset, tmp_path, capsys):
    copy = shutil.copytree(both, tmp_path / "copy")
    before = everything(copy)
    for place, holds in ((copy, "participants of a BIDS"), (copy / "sub-01", "one participant of a BIDS")):
        refused(
            main(tiny.options(place, "--overwrite")), capsys, f"holds {holds}" if place != copy else holds
        )
    assert everything(copy) == before
    before = everything(results)
    for level in ("participant", "group"):
        more = ("--overwrite", *QUICK) if level == "participant" else ()
        code = bids_main([str(dataset.root), str(results), level, *more])
        refused(code, capsys, "a study of one participant")
    assert everything(results) == before


def test_data_in_the_results_folder_are_refused(make_tiny, results, tmp_path, capsys):
    data = make_tiny(results / "sub-tiny" / "func")
    refused(main(data.options(results, "--overwrite")), capsys, "--bold", "outside of the results folder")
    assert data.bold.exists() and data.mask.exists()
    data = make_tiny(tmp_path / "data")
    inside = Path(shutil.move(data.mask, results / "mask.nii.gz"))
    given = [str(inside) if each == str(data.mask) else each for each in data.options(results, "--resume")]
    refused(main(given), capsys, "--mask", "lies in")


def test_maps_that_a_table_names_in_the_results_folder_are_refused(results, tmp_path, capsys):
    maps = sorted(results.glob("sub-tiny/*_desc-onebitCs_stat-weight_statmap.nii.gz"))
    lines = [f"{maps[0]}\tp{k % 4}\t{'ab'[k // 4]}" for k in range(8)]
    (tmp_path / "maps.tsv").write_text("\n".join(["file\tparticipant\tcondition", *lines]) + "\n")
    before = everything(results)
    given = ["--maps", str(tmp_path / "maps.tsv"), "--out", str(results), "--overwrite", "--methods", "svm"]
    refused(main(given), capsys, "statmap.nii.gz lies in --out")
    assert everything(results) == before


def test_a_dataset_is_no_place_for_its_own_results(tmp_path, capsys):
    tree = write_tree(tmp_path / "bids", participants=("01",))
    before = everything(tree.root)
    refused(bids_main([str(tree.root), str(tree.root), "participant", *QUICK]), capsys, "Give another folder")
    assert everything(tree.root) == before
    out = tmp_path / "new"  # above the dataset
    tree.root.rename(tmp_path / "moved")
    out.mkdir()
    (tmp_path / "moved").rename(out / "bids")
    refused(bids_main([str(out / "bids"), str(out), "participant", *QUICK]), capsys, str(out))


# --- the group level


def test_the_group_level_removes_its_own_files_alone(both, dataset, tmp_path, capsys):
    copy = shutil.copytree(both, tmp_path / "copy")
    mine = [copy / "group" / "thesis.txt", copy / "group_notes.tsv", copy / "figures" / "group_mine.svg"]
    for path in mine:
        path.write_text("precious")
    earlier = next((copy / "group").glob("*.nii.gz"))
    stale = copy / "group_stale.tsv"
    stale.write_text("of an earlier group")
    with (copy / "logs" / "written.jsonl").open("a") as record:  # as if that group had written it
        digest = hashlib.sha256(stale.read_bytes()).hexdigest()
        record.write("\n" + json.dumps([digest, stale.name, ".writing-x"]))
    group = [str(dataset.root), str(copy), "group", "--quiet"]
    with FolderLock(ResultsFolder(copy), "somebody") as lock:
        lock.take()
        refused(bids_main(group), capsys, "another run is writing there")
        assert stale.exists()
    notes = ["[" * 9_000, "null", '{"participant": "98", "reason": 3}']
    for number, text in enumerate(notes):
        (copy / "logs" / f"sub-9{number}_skipped.json").write_text(text)
    assert bids_main(group) == 0
    assert all(f"sub-9{k} was skipped" in (copy / "index.html").read_text() for k in range(len(notes)))
    assert all(path.read_text() == "precious" for path in mine)
    assert earlier.exists() and not stale.exists()


# --- folders from somebody else


def test_a_noted_folder_of_fits_is_used_only_if_it_is_the_same_study_s(tiny, results, tmp_path, capsys):
    victim = tmp_path / "victim"
    (victim / "deep").mkdir(parents=True)
    for path in (victim / ".writing-mine", victim / "deep" / ".writing-mine", results / ".writing-mine"):
        path.write_text("precious")
    (results / "logs" / "work_dir.txt").write_text(f"{victim}\n")
    given = ["--out", str(results), "--resume", "--quiet"]
    before = everything(victim)
    refused(main(given), capsys, "belongs to another study", "--work-dir")
    (victim / "logs").mkdir()
    (victim / "logs" / "written.jsonl").write_text(
        '{"written_by": "mvpa_gamp", "kind": "work", "token": "other"}'
    )
    refused(main(given), capsys, "belongs to another study")
    shutil.rmtree(victim / "logs")
    assert everything(victim) == before
    (results / "logs" / "work_dir.txt").unlink()
    assert main(given) == 0
    assert (results / ".writing-mine").read_text() == "precious"


@pytest.mark.parametrize(
    "name", ["logs/run.log", "figures", "summary.tsv", "sub-tiny", "work", "logs/written.jsonl"]
)
@pytest.mark.parametrize("option", ["--resume", "--reports-only", "--overwrite"])
def test_links_are_refused(results, tmp_path, capsys, name, option):
    elsewhere = Path(shutil.move(results / name, tmp_path / "elsewhere"))
    (results / name).symlink_to(elsewhere)
    before = everything(tmp_path)
    more = ("--phantom",) if option == "--overwrite" else ()
    refused(main(["--out", str(results), option, *more]), capsys, f"{name} is a link")
    assert everything(tmp_path) == before


@pytest.mark.parametrize("option", ["--resume", "--reports-only"])
@pytest.mark.parametrize("name", ["sub-tiny/sub-tiny_pipe.tsv", "config.toml", "logs/manifest.tsv"])
def test_pipes_are_refused(results, capsys, option, name):
    (results / name).unlink(missing_ok=True)
    os.mkfifo(results / name)
    refused(main(["--out", str(results), option]), capsys, "is a pipe, socket or device")


@pytest.mark.parametrize("place", ["/dev/stdin", "../../etc/passwd", "sub-tiny/../../x", "a\\u0000b"])
def test_paths_of_a_manifest_stay_in_the_folder(results, capsys, place):
    manifest = ResultsFolder(results).manifest
    manifest.write_text(manifest.read_text() + f"{place}\t{'0' * 64}\n")
    refused(main(["--out", str(results), "--reports-only"]), capsys, "manifest.tsv is damaged")


@pytest.mark.parametrize("name", ["../../elsewhere", "/etc", "a/b", ""])
def test_names_in_a_summary_stay_in_the_folder(results, capsys, name):
    path = ResultsFolder(results).study
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "subjects": [name]}))
    ResultsFolder(results).manifest.unlink()
    refused(main(["--out", str(results), "--reports-only"]), capsys, "damaged")


def test_a_record_from_somebody_else_removes_nothing_outside(tiny, results, tmp_path):
    (tmp_path / "precious.txt").write_text("mine")

    digest = hashlib.sha256(b"mine").hexdigest()
    (results / "inside.txt").write_text("mine, but not as written")
    with (results / "logs" / "written.jsonl").open("a") as record:
        for place in ("../precious.txt", str(tmp_path / "precious.txt"), "inside.txt", "a\0b", "sub-tiny"):
            record.write("\n" + json.dumps([digest, place, ".writing-x"]))
        record.write("\n[[[[\nnull\n3\n" + '["a", "b"]')
    assert main(tiny.options(results, "--pairs", "face:house", "--quiet", "--overwrite")) == 0
    assert (tmp_path / "precious.txt").exists() and (results / "inside.txt").exists()


def test_what_a_killed_run_was_writing_is_swept_up(tiny, results, monkeypatch):
    waiting = results / "sub-tiny" / f".writing-{'0' * 32}"
    waiting.write_text("half")
    with (results / "logs" / "written.jsonl").open("a") as record:
        record.write("\n" + json.dumps(["0" * 64, "sub-tiny/a.tsv", waiting.name]) + '\n["cut sho')
    assert main(["--out", str(results), "--resume", "--quiet"]) == 0
    assert not waiting.exists()


def with_summary(sub, *place, value):
    """A participant's folder whose summary says something odd, and whose manifest knows the digest."""
    path, manifest = ResultsFolder(sub).study, ResultsFolder(sub).manifest
    content = last = json.loads(path.read_text())
    for name in place[:-1]:
        last = last[name]
    last[place[-1]] = value
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_text(json.dumps(content))
    manifest.write_text(manifest.read_text().replace(before, hashlib.sha256(path.read_bytes()).hexdigest()))


def test_odd_summaries_of_participants_end_the_group_and_the_page_in_a_sentence(
    both, dataset, tmp_path, capsys
):
    copy = shutil.copytree(both, tmp_path / "copy")
    group = [str(dataset.root), str(copy), "group", "--quiet"]
    with_summary(copy / "sub-01", "methods", 0, value=[])
    refused(bids_main(group), capsys, "a file of a participant")
    assert not list(copy.glob("group_*")) and not (copy / "group").exists()
    with_summary(copy / "sub-02", "tasks", 0, "negative_volumes", value=float("inf"))
    refused(main(["--out", str(copy / "sub-02"), "--reports-only"]), capsys, "missing or damaged")
