"""Whether the files of a finished folder are still what its run wrote."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mvpa_gamp.imaging.folder_record import stays_inside
from mvpa_gamp.results.damaged import DamagedFile, reading
from mvpa_gamp.results.files import read_json, read_tsv
from mvpa_gamp.results.manifest import MANIFEST_COLUMNS, result_files
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.reader import Results, read_results

_DIGEST = re.compile("[0-9a-f]{64}")


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
    with reading(folder.study, "the summary of a study"):
        promised = list(result_files(results))
    if unknown := [name for name in known if not (root / name).exists() and root / name not in promised]:
        raise DamagedFile(folder.manifest, f"it lists {unknown[0]!r}, which no run wrote")
    for path in promised:
        if path.exists() and path.relative_to(root).as_posix() not in known:
            _read(path)
    return results


def manifest_digests(folder: ResultsFolder) -> dict[str, str]:
    """The digest of every file of the manifest, by its path in the folder."""
    rows = read_tsv(folder.manifest)
    with reading(folder.manifest, "a table of digests"):
        known = {row[MANIFEST_COLUMNS[0]]: row[MANIFEST_COLUMNS[1]] for row in rows}
    if len(known) < len(rows) or not all(_DIGEST.fullmatch(digest) for digest in known.values()):
        raise DamagedFile(folder.manifest, "it cannot be read as a table of digests")
    if outside := [name for name in known if not stays_inside(name)]:
        raise DamagedFile(folder.manifest, f"it lists {outside[0]!r}, which is no place in the folder")
    return known


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
