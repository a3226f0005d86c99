"""Surfaces to a matrix and back: SurfaceImage, GIFTI pairs, CIFTI; neighbours from edges; what is refused."""

import nibabel
import numpy as np
import pytest
from nibabel.cifti2 import BrainModelAxis, SeriesAxis
from nilearn.maskers import SurfaceMasker
from nilearn.surface import InMemoryMesh, PolyMesh, SurfaceImage
from surface_data import planted, small_mesh

from mvpa_gamp.imaging.brainmaps import coordinates, from_image, read_image, to_image, write_map, write_meshes
from mvpa_gamp.imaging.cortex import Cortex, cortex_of, packaged_cortex, read_cortex
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.maskers import VertexMasker
from mvpa_gamp.imaging.matrix import volumes_to_matrix
from mvpa_gamp.imaging.names import hemisphere_path, map_files
from mvpa_gamp.imaging.processing import Processing
from mvpa_gamp.imaging.spaces import space_of
from mvpa_gamp.imaging.surface_files import read_surface
from mvpa_gamp.imaging.surfaces import Surfaces, open_surfaces

RAW = Processing(detrend=False, standardize=None)


@pytest.fixture(scope="module")
def mesh():
    return small_mesh()


def random_image(mesh, n_times=6, seed=3):
    rng = np.random.default_rng(seed)
    return SurfaceImage(
        mesh,
        {p: rng.normal(size=(m.n_vertices, n_times)).astype(np.float32) for p, m in mesh.parts.items()},
    )


def random_mask(mesh, seed=4):
    rng = np.random.default_rng(seed)
    return SurfaceImage(mesh, {part: rng.random(m.n_vertices) < 0.6 for part, m in mesh.parts.items()})


def test_surface_to_matrix_to_surface_is_exact(mesh):
    image, mask = random_image(mesh), random_mask(mesh)
    found = volumes_to_matrix(Surfaces([image]), mask, RAW)
    for row in range(6):
        back = to_image(found.X[row], found.mask_img)
        for part, inside in mask.data.parts.items():
            np.testing.assert_array_equal(back.data.parts[part][inside], image.data.parts[part][inside, row])
            assert (back.data.parts[part][~inside] == 0).all()
        np.testing.assert_array_equal(from_image(back, found.mask_img), found.X[row])


def test_rows_are_nilearns(mesh):
    """The same columns in the same order as nilearn's masker, and the same cleaning of a run."""
    image, mask = random_image(mesh, n_times=20), random_mask(mesh)
    ours = volumes_to_matrix(Surfaces([image]), mask, Processing(detrend=True, standardize=True)).X
    theirs = SurfaceMasker(mask, detrend=True, standardize="zscore_sample").fit().transform(image)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)  # float32 rows


def test_runs_are_cleaned_one_by_one(mesh):
    image, mask = random_image(mesh, n_times=20), random_mask(mesh)
    runs, steps = np.repeat([1, 2], 10), Processing(detrend=True, standardize=True)
    whole = volumes_to_matrix(Surfaces([image]), mask, steps, runs).X
    for run in (1, 2):
        parts = {part: values[:, runs == run] for part, values in image.data.parts.items()}
        alone = volumes_to_matrix(Surfaces([SurfaceImage(mesh, parts)]), mask, steps).X
        np.testing.assert_array_equal(whole[runs == run], alone)


def test_gifti_pairs_are_exact(mesh, tmp_path):
    mask = random_mask(mesh)
    values = np.random.default_rng(5).normal(size=space_of(mask).size).astype(np.float32)
    mask_path, path = tmp_path / "sub-01_desc-analysed_mask.nii.gz", tmp_path / "sub-01_stat-t_statmap.nii.gz"
    write_meshes(mask_path, mask)
    write_map(path, values, mask, {"Description": "x"})
    assert [file.name for file in map_files(path)] == [
        "sub-01_hemi-L_stat-t_statmap.func.gii",
        "sub-01_hemi-R_stat-t_statmap.func.gii",
    ]
    np.testing.assert_array_equal(from_image(read_image(path), mask), values)
    first = [file.read_bytes() for file in map_files(path)]
    write_map(path, values, mask, {"Description": "x"})
    assert [file.read_bytes() for file in map_files(path)] == first
    read = read_surface(map_files(path)[1], cortex_of(mask))  # named by either file
    np.testing.assert_array_equal(from_image(read, mask)[:, 0], values)


