"""Given maps are not time series: with labels that mean nothing, nothing may be decoded, by any path."""

import warnings

import nibabel
import numpy as np
import pytest
from people_maps import AFFINE, SHAPE, People, make_people, write_table
from sklearn.model_selection import GroupKFold, StratifiedKFold

from mvpa_gamp import GAMPDecoder
from mvpa_gamp.__main__ import main as bids_main
from mvpa_gamp.haxby import main
from mvpa_gamp.results.files import read_tsv
from mvpa_gamp.results.reader import read_results

PAIR = ["--pairs", "heat:warmth", "--methods", "svm", "--quiet"]
MASK = nibabel.Nifti1Image(np.ones(SHAPE, np.uint8), AFFINE)
OTHERS = ("friend", "rejection")


@pytest.fixture(scope="module")
def nothing():
    """Heat and warmth do not differ; the two others do. Files are sorted by label."""
    return make_people().swapped("heat", "warmth", seed=1)


def accuracy(out) -> float:
    return 100 - read_results(out).rows[0]["error_percent"]


def decoded(people, **settings) -> float:
    y, groups = people.conditions, people.participants
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        decoder = GAMPDecoder("gamp-bg-lr", mask=MASK, ignore=OTHERS, **settings)
        return 100 * decoder.fit(people.images, y, groups).fold_scores_.mean()


