import re
from pathlib import Path

import pytest

from mvpa_gamp.imaging.brainmaps import sidecar_path
from mvpa_gamp.imaging.names import shared_entities
from mvpa_gamp.report.html import Renderer, cell, method_cell, table
from mvpa_gamp.results.names import ResultsFolder, is_own_name


def test_maps_have_bids_names_and_sidecars():
    path = ResultsFolder(Path("out")).statmap("1", "catMinusShoe", "gamp-bg-lr", "pip")
    assert path.as_posix() == "out/sub-1/sub-1_contrast-catMinusShoe_desc-gampBgLr_stat-pip_statmap.nii.gz"
    assert sidecar_path(path).name == path.name.replace(".nii.gz", ".json")


def test_names_carry_the_entities_of_the_input_in_the_order_of_bids():
    entities = {"res": "2", "space": "MNI152NLin6Asym", "task": "rest", "ses": "01"}
    folder = ResultsFolder(Path("out/sub-1"), entities)
    stem = "ses-01_task-rest_space-MNI152NLin6Asym_res-2"
    assert folder.mask("1") == Path(f"out/sub-1/sub-1_{stem}_desc-analysed_mask.nii.gz")
    assert (
        folder.cell_table("1", "aMinusB", "svm", "folds").name
        == f"sub-1_{stem}_contrast-aMinusB_desc-svm_folds.tsv"
    )
    group = ResultsFolder(Path("out"), entities)
    assert group.group_mask == Path(f"out/group/{stem}_desc-common_mask.nii.gz")
    name = f"{stem}_contrast-aMinusB_desc-svmMean_stat-pip_statmap.nii.gz"
    assert group.group_map("aMinusB", "svmMean", "pip") == Path("out/group") / name
    assert group == ResultsFolder(Path("out"), entities) and hash(group) == hash(ResultsFolder(Path("out")))


def test_entities_that_differ_between_files_are_not_shared():
    one = {"sub": "1", "ses": "01", "task": "a", "run": "1", "space": "T1w", "desc": "preproc"}
    assert shared_entities([one, {**one, "ses": "02", "run": "2"}]) == {"task": "a", "space": "T1w"}
    assert shared_entities([one, {"sub": "1", "task": "a"}]) == {"task": "a"}


def test_only_names_of_this_package_count_as_its_own():
    names = ("summary.tsv", "thesis.txt", "sub-1", "work", "photos", "group", "group_summary.tsv")
    assert [name for name in names if is_own_name(name)] == [
        "summary.tsv", "sub-1", "work", "group", "group_summary.tsv",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["../x", "a/b", "/etc", "a\\b", "a\0b"])
def test_names_lead_to_no_other_folder(tmp_path, name):
    folder = ResultsFolder(tmp_path)
    for make in (folder.figure, folder.mask, lambda name: folder.cell_table("1", name, "svm", "folds")):
        with pytest.raises(ValueError, match="is no name of a file"):
            make(name)


def test_markup_escapes_everything_that_is_text():
    evil = '<script>alert("x")</script>&'
    made = table([evil], [[cell(evil)], [cell("1", value=evil, title=evil)], [method_cell("svm", evil)]])
    html = Renderer(Path(), True, w=None).section("groups", {"table": made, "cautions": [evil]})
    assert "<script" not in html and '"x"' not in html and html.count("&lt;script&gt;") == 7


_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)


def test_names_are_names_on_windows_too(finished):
    """No reserved name or letter, and room for a folder's own name within 260 letters."""
    for path in finished.rglob("*"):
        place = path.relative_to(finished)
        assert len(str(place)) < 150, place
        for part in place.parts:
            assert not _RESERVED.fullmatch(part) and not set(part) & set('<>:"|?*\\'), place
            assert not part.endswith((".", " ")), place
