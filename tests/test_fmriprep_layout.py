"""fMRIPrep's output as labs have it, through the command: two sessions, two tasks, outliers of every run."""

import html
import json
import re
import shutil
from pathlib import Path
from urllib.parse import urlparse

import nibabel
import numpy as np
import pytest
from fmriprep_tree import SPACE, T_R, UNSTEADY, VERSION, outlier_volumes, write_fmriprep_tree
from nilearn.signal import clean
from sklearn.svm import SVC

from mvpa_gamp import __version__
from mvpa_gamp.__main__ import main
from mvpa_gamp.results.files import number, read_tsv
from mvpa_gamp.study import run as study_run

pytestmark = pytest.mark.whole

IN_MNI = f"space-{SPACE}_res-2_"
LAG, LENGTH = 2, 41  # volumes
ASKED = ("--space", SPACE, "--task", "faces", "--task", "objects", "--contrasts", "face:house")
CLEANED = ("--confounds", "motion6", "motion_outlier*")
QUICK = ("--methods", "svm", "gamp-bg-pr", "--quiet")
NAME = re.compile(
    r"(?:sub-[0-9A-Za-z]+_)?(?:ses-[0-9A-Za-z]+_)?(?:task-[0-9A-Za-z]+_)?(?:space-[0-9A-Za-z]+_)?"
    r"(?:res-[0-9A-Za-z]+_)?(?:contrast-[0-9A-Za-z]+_)?(?:desc-[0-9A-Za-z]+_)?(?:stat-[a-z]+_)?"
    r"(?:statmap|mask|boldref|folds|predictions|jaccard|consistency|confusion|clusters)\.(?:nii\.gz|json|tsv)"
)


def run(tree, out, *more):
    return main([str(tree.root), str(out), "participant", *more])


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return write_fmriprep_tree(tmp_path_factory.mktemp("fmriprep") / "ds")


@pytest.fixture(scope="module")
def done(tree, tmp_path_factory):
    """Both participants, all eight runs of each, and their group."""
    out = tmp_path_factory.mktemp("results") / "out"
    assert run(tree, out, *ASKED, *CLEANED, *QUICK) == 0
    assert main([str(tree.root), str(out), "group", "--quiet"]) == 0
    return out


def text_of(page: Path) -> str:
    """A page's words."""
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", page.read_text())).split())


def dropped(series) -> set[int]:
    """Volumes of a run that take no part, by the columns that the tree has written."""
    return {*range(UNSTEADY), *outlier_volumes(series, LENGTH)}


def labelled(tree, series) -> dict[int, str]:
    """The volumes of a run that lie in an event of a face or house, two volumes later."""
    path = tree.func(series, derived=False) / f"{series.stem}_events.tsv"
    rows = [line.split("\t") for line in path.read_text().splitlines()[1:]]
    shown = [(float(a), float(b), name) for a, b, name in rows if name in ("face", "house")]
    found = {}
    for volume in range(LENGTH):
        time = (volume - LAG) * T_R
        for onset, duration, name in shown:
            if onset - 1e-3 <= time < onset + duration - 1e-3:
                found[volume] = name
    return found


def test_names_carry_what_all_runs_share(done):
    for label in ("01", "02"):
        own = [path.name for path in (done / f"sub-{label}").glob("sub-*")]
        assert len(own) > 30 and all(name.startswith(f"sub-{label}_{IN_MNI}") for name in own)
        assert all(NAME.fullmatch(name) for name in own)
    together = [path.name for path in (done / "group").iterdir()]
    assert all(name.startswith(IN_MNI) and NAME.fullmatch(name) for name in together)
    assert f"{IN_MNI}contrast-faceMinusHouse_desc-gampBgPrMean_stat-pip_statmap.nii.gz" in together


def test_one_session_of_one_task_stands_in_the_names(tree, tmp_path):
    out = tmp_path / "out"
    asked = ("--space", f"{SPACE}:res-2", "--task", "faces", "--session-label", "ses-pre")
    who = ("--participant-label", "01", "--contrasts", "face:house", "--methods", "svm", "--quiet")
    assert run(tree, out, *asked, *who) == 0
    own = [path.name for path in (out / "sub-01").glob("sub-*")]
    assert own and all(name.startswith(f"sub-01_ses-pre_task-faces_{IN_MNI}") for name in own)
    assert all(NAME.fullmatch(name) for name in own)


