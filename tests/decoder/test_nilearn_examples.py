"""The calls of nilearn's decoder examples, with nilearn's class and with ours: one name changes.

The data are generated in the form of Haxby's: a 4-D file, a mask file, and a table of labels and chunks. Each
function makes the calls of the example it names, in our own words, and returns what the example looks at.
"""

import warnings
from typing import NamedTuple

import nibabel
import numpy as np
import pandas as pd
import pytest
from nilearn.decoding import Decoder, FREMClassifier
from nilearn.glm.first_level import FirstLevelModel
from nilearn.image import index_img
from nilearn.maskers import NiftiMasker, SurfaceMasker
from nilearn.plotting import view_img
from nilearn.surface import SurfaceImage
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut
from surface_data import planted, small_mesh

from mvpa_gamp import GAMPDecoder
from mvpa_gamp.imaging.phantom import Phantom, phantom_images, phantom_labels

pytestmark = pytest.mark.whole

CATEGORIES = ("bottle", "cat", "chair", "face", "house")
OURS = (
    "is not used: ",
    "Without groups the decoder cannot know",
    "follows nilearn's sign: with two classes",
    " separately, which removes much of the signal",
    "fits did not converge, see status_",  # eight maps of two classes
)  # what GAMPDecoder says to users of these calls
THEIRS = ("Casting data from", "'partition' will ignore", "Generation of a mask has been requested")


class Haxby(NamedTuple):
    func: str
    mask: str
    labels: pd.DataFrame

    def rows(self, *names):
        chosen = self.labels["labels"].isin(names)
        return index_img(self.func, chosen), self.labels["labels"][chosen], self.labels["chunks"][chosen]


@pytest.fixture(scope="module")
def haxby(tmp_path_factory):
    folder = tmp_path_factory.mktemp("haxby")
    spec = Phantom(shape=(10, 12, 8), n_runs=5, categories=CATEGORIES, signal=3.0)
    bold, mask, _, _ = phantom_images(spec)
    labels = phantom_labels(spec)
    for name, image in (("bold", bold), ("mask", mask)):
        nibabel.save(image, folder / f"{name}.nii.gz")
    table = pd.DataFrame({"labels": labels.conditions, "chunks": labels.runs})
    return Haxby(str(folder / "bold.nii.gz"), str(folder / "mask.nii.gz"), table)


def tutorial(haxby, decoder_class, folder):
    """00_tutorials/plot_decoding_tutorial, but for its dummy."""
    images, conditions, runs = haxby.rows("face", "cat")
    conditions = conditions.to_numpy()
    usual = {"estimator": "svc", "mask": haxby.mask, "screening_percentile": 100, "verbose": 1}
    decoder = decoder_class(**usual)
    decoder._repr_html_()
    decoder.fit(images, conditions)
    assert (decoder.predict(images) == conditions).mean() > 0.8
    decoder = decoder_class(**usual).fit(index_img(images, slice(0, -30)), conditions[:-30])
    accuracies = [(decoder.predict(index_img(images, slice(-30, None))) == conditions[-30:]).mean()]
    for train, test in KFold(n_splits=3).split(conditions):
        decoder = decoder_class(**usual).fit(index_img(images, train), conditions[train])
        accuracies.append((decoder.predict(index_img(images, test)) == conditions[test]).mean())
    decoder = decoder_class(**usual, cv=5, scoring="accuracy", n_jobs=1).fit(images, conditions)
    assert all(len(values) == 5 for values in decoder.cv_params_["face"].values())
    decoder = decoder_class(**usual, cv=LeaveOneGroupOut()).fit(images, conditions, groups=runs)
    assert decoder.coef_.shape == (1, decoder.n_elements_)
    decoder.coef_img_["face"].to_filename(folder / "weights.nii.gz")
    view_img(decoder.coef_img_["face"], bg_img=index_img(images, 0), dim=-1)
    return [np.mean(accuracies), np.mean(decoder.cv_scores_["face"])]


