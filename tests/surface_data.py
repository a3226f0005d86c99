"""Small meshes and planted effects on them, for tests of surfaces."""

from dataclasses import dataclass

import numpy as np
from nilearn.surface import InMemoryMesh, PolyMesh, SurfaceImage
from numpy.typing import NDArray
from scipy.spatial import ConvexHull


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