def write_cifti(path, image, kept, below=7):
    """A dense series with the vertices kept of each hemisphere, and some voxels below the cortex."""
    names = {"left": "CIFTI_STRUCTURE_CORTEX_LEFT", "right": "CIFTI_STRUCTURE_CORTEX_RIGHT"}
    axes = [BrainModelAxis.from_mask(kept[part], name=names[part]) for part in names]
    deep = np.zeros((4, 4, 4), bool)
    deep.flat[:below] = True
    axes.append(BrainModelAxis.from_mask(deep, name="CIFTI_STRUCTURE_THALAMUS_LEFT", affine=np.eye(4)))
    n_times = image.shape[1]
    columns = [image.data.parts[part][kept[part]].T for part in names]
    data = np.concatenate([*columns, np.full((n_times, below), 99.0)], axis=1).astype(np.float32)
    header = (SeriesAxis(0, 2, n_times), axes[0] + axes[1] + axes[2])
    nibabel.save(nibabel.Cifti2Image(data, header), path)
    return path


def test_cifti_is_exact(mesh, tmp_path):
    image, kept = random_image(mesh), dict(random_mask(mesh).data.parts)
    path = write_cifti(tmp_path / "sub-01_bold.dtseries.nii", image, kept)
    read = read_surface(path, Cortex(mesh))
    for part, inside in kept.items():
        np.testing.assert_array_equal(read.data.parts[part][inside], image.data.parts[part][inside])
        assert (read.data.parts[part][~inside] == 0).all()
    found = volumes_to_matrix(Surfaces([read]), None, RAW)
    assert found.X.shape == (6, sum(inside.sum() for inside in kept.values()))  # zeros do not vary
    assert "vertices of the mask are constant" in found.notes[0]
    target = tmp_path / "out" / "sub-01_desc-analysed_mask.nii.gz"
    write_map(target, np.ones(found.X.shape[1], np.uint8), found.mask_img, {})
    write_meshes(target, found.mask_img)
    path = tmp_path / "out" / "sub-01_stat-t_statmap.nii.gz"
    write_map(path, found.X[2], found.mask_img, {})
    (file,) = map_files(path)
    assert file.name == "sub-01_stat-t_statmap.dscalar.nii"
    stored = nibabel.load(file)
    assert stored.nifti_header.get_intent()[0] == "ConnDenseScalar"
    assert [name for name, _, _ in stored.header.get_axis(1).iter_structures()] == [
        "CIFTI_STRUCTURE_CORTEX_LEFT",
        "CIFTI_STRUCTURE_CORTEX_RIGHT",
    ]
    np.testing.assert_array_equal(from_image(read_image(path), found.mask_img), found.X[2])


def test_neighbours_share_an_edge_and_never_cross(mesh):
    mask = random_mask(mesh)
    graph = space_of(mask).connectivity()
    assert (graph != graph.T).nnz == 0 and graph.diagonal().sum() == 0
    n_left = int(mask.data.parts["left"].sum())
    assert graph[:n_left][:, n_left:].nnz == 0
    numbers = {part: np.flatnonzero(inside) for part, inside in mask.data.parts.items()}
    wanted = set()
    for part, start in (("left", 0), ("right", n_left)):
        place = {vertex: start + k for k, vertex in enumerate(numbers[part])}
        for a, b, c in mesh.parts[part].faces.tolist():
            pairs = ((a, b), (b, c), (c, a))
            wanted |= {(place[u], place[v]) for u, v in pairs if u in place and v in place}
    wanted |= {(v, u) for u, v in wanted}
    assert set(zip(*map(np.ndarray.tolist, graph.nonzero()), strict=True)) == wanted
    assert set(graph.data.tolist()) == {1}


def test_places_clusters_and_coordinates(mesh):
    data = planted(mesh)
    parts = {part: np.ones(m.n_vertices, bool) for part, m in mesh.parts.items()}
    space = space_of(SurfaceImage(mesh, parts))
    selected = np.zeros(space.size, bool)
    selected[data.patches["left"]] = True
    selected[130 + data.patches["right"]] = True
    owner = space.clusters(selected)
    assert set(owner[selected].tolist()) == {1, 2} and not owner[~selected].any()
    assert space.place(130 + 4) == {"hemisphere": "R", "vertex": 4}
    at = coordinates(SurfaceImage(mesh, parts))
    np.testing.assert_array_equal(at[134], mesh.parts["right"].coordinates[4])


