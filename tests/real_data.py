"""Fixtures that several folders of tests share: the real Haxby slice where it is at hand, and a toy study."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest


class Study(NamedTuple):
    X: np.ndarray  # (M, N)
    conditions: np.ndarray  # (M,)
    runs: np.ndarray  # (M,)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder named by MVPA_GAMP_DATA, or shared/data beside the repository; skips without it."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("MVPA_GAMP_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"real data not found: {folder} is no folder (set MVPA_GAMP_DATA)")
    return folder


@pytest.fixture(scope="session")
def haxby_slice(real_data) -> Study:
    """The real slice, detrended and z-scored per run, rest dropped: X (864, 530) float32."""
    folder = real_data / "haxby_slice"
    if not folder.is_dir():
        pytest.skip(f"real data not found: {folder} is no folder (set MVPA_GAMP_DATA)")
    import nibabel
    from nilearn.signal import clean

    inside = np.asarray(nibabel.load(folder / "mask.nii.gz").dataobj) > 0
    series = np.asarray(nibabel.load(folder / "bold.nii.gz").dataobj)[inside].T.astype(float)
    lines = (folder / "labels.txt").read_text().split("\n")[1:]
    conditions, runs = np.array([line.split() for line in lines if line.strip()]).T
    cleaned = clean(series, runs=runs.astype(int), detrend=True, standardize="zscore_sample")
    kept = conditions != "rest"
    X = np.ascontiguousarray(cleaned[kept], dtype=np.float32)
    return Study(X, conditions[kept], runs[kept].astype(int))


@pytest.fixture(scope="session")
def toy_study() -> Study:
    """Six runs of 3 categories x 4 rows, 60 correlated features of which a few tell the categories apart."""
    rng = np.random.default_rng(7)
    runs = np.repeat(np.arange(6), 12)
    conditions = np.tile(np.repeat(["cat", "scissors", "shoe"], 4), 6)
    noise = rng.standard_normal((72, 60))
    X = noise + 0.7 * np.roll(noise, 1, axis=1)
    for i, category in enumerate(["cat", "scissors", "shoe"]):
        X[conditions == category, 10 * i : 10 * i + 3] += 2.2
    X -= X.mean(axis=0)
    return Study(X / X.std(axis=0), conditions, runs)
