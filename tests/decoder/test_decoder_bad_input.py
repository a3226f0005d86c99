"""What GAMPDecoder says about input it cannot use: what was expected, what came, what to do."""

import nibabel
import numpy as np
import pytest
from nilearn.image import resample_to_img
from nilearn.maskers import NiftiMasker
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVC

from mvpa_gamp import GAMPDecoder

RNG = np.random.default_rng(4)
AFFINE = np.diag([3.0, 3.0, 3.0, 1.0])
Y = np.tile(np.repeat(["face", "house"], 4), 4)
RUNS = np.repeat(np.arange(4), 8)


def image(volumes, affine=AFFINE):
    return nibabel.Nifti1Image(np.asarray(volumes, dtype=np.float32), affine)


@pytest.fixture
def volumes():
    data = 100 + RNG.standard_normal((5, 6, 4, len(Y)))
    data[2, 3, 1, Y == "face"] += 3
    return data


@pytest.fixture
def mask():
    inside = np.zeros((5, 6, 4))
    inside[1:4, 1:5, 1:3] = 1
    return image(inside)


@pytest.mark.parametrize(
    ("settings", "y", "groups", "message"),
    [
        ({}, Y[:-3], RUNS, "inconsistent numbers of samples: 32 images and 29 labels.*one label per image"),
        (
            {},
            np.array([*Y[:-1], np.nan], dtype=object),
            RUNS,
            r"1 are missing, the first for image 32 .counted from 1.*ignore='rest'",
        ),
        ({}, None, RUNS, "requires y to be passed, but the target y is None"),
        ({}, Y, RUNS[:-1], "group .run. of each of 32 images, got 31"),
        ({}, np.full(32, "face"), RUNS, r"at least two classes, got 1: \['face'\]"),
        ({"ignore": "house"}, Y, RUNS, "two classes besides the ignored 'house', got 1"),
        ({}, Y, np.zeros(32), "at least two groups, got 1"),
        ({}, np.linspace(0, 1, 32), RUNS, "Unknown label type"),
        ({}, Y, (Y == "face").astype(int), "fold 1 trains on no image of 'house'"),
        ({"method": "lasso"}, Y, RUNS, "one of gamp-bg-lr, .*or a classifier of scikit-learn, got 'lasso'"),
        ({"method": "svm", "scoring": "neg_log_loss"}, Y, RUNS, "needs probabilities, which 'svm' does not"),
        ({"method": LinearSVC}, Y, RUNS, r"got the class LinearSVC: write LinearSVC\(\)"),
        ({"method": Ridge()}, Y, RUNS, "classifier of scikit-learn, got Ridge"),
        ({"method": LinearSVC(), "class_weight": "balanced"}, Y, RUNS, "may have a class_weight of its own"),
        ({"cv": 9}, Y, RUNS, "2 to 4 folds of whole groups, got 9"),
        ({"scoring": "r2"}, Y, RUNS, "scorer of classes"),
        ({"cv": 40}, Y, None, "expected 2 to 16 folds"),
        ({"cv": [(np.r_[:16], np.r_[99:100])]}, Y, None, "row numbers below 32"),
        ({"n_jobs": 0}, Y, RUNS, "1 or more processes"),
        ({}, Y, np.array([None, *RUNS[1:]], dtype=object), r"groups has missing labels \(None\) in 1 of"),
    ],
)
def test_labels_groups_and_settings(volumes, mask, settings, y, groups, message):
    with pytest.raises(ValueError, match=message):
        GAMPDecoder(mask=mask, **settings).fit(image(volumes), y, groups)


def test_an_empty_mask(volumes):
    with pytest.raises(ValueError, match=r"mask in memory is empty: .*Give another mask"):
        GAMPDecoder(mask=image(np.zeros((5, 6, 4)))).fit(image(volumes), Y, RUNS)


def test_images_of_different_grids(volumes, mask):
    listed = [image(volumes[..., k]) for k in range(32)]
    listed[3] = image(volumes[:4, ..., 3])
    with pytest.raises(
        ValueError,
        match=r"image 4 \(counted from 1\) is on another grid.*\(5, 6, 4\).*\(4, 6, 4\).*resample_to",
    ):
        GAMPDecoder(mask=mask).fit(listed, Y, RUNS)
    listed[3] = image(volumes[..., 3], np.diag([3.0, 3.0, 3.5, 1.0]))
    with pytest.raises(ValueError, match=r"image 4 \(counted from 1\) is on another grid"):
        GAMPDecoder(mask=mask).fit(listed, Y, RUNS)


