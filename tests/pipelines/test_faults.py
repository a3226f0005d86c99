"""Damaged results folders: of a hundred faults every one ends in a sentence, or in results that are right."""

import json
import shutil
from collections import Counter

import numpy as np
import pytest

from mvpa_gamp.haxby import main
from mvpa_gamp.results.names import ResultsFolder
from pipelines.faults import folders as faults
from pipelines.faults import foreign, interruptions
from pipelines.faults.campaigns import Seed
from pipelines.faults.kept import Kept, write_results
from pipelines.faults.outcomes import NAMED, RIGHT


@pytest.fixture(scope="module")
def small(tiny, tmp_path_factory):
    """A finished study with stored fits and stored permutations."""
    out = tmp_path_factory.mktemp("small") / "results"
    given = ["--pairs", "face:house", "--methods", "svm", "--permutations", "3", "--quiet"]
    assert main(tiny.options(out, *given)) == 0
    return out


def test_a_hundred_faults_end_in_a_sentence_or_in_right_results(small):
    outcomes = list(faults.quick(small, 100, seed=0))
    assert not [each for each in outcomes if each.verdict == faults.ELSE]
    found = dict.fromkeys((faults.NAMED, faults.RIGHT), 0)
    for each in outcomes:
        found[each.verdict] += len(each.kinds)
    assert sum(found.values()) > 80 and min(found.values()) > 15, found


def test_the_judge_knows_a_wrong_result_and_raw_words(small, monkeypatch):
    rng = np.random.default_rng(0)
    fault = faults.Fault("summary.tsv", "cut")
    monkeypatch.setattr(faults, "decode", lambda options: 0)
    assert faults.try_faults(small, "--reports-only", [fault], rng).verdict == faults.ELSE
    monkeypatch.setattr(faults, "decode", lambda options: 1)
    assert faults.try_faults(small, "--reports-only", [fault], rng).verdict == faults.ELSE


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("summary.tsv", "flipped"),
        ("sub-tiny/sub-tiny_desc-analysed_mask.nii.gz", "cut"),
        ("sub-tiny/sub-tiny_contrast-faceMinusHouse_desc-svm_stat-weight_statmap.nii.gz", "emptied"),
        ("timings.tsv", "folder"),
        ("logs/manifest.tsv", "cut"),
    ],
)
def test_without_a_repair_the_page_names_the_file(small, tmp_path, name, how, capsys):
    copy = shutil.copytree(small, tmp_path / "copy")
    faults.damage(copy, faults.Fault(name, how), np.random.default_rng(3))
    assert main(["--out", str(copy), "--reports-only"]) == 2
    said = capsys.readouterr().err
    assert f"{copy / name} is damaged (" in said
    assert "the command of its run with --resume" in said


def test_a_manifest_that_lists_what_no_run_wrote(small, tmp_path, capsys):
    copy = shutil.copytree(small, tmp_path / "copy")
    manifest = ResultsFolder(copy).manifest
    manifest.write_text(manifest.read_text().replace("_confusion.tsv", "_confusioo.tsv"))
    assert main(["--out", str(copy), "--reports-only"]) == 2
    assert f"{manifest} is damaged (it lists 'sub-tiny/sub-tiny_confusioo.tsv'" in capsys.readouterr().err


def test_a_folder_without_manifest_is_read_file_by_file(small, tmp_path, capsys):
    copy = shutil.copytree(small, tmp_path / "copy")
    ResultsFolder(copy).manifest.unlink()
    image = next((copy / "sub-tiny").glob("*svm_stat-weight_statmap.nii.gz"))
    image.write_bytes(image.read_bytes()[:50])
    assert main(["--out", str(copy), "--reports-only"]) == 2
    assert f"{image} is damaged (it cannot be read as an image)" in capsys.readouterr().err


