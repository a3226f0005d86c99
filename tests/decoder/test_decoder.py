"""GAMPDecoder: a nilearn user's lines, exact agreement with the engine, maps, tables, permutations, data."""

import pickle

import nibabel
import numpy as np
import pandas as pd
import pytest
from nilearn.image import clean_img, index_img
from nilearn.maskers import NiftiMasker
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import GroupKFold

from mvpa_gamp import GAMPDecoder
from mvpa_gamp.decoding import PAPER_PAIRS, cross_validate, fold_errors, held_out_answers
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.imaging.labels import Labels
from mvpa_gamp.imaging.phantom import Phantom, phantom_images, phantom_labels
from mvpa_gamp.imaging.processing import Processing
from mvpa_gamp.imaging.samples import load_samples
from mvpa_gamp.imaging.spaces import voxel_connectivity
from mvpa_gamp.methods import METHODS
from mvpa_gamp.methods.fold_fits import with_class_weight
from mvpa_gamp.results.reader import read_results

pytestmark = pytest.mark.whole

SPEC = Phantom(shape=(12, 14, 10), n_runs=5, categories=("cat", "face", "house"), signal=2.5)


class Scan:
    """The images and labels of a small phantom, with and without rest."""

    def __init__(self):
        self.bold, self.mask, _, self.truth = phantom_images(SPEC)
        labels = phantom_labels(SPEC)
        self.y, self.runs = np.asarray(labels.conditions), np.asarray(labels.runs)

    def only(self, *classes):
        rows = np.isin(self.y, classes)
        return index_img(self.bold, rows), self.y[rows], self.runs[rows]


@pytest.fixture(scope="module")
def scan():
    return Scan()


@pytest.fixture(scope="module")
def pair(scan):
    return GAMPDecoder(mask=scan.mask).fit(*scan.only("face", "house"))


@pytest.fixture(scope="module")
def three(scan):
    return GAMPDecoder(mask=scan.mask, ignore="rest", detrend=True).fit(scan.bold, scan.y, scan.runs)


def values(image, mask):
    return np.asarray(image.dataobj)[np.asarray(mask.dataobj) != 0]


# --- a nilearn user's lines


def test_the_lines_of_a_nilearn_user_work(scan, tmp_path):
    images, y, runs = scan.only("face", "house")
    nibabel.save(images, tmp_path / "bold.nii.gz")
    nibabel.save(scan.mask, tmp_path / "mask.nii.gz")
    train, test = runs < 4, runs == 4
    decoder = GAMPDecoder(mask=str(tmp_path / "mask.nii.gz"), standardize="zscore_sample", scoring="roc_auc")
    decoder.fit(index_img(str(tmp_path / "bold.nii.gz"), train), y[train], groups=runs[train])
    prediction = decoder.predict(index_img(images, test))
    assert set(prediction) <= {"face", "house"} and len(prediction) == test.sum()
    assert np.mean(decoder.cv_scores_["face"]) > 0.8
    assert decoder.score(index_img(images, test), y[test]) > 0.8
    with pytest.warns(UserWarning, match="nilearn's sign"):
        coef_img = decoder.coef_img_["face"]
    assert coef_img.shape == scan.mask.shape
    np.testing.assert_allclose(coef_img.affine, scan.mask.affine)


