"""Confounds of fMRIPrep: wildcards, columns that differ between runs, strategies, volumes left out."""

import json

import numpy as np
import pytest
from nilearn import signal

from mvpa_gamp.imaging.bids.confounds import run_confounds, volume_notes
from mvpa_gamp.imaging.bids.layout import RunFiles
from mvpa_gamp.imaging.bids.source import BidsSource
from mvpa_gamp.imaging.errors import DataError

STEM = "sub-01_task-t_run-1"
N = 30


@pytest.fixture
def run(tmp_path):
    """A run whose table has two volumes before the steady state and two outliers."""
    rng = np.random.default_rng(0)
    columns = {name: rng.standard_normal(N) for name in ("trans_x", "trans_y", "csf", "white_matter")}
    for k in (0, 1):
        columns[f"non_steady_state_outlier0{k}"] = np.eye(N)[k]
    for k, volume in enumerate((7, 20)):
        columns[f"motion_outlier0{k}"] = np.eye(N)[volume]
    path = tmp_path / f"{STEM}_desc-confounds_timeseries.tsv"
    rows = [
        "\t".join(columns),
        *("\t".join(f"{v:.6f}" for v in row) for row in zip(*columns.values(), strict=True)),
    ]
    path.write_text("\n".join(rows) + "\n")
    bold = tmp_path / f"{STEM}_space-MNI152NLin2009cAsym_desc-preproc_bold.nii.gz"
    return RunFiles(bold, {"sub": "01"}, None, None, path, {})


def test_wildcards_name_columns_and_volumes(run):
    found = run_confounds(run, N, ("trans_*", "motion_outlier*"))
    assert found.names == ("trans_x", "trans_y") and found.nuisance.values.shape == (N, 2)
    assert np.flatnonzero(~found.nuisance.used).tolist() == [0, 1, 7, 20]
    assert (found.unsteady, found.scrubbed) == (2, 2)
    assert volume_notes([found, found]) == (
        "4 of 60 volumes precede the steady state and were left out.",
        "4 of 60 volumes have too much motion and were left out.",
    )
    none = run_confounds(run, N, ())
    assert none.names == () and np.flatnonzero(~none.nuisance.used).tolist() == [0, 1]


def test_a_run_without_such_columns_is_no_error_but_none_at_all_is(run, bids_tree):
    assert run_confounds(run, N, ("aroma*", "csf")).names == ("csf",)
    given = {"bids_dir": str(bids_tree.root), "participant_label": "01", "pairs": ("face:house",)}
    with pytest.raises(DataError, match=r"--confounds: no run has a column that matches 'motion_outlier\*'"):
        BidsSource(**given, confounds=("motion_outlier*",)).load()


def test_scrubbed_volumes_take_no_part_in_cleaning_and_decoding(make_bids_tree, tmp_path):
    """Columns of outliers in one run only; the result is nilearn's with a sample mask."""
    tree = make_bids_tree(tmp_path / "ds", ("01",), sessions=(), shape=(6, 7, 6), n_runs=3)
    path = tree.func("01", True) / f"{tree.stem('01', 2)}_desc-confounds_timeseries.tsv"
    lines = path.read_text().splitlines()
    n = len(lines) - 1
    flags = np.eye(n)[[12, 13]].T
    path.write_text(
        "\n".join(
            [lines[0] + "\tmotion_outlier00\tmotion_outlier01"]
            + [line + "".join(f"\t{v:.0f}" for v in row) for line, row in zip(lines[1:], flags, strict=True)]
        )
    )
    given = {"bids_dir": str(tree.root), "participant_label": "01", "lag_trs": 0, "pairs": ("all",)}
    samples = BidsSource(**given, confounds=("trans_?", "motion_outlier*")).load()
    whole = BidsSource(**given, confounds=("trans_?",)).load()
    assert set(whole.volumes) - set(samples.volumes) <= {n + 12, n + 13}
    assert "2 of" in " ".join(samples.notes) and "too much motion" in " ".join(samples.notes)
    assert samples.confound_columns == ("trans_x", "trans_y", "trans_z")
    import nibabel

    bold = nibabel.load(
        next(tree.func("01", True).glob(f"{tree.stem('01', 2)}_space-*_desc-preproc_bold.nii.gz"))
    )
    raw = np.asarray(bold.dataobj, dtype=np.float64)[np.asarray(samples.mask_img.dataobj) > 0].T
    header = lines[0].split("\t")
    motion = np.array(
        [[float(line.split("\t")[header.index(c)]) for c in samples.confound_columns] for line in lines[1:]]
    )
    kept = np.setdiff1d(np.arange(n), [12, 13])
    expected = signal.clean(
        raw, detrend=True, standardize="zscore_sample", confounds=motion, sample_mask=kept, filter=False
    )
    mine = samples.runs == 2
    rows = np.searchsorted(kept, samples.volumes[mine] - n)
    np.testing.assert_allclose(samples.X[mine], expected[rows], rtol=1e-4, atol=1e-5)


