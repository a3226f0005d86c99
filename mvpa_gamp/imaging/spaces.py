"""Where the columns of a matrix are: voxels of a mask's grid, or vertices of a mask's meshes.

A mask image says which (:func:`space_of`). Whatever makes images, neighbours, clusters or coordinates of
columns asks the space, so that nothing else has to know what kind of data it works on.
"""

from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from mvpa_gamp.imaging.names import in_vertices
from mvpa_gamp.imaging.volumes import check_same_grid, like

_TOUCHING = np.ones((3, 3, 3))  # faces, edges and corners: sparse selections often touch diagonally
_ON_SURFACE = 5.0  # mm, about the longest edges of fsaverage5: what is farther from all vertices is elsewhere


class Space(Protocol):
    """N elements (voxels or vertices) in the order of the columns of a matrix."""

    @property
    def elements(self) -> str:
        """What they are called."""

    @property
    def place_names(self) -> tuple[str, ...]:
        """What tells where an element is, besides coordinates."""

    @property
    def size(self) -> int:
        """N."""

    @property
    def name(self) -> str:
        """Of the space, as far as the mask tells."""

    @property
    def element_mm3(self) -> float | None:
        """The volume of a voxel; vertices have none."""

    def image(self, values: NDArray) -> Any:
        """Values (N,) as an image, exactly 0 elsewhere."""

    def values(self, image: Any) -> NDArray:
        """The values (N,) of an image of the same space: the inverse of ``image``."""

    def connectivity(self) -> csr_array:
        """The adjacency (N, N): 1 where two elements are neighbours, symmetric, none its own."""

    def clusters(self, selected: NDArray) -> NDArray:
        """The cluster (N,) of each selected element, from 1; 0 where not selected."""

    def coordinates(self) -> NDArray:
        """Positions (N, 3) in mm."""

    def centre(self, members: NDArray) -> NDArray:
        """The middle (3,) of some elements, in mm."""

    def place(self, number: int) -> dict[str, Any]:
        """Where an element is, by ``place_names``."""

    def nearest(self, millimetres: NDArray) -> int | None:
        """The number of the element at a position (3,) in mm; None where there is none."""

    def content(self) -> list[NDArray]:
        """Arrays that tell spaces apart."""

    def check(self, image: Any, what: str) -> None:
        """Refuse an image on another grid or mesh."""

    def whole(self, image: Any) -> NDArray:
        """All values of an image, also outside the mask: (x, y, z) or (V,)."""

    def of_whole(self, values: NDArray) -> Any:
        """An image of such values: a mask, say, or a background."""

    def kind(self) -> str:
        """Grid or meshes in words, for messages."""

    def said(self, text: str) -> str:
        """A text about voxels in the words of the space."""


