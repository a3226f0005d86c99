import nibabel
import numpy as np
import pytest

from mvpa_gamp.imaging.bids.betas import BetasSource
from mvpa_gamp.imaging.bids.events import wanted_categories
from mvpa_gamp.imaging.bids.source import BidsSource, default_lag
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.labels import UNLABELLED
from mvpa_gamp.imaging.processing import Processing
from mvpa_gamp.imaging.samples import load_samples


@pytest.fixture(scope="module")
def load(bids_tree):
    """Samples of a participant with a lag of two volumes and, unless named, no confounds."""

    def samples(label, **settings):
        given = {"bids_dir": str(bids_tree.root), "confounds": ("none",), "lag_trs": 2, **settings}
        return BidsSource(participant_label=label, **given).load()

    return samples


@pytest.fixture
def load_maps(bids_tree, tmp_path):
    def samples(label="01", **settings):
        given = {"bids_dir": str(bids_tree.root), "betas": str(tmp_path), **settings}
        return BetasSource(participant_label=label, **given).load()

    return samples


@pytest.mark.parametrize(("t_r", "volumes"), [(2.5, 2), (2.0, 3), (1.0, 5), (0.72, 7), (10.0, 1)])
def test_the_default_lag_is_nearest_to_five_seconds(t_r, volumes):
    assert default_lag(t_r) == volumes


