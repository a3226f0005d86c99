"""The cortex as meshes: vertices of both hemispheres in one order, their edges, and images on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from nilearn.surface import PolyMesh, SurfaceImage
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from mvpa_gamp.imaging.errors import DataError, reason
from mvpa_gamp.imaging.names import HEMISPHERES

PACKAGED = "fsaverage5"  # comes with nilearn: nothing is downloaded


@dataclass(frozen=True, eq=False)
class Cortex:
    """The meshes that vertices belong to, V in all, the left hemisphere's first.

    ``drawn`` are meshes of the same vertices to draw on, ``sulci`` their sulcal depth, both None where not
    known. ``models`` are the vertices of a CIFTI file (nibabel's BrainModelAxis of the cortex alone), None
    where maps are kept as GIFTI pairs.
    """

    mesh: PolyMesh
    drawn: PolyMesh | None = None
    sulci: Mapping[str, NDArray] | None = None
    models: Any = None

    @property
    def parts(self) -> list[str]:
        """The hemispheres there are, left before right."""
        return [part for part in HEMISPHERES if part in self.mesh.parts]

    @property
    def sizes(self) -> list[int]:
        """Vertices of each hemisphere."""
        return [int(self.mesh.parts[part].n_vertices) for part in self.parts]

    @property
    def coordinates(self) -> NDArray:
        """Positions (V, 3) in mm."""
        return np.concatenate([np.asarray(self.mesh.parts[part].coordinates) for part in self.parts])

    @cached_property
    def edges(self) -> csr_array:
        """The adjacency (V, V): 1 where an edge of the mesh joins two vertices; none joins hemispheres."""
        starts = np.cumsum([0, *self.sizes])
        faces = [
            np.asarray(self.mesh.parts[part].faces, dtype=np.int64) + start
            for part, start in zip(self.parts, starts, strict=False)
        ]
        corners = np.concatenate(faces)
        rows = np.concatenate([corners[:, [0, 1, 2]].ravel(), corners[:, [1, 2, 0]].ravel()])
        cols = np.concatenate([corners[:, [1, 2, 0]].ravel(), corners[:, [0, 1, 2]].ravel()])
        ones, total = np.ones(len(rows), dtype=np.int64), int(starts[-1])
        graph = csr_array(coo_array((ones, (rows, cols)), shape=(total, total)))  # repeated edges add up
        graph.data = np.ones(graph.nnz, dtype=np.uint8)
        return graph

    def split(self, values: NDArray) -> dict[str, NDArray]:
        """An array (V, ...) by hemisphere."""
        return dict(zip(self.parts, np.split(values, np.cumsum(self.sizes)[:-1]), strict=True))

    def joined(self, image: SurfaceImage) -> NDArray:
        """The values (V, ...) of an image on these meshes."""
        return np.concatenate([np.asarray(image.data.parts[part]) for part in self.parts])

    def image(self, values: NDArray) -> "CortexImage":
        """An image of values (V,) or (V, T)."""
        return CortexImage(self.mesh, self.split(values), cortex=self)

    def places(self) -> tuple[NDArray, NDArray]:
        """Hemisphere (V,) as BIDS's letter, and number (V,) within it from 0, of every vertex."""
        letters = np.repeat([HEMISPHERES[part] for part in self.parts], self.sizes)
        return letters, np.concatenate([np.arange(size) for size in self.sizes])

    def difference(self, other: "Cortex") -> str:
        """How the meshes differ in vertices or edges, empty where they do not."""
        if self.parts != other.parts:
            return f"expected the hemispheres {_listed(self.parts)}, got {_listed(other.parts)}"
        if self.sizes != other.sizes:
            return f"expected {_counted(self)}, got {_counted(other)}"
        for part in self.parts:
            own, others = self.mesh.parts[part], other.mesh.parts[part]
            if own is not others and not np.array_equal(own.faces, others.faces):
                return f"the numbers of vertices agree, but the faces of the {part} hemisphere differ"
        return ""


class CortexImage(SurfaceImage):
    """nilearn's SurfaceImage that knows how its maps are kept in files and drawn."""

    def __init__(self, mesh: Any, data: Any, dtype: Any = None, cortex: Cortex | None = None) -> None:
        super().__init__(mesh, data, dtype)
        self.cortex = cortex


def check_same_mesh(cortex: Cortex, reference: Cortex, what: str, name: str = "") -> None:
    """Refuse meshes whose vertices or faces differ from the reference's."""
    if difference := reference.difference(cortex):
        called = f"{what} {name}".strip()
        raise DataError(f"{called} is on another mesh: {difference}. Give images on the same mesh.")


def cortex_of(image: SurfaceImage) -> Cortex:
    """What is known of an image's meshes; those of fsaverage5 are recognised and drawn inflated."""
    known = getattr(image, "cortex", None)
    return known if known is not None else dressed(Cortex(image.mesh))


def dressed(cortex: Cortex) -> Cortex:
    """The same with inflated meshes and sulci where vertices and faces are those of fsaverage5."""
    if cortex.parts != list(HEMISPHERES) or cortex.sizes != [10242, 10242]:
        return cortex
    packaged = packaged_cortex()
    if packaged.difference(cortex):
        return cortex
    return replace(cortex, drawn=packaged.drawn, sulci=packaged.sulci)


@lru_cache(maxsize=1)
def packaged_cortex() -> Cortex:
    """fsaverage5 as it comes with nilearn: pial meshes, inflated ones to draw on, sulcal depth."""
    from nilearn.datasets import load_fsaverage, load_fsaverage_data
    from nilearn.surface import InMemoryMesh

    meshes = load_fsaverage(PACKAGED)
    pial, inflated = (
        PolyMesh(**{part: InMemoryMesh(m.coordinates, m.faces) for part, m in meshes[kind].parts.items()})
        for kind in ("pial", "inflated")
    )
    depth = load_fsaverage_data(PACKAGED, "inflated", "sulcal").data.parts
    return Cortex(pial, inflated, {part: np.asarray(depth[part], dtype=np.float32) for part in HEMISPHERES})


def read_cortex(files: Sequence[str | Path]) -> Cortex:
    """Meshes of the left and right hemisphere from two files that nilearn can read.

    Parameters
    ----------
    files
        Left and right.

    Returns
    -------
    Cortex
        Both meshes.
    """
    from nilearn.surface import load_surf_mesh

    if len(files) != len(HEMISPHERES):
        raise DataError(
            f"surface mesh: expected two files, left and right hemisphere, got {len(files)}. Give both."
        )
    meshes = {}
    for part, file in zip(HEMISPHERES, files, strict=True):
        path = Path(file).expanduser()
        if not path.is_file():
            raise DataError(f"surface mesh {path}: expected a file, found none there. Check the path.")
        try:
            meshes[part] = load_surf_mesh(str(path))
        except Exception as error:  # readers of damaged files fail in many ways
            raise DataError(
                f"surface mesh {path} cannot be read ({reason(error)}). Give a mesh such as "
                "*_midthickness.surf.gii."
            ) from error
    return dressed(Cortex(PolyMesh(**meshes)))


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(parts)


def _counted(cortex: Cortex) -> str:
    sizes = (f"{size:,} vertices ({part})" for part, size in zip(cortex.parts, cortex.sizes, strict=True))
    return " and ".join(sizes)
