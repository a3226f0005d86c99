"""The fits of a cell as one file: computed once, stored, and read back by --resume."""

import zipfile
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.methods.fold_fits import FoldFits
from mvpa_gamp.results.files import reading, write_npz

_PARAMETER = "parameter_"
_MAPS = ("coef", "coef_std", "inclusion", "pattern")  # in the single precision of maps


def save_fits(path: Path, fits: FoldFits, fingerprint: str) -> None:
    """Store the fits of a cell, folds and refit, in one file, whole or not at all."""
    arrays = {item.name: getattr(fits, item.name) for item in fields(FoldFits)}
    parameters = arrays.pop("parameters")
    arrays = {name: np.asarray(value) for name, value in arrays.items() if value is not None}
    arrays |= {name: arrays[name].astype(np.float32) for name in _MAPS if name in arrays}
    arrays |= {_PARAMETER + name: value for name, value in parameters.items()}
    arrays["support"] = np.packbits(fits.support, axis=0)
    write_npz(path, {**arrays, "fingerprint": fingerprint})


def load_fits(path: Path) -> tuple[FoldFits, str]:
    """The stored fits and their fingerprint; ``DamagedFile`` when the file is not one of ours."""
    with reading(path, "stored fits"):
        arrays = load_arrays(path)
        known: dict[str, Any] = {item.name: arrays.get(item.name) for item in fields(FoldFits)}
        known["support"] = np.unpackbits(arrays["support"], axis=0, count=len(arrays["coef"])).astype(bool)
        known["seconds"] = float(arrays["seconds"])
        known["status"] = tuple(arrays["status"].tolist())
        known["parameters"] = {
            name.removeprefix(_PARAMETER): value
            for name, value in arrays.items()
            if name.startswith(_PARAMETER)
        }
        return FoldFits(**known), str(arrays["fingerprint"])


def load_arrays(path: Path) -> dict[str, NDArray]:
    """All arrays of a stored file; ``DamagedFile`` where it cannot be read.

    Members are read whole, because only then is their checksum compared: NumPy's own reader stops before.
    """
    with reading(path, "stored arrays"), zipfile.ZipFile(path) as stored:
        content = {name.removesuffix(".npy"): BytesIO(stored.read(name)) for name in stored.namelist()}
        return {name: np.lib.format.read_array(part, allow_pickle=False) for name, part in content.items()}
