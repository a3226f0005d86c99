"""Single-trial maps of other programs: what GLMsingle and nilearn keep, exported as docs/bids.md says."""

import re
from pathlib import Path

import nibabel
import numpy as np
import pytest
from nilearn.image import concat_imgs

from mvpa_gamp.__main__ import main
from mvpa_gamp.imaging.bids.betas import BetasSource
from mvpa_gamp.results.files import read_tsv

DOCS = Path(__file__).parents[3] / "docs" / "bids.md"
NAMES = ("face", "house", "cat")
ORDER = [0, 1, 2, 1, 0, 2, 0, 1, 2, 2, 1, 0, 0, 1, 2]  # conditions of the trials, in the order of time
RUNS = [1] * 4 + [2] * 6 + [3] * 5
STEM = "sub-01_task-objects_space-T1w_desc-glmsingle_stat-effect_statmap"


@pytest.fixture
def dataset(tmp_path):
    """A dataset of one participant without series, and a mask on the grid of its maps."""
    (tmp_path / "ds" / "sub-01" / "func").mkdir(parents=True)
    mask = np.zeros((5, 6, 4), dtype=np.uint8)
    mask[1:4, 1:5, 1:3] = 1
    nibabel.Nifti1Image(mask, np.diag([3.0, 3, 3, 1])).to_filename(tmp_path / "mask.nii.gz")
    return tmp_path


@pytest.fixture
def betas():
    """Maps (5, 6, 4, 15) of all trials; one voxel of the mask is NaN, as GLMsingle leaves empty ones."""
    values = np.random.default_rng(0).normal(size=(5, 6, 4, len(ORDER)))
    values[1, 1, 1] = np.nan
    values[2, 2, 2] += 4.0 * (np.array(ORDER) == 0)
    return values


def source(folder: Path, **more) -> BetasSource:
    given = {
        "bids_dir": str(folder / "ds"),
        "betas": str(folder / "betas"),
        "mask": str(folder / "mask.nii.gz"),
    }
    return BetasSource(participant_label="01", **given, **more)


def export_as_documented(folder: Path, monkeypatch) -> None:
    """Run the lines of docs/bids.md beside GLMsingle's output."""
    (code,) = re.findall(r"```py\n(.*?betasmd.*?)```", DOCS.read_text(), flags=re.DOTALL)
    (folder / "betas").mkdir()
    monkeypatch.chdir(folder)
    exec(compile(code, str(DOCS), "exec"), {})


def test_what_glmsingle_writes_is_decoded(dataset, betas, monkeypatch):
    (dataset / "glmsingle").mkdir()
    np.save(dataset / "glmsingle" / "TYPED_FITHRF_GLMDENOISE_RR.npy", {"betasmd": betas, "pcnum": 3})
    design = {"stimorder": ORDER, "numtrialrun": [4, 6, 5], "tr": 2.0}
    np.save(dataset / "glmsingle" / "DESIGNINFO.npy", design)
    affine = np.diag([3.0, 3, 3, 1])
    nibabel.Nifti1Image(np.zeros((5, 6, 4, 2)), affine).to_filename(dataset / "bold_run-1.nii.gz")
    export_as_documented(dataset, monkeypatch)
    samples = source(dataset, standardize=False).load()
    assert samples.conditions.tolist() == [NAMES[k] for k in ORDER] and samples.runs.tolist() == RUNS
    inside = np.asarray(samples.mask_img.dataobj) > 0
    assert inside.sum() == 3 * 4 * 2 - 1 and "dropped" in " ".join(samples.notes)
    np.testing.assert_array_equal(samples.X, betas[inside].T.astype(np.float32))
    assert samples.entities == {"task": "objects", "space": "T1w"} and samples.kind == "beta"
    out = dataset / "out"
    given = ("--samples", "betas", "--betas", "betas", "--mask", "mask.nii.gz", "--contrasts", "face:house")
    more = ("--task", "objects", "--space", "T1w", "--methods", "svm", "--no-standardize", "--quiet")
    assert main([str(dataset / "ds"), str(out), "participant", *given, *more]) == 0
    (table,) = out.glob(
        "sub-01/sub-01_task-objects_space-T1w_contrast-faceMinusHouse_desc-svm_predictions.tsv"
    )
    rows = read_tsv(table)
    assert [row["true"] for row in rows] == [NAMES[k] for k in ORDER if k < 2]
    page = (out / "sub-01" / "index.html").read_text()
    assert "Maps were not z-scored within each run." in page


