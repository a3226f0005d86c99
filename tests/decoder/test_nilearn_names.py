"""What users of nilearn's Decoder and FREMClassifier pass: used, or answered with a sentence."""

import inspect
import warnings

import nibabel
import numpy as np
import pytest
from nilearn.decoding import Decoder, FREMClassifier
from nilearn.image import index_img
from nilearn.maskers import NiftiMasker
from sklearn.svm import LinearSVC

from mvpa_gamp import GAMPDecoder
from mvpa_gamp.haxby import main
from mvpa_gamp.imaging.labels import read_labels
from mvpa_gamp.imaging.samples import load_samples
from mvpa_gamp.results.reader import read_results


@pytest.fixture(scope="module")
def shown(planted):
    return planted.rows(planted.shown)


@pytest.fixture(scope="module")
def plain(planted, shown):
    return GAMPDecoder("gamp-bg-lr", mask=planted.mask).fit(*shown)


def test_every_name_of_nilearns_decoders_is_known():
    ours = inspect.signature(GAMPDecoder).parameters
    for theirs in (Decoder, FREMClassifier):
        assert set(inspect.signature(theirs).parameters) <= set(ours)
    asked = inspect.signature(Decoder.fit).parameters
    assert list(inspect.signature(GAMPDecoder.fit).parameters)[: len(asked)] == list(asked)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"estimator": "svc"}, r"estimator='svc' is not used: the method 'gamp-bg-lr' is fitted"),
        ({"estimator": LinearSVC()}, r"estimator=LinearSVC is not used"),
        (
            {"estimator_args": {"C": 1}},
            r"estimator_args=dict is not used: there is no scikit-learn estimator",
        ),
        ({"param_grid": {"C": [1]}}, r"param_grid=dict is not used: .* so there is no grid search"),
        ({"screening_percentile": 20}, r"screening_percentile=20 is not used: all voxels of the mask"),
        ({"screening_n_features": 500}, r"screening_n_features=500 is not used: all voxels of the mask"),
        ({"clustering_percentile": 10}, r"clustering_percentile=10 is not used: voxels are not clustered"),
    ],
)
def test_what_has_no_meaning_here_is_said_and_changes_nothing(planted, shown, plain, given, sentence):
    with pytest.warns(UserWarning, match=sentence) as caught:
        decoder = GAMPDecoder("gamp-bg-lr", mask=planted.mask, **given).fit(*shown)
    assert len(caught) == 1 and caught[0].filename == __file__
    np.testing.assert_array_equal(decoder.coef_, plain.coef_)


def test_all_voxels_are_asked_for_in_silence(planted, shown, plain):
    decoder = GAMPDecoder(
        "gamp-bg-lr", mask=planted.mask, screening_percentile=100, clustering_percentile=100
    )
    np.testing.assert_array_equal(decoder.fit(*shown).coef_, plain.coef_)


def test_a_dummy_and_an_estimator_in_the_place_of_the_method_are_refused(planted, shown):
    with pytest.raises(ValueError, match=r"its scores would be taken for chance. Use permutation_test\(\)"):
        GAMPDecoder(mask=planted.mask, estimator="dummy_classifier").fit(*shown)
    with pytest.raises(ValueError, match=r"got 'svc'. Change method \(of nilearn's Decoder"):
        GAMPDecoder("svc", mask=planted.mask).fit(*shown)


def test_images_are_resampled_as_nilearn_does(planted, shown):
    images, y, runs = shown
    coarse = {"target_affine": np.diag([6.0, 6.0, 6.0])}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="imgs are being resampled to the mask_img resolution")
        _resampled(planted, images, y, runs, coarse)


def _resampled(planted, images, y, runs, coarse):
    decoder = GAMPDecoder("gamp-bg-lr", mask=planted.mask, **coarse).fit(images, y, runs)
    masker = NiftiMasker(planted.mask, standardize="zscore_sample", reports=False, **coarse).fit()
    assert decoder.mask_img_.shape == masker.mask_img_.shape == decoder.coef_img_["face-house"].shape
    one = runs == 1
    np.testing.assert_allclose(
        decoder._data.X[one], masker.transform(index_img(images, one)), atol=1e-4
    )  # float32
    assert decoder.predict(images, groups=runs).shape == (len(y),)
    exact = {"target_affine": np.diag([3.0, 3.0, 3.0, 1.0]), "target_shape": (6, 7, 5)}
    fitted = GAMPDecoder("gamp-bg-lr", mask=planted.mask, **exact).fit(images, y, runs)
    assert fitted.mask_img_.shape == (6, 7, 5)


def test_nilearn_computes_the_mask_as_asked(planted):
    volumes = np.random.default_rng(0).normal(0, 1, (14, 14, 14, 40))
    volumes[2:12, 2:12, 2:12] += 1000  # a head in air
    images, y, runs = nibabel.Nifti1Image(volumes, planted.bold.affine), planted.y[:40], planted.runs[:40]
    masks = {}
    for strategy in ("background", "epi"):
        decoder = GAMPDecoder("gamp-bg-lr", mask_strategy=strategy, ignore="rest").fit(images, y, runs)
        expected = NiftiMasker(mask_strategy=strategy, reports=False).fit(images).mask_img_
        np.testing.assert_array_equal(decoder.mask_img_.dataobj, expected.dataobj)
        masks[strategy] = decoder.n_elements_
    assert masks["epi"] != masks["background"]