def anova_svm(haxby, decoder_class, folder):
    """02_decoding/plot_haxby_anova_svm."""
    images, conditions, runs = haxby.rows("face", "house")
    screened = {
        "screening_percentile": None,
        "screening_n_features": 50,
        "scoring": "accuracy",
        "verbose": 2,
    }
    decoder = decoder_class(estimator="svc", mask=haxby.mask, smoothing_fwhm=4, **screened)
    assert (decoder.fit(images, conditions).predict(images) == conditions).mean() > 0.8
    decoder = decoder_class(estimator="svc", mask=haxby.mask, cv=LeaveOneGroupOut(), **screened)
    decoder.fit(images, conditions, groups=runs)
    decoder.coef_img_["face"].to_filename(folder / "face_vs_house.nii")
    return [np.mean(decoder.cv_scores_["face"])]


def different_estimators(haxby, decoder_class, folder):
    """02_decoding/plot_haxby_different_estimators: many classes, scores and their average by class."""
    images, conditions, runs = haxby.rows(*CATEGORIES)
    averages = []
    for name in ("svc_l2", "ridge_classifier"):
        decoder = decoder_class(
            estimator=name, mask=haxby.mask, cv=LeaveOneGroupOut(), screening_percentile=100
        )
        scores = decoder.fit(images, conditions, groups=runs).cv_scores_
        assert sorted(scores) == sorted(CATEGORIES)
        scores["AVERAGE"] = np.mean(list(scores.values()), axis=0)
        averages.append(np.mean(scores["AVERAGE"]))
    return averages


def frem(haxby, decoder_class, folder):
    """02_decoding/plot_haxby_frem: trained on the first runs, tested on the last ones, a map of a class."""
    shown = haxby.labels["labels"].isin(["face", "house", "chair"])
    train, test = (shown & rows for rows in (haxby.labels["chunks"] <= 2, haxby.labels["chunks"] > 2))
    known, true = (haxby.labels["labels"][rows].to_numpy() for rows in (train, test))
    decoder = decoder_class(mask=haxby.mask, cv=3, n_jobs=1, verbose=1)
    decoder.fit(index_img(haxby.func, train), known)
    said = decoder.predict(index_img(haxby.func, test))
    assert confusion_matrix(true, said, normalize="true").shape == (3, 3)
    assert decoder.coef_img_["face"].shape == nibabel.load(haxby.mask).shape
    return [(said == true).mean()]


def full_analysis(haxby, decoder_class, folder):
    """02_decoding/plot_haxby_full_analysis, but for its dummy: a masker as mask, a category against all."""
    images, conditions, runs = haxby.rows(*CATEGORIES)
    masker, found = NiftiMasker(mask_img=haxby.mask, verbose=1), []
    for category in ("face", "house"):
        decoder = decoder_class(
            estimator="svc_l1", cv=LeaveOneGroupOut(), mask=masker, scoring="roc_auc", verbose=1
        )
        decoder.fit(images, conditions == category, groups=runs)
        found.append(np.mean(decoder.cv_scores_[1]))
    return found


def glm_decoding(haxby, decoder_class, folder):
    """02_decoding/plot_haxby_glm_decoding: maps of a GLM, one for each condition and run."""
    model = FirstLevelModel(t_r=2.5, mask_img=haxby.mask, high_pass=0.008)
    maps, conditions, runs = [], [], []
    for run, rows in haxby.labels.groupby("chunks"):
        onset = 2.5 * np.arange(len(rows))
        events = pd.DataFrame({"onset": onset, "duration": 2.5, "trial_type": rows["labels"].to_numpy()})
        events = events[events["trial_type"] != "rest"]
        model.fit(index_img(haxby.func, rows.index), events=events)
        for name in events["trial_type"].unique():
            maps.append(model.compute_contrast(name))
            conditions.append(name)
            runs.append(run)
    decoder = decoder_class(
        estimator="svc", mask=haxby.mask, standardize=False, screening_percentile=100, cv=LeaveOneGroupOut()
    )
    decoder.fit(maps, conditions, groups=runs)
    return [np.mean(list(decoder.cv_scores_.values()))]


