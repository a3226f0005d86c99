"""The files of a comparison, in the order in which a paper would want them."""

from pathlib import Path

from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.imaging.surface_names import is_there
from mvpa_gamp.report.recommended import recommended_map
from mvpa_gamp.results.reader import Results

_TABLES = ("folds", "predictions", "jaccard", "permutations", "planted", "learningcurve")
_STATS = {
    "pattern": "pattern",
    "pip": "inclusion probability",
    "selfreq": "selection frequency",
    "weight": "all weights",
    "weightsd": "posterior deviation",
    "logpfwe": "family-wise p of the inclusion probability",
}


def leading_files(results: Results, subject: str, contrast: str, method: str) -> dict[str, Path]:
    """The maps to use by what they show: the recommended one, then others; weights alone come last."""
    folder, desc = results.folder, entity(method)
    first = recommended_map(results, subject, contrast, method)
    others = _there({
        **dict(list(information_files(results, subject, contrast).items())[:2]),
        "voxels at the FDR": folder.fdr_mask(subject, contrast, method),
        "pattern": folder.statmap(subject, contrast, desc, "pattern"),
        "inclusion probability": folder.statmap(subject, contrast, desc, "pip"),
        "selected voxels": folder.selected_mask(subject, contrast, method),
        "their weights": folder.statmap(subject, contrast, f"{desc}Selected", "weight"),
    })  # fmt: skip
    if first is None:
        return others
    return {first.meaning: first.path} | {said: path for said, path in others.items() if path != first.path}


def information_files(results: Results, subject: str, contrast: str) -> dict[str, Path]:
    """Which voxels carry information about the labels, whatever the method; none without permutations."""
    folder = results.folder
    return _there({
        "information map, where p ≤ 0.05": folder.tested_information(subject, contrast),
        "information map of all voxels": folder.information(subject, contrast, "stat-corr_statmap.nii.gz"),
        "its mask (p ≤ 0.05)": folder.information(subject, contrast, "mask.nii.gz"),
        "its family-wise p": folder.information(subject, contrast, "stat-logpfwe_statmap.nii.gz"),
        "its voxels": folder.information(subject, contrast, "voxels.tsv"),
    })  # fmt: skip


def method_files(results: Results, subject: str, contrast: str, method: str) -> dict[str, Path]:
    """Every map and table of a method on a comparison."""
    folder, desc = results.folder, entity(method)
    return _there({
        "voxels at the FDR": folder.fdr_mask(subject, contrast, method),
        **{words: folder.statmap(subject, contrast, desc, stat) for stat, words in _STATS.items()},
        "selected voxels": folder.selected_mask(subject, contrast, method),
        "weights of selected voxels": folder.statmap(subject, contrast, f"{desc}Selected", "weight"),
        **{name: folder.cell_table(subject, contrast, method, name) for name in _TABLES},
    })  # fmt: skip


def _there(files: dict[str, Path]) -> dict[str, Path]:
    return {words: path for words, path in files.items() if is_there(path)}
