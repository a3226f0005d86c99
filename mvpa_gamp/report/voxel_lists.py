"""Voxels that inference names, listed with their coordinates, each list folded."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from mvpa_gamp.imaging.brainmaps import read_image
from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.imaging.spaces import space_of
from mvpa_gamp.report.inference_rows import ALPHA, inference_row, p_text, power_words
from mvpa_gamp.report.markup import cell, details, file_link, headings, table, text
from mvpa_gamp.report.outlines import FAMILY_WISE, at_least, has_selection
from mvpa_gamp.report.words import compared, compared_with, tenths
from mvpa_gamp.results.reader import Results

_LISTED = 20  # voxels listed on the page; files have all of them
# How the set of a false-discovery rate relates to the selected voxels.
_RANKED = (
    "Ranked by inclusion probability and correlation with the labels, so some selected voxels may be missing "
    "and others included. "
)


def voxel_lists(results: Results, subject: str, contrast: str) -> list[str]:
    """Voxels of a comparison that inference names, with their coordinates, each list folded."""
    out = []
    for method in results.finished(subject, contrast):
        found, folder = results.inferred(subject, contrast, method), results.folder
        label, desc = results.labels[method], entity(method)
        if "logpfwe" in found:
            path = folder.statmap(subject, contrast, desc, "logpfwe")
            used = compared_with([compared(inference_row(results, subject, contrast, method))])
            title = f"{label}: family-wise p ≤ {ALPHA} for the inclusion probability ({used})"
            out.append(
                _voxel_list(results, title, path, float(FAMILY_WISE), "p", lambda v: p_text(str(10**-v)))
            )
        if has_selection(found):
            row = inference_row(results, subject, contrast, method)
            title = f"{label}: selected at a false-discovery rate of {results.inference['fdr']:g}"
            note = f"{row['fdr_verdict'].split(':')[0]}; {power_words(results, row)}. {_RANKED}"
            path = folder.fdr_mask(subject, contrast, method)
            out.append(_voxel_list(results, title, path, 1.0, note=note))
    if contrast in results.summary.information.get("contrasts", ()):
        path = results.folder.information(subject, contrast, "stat-logpfwe_statmap.nii.gz")
        title = f"Voxels that carry information, family-wise p ≤ {ALPHA}, independent of the method"
        out.append(_voxel_list(results, title, path, float(FAMILY_WISE), "p", lambda v: p_text(str(10**-v))))
    return out


def _voxel_list(
    results: Results, title: str, path: Path, level: float, head: str = "",
    show: Callable[[float], str] = str, note: str = "",
) -> str:  # fmt: skip
    """The voxels of a map from a level on, largest value first, and a link to the map."""
    image = read_image(path)
    space = space_of(image)
    values = space.values(image).astype(float)  # others are 0 and below every level
    there = np.flatnonzero(at_least(values, level))
    there = there[np.argsort(-values[there], kind="stable")]
    link = file_link(path, results.folder.root, results.linked)
    if not len(there):
        return details(f"{title}: none", f"<p>No voxel. {link}</p>")
    places = space.coordinates()[there[:_LISTED]]
    body = [
        cell(tenths(place)) + (cell(show(values[voxel])) if head else "")
        for voxel, place in zip(there, places, strict=False)
    ]
    said = f"x y z (mm){f' and {head}' if head else ''}. "
    said += f"The first {_LISTED} of {len(there):,}. " if len(there) > _LISTED else ""
    count = f"{len(there):,} voxel{'s' * (len(there) != 1)}"
    top = headings(("x y z (mm)", *([head] if head else [])), 0)
    return details(
        f"{title}: {count}", table([top], body, f"{text(note)}{said}All of them: {link}", "voxels")
    )