def grid_search(haxby, decoder_class, folder):
    """02_decoding/plot_haxby_grid_search: an outer loop by hand, scores of new images."""
    images, conditions, runs = haxby.rows("house", "bottle")
    found = []
    for train, test in GroupKFold(n_splits=2).split(np.arange(len(runs)), groups=runs):
        for percentile in (16, 100):
            decoder = decoder_class(
                estimator="svc", cv=3, mask=haxby.mask, smoothing_fwhm=4, screening_percentile=percentile
            )
            decoder.fit(index_img(images, train), conditions.iloc[train])
            found.append(decoder.score(index_img(images, test), conditions.iloc[test]))
    return found


def understand_decoder(haxby, decoder_class, folder):
    """02_decoding/plot_haxby_understand_decoder: masked rows of new images, a map of one of many classes."""
    images, conditions, runs = haxby.rows(*CATEGORIES)
    conditions, runs = conditions.to_numpy(), runs.to_numpy()
    new = runs == 4
    decoder = decoder_class(
        estimator="logistic_l2", mask=haxby.mask, n_jobs=1, cv=LeaveOneGroupOut(), screening_percentile=100,
        scoring="roc_auc_ovr",
    )  # fmt: skip
    decoder.fit(index_img(images, ~new), conditions[~new], groups=runs[~new])
    masker = NiftiMasker(mask_img=haxby.mask, standardize="zscore_sample").fit()
    said = decoder.predict(masker.transform(index_img(images, new)))
    assert decoder.coef_img_["bottle"].shape == decoder.masker_.mask_img_.shape
    scores = np.concatenate(list(decoder.cv_scores_.values()))
    assert scores.shape == (len(CATEGORIES) * 4,)
    return [np.mean(scores), (said == conditions[new]).mean()]


def surface_image_and_maskers(haxby, decoder_class, folder):
    """07_advanced/plot_surface_image_and_maskers: labels 0 and 1 of one image of time points."""
    data = planted(small_mesh())
    shown = data.y != "rest"
    image = SurfaceImage(data.image.mesh, {p: v[:, shown] for p, v in data.image.data.parts.items()})
    decoder = decoder_class(
        mask=SurfaceMasker(verbose=1), param_grid={"C": [0.01, 0.1]}, cv=3, screening_percentile=100,
        standardize=None,
    )  # fmt: skip
    decoder.fit(image, (data.y[shown] == "face").astype(int))
    assert decoder.coef_img_[0].shape == (240,)
    return [np.mean(list(decoder.cv_scores_.values()))]


# Each with the smallest value of what it returns that is far from chance.
EXAMPLES = {
    tutorial: 0.7,
    anova_svm: 0.7,
    different_estimators: 0.7,
    frem: 0.5,
    full_analysis: 0.6,
    glm_decoding: 0.6,
    grid_search: 0.6,
    understand_decoder: 0.4,
    surface_image_and_maskers: 0.8,
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.__name__)
def test_with_one_class_name_changed(haxby, example, tmp_path, capsys):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = example(haxby, GAMPDecoder, tmp_path)
    assert min(found) > EXAMPLES[example]
    told = {str(each.message) for each in said}
    strange = {text for text in told if not any(known in text for known in (*OURS, *THEIRS))}
    assert any("is not used" in text for text in told) or example is frem
    assert not strange


@pytest.mark.parametrize(
    "example",
    [
        each for each in EXAMPLES if each not in (different_estimators, understand_decoder)
    ],  # which take longer
    ids=lambda example: example.__name__,
)
def test_with_nilearns_class(haxby, example, tmp_path, capsys):
    """The calls are nilearn's: its own class takes them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = example(haxby, FREMClassifier if example is frem else Decoder, tmp_path)
    assert min(found) > 0.4


def test_the_dummies_of_the_examples_are_refused(haxby):
    images, conditions, runs = haxby.rows("face", "cat")
    dummy = GAMPDecoder(estimator="dummy_classifier", mask=haxby.mask, cv=LeaveOneGroupOut())
    with pytest.raises(ValueError, match="would be taken for chance"):
        dummy.fit(images, conditions, groups=runs)
