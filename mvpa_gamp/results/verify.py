"""Whether the files of a finished folder are still what its run wrote."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mvpa_gamp.results.damaged import DamagedFile, reading
from mvpa_gamp.results.files import read_json, read_tsv
from mvpa_gamp.results.manifest import manifest_digests, recorded_results
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.reader import Results, read_results


def verify(root: Path, say: Callable[[str], None]) -> Results:
    """The results of a folder, or a ``DamagedFile``; a missing file is another matter, and no error here.

    Files are compared with their digests in logs/manifest.tsv; in a folder without one they must be
    readable. dataset_description.json may be edited, to add authors or a licence: ``say`` so and go on.
    """
    folder = ResultsFolder(root)
    known = manifest_digests(folder) if folder.manifest.exists() else {}
    for name, digest in known.items():
        path = root / name
        if not path.exists() or _digest(path) == digest:
            continue
        if path == folder.description:
            read_json(path)
            say(f"{path} is not as its run wrote it: it was edited or damaged. It is kept as it is.")
            continue
        raise DamagedFile(path, f"its content is not what {folder.manifest} recorded")
    results = read_results(root)
    recorded = recorded_results(folder)
    if unknown := [name for name in known if name not in recorded]:
        raise DamagedFile(folder.manifest, f"it lists {unknown[0]!r}, which no run wrote")
    for path in (root / name for name in recorded if name not in known):
        if known:
            raise DamagedFile(folder.manifest, f"it does not list {path.name!r}, which its run wrote")
        if path.exists():
            _read(path)
    return results


def is_as_recorded(path: Path, folder: ResultsFolder) -> bool:
    """Whether a file has its digest of the manifest; what no readable manifest lists is not doubted."""
    try:
        recorded = manifest_digests(folder).get(path.relative_to(folder.root).as_posix())
    except (OSError, DamagedFile):
        return True
    return recorded is None or _digest(path) == recorded


def _digest(path: Path) -> str:
    with reading(path, "a file"):
        return hashlib.sha256(path.read_bytes()).hexdigest()


def _read(path: Path) -> None:
    """Read a file as what its name says, or find it damaged."""
    if path.suffix == ".json":
        read_json(path)
    elif path.suffix == ".tsv":
        read_tsv(path)
    elif path.name.endswith(".gii"):
        import nibabel

        with reading(path, "a surface"):
            nibabel.load(path)
    elif path.name.endswith((".nii.gz", ".nii")):
        import nibabel

        with reading(path, "an image"):
            image: Any = nibabel.load(path)
            np.asanyarray(image.dataobj)
