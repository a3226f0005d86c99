"""The one map of a comparison that a page names first, shows first and that goes into a paper first."""

from dataclasses import dataclass
from pathlib import Path

from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.imaging.surface_names import is_there
from mvpa_gamp.results.reader import Results

INFORMATION = "information map: where the two categories differ, family-wise p ≤ 0.05"
_MEANING = {
    "information": INFORMATION,
    "pip": "inclusion probability: how likely the classifier needs a voxel",
    "pattern": "pattern: where the signals of the two categories differ, not tested",
    "weight": "weights of the classifier",
}


@dataclass(frozen=True)
class Recommended:
    """A kind of map, what it shows, and its file."""

    stat: str
    meaning: str
    path: Path


def recommended_map(results: Results, subject: str, contrast: str, method: str) -> Recommended | None:
    """What was tested and found; else what the classifier needs; else the pattern; None without any map."""
    folder, desc = results.folder, entity(method)
    paths = {stat: folder.statmap(subject, contrast, desc, stat) for stat in ("pip", "pattern", "weight")}
    if informative_voxels(results, subject, contrast):
        paths = {"information": information_map(results, subject, contrast)} | paths
    if results.refit(subject, contrast, method)["voxels"] == "0":
        del paths["pip"]  # nowhere above one half
    found = ((stat, path) for stat, path in paths.items() if is_there(path))
    stat, path = next(found, ("", None))
    if path is None:
        return None
    masked = stat == "information" and path != folder.tested_information(subject, contrast)
    return Recommended(stat, _MEANING[stat] + " in its mask" * masked, path)


def information_map(results: Results, subject: str, contrast: str) -> Path:
    """The map where it passed its test; in folders of earlier versions everywhere, beside its mask."""
    tested = results.folder.tested_information(subject, contrast)
    everywhere = results.folder.information(subject, contrast, "stat-corr_statmap.nii.gz")
    return tested if is_there(tested) else everywhere


def informative_voxels(results: Results, subject: str, contrast: str) -> int | None:
    """How many voxels carry information about a comparison's labels; None where that was not tested."""
    if contrast not in results.summary.information.get("contrasts", ()):
        return None
    rows = results.table(subject, "information")
    return next(int(row["voxels"]) for row in rows if row["contrast"] == contrast)
