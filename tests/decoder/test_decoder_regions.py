"""GAMPDecoder.regions: what of the maps lies in the regions of an atlas, and how well each decodes alone."""

import warnings

import nibabel
import numpy as np
import pytest

from mvpa_gamp import GAMPDecoder
from mvpa_gamp.imaging.atlas import phantom_atlas
from mvpa_gamp.imaging.phantom import Phantom, phantom_images, phantom_labels
from mvpa_gamp.imaging.regions import OUTSIDE
from mvpa_gamp.results.regions import EVERYTHING, SUMS

pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def fitted():
    spec = Phantom(shape=(14, 18, 16), n_runs=4, categories=("face", "house", "cat"), signal=2.0)
    bold, mask, _, _ = phantom_images(spec)
    labels = phantom_labels(spec)
    decoder = GAMPDecoder(method="gamp-bg-lr", mask=mask, ignore="rest")
    return decoder.fit(bold, labels.conditions, groups=labels.runs)


def test_sums_over_regions_are_the_whole_of_every_contrast(fitted):
    table = fitted.regions(phantom_atlas(fitted.mask_img_))
    assert list(dict.fromkeys(table["contrast"])) == fitted.contrasts_
    for contrast, rows in table.groupby("contrast"):
        parts, whole = rows[rows["region"] != EVERYTHING], rows[rows["region"] == EVERYTHING]
        for column in SUMS:
            assert parts[column].sum() == whole[column].iloc[0], (contrast, column)
        inclusion = fitted.inclusion_img_.vector(contrast)
        assert whole["summed_inclusion"].iloc[0] == pytest.approx(inclusion.sum(dtype=float), rel=1e-6)
    assert "accuracy_percent" not in table and OUTSIDE in set(table["region"])


def test_a_planted_region_comes_first_and_p_values_are_corrected(fitted):
    table = fitted.regions(phantom_atlas(fitted.mask_img_), permutations=4)
    rows = table[table["contrast"] == "face-house"].dropna(subset=["accuracy_percent"])
    assert rows["region"].iloc[0] in ("lateral fusiform", "parahippocampal")
    assert rows["accuracy_percent"].iloc[0] > 80
    assert (rows["p_value_fwe"] >= rows["p_value"]).all() and rows["p_value_fwe"].is_monotonic_increasing


def test_labels_can_be_a_mapping(fitted):
    image = phantom_atlas(fitted.mask_img_).image
    table = fitted.regions(image, {1: "<one>"})
    assert "<one>" in set(table["region"]) and "region 2" in set(table["region"])


def test_regions_of_another_mask_are_refused(fitted):
    other = phantom_images(Phantom(shape=(9, 11, 9), n_runs=1))[1]
    with pytest.raises(ValueError, match="Create them with mask_img_ of the decoder"):
        fitted.regions(phantom_atlas(other))


def test_whitened_voxels_have_no_region_of_their_own(fitted):
    fitted.whiten = True
    try:
        with pytest.raises(ValueError, match="a voxel is a mixture of voxels"):
            fitted.regions(phantom_atlas(fitted.mask_img_), by_region=True)
    finally:
        fitted.whiten = False
    assert np.isfinite(fitted.coef_).all()


def test_regions_without_what_covariates_explain(fitted):
    """A covariate that carries the classes: regions decode worse once it is regressed out."""
    spec = Phantom(shape=(14, 18, 16), n_runs=4, categories=("face", "house"), signal=2.0)
    bold, mask, _, _ = phantom_images(spec)
    labels = phantom_labels(spec)
    shown = (labels.conditions == "face") * 1.0 - (labels.conditions == "house")
    decoder = GAMPDecoder(method="gamp-bg-lr", mask=mask, ignore="rest")
    atlas, best = phantom_atlas(mask), []
    for slow in (None, shown[:, None] + 0.05 * np.random.default_rng(0).standard_normal((shown.size, 1))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that it decodes by itself
            decoder.fit(bold, labels.conditions, groups=labels.runs, fold_confounds=slow)
        best.append(decoder.regions(atlas, by_region=True)["accuracy_percent"].max())
    assert best[0] > 90 and best[1] < best[0] - 15


def test_without_a_region_is_the_decoder_of_all_other_voxels(planted):
    """Face and house are told apart by one voxel in each half, so that no half is needed."""
    decoder = GAMPDecoder("lda", mask=planted.mask).fit(*planted.rows(planted.shown))
    numbers = np.ones((7, 8, 6), dtype=np.int16)
    numbers[4:] = 2
    atlas = nibabel.Nifti1Image(numbers, planted.mask.affine)
    names = {1: "front", 2: "back"}
    table = (
        decoder.regions(atlas, names, without=True, permutations=9).set_index("region").loc[["front", "back"]]
    )
    alone, without = table["accuracy_percent"], table["accuracy_without_percent"]
    assert without.tolist() == alone.tolist()[::-1]  # of two regions, one is what the other leaves
    assert table["p_value_without"].tolist() == table["p_value"].tolist()[::-1]
    whole = decoder.fold_scores_.mean() * 100
    assert alone.min() > 60 and alone.max() <= whole
