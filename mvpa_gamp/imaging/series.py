"""What lies between images and a matrix: images of one space, and their raw values inside a mask."""

from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray


class Images(Protocol):
    """What a matrix is made from: images of one space, in order. Volumes are; so are surfaces."""

    @property
    def what(self) -> str:
        """What messages call an image."""

    @property
    def elements(self) -> str:
        """What messages call the columns: voxels or vertices."""

    @property
    def names(self) -> tuple[str, ...]:
        """What messages call each image."""

    @property
    def counts(self) -> tuple[int, ...]:
        """Volumes (time points) of each image."""

    @property
    def n_rows(self) -> int:
        """Those of all images."""

    @property
    def t_r(self) -> float | None:
        """Seconds between them as files tell, None where they do not."""

    def read(self, mask: Any, smoothing_fwhm: float | None = None) -> "Series":
        """The raw values inside a mask (image or file)."""

    def mask_image(self, inside: NDArray, mask_img: Any) -> Any:
        """A mask of some places, given in the form of ``Series.inside``."""


@dataclass(frozen=True)
class Series:
    """M raw volumes at the N voxels of a mask, and which of their values were missing."""

    volumes: Images
    values: NDArray  # (M, N) float32; NaN and infinity are 0
    inside: NDArray  # (x, y, z) bool, or (V,) of vertices
    mask_img: Any  # whose header the voxels' mask gets
    mean_img: Any
    finite: NDArray  # (N,) bool: no volume has NaN or infinity there
    lost: NDArray  # (M,) int: voxels that are NaN or infinite in each volume
    notes: tuple[str, ...] = ()  # what was done to the mask
    border: NDArray | None = None  # (M, S) float32: values of voxels that touch the mask from outside

    def mask_of(self, usable: NDArray) -> Any:
        """The mask of some of the voxels (N,) bool."""
        mask = self.inside.copy()
        mask[self.inside] = usable
        return self.volumes.mask_image(mask, self.mask_img)