def test_damaged_settings_are_given_again(small, tiny, tmp_path, capsys):
    copy = shutil.copytree(small, tmp_path / "copy")
    config = copy / "config.toml"
    text = config.read_text()
    config.write_text(text.replace("permutations = 3", "permutations = 2"))  # valid, but not what ran
    assert main(["--out", str(copy), "--resume"]) == 2
    said = capsys.readouterr().err
    assert f"{config} is damaged, or was edited" in said and "Give the options of that run again" in said
    given = ["--pairs", "face:house", "--methods", "svm", "--permutations", "3", "--quiet"]
    assert main([*tiny.options(copy, *given), "--resume"]) == 0
    assert config.read_text() == text
    assert ResultsFolder(copy).manifest.read_bytes() == ResultsFolder(small).manifest.read_bytes()


def test_run_times_cut_at_the_end_of_a_line(finished, tmp_path, capsys):
    copy = shutil.copytree(finished, tmp_path / "copy")
    timings = ResultsFolder(copy).timings
    lines = timings.read_text().splitlines(keepends=True)
    for kept in (1, 3, len(lines) - 1):
        timings.write_text("".join(lines[:kept]))
        assert main(["--out", str(copy), "--reports-only"]) == 2
        assert f"{timings} is damaged" in capsys.readouterr().err


def test_an_edited_description_is_kept_and_told(small, tmp_path, capsys):
    copy = shutil.copytree(small, tmp_path / "copy")
    description = ResultsFolder(copy).description
    description.write_text(description.read_text().replace("{", '{\n  "Authors": ["N. N."],', 1))
    assert main(["--out", str(copy), "--reports-only"]) == 0
    assert "dataset_description.json is not as its run wrote it" in capsys.readouterr().err
    assert "N. N." in description.read_text()


def test_what_others_put_into_a_folder_is_never_touched():
    outcomes = list(foreign.campaign(6, seed=3))
    assert len(outcomes) == 6 and not [each for each in outcomes if each.verdict == faults.ELSE]
    assert {each.verdict for each in outcomes} == {faults.NAMED, faults.RIGHT}


def test_the_judge_of_foreign_folders_knows_a_run_that_removes_everything(small, monkeypatch):
    def careless(options):
        out = options[options.index("--out") + 1]
        shutil.rmtree(out)
        shutil.copytree(small, out)
        return 0

    monkeypatch.setattr(foreign, "decode", careless)
    monkeypatch.setattr(foreign, "_CHANGES", {"files of others": foreign._files})
    found = foreign._in_folder(small, [], np.random.default_rng(0))
    assert found.verdict == faults.ELSE and "files of others are gone" in found.said


def test_the_judge_of_interruptions_knows_locks_and_raw_words(tmp_path):
    said = "mvpa_gamp.haxby: error: interrupted by SIGTERM. Continue with the same command and --resume."
    assert not interruptions._wrong(143, said, 15, tmp_path, set())
    assert "Traceback" in interruptions._wrong(143, "Traceback " + said, 15, tmp_path, set())
    assert "exit code 1" in interruptions._wrong(1, said, 15, tmp_path, set())
    ResultsFolder(tmp_path).lock.touch()
    assert "a lock is left" in interruptions._wrong(143, said, 15, tmp_path, set())


def test_counts_are_written_with_commit_and_command(tmp_path):
    kept = Kept(tmp_path / "counts.jsonl", "python", 7)
    counted = {
        ("`solve`", "arrays"): Counter({NAMED: 2}),
        ("`solve`", "models"): Counter({NAMED: 1, RIGHT: 4}),
    }
    kept.add(0, Seed(counted, [], 1.0))
    write_results(tmp_path, kept, 1)
    lines = (tmp_path / "faults.csv").read_text().splitlines()
    assert lines[1:] == ["solve,arrays,2,2,0,0", "solve,models,5,1,4,0", "all calls,,7,3,4,0"]
    made = json.loads((tmp_path / "faults.json").read_text())
    assert made["tried"] == {"python": 7} and made["provenance"]["commit"] == kept.commit
    assert made["provenance"]["command"] == "python -m pipelines.faults all"
