"""Maps over participants, where all of them are on one grid in one standard space: means, shares, tests."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp._version import __version__
from mvpa_gamp.decoding.group_tests import EXACT_MAPS, flip_map, smallest_flip_p
from mvpa_gamp.imaging.brainmaps import (
    Display,
    from_image,
    read_image,
    sidecar_path,
    write_image,
    write_map,
    write_meshes,
)
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.imaging.origin import bids_uri
from mvpa_gamp.imaging.spaces import space_of
from mvpa_gamp.imaging.surface_names import expanded
from mvpa_gamp.results.cell import NO_THRESHOLD
from mvpa_gamp.results.files import read_json
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.study_files import versions

# Spaces of a single brain: equal grids there are a coincidence, and the same voxel is not the same place.
INDIVIDUAL = ("native", "T1w", "T2w", "func", "anat", "boldref", "fsnative")
_AVERAGED = ("pip", "pattern")
_SELECTED = 0.5  # of the inclusion probability, as in the table
_SELECTED_IF = {"pip": f"posterior inclusion probability above {_SELECTED}", "weight": "weight other than 0"}
_MEANING = {
    "pip": "Mean over participants of the posterior probability that a voxel's weight is not zero.",
    "pattern": "Mean over participants of activation patterns (Haufe et al., 2014), each divided by its root "
    "mean square over the common voxels, so that no participant outweighs another.",
    "selfreq": "Share of participants whose refit on all runs selects the voxel: inclusion probability above "
    "1/2, or for methods without one a weight that is not zero.",
    "t": "T values over participants of activation patterns (Haufe et al., 2014), each divided by its root "
    "mean square over the common voxels.",
    "logpfwe": "-log10 of the two-sided family-wise p-value of the t value, by flipping the signs of whole "
    "participants' patterns (largest |t| over voxels; Nichols & Holmes, 2002), for this comparison and "
    "method alone: not corrected over comparisons or methods.",
}


def write_group_maps(
    folder: ResultsFolder, people: Sequence[Results], alpha: float
) -> tuple[list[dict[str, str]], list[str]]:
    """Write means, shares and tests over participants; returns what was written, and why something was not.

    Sign flips of n participants reach 2^(1-n) at best: where that is above ``alpha`` there is no test.
    """
    shutil.rmtree(folder.group_mask.parent, ignore_errors=True)  # maps of other participants
    trouble = grid_trouble(people)
    if trouble is not None:
        return [], [trouble]
    masks = [_mask(person) for person in people]
    space = space_of(masks[0])
    inside = np.logical_and.reduce([space.whole(mask) != 0 for mask in masks])
    if not inside.any():
        return [], ["There are no mean maps: the participants' analysed voxels have none in common."]
    common = space.of_whole(inside.astype(np.uint8))
    about, shown = _shared_facts(people), _display("mask", "analysed in all participants", people)
    masks_of = [person.folder.mask(person.subjects[0]) for person in people]
    told = {**about, "Description": "Voxels analysed in all participants.", "Type": "ROI"}
    ones = np.ones(int(inside.sum()), dtype=np.uint8)
    write_map(folder.group_mask, ones, common, told | _sources(folder, masks_of), shown)
    write_meshes(folder.group_mask, common)
    means = [space.whole(_background(person)).astype(float) for person in people]
    mean = space.of_whole(np.mean(means, axis=0).astype(np.float32))
    means_of = [person.folder.background(person.subjects[0]) for person in people]
    told = {**about, "Description": "Mean of the mean volumes."}
    write_image(folder.group_background, mean, told | _sources(folder, means_of))
    shared = _shared_maps(people)
    written = [_mean_map(folder, people, common, about, *one) for one in shared if one[2] in _AVERAGED]
    cells = dict.fromkeys((contrast, method) for contrast, method, _ in shared)
    for contrast, method in cells:
        has = {stat for c, m, stat in shared if (c, m) == (contrast, method)}
        written += _share_map(
            folder, people, common, about, contrast, method, "pip" if "pip" in has else "weight"
        )
    notes = _too_few(len(people), alpha)
    for contrast, method in () if notes else cells:
        if (contrast, method, "pattern") in shared:
            written += _flip_maps(folder, people, common, about, contrast, method)
    return written, notes


def grid_trouble(people: Sequence[Results]) -> str | None:
    """Why maps cannot be averaged: other spaces, other grids, or spaces of single brains."""
    spaces: dict[str, list[str]] = {}
    for person in people:
        spaces.setdefault(_space(person), []).append(f"sub-{person.subjects[0]}")
    if len(spaces) > 1:
        return f"There are no mean maps, because participants are in different spaces: {_listed(spaces)}."
    space = next(iter(spaces))
    if space in INDIVIDUAL and len(people) > 1:
        return (
            f"There are no mean maps, because the space {space} is each participant's own. For mean maps "
            "run the participant level in a standard space (--space)."
        )
    images = [_mask(person) for person in people]
    grids: dict[str, list[str]] = {}
    for person, image in zip(people, images, strict=True):
        grids.setdefault(_grid(image, images), []).append(f"sub-{person.subjects[0]}")
    if len(grids) > 1:
        return f"There are no mean maps, because participants are on different grids: {_listed(grids)}."
    return None


def _space(person: Results) -> str:
    """BIDS's name of a participant's space; folders written before it was a key have it among the origins."""
    data = person.study["data"]
    return str(data["bids_space"] if "bids_space" in data else data["provenance"].get("space") or "unnamed")


def _grid(image: Any, images: Sequence[Any]) -> str:
    """The grid of an image: its shape, and a letter for each affine of that shape."""
    for number, other in enumerate(images):
        try:
            space_of(other).check(image, "mask")
        except DataError:
            continue
        return f"{space_of(image).kind()} (grid {number + 1})"
    raise AssertionError("an image is on its own grid")


def _listed(groups: dict[str, list[str]]) -> str:
    return "; ".join(f"{name}: {', '.join(members)}" for name, members in groups.items())


def _shared_maps(people: Sequence[Results]) -> list[tuple[str, str, str]]:
    """Contrast, method and kind of every map that all participants have."""
    each = [
        {
            (contrast, method, stat): None
            for subject, contrast, method in person.cells()
            for stat in person.stats(subject, contrast, method)
            if stat in (*_AVERAGED, "weight")
        }
        for person in people
    ]
    return [one for one in each[0] if all(one in other for other in each)]


def _mean_map(
    folder: ResultsFolder, people: Sequence[Results], common: Any, about: dict[str, Any],
    contrast: str, method: str, stat: str,
) -> dict[str, str]:  # fmt: skip
    """Average one map over participants (refits on all runs) and write it."""
    values = _maps(people, common, contrast, method, stat).mean(axis=0)
    path = folder.group_map(contrast, f"{entity(method)}Mean", stat)
    display = _display(stat, f"mean {stat} {method} {contrast}", people)
    sources = _sources(folder, _paths(people, contrast, method, stat))
    told = {"Description": _MEANING[stat], "Method": method, "Threshold": NO_THRESHOLD}
    write_map(path, values, common, about | told | sources, display)
    return {"contrast": contrast, "method": method, "stat": stat, "of": "Mean"}


def _share_map(
    folder: ResultsFolder, people: Sequence[Results], common: Any, about: dict[str, Any],
    contrast: str, method: str, stat: str,
) -> list[dict[str, str]]:  # fmt: skip
    """The share of participants that select a voxel; nothing for a method that uses all of them."""
    values = _maps(people, common, contrast, method, stat)
    share = (values > _SELECTED if stat == "pip" else values != 0).mean(axis=0)
    if stat == "weight" and (share == 1).all():
        return []
    path = folder.group_map(contrast, f"{entity(method)}Share", "selfreq")
    display = _display("selfreq", f"share of participants {method} {contrast}", people)
    sources = _sources(folder, _paths(people, contrast, method, stat))
    told = {"Description": _MEANING["selfreq"], "Method": method, "Threshold": _SELECTED_IF[stat]}
    write_map(path, share, common, about | told | sources, display)
    return [{"contrast": contrast, "method": method, "stat": "selfreq", "of": "Share"}]


def _flip_maps(
    folder: ResultsFolder, people: Sequence[Results], common: Any, about: dict[str, Any],
    contrast: str, method: str,
) -> list[dict[str, str]]:  # fmt: skip
    """T values of the mean pattern and their family-wise p-values by sign flips."""
    found = flip_map(_maps(people, common, contrast, method, "pattern"))
    facts = {
        "Method": method,
        "Threshold": NO_THRESHOLD,
        "SignPatterns": found.n_patterns,
        "AllSignPatterns": len(people) <= EXACT_MAPS,
        "SmallestPValue": found.smallest_p,
        "VoxelsTested": len(found.t),
    }
    out = []
    for stat, values in (("t", found.t), ("logpfwe", -np.log10(found.p))):
        path = folder.group_map(contrast, f"{entity(method)}SignFlip", stat)
        display = _display(stat, f"sign flips {stat} {method} {contrast}", people)
        sources = _sources(folder, _paths(people, contrast, method, "pattern"))
        write_map(path, values, common, {**about, "Description": _MEANING[stat], **facts, **sources}, display)
        out.append({"contrast": contrast, "method": method, "stat": stat, "of": "SignFlip"})
    return out


def _display(stat: str, words: str, people: Sequence[Results]) -> Display:
    """What the header of a group's map says."""
    phantom = "PHANTOM " if any(person.phantom for person in people) else ""
    params = (len(people) - 1,) if stat == "t" else ()
    return Display.of(stat, f"{phantom}{words} n={len(people)} mvpa_gamp", *params)