def fmriprep_table(folder, n):
    """A confounds table with all that nilearn's strategies read, and its sidecar."""
    rng = np.random.default_rng(0)
    ending = ("", "_derivative1", "_power2", "_derivative1_power2")
    names = [f"{k}_{a}{e}" for k in ("trans", "rot") for a in "xyz" for e in ending]
    names += [f"{k}{e}" for k in ("csf", "white_matter", "global_signal") for e in ending]
    names += ["cosine00", "framewise_displacement", "std_dvars", "a_comp_cor_00", "a_comp_cor_01"]
    values = rng.normal(0, 0.01, (n, len(names)))
    values[:, names.index("framewise_displacement")] = 0.05
    values[[9, 10], names.index("framewise_displacement")] = 3.0
    values[:, names.index("std_dvars")] = 1.0
    text = values.round(6).astype(str)
    text[0, [k for k, name in enumerate(names) if "derivative" in name]] = "n/a"
    path = folder / f"{STEM}_desc-confounds_timeseries.tsv"
    path.write_text("\n".join("\t".join(row) for row in [names, *text]) + "\n")
    component = {
        "Method": "aCompCor",
        "Retained": True,
        "Mask": "combined",
        "CumulativeVarianceExplained": 0.4,
    }
    path.with_suffix(".json").write_text(json.dumps({f"a_comp_cor_0{k}": component for k in (0, 1)}))
    return path


@pytest.mark.parametrize(
    ("strategy", "n_columns", "dropped"), [("simple", 27, 0), ("scrubbing", 33, 2), ("compcor", 27, 0)]
)
def test_strategies_are_those_of_nilearn(tmp_path, strategy, n_columns, dropped):
    path = fmriprep_table(tmp_path, 60)
    bold = tmp_path / f"{STEM}_space-MNI152NLin2009cAsym_desc-preproc_bold.nii.gz"
    bold.touch()
    found = run_confounds(RunFiles(bold, {}, None, None, path, {}), 60, (), strategy)
    assert len(found.names) == n_columns and (found.scrubbed > 0) == bool(dropped)
    assert np.count_nonzero(~found.nuisance.used) == found.scrubbed
    if dropped:
        assert not found.nuisance.used[[9, 10]].any()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"confounds_strategy": "best"},
            "--confounds-strategy: expected one of simple, .*, got 'best'",
        ),
        ({"confounds_strategy": "simple", "confounds": ("motion6",)}, "both choose columns"),
        ({"confounds_strategy": "simple", "derivatives": "none"}, "the volumes are raw"),
        ({"confounds_strategy": "compcor"}, "do not have what it needs"),
        ({"confounds_strategy": "ica_aroma"}, r"expected \*_desc-smoothAROMAnonaggr_bold\.nii\.gz"),
    ],
)
def test_a_strategy_that_cannot_be_is_a_sentence(bids_tree, settings, sentence):
    given = {"bids_dir": str(bids_tree.root), "participant_label": "01", "pairs": ("face:house",)}
    with pytest.raises(DataError, match=sentence):
        BidsSource(**given, **settings).load()
