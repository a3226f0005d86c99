"""GAMPDecoder(whiten=True): the engine's fits, answers, maps, files, and what it refuses."""

import json
import warnings

import numpy as np
import pytest
from nilearn.image import index_img
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mvpa_gamp import GAMPDecoder
from mvpa_gamp.decoding import (
    FoldConfounds,
    blocks_of_volumes,
    fit_tasks,
    fold_errors,
    make_tasks,
)
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.preparation import NoiseWhitening
from mvpa_gamp.imaging.phantom import Phantom, phantom_images, phantom_labels
from mvpa_gamp.imaging.spaces import voxel_connectivity
from mvpa_gamp.methods import METHODS
from mvpa_gamp.results.files import read_tsv
from mvpa_gamp.results.reader import read_results, result_files

pytestmark = pytest.mark.whole

SPEC = Phantom(shape=(12, 14, 10), n_runs=5, categories=("cat", "face", "house"), signal=2.5)


class Scan:
    """The images and labels of a small phantom, with and without rest."""

    def __init__(self):
        self.bold, self.mask, _, _ = phantom_images(SPEC)
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
    return GAMPDecoder("gamp-sbg-lr", mask=scan.mask, whiten=True).fit(*scan.only("face", "house"))


@pytest.fixture(scope="module")
def three(scan):
    """By pairs: fits of two classes are those of three."""
    decoder = GAMPDecoder("gamp-sbg-lr", mask=scan.mask, ignore="rest", whiten=True)
    return decoder.fit(scan.bold, scan.y, scan.runs)


def direct(decoder, names, runs, pairs):
    """fit_whitened on the decoder's own rows."""
    method, graph = METHODS[decoder.method], voxel_connectivity(decoder.mask_img_)
    tasks = make_tasks(names, pairs)
    blocks = blocks_of_volumes(names, runs, decoder._data.rows)
    fits = fit_tasks(
        [method], decoder._data.X, tasks, runs, Scheme(preparation=NoiseWhitening(blocks), connectivity=graph)
    )
    return tasks, [fits[decoder.method, task.name] for task in tasks]


def test_a_pair_is_that_of_fit_whitened(pair, scan):
    _, y, runs = scan.only("face", "house")
    (task,), (fits,) = direct(pair, y, runs, [("face", "house")])
    # Names of classes and tasks differ, the arithmetic does not.
    np.testing.assert_array_equal(pair._data.fits[0].coef, fits.coef)
    np.testing.assert_array_equal(pair.coef_[0], -fits.coef[:, -1])  # positive for the second class
    np.testing.assert_allclose(pair.fold_scores_, 1 - fold_errors(fits, task.y), atol=1e-12)
    decision = pair._data.fits[0].decision
    # X is float32: its product with the weights differs from the solve's by rounding.
    np.testing.assert_allclose(decision, fits.decision, atol=1e-3 * np.abs(decision).max())
    assert pair.fold_scores_.mean() > 0.8


def test_blocks_of_every_class_tell_about_the_noise(three, scan):
    kept = scan.y != "rest"
    names, runs = scan.y[kept], scan.runs[kept]
    _, fits = direct(three, names, runs, [("cat", "face"), ("cat", "house"), ("face", "house")])
    for mine, theirs in zip(three._data.fits, fits, strict=True):
        # Pairs of one solve share blocks of rows: the same sums in float32, in another order.
        np.testing.assert_allclose(mine.coef, theirs.coef, atol=1e-3 * np.abs(theirs.coef).max())
    assert three.fold_scores_.shape == (5,) and three.fold_scores_.mean() > 0.6  # chance is a third


def test_whitening_is_not_the_default(pair, scan):
    plain = clone(pair).set_params(whiten=False).fit(*scan.only("face", "house"))
    assert GAMPDecoder().whiten is False and clone(pair).whiten is True
    assert np.abs(plain.coef_ - pair.coef_).max() > 0.01 * np.abs(plain.coef_).max()


@pytest.mark.parametrize("which", ["pair", "three"])
def test_it_predicts_new_images(which, scan, request):
    decoder = request.getfixturevalue(which)
    images, y, runs = scan.only(*decoder.classes_)
    train = runs < 4
    fitted = clone(decoder).set_params(ignore=None)
    fitted.fit(index_img(images, train), y[train], runs[train])
    test = index_img(images, ~train)
    said, proba = fitted.predict(test), fitted.predict_proba(test)
    assert np.mean(said == y[~train]) > 0.6 and proba.shape == (len(said), len(decoder.classes_))
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_array_equal(fitted.classes_[proba.argmax(axis=1)], said)


