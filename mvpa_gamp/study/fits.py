"""The fits of one unit of work, a method on a task: computed once, stored, and read back by --resume."""

import zipfile
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.crossval import cross_validate
from mvpa_gamp.imaging.haufe import haufe_pattern
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.report.files import write_npz

_PARAMETER = "parameter_"


@dataclass(frozen=True)
class UnitFits:
    """What a method learnt on a task with M rows, N voxels and B folds; column B is the refit on all rows.

    Weights are float32, as in the maps. ``decision``, ``proba`` and ``predicted`` come from the fold that
    held a row out. ``pattern`` has two columns: the refit's, and the mean over folds.
    """

    coef: NDArray  # (N, B+1)
    intercept: NDArray  # (B+1,)
    support: NDArray  # (N, B+1) bool
    pattern: NDArray  # (N, 2)
    status: NDArray  # (B+1,) text
    converged: NDArray  # (B+1,) bool
    n_iter: NDArray  # (B+1,)
    held_out: NDArray  # (B,) run
    rows: NDArray  # (M,) row of the samples
    y: NDArray  # (M,)
    runs: NDArray  # (M,)
    decision: NDArray  # (M,)
    proba: NDArray  # (M,)
    predicted: NDArray  # (M,)
    seconds: float
    parameters: dict[str, NDArray]  # each (B+1,)
    coef_std: NDArray | None = None  # (N, B+1)
    inclusion: NDArray | None = None  # (N, B+1)

    @property
    def n_folds(self) -> int:
        """B, without the refit."""
        return len(self.held_out)

    @property
    def frequency(self) -> NDArray:
        """Share of folds that selected each voxel (N,)."""
        return self.support[:, : self.n_folds].mean(axis=1)


def fit_unit(method: Method, X: NDArray, runs: NDArray, rows: NDArray, y: NDArray) -> UnitFits:
    """Fit every fold and the refit; ``rows`` says where the rows of X stand among the samples."""
    done = cross_validate(method, X, y, runs)
    fits, refit, said = done.fits, done.refit, done.predictions
    coef = np.column_stack([fits.coef, refit.coef])
    return UnitFits(
        coef=coef.astype(np.float32),
        intercept=np.append(fits.intercept, refit.intercept),
        support=np.column_stack([fits.support, refit.support]),
        pattern=_patterns(X, coef, done.folds.train),
        status=np.array([*fits.status, *refit.status]),
        converged=np.append(fits.converged, refit.converged),
        n_iter=np.append(fits.n_iter, refit.n_iter),
        held_out=done.folds.held_out,
        rows=rows,
        y=y.astype(int),
        runs=runs,
        decision=np.array([each.score for each in said]),
        proba=np.array([each.probability for each in said]),
        predicted=np.array([each.predicted for each in said]),
        seconds=float(done.seconds),
        parameters={k: np.append(v, refit.parameters[k]) for k, v in fits.parameters.items()},
        coef_std=_joined(fits.coef_std, refit.coef_std),
        inclusion=_joined(fits.inclusion, refit.inclusion),
    )


def _joined(folds: NDArray | None, refit: NDArray | None) -> NDArray | None:
    """Folds and refit side by side, in the single precision of maps."""
    return None if folds is None or refit is None else np.column_stack([folds, refit]).astype(np.float32)


def _patterns(X: NDArray, coef: NDArray, train: NDArray) -> NDArray:
    """Haufe's patterns of each column's training rows: the refit's, and the mean over folds, (N, 2).

    ``coef`` is (N, B+1), ``train`` (M, B).
    """
    total = np.zeros(X.shape[1])
    for column, rows in enumerate(train.T):
        total += haufe_pattern(X[rows], coef[:, column])
    refit = haufe_pattern(X, coef[:, -1])
    return np.column_stack([refit, total / train.shape[1]]).astype(np.float32)


def save_fits(path: Path, fits: UnitFits, fingerprint: str) -> None:
    """Store the fits in one file, whole or not at all."""
    arrays = {
        f.name: getattr(fits, f.name) for f in fields(UnitFits) if f.name not in ("parameters", "support")
    }
    arrays = {name: value for name, value in arrays.items() if value is not None}
    arrays |= {_PARAMETER + name: value for name, value in fits.parameters.items()}
    arrays["support"] = np.packbits(fits.support, axis=0)
    write_npz(path, {**arrays, "fingerprint": fingerprint})


def load_fits(path: Path) -> tuple[UnitFits, str]:
    """The stored fits and their fingerprint; ValueError when the file is not one of ours or is damaged."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        known = {name: arrays[name] for name in arrays if not name.startswith((_PARAMETER, "fingerprint"))}
        known["support"] = np.unpackbits(known["support"], axis=0, count=len(known["coef"])).astype(bool)
        known["seconds"] = float(known["seconds"])
        parameters = {k.removeprefix(_PARAMETER): v for k, v in arrays.items() if k.startswith(_PARAMETER)}
        return UnitFits(**known, parameters=parameters), str(arrays["fingerprint"])
    except (OSError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} does not hold stored fits ({error}). Delete it and resume.") from error