def test_a_line_through_four_maps_is_refused_and_without_it_nothing_is_decoded(nothing, tmp_path, capsys):
    files, out = nothing.write(tmp_path / "maps"), tmp_path / "out"
    assert main([*files, *PAIR, "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert "run 1: expected at least 10 volumes to detrend or filter it, got 4" in said
    assert "--no-detrend" in said and not out.exists()
    assert main([*files, *PAIR, "--no-detrend", "--out", str(out)]) == 0
    assert 25 <= accuracy(out) <= 75


def test_a_filter_of_four_maps_is_refused(nothing, tmp_path, capsys):
    files, out = nothing.write(tmp_path / "maps"), tmp_path / "out"
    steps = ["--no-detrend", "--high-pass", "0.01", "--t-r", "2"]
    assert main([*files, *PAIR, *steps, "--out", str(out)]) == 2
    assert "to detrend or filter it, got 4" in capsys.readouterr().err and not out.exists()


def test_the_bids_command_takes_no_line_out_of_maps(nothing, tmp_path):
    """Each participant as a run of one, conditions in the same order: other conditions change nothing."""
    (tmp_path / "ds" / "sub-01" / "func").mkdir(parents=True)
    nibabel.save(MASK, tmp_path / "mask.nii.gz")
    for image, name, run in zip(nothing.images, nothing.conditions, nothing.participants, strict=True):
        path = tmp_path / "betas" / f"sub-01_task-t_run-{run}_contrast-{name}_stat-effect_statmap.nii"
        path.parent.mkdir(exist_ok=True)
        nibabel.save(image, path)
    folders = [str(tmp_path / "ds"), str(tmp_path / "out"), "participant", "--samples", "betas"]
    files = ["--betas", str(tmp_path / "betas"), "--mask", str(tmp_path / "mask.nii.gz")]
    pairs = ["--contrasts", "heat:warmth", "friend:rejection", "--methods", "svm", "--quiet"]
    assert bids_main([*folders, *files, *pairs]) == 0
    rows = read_results(tmp_path / "out" / "sub-01").rows
    right = {row["contrast"]: 100 - row["error_percent"] for row in rows}
    assert 25 <= right["heatMinusWarmth"] <= 75 and right["friendMinusRejection"] > 90


def test_the_decoder_takes_no_line_out_of_3d_images(nothing):
    assert 25 <= decoded(nothing) <= 75


def test_the_decoder_refuses_lines_and_filters_of_3d_images(nothing):
    for asked in ({"detrend": True}, {"high_pass": 0.01, "t_r": 2.0}, {"low_pass": 0.1, "t_r": 2.0}):
        with pytest.raises(ValueError, match="every image is a single map"):
            decoded(nothing, **asked)


def test_the_decoder_refuses_lines_of_a_4d_image_with_short_runs(nothing):
    whole = nibabel.funcs.concat_images(nothing.images)
    given = whole, nothing.conditions, nothing.participants
    with pytest.raises(
        ValueError, match="run 1: expected at least 10 volumes to detrend or filter it, got 4"
    ):
        GAMPDecoder(mask=MASK, ignore=OTHERS, detrend=True).fit(*given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        decoder = GAMPDecoder("gamp-bg-lr", mask=MASK, ignore=OTHERS).fit(*given)
    assert not decoder.masker_.detrend and 25 <= 100 * decoder.fold_scores_.mean() <= 75


def test_folds_that_split_participants_are_refused_where_their_maps_are_scaled_together(nothing):
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    with pytest.raises(ValueError, match="cv: folds train and test on images of one group"):
        decoded(nothing, cv=folds)
    assert decoded(nothing, cv=GroupKFold(4)) < 75


def many(people):
    """Three maps of every condition, sorted by condition in each participant."""
    rng, order = np.random.default_rng(0), np.arange(len(people.X)).repeat(3)
    X = people.X[order] + rng.standard_normal((len(order), people.X.shape[1]))
    return People(X.astype(np.float32), people.conditions[order], people.participants[order])


def test_the_command_refuses_a_line_through_runs_that_are_sorted_by_condition(nothing, tmp_path, capsys):
    files, out = many(nothing).write(tmp_path / "maps"), tmp_path / "out"
    assert main([*files, *PAIR, "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert "every run are sorted by condition (friend, heat, rejection, warmth)" in said and not out.exists()
    assert main([*files, *PAIR, "--no-detrend", "--out", str(out)]) == 0
    assert 25 <= accuracy(out) <= 75


def test_a_4d_image_of_many_sorted_maps_is_not_detrended_by_itself(nothing):
    """Twelve maps of each, three of every condition, in one order: a line through them decodes places."""
    people = many(nothing)
    images, y, groups = nibabel.funcs.concat_images(people.images), people.conditions, people.participants
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        decoder = GAMPDecoder("lda", mask=MASK, ignore=OTHERS).fit(images, y, groups)
    assert any(
        "sorted by class in one order, as maps often are, so no line was removed" in str(each.message)
        for each in caught
    )
    assert not decoder.masker_.detrend and 25 <= 100 * decoder.fold_scores_.mean() <= 75
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asked = GAMPDecoder("lda", mask=MASK, ignore=OTHERS, detrend=True).fit(images, y, groups)
    assert asked.fold_scores_.mean() > 0.85 and any("order" in each for each in asked.leakage_)


def pair_of(people):
    """The compared maps alone, two of each participant."""
    rows = np.flatnonzero(np.isin(people.conditions, ["heat", "warmth"]))
    return [people.images[k] for k in rows], people.conditions[rows], people.participants[rows]


def test_two_maps_of_each_participant_are_centred_as_by_the_command(tmp_path, capsys):
    people = make_people(8, effect=0.5)
    images, y, groups = pair_of(people)
    with pytest.warns(UserWarning, match="mean of each group's images was taken away"):
        decoder = GAMPDecoder("svm", mask=MASK).fit(images, y, groups)
    table = write_table(people, tmp_path / "maps")
    files = ["--maps", str(table), "--mask", str(table.parent / "mask.nii.gz")]
    assert main([*files, *PAIR, "--out", str(tmp_path / "out")]) == 0
    assert 100 * decoder.fold_scores_.mean() == pytest.approx(accuracy(tmp_path / "out"))
    loaded = GAMPDecoder.load(decoder.save(tmp_path / "model"))
    assert loaded.scaling == "centre"
    for given in (None, groups):
        found = loaded.decision_function(images, given)
        np.testing.assert_array_equal(found, decoder.decision_function(images, given))
    lines = [f"f{k}.nii\t{name}\tsub-{who}" for k, (name, who) in enumerate(zip(y, groups, strict=True))]
    for k, image in enumerate(images):
        nibabel.save(image, tmp_path / f"f{k}.nii")
    (tmp_path / "new.tsv").write_text("\n".join(["file\tcondition\tsubject", *lines[::-1]]) + "\n")
    asked = ["predict", str(tmp_path / "model"), "--maps", str(tmp_path / "new.tsv"), "--scaling", "own"]
    assert bids_main([*asked, "--out", str(tmp_path / "p.tsv")]) == 0
    told = [float(row["decision"]) for row in read_tsv(tmp_path / "p.tsv")]
    np.testing.assert_allclose(told[::-1], found, rtol=1e-4)
    (tmp_path / "new.tsv").write_text("file\nf0.nii\n")
    assert bids_main(asked) == 2
    assert "expected --maps TABLE with a column participant" in capsys.readouterr().err
    centred = found.reshape(-1, 2).sum(axis=1) - 2 * decoder.intercept_
    np.testing.assert_allclose(centred, 0, atol=1e-5 * abs(found).max())
    for asked, said in (
        ({"scaling": "loud"}, "expected None, none, centre, zscore, got 'loud'"),
        ({"scaling": "zscore"}, "needs at least 3 images of every group, got 2"),
    ):
        with pytest.raises(ValueError, match=said):
            GAMPDecoder("svm", mask=MASK, **asked).fit(images, y, groups)
    with pytest.raises(ValueError, match="needs groups"):
        GAMPDecoder("svm", mask=MASK, scaling="centre").fit(images, y)


def test_people_with_one_map_each_have_equal_shares_in_folds_and_change_classes_as_wholes(nothing):
    images, y, groups = pair_of(nothing)
    mine = [k for k in range(len(y)) if (groups[k] % 2 == 0) == (y[k] == "heat")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decoder = GAMPDecoder("svm", mask=MASK, standardize=None)
        decoder.fit([images[k] for k in mine], y[mine], groups[mine])
    folds = decoder.cv_predictions_.groupby("fold")["true"].value_counts()
    assert len(decoder.fold_scores_) == 8 and set(folds) == {1}  # 8 of each: one of each in a fold
    test = decoder.permutation_test(19)
    assert test.null.size == 19 and 0.3 <= test.null.mean() <= 0.7 and test.pvalue > 0.05
    assert "group" in decoder.generate_report().html


def test_an_effect_is_still_decoded(tmp_path):
    people = make_people(effect=1.0)
    assert decoded(people) > 90


def contrasts(real_data, seed):
    """The real maps in their order; heat and warmth swapped at random within participants."""
    folder = real_data / "pain_rejection"
    if not folder.is_dir():
        pytest.skip(f"real data not found: {folder} is no folder (set MVPA_GAMP_DATA)")
    lines = [line.split("\t") for line in (folder / "contrasts_2mm.tsv").read_text().splitlines()[1:]]
    y, groups = np.array([line[0] for line in lines]), np.array([line[1] for line in lines])
    mask = nibabel.load(folder / "networks_2mm.nii.gz")
    inside = np.asarray(mask.dataobj)[::5, ::5, ::5] > 0  # every fifth voxel of the cortex
    maps = nibabel.load(folder / "contrasts_2mm.nii.gz")
    X = np.asarray(maps.dataobj)[::5, ::5, ::5].astype(np.float32)
    rng = np.random.default_rng(seed)
    for one in np.unique(groups):
        mine = np.flatnonzero((groups == one) & np.isin(y, ["heat", "warmth"]))
        if rng.random() < 0.5:
            X[..., mine] = X[..., mine[::-1]]
    return X, y, groups, nibabel.Nifti1Image(inside.astype(np.uint8), maps.affine)


def test_real_maps_with_swapped_labels_are_at_chance(real_data):
    X, y, groups, mask = contrasts(real_data, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        decoder = GAMPDecoder("gamp-bg-lr", mask=mask, ignore=OTHERS)
        decoder.fit(nibabel.Nifti1Image(X, mask.affine), y, groups)
    assert 30 <= 100 * decoder.fold_scores_.mean() <= 70  # 95 when each was detrended with the others
