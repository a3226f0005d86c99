import json
import re
import shutil

import pytest

from mvpa_gamp.imaging.bids.confounds import check_columns, confound_columns
from mvpa_gamp.imaging.bids.layout import (
    find_layout,
    find_runs,
    participants,
    repetition_time_of,
    spaces_of,
    tasks_of,
)
from mvpa_gamp.imaging.bids.selection import Selection
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.names import natural, parse_name

# BIDS's order of the entities that the tree uses; a name out of this order is not BIDS.
_ORDER = ("sub", "ses", "task", "acq", "run", "space", "res", "desc")
BIDS_NAME = re.compile(
    "".join(rf"(?:{key}-[0-9A-Za-z]+_)?" for key in _ORDER)
    + r"(?:bold\.nii\.gz|bold\.json|events\.tsv|mask\.nii\.gz|timeseries\.tsv)"
)


@pytest.fixture
def tree(make_bids_tree, tmp_path):
    return make_bids_tree(tmp_path / "ds", ("01", "02"), shape=(5, 6, 5), n_runs=4)


def test_the_written_tree_is_named_by_bids(bids_tree):
    files = [path for path in bids_tree.root.rglob("*") if path.is_file()]
    others = [path.name for path in files if not BIDS_NAME.fullmatch(path.name)]
    assert set(others) == {"dataset_description.json"}
    assert len(files) > 3 * 5 * 5


def test_names_are_taken_apart(tmp_path):
    file = parse_name(tmp_path / "sub-01_ses-b_task-x_run-02_space-MNI_res-2_desc-preproc_bold.nii.gz")
    assert file is not None
    assert (file.suffix, file.extension, file.entities["space"]) == ("bold", "nii.gz", "MNI")
    assert file.without("desc", "space", "res") == {"sub": "01", "ses": "b", "task": "x", "run": "2"}
    for general, speaks in (
        ("task-x_bold.json", True),
        ("sub-01_bold.json", True),
        ("task-y_bold.json", False),
    ):
        assert parse_name(tmp_path / general).speaks_for(file) is speaks
    assert parse_name(tmp_path / "README") is None
    assert sorted(["run-10", "run-9", "run-1"], key=natural) == ["run-1", "run-9", "run-10"]


def test_derivatives_are_found_and_runs_count_on_across_sessions(tree):
    layout = find_layout(tree.root)
    assert layout.derivatives == tree.derivatives
    assert participants(layout) == ["01", "02"]
    assert tasks_of(layout, "01") == ["objectviewing"]
    assert spaces_of(layout, "01") == ["MNI152NLin2009cAsym"]
    runs = find_runs(layout, "02")
    names = [run.bold.name.split("_task")[0] for run in runs]
    assert names == [f"sub-02_ses-{s}" for s in ("01", "01", "02", "02")]
    for run in runs:
        stem = run.bold.name.split("_space-")[0]
        assert run.events.name == f"{stem}_events.tsv" and tree.derivatives not in run.events.parents
        assert run.mask.name.startswith(stem) and run.confounds.name.startswith(stem)
        assert run.metadata["RepetitionTime"] == 2.5
    assert repetition_time_of(runs, None) == 2.5


def test_raw_data_have_no_masks_and_no_confounds(tree):
    runs = find_runs(find_layout(tree.root, "none"), "01", Selection(tasks=("objectviewing",)))
    assert [run.bold.name for run in runs] == [f"{tree.stem('01', k)}_bold.nii.gz" for k in (1, 2, 3, 4)]
    assert all(run.mask is None and run.confounds is None for run in runs)


def test_the_nearest_sidecar_wins(tree):
    name = f"{tree.stem('01', 1)}_space-MNI152NLin2009cAsym_desc-preproc_bold.json"
    (tree.func("01", True) / name).write_text(json.dumps({"RepetitionTime": 2.0, "StartTime": 1.0}))
    (tree.root / "sub-01" / "sub-01_bold.json").write_text(json.dumps({"RepetitionTime": 3.0}))
    runs = find_runs(find_layout(tree.root), "01")
    assert [run.metadata["RepetitionTime"] for run in runs] == [2.0, 3.0, 3.0, 3.0]
    with pytest.raises(DataError, match=r"the same in all runs, got 2 s .*, 3 s"):
        repetition_time_of(runs, None)
    assert repetition_time_of(runs, 2.5) == 2.5


