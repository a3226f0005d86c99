"""summary.json as a record: all of it comes back, another version is one sentence, damage is named."""

import json
import shutil

import pytest

from mvpa_gamp.results.files import DamagedFile, ResultsError, read_json
from mvpa_gamp.results.reader import read_results
from mvpa_gamp.results.summary import read_summary


def test_what_was_read_is_what_was_written(finished):
    path = finished / "summary.json"
    assert read_summary(path).as_json() == read_json(path)


def test_a_folder_of_another_version_is_refused_in_one_sentence(finished, tmp_path):
    out = shutil.copytree(finished, tmp_path / "older")
    path = out / "summary.json"
    path.write_text(json.dumps({**read_json(path), "version": "0.0.1"}))
    with pytest.raises(ResultsError, match=r"older was written by mvpa_gamp 0\.0\.1, this is .* --overwrite"):
        read_results(out)


@pytest.mark.parametrize("name", ["version", "data", "tasks"])
def test_a_record_without_what_every_run_writes_is_damaged(name, finished, tmp_path):
    path = tmp_path / "summary.json"
    path.write_text(
        json.dumps({key: value for key, value in read_json(finished / "summary.json").items() if key != name})
    )
    with pytest.raises(DamagedFile):
        read_summary(path)


def test_tables_are_read_once(finished, monkeypatch):
    results = read_results(finished)
    rows = results.table(results.subjects[0], "clusters")
    monkeypatch.setattr(
        "mvpa_gamp.results.reader.read_tsv", lambda path: pytest.fail(f"{path} is read again")
    )
    assert results.table(results.subjects[0], "clusters") is rows
