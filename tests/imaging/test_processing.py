import numpy as np
import pytest
from nilearn import signal

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.processing import Processing, clean_run


@pytest.fixture
def run():
    rng = np.random.default_rng(3)
    return 900 + np.linspace(0, 30, 60)[:, None] + rng.normal(0, 4, (60, 6))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"detrend": False},
        {"standardize": False},
        {"high_pass": 0.02},
        {"standardize": False, "detrend": False},
    ],
)
def test_a_run_is_cleaned_as_nilearn_does(run, settings):
    processing = Processing(**settings)
    expected = signal.clean(
        run,
        detrend=processing.detrend,
        standardize="zscore_sample" if processing.standardize else None,
        high_pass=processing.high_pass,
        filter="butterworth" if processing.high_pass else False,
        t_r=2.0,
    )
    np.testing.assert_array_equal(clean_run(run, processing, 2.0, None, 1), expected)


def test_confounds_are_gone_afterwards(run):
    nuisance = np.random.default_rng(4).normal(size=(60, 2))
    cleaned = clean_run(run + 5 * nuisance[:, :1], Processing(), None, nuisance, 1)
    assert np.abs(signal.clean(nuisance, standardize=None, filter=False).T @ cleaned).max() < 1e-9  # rounding


def test_a_constant_confound_does_no_harm(run):
    expected = clean_run(run, Processing(), None, None, 1)
    np.testing.assert_allclose(clean_run(run, Processing(), None, np.ones((60, 1)), 1), expected, atol=1e-10)


@pytest.mark.parametrize(
    ("settings", "volumes", "confounds", "t_r", "words"),
    [
        ({}, 2, None, None, "run 7: expected at least 3 volumes, got 2"),
        ({}, 10, 8, None, "run 7: 8 confounds are too many for its 10 volumes"),
        ({"high_pass": 0.01}, 60, None, None, "Give t_r"),
        ({"high_pass": 0.3}, 60, None, 2.0, r"half the sampling rate, 0\.25 Hz at t_r = 2 s, got 0\.3 Hz"),
        ({"high_pass": 0.01}, 8, None, 2.0, "run 7: its 8 volumes are too few for a temporal filter"),
    ],
)
def test_runs_that_cannot_be_cleaned(run, settings, volumes, confounds, t_r, words):
    nuisance = None if confounds is None else np.random.default_rng(0).normal(size=(volumes, confounds))
    with pytest.raises(DataError, match=words):
        clean_run(run[:volumes], Processing(**settings), t_r, nuisance, 7)


@pytest.mark.parametrize(
    "settings",
    [
        {"lag_trs": -1},
        {"lag_trs": 1.5},
        {"lag_trs": float("inf")},
        {"lag_trs": "2"},
        {"t_r": 10**400},
        {"smoothing_fwhm": 0},
        {"high_pass": -1},
        {"t_r": float("nan")},
        {"low_pass": "fast"},
        {"high_pass": True},
    ],
)
def test_settings_without_meaning(settings):
    with pytest.raises(DataError, match=next(iter(settings))):
        Processing(**settings)


@pytest.mark.parametrize("width", [1e-300, 1e-4, 1e7, 1e9])
def test_a_kernel_that_no_volume_could_have_is_refused_at_once(width):
    with pytest.raises(DataError, match=r"smoothing_fwhm: expected a width in mm, from 0\.001 to 1000, got"):
        Processing(smoothing_fwhm=width)
