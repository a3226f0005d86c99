"""Maps over participants, where all of them are on one grid in one standard space: means, shares, tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp._version import __version__
from mvpa_gamp.decoding.group import EXACT_MAPS, flip_map, smallest_flip_p
from mvpa_gamp.gamp.vamp_classes import rank_matched
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
from mvpa_gamp.imaging.names import entity, expanded, is_there
from mvpa_gamp.imaging.samples import bids_uri
from mvpa_gamp.imaging.spaces import space_of
from mvpa_gamp.methods import METHODS
from mvpa_gamp.results.files import read_json
from mvpa_gamp.results.ledger import MAPS, NO_THRESHOLD
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.summary import versions

_AVERAGED = ("pip", "pattern")
_SELECTED = 0.5  # of the inclusion probability, as in the table
_FAMILY_WISE = 0.05  # of the map that is thresholded
_SELECTED_IF = {"pip": f"posterior inclusion probability above {_SELECTED}", "weight": "weight other than 0"}


@dataclass(frozen=True)
class Cell:
    """A method on a comparison, on a class against the others, or on a cross; ``desc`` is in file names."""

    contrast: str
    method: str
    desc: str

    @property
    def selects(self) -> bool:
        """Whether its maps say which voxels were selected; those of classes are means over pairs."""
        return self.desc == entity(self.method)

    @property
    def words(self) -> str:
        """For the header of a map."""
        return f"{self.method} {self.contrast}"

    def entry(self, stat: str, of: str) -> dict[str, str]:
        """What group_summary.json says of one of its maps."""
        of = self.desc.removeprefix(entity(self.method)) + of
        return {"contrast": self.contrast, "method": self.method, "stat": stat, "of": of}


def write_group_maps(
    folder: ResultsFolder, people: Sequence[Results], alpha: float
) -> tuple[list[dict[str, str]], list[str]]:
    """Write means, shares and tests over participants; returns what was written, and why something was not.

    Sign flips of n participants reach 2^(1-n) at best: where that is above ``alpha`` there is no test.
    """
    trouble = grid_trouble(people)
    if trouble is not None:
        return [], [trouble]
    masks = [analysed(person) for person in people]
    space = space_of(masks[0])
    inside = np.logical_and.reduce([space.whole(mask) != 0 for mask in masks])
    if not inside.any():
        return [], ["There are no mean maps: the participants' analysed voxels have none in common."]
    common = space.of_whole(inside.astype(np.uint8))
    about, shown = _shared_facts(people), _display("mask", "analysed in all participants", people)
    masks_of = [person.folder.mask(person.subjects[0]) for person in people]
    told = {**about, "Description": MAPS["group mask"].meaning, "Type": "ROI"}
    ones = np.ones(int(inside.sum()), dtype=np.uint8)
    write_map(folder.group_mask, ones, common, told | _sources(folder, masks_of), shown)
    write_meshes(folder.group_mask, common)
    means = [space.whole(_background(person)).astype(float) for person in people]
    mean = space.of_whole(np.mean(means, axis=0).astype(np.float32))
    means_of = [person.folder.background(person.subjects[0]) for person in people]
    told = {**about, "Description": "Mean of the mean volumes."}
    write_image(folder.group_background, mean, told | _sources(folder, means_of))
    shared, notes = _shared_maps(people), _too_few(len(people), alpha)
    written = []
    for cell, stats in shared.items():
        given = folder, people, common, about, cell
        written += [_mean_map(*given, stat) for stat in stats if stat in _AVERAGED]
        if cell.selects and ("pip" in stats or "weight" in stats):
            written += _share_map(*given, "pip" if "pip" in stats else "weight")
        if "pattern" in stats and not notes:
            written += _flip_maps(*given)
    return written, notes


def _shared_maps(people: Sequence[Results]) -> dict[Cell, list[str]]:
    """The kinds of map that all participants have, by what they are maps of."""
    each = [_cells(person) for person in people]
    shared = {
        cell: [stat for stat in stats if all(stat in other.get(cell, ()) for other in each)]
        for cell, stats in each[0].items()
    }
    return {cell: stats for cell, stats in shared.items() if stats}


def _cells(person: Results) -> dict[Cell, list[str]]:
    """Comparisons, classes against the others, and crosses whose classifier is no comparison's."""
    wanted = (*_AVERAGED, "weight")
    out = {
        Cell(contrast, method, entity(method)): person.stats(subject, contrast, method)
        for subject, contrast, method in person.cells()
    }
    for part in person.class_parts:
        maps, method = part.get("maps") or {"contrasts": [], "stats": []}, part["method"]
        for contrast in maps["contrasts"]:
            out[Cell(contrast, method, f"{entity(method)}Class")] = list(maps["stats"])
    own = {each["name"] for each in person.cross.get("crosses", ()) if each["own_maps"]}
    for row in person.cross_rows():
        if row["contrast"] in own and row["status"] == "ok":
            cell = Cell(row["contrast"], row["method"], entity(row["method"]))
            out[cell] = [stat for stat in wanted if all(is_there(p) for p in _paths([person], cell, stat))]
    return {cell: [stat for stat in stats if stat in wanted] for cell, stats in out.items()}


