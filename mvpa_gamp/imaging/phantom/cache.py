"""The phantom's series on disk, so that it is simulated once per machine."""

import hashlib
import json
import os
import warnings
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.atomic_files import write_atomic
from mvpa_gamp.imaging.phantom.spec import Phantom


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/mvpa_gamp``, or ``~/.cache/mvpa_gamp``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "mvpa_gamp"


def cache_key(spec: Phantom) -> str:
    """Digest of the settings."""
    return hashlib.sha256(json.dumps(spec.description(), sort_keys=True).encode()).hexdigest()[:16]


def source_digest() -> str:
    """Digest of the simulation's source: changed code replaces old volumes and never reads them."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def read_cached(spec: Phantom) -> NDArray | None:
    """The series (M, N) int16 of a phantom, or None when it is absent, cut, changed or of other code."""
    shape = (spec.n_runs * spec.volumes_per_run, spec.voxels)
    try:
        data, sidecar = _files(spec)
        about = json.loads(sidecar.read_text(encoding="utf-8"))
        if about["source"] != source_digest():
            return None
        series = np.fromfile(data, dtype="<i2")
        whole = series.size == shape[0] * shape[1] and zlib.crc32(series.data) == about["crc32"]
        return series.reshape(shape) if whole else None
    except (OSError, RuntimeError, ValueError, KeyError, TypeError):
        return None


def write_cached(spec: Phantom, series: NDArray) -> bool:
    """Keep a series; False, with a warning, where the folder cannot be written."""
    content = np.ascontiguousarray(series, dtype="<i2").data
    about = {"crc32": zlib.crc32(content), "source": source_digest(), "phantom": spec.description()}
    try:
        data, sidecar = _files(spec)
        write_atomic(data, content.cast("B"))
        write_atomic(sidecar, json.dumps(about, indent=2).encode())
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
        warnings.warn(
            f"The phantom cannot be stored for the next run because its folder is not writable ({error}). "
            "Set XDG_CACHE_HOME to a writable folder.",
            stacklevel=2,
        )
        return False
    return True


def _files(spec: Phantom) -> tuple[Path, Path]:
    """Where the series and its checksum are kept."""
    stem = cache_folder() / f"phantom-{cache_key(spec)}"
    return stem.with_suffix(".int16"), stem.with_suffix(".json")