def test_a_filter_file_may_choose_task_session_and_space(tree, tmp_path):
    filters = tmp_path / "filter.json"
    query = {"session": "pre", "task": "faces", "space": SPACE, "resolution": 2, "suffix": "bold"}
    filters.write_text(json.dumps({"bold": query, "t1w": {"session": "pre"}}))
    out = tmp_path / "out"
    who = ("--participant-label", "01", "--contrasts", "face:house", "--methods", "svm", "--quiet")
    assert run(tree, out, "--bids-filter-file", str(filters), *who) == 0
    assert list((out / "sub-01").glob(f"sub-01_ses-pre_task-faces_{IN_MNI}desc-analysed_mask.nii.gz"))


def test_left_out_volumes_are_counted_and_predict_nothing(done, tree):
    series = tree.series("01")
    outliers = sum(each.outliers for each in series)
    assert {each.outliers for each in series} == {0, 1, 2, 3} and outliers == 12
    study = json.loads((done / "sub-01" / "summary.json").read_text())
    total = 8 * LENGTH
    assert study["data"]["notes"][:2] == [
        f"{8 * UNSTEADY} of {total} volumes precede the steady state and were left out.",
        f"{outliers} of {total} volumes have too much motion and were left out.",
    ]
    rows = read_tsv(next((done / "sub-01").glob("*_desc-svm_predictions.tsv")))
    for place, each in enumerate(series, start=1):
        mine = {
            int(row["volume"]) - (place - 1) * LENGTH: row["true"] for row in rows if row["run"] == str(place)
        }
        shown = {volume: name for volume, name in labelled(tree, each).items() if volume not in dropped(each)}
        assert mine == shown
    lost = [v for each in series for v in labelled(tree, each) if v in dropped(each)]
    assert lost  # some outliers lie in events: the count above is no accident


def test_numbers_are_those_of_nilearn_and_scikit_learn(done, tree):
    """Cleaning by nilearn and a support vector machine by scikit-learn, written out by hand."""
    X, y, runs = [], [], []
    for place, each in enumerate(tree.series("01")):
        bold = nibabel.load(tree.bold(each))
        mask = (
            np.asarray(nibabel.load(str(tree.bold(each)).replace("preproc_bold", "brain_mask")).dataobj) > 0
        )
        table = (tree.func(each) / f"{each.stem}_desc-confounds_timeseries.tsv").read_text().splitlines()
        names = table[0].split("\t")
        motion = [names.index(f"{kind}_{axis}") for kind in ("trans", "rot") for axis in "xyz"]
        confounds = np.array([[float(line.split("\t")[k]) for k in motion] for line in table[1:]])
        kept = np.array([v for v in range(LENGTH) if v not in dropped(each)])
        values = np.asarray(bold.dataobj, dtype=float)[mask].T
        cleaned = clean(
            values, confounds=confounds, sample_mask=kept, detrend=True, standardize="zscore_sample"
        )
        shown = labelled(tree, each)
        rows = [k for k, volume in enumerate(kept) if volume in shown]
        X.append(cleaned[rows])
        y += [shown[kept[k]] for k in rows]
        runs += [place] * len(rows)
    X, y, runs = np.concatenate(X), np.array(y), np.array(runs)
    errors = []
    for place in np.unique(runs):
        held_out = runs == place
        model = SVC(kernel="linear", C=1.0).fit(X[~held_out], y[~held_out])
        errors.append(100 * np.mean(model.predict(X[held_out]) != y[held_out]))
    row = next(r for r in read_tsv(done / "sub-01" / "summary.tsv") if r["method"] == "svm")
    assert number(row["error_percent"]) == pytest.approx(np.mean(errors), abs=1e-3)  # as printed
    assert int(row["folds"]) == 8