def test_events_may_be_inherited(tree):
    for path in tree.func("01").glob("*_events.tsv"):
        path.unlink()
    (tree.root / "task-objectviewing_events.tsv").write_text("onset\tduration\ttrial_type\n0\t5\tface\n")
    runs = find_runs(find_layout(tree.root), "01")
    assert {run.events.name for run in runs} == {"task-objectviewing_events.tsv"}


@pytest.mark.parametrize("content", [None, "{}", '{"RepetitionTime": "2.5"}', '{"RepetitionTime": 0}'])
def test_a_missing_or_silly_repetition_time_is_a_sentence(tree, content):
    sidecar = tree.root / "task-objectviewing_bold.json"
    sidecar.unlink() if content is None else sidecar.write_text(content)
    with pytest.raises(DataError, match=r"RepetitionTime in seconds .* Add it to the sidecar, or give --t-r"):
        repetition_time_of(find_runs(find_layout(tree.root), "01"), None)


def test_a_damaged_sidecar_is_a_sentence(tree):
    (tree.root / "task-objectviewing_bold.json").write_text("{")
    with pytest.raises(DataError, match="cannot be read as JSON"):
        find_runs(find_layout(tree.root), "01")


def test_what_is_not_there_is_named_with_what_is(tree, tmp_path):
    layout = find_layout(tree.root)
    with pytest.raises(DataError, match=r"--space: expected one that sub-01 has \(MNI152NLin2009cAsym\)"):
        find_runs(layout, "01", Selection(space="T1w"))
    with pytest.raises(
        DataError, match=r"--task: expected one that sub-01 has \(objectviewing\), got 'rest'"
    ):
        find_runs(layout, "01", Selection(tasks=("rest",)))
    with pytest.raises(DataError, match="has no folder sub-09"):
        find_runs(layout, "09")
    with pytest.raises(DataError, match="expected a folder"):
        find_layout(tmp_path / "nowhere")
    with pytest.raises(DataError, match="fMRIPrep's output folder"):
        find_layout(tree.root, tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="Is it a BIDS dataset"):
        participants(find_layout(tmp_path / "empty"))


def test_several_spaces_must_be_chosen_from(tree):
    for path in list(tree.func("01", True).glob("*space-*")):
        shutil.copy(path, path.with_name(path.name.replace("_desc-", "_res-2_desc-")))
    layout = find_layout(tree.root)
    with pytest.raises(DataError, match=r"has several \(MNI152NLin2009cAsym, MNI152NLin2009cAsym:res-2\)"):
        find_runs(layout, "01")
    plain = find_runs(layout, "01", Selection(space="MNI152NLin2009cAsym"))
    fine = find_runs(layout, "01", Selection(space="MNI152NLin2009cAsym:res-2"))
    assert all("_res-2_" in run.bold.name and "_res-2_" in run.mask.name for run in fine)
    assert not any("_res-2_" in run.bold.name or "_res-2_" in run.mask.name for run in plain)


def test_one_run_is_not_enough_and_echoes_are_no_runs(tree):
    raw = find_layout(tree.root, "none")
    for k in (2, 3, 4):
        (tree.func("01") / f"{tree.stem('01', k)}_bold.nii.gz").unlink()
    with pytest.raises(DataError, match=r"at least 2 runs of task objectviewing.*got 1"):
        find_runs(raw, "01")
    first = tree.func("01") / f"{tree.stem('01', 1)}_bold.nii.gz"
    first.rename(first.with_name(first.name.replace("_bold", "_echo-1_bold")))
    with pytest.raises(DataError, match="one echo or part of a run"):
        find_runs(raw, "01")


def test_confounds_are_sets_or_columns(tree):
    assert len(confound_columns(["motion6"])) == 6
    assert len(confound_columns(["motion24"])) == 24
    assert confound_columns(["trans_x,rot_z", "trans_x"]) == ("trans_x", "rot_z")
    assert confound_columns(["none"]) == ()
    with pytest.raises(DataError, match="none cannot be combined"):
        confound_columns(["none", "motion6"])
    table = next(tree.func("01", True).glob("*timeseries.tsv"))
    check_columns([table], confound_columns(["motion24"]))
    with pytest.raises(DataError, match=r"has no column trans_w and 1 more.*such as trans_"):
        check_columns([table], ("trans_w", "csf"))