class VoxelSpace:
    """Voxels of a mask image, in C order."""

    elements = "voxels"
    place_names: tuple[str, ...] = ("i", "j", "k")

    def __init__(self, mask_img: Any) -> None:
        self.mask_img = mask_img
        self.affine = np.asarray(mask_img.affine)

    @cached_property
    def inside(self) -> NDArray:
        """The mask's voxels (x, y, z) bool."""
        return np.asarray(self.mask_img.dataobj) != 0

    @property
    def size(self) -> int:
        """N."""
        return int(self.inside.sum())

    @property
    def name(self) -> str:
        """Which space the affine leads to, by the header's sform or else qform code."""
        names = {1: "scanner", 2: "aligned", 3: "Talairach", 4: "MNI152"}
        codes = [int(self.mask_img.header[key]) for key in ("sform_code", "qform_code")]
        return next((names[code] for code in codes if code in names), "unknown")

    @property
    def element_mm3(self) -> float | None:
        """The volume of a voxel."""
        return float(abs(np.linalg.det(self.affine[:3, :3])))

    def image(self, values: NDArray) -> Any:
        """A NIfTI image on the mask's grid."""
        volume = np.zeros(self.inside.shape, dtype=values.dtype)
        volume[self.inside] = values
        return like(self.mask_img, volume)

    def values(self, image: Any) -> NDArray:
        """The values (N,) of an image on the mask's grid."""
        self.check(image, "brain map")
        return self.whole(image)[self.inside]

    def connectivity(self) -> csr_array:
        """Voxels that share a face."""
        return voxel_connectivity(self.mask_img)

    def clusters(self, selected: NDArray) -> NDArray:
        """Voxels that share a face, an edge or a corner are one cluster."""
        volume = np.zeros(self.inside.shape, dtype=bool)
        volume[self.inside] = selected
        return np.asarray(ndimage.label(volume, structure=_TOUCHING)[0][self.inside])

    def coordinates(self) -> NDArray:
        """Positions (N, 3) of the voxels' centres in mm."""
        return self._world(self._indices)

    def centre(self, members: NDArray) -> NDArray:
        """The middle (3,) of some voxels, in mm."""
        return self._world(self._indices[members].mean(axis=0))

    def place(self, number: int) -> dict[str, Any]:
        """The voxel's indices."""
        return dict(zip(self.place_names, self._indices[number].tolist(), strict=True))

    def nearest(self, millimetres: NDArray) -> int | None:
        """The voxel that holds a position."""
        inverse = np.linalg.inv(self.affine.astype(float))
        index = np.rint(inverse[:3, :3] @ millimetres + inverse[:3, 3]).astype(int)
        there = ((index >= 0) & (index < self.inside.shape)).all() and self.inside[tuple(index)]
        place = int(np.ravel_multi_index(tuple(index), self.inside.shape)) if there else 0
        return int(self.inside.ravel()[:place].sum()) if there else None

    def content(self) -> list[NDArray]:
        """Mask and affine."""
        return [self.inside, self.affine]

    def check(self, image: Any, what: str) -> None:
        """Refuse an image on another grid."""
        check_same_grid(image, self.mask_img, what)

    def whole(self, image: Any) -> NDArray:
        """The volume (x, y, z)."""
        return np.asarray(image.dataobj)

    def of_whole(self, values: NDArray) -> Any:
        """A volume with the mask's header."""
        return like(self.mask_img, values)

    def said(self, text: str) -> str:
        """The text as it is."""
        return text

    def kind(self) -> str:
        """The shape of the grid."""
        return f"{' x '.join(map(str, self.mask_img.shape[:3]))} voxels"

    @cached_property
    def _indices(self) -> NDArray:
        return np.argwhere(self.inside)

    def _world(self, indices: NDArray) -> NDArray:
        return np.asarray(indices @ self.affine[:3, :3].T + self.affine[:3, 3])