def _too_few(n: int, alpha: float) -> list[str]:
    """Why sign flips of n maps cannot be significant, if so."""
    smallest = smallest_flip_p(n, two_sided=True)
    if smallest <= alpha:
        return []
    needed = int(np.ceil(1 - np.log2(alpha)))
    if n == 1:
        return [f"There is no family-wise map: it takes {needed} participants at a level of {alpha:g}."]
    return [
        f"There is no family-wise map: flipping the signs of {n} participants' maps cannot give a two-sided "
        f"p-value below {smallest:.3g}. It takes {needed} participants at a level of {alpha:g}."
    ]


def _maps(people: Sequence[Results], common: Any, contrast: str, method: str, stat: str) -> NDArray:
    """A map of every participant (n, N); patterns divided by their root mean square."""
    values = np.stack([_values(path, common) for path in _paths(people, contrast, method, stat)])
    if stat != "pattern":
        return values
    scale = np.sqrt(np.mean(values**2, axis=1, keepdims=True))
    return values / np.where(scale > 0, scale, 1.0)


def _paths(people: Sequence[Results], contrast: str, method: str, stat: str) -> list[Path]:
    """The file of a map of every participant."""
    return [p.folder.statmap(p.subjects[0], contrast, entity(method), stat) for p in people]


def _shared_facts(people: Sequence[Results]) -> dict[str, Any]:
    """What the sidecars of all maps of the group say."""
    data = people[0].study["data"]
    mask = sidecar_path(people[0].folder.mask(people[0].subjects[0]))
    own = read_json(mask) if mask.is_file() else {}
    known = {"SpatialReference": own.get("SpatialReference"), "Space": data.get("bids_space"),
             "Resolution": data.get("resolution")}  # fmt: skip
    return {
        "GeneratedBy": [{"Name": "mvpa_gamp", "Version": __version__}],
        "Participants": [person.subjects[0] for person in people],
        **{name: value for name, value in known.items() if value},
        "Software": {**data.get("prepared_with", {}), **versions()},
    }


def _sources(folder: ResultsFolder, paths: Sequence[Path]) -> dict[str, list[str]]:
    """The files of participants that a map was made from, as BIDS URIs in the results folder."""
    return {"Sources": [bids_uri(path.absolute(), {"": folder.root.absolute()}) for path in expanded(paths)]}


def _values(path: Path, common: Any) -> NDArray:
    return np.asarray(from_image(read_image(path), common), dtype=float)


def _background(person: Results) -> Any:
    """A participant's mean volume."""
    return read_image(person.folder.background(person.subjects[0]))


def _mask(person: Results) -> Any:
    """A participant's analysed voxels."""
    return read_image(person.folder.mask(person.subjects[0]))
