"""A results folder is a BIDS derivative: BIDS's own validator, where it is installed, finds no error."""

import json
import shutil
import subprocess

import pytest

from mvpa_gamp.results.files import read_json
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.summary import write_description

PROGRAM = shutil.which("bids-validator-deno")


def test_what_is_written(tmp_path):
    folder = ResultsFolder(tmp_path)
    write_description(folder, None, {"raw": "file:///data"})
    about = read_json(folder.description)
    assert about["DatasetType"] == "derivative" and about["DatasetLinks"] == {"raw": "file:///data"}
    ignored = folder.ignored.read_text().splitlines()
    assert {"figures", "logs", "work", "*.html", "sub-*"} <= set(ignored)
    folder.readme.write_text("mine")
    write_description(folder, "PHANTOM")
    assert folder.readme.read_text() == "mine"  # what a user wrote stays
    assert read_json(folder.description)["Name"].startswith("PHANTOM")


@pytest.mark.skipif(PROGRAM is None, reason="needs bids-validator-deno (pip install bids-validator-deno)")
def test_the_validator_finds_no_error(phantom_results):
    done = subprocess.run(
        [str(PROGRAM), str(phantom_results), "--format", "json"], capture_output=True, text=True, check=False
    )
    issues = json.loads(done.stdout)["issues"]["issues"]
    assert [each for each in issues if each["severity"] == "error"] == []