def test_samples_are_those_of_a_label_file_written_by_hand(load, bids_tree, tmp_path):
    """The BIDS source against plain files, with labels, mask and confounds prepared by other means."""
    samples = load("01", confounds=("motion6",), pairs=("face:house",))
    folder, phantom = bids_tree.func("01", True), bids_tree.phantoms["01"]
    stems = [bids_tree.stem("01", k) for k in range(1, phantom.n_runs + 1)]
    bold = [folder / f"{stem}_space-MNI152NLin2009cAsym_desc-preproc_bold.nii.gz" for stem in stems]
    masks = [nibabel.load(str(path).replace("preproc_bold", "brain_mask")) for path in bold]
    common = np.logical_and.reduce([np.asarray(mask.dataobj) > 0 for mask in masks])
    assert common.sum() < min(np.count_nonzero(mask.dataobj) for mask in masks)
    lines, confounds = ["labels chunks"], []
    for run, stem in enumerate(stems, start=1):
        rows = [
            line.split("\t")
            for line in (bids_tree.func("01") / f"{stem}_events.tsv").read_text().splitlines()[1:]
        ]
        shown = [(float(a), float(b), name) for a, b, name, _ in rows if name in ("face", "house")]
        for volume in range(phantom.volumes_per_run):
            time = volume * 2.5 - 5.0
            names = [name for onset, duration, name in shown if onset <= time < onset + duration]
            lines.append(f"{names[0] if names else UNLABELLED} {run}")
        text = (folder / f"{stem}_desc-confounds_timeseries.tsv").read_text()
        table = [line.split("\t") for line in text.splitlines()]
        chosen = [i for i, name in enumerate(table[0]) if name[-2:] in ("_x", "_y", "_z")]
        confounds.append(tmp_path / f"{stem}.tsv")
        confounds[-1].write_text("\n".join("\t".join(row[i] for i in chosen) for row in table) + "\n")
    (tmp_path / "labels.txt").write_text("\n".join(lines) + "\n")
    mask = nibabel.Nifti1Image(common.astype(np.uint8), masks[0].affine)
    steps = Processing(confounds=tuple(confounds))
    expected = load_samples([*bold], tmp_path / "labels.txt", mask, steps)
    assert samples.X.shape == (2 * 6 * 6, common.sum())
    np.testing.assert_allclose(samples.X, expected.X, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(samples.conditions, expected.conditions)
    np.testing.assert_array_equal(samples.runs, expected.runs)
    assert (samples.subject, samples.is_phantom) == ("01", False)
    assert samples.confound_columns[0] == "trans_x" and len(samples.confound_columns) == 6


def test_runs_of_two_sessions_are_numbered_on(load):
    samples = load("02", pairs=("face:cat",))
    assert set(samples.runs) == {1, 2, 3, 4, 5, 6}
    assert set(samples.conditions) == {"face", "cat"}


def test_a_block_is_the_mean_of_its_volumes(load):
    volumes = load("01", pairs=("face:house",))
    blocks = load("01", pairs=("face:house",), samples="block")
    assert len(blocks.X) == 2 * 6
    assert (volumes.kind, blocks.kind, blocks.plural) == ("volume", "block", "means of events")
    assert blocks.space == "MNI152NLin2009cAsym" and blocks.source == "bids"
    for k in range(len(blocks.X)):
        mine = (volumes.runs == blocks.runs[k]) & (volumes.conditions == blocks.conditions[k])
        np.testing.assert_allclose(blocks.X[k], volumes.X[mine].mean(axis=0), rtol=1e-4, atol=1e-5)
        assert blocks.volumes[k] == volumes.volumes[mine].min()
    assert "averaged to 12 events" in " ".join(blocks.notes)


def test_raw_volumes_get_a_computed_mask_and_a_warning(load, make_bids_tree, tmp_path):
    tree = make_bids_tree(tmp_path / "ds", ("01",), n_runs=2, shape=(20, 24, 20))
    raw = {"bids_dir": str(tree.root), "derivatives": "none"}
    samples = load("01", **raw, pairs=("face:house",))
    said = " ".join(samples.notes)
    assert "mask was computed" in said and "raw" in said
    with pytest.raises(DataError, match=r"expected desc-confounds_timeseries\.tsv"):
        load("01", **raw, confounds=("motion6",))


def test_where_no_mask_can_be_computed_one_is_asked_for(load, bids_tree):
    with pytest.raises(DataError, match="Give one with --mask"):
        load("01", derivatives="none", pairs=("face:house",))
    mask = str(next(bids_tree.func("01", True).glob("*_mask.nii.gz")))
    samples = load("01", derivatives="none", pairs=("face:house",), mask=mask)
    assert samples.X.shape[1] == np.count_nonzero(nibabel.load(mask).dataobj)


def test_a_missing_category_or_column_is_named_with_those_there_are(load):
    with pytest.raises(
        DataError, match=r"--contrasts: .*'dog'.*Conditions in the data: 'button', 'face', 'house'"
    ):
        load("01", pairs=("cat:dog",))
    with pytest.raises(DataError, match="has no column csf"):
        load("01", confounds=("csf",))


def test_similar_names_are_offered_first_and_the_list_is_short():
    responses = [f"button_{k}" for k in range(20)]
    with pytest.raises(DataError) as caught:
        wanted_categories(["face:hosue"], ["face", "house", "horse", *responses])
    said = str(caught.value)
    assert said.startswith("--contrasts: the pair 'face:hosue' names 'hosue', which the data do not")
    assert "Did you mean 'house' or 'horse'? Other conditions: 'button_0'" in said
    assert said.endswith("and 14 more.") and said.count("button") == 6
    with pytest.raises(DataError, match="Did you mean 'house'"):
        wanted_categories(["house :face"], ["face", "house"])
    with pytest.raises(DataError, match="left out as rest"):
        wanted_categories(["face:rest"], ["face", "house", "rest"])
    assert wanted_categories(["a:b:c"], ["a:b", "c"]) == {"a:b", "c"}


def test_a_map_of_nan_is_named(bids_tree, tmp_path, load_maps):
    shape, affine = bids_tree.phantoms["01"].shape, bids_tree.phantoms["01"].affine
    for run in (1, 2):
        for name in ("face", "house", "cat"):
            values = np.random.default_rng(run).normal(size=shape)
            values[...] = np.nan if (run, name) == (2, "cat") else values
            path = (
                tmp_path / f"sub-01_task-objectviewing_run-{run}_contrast-{name}_stat-effect_statmap.nii.gz"
            )
            nibabel.save(nibabel.Nifti1Image(values.astype(np.float32), affine), path)
    named = r"beta map \S*sub-01_\S*run-2_contrast-cat_\S* is NaN or infinite in all voxels .*Repair the file"
    with pytest.raises(DataError, match=named):
        load_maps()


def test_maps_of_one_per_run_and_voxels_empty_in_a_run(load, bids_tree, tmp_path, load_maps):
    """A voxel that is constant within a run is dropped as in volumes; unscaled runs may be single maps."""
    phantom = bids_tree.phantoms["01"]
    rng = np.random.default_rng(2)
    mask = np.asarray(load("01").mask_img.dataobj) > 0
    hole = tuple(np.argwhere(mask)[7])
    for run in (1, 2, 3, 4):
        for name in ("face", "house", "cat") if run < 3 else ("face",) if run == 3 else ("house",):
            values = rng.normal(size=phantom.shape).astype(np.float32)
            values[hole] = 0 if run == 2 else values[hole]
            stem = f"sub-01_task-objectviewing_run-{run}_contrast-{name}_stat-effect_statmap.nii.gz"
            nibabel.save(nibabel.Nifti1Image(values, phantom.affine), tmp_path / stem)
    samples = load_maps(standardize=False)
    assert samples.runs.tolist() == [1, 1, 1, 2, 2, 2, 3, 4] and samples.X.shape[1] == mask.sum() - 1
    assert samples.notes == (
        f"1 of {mask.sum()} voxels of the mask are constant within a run and were dropped.",
    )
    with pytest.raises(DataError, match="at least 3 maps in every run, got 1"):
        load_maps()


def test_a_condition_hidden_by_others_is_a_note_or_a_sentence(load):
    samples = load("01")
    assert set(samples.conditions) == {"cat", "face", "house"}
    said = " ".join(samples.notes)
    assert "button has no volume of its own" in said and "its events take no volumes" in said
    assert "events of two conditions" not in said
    named = load("01", pairs=("face:house", "face:cat", "cat:house"))
    np.testing.assert_array_equal(samples.volumes, named.volumes)  # presses in blocks cost nothing
    with pytest.raises(DataError, match="button has no volume: its events lie"):
        load("01", pairs=("face:button", "face:house", "cat:house"))


def test_given_maps_are_samples(load, bids_tree, tmp_path, load_maps):
    rng = np.random.default_rng(0)
    shape = bids_tree.phantoms["01"].shape
    for run in (1, 2, 3):
        for name in ("face", "house", "cat"):
            stem = f"sub-01_task-objectviewing_run-{run}_space-MNI152NLin2009cAsym_contrast-{name}"
            values = rng.normal(size=shape).astype(np.float32)
            image = nibabel.Nifti1Image(values, bids_tree.phantoms["01"].affine)
            nibabel.save(image, tmp_path / f"{stem}_stat-effect_statmap.nii.gz")
            nibabel.save(image, tmp_path / f"{stem}_stat-t_statmap.nii.gz")
    choice = {"space": "MNI152NLin2009cAsym"}
    samples = load_maps(**choice)
    assert samples.X.shape[0] == 9
    assert (samples.kind, samples.plural, samples.space) == ("beta", "maps", "MNI152NLin2009cAsym")
    assert sorted(set(samples.conditions)) == ["cat", "face", "house"]
    for run in (1, 2, 3):
        np.testing.assert_allclose(samples.X[samples.runs == run].mean(axis=0), 0, atol=1e-6)
    raw = load_maps(**choice, standardize=False)
    inside = np.asarray(raw.mask_img.dataobj) > 0
    house = next(tmp_path.glob("*_run-3_*contrast-house_stat-effect*"))
    np.testing.assert_array_equal(raw.X[-1], np.asarray(nibabel.load(house).dataobj)[inside])
    with pytest.raises(DataError, match="found none of 0 that fit"):
        load_maps("02", **choice)
    with pytest.raises(DataError, match="at least 3 maps in every run, got 2"):
        load_maps(**choice, pairs=("face:house",))


def test_maps_of_single_trials_come_as_4d_files_with_a_table(bids_tree, tmp_path, load_maps):
    """One file for all runs, its table naming them; lines without a condition are left out."""
    phantom, rng = bids_tree.phantoms["01"], np.random.default_rng(3)
    names = ["face", "house", "cat", "n/a", "face", "house"] * 2
    values = rng.normal(size=(*phantom.shape, 12)).astype(np.float32)
    stem = tmp_path / "sub-01_task-objectviewing_stat-effect_statmap"
    nibabel.save(nibabel.Nifti1Image(values, phantom.affine), f"{stem}.nii.gz")
    lines = [f"{name}\t{1 + k // 6}" for k, name in enumerate(names)]
    table = stem.with_suffix(".tsv")
    table.write_text("\n".join(["trial_type\trun", *lines]) + "\n")
    samples = load_maps(standardize=False)
    assert samples.runs.tolist() == [1] * 5 + [2] * 5 and samples.kind == "beta"
    assert samples.conditions.tolist() == [name for name in names if name != "n/a"]
    inside = np.asarray(samples.mask_img.dataobj) > 0
    np.testing.assert_array_equal(samples.X[3], values[inside][:, 4])
    table.write_text("\n".join(["trial_type\trun", *lines[:-1]]) + "\n")
    with pytest.raises(DataError, match=r"expected 11 volumes, one per line of its table, got shape"):
        load_maps(standardize=False)
    table.write_text("trial_type\nface\n")
    with pytest.raises(DataError, match=r"a line per map and the columns trial_type and run, but"):
        load_maps()
    table.unlink()
    with pytest.raises(DataError, match=r"\(or 4-D maps with a table of the same name\)"):
        load_maps()
