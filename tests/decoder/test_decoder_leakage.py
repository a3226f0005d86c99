"""The leakage check of GAMPDecoder: warnings, leakage_, the report, and strict=True."""

import warnings

import nibabel
import numpy as np
import pytest

from mvpa_gamp import GAMPDecoder

RUNS, LENGTH = 8, 4


def images(rng, copy=False):
    y = np.concatenate([np.repeat(rng.permutation(["face", "house"]), LENGTH) for _ in range(RUNS)])
    groups = np.repeat(np.arange(RUNS), 2 * LENGTH)
    volumes = 100 + rng.normal(size=(5, 6, 4, len(y)))
    volumes[1:3, 1:3, 1:3, y == "face"] += 1.5
    if copy:
        volumes[..., -1] = volumes[..., 0]
    return nibabel.Nifti1Image(volumes.astype(np.float32), np.diag([3.0, 3, 3, 1])), y, groups


@pytest.fixture
def mask():
    return nibabel.Nifti1Image(np.ones((5, 6, 4), dtype=np.uint8), np.diag([3.0, 3, 3, 1]))


def test_nothing_is_said_about_sound_images(mask):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decoder = GAMPDecoder(mask=mask, strict=True).fit(*images(np.random.default_rng(0)))
    assert decoder.leakage_ == ()


def test_an_image_given_twice(mask, tmp_path):
    given = images(np.random.default_rng(1), copy=True)
    with pytest.warns(UserWarning, match="2 of 64 volumes occur in more than one group"):
        decoder = GAMPDecoder(mask=mask).fit(*given)
    assert decoder.leakage_[0] in decoder.generate_report().html
    with pytest.raises(ValueError, match="strict=True: 2 of 64 volumes"):
        GAMPDecoder(mask=mask, strict=True).fit(*given)


def test_folds_that_split_blocks(mask):
    every_fourth = [(np.flatnonzero(np.arange(64) % 4 != k), np.arange(k, 64, 4)) for k in range(4)]
    with pytest.warns(UserWarning, match="16 of 16 blocks are split over folds"):
        decoder = GAMPDecoder(mask=mask, cv=every_fourth, standardize=None).fit(
            *images(np.random.default_rng(2))
        )
    assert len(decoder.leakage_) == 1


def test_the_order_of_images_counts_where_they_are_a_series(mask):
    image, _, groups = images(np.random.default_rng(3))
    y = np.tile(np.repeat(["face", "house"], LENGTH), RUNS)
    assert GAMPDecoder(mask=mask).fit(image, y, groups).leakage_ == ()  # maps may be sorted by class
    with pytest.warns(UserWarning, match="face before house in all 8 groups"):
        GAMPDecoder(mask=mask, t_r=2.0).fit(image, y, groups)


def test_a_covariate_that_decodes_is_an_error_where_strict(mask):
    image, y, groups = images(np.random.default_rng(5))
    slow = 5.0 * (y == "face")[:, None] + np.random.default_rng(6).standard_normal((len(y), 1))
    with pytest.warns(UserWarning, match="The covariate number 1 alone decodes"):
        GAMPDecoder(mask=mask).fit(image, y, groups, fold_confounds=slow)
    with pytest.raises(ValueError, match="strict=True: The covariate number 1 alone decodes"):
        GAMPDecoder(mask=mask, strict=True).fit(image, y, groups, fold_confounds=slow)


def test_a_covariate_that_float32_cannot_hold_is_refused(mask):
    image, y, groups = images(np.random.default_rng(5))
    huge = np.arange(len(y))[:, None] * 1e300
    with pytest.raises(ValueError, match=r"expected values of at most 1e\+15 in size, .* got \d"):
        GAMPDecoder(mask=mask).fit(image, y, groups, fold_confounds=huge)