def test_the_group_is_made_of_both_participants(done):
    (row,) = [r for r in read_tsv(done / "group_summary.tsv") if r["method"] == "gamp-bg-pr"]
    own = [
        100 - number(r["error_percent"])
        for label in ("01", "02")
        for r in read_tsv(done / f"sub-{label}" / "summary.tsv")
        if r["method"] == "gamp-bg-pr" and r["contrast"] != "average"
    ]
    assert row["participants"] == "2"
    assert number(row["accuracy_percent"]) == pytest.approx(np.mean(own), abs=1e-3)
    name = f"{IN_MNI}contrast-faceMinusHouse_desc-gampBgPr{{}}_stat-pip_statmap.nii.gz"
    mean = np.asarray(nibabel.load(done / "group" / name.format("Mean")).dataobj)
    each = [
        np.asarray(nibabel.load(done / f"sub-{label}" / f"sub-{label}_{name.format('')}").dataobj)
        for label in ("01", "02")
    ]
    inside = np.asarray(nibabel.load(done / "group" / f"{IN_MNI}desc-common_mask.nii.gz").dataobj) > 0
    np.testing.assert_allclose(mean[inside], np.mean(each, axis=0)[inside], rtol=1e-5, atol=1e-7)
    assert inside.any() and mean[inside].any() and not mean[~inside].any()


def test_methods_texts_name_space_resolution_and_versions(done):
    own = text_of(done / "sub-01" / "index.html")
    assert f"preprocessed with fMRIPrep {VERSION}, 8 runs of tasks faces and objects in sessions" in own
    assert f"space: {SPACE}, res-2, voxels of 2 x 2 x 2 mm" in own
    assert "16 volumes before the steady state and 12 volumes with too much motion were excluded" in own
    assert f"Analyses used mvpa_gamp {__version__}" in own
    together = text_of(done / "index.html")
    said = f"Volumes of 2 participants were preprocessed with fMRIPrep {VERSION} and decoded with mvpa_gamp"
    assert f"{said} {__version__} (space: {SPACE}, res-2, voxels of 2 x 2 x 2 mm):" in together
    assert "32 volumes before the steady state and 24 volumes with too much motion were excluded" in together
    scored = "z-scored within each run (over all volumes of each run, those of other conditions and of rest"
    assert f"were regressed out; time series were {scored} included); labels were shifted by" in together


@pytest.mark.parametrize("place", ["sub-01", "group"])
def test_sidecars_say_where_maps_come_from(done, place):
    links = json.loads((done / "dataset_description.json").read_text())["DatasetLinks"]
    folders = {name: Path(urlparse(url).path) for name, url in links.items()} | {"": done}
    maps = sorted((done / place).glob("*.nii.gz"))
    assert maps
    for path in maps:
        about = json.loads(Path(str(path).replace(".nii.gz", ".json")).read_text())
        assert about["GeneratedBy"] == [{"Name": "mvpa_gamp", "Version": __version__}]
        assert about["Software"]["fMRIPrep"] == VERSION and about["Software"]["mvpa_gamp"] == __version__
        assert about["Space"] == SPACE and about["Resolution"] == "res-2, voxels of 2 x 2 x 2 mm"
        assert about["Sources"] and about["SpatialReference"]
        for uri in (*about["Sources"], about["SpatialReference"]):
            _, name, inside = uri.split(":", 2)
            assert (folders[name] / inside).is_file(), uri
        if path.name.endswith("_statmap.nii.gz"):
            assert about["Threshold"]
    if place == "sub-01":
        mask = next((done / place).glob("*gampBgPrSelected_mask.json"))
        about = json.loads(mask.read_text())
        assert about["Threshold"] == "posterior inclusion probability above 0.5"
        assert about["Processing"]["confounds"] == [f"{k}_{a}" for k in ("trans", "rot") for a in "xyz"]
        assert about["Processing"]["scrubbed_volumes"] == 12 and about["Processing"]["lag_trs"] == LAG
        weight = next((done / place).glob("*desc-gampBgPr_stat-weight_statmap.json"))
        assert json.loads(weight.read_text())["Threshold"] == "none"


# --- sessions held out, and what cannot be