def test_maps_of_nilearns_lss_become_one_file(dataset, betas):
    values = np.nan_to_num(betas)
    maps = [nibabel.Nifti1Image(values[..., k], np.diag([3.0, 3, 3, 1])) for k in range(len(ORDER))]
    (dataset / "betas").mkdir()
    concat_imgs(maps).to_filename(dataset / "betas" / f"{STEM}.nii.gz")
    lines = [f"{NAMES[c]}\t{run}" for c, run in zip(ORDER, RUNS, strict=True)]
    (dataset / "betas" / f"{STEM}.tsv").write_text("\n".join(["trial_type\trun", *lines]) + "\n")
    samples = source(dataset, standardize=False).load()
    inside = np.asarray(samples.mask_img.dataobj) > 0
    np.testing.assert_allclose(samples.X, values[inside].T, rtol=1e-6)  # concat_imgs may keep other digits
    assert samples.runs.tolist() == RUNS


@pytest.fixture
def sessions(dataset, betas):
    """The same maps in a table that names two sessions of three runs each."""
    (dataset / "betas").mkdir()
    image = nibabel.Nifti1Image(np.nan_to_num(betas).astype(np.float32), np.diag([3.0, 3, 3, 1]))
    image.to_filename(dataset / "betas" / f"{STEM}.nii.gz")
    keys = [("a" if k < 8 else "b", 1 + k % 8 // 3) for k in range(len(ORDER))]
    lines = [f"{NAMES[c]}\t{s}\t{r}" for c, (s, r) in zip(ORDER, keys, strict=True)]
    table = "\n".join(["trial_type\tsession\trun", *lines]) + "\n"
    (dataset / "betas" / f"{STEM}.tsv").write_text(table)
    return dataset, keys


def test_maps_are_chosen_by_session_and_run_and_held_out_by_session(sessions):
    folder, keys = sessions
    unscaled = {"standardize": False}
    assert source(folder, **unscaled).load().runs.tolist() == [3 * (s == "b") + r for s, r in keys]
    held_out = source(folder, **unscaled, cv="session").load()
    assert held_out.runs.tolist() == [1 + (s == "b") for s, _ in keys] and held_out.held_out == "session"
    some = source(folder, **unscaled, session_label=("ses-b",), run_label=("01", "3")).load()
    chosen = [k for k, key in enumerate(keys) if key in (("b", 1), ("b", 3))]
    assert some.conditions.tolist() == [NAMES[ORDER[k]] for k in chosen]
    assert len(set(some.runs)) == 2


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--session-label", "c"), r"--session-label: expected some of those of sub-01 \(a, b\), got 'c'"),
        (("--run-label", "7"), r"--run-label: expected some of those of sub-01 \(1, 2, 3\), got '7'"),
        (("--cv", "session", "--session-label", "a"), r"--cv session: expected runs of at least 2 sessions"),
        (("--cv", "session", "--methods", "l1-lr-cv"), r"needs at least 3 sessions, sub-01 has 2"),
        (("--confounds-strategy", "simple"), r"--confounds-strategy does not apply to --samples betas"),
        (("--high-pass", "0.01"), r"--high-pass does not apply to --samples betas"),
        (("--trial-model", "lss"), r"--trial-model is for --samples trial, got betas"),
        (("--space", "MNI305"), r"--betas \S+: expected maps .* found none of 1 that fit"),
    ],
)  # fmt: skip
def test_what_maps_cannot_have_is_one_sentence(sessions, capsys, more, sentence):
    folder, _ = sessions
    given = ("--samples", "betas", "--betas", str(folder / "betas"), "--mask", str(folder / "mask.nii.gz"))
    study = ("--no-standardize", "--contrasts", "face:house", "--methods", "svm")
    study = study[:-2] if "--methods" in more else study
    code = main([str(folder / "ds"), str(folder / "out"), "participant", *given, *study, *more])
    said = capsys.readouterr().err.strip()
    assert code == 2 and len(said.splitlines()) == 1 and re.search(sentence, said), said
    assert not (folder / "out").exists()