class VertexSpace:
    """Vertices of a mask on meshes, the left hemisphere's first."""

    elements = "vertices"
    place_names: tuple[str, ...] = ("hemisphere", "vertex")
    element_mm3: float | None = None

    def __init__(self, mask_img: Any) -> None:
        from mvpa_gamp.imaging.cortex import cortex_of

        self.cortex = cortex_of(mask_img)
        self.inside = np.asarray(self.cortex.joined(mask_img)).reshape(sum(self.cortex.sizes)) != 0

    @property
    def size(self) -> int:
        """N."""
        return int(self.inside.sum())

    @property
    def name(self) -> str:
        """Meshes have no header that tells; fsaverage5 is known by its faces."""
        return "surface" if self.cortex.drawn is None else "fsaverage5"

    def image(self, values: NDArray) -> Any:
        """nilearn's SurfaceImage of values (N,) or (N, T) on the mask's meshes."""
        whole = np.zeros((len(self.inside), *values.shape[1:]), dtype=values.dtype)
        whole[self.inside] = values
        return self.cortex.image(whole)

    def values(self, image: Any) -> NDArray:
        """The values (N,) of an image on the same meshes."""
        self.check(image, "brain map")
        return self.whole(image)[self.inside]

    def connectivity(self) -> csr_array:
        """Vertices that an edge of the mesh joins."""
        places = np.flatnonzero(self.inside)
        return csr_array(self.cortex.edges[places][:, places])

    def clusters(self, selected: NDArray) -> NDArray:
        """Vertices that are joined by edges are one cluster."""
        chosen = np.flatnonzero(selected)
        out = np.zeros(self.size, dtype=int)
        if chosen.size:
            out[chosen] = 1 + connected_components(self.connectivity()[chosen][:, chosen], directed=False)[1]
        return out

    def coordinates(self) -> NDArray:
        """Positions (N, 3) of the vertices in mm, on the mesh given."""
        return self.cortex.coordinates[self.inside].astype(float)

    def centre(self, members: NDArray) -> NDArray:
        """The mean position (3,) of some vertices, in mm."""
        return np.asarray(self.coordinates()[members].mean(axis=0))

    def place(self, number: int) -> dict[str, Any]:
        """The vertex's hemisphere, L or R, and its number there, from 0."""
        letters, numbers = self._places
        return {"hemisphere": str(letters[number]), "vertex": int(numbers[number])}

    def nearest(self, millimetres: NDArray) -> int | None:
        """The nearest vertex, unless it is too far away for the position to be on the surface."""
        away = np.linalg.norm(self.coordinates() - millimetres, axis=1)
        return int(away.argmin()) if away.min() <= _ON_SURFACE else None

    def content(self) -> list[NDArray]:
        """Mask and faces."""
        return [self.inside, *(np.asarray(self.cortex.mesh.parts[part].faces) for part in self.cortex.parts)]

    def check(self, image: Any, what: str) -> None:
        """Refuse an image on other meshes."""
        from mvpa_gamp.imaging.cortex import check_same_mesh, cortex_of

        check_same_mesh(cortex_of(image), self.cortex, what)

    def whole(self, image: Any) -> NDArray:
        """The values (V,) of both hemispheres."""
        return self.cortex.joined(image)

    def of_whole(self, values: NDArray) -> Any:
        """An image on the mask's meshes."""
        return self.cortex.image(values)

    def said(self, text: str) -> str:
        """The text with vertices for voxels."""
        return in_vertices(text)

    def kind(self) -> str:
        """The sizes of the meshes."""
        return f"{' + '.join(f'{size:,}' for size in self.cortex.sizes)} vertices"

    @cached_property
    def _places(self) -> tuple[NDArray, NDArray]:
        letters, numbers = self.cortex.places()
        return letters[self.inside], numbers[self.inside]


def is_surface(image: Any) -> bool:
    """Whether an image is on meshes (nilearn's SurfaceImage) and not on a grid."""
    return hasattr(image, "mesh")


def space_of(mask_img: Any) -> Space:
    """The space of a mask image.

    Parameters
    ----------
    mask_img
        The mask of N voxels, or of N vertices.

    Returns
    -------
    Space
        Where the columns of X are: ``VoxelSpace`` or ``VertexSpace``.
    """
    return VertexSpace(mask_img) if is_surface(mask_img) else VoxelSpace(mask_img)


def voxel_connectivity(mask_img: Any) -> csr_array:
    """The adjacency (N, N) of the N voxels of a mask: 1 where two of them share a face, symmetric.

    Voxels are in the mask's C order, as the columns of :class:`~mvpa_gamp.imaging.samples.Samples`. A voxel
    has at most six neighbours (four in a single slice), one on its own has none, and none is its own.

    Parameters
    ----------
    mask_img
        The mask of N voxels.

    Returns
    -------
    csr_array
        The adjacency (N, N).

    Examples
    --------
    >>> import nibabel
    >>> line = nibabel.Nifti1Image(np.array([1, 1, 0, 1], dtype=np.uint8).reshape(4, 1, 1), np.eye(4))
    >>> voxel_connectivity(line).toarray().tolist()
    [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    """
    from sklearn.feature_extraction.image import grid_to_graph

    inside = np.asarray(mask_img.dataobj) != 0
    inside = inside.reshape(inside.shape[:3])
    graph = grid_to_graph(*inside.shape, mask=inside, return_as=coo_array, dtype=np.uint8)
    off = graph.row != graph.col  # scikit-learn connects every voxel with itself as well
    return csr_array((graph.data[off], (graph.row[off], graph.col[off])), shape=graph.shape)
