"""The manifest of a folder: digests of tables and maps as their run recorded them, and whether they hold."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mvpa_gamp.imaging.disk import read_record, stays_inside
from mvpa_gamp.results.files import DamagedFile, read_json, read_tsv, reading, write_tsv
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.reader import Results, read_results

_COLUMNS = ("path", "sha256")
_DIGEST = re.compile("[0-9a-f]{64}")
# Two equal runs write all else byte for byte alike.
_OTHERS = ("index.html", "timings.tsv", "README.md", ".bidsignore", "cobidas_multivariate.tsv")
_OTHER_FOLDERS = ("figures/", "logs/", "work/", "group")


def recorded_results(folder: ResultsFolder) -> dict[str, str]:
    """Digests of tables and maps by path, as the last run recorded them, or as its manifest says."""
    record = read_record(folder.root)
    if record is None:
        return manifest_digests(folder) if folder.manifest.is_file() else {}
    names = [name for name in record.written if name not in _OTHERS and not name.startswith(_OTHER_FOLDERS)]
    return {name: record.written[name] for name in sorted(names) if stays_inside(name)}


def result_files(results: Results) -> list[Path]:
    """Tables and maps that the run of a folder wrote, whether they are there or not."""
    return [results.folder.root / name for name in recorded_results(results.folder)]


def write_manifest(results: Results) -> None:
    """Write the digests; two folders hold equal results exactly when their manifests are equal."""
    rows = recorded_results(results.folder).items()
    write_tsv(results.folder.manifest, _COLUMNS, [dict(zip(_COLUMNS, row, strict=True)) for row in rows])


def manifest_digests(folder: ResultsFolder) -> dict[str, str]:
    """The digest of every file of the manifest, by its path in the folder."""
    rows = read_tsv(folder.manifest)
    with reading(folder.manifest, "a table of digests"):
        known = {row[_COLUMNS[0]]: row[_COLUMNS[1]] for row in rows}
    if len(known) < len(rows) or not all(_DIGEST.fullmatch(digest) for digest in known.values()):
        raise DamagedFile(folder.manifest, "it cannot be read as a table of digests")
    if outside := [name for name in known if not stays_inside(name)]:
        raise DamagedFile(folder.manifest, f"it lists {outside[0]!r}, which is no place in the folder")
    return known


def missing_files(results: Results) -> list[Path]:
    """Files of a finished run that are not there or are empty."""
    folder = results.folder
    others = [folder.page, folder.timings, folder.environment, folder.manifest]
    return [
        path for path in (*result_files(results), *others) if not path.is_file() or path.stat().st_size == 0
    ]


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