def test_a_session_is_held_out_with_two_sessions_where_nothing_is_tuned_inside(tree, tmp_path):
    out = tmp_path / "out"
    who = ("--participant-label", "01", "--samples", "trial", "--cv", "session")
    more = ("--contrasts", "face:house", "face:cat", *QUICK)
    assert run(tree, out, "--space", SPACE, "--task", "faces", "objects", *who, *more) == 0
    (folds,) = (out / "sub-01").glob("*_contrast-faceMinusHouse_desc-svm_folds.tsv")
    assert [row["held_out_run"] for row in read_tsv(folds)] == ["1", "2", "n/a"]
    page = text_of(out / "sub-01" / "index.html")
    assert "24 single trials in 2 sessions entered the analysis" in page
    assert "Cross-validation leaves one session out at a time" in page
    assert "each trial by its own model" in page and "Mumford" in page
    assert "Session 1 is ses-post, 2 is ses-pre: sessions are in the order of their names" in page
    assert "1 = ses-post task-faces run-01, 2 = ses-post" in page
    assert "detrended" not in page and "labels were not shifted" not in page
    assert re.search(r"sessions\s+2\s", page) and not re.search(r"\sruns\s+2\s", page)


def test_a_session_that_one_participant_lacks_is_no_error_of_the_command(tree, tmp_path, capsys):
    """It is skipped, to be told on the group's page; what nobody has is refused."""
    copy = type(tree)(shutil.copytree(tree.root, tmp_path / "ds"), tree.participants)
    for root in (copy.root, copy.derivatives):
        shutil.rmtree(root / "sub-02" / "ses-post")
    given = ("--space", SPACE, "--task", "faces", "--contrasts", "face:house", "--methods", "svm")
    who = ("--participant-label", "02", "--session-label", "post")
    assert run(copy, tmp_path / "out", *given, *who) == 1
    assert (tmp_path / "out" / "logs" / "sub-02_skipped.json").is_file()
    assert run(copy, tmp_path / "other", *given, *who[:-1], "never") == 2
    assert not (tmp_path / "other").exists()


REFUSED = {
    "nested tuning with two sessions": (
        ("--cv", "session", "--methods", "l1-lr-cv"),
        r"--methods l1-lr-cv: tuning by nested cross-validation needs at least 3 sessions, sub-01 has 2\..*"
        r"This applies to all 2 participants",
    ),
    "one session held out": (
        ("--cv", "session", "--session-label", "pre"),
        r"--cv session: expected runs of at least 2 sessions \(ses-\), got pre\.",
    ),
    "no such task": (("--task", "music"), r"--task: expected one that .* \(faces, objects\), got 'music'"),
    "no such session": (("--session-label", "07"), r"--session-label: expected .* \(post, pre\), got '07'"),
    "no such run": (("--run-label", "7"), r"--run-label: expected some .* \(1, 2\), got '7'"),
    "no such space": (("--space", "MNI305"), r"--space: expected one that .*, got 'MNI305'"),
    "no such resolution": (("--space", f"{SPACE}:res-1"), r"--space: expected one that .*, got .*res-1'"),
    "no filter file": (("--bids-filter-file", "no.json"), r"--bids-filter-file no\.json cannot be read"),
    "a filter for nothing": (("--bids-filter-file", "FILTER"), r"--bids-filter-file: none of the .* matches"),
    "no such column": (("--confounds", "csv"), r"--confounds: .* has no column csv"),
    "no column that matches": (("--confounds", "eye*"), r"--confounds: no run .* matches 'eye\*'"),
    "columns and a strategy": (
        ("--confounds", "csf", "--confounds-strategy", "simple"), r"both choose columns\. Give one of them"
    ),
    "a strategy without its volumes": (
        ("--confounds-strategy", "ica_aroma"), r"expected \*_desc-smoothAROMAnonaggr_bold\.nii\.gz"
    ),
    "a lag of modelled trials": (("--samples", "trial", "--lag-trs", "2"), r"--lag-trs does not apply"),
    "a trial model of volumes": (("--trial-model", "lss"), r"--trial-model is for --samples trial, got tr"),
    "an unknown response": (("--samples", "trial", "--hrf-model", "box"), r"--hrf-model: expected one of"),
    "betas without a folder": (("--samples", "betas"), r"--samples betas and --betas FOLDER belong together"),
    "a folder without betas": (("--betas", "FOLDER"), r"--betas \S*: expected maps .* found none of 0"),
    "no folder of betas": (
        ("--samples", "betas", "--betas", "nowhere"), r"--betas .*nowhere: expected a folder of maps"
    ),
    "no such atlas": (("--atlas", "nowhere.nii.gz"), r"atlas 'nowhere.nii.gz': expected a file"),
    "labels without an atlas": (("--atlas-labels", "names.tsv"), r"--atlas-labels"),
    "regions without an atlas": (("--by-region",), r"--by-region"),
    "a file to work in": (("--work-dir", "FILTER"), r"--work-dir .* cannot be written: .* is a file"),
}  # fmt: skip


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_is_one_sentence_and_writes_nothing(tree, tmp_path, capsys, why):
    more, sentence = REFUSED[why]
    filters = tmp_path / "filter.json"
    filters.write_text(json.dumps({"bold": {"session": "never"}}))
    given = ["--space", SPACE, "--task", "faces", "objects", "--contrasts", "face:house", "--methods", "svm"]
    if more[0] in given:
        place = given.index(more[0])
        end = next((k for k in range(place + 1, len(given)) if given[k].startswith("--")), len(given))
        del given[place:end]
    out = tmp_path / "out"
    code = run(
        tree,
        out,
        *given,
        *({"FILTER": str(filters), "FOLDER": str(tmp_path)}.get(text, text) for text in more),
    )
    said = capsys.readouterr().err.strip()
    assert code == 2 and len(said.splitlines()) == 1, said
    assert said.startswith("mvpa_gamp: error: ") and re.search(sentence, said), said
    assert not out.exists()


