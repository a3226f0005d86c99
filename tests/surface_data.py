"""Small meshes and planted effects on them, for tests of surfaces."""

from dataclasses import dataclass
from pathlib import Path

import nibabel
import numpy as np
from nibabel.gifti import GiftiDataArray, GiftiImage, GiftiLabel, GiftiLabelTable
from nilearn.surface import InMemoryMesh, PolyMesh, SurfaceImage
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from mvpa_gamp.imaging.names import other_hemisphere


def sphere(n: int, seed: int, shift: float = 0.0) -> InMemoryMesh:
    """A closed mesh of n vertices on a sphere of 50 mm around (shift, 0, 0)."""
    points = np.random.default_rng(seed).normal(size=(n, 3))
    points = 50 * points / np.linalg.norm(points, axis=1, keepdims=True)
    faces = ConvexHull(points).simplices
    return InMemoryMesh((points + np.array([shift, 0, 0])).astype(np.float32), faces.astype(np.int32))


def small_mesh(left: int = 130, right: int = 110) -> PolyMesh:
    """Two spheres side by side, with different numbers of vertices."""
    return PolyMesh(left=sphere(left, 1, -55.0), right=sphere(right, 2, 55.0))


def near(mesh: InMemoryMesh, vertex: int, count: int) -> NDArray:
    """The ``count`` vertices nearest to one, itself included."""
    away = np.linalg.norm(mesh.coordinates - mesh.coordinates[vertex], axis=1)
    return np.argsort(away)[:count]


@dataclass(frozen=True)
class Planted:
    """A series with an effect on a patch of the left and one of the right hemisphere."""

    image: SurfaceImage
    y: NDArray  # (T,) "face", "house" or "rest"
    runs: NDArray  # (T,)
    patches: dict[str, NDArray]  # vertices by hemisphere
    wall: dict[str, NDArray]  # vertices that are always 0

    def run(self, number: int) -> SurfaceImage:
        """The series of one run."""
        here = self.runs == number
        parts = {part: values[:, here] for part, values in self.image.data.parts.items()}
        return SurfaceImage(self.image.mesh, parts)


def planted(mesh: PolyMesh, n_runs: int = 4, signal: float = 2.5, seed: int = 0) -> Planted:
    """Blocks of five volumes, face and house in turn with rest between; face is higher on the left patch and
    house on the right one. Ten vertices of each hemisphere are 0, as the medial wall is."""
    rng = np.random.default_rng(seed)
    block = ["rest"] * 3 + ["face"] * 5 + ["rest"] * 3 + ["house"] * 5
    y = np.array(block * 2 * n_runs)
    runs = np.repeat(np.arange(1, n_runs + 1), 2 * len(block))
    patches = {"left": near(mesh.parts["left"], 5, 12), "right": near(mesh.parts["right"], 7, 12)}
    wall, parts = {}, {}
    for part, who, sign in (("left", "face", 1.0), ("right", "house", 1.0)):
        size = mesh.parts[part].n_vertices
        values = 1000 + 10 * rng.normal(size=(size, len(y)))
        values[patches[part]] += 10 * signal * sign * (y == who)
        far = np.argsort(-np.linalg.norm(
            mesh.parts[part].coordinates - mesh.parts[part].coordinates[patches[part][0]], axis=1
        ))[:10]  # fmt: skip
        values[far] = 0
        wall[part], parts[part] = far, values.astype(np.float32)
    return Planted(SurfaceImage(mesh, parts), y, runs, patches, wall)


def parcels(mesh: PolyMesh) -> dict[str, NDArray]:
    """Three parcels of each hemisphere from front to back, and none at its lowest tenth."""
    out = {}
    for part, each in mesh.parts.items():
        _, y, z = each.coordinates.T
        thirds = 1 + np.searchsorted(np.quantile(-y, [1 / 3, 2 / 3]), -y)
        out[part] = np.where(z < np.quantile(z, 0.1), 0, thirds).astype(np.int32)
    return out


def write_label_pair(left: Path, values: dict[str, NDArray], names: dict[int, str]) -> Path:
    """A pair of GIFTI label files; returns the left one."""
    for path, own in zip((left, other_hemisphere(left)), values.values(), strict=True):
        table = GiftiLabelTable()
        for key, name in names.items():
            entry = GiftiLabel(key, 0.5, 0.5, 0.5, 1.0)
            entry.label = name
            table.labels.append(entry)
        array = GiftiDataArray(own.astype(np.int32), "NIFTI_INTENT_LABEL", datatype="NIFTI_TYPE_INT32")
        nibabel.save(GiftiImage(darrays=[array], labeltable=table), path)
    return left


def write_annotations(left: Path, values: dict[str, NDArray], names: list[str]) -> Path:
    """A pair of FreeSurfer's annotation files; returns the left one."""
    colours = np.array([[20 * k + 5, 30, 40, 0, 0] for k in range(len(names))])
    for path, own in zip((left, other_hemisphere(left)), values.values(), strict=True):
        nibabel.freesurfer.write_annot(path, own.astype(int), colours, names, fill_ctab=True)
    return left