def test_what_every_fold_learnt(plain, planted):
    assert set(plain.cv_params_) == {"face-house", "face", "house"}
    assert plain.cv_params_["face"] is plain.cv_params_["face-house"]
    folds = plain.status_[plain.status_["fold"] != "refit"]
    for name, values in plain.cv_params_["face"].items():
        assert values == folds[name].tolist() and len(values) == 6


def test_the_area_under_the_curve_of_many_classes(planted):
    y = np.where(planted.shown, planted.y, "rest")
    named, same = (
        GAMPDecoder("gamp-bg-lr", mask=planted.mask, scoring=name).fit(planted.bold, y, planted.runs)
        for name in ("roc_auc", "roc_auc_ovr")
    )
    np.testing.assert_array_equal(named.fold_scores_, same.fold_scores_)
    assert named.cv_scores_ == same.cv_scores_ and np.mean(named.cv_scores_["face"]) > 0.8


# --- the sign of weights


def test_weights_have_nilearns_sign(planted, shown, plain):
    """A voxel that is larger for face: the same sign as nilearn's, by class, in coef_ and in the decision."""
    nilearns = Decoder(mask=planted.mask, screening_percentile=100, cv=3).fit(*shown[:2])
    face, house = (2, 3, 1), (4, 5, 3)
    for name in ("face", "house"):
        with pytest.warns(UserWarning, match="nilearn's sign"):
            ours = plain.coef_img_[name].get_fdata()
        theirs = nilearns.coef_img_[name].get_fdata()
        for voxel in (face, house):
            assert np.sign(ours[voxel]) == np.sign(theirs[voxel]) != 0
    contrast = plain.coef_img_["face-house"].get_fdata()
    assert contrast[face] > 0 > contrast[house]  # here the name says for whom it speaks
    at = np.asarray(planted.mask.dataobj) > 0
    for decoder in (plain, nilearns):  # coef_ is the map of the first class
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The map of 'face' follows nilearn's sign")
            first = decoder.coef_img_["face"].get_fdata()
        np.testing.assert_allclose(first[at], decoder.coef_[0], rtol=1e-6)
    rows = plain._data.X
    np.testing.assert_array_equal(np.sign(plain.coef_), np.sign(-contrast[at])[None])
    assert np.mean((nilearns.decision_function(rows) > 0) == (plain.decision_function(rows) > 0)) > 0.9


def test_of_three_classes_maps_by_class_have_nilearns_sign(planted):
    y = np.where(planted.shown, planted.y, "rest")
    ours = GAMPDecoder("gamp-bg-lr", mask=planted.mask).fit(planted.bold, y, planted.runs)
    nilearns = Decoder(mask=planted.mask, screening_percentile=100, cv=3).fit(planted.bold, y)
    for name, voxel in (("face", (2, 3, 1)), ("house", (4, 5, 3))):
        assert ours.coef_img_[name].get_fdata()[voxel] > 0 < nilearns.coef_img_[name].get_fdata()[voxel]


# --- the commands' processing


def test_whole_runs_are_detrended_as_the_commands_do(tiny, tmp_path):
    """With the defaults of both: the same rows to the last bit, the same accuracies and weights."""
    out = tmp_path / "results"
    assert main(tiny.options(out, "--methods", "gamp-bg-lr", "--pairs", "all", "--quiet")) == 0
    labels = read_labels(tiny.labels)
    decoder = GAMPDecoder("gamp-bg-lr", mask=tiny.mask, ignore="rest")
    decoder.fit(tiny.bold, labels.conditions, groups=labels.runs)
    assert decoder.detrend == "auto" and decoder.masker_.detrend is True
    samples = load_samples(tiny.bold, labels, tiny.mask)
    np.testing.assert_array_equal(decoder._data.X, samples.X)
    results = read_results(out)
    for contrast, scores in decoder.contrast_scores_.items():
        a, b = contrast.split("-")
        known = {task["contrast"] for task in results.tasks}
        name = next(n for n in (f"{x}Minus{y.title()}" for x, y in ((a, b), (b, a))) if n in known)
        row = results.row("tiny", name, "gamp-bg-lr")
        assert row["accuracy_percent"] == pytest.approx(100 * np.mean(scores), abs=1e-3)  # digits of the file


def test_picked_volumes_and_maskers_are_left_alone(planted, shown, plain):
    assert plain.masker_.detrend is False
    asked = GAMPDecoder("gamp-bg-lr", mask=planted.mask, detrend=True).fit(*shown)
    assert asked.masker_.detrend is True and asked.fold_scores_.mean() < plain.fold_scores_.mean()
    masker = NiftiMasker(planted.mask, standardize="zscore_sample", reports=False)
    whole = GAMPDecoder("gamp-bg-lr", mask=masker, ignore="rest").fit(planted.bold, planted.y, planted.runs)
    assert whole.masker_.detrend is False
    with pytest.raises(ValueError, match=r"detrend: expected 'auto', True or False, got 'yes'"):
        GAMPDecoder(mask=planted.mask, detrend="yes").fit(*shown)
