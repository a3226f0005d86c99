"""Confounds of a decoder: regressed out run by run, in the forms that nilearn's maskers and models take."""

import nibabel
import numpy as np
import pandas as pd
import pytest
from nilearn.image import index_img
from nilearn.maskers import NiftiMasker
from sklearn.exceptions import ConvergenceWarning

from mvpa_gamp import GAMPDecoder
from mvpa_gamp.imaging.labels import Labels
from mvpa_gamp.imaging.processing import Processing
from mvpa_gamp.imaging.samples import load_samples
from mvpa_gamp.results.reader import read_results

RNG = np.random.default_rng(11)


@pytest.fixture(scope="module")
def moved(planted):
    """The scan with motion that hides the classes, and its confounds (120, 2)."""
    confounds = RNG.standard_normal((len(planted.y), 2))
    values = np.asarray(planted.bold.dataobj) + 8 * (
        confounds @ RNG.standard_normal((2, 7 * 8 * 6))
    ).T.reshape(7, 8, 6, -1)
    return planted._replace(
        bold=nibabel.Nifti1Image(values.astype(np.float32), planted.bold.affine)
    ), confounds


def decoder_of(scan, **settings):
    return GAMPDecoder("gamp-bg-lr", mask=scan.mask, ignore="rest", **settings)


@pytest.fixture(scope="module")
def cleaned(moved):
    scan, confounds = moved
    return decoder_of(scan).fit(scan.bold, scan.y, groups=scan.runs, confounds=confounds)


def test_they_are_regressed_out_of_each_run(moved, cleaned):
    scan, confounds = moved
    with pytest.warns(ConvergenceWarning, match="GAMP diverged.*the weights are those of VAMP BG"):
        without = decoder_of(scan).fit(scan.bold, scan.y, groups=scan.runs)
    assert cleaned.fold_scores_.mean() > 0.85 > without.fold_scores_.mean() + 0.1
    for run in range(1, 7):
        masker = NiftiMasker(scan.mask, detrend=True, standardize="zscore_sample", reports=False)
        rows = scan.runs == run
        X = masker.fit_transform(index_img(scan.bold, rows), confounds=confounds[rows])
        mine = cleaned._data.groups == run
        np.testing.assert_allclose(cleaned._data.X[mine], X[scan.y[rows] != "rest"], atol=1e-4)  # float32


def test_the_command_regresses_the_same(moved, cleaned, tmp_path):
    scan, confounds = moved
    pd.DataFrame(confounds, columns=["x", "y"]).to_csv(tmp_path / "confounds.tsv", sep="\t", index=False)
    labels, steps = Labels(scan.y, scan.runs), Processing(confounds=tmp_path / "confounds.tsv")
    samples = load_samples(scan.bold, labels, scan.mask, steps)
    np.testing.assert_allclose(cleaned._data.X, samples.X, atol=1e-5)  # digits of the file


@pytest.mark.parametrize("form", ["frame", "file", "frames by run", "files by image", "lists"])
def test_forms(moved, cleaned, tmp_path, form):
    scan, confounds = moved
    frame = pd.DataFrame(confounds, columns=["x", "y"])
    parts = [frame[scan.runs == run] for run in range(1, 7)]
    images, y, groups = scan.bold, scan.y, scan.runs
    if form == "frame":
        given = frame
    elif form == "file":
        given = tmp_path / "all.tsv"
        frame.to_csv(given, sep="\t", index=False)
    elif form == "lists":
        given = confounds.tolist()
    else:
        given = parts
    if form == "files by image":
        images = [index_img(scan.bold, scan.runs == run) for run in range(1, 7)]
        y, groups = [scan.y[scan.runs == run] for run in range(1, 7)], None
        given = [tmp_path / f"{k}.csv" for k in range(6)]
        for part, path in zip(parts, given, strict=True):
            part.to_csv(path, index=False)
    decoder = decoder_of(scan).fit(images, y, groups=groups, confounds=given)
    np.testing.assert_allclose(decoder._data.X, cleaned._data.X, atol=1e-5)


