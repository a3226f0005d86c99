"""Nothing made from the phantom can pass for real data: it says so in its name or inside, whatever it is."""

import json
import re

import pytest

from mvpa_gamp.haxby import main
from mvpa_gamp.imaging.samples import PHANTOM_BANNER
from mvpa_gamp.results.files import read_tsv

pytestmark = pytest.mark.whole

VERSIONS = "environment.json"  # of Python and packages: the same for any data


def unmarked(root):
    """Files that have the word phantom neither in their name nor inside."""
    files = [path for path in root.rglob("*") if path.is_file() and path.name != VERSIONS]
    assert len(files) > 30
    return [
        path.relative_to(root).as_posix()
        for path in files
        if "phantom" not in path.name.lower() and b"phantom" not in path.read_bytes().lower()
    ]


def test_every_file_of_the_phantom_says_so(phantom_results):
    assert unmarked(phantom_results) == []


@pytest.fixture(scope="module")
def inferred(tmp_path_factory):
    """A phantom with everything else that a study can write."""
    out = tmp_path_factory.mktemp("inferred") / "results"
    options = ["--phantom", "--phantom-shape", "9", "11", "9", "--pairs", "face:house", "--fold-maps"]
    more = ["--methods", "gamp-bg-lr", "--permutations", "19", "--max-inclusion", "--fdr", "0.2"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        assert main([*options, *more, "--learning-curve", "--out", str(out), "--quiet"]) == 0
    return out


@pytest.mark.slow
def test_so_do_files_of_inference(inferred):
    assert unmarked(inferred) == []


def test_a_file_without_the_word_would_be_found(phantom_results, tmp_path):
    for path in phantom_results.rglob("*.tsv"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    for k in range(30):
        (tmp_path / f"phantom{k}").touch()
    (tmp_path / "table.tsv").write_text("a\tb\n")
    assert unmarked(tmp_path) == ["table.tsv"]


@pytest.mark.parametrize("which", ["phantom_results", pytest.param("inferred", marks=pytest.mark.slow)])
def test_the_banner_is_inside_of_all_that_is_copied_alone(which, request):
    root = request.getfixturevalue(which)
    page = (root / "index.html").read_text(encoding="utf-8")
    assert re.search(r"<title>[^<]*PHANTOM[^<]*</title>", page)
    assert f"{PHANTOM_BANNER}" in re.search(r"<header>.*?</header>", page, flags=re.DOTALL)[0]
    for name in ("summary.json", "dataset_description.json"):
        assert PHANTOM_BANNER in json.loads((root / name).read_text(encoding="utf-8")).values(), name
    sidecars = list((root / "sub-phantom").glob("*.json"))
    assert sidecars
    for path in sidecars:
        assert json.loads(path.read_text(encoding="utf-8")).get("Phantom") == PHANTOM_BANNER, path.name
    figures = list((root / "figures").glob("*.svg"))
    assert figures
    for path in figures:
        assert PHANTOM_BANNER in path.read_text(encoding="utf-8"), path.name
    for name in ("summary.tsv", "timings.tsv"):
        assert {row["subject"] for row in read_tsv(root / name)} == {"phantom"}, name
