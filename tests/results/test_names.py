from pathlib import Path

from mvpa_gamp.imaging.brainmaps import sidecar_path
from mvpa_gamp.report.markup import cell, paragraph, table
from mvpa_gamp.results.names import ResultsFolder


def test_maps_have_bids_names_and_sidecars():
    path = ResultsFolder(Path("out")).statmap("1", "catMinusShoe", "gamp-bg-lr", "pip")
    assert path.as_posix() == "out/sub-1/sub-1_contrast-catMinusShoe_desc-gampBgLr_stat-pip_statmap.nii.gz"
    assert sidecar_path(path).name == path.name.replace(".nii.gz", ".json")


def test_only_names_of_this_package_count_as_its_own(tmp_path):
    for name in ("summary.tsv", "thesis.txt", "sub-1", "work", "photos"):
        (tmp_path / name).mkdir()
    own = {path.name for path in ResultsFolder(tmp_path).own_entries()}
    assert own == {"summary.tsv", "sub-1", "work"}


def test_markup_escapes_everything_that_is_text():
    evil = '<script>alert("x")</script>&'
    for html in (paragraph(evil), cell(evil), cell("1", value=evil), table([cell(evil)], [cell(evil)])):
        assert "<script" not in html
        assert '"x"' not in html
