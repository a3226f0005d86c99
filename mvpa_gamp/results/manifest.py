"""What a finished folder promises, whether it is there, and the digest of every table and map."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from mvpa_gamp.imaging.brainmaps import sidecar_path
from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.imaging.surface_names import expanded
from mvpa_gamp.results.files import write_tsv
from mvpa_gamp.results.information_files import MAPS
from mvpa_gamp.results.names import ALL_CLASSES, CELL_TABLES, SUBJECT_TABLES
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.region_files import region_files

MANIFEST_COLUMNS = ("path", "sha256")


def result_files(results: Results) -> Iterator[Path]:
    """Tables and maps, which two equal runs write byte for byte alike (not run times, not the page)."""
    return expanded(_named_files(results))


def _named_files(results: Results) -> Iterator[Path]:
    """The same, maps under the names they have as volumes."""
    folder = results.folder
    yield from (folder.description, folder.summary, folder.study)
    if not results.summary.settings:  # of a fitted decoder, in summary.json
        yield folder.config
    for sub in results.subjects:
        yield from (folder.subject_table(sub, name) for name in SUBJECT_TABLES)
        images = [folder.mask(sub), folder.background(sub)]
        if results.has_truth:
            images += [folder.truth(sub, task["contrast"]) for task in results.tasks]
        for image in images:
            yield from (image, sidecar_path(image))
        if results.inference:
            yield folder.inference(sub)
        yield from _of_classes(results, sub)
        yield from (folder.root / place for place in results.cross.get("files", ()))
        for contrast in results.summary.information.get("contrasts", ()):
            images = [folder.information(sub, contrast, ending) for ending in MAPS]
            images.append(folder.tested_information(sub, contrast))
            yield from (path for image in images for path in (image, sidecar_path(image)))
            yield folder.information(sub, contrast, "voxels.tsv")
        if results.summary.fold_confounds:
            yield folder.subject_table(sub, "foldconfounds")
        if results.summary.pattern_clusters:
            yield folder.subject_table(sub, "patternclusters")
        if results.summary.information:
            yield folder.subject_table(sub, "information")
    yield from region_files(results)
    for cell in results.cells():
        overlap = results.row(*cell)["folds"] > 1  # of a single fold there is none
        tables = (name for name in CELL_TABLES if overlap or name != "jaccard")
        yield from (folder.cell_table(*cell, name) for name in tables)
        yield folder.cell_table(*cell, "predictions").with_suffix(".json")
        for image in _maps(results, *cell):
            yield from (image, sidecar_path(image))
        yield from _inference(results, *cell)


def _of_classes(results: Results, subject: str) -> Iterator[Path]:
    """Tables and maps of all classes together, of each method."""
    folder = results.folder
    for part in results.class_parts:
        yield from (folder.cell_table(subject, ALL_CLASSES, *file) for file in part.get("files", ()))
        maps = part.get("maps") or {"contrasts": (), "stats": ()}
        desc = f"{entity(part['method'])}Class"
        for contrast in maps["contrasts"]:
            for image in (folder.statmap(subject, contrast, desc, stat) for stat in maps["stats"]):
                yield from (image, sidecar_path(image))
    if results.class_parts:
        yield folder.subject_table(subject, "classes")


def _inference(results: Results, subject: str, contrast: str, method: str) -> Iterator[Path]:
    """Tables and maps of a cell that go beyond the table."""
    folder = results.folder
    found = results.inferred(subject, contrast, method)
    tables = (name for name in found if name not in ("logpfwe", "selection"))
    yield from (folder.cell_table(subject, contrast, method, name) for name in tables)
    images = []
    if "selection" in found:
        yield folder.fdr_voxels(subject, contrast, method)
        images.append(folder.fdr_mask(subject, contrast, method))
    if "logpfwe" in found:
        images.append(folder.statmap(subject, contrast, entity(method), "logpfwe"))
    for image in images:
        yield from (image, sidecar_path(image))


def _maps(results: Results, subject: str, contrast: str, method: str) -> Iterator[Path]:
    """Every map of a cell: the refit, its selection, the mean over folds, and the folds if asked for."""
    desc = entity(method)
    yield results.folder.selected_mask(subject, contrast, method)
    yield results.folder.statmap(subject, contrast, f"{desc}Selected", "weight")
    stats = results.stats(subject, contrast, method)
    for stat in stats:
        yield results.folder.statmap(subject, contrast, desc, stat)
        if stat != "selfreq":
            yield results.folder.statmap(subject, contrast, f"{desc}FoldMean", stat)
    if results.summary.fold_maps:
        for k in range(len(results.folds(subject, contrast, method))):
            for stat in stats:
                if stat not in ("selfreq", "pattern"):
                    yield results.folder.statmap(subject, contrast, f"{desc}Fold{k + 1:02d}", stat)


def write_manifest(results: Results) -> None:
    """Write the digests; two folders hold equal results exactly when their manifests are equal."""
    root = results.folder.root
    rows = [
        {"path": path.relative_to(root).as_posix(), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for path in result_files(results)
    ]
    write_tsv(results.folder.manifest, MANIFEST_COLUMNS, rows)


def missing_files(results: Results) -> list[Path]:
    """Promised files that are not there or are empty."""
    folder = results.folder
    others = [folder.page, folder.timings, folder.environment, folder.manifest]
    return [
        path for path in (*result_files(results), *others) if not path.is_file() or path.stat().st_size == 0
    ]
