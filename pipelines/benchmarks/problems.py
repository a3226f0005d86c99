"""The data of the benchmarks: one comparison of the package's phantom, and plain random numbers."""

from pathlib import Path
from typing import Any, NamedTuple

import nibabel
import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.tasks import PAPER_PAIRS, make_tasks
from mvpa_gamp.imaging.phantom import Phantom, phantom_samples
from mvpa_gamp.imaging.spaces import voxel_connectivity
from mvpa_gamp.methods import L1LogisticCV


class Problem(NamedTuple):
    """One comparison: X (M, N) float32, labels y (M,) -1/+1, runs (M,), and the grid its voxels come from."""

    X: NDArray
    y: NDArray
    runs: NDArray
    mask: NDArray  # (i, j, k) bool, N of them True
    affine: NDArray  # (4, 4)

    def run_numbers(self) -> NDArray:
        """The runs, sorted."""
        return np.unique(self.runs)

    def connectivity(self) -> Any:
        """Which voxels are neighbours, (N, N)."""
        return voxel_connectivity(nibabel.Nifti1Image(self.mask.astype(np.uint8), self.affine))

    def small(self, n_features: int) -> "Problem":
        """The same with the first features only: enough to load libraries and to compile."""
        mask = self.mask & (np.cumsum(self.mask).reshape(self.mask.shape) <= n_features)
        return self._replace(X=np.ascontiguousarray(self.X[:, :n_features]), mask=mask)


def phantom_problem(shape: tuple[int, int, int], seed: int, n_runs: int = 12) -> Problem:
    """The first comparison of the paper's table on the package's phantom."""
    samples = phantom_samples(Phantom(shape=shape, seed=seed, n_runs=n_runs))
    task = make_tasks(samples.conditions, PAPER_PAIRS[:1])[0]
    mask = np.asarray(samples.mask_img.dataobj) != 0
    X = np.ascontiguousarray(samples.X[task.rows])
    return Problem(X, task.y, samples.runs[task.rows], mask, samples.mask_img.affine)


class Grids:
    """Penalties of every training set that leaves out one or two runs: those of ``l1-lr-cv``.

    Made before anything is timed, so that no peer pays for them.
    """

    def __init__(self, problem: Problem, n_values: int = 10) -> None:
        runs = problem.run_numbers().tolist()
        self._sets = [frozenset((a, b)) for a in runs for b in runs if a <= b]
        labels = np.array([[float(run not in out) for run in problem.runs] for out in self._sets])
        self._lambdas = L1LogisticCV(n_lambdas=n_values).lambdas(problem.X, labels)

    def __getitem__(self, left_out: frozenset[int]) -> NDArray:
        """Descending penalties of the training set without these runs."""
        return self._lambdas[:, self._sets.index(left_out)]


def random_problem(
    n_rows: int, n_features: int, n_columns: int, rng: np.random.Generator
) -> tuple[NDArray, NDArray, NDArray]:
    """X (M, N) float32 of unit variance, labels (M, B) and training rows (M, B) with one run in 12 held out.

    Every 12 columns share their labels, which 20 features and noise decide.
    """
    X = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    sources = rng.integers(0, n_features, (20, -(-n_columns // 12)))
    scores = np.stack([X[:, chosen].sum(axis=1) for chosen in sources.T], axis=1)
    scores += rng.standard_normal(scores.shape)
    y = np.where(scores > np.median(scores, axis=0), 1.0, -1.0)
    column = np.arange(n_columns)
    train = np.arange(n_rows)[:, None] * 12 // n_rows != (column % 12)[None, :]
    return X, y[:, column // 12], train


def save_problem(problem: Problem, folder: Path) -> None:
    """Write the arrays of a problem for another process."""
    for name, values in problem._asdict().items():
        np.save(folder / f"{name}.npy", values)


def load_problem(folder: Path) -> Problem:
    """Read what ``save_problem`` wrote."""
    return Problem(*(np.load(folder / f"{name}.npy") for name in Problem._fields))
