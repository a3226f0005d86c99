"""Small images of shape (7, 8, 9) on a flipped and sheared grid."""

from dataclasses import dataclass
from pathlib import Path

import nibabel
import numpy as np
import pytest

SHAPE = (7, 8, 9)
AFFINE = np.array([[-3.0, 0.4, 0, 12], [0.2, 3.5, 0.6, -20], [0, -0.3, 4.0, 5], [0, 0, 0, 1]])
N_RUNS, RUN_LENGTH = 3, 20


@dataclass(frozen=True)
class SmallStudy:
    """Files of a small study, and the arrays they were written from."""

    folder: Path
    bold: Path
    labels: Path
    mask: Path
    volumes: np.ndarray  # (*SHAPE, 60) float32
    inside: np.ndarray  # SHAPE bool
    conditions: np.ndarray
    runs: np.ndarray


def small_image(values: np.ndarray, t_r: float | None = None):
    image = nibabel.Nifti1Image(values, AFFINE)
    image.header.set_xyzt_units("mm", "sec")
    if t_r is not None:
        image.header.set_zooms((*image.header.get_zooms()[:3], t_r))
    return image


def write_study(folder: Path, volumes: np.ndarray, inside: np.ndarray) -> SmallStudy:
    conditions = np.tile(np.repeat(["rest", "face", "rest", "house"], 5), N_RUNS)
    runs = np.repeat([3, 1, 2], RUN_LENGTH)  # not in numerical order
    nibabel.save(small_image(volumes, 2.0), folder / "bold.nii.gz")
    nibabel.save(small_image(inside.astype(np.int16)), folder / "mask.nii.gz")
    lines = [f"{condition} {run}" for condition, run in zip(conditions, runs, strict=True)]
    (folder / "labels.txt").write_text("\n".join(["labels chunks", *lines]) + "\n")
    paths = (folder / "bold.nii.gz", folder / "labels.txt", folder / "mask.nii.gz")
    return SmallStudy(folder, *paths, volumes, inside, conditions, runs)


@pytest.fixture
def volumes():
    rng = np.random.default_rng(11)
    drift = np.linspace(0, 4, N_RUNS * RUN_LENGTH)
    return (500 + drift + rng.normal(0, 3, (*SHAPE, N_RUNS * RUN_LENGTH))).astype(np.float32)


@pytest.fixture
def inside():
    mask = np.random.default_rng(12).random(SHAPE) < 0.3
    mask[0, 0, 0] = False
    return mask


@pytest.fixture
def study(tmp_path, volumes, inside):
    return write_study(tmp_path, volumes, inside)


@pytest.fixture(scope="session")
def make_study():
    return write_study


@pytest.fixture(scope="session")
def make_image():
    return small_image


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    """No test sees or fills the cache of the machine it runs on."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