def test_a_missing_file_and_nothing_at_all(mask, tmp_path):
    with pytest.raises(ValueError, match="nowhere"):
        GAMPDecoder(mask=mask).fit(str(tmp_path / "nowhere.nii.gz"), Y, RUNS)
    with pytest.raises(ValueError, match="at least one volume, got an empty image or list"):
        GAMPDecoder(mask=mask).fit([], [], [])


def test_voxels_that_are_not_finite_are_dropped_with_a_sentence(volumes, mask):
    clean = GAMPDecoder(mask=mask).fit(image(volumes), Y, RUNS)
    volumes[1, 1, 1, 5] = np.nan
    volumes[2, 2, 2, 7] = np.inf
    volumes[0, 0, 0, 0] = np.nan  # outside the mask
    with pytest.warns(UserWarning, match="2 of 24 voxels of the mask have NaN or infinite") as caught:
        decoder = GAMPDecoder(mask=mask).fit(image(volumes), Y, RUNS)
    assert len(caught) == 1 and decoder.notes_ == (str(caught[0].message),)
    assert (clean.n_elements_, decoder.n_elements_) == (24, 22)
    kept = np.asarray(decoder.mask_img_.dataobj)
    assert kept[1, 1, 1] == kept[2, 2, 2] == 0 and kept.sum() == 22
    assert decoder.predict(image(np.nan_to_num(volumes, posinf=0)), RUNS).shape == (32,)
    volumes[...] = np.nan
    with pytest.raises(ValueError, match=r"none of its 24 voxels can be used \(24 with NaN or infinity"):
        GAMPDecoder(mask=mask).fit(image(volumes), Y, RUNS)


@pytest.mark.parametrize("form", ["image", "path", "paths", "list", "runs"])
def test_a_volume_of_nan_is_named(volumes, mask, form, tmp_path):
    volumes[..., 21] = np.nan
    whole = image(volumes)
    given, named = whole, r"image in memory: volume 22 \(counted from 1\) is NaN"
    if form == "path":
        nibabel.save(whole, tmp_path / "bold.nii.gz")
        given, named = (
            tmp_path / "bold.nii.gz",
            r"image \S*bold\.nii\.gz: volume 22 \(counted from 1\) is NaN",
        )
    elif form == "paths":
        given = [tmp_path / f"{k}.nii.gz" for k in range(32)]
        for k, path in enumerate(given):
            nibabel.save(image(volumes[..., k]), path)
        named = r"image \S*21\.nii\.gz is NaN"
    elif form == "list":
        given, named = [image(volumes[..., k]) for k in range(32)], r"image 22 \(counted from 1\) is NaN"
    elif form == "runs":
        given = [image(volumes[..., 8 * run : 8 * run + 8]) for run in range(4)]
        named = r"image 3 \(counted from 1\): volume 6 \(counted from 1\) is NaN"
    with pytest.raises(ValueError, match=rf"^{named} or infinite in all voxels.* leave out such volumes"):
        GAMPDecoder(mask=mask).fit(given, Y, RUNS)


def test_a_volume_of_nan_is_named_also_where_a_masker_resamples(volumes):
    volumes[..., 3] = np.nan
    masker = NiftiMasker(mask_img=fine_mask(), standardize="zscore_sample", reports=False)
    with pytest.raises(ValueError, match=r"volume 4 \(counted from 1\) is NaN"):
        GAMPDecoder(mask=masker).fit(image(volumes), Y, RUNS)


def test_constant_voxels_do_no_harm(volumes, mask):
    volumes[1, 1, 1] = 7.0
    decoder = GAMPDecoder(mask=mask).fit(image(volumes), Y, RUNS)
    assert decoder.n_elements_ == 24 and np.isfinite(decoder.coef_).all()
    assert decoder.fold_scores_.mean() > 0.8


def test_groups_too_small_to_be_cleaned_alone(volumes, mask):
    y, groups = np.tile(["face", "house"], 8), np.repeat(np.arange(8), 2)
    volumes = volumes[..., np.argsort(Y, kind="stable")][..., [0, 16, 1, 17, 2, 18, 3, 19] * 2]
    volumes = volumes + np.random.default_rng(9).normal(0, 0.3, volumes.shape)  # no image twice
    with pytest.warns(UserWarning, match="Group '0' has 2 images, too few to be cleaned separately"):
        decoder = GAMPDecoder(mask=mask).fit(image(volumes), y, groups)
    assert len(decoder.fold_scores_) == 8
    GAMPDecoder(mask=mask, standardize=None).fit(
        image(volumes), y, groups
    )  # nothing to clean, nothing to say