@pytest.mark.parametrize("method", ["gamp-bg-lr", "gamp-bg-pr", "gamp-bg-hl"])
def test_refits_answer_about_their_own_images_as_predict_does(scan, method):
    """One likelihood makes the probabilities of held-out images and those of new ones."""
    images, y, runs = scan.only("face", "house")
    decoder = GAMPDecoder(method, mask=scan.mask, whiten=True, standardize=False).fit(images, y, runs)
    known = decoder._data.fits[0].proba[:, -1]
    # Float32 rows and weights of many voxels: rounding of the scores, which proba may magnify.
    np.testing.assert_allclose(decoder.predict_proba(images)[:, 0], known, atol=1e-3)


def test_a_class_may_be_missing_in_a_run(scan):
    """A fold that holds out no image of a pair is still asked about the others."""
    kept = (scan.y != "rest") & ((scan.runs != 2) | (scan.y == "cat"))
    images, y, runs = index_img(scan.bold, kept), scan.y[kept], scan.runs[kept]
    plain = GAMPDecoder(mask=scan.mask).fit(images, y, runs)
    decoder = GAMPDecoder(mask=scan.mask, whiten=True).fit(images, y, runs)
    assert decoder.fold_scores_.shape == plain.fold_scores_.shape == (5,)
    assert all(fits.coef.shape[1] == 6 for fits in decoder._data.fits)


def test_there_are_no_deviations(pair):
    assert all(fits.coef_std is None for fits in pair._data.fits)
    assert set(pair.inclusion_img_) == set(pair.coef_img_)


@pytest.mark.parametrize("which", ["pair", "three"])
def test_permutations_test_the_score_of_the_folds(which, request):
    decoder = request.getfixturevalue(which)
    test = decoder.permutation_test(4)
    assert test.score == pytest.approx(decoder.fold_scores_.mean(), abs=1e-12)
    assert test.null.shape == (4,) and test.null.max() < test.score


def test_covariates_are_regressed_out_inside_folds(scan):
    images, y, runs = scan.only("face", "house")
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((len(y), 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decoder = GAMPDecoder(mask=scan.mask, method="gamp-bg-lr").fit(images, y, runs, fold_confounds=noise)
    data = decoder._data
    (task,) = make_tasks(y, [("face", "house")])
    fits = fit_tasks([METHODS["gamp-bg-lr"]], data.X, [task], runs, Scheme(preparation=FoldConfounds(noise)))
    np.testing.assert_allclose(decoder.coef_[0], -fits["gamp-bg-lr", task.name].coef[:, -1], rtol=1e-6)
    assert decoder.coef_std_img_ is not None
    with pytest.raises(ValueError, match="new rows need them too"):
        decoder.predict(data.X)
    said = decoder.predict_proba(data.X, fold_confounds=noise)[:, 0]
    np.testing.assert_allclose(said, data.fits[0].proba[:, -1], atol=1e-3)
    with pytest.raises(ValueError, match=r"fold_confounds: expected finite numbers"):
        GAMPDecoder(mask=scan.mask).fit(images, y, runs, fold_confounds=noise[:-1])
    page = decoder.generate_report(subject="phantom").html
    assert "Covariates (number 1, number 2) were regressed out of every voxel" in page


def test_a_covariate_that_decodes_is_told(scan):
    images, y, runs = scan.only("face", "house")
    slow = (y == "face") + 0.1 * np.random.default_rng(1).standard_normal(len(y))
    with (  # without the covariate nothing is left to learn
        pytest.warns(UserWarning, match="number 1 alone decodes face vs house"),
        pytest.warns(ConvergenceWarning, match="6 of 6 fits did not converge"),
    ):
        decoder = GAMPDecoder(mask=scan.mask, method="gamp-bg-lr").fit(images, y, runs, fold_confounds=slow)
    assert any("alone decodes" in note for note in decoder.notes_)


@pytest.mark.parametrize("which", ["pair", "three"])
def test_a_folder_is_written_and_says_it(which, tmp_path, request):
    decoder = request.getfixturevalue(which)
    root = decoder.to_bids(tmp_path / "out", "phantom")
    results = read_results(root)
    promised = list(result_files(results))
    assert all(path.is_file() for path in promised)
    assert not list(root.rglob("*weightsd*"))
    stem = "sub-phantom_contrast-faceMinusHouse_desc-gampSbgLr"
    for stat in ("weight", "pip", "selfreq"):
        about = json.loads((root / "sub-phantom" / f"{stem}_stat-{stat}_statmap.json").read_text())
        assert about["NoiseWhitening"].startswith("Noise was whitened")
    assert results.summary.processing["whiten"] is True
    rows = read_tsv(root / "summary.tsv")
    assert {row["status"] for row in rows if row["contrast"] != "average"} == {"ok"}


def test_the_page_says_it(pair):
    page = pair.generate_report(subject="phantom").html
    assert "inverse square root of the noise covariance" in page