@pytest.mark.parametrize("form", ["list", "paths", "runs"])
def test_images_come_in_any_form(scan, pair, tmp_path, form):
    images, y, runs = scan.only("face", "house")
    if form == "runs":  # one 4-D image per run
        given = [index_img(images, runs == run) for run in range(5)]
    else:
        given = [index_img(images, k) for k in range(len(y))]
    if form == "paths":
        for k, image in enumerate(given):
            nibabel.save(image, tmp_path / f"{k:03d}.nii.gz")
        given = [tmp_path / f"{k:03d}.nii.gz" for k in range(len(y))]
    decoder = GAMPDecoder(mask=scan.mask).fit(given, y, runs)
    np.testing.assert_allclose(decoder.coef_, pair.coef_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("fitted", [False, True])
def test_a_masker_brings_its_mask_and_its_cleaning(scan, fitted):
    images, y, runs = scan.only("face", "house")
    masker = NiftiMasker(mask_img=scan.mask, standardize="zscore_sample", detrend=True, reports=False)
    before = masker.get_params()
    decoder = GAMPDecoder(mask=masker.fit() if fitted else masker).fit(images, y, runs)
    expected = GAMPDecoder(mask=scan.mask, detrend=True).fit(images, y, runs)
    np.testing.assert_array_equal(decoder.coef_, expected.coef_)
    assert decoder.masker_ is not masker and masker.get_params() == before
    with pytest.warns(UserWarning, match="smoothing_fwhm of the decoder is ignored"):
        GAMPDecoder(mask=masker, smoothing_fwhm=5.0).fit(images, y, runs)


def test_without_a_mask_nilearn_computes_one(scan):
    images, y, runs = scan.only("face", "house")
    decoder = GAMPDecoder().fit(images, y, runs)
    expected = NiftiMasker(reports=False).fit(images).mask_img_
    np.testing.assert_array_equal(decoder.mask_img_.dataobj, expected.dataobj)


def test_it_is_cloned_and_pickled(pair, scan):
    images, _, _ = scan.only("face", "house")
    copy = clone(pair)
    assert not hasattr(copy, "coef_")
    for name, value in pair.get_params().items():
        assert name == "mask" or copy.get_params()[name] == value
    assert copy.set_params(method="gamp-bl-lr").method == "gamp-bl-lr"
    back = pickle.loads(pickle.dumps(pair))
    np.testing.assert_array_equal(back.predict_proba(images), pair.predict_proba(images))
    key = "face-house"
    np.testing.assert_array_equal(back.coef_img_[key].dataobj, pair.coef_img_[key].dataobj)
    assert back.permutation_test(2).score == pytest.approx(pair.fold_scores_.mean())


def test_equal_calls_are_answered_from_memory(scan, pair, tmp_path, monkeypatch):
    images, y, runs = scan.only("face", "house")
    settings = {"mask": scan.mask, "memory": tmp_path / "cache"}
    first = GAMPDecoder(**settings).fit(images, y, runs)
    monkeypatch.setattr(type(METHODS["gamp-bg-lr"]), "fit_folds", None)
    again = GAMPDecoder(**settings).fit(images, y, runs)
    np.testing.assert_array_equal(again.coef_, first.coef_)
    np.testing.assert_array_equal(first.coef_, pair.coef_)


# --- rows


def test_rows_are_those_of_the_commands(scan, three, tmp_path):
    """The decoder and load_samples make one matrix of one scan, to the last bit."""
    nibabel.save(scan.bold, tmp_path / "bold.nii.gz")
    samples = load_samples(tmp_path / "bold.nii.gz", Labels(scan.y, scan.runs), scan.mask)
    np.testing.assert_array_equal(three._data.X, samples.X)
    smooth = {"smoothing_fwhm": 20.0, "high_pass": 0.01, "t_r": 2.5, "detrend": True}
    decoder = GAMPDecoder(mask=scan.mask, ignore="rest", **smooth).fit(scan.bold, scan.y, scan.runs)
    samples = load_samples(scan.bold, Labels(scan.y, scan.runs), scan.mask, Processing(**smooth))
    np.testing.assert_array_equal(decoder._data.X, samples.X)


@pytest.mark.parametrize(
    "settings",
    [{}, {"standardize": "psc"}, {"standardize": None}, {"low_pass": 0.1, "high_pass": 0.01, "t_r": 2.5}],
)
def test_rows_are_nilearns_up_to_rounding(scan, settings):
    images, y, _ = scan.only("face", "house")
    decoder = GAMPDecoder(mask=scan.mask, cv=5, **settings).fit(images, y)
    plain = NiftiMasker(scan.mask, **{"standardize": "zscore_sample", **settings}, reports=False)
    assert isinstance(decoder.masker_, NiftiMasker)
    np.testing.assert_array_equal(decoder.masker_.transform(images), decoder._data.X)
    expected = plain.fit_transform(images)
    np.testing.assert_allclose(decoder._data.X, expected, atol=3e-5 * np.abs(expected).max())  # float32


@pytest.mark.parametrize("by", ["the package", "nilearn"])
@pytest.mark.parametrize("order", ["interleaved", "named"])
def test_runs_in_any_order_keep_their_labels(scan, pair, by, order):
    """nilearn's clean returns rows sorted by run: 'run-10' before 'run-9', interleaved runs apart."""
    images, y, runs = scan.only("face", "house")
    mask, rows = scan.mask, np.arange(len(y))
    if by == "nilearn":  # whose own transform is needed where a masker does more than the package
        mask = NiftiMasker(scan.mask, standardize="zscore_sample", dtype="float32", reports=False)
    if order == "interleaved":
        rows = np.argsort(rows % (len(rows) // 5), kind="stable")
    names = np.array([f"run-{9 + run}" for run in runs])[rows]
    decoder = GAMPDecoder(mask=mask).fit(index_img(images, rows), y[rows], names)
    np.testing.assert_allclose(decoder._data.X, pair._data.X[rows], atol=1e-4)
    expected = [pair.fold_scores_[int(name.removeprefix("run-")) - 9] for name in np.unique(names)]
    np.testing.assert_allclose(decoder.fold_scores_, expected)
    said = decoder.predict(index_img(images, rows), groups=names)
    np.testing.assert_array_equal(said, pair.predict(images, groups=runs)[rows])


# --- numbers


def test_a_pair_is_exactly_the_engines_cross_validation(pair, scan):
    images, y, runs = scan.only("face", "house")
    X = pair._data.X
    nilearns = NiftiMasker(scan.mask, standardize="zscore_sample", runs=runs, reports=False)
    np.testing.assert_allclose(X, nilearns.fit_transform(images), atol=1e-4)  # nilearn cleans in float32
    labels = np.where(y == "face", 1.0, -1.0)
    graph = voxel_connectivity(pair.mask_img_)
    expected = cross_validate(METHODS["vamp-sbg"], X, labels, runs, scheme=Scheme(connectivity=graph))
    np.testing.assert_allclose(pair.fold_scores_, 1 - fold_errors(expected, labels), rtol=1e-14)
    np.testing.assert_array_equal(pair.contrast_scores_["face-house"], pair.fold_scores_)
    np.testing.assert_array_equal(pair.coef_img_.vector("face-house"), np.float32(expected.refit.coef[:, 0]))
    np.testing.assert_array_equal(pair.inclusion_img_.vector("face"), expected.refit.inclusion[:, 0])
    said = held_out_answers([expected])
    np.testing.assert_array_equal(
        pair.cv_predictions_["probability_face"], np.clip(said.proba[:, 0], 1e-12, 1 - 1e-12)
    )
    frequency = expected.folds.support.mean(axis=1)
    np.testing.assert_array_equal(pair.selection_freq_img_.vector("face"), np.float32(frequency))


def test_refits_answer_about_their_own_images_as_the_solve_did(scan, pair):
    images, y, runs = scan.only("face", "house")
    data = pair._data
    fits = data.method.fit_folds(
        data.X, np.where(y == "face", 1.0, -1.0), np.ones((len(y), 1), dtype=bool), runs, data.connectivity
    )
    np.testing.assert_allclose(pair.decision_function(data.X), -fits.decision[:, 0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(pair.predict_proba(data.X)[:, 0], fits.proba[:, 0], rtol=1e-4, atol=1e-6)
    linear = data.X @ pair.coef_.T + pair.intercept_
    np.testing.assert_allclose(pair.decision_function(data.X), linear[:, 0], rtol=1e-6, atol=1e-6)
    grouped = pair.predict(images, groups=runs)  # cleaned run by run, as in fit
    np.testing.assert_array_equal(grouped, pair.predict(data.X))


def test_two_classes_speak_with_one_voice(pair, scan):
    images, _, runs = scan.only("face", "house")
    decision, proba = pair.decision_function(images, runs), pair.predict_proba(images, runs)
    said = pair.predict(images, runs)
    np.testing.assert_array_equal(said == "house", decision > 0)  # scikit-learn: positive is the second class
    np.testing.assert_array_equal(said == "house", proba[:, 1] > 0.5)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    face, house = pair.coef_img_["face-house"], pair.coef_img_["house-face"]
    np.testing.assert_array_equal(face.dataobj, -np.asarray(house.dataobj))
    data = pair._data
    difference = data.X[data.codes == 0].mean(axis=0) - data.X[data.codes == 1].mean(axis=0)
    assert np.corrcoef(difference, values(face, scan.mask))[0, 1] > 0.2  # the first class's side
    assert np.corrcoef(difference, values(pair.pattern_img_["face"], scan.mask))[0, 1] > 0.7


def test_three_classes_are_coupled(three, scan):
    assert three.contrasts_ == ["cat-face", "cat-house", "face-house"]
    assert list(three.coef_img_) == [*three.contrasts_, "cat", "face", "house"]
    assert three.coef_.shape == (3, three.n_elements_)
    assert three.fold_scores_.mean() > 0.55  # chance is one third
    table = three.cv_predictions_
    proba = table[["probability_cat", "probability_face", "probability_house"]].to_numpy()
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(three.classes_[proba.argmax(axis=1)], table["predicted"])
    by_fold = (table["true"] == table["predicted"]).groupby(table["fold"]).mean()
    np.testing.assert_allclose(by_fold, three.fold_scores_)
    assert list(three.cv_scores_) == ["cat", "face", "house"]  # by class, as in nilearn
    assert list(three.contrast_scores_) == three.contrasts_
    against_others = [(table["true"] == "cat") == (table["predicted"] == "cat")][0]
    np.testing.assert_allclose(against_others.groupby(table["fold"]).mean(), three.cv_scores_["cat"])
    assert three.decision_function(scan.bold, scan.runs).shape == (len(scan.y), 3)
    assert 1 / 3 < three.score(scan.bold, scan.y, scan.runs) <= 1  # rest is left out here too
    reverse = values(three.coef_img_["house-cat"], scan.mask)
    np.testing.assert_array_equal(reverse, -values(three.coef_img_["cat-house"], scan.mask))
    with pytest.raises(KeyError, match="maps of pairs of classes and of classes: 'cat-face'"):
        three.coef_img_["dog"]


def test_pairs_of_many_classes_are_those_of_two(three, scan):
    rows = np.isin(scan.y, ["face", "house"])
    table = three._data
    labels = np.where(scan.y[rows] == "face", 1.0, -1.0)
    X = table.X[np.isin(table.codes, (1, 2))]
    graph = voxel_connectivity(three.mask_img_)
    method, scheme = METHODS["gamp-sbg-lr"], Scheme(connectivity=graph)
    alone = cross_validate(method, X, labels, scan.runs[rows], scheme=scheme)
    by_pairs = clone(three).set_params(method=method.name).fit(scan.bold, scan.y, scan.runs)
    np.testing.assert_allclose(by_pairs.contrast_scores_["face-house"], 1 - fold_errors(alone, labels))


def test_many_classes_share_one_map_of_inclusion(three):
    """The default fits all classes together: pairs differ in weights, not in the voxels that carry them."""
    maps = [three.inclusion_img_.vector(name) for name in three.contrasts_]
    assert three.get_params()["method"] == "vamp-sbg" and len(maps) == 3
    assert all(np.array_equal(maps[0], each) for each in maps[1:])
    assert not np.array_equal(three.coef_[0], three.coef_[1])


def test_ignored_volumes_help_to_clean_and_are_left_out(scan, three):
    """The same as cleaning the whole runs first, by hand, and picking the labelled volumes."""
    cleaned = clean_img(
        scan.bold, runs=scan.runs, detrend=True, standardize="zscore_sample", mask_img=scan.mask
    )
    rows = scan.y != "rest"
    by_hand = GAMPDecoder(mask=scan.mask, standardize=None).fit(
        index_img(cleaned, rows), scan.y[rows], scan.runs[rows]
    )
    np.testing.assert_allclose(by_hand._data.X, three._data.X, atol=1e-4)
    np.testing.assert_array_equal(three.cv_predictions_["row"], np.flatnonzero(rows))
    np.testing.assert_allclose(by_hand.fold_scores_, three.fold_scores_, atol=0.05)


def test_each_run_is_cleaned_by_itself_when_groups_are_given(pair, scan):
    X, groups = pair._data.X, pair._data.groups
    for run in range(5):
        np.testing.assert_allclose(X[groups == run].mean(axis=0), 0, atol=1e-4)
    images, y, _ = scan.only("face", "house")
    with pytest.warns(
        UserWarning, match=r"Without groups .* Give the run of each .* confirm this with cv=5"
    ) as said:
        whole = GAMPDecoder(mask=scan.mask).fit(images, y)
    assert len(said) == 1 and whole.notes_ == (str(said[0].message),)  # the page says so too
    np.testing.assert_allclose(whole._data.X.mean(axis=0), 0, atol=1e-4)
    assert np.abs(whole._data.X[groups == 0].mean(axis=0)).max() > 0.1
    assert len(whole.fold_scores_) == 5 and whole.cv_predictions_["group"].isna().all()


def test_scores_follow_scoring(scan):
    images, y, runs = scan.only("face", "house")
    decoder = GAMPDecoder(mask=scan.mask, scoring="roc_auc", cv=GroupKFold(2)).fit(images, y, runs)
    said = decoder._data.said
    house = y[said.rows] == "house"
    expected = [roc_auc_score(house[said.fold == k], -said.decision[said.fold == k, 0]) for k in range(2)]
    np.testing.assert_allclose(decoder.cv_scores_["face"], expected)
    assert decoder.cv_scores_["face"] == decoder.cv_scores_["house"]
    assert list(decoder.contrast_scores_) == ["face-house"] and isinstance(decoder.cv_scores_["face"], list)
    np.testing.assert_array_equal(decoder.contrast_scores_["face-house"], decoder.cv_scores_["face"])
    assert decoder.contrast_scores_["face-house"].mean() == decoder.fold_scores_.mean()


def test_a_callable_scores_contrasts_but_not_a_class_against_others(scan):
    def accuracy(estimator, X, y):
        return float(np.mean(estimator.predict(X) == y))

    rows = scan.only("cat", "face", "house")
    called, named = (GAMPDecoder(mask=scan.mask, scoring=s).fit(*rows) for s in (accuracy, "accuracy"))
    assert called.cv_scores_ == {}
    np.testing.assert_equal(called.contrast_scores_, named.contrast_scores_)


def test_tables_are_tidy(three):
    assert list(three.cv_predictions_.columns[:5]) == ["row", "group", "fold", "true", "predicted"]
    assert len(three.cv_predictions_) == len(three._data.codes)
    assert three.confusion_.to_numpy().sum() == len(three._data.codes)
    right = np.trace(three.confusion_.to_numpy())
    assert right == (three.cv_predictions_["true"] == three.cv_predictions_["predicted"]).sum()
    assert list(three.stability_.index) == three.contrasts_
    assert (three.stability_["low"] <= three.stability_["nogueira"]).all()
    assert len(three.status_) == 3 * 6 and three.status_["status"].str.len().min() > 10
    assert three.converged_ == three.status_["converged"].all()
    assert isinstance(three.status_, pd.DataFrame) and three.status_["fold"].tolist()[5] == "refit"


def test_maps_lie_on_the_mask(three, scan):
    outside = np.asarray(scan.mask.dataobj) == 0
    for maps in (three.coef_img_, three.coef_std_img_, three.inclusion_img_, three.pattern_img_):
        image = np.asarray(maps["face-house"].dataobj)
        assert not image[outside].any() and image[~outside].any()
    share = values(three.inclusion_img_["face-house"], scan.mask)
    assert share.min() >= 0 and share.max() <= 1
    assert (values(three.coef_std_img_["face-house"], scan.mask) > 0).all()


def test_a_method_without_posterior_has_no_posterior_maps(scan):
    decoder = GAMPDecoder(method="gamp-l1-lr", mask=scan.mask).fit(*scan.only("face", "house"))
    assert decoder.coef_std_img_ is None and decoder.inclusion_img_ is None
    assert decoder.fold_scores_.mean() > 0.7
    proba = decoder.predict_proba(scan.bold)
    assert ((proba > 0) & (proba < 1)).all()


def test_failed_fits_are_counted_once(scan):
    class Stubborn(type(METHODS["gamp-bg-lr"])):
        def fit_folds(self, X, y, train, runs, connectivity=None):
            from dataclasses import replace

            fits = super().fit_folds(X, y, train, runs, connectivity)
            status = ("Not converged: stubborn.", *fits.status[1:])
            return replace(fits, converged=np.arange(len(status)) > 0, status=status)

    plain = METHODS["gamp-bg-lr"]
    stubborn = Stubborn(plain.name, plain.label, plain.description, plain.likelihood, plain.prior)
    with pytest.warns(UserWarning, match="1 of 6 fits did not converge, see status_. .*stubborn") as caught:
        decoder = GAMPDecoder(stubborn, mask=scan.mask).fit(*scan.only("face", "house"))
    assert len(caught) == 1 and not decoder.converged_
    assert decoder.status_["converged"].tolist() == [False] + [True] * 5


# --- permutations


def test_permutations_of_a_pair(pair):
    test = pair.permutation_test(30)
    assert test.score == pytest.approx(pair.fold_scores_.mean())
    assert test.null.shape == (30,) and 0 < test.pvalue <= 1
    assert test.pvalue == pair.permutation_test(30).pvalue


def test_permutations_of_three_classes(three):
    test = three.permutation_test(12)
    assert test.score == pytest.approx(three.fold_scores_.mean())
    assert test.pvalue == pytest.approx(1 / 13) and test.null.mean() < 0.5


# --- the real slice, and its twin that always runs


def six_pairs(decoder):
    keys = ["-".join(sorted(pair)) for pair in PAPER_PAIRS]
    return 1 - np.mean([np.mean(decoder.contrast_scores_[key]) for key in keys])


def linear_svm(decoder):
    """Leave-one-group-out accuracy of a linear one-versus-one SVM on the decoder's own samples."""
    from sklearn.svm import SVC

    data = decoder._data
    right = [
        SVC(kernel="linear").fit(data.X[train], data.codes[train]).predict(data.X[test]) == data.codes[test]
        for train, test in decoder.cv_
    ]
    return np.concatenate(right).mean()


def test_eight_categories_of_the_real_slice(real_data):
    folder = real_data / "haxby_slice"
    table = pd.read_csv(folder / "labels.txt", sep=" ")
    plain, decoder = (
        GAMPDecoder(method, mask=folder / "mask.nii.gz", ignore="rest", detrend=True).fit(
            folder / "bold.nii.gz", table["labels"], groups=table["chunks"]
        )
        for method in ("gamp-bg-lr", "gamp-sbg-lr")
    )
    assert decoder.n_classes_ == 8 and len(decoder.contrasts_) == 28 and decoder.converged_
    assert six_pairs(plain) == pytest.approx(0.127, abs=0.005)  # as the command finds
    assert plain.fold_scores_.mean() > 0.65 > linear_svm(plain) + 0.04
    errors = [1 - np.mean(list(each.contrast_scores_.values())) for each in (plain, decoder)]
    assert errors[1] == pytest.approx(0.084, abs=0.004) and errors[0] > errors[1] + 0.01
    assert decoder.stability_["jaccard"].mean() > 0.74 > plain.stability_["jaccard"].mean()


def test_eight_categories_of_a_phantom():
    spec = Phantom(shape=(12, 14, 10), n_runs=6, signal=2.5)
    bold, mask, _, _ = phantom_images(spec)
    labels = phantom_labels(spec)
    decoder = GAMPDecoder(mask=mask, ignore="rest", detrend=True)
    decoder.fit(bold, labels.conditions, groups=labels.runs)
    assert len(decoder.contrasts_) == 28
    assert six_pairs(decoder) < 0.35
    assert max(map(len, decoder.stability_.to_string().splitlines())) <= 80  # a terminal cuts longer lines
    assert list(decoder.stability_) == ["voxels", "jaccard", "chance", "nogueira", "low", "high"]
    assert decoder.fold_scores_.mean() > max(0.3, linear_svm(decoder) - 0.05)  # chance is 0.125


# --- weights of classes


def test_class_weights_reach_the_method(scan, tmp_path):
    images, y, runs = scan.only("face", "house")
    some = (y == "house") | (np.arange(len(y)) % 3 == 0)  # a third of the faces
    given = index_img(images, some), y[some], runs[some]
    decoder = GAMPDecoder("gamp-bg-lr", mask=scan.mask, class_weight="balanced").fit(*given)
    X, signs = decoder._data.X, np.where(y[some] == "face", 1.0, -1.0)
    method = with_class_weight(METHODS["gamp-bg-lr"], "balanced")
    np.testing.assert_array_equal(decoder.coef_[0], -cross_validate(method, X, signs, runs[some]).coef[:, -1])
    faces = np.mean(signs > 0)
    weights = {"face": 0.5 / faces, "house": 0.5 / (1 - faces)}
    named = GAMPDecoder("gamp-bg-lr", mask=scan.mask, class_weight=weights).fit(*given)
    np.testing.assert_allclose(named.coef_, decoder.coef_, atol=1e-3 * np.abs(decoder.coef_).max())
    row = read_results(decoder.to_bids(tmp_path)).row("01", "faceMinusHouse", "gamp-bg-lr")
    true, said = (decoder.cv_predictions_[name].to_numpy() for name in ("true", "predicted"))
    fold = decoder.cv_predictions_["fold"].to_numpy()
    expected = [balanced_accuracy_score(true[fold == k], said[fold == k]) for k in np.unique(fold)]
    assert row["balanced_accuracy_percent"] == pytest.approx(100 * np.mean(expected), abs=1e-3)
    assert read_results(tmp_path).leading_measure.name == "balanced accuracy"


@pytest.mark.parametrize("wrong", ["heavy", {"face": 1.0}, {"face": 1.0, "cat": 1.0}, 2])
def test_wrong_class_weights_are_refused(scan, wrong):
    with pytest.raises(ValueError, match=r"class_weight: expected None, 'balanced' or, for two classes"):
        GAMPDecoder(mask=scan.mask, class_weight=wrong).fit(*scan.only("face", "house"))
    with pytest.raises(ValueError, match=r"class_weight: expected None, 'balanced' or, for two classes"):
        weights = dict.fromkeys(("cat", "face", "house"), 1.0)
        GAMPDecoder(mask=scan.mask, class_weight=weights).fit(*scan.only("cat", "face", "house"))
