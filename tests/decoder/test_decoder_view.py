"""GAMPDecoder: maps in nilearn's viewer, and labels given run by run."""

import numpy as np
import pytest
from nilearn.image import index_img

from mvpa_gamp import GAMPDecoder
from mvpa_gamp.imaging.phantom import Phantom, phantom_images, phantom_labels


@pytest.fixture(scope="module")
def scan():
    spec = Phantom(shape=(9, 11, 9), n_runs=3, categories=("face", "house"), signal=2.0)
    bold, mask, _, _ = phantom_images(spec)
    labels = phantom_labels(spec)
    return bold, mask, np.asarray(labels.conditions), np.asarray(labels.runs)


@pytest.fixture(scope="module")
def fitted(scan):
    bold, mask, y, runs = scan
    return GAMPDecoder(method="gamp-bg-lr", mask=mask, ignore="rest").fit(bold, y, runs)


@pytest.mark.parametrize("stat", ["weight", "pip"])
def test_a_map_is_shown_by_nilearn(fitted, stat):
    shown = fitted.view(stat=stat)
    assert hasattr(shown, "open_in_browser") and f"face-house: {stat}" in shown.html


def test_maps_that_are_not_there_are_named(fitted):
    with pytest.raises(ValueError, match=r"stat: expected one of weight, .* got 'zmap'"):
        fitted.view(stat="zmap")
    with pytest.raises(ValueError, match="contrast: expected one of 'face-house', got 'face-cat'"):
        fitted.view("face-cat")


@pytest.mark.parametrize("as_list", [False, True])
def test_labels_may_come_run_by_run(scan, fitted, as_list):
    bold, mask, y, runs = scan
    images = [index_img(bold, runs == run) for run in range(3)]
    parts = [y[runs == run] for run in range(3)]
    decoder = GAMPDecoder(method="gamp-bg-lr", mask=mask, ignore="rest")
    decoder.fit(images, [part.tolist() for part in parts] if as_list else parts)
    np.testing.assert_allclose(decoder.coef_, fitted.coef_, rtol=1e-5, atol=1e-7)
    assert len(decoder.fold_scores_) == 3 and set(decoder.cv_predictions_["group"]) == {1, 2, 3}


def test_lists_that_do_not_fit_the_images_are_refused(scan):
    bold, mask, y, runs = scan
    images = [index_img(bold, runs == run) for run in range(3)]
    with pytest.raises(ValueError, match=r"expected a label per image in each of 3 runs .* got 2 lists"):
        GAMPDecoder(mask=mask).fit(images, [y[runs == 0], y[runs != 0]])
