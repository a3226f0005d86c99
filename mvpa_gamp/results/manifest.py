"""The manifest of a folder: the digest of every table and map that its run wrote, as the run recorded it."""

import re
from pathlib import Path

from mvpa_gamp.imaging.folder_record import read_record, stays_inside
from mvpa_gamp.results.damaged import DamagedFile, reading
from mvpa_gamp.results.files import read_tsv, write_tsv
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.reader import Results

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
