"""Which series are decoded: tasks, sessions, runs, filter files; sessions as folds."""

import json
import shutil

import numpy as np
import pytest

from mvpa_gamp.imaging.bids.layout import find_layout, find_runs
from mvpa_gamp.imaging.bids.selection import Selection, read_filters
from mvpa_gamp.imaging.bids.source import BidsSource
from mvpa_gamp.imaging.errors import DataError


@pytest.fixture(scope="module")
def tree(make_bids_tree, tmp_path_factory):
    """Participant 02 has two sessions of two tasks, the second a copy of the first under another name."""
    tree = make_bids_tree(tmp_path_factory.mktemp("ds"), ("02",), shape=(5, 6, 5), n_runs=4)
    for path in sorted(tree.root.rglob("*task-objectviewing*")):
        shutil.copy(path, path.with_name(path.name.replace("objectviewing", "localizer")))
    return tree


def names(tree, **wanted):
    runs = find_runs(find_layout(tree.root), "02", Selection(**wanted))
    return [run.bold.name.split("_space")[0].removeprefix("sub-02_") for run in runs]


def test_tasks_sessions_and_runs_are_chosen(tree):
    both = names(tree, tasks=("objectviewing", "localizer"))
    assert len(both) == 8 and both[:4] == [
        "ses-01_task-localizer_run-01", "ses-01_task-localizer_run-02",
        "ses-01_task-objectviewing_run-01", "ses-01_task-objectviewing_run-02",
    ]  # fmt: skip
    one = {"tasks": ("localizer",)}
    assert names(tree, **one, sessions=("02",)) == [f"ses-02_task-localizer_run-{k:02d}" for k in (1, 2)]
    assert names(tree, **one, sessions=("ses-02",)) == names(tree, **one, sessions=("02",))
    assert names(tree, **one, runs=("2",)) == [f"ses-{s}_task-localizer_run-02" for s in ("01", "02")]
    assert names(tree, **one, runs=("run-02",)) == names(tree, **one, runs=("2",))
    with pytest.raises(DataError, match=r"--task: sub-02 has several \(localizer, objectviewing\) and none"):
        names(tree)
    with pytest.raises(
        DataError, match=r"--session-label: expected some of those of sub-02 \(01, 02\), got '3'"
    ):
        names(tree, **one, sessions=("3",))
    with pytest.raises(DataError, match=r"--run-label: expected some of those of sub-02 \(1, 2\), got '7'"):
        names(tree, **one, runs=("1", "07"))


@pytest.mark.parametrize(
    ("query", "n"),
    [
        ({"task": "localizer"}, 4),
        ({"task": ["localizer"], "session": "02"}, 2),
        ({"task": "localizer", "run": [2]}, 2),
        ({"task": "localizer", "run": "02", "suffix": "bold", "datatype": "func"}, 2),
        ({"task": "localizer", "acquisition": None, "session": "*"}, 4),
    ],
)
def test_filter_files_are_those_of_fmriprep(tree, tmp_path, query, n):
    path = tmp_path / "filter.json"
    path.write_text(json.dumps({"bold": query, "t1w": {"session": "01"}}))
    assert len(names(tree, filters=read_filters(str(path)))) == n


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "cannot be read as JSON"),
        ('["bold"]', r'expected \{"bold": \{entity: value'),
        ('{"bold": {"subject": "02"}}', "got 'subject'. Remove it and give --participant-label"),
        ('{"bold": {"colour": "red"}}', "expected entities such as session, task, .*, got 'colour'"),
        (
            '{"bold": {"task": {"a": 1}}}',
            r"expected a text, a number, a list of them or null for task, got \{",
        ),
    ],
)
def test_a_filter_file_that_makes_no_sense_is_a_sentence(tmp_path, text, sentence):
    path = tmp_path / "filter.json"
    path.write_text(text)
    with pytest.raises(DataError, match=sentence):
        read_filters(str(path))


def test_a_filter_that_nothing_fits_is_named(tree):
    with pytest.raises(DataError, match=r"none of the 8 series of sub-02 matches \(acq: fast\)\. Change"):
        names(tree, filters={"acq": ("fast",)})


def test_sessions_can_be_held_out(tree):
    given = {"bids_dir": str(tree.root), "participant_label": "02", "confounds": ("none",)}
    given |= {"task": ("localizer",), "pairs": ("face:house",), "lag_trs": 2}
    runs, sessions = (BidsSource(**given, cv=cv).load() for cv in ("run", "session"))
    assert (runs.held_out, sessions.held_out) == ("run", "session")
    np.testing.assert_array_equal(sessions.runs, (runs.runs + 1) // 2)
    np.testing.assert_array_equal(sessions.X, runs.X)
    one = BidsSource(**given, cv="session", session_label=("01",))
    with pytest.raises(DataError, match=r"--cv session: expected runs of at least 2 sessions .*, got 01"):
        one.load()
    with pytest.raises(DataError, match="--cv: expected run, session, got 'day'"):
        BidsSource(**given, cv="day").load()
