"""New images for a fitted decoder: few of them lose their signal alone, and the training runs help."""

import numpy as np
import pandas as pd
import pytest
from nilearn.image import index_img, iter_img
from nilearn.maskers import NiftiMasker
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score

from mvpa_gamp import GAMPDecoder

ALONE = r"^\d+ images? w\w+ .*separately, which removes much of the signal .*predict_scaling = 'training'"


@pytest.fixture(scope="module")
def trained(planted):
    """A decoder of five whole runs, rest included; the sixth is new."""
    images, y, runs = planted.rows(planted.runs != 6)
    return GAMPDecoder("gamp-bg-lr", mask=planted.mask, ignore="rest").fit(images, y, groups=runs)


@pytest.fixture
def scaled(trained):
    trained.predict_scaling = "training"
    yield trained
    trained.predict_scaling = "own"


def new_rows(planted):
    return np.flatnonzero((planted.runs == 6) & planted.shown)


def test_single_volumes_are_decoded_with_the_mean_and_spread_of_the_training_runs(planted, trained, scaled):
    rows = new_rows(planted)
    alone = np.concatenate([scaled.predict(index_img(planted.bold, row)) for row in rows])
    assert np.mean(alone == planted.y[rows]) > 0.8
    together = scaled.predict(index_img(planted.bold, rows))
    np.testing.assert_array_equal(alone, together)  # every volume is scaled by itself
    assert scaled.score(index_img(planted.bold, rows), planted.y[rows]) == np.mean(alone == planted.y[rows])


def test_single_volumes_cleaned_alone_say_so_and_know_nothing(planted, trained):
    said = []
    for row in new_rows(planted):
        with pytest.warns(UserWarning, match=ALONE) as caught:
            said.append(trained.predict(index_img(planted.bold, row))[0])
        assert len(caught) == 1 and caught[0].filename == __file__
    assert len(set(said)) == 1  # the same answer to all of them


def test_images_of_one_class_lose_their_difference_from_the_other(planted, trained):
    faces = index_img(planted.bold, (planted.runs == 6) & (planted.y == "face"))
    with pytest.warns(UserWarning, match=r"^\d images were detrended and z-scored separately"):
        alone = np.mean(trained.predict(faces) == "face")
    trained.predict_scaling = "training"
    try:
        assert np.mean(trained.predict(faces) == "face") > max(0.8, alone)
    finally:
        trained.predict_scaling = "own"


def test_whole_runs_and_as_many_images_as_in_training_say_nothing(planted, trained):
    images, y, _ = planted.rows(planted.runs == 6)
    assert trained.score(images, y) > 0.9
    shown = planted.rows(planted.shown)
    picked = GAMPDecoder("gamp-bg-lr", mask=planted.mask).fit(*shown)
    picked.predict(shown[0], groups=shown[2])
    picked.predict(index_img(shown[0], slice(0, 6)))
    with pytest.warns(UserWarning, match="5 images were z-scored separately"):
        picked.predict(index_img(shown[0], slice(0, 5)))
    as_they_are = GAMPDecoder("gamp-bg-lr", mask=planted.mask, standardize=None).fit(*shown)
    as_they_are.predict(index_img(shown[0], 0))  # nothing is cleaned, nothing is lost


@pytest.mark.parametrize("standardize", ["zscore_sample", "psc", None])
def test_training_rows_come_back_on_average(planted, standardize):
    """Scaled by the runs of fit, their own volumes differ from the cleaned ones by drift alone."""
    images, y, runs = planted.rows(planted.shown)
    decoder = GAMPDecoder(
        "gamp-bg-lr", mask=planted.mask, standardize=standardize, predict_scaling="training"
    ).fit(images, y, groups=runs)
    raw = decoder.masker_.uncleaned().transform(images)
    expected = decoder._data.scaling.apply(raw)
    np.testing.assert_allclose(decoder.decision_function(images), decoder.decision_function(expected))
    assert np.corrcoef(expected.ravel(), decoder._data.X.ravel())[0, 1] > 0.9


def test_where_nilearn_reads_the_images_they_are_scaled_too(planted):
    images, y, runs = planted.rows(planted.shown)
    plain = GAMPDecoder("gamp-bg-lr", mask=planted.mask, predict_scaling="training").fit(images, y, runs)
    masker = NiftiMasker(planted.mask, standardize="zscore_sample", dtype="float32", reports=False)
    nilearns = GAMPDecoder("gamp-bg-lr", mask=masker, predict_scaling="training").fit(images, y, runs)
    one = index_img(images, 3)
    np.testing.assert_allclose(nilearns.decision_function(one), plain.decision_function(one), rtol=1e-2)


def test_what_cannot_be(planted, trained, scaled):
    one = index_img(planted.bold, 0)
    with pytest.raises(
        ValueError, match=r"predict_scaling='training' scales each image separately.*Leave out confounds"
    ):
        scaled.predict(one, confounds=[[1.0]])
    scaled.predict_scaling = "mine"
    with pytest.raises(ValueError, match=r"expected 'own' or 'training', got 'mine'. Change it"):
        scaled.predict(one)


def test_cross_val_score_takes_the_volumes_of_one_image_as_a_list(planted):
    """Its folds are those of fit where groups reach fit as well; rest helps to clean and is not scored."""
    decoder = GAMPDecoder("gamp-bg-lr", mask=planted.mask, ignore="rest", detrend=False)
    found = cross_val_score(
        decoder, list(iter_img(planted.bold)), planted.y, groups=planted.runs, cv=LeaveOneGroupOut(),
        params={"groups": planted.runs},
    )  # fmt: skip
    expected = decoder.fit(planted.bold, planted.y, groups=planted.runs).fold_scores_
    np.testing.assert_allclose(found, expected)
    assert np.mean(found) > 0.9


def test_single_volumes_of_the_real_slice(real_data):
    """A held-out run: volume by volume with the training runs' scale, against whole."""
    folder = real_data / "haxby_slice"
    table = pd.read_csv(folder / "labels.txt", sep=" ")
    y, runs = table["labels"].to_numpy(), table["chunks"].to_numpy()
    others = sorted(set(y) - {"face", "house"})
    bold = index_img(str(folder / "bold.nii.gz"), slice(None))
    decoder = GAMPDecoder(mask=folder / "mask.nii.gz", ignore=others, predict_scaling="training")
    decoder.fit(index_img(bold, runs != 8), y[runs != 8], groups=runs[runs != 8])
    rows = np.flatnonzero((runs == 8) & np.isin(y, ["face", "house"]))
    assert np.mean(decoder.predict(index_img(bold, rows)) == y[rows]) > 0.6
    decoder.predict_scaling = "own"
    whole = decoder.predict(index_img(bold, runs == 8))
    assert np.mean((whole == y[runs == 8])[np.isin(np.flatnonzero(runs == 8), rows)]) > 0.8
