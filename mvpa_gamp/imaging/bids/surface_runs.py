"""Runs on surfaces in a BIDS dataset: their meshes and masks, and what they allow."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mvpa_gamp.imaging.bids.masks import mask_of
from mvpa_gamp.imaging.bids.surface_series import is_surface_space
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.matrix import Volumes
from mvpa_gamp.imaging.series import Images
from mvpa_gamp.imaging.surface_names import is_surface_file
from mvpa_gamp.imaging.volumes import open_series

if TYPE_CHECKING:
    from mvpa_gamp.imaging.bids.layout import RunFiles
    from mvpa_gamp.imaging.bids.source import BidsSource
    from mvpa_gamp.imaging.cortex import Cortex

_PACKAGED = "fsaverage5"


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