def test_runs_may_have_columns_of_their_own_and_missing_values(moved, cleaned):
    scan, confounds = moved
    parts = [confounds[scan.runs == run] for run in range(1, 7)]
    spike = np.zeros((20, 1))
    spike[7] = 1  # one volume of the second run is explained away
    parts[1] = np.hstack([parts[1], spike])
    parts[2] = np.where(np.arange(20)[:, None] == 0, np.nan, parts[2])
    with pytest.warns(UserWarning, match="2 missing values in the confounds were replaced by the mean"):
        decoder = decoder_of(scan).fit(scan.bold, scan.y, groups=scan.runs, confounds=parts)
    changed = np.abs(decoder._data.X - cleaned._data.X).max(axis=1) > 1e-6
    assert set(decoder._data.groups[changed].tolist()) == {2, 3}
    assert decoder._data.n_confounds == 3


def test_without_groups_there_is_one_series(moved):
    scan, confounds = moved
    found = decoder_of(scan, cv=4).fit(scan.bold, scan.y, confounds=confounds)
    masker = NiftiMasker(scan.mask, detrend=True, standardize="zscore_sample", reports=False)
    expected = masker.fit_transform(scan.bold, confounds=confounds)[scan.shown]
    np.testing.assert_allclose(found._data.X, expected, atol=1e-4)


def test_new_images_are_cleaned_of_theirs(moved, cleaned):
    scan, confounds = moved
    assert cleaned.score(scan.bold, scan.y, groups=scan.runs, confounds=confounds) > 0.9
    assert cleaned.score(scan.bold, scan.y, groups=scan.runs) < 0.8
    proba = cleaned.predict_proba(scan.bold, scan.runs, confounds=confounds)
    said = cleaned.predict(scan.bold, scan.runs, confounds=confounds)
    np.testing.assert_array_equal(cleaned.classes_[proba.argmax(axis=1)], said)


def test_where_nilearn_reads_the_images_they_are_regressed_out_too(moved, cleaned):
    scan, confounds = moved
    masker = NiftiMasker(
        scan.mask, detrend=True, standardize="zscore_sample", dtype="float32", reports=False
    )  # the package does not know dtype
    decoder = GAMPDecoder("gamp-bg-lr", mask=masker, ignore="rest")
    decoder.fit(scan.bold, scan.y, groups=scan.runs, confounds=confounds)
    np.testing.assert_allclose(decoder._data.X, cleaned._data.X, atol=1e-4)


def test_the_page_tells(moved, cleaned, tmp_path):
    steps = read_results(cleaned.to_bids(tmp_path)).summary.processing
    assert steps["confounds"] == 2 and steps["detrend"] is True


def test_confounds_of_images_that_are_not_cleaned_are_regressed_out_all_the_same(moved):
    scan, confounds = moved
    images, y, runs = scan.rows(scan.shown)
    plain = GAMPDecoder("gamp-bg-lr", mask=scan.mask, standardize=None)
    mine = confounds[scan.shown]
    X = plain.fit(images, y, groups=runs, confounds=mine)._data.X
    masker = NiftiMasker(scan.mask, standardize=None, reports=False)
    for run in (1, 6):
        rows = runs == run
        expected = masker.fit_transform(index_img(images, rows), confounds=mine[rows])
        np.testing.assert_allclose(X[rows], expected, atol=1e-3)  # values of 100 in float32
        assert X[rows].std(axis=0).mean() < 1.5  # the motion of about 10 is gone, noise of 1 is left


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros((119, 2)), r"expected 120 rows of numbers, .* got shape \(119, 2\)"),
        (np.full((120, 1), np.inf), r"shape \(120, 1\) with infinite values"),
        ([np.zeros((60, 1))] * 2, r"one for each of 1 images, or one for each of 6 runs .*, got 2"),
        ([np.zeros((19, 1))] * 6, r"expected 20 rows of numbers"),
        (np.zeros((120, 18)), r"run 1: 18 confounds are too many for its 20 volumes"),
        (pd.DataFrame({"name": ["a"] * 120}), r"expected numbers .*Keep numeric columns only"),
        ("nowhere.tsv", r"nowhere.tsv cannot be read"),
    ],
)
def test_what_does_not_fit(moved, wrong, message):
    scan, _ = moved
    with pytest.raises(ValueError, match=f"{message}"):
        decoder_of(scan).fit(scan.bold, scan.y, groups=scan.runs, confounds=wrong)


def test_images_cleaned_together_need_the_same_columns(moved):
    scan, confounds = moved
    halves = [index_img(scan.bold, scan.runs <= 3), index_img(scan.bold, scan.runs > 3)]
    with pytest.raises(ValueError, match=r"cleaned together, .* columns \(1, 2\). Give groups"):
        decoder_of(scan, cv=4).fit(halves, scan.y, confounds=[confounds[:60], confounds[60:, :1]])