def fine_mask():
    inside = np.zeros((10, 12, 8))
    inside[1:-1, 1:-1, 1:-1] = 1
    return image(inside, np.diag([1.5, 1.5, 1.5, 1.0]))


@pytest.mark.parametrize("form", ["image", "path"])
def test_a_mask_on_another_grid_is_resampled_as_nilearn_would(volumes, form, tmp_path):
    given = fine_mask()
    if form == "path":
        nibabel.save(given, tmp_path / "fine.nii.gz")
        given = tmp_path / "fine.nii.gz"
    with pytest.warns(UserWarning, match=r"another grid \(10 x 12 x 8 voxels of 1.5 .* 480 voxels became"):
        decoder = GAMPDecoder(mask=given).fit(image(volumes), Y, RUNS)
    moved = resample_to_img(
        fine_mask(), image(volumes), interpolation="nearest", force_resample=True, copy_header=True
    )
    by_hand = GAMPDecoder(mask=moved).fit(image(volumes), Y, RUNS)
    assert decoder.n_elements_ == np.count_nonzero(moved.dataobj)
    np.testing.assert_array_equal(decoder.coef_, by_hand.coef_)
    assert decoder.coef_img_["face-house"].shape == (5, 6, 4)
    assert any("was resampled" in note for note in decoder.notes_)


def test_a_mask_that_cannot_be_resampled(volumes, mask):
    away = image(np.asarray(mask.dataobj), AFFINE + np.array([[0, 0, 0, 500.0], *[[0] * 4] * 3]))
    with pytest.raises(ValueError, match=r"outside the field of view .*x 503 to 509 mm.*register it first"):
        GAMPDecoder(mask=away).fit(image(volumes), Y, RUNS)


def test_what_a_masker_resamples_is_nilearns_business(volumes):
    masker = NiftiMasker(mask_img=fine_mask(), standardize="zscore_sample", reports=False)
    with pytest.warns(UserWarning, match="imgs are being resampled to the mask_img resolution"):
        decoder = GAMPDecoder(mask=masker).fit(image(volumes), Y, RUNS)
    assert decoder.coef_img_["face-house"].shape == (10, 12, 8)
    assert decoder.n_elements_ == 480


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "permutation_test"])
def test_nothing_works_before_fit(method, volumes):
    with pytest.raises(ValueError, match="not fitted yet"):
        getattr(GAMPDecoder(), method)(*([] if method == "permutation_test" else [image(volumes)]))
    for other in ("generate_report", "to_bids"):
        with pytest.raises(ValueError, match="not fitted yet"):
            getattr(GAMPDecoder(), other)(*(["x"] if other == "to_bids" else []))


def test_new_images_and_labels_must_fit(volumes, mask):
    decoder = GAMPDecoder(mask=mask).fit(image(volumes), Y, RUNS)
    with pytest.raises(ValueError, match="X has 3 features per sample; expecting 24"):
        decoder.predict(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"classes seen in fit \(face, house\), got 'shoe'"):
        decoder.score(image(volumes), np.where(Y == "face", "shoe", Y))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        decoder.score(image(volumes), Y[:-1])


def test_an_ignored_class_that_is_not_there_is_mentioned(volumes, mask):
    with pytest.warns(UserWarning, match="ignore='Rest' does not occur in y"):
        GAMPDecoder(mask=mask, ignore="Rest").fit(image(volumes), Y, RUNS)


def test_names_of_contrasts_must_differ(volumes, mask):
    y = np.resize(["face", "house", "face-house", "cat"], 32)
    with pytest.raises(ValueError, match="'face-house' would name two contrasts"):
        GAMPDecoder(mask=mask).fit(image(volumes), y, RUNS)


def test_folds_without_a_score_are_counted(volumes, mask):
    one_class = [(np.r_[4:32], np.r_[0:4]), (np.r_[0:8, 16:32], np.r_[8:16])]
    with pytest.warns(UserWarning, match="undefined in 1 of 2 folds") as caught:
        decoder = GAMPDecoder(mask=mask, cv=one_class, scoring="roc_auc").fit(image(volumes), Y)
    assert len(caught) == 1 and np.isnan(decoder.fold_scores_).tolist() == [True, False]
    assert np.isfinite(decoder.permutation_test(3, unit="sample").score)