# --- a folder for fits


def test_fits_are_stored_where_work_dir_says_and_found_again(tree, tmp_path, monkeypatch):
    monkeypatch.setattr(study_run, "build_report", _not_drawn)
    out, work = tmp_path / "out", tmp_path / "scratch" / "work"
    given = (*ASKED, *CLEANED, "--participant-label", "01", "--methods", "svm", "--quiet")
    assert run(tree, out, *given, "--work-dir", str(work)) == 0
    (fits,) = work.rglob("*_fits.npz")
    assert not (out / "sub-01" / "work").exists()
    before, summary = fits.stat().st_mtime_ns, (out / "sub-01" / "summary.tsv").read_bytes()
    assert run(tree, out, "--resume", "--quiet", "--participant-label", "01") == 0  # without saying it again
    assert fits.stat().st_mtime_ns == before and not (out / "sub-01" / "work").exists()
    assert (out / "sub-01" / "summary.tsv").read_bytes() == summary
    elsewhere = tmp_path / "elsewhere" / "out"
    assert run(tree, elsewhere, *given, "--work-dir", str(work)) == 0
    assert len(list(work.rglob("*_fits.npz"))) == 2  # folders of one name do not share fits
    shutil.rmtree(work)  # scratch disks are emptied
    again = ("--resume", "--quiet", "--participant-label", "01")
    assert run(tree, out, *again) == 2
    assert run(tree, out, *again, "--work-dir", str(work)) == 0
    assert fits.is_file() and (out / "sub-01" / "summary.tsv").read_bytes() == summary
    mine = fits.with_name("mine_fits.npz")
    mine.touch()
    assert run(tree, out, *given, "--overwrite", "--work-dir", str(work)) == 0
    assert not fits.exists() and mine.exists() and len(list(work.rglob("sub-01*_fits.npz"))) == 1


def _not_drawn(root: Path) -> Path:
    (root / "index.html").write_text("not drawn")
    return root / "index.html"


def test_the_tree_differs_between_runs_as_it_says(tree):
    assert [each.session for each in tree.series("01")] == ["post"] * 4 + ["pre"] * 4
    headers = {
        (tree.func(each) / f"{each.stem}_desc-confounds_timeseries.tsv").read_text().splitlines()[0]
        for each in tree.series("01")
    }
    assert len(headers) == 4