def test_fsaverage5_comes_with_nilearn():
    cortex = packaged_cortex()
    assert cortex.sizes == [10242, 10242] and cortex.edges.shape == (20484, 20484)
    # A closed triangle mesh has V - E + F = 2 on each hemisphere, and 3 F = 2 E.
    assert cortex.edges.nnz // 2 == 2 * (3 * (10242 - 2))
    known = cortex_of(SurfaceImage(cortex.mesh, {p: np.zeros(10242) for p in ("left", "right")}))
    assert known.drawn is not None and known.sulci is not None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sub-01_stat-t_statmap.nii.gz", "sub-01_hemi-L_stat-t_statmap.func.gii"),
        ("sub-01_task-x_space-s_desc-a_mask.nii.gz", "sub-01_task-x_hemi-L_space-s_desc-a_mask.label.gii"),
        ("contrast-a_desc-b_statmap.nii.gz", "hemi-L_contrast-a_desc-b_statmap.func.gii"),
    ],
)  # fmt: skip
def test_names_of_hemispheres(tmp_path, name, expected):
    assert hemisphere_path(tmp_path / name, "left").name == expected


def test_other_meshes_are_refused(mesh):
    image, other = random_image(mesh), random_image(small_mesh(131, 110))
    with pytest.raises(DataError, match=r"another mesh: expected 130 vertices .left. and 110 vertices"):
        Surfaces([image, other])
    turned = {p: InMemoryMesh(m.coordinates, m.faces[:, ::-1].copy()) for p, m in mesh.parts.items()}
    with pytest.raises(DataError, match="the faces of the left hemisphere differ"):
        Surfaces([image, random_image(PolyMesh(**turned))])


def test_smoothing_is_refused(mesh):
    with pytest.raises(DataError, match="images on surfaces are not smoothed, got 4 mm"):
        Surfaces([random_image(mesh)]).read(None, 4.0)


def test_files_are_refused_with_a_sentence(mesh, tmp_path):
    cortex = Cortex(mesh)
    with pytest.raises(DataError, match="found none there"):
        read_surface(tmp_path / "sub-01_hemi-L_bold.func.gii", cortex)
    path = tmp_path / "sub-01_bold.func.gii"
    path.write_text("not xml")
    with pytest.raises(DataError, match=r"expected hemi-L or hemi-R .or lh and rh, L and R. in its name"):
        read_surface(path, cortex)
    path.rename(tmp_path / "sub-01_hemi-L_bold.func.gii")
    with pytest.raises(
        DataError, match="expected a pair, left and right hemisphere, but this file is missing"
    ):
        read_surface(tmp_path / "sub-01_hemi-L_bold.func.gii", cortex)
    (tmp_path / "sub-01_hemi-R_bold.func.gii").write_text("not xml")
    with pytest.raises(DataError, match="cannot be read"):
        read_surface(tmp_path / "sub-01_hemi-L_bold.func.gii", cortex)
    kept = {part: np.ones(m.n_vertices, bool) for part, m in mesh.parts.items()}
    path = write_cifti(tmp_path / "x.dtseries.nii", random_image(mesh), kept)
    with pytest.raises(
        DataError, match="expected 10,242 vertices in the left hemisphere, as the mesh has, got 130"
    ):
        open_surfaces(path)  # without a mesh of its own it is read on fsaverage5
    with pytest.raises(DataError, match="expected two files, left and right hemisphere, got 1"):
        read_cortex([tmp_path / "a.surf.gii"])
    with pytest.raises(DataError, match="found none there"):
        read_cortex([tmp_path / "a.surf.gii", tmp_path / "b.surf.gii"])


def test_a_masker_with_more_settings_is_nilearns(mesh):
    image, mask = random_image(mesh, n_times=30), random_mask(mesh)
    masker = VertexMasker(mask, clean_args={"ensure_finite": True}, detrend=True, standardize="zscore_sample")
    ours = masker.set_params(reports=False).fit_to(Surfaces([image])).read(Surfaces([image])).X
    theirs = SurfaceMasker(mask, detrend=True, standardize="zscore_sample").fit().transform(image)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)  # float32 rows


def test_vertices_that_touch_a_small_mask_are_kept_for_the_leakage_check(mesh):
    data = planted(mesh)
    inside = {part: np.isin(np.arange(m.n_vertices), data.patches[part]) for part, m in mesh.parts.items()}
    found = volumes_to_matrix(Surfaces([data.image]), SurfaceImage(mesh, inside), RAW)
    wanted = []
    for part, m in mesh.parts.items():
        near = {v for face in m.faces.tolist() if inside[part][face].any() for v in face}
        wanted.append(data.image.data.parts[part][sorted(v for v in near if not inside[part][v])])
    np.testing.assert_array_equal(found.around, np.concatenate(wanted).T)
