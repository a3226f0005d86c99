import numpy as np
import pytest
from nilearn import signal

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.processing import Processing, clean_run, fill_missing, read_confounds


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
        ({}, 10, 8, None, "run 7: 8 confounds leave nothing of its 10 volumes"),
        ({"high_pass": 0.01}, 60, None, None, "Give t_r"),
        ({"high_pass": 0.3}, 60, None, 2.0, r"half the sampling rate, 0\.25 Hz at t_r = 2 s, got 0\.3 Hz"),
        ({"high_pass": 0.01}, 8, None, 2.0, "run 7 with 8 volumes cannot be processed"),
    ],
)
def test_runs_that_cannot_be_cleaned(run, settings, volumes, confounds, t_r, words):
    nuisance = None if confounds is None else np.random.default_rng(0).normal(size=(volumes, confounds))
    with pytest.raises(DataError, match=words):
        clean_run(run[:volumes], Processing(**settings), t_r, nuisance, 7)


@pytest.mark.parametrize(
    "settings",
    [{"lag_trs": -1}, {"lag_trs": 1.5}, {"smoothing_fwhm": 0}, {"high_pass": -1}, {"t_r": float("nan")}],
)
def test_settings_without_meaning(settings):
    with pytest.raises(DataError, match=next(iter(settings))):
        Processing(**settings)


def test_confound_files(tmp_path):
    one, two = tmp_path / "one.tsv", tmp_path / "two.tsv"
    one.write_text("x\ty\nn/a\t1\n2\t3\n")
    two.write_text("x\ty\n4\t5\n6\t7\n8\t9\n")
    table, missing = read_confounds((one, two), [2, 3])
    assert missing == 1
    np.testing.assert_array_equal(table, [[np.nan, 1], [2, 3], [4, 5], [6, 7], [8, 9]])
    table, missing = read_confounds((two,), [2, 1])  # one file for two BOLD files
    assert table.shape == (3, 2) and missing == 0


def test_confound_files_that_do_not_fit(tmp_path):
    one, two = tmp_path / "one.tsv", tmp_path / "two.tsv"
    one.write_text("x,y\n1,2\n3,4\n")
    two.write_text("x\n1\n2\n")
    with pytest.raises(DataError, match="expected one file, or one for each of 3 BOLD files, got 2"):
        read_confounds((one, two), [2, 2, 2])
    with pytest.raises(DataError, match="the same columns in all files"):
        read_confounds((one, two), [2, 2])
    with pytest.raises(DataError, match="expected 5 lines below the header, one per volume, got 2"):
        read_confounds((one,), [5])
    with pytest.raises(DataError, match="cannot be read as text"):
        read_confounds((tmp_path / "none.tsv",), [5])
    for bad in ("a", "inf"):
        two.write_text(f"x\n1\n{bad}\n")
        with pytest.raises(DataError, match="expected numbers or n/a"):
            read_confounds((two,), [2])


def test_missing_confounds_become_the_mean_of_the_run():
    filled = fill_missing(np.array([[np.nan, 1, np.nan], [2, 3, np.nan], [4, 5, np.nan]]))
    np.testing.assert_array_equal(filled, [[3, 1, 0], [2, 3, 0], [4, 5, 0]])
