"""The series of runs and their voxels or vertices: masks given, in common or computed; meshes of surfaces."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mvpa_gamp.imaging.bids.layout import RunFiles
from mvpa_gamp.imaging.bids.selection import is_surface_space
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.matrix import Images, Volumes
from mvpa_gamp.imaging.names import is_surface_file
from mvpa_gamp.imaging.volumes import check_same_grid, computed_mask, like, open_mask, open_series

if TYPE_CHECKING:
    from mvpa_gamp.imaging.bids.layout import RunFiles
    from mvpa_gamp.imaging.bids.source import BidsSource
    from mvpa_gamp.imaging.cortex import Cortex

_PACKAGED = "fsaverage5"


def mask_of(runs: Sequence[RunFiles], images: Sequence[Any], given: str) -> tuple[Any, tuple[str, ...]]:
    """The mask given, the common part of the runs' brain masks, or one computed from raw volumes."""
    if given:
        return given, ()
    files = [run.mask for run in runs if run.mask is not None]
    if len(files) == len(runs):
        return common_mask(files), ()
    if files or "desc-preproc" in runs[0].bold.name:
        without = next(run.bold.name for run in runs if run.mask is None)
        raise DataError(
            f"mask: expected a desc-brain_mask next to every run, found none for {without}. Add it, or "
            "give --mask."
        )
    for image in images[1:]:
        check_same_grid(image, images[0], "BOLD file")
    mask, size = computed_mask(images)
    if not size:
        raise DataError("mask: none could be computed from the raw volumes. Give one with --mask.")
    return mask, (f"The brain mask was computed from the mean volume: {size:,} voxels.",)


def common_mask(files: Sequence[Path]) -> Any:
    """The voxels that are in every mask, as an image on the first one's grid."""
    first, inside = open_mask(files[0])
    for path in files[1:]:
        image, other = open_mask(path)
        check_same_grid(image, first, "mask")
        inside = inside & other
    if not inside.any():
        raise DataError(
            f"mask: the brain masks of the {len(files)} runs have no voxel in common. Give one with --mask."
        )
    return like(first, inside.astype(np.uint8))


def is_on_surface(runs: Sequence["RunFiles"]) -> bool:
    """Whether runs are series on surfaces; all of them are of one space."""
    return is_surface_file(runs[0].bold)


def open_runs(source: "BidsSource", runs: Sequence["RunFiles"]) -> Images:
    """The series of runs, volumes or surfaces."""
    if not is_on_surface(runs):
        return Volumes([open_series(run.bold) for run in runs])
    from mvpa_gamp.imaging.surfaces import read_surfaces

    return read_surfaces([run.bold for run in runs], cortex_of_runs(source, runs))


def mask_for(source: "BidsSource", runs: Sequence["RunFiles"], series: Any) -> tuple[Any, tuple[str, ...]]:
    """The mask of runs, and notes; None where every vertex that varies is used."""
    if not is_on_surface(runs):
        return mask_of(runs, series.images, source.mask)
    from mvpa_gamp.imaging.surfaces import surface_mask

    return surface_mask(source.mask, series.cortex), ()


def cortex_for(source: "BidsSource", space: str) -> "Cortex":
    """The meshes of a space: those given, or fsaverage5 as it comes with nilearn."""
    from mvpa_gamp.imaging.cortex import packaged_cortex, read_cortex

    if source.surface_mesh:
        return read_cortex(source.surface_mesh)
    if space != _PACKAGED:
        raise DataError(
            f"--space {space or 'none'}: its meshes do not come with this package (those of {_PACKAGED} do), "
            "and neighbours and figures need them. Give --surface-mesh LEFT RIGHT, for example the "
            "*_midthickness.surf.gii that belong to it."
        )
    return packaged_cortex()


def cortex_of_runs(source: "BidsSource", runs: Sequence["RunFiles"]) -> "Cortex":
    """The meshes of runs."""
    return cortex_for(source, runs[0].entities.get("space", ""))


def check_surface_runs(source: "BidsSource", runs: Sequence["RunFiles"]) -> None:
    """Refuse what runs on a surface have no use for; of the series the first is read, to see if it fits."""
    from mvpa_gamp.imaging.surface_files import read_surface
    from mvpa_gamp.imaging.surfaces import check_unsmoothed, surface_mask

    check_unsmoothed(source.smoothing_fwhm)
    cortex = cortex_of_runs(source, runs)
    surface_mask(source.mask, cortex)
    read_surface(runs[0].bold, cortex)


def check_surface_settings(source: "BidsSource") -> None:
    """Refuse settings that contradict the kind of the space asked for, as far as its name tells."""
    from mvpa_gamp.imaging.surfaces import check_mesh_files, check_unsmoothed

    surface = is_surface_space(source.space)
    if surface:
        check_unsmoothed(source.smoothing_fwhm)
    check_mesh_files(source.surface_mesh)
    if source.surface_mesh and source.space is not None and not surface:
        raise DataError(
            f"--surface-mesh is for runs on surfaces, got --space {source.space}. Leave it out, or choose "
            "fsLR, fsaverage or fsnative."
        )
