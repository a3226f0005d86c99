"""Series on surfaces in a BIDS dataset, by their names.

DERIVATIVES/sub-01/[ses-x/]func/..._hemi-L_space-fsaverage5_bold.func.gii and its right hemisphere
DERIVATIVES/sub-01/[ses-x/]func/..._space-fsLR_den-91k_bold.dtseries.nii
"""

import re
from collections.abc import Sequence

from mvpa_gamp.imaging.bids.names import BidsFile
from mvpa_gamp.imaging.surface_names import is_surface_file

SURFACE = ("func.gii", "dtseries.nii")
_SPACES = re.compile(r"fsaverage[0-9]*|fsnative|fsLR|onavg.*")


def is_surface_space(space: str | None) -> bool:
    """Whether a space, in fMRIPrep's form ``name[:den-x]``, is one of meshes."""
    return space is not None and _SPACES.fullmatch(space.split(":")[0]) is not None


def is_surface_series(file: BidsFile, desc: str) -> bool:
    """Whether a file is a series on a surface; of a pair the left hemisphere speaks for both."""
    return (
        file.extension in SURFACE
        and file.entities.get("hemi") != "R"
        and file.entities.get("desc", desc) == desc == "preproc"
    )


def of_kind(files: Sequence[BidsFile], space: str | None) -> list[BidsFile]:
    """The volumes where no space is asked for and there are some; else all files."""
    volumes = [file for file in files if not is_surface_file(file.path)]
    return volumes if space is None and volumes else list(files)
