"""Whether participants' maps can be laid over one another: one standard space, one grid."""

from collections.abc import Sequence
from typing import Any

from mvpa_gamp.imaging.brainmaps import read_image
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.spaces import space_of
from mvpa_gamp.results.reader import Results

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
