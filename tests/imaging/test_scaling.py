"""What cleaning did to whole runs: the mean and spread that new volumes are scaled with."""

import numpy as np
import pytest
from nilearn.signal import clean

from mvpa_gamp.imaging.matrix import pooled_scaling, run_sums

RNG = np.random.default_rng(0)
RUNS = [
    500 + level + np.linspace(0, drift, 60)[:, None] + RNG.normal(0, 5, (60, 4))
    for level, drift in ((0, 20), (30, -10), (-20, 40))
]


def scaling(cleaned, raw=RUNS):
    return pooled_scaling([run_sums(*pair) for pair in zip(raw, cleaned, strict=True)])


@pytest.mark.parametrize("confounds", [None, RNG.standard_normal((60, 3))])
def test_of_z_scores_it_is_the_mean_and_the_deviation_that_cleaning_left(confounds):
    left = [clean(run, detrend=True, standardize=None, confounds=confounds) for run in RUNS]
    deviation = np.mean([run.std(axis=0, ddof=1) for run in left], axis=0)
    found = scaling([run / run.std(axis=0, ddof=1) for run in left])
    np.testing.assert_allclose(found.center, np.concatenate(RUNS).mean(axis=0))
    np.testing.assert_allclose(found.spread, deviation)
    np.testing.assert_allclose(found.level, 0, atol=1e-12)
    new = found.center + 2 * deviation
    np.testing.assert_allclose(found.apply(new[None]), np.full((1, 4), 2.0))


def test_percent_changes_and_values_as_they_are():
    percent = scaling([clean(run, detrend=False, standardize="psc") for run in RUNS])
    np.testing.assert_allclose(percent.spread, 5, rtol=0.1)  # 1 % of about 500
    np.testing.assert_allclose(scaling(RUNS).apply(RUNS[1]), RUNS[1])


def test_volumes_left_out_do_not_count_and_constant_voxels_stay_at_their_level():
    raw = RUNS[0].copy()
    raw[:, 2] = 7.0
    cleaned = clean(raw, detrend=True, standardize="zscore_sample")
    expected = scaling([cleaned], [raw])
    assert np.isinf(expected.spread[2]) and expected.apply(np.full((1, 4), 9.0))[0, 2] == expected.level[2]
    more = np.concatenate([raw, np.full((3, 4), 1e6)])
    left_out = np.concatenate([cleaned, np.full((3, 4), np.nan)])
    for one, other in zip(scaling([left_out], [more]), expected, strict=True):
        np.testing.assert_array_equal(one, other)