def _mean_map(
    folder: ResultsFolder, people: Sequence[Results], common: Any, about: dict[str, Any], cell: Cell,
    stat: str,
) -> dict[str, str]:  # fmt: skip
    """Average one map over participants (refits on all runs) and write it."""
    values = _maps(people, common, cell, stat).mean(axis=0)
    path = folder.group_map(cell.contrast, f"{cell.desc}Mean", stat)
    display = _display(stat, f"mean {stat} {cell.words}", people)
    sources = _sources(folder, _paths(people, cell, stat))
    told = {"Description": MAPS[f"group {stat}"].meaning, "Method": cell.method, "Threshold": NO_THRESHOLD}
    write_map(path, values, common, about | told | sources, display)
    return cell.entry(stat, "Mean")


def _share_map(
    folder: ResultsFolder, people: Sequence[Results], common: Any, about: dict[str, Any], cell: Cell,
    stat: str,
) -> list[dict[str, str]]:  # fmt: skip
    """The share of participants that select a voxel; nothing for a method that uses all of them."""
    values = _maps(people, common, cell, stat)
    threshold = _SELECTED_IF[stat]
    if stat == "pip" and (words := getattr(METHODS.get(cell.method), "selected_if", "")):
        threshold, chosen = words, rank_matched(values.T).T
    else:
        chosen = values > _SELECTED if stat == "pip" else values != 0
    share = chosen.mean(axis=0)
    if stat == "weight" and (share == 1).all():
        return []
    path = folder.group_map(cell.contrast, f"{cell.desc}Share", "selfreq")
    display = _display("selfreq", f"share of participants {cell.words}", people)
    sources = _sources(folder, _paths(people, cell, stat))
    told = {
        "Description": MAPS["group selfreq"].meaning,
        "Method": cell.method,
        "Threshold": threshold,
    }
    write_map(path, share, common, about | told | sources, display)
    return [cell.entry("selfreq", "Share")]


def _flip_maps(
    folder: ResultsFolder, people: Sequence[Results], common: Any, about: dict[str, Any], cell: Cell
) -> list[dict[str, str]]:  # fmt: skip
    """T values of the mean pattern and their family-wise p-values by sign flips."""
    found = flip_map(_maps(people, common, cell, "pattern"))
    facts = {
        "Method": cell.method,
        "Threshold": NO_THRESHOLD,
        "SignPatterns": found.n_patterns,
        "AllSignPatterns": len(people) <= EXACT_MAPS,
        "SmallestPValue": found.smallest_p,
        "VoxelsTested": len(found.t),
    }
    sources, out = _sources(folder, _paths(people, cell, "pattern")), []
    for of, stat, values in (
        ("SignFlip", "t", found.t),
        ("SignFlip", "logpfwe", -np.log10(found.p)),
        ("SignFlipFwe", "t", np.where(found.p <= _FAMILY_WISE, found.t, 0.0)),
    ):
        path = folder.group_map(cell.contrast, f"{cell.desc}{of}", stat)
        told = {"Description": MAPS[f"group {stat}"].meaning}
        if of == "SignFlipFwe":
            told = {
                "Description": MAPS["group t passed"].meaning,
                "Threshold": f"family-wise p <= {_FAMILY_WISE}",
            }
        display = _display(stat, f"sign flips {stat} {cell.words}", people)
        write_map(path, values, common, {**about, **facts, **told, **sources}, display)
        out.append(cell.entry(stat, of))
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


def _maps(people: Sequence[Results], common: Any, cell: Cell, stat: str) -> NDArray:
    """A map of every participant (n, N); patterns divided by their root mean square."""
    values = np.stack([_values(path, common) for path in _paths(people, cell, stat)])
    if stat != "pattern":
        return values
    scale = np.sqrt(np.mean(values**2, axis=1, keepdims=True))
    return values / np.where(scale > 0, scale, 1.0)


def _paths(people: Sequence[Results], cell: Cell, stat: str) -> list[Path]:
    """The file of a map of every participant."""
    return [p.folder.statmap(p.subjects[0], cell.contrast, cell.desc, stat) for p in people]


def _shared_facts(people: Sequence[Results]) -> dict[str, Any]:
    """What the sidecars of all maps of the group say."""
    data = people[0].summary.data
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


# Spaces of a single brain: equal grids there are a coincidence, and the same voxel is not the same place.
INDIVIDUAL = ("native", "T1w", "T2w", "func", "anat", "boldref", "fsnative")


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
    images = [analysed(person) for person in people]
    grids: dict[str, list[str]] = {}
    for person, image in zip(people, images, strict=True):
        grids.setdefault(_grid(image, images), []).append(f"sub-{person.subjects[0]}")
    if len(grids) > 1:
        return f"There are no mean maps, because participants are on different grids: {_listed(grids)}."
    return None


def analysed(person: Results) -> Any:
    """The image of a participant's analysed voxels."""
    return read_image(person.folder.mask(person.subjects[0]))


def _space(person: Results) -> str:
    """BIDS's name of a participant's space."""
    return str(person.summary.data["bids_space"])


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
