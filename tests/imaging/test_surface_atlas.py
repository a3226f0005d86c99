"""Parcellations of the surface: GIFTI and annotation pairs, CIFTI, SurfaceImage; what is refused."""

import nibabel
import numpy as np
import pandas as pd
import pytest
from nilearn.surface import SurfaceImage
from surface_data import parcels, small_mesh, write_annotations, write_label_pair

from mvpa_gamp.imaging.atlas import open_atlas
from mvpa_gamp.imaging.brainmaps import write_image
from mvpa_gamp.imaging.cortex import Cortex
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.names import pair_of
from mvpa_gamp.imaging.regions import OUTSIDE

NAMES = {1: "front", 2: "middle", 3: "back"}


@pytest.fixture(scope="module")
def mesh():
    return small_mesh()


@pytest.fixture(scope="module")
def mask(mesh):
    """All vertices but every seventh."""
    return Cortex(mesh).image(np.arange(240) % 7 != 0)


@pytest.fixture(scope="module")
def values(mesh):
    return parcels(mesh)


def where(values, mask):
    return np.concatenate(list(values.values()))[np.concatenate(list(mask.data.parts.values()))]


def check(found, values, mask):
    """Regions 1 to 3 of both hemispheres, with names that tell them apart."""
    assert found.names == (*(f"L {n}" for n in NAMES.values()), *(f"R {n}" for n in NAMES.values()))
    assert found.indices == (1, 2, 3, 11, 12, 13)
    left = np.repeat([True, False], [130, 110])[np.concatenate(list(mask.data.parts.values()))]
    numbers = where(values, mask)
    wanted = np.where(numbers > 0, numbers - 1 + np.where(left, 0, 3), -1)
    np.testing.assert_array_equal(found.of_voxel, wanted)
    assert any("those of the right one are raised by 10" in note for note in found.notes)


@pytest.mark.parametrize("name", ["atlas_hemi-L_dseg.label.gii", "lh.atlas.label.gii", "x.L.32k.label.gii"])
def test_label_pairs(tmp_path, mesh, mask, values, name):
    left = write_label_pair(tmp_path / name, values, {0: "???", **NAMES})
    check(open_atlas(str(left)).regions(mask), values, mask)
    other = pair_of(left)[1]
    check(open_atlas(other).regions(mask), values, mask)  # either file tells the pair


def test_annotation_pairs(tmp_path, mask, values):
    left = write_annotations(tmp_path / "lh.parts.annot", values, ["unknown", *NAMES.values()])
    check(open_atlas(str(left)).regions(mask), values, mask)


def test_annotations_whose_first_name_is_a_region(tmp_path, mask, values):
    """Numbers begin at 1 then; -1 is no region."""
    lower = {part: own - 1 for part, own in values.items()}
    left = write_annotations(tmp_path / "lh.parts.annot", lower, list(NAMES.values()))
    check(open_atlas(left).regions(mask), values, mask)


def test_surface_images_with_nilearns_lists_and_tables(mesh, mask, values):
    image = SurfaceImage(mesh, values)
    for labels in (
        ["Unknown", *NAMES.values()],
        [b"Unknown", b"front", b"middle", b"back"],
        NAMES,
        pd.DataFrame({"index": [0, 1, 2, 3], "name": ["Background", *NAMES.values()]}),
    ):
        check(open_atlas(image, labels).regions(mask), values, mask)
    unnamed = open_atlas(image).regions(mask)
    assert unnamed.names[0] == "L region 1" and unnamed.names[3] == "R region 1"
    assert any("it has no table of names" in note for note in unnamed.notes)


def test_regions_of_two_names_keep_them(tmp_path, mask, values):
    """Tables of one hemisphere each, as HCP's: the names tell the hemispheres apart already."""
    write_label_pair(tmp_path / "a.L.label.gii", values, {k: f"L_{n}" for k, n in NAMES.items()})
    own = nibabel.load(tmp_path / "a.R.label.gii")
    for entry in own.labeltable.labels:
        entry.label = entry.label.replace("L_", "R_")
    nibabel.save(own, tmp_path / "a.R.label.gii")
    found = open_atlas(tmp_path / "a.L.label.gii").regions(mask)
    assert found.names == ("L_front", "L_middle", "L_back", "R_front", "R_middle", "R_back")


def test_what_is_written_is_read_again(tmp_path, mesh, mask, values):
    """GIFTI and CIFTI, with names in the files."""
    from nibabel.cifti2 import BrainModelAxis

    found = open_atlas(SurfaceImage(mesh, values), NAMES).regions(mask)
    models = [
        BrainModelAxis.from_mask(
            np.ones(each.n_vertices, bool), name=f"CIFTI_STRUCTURE_CORTEX_{part.upper()}"
        )
        for part, each in mesh.parts.items()
    ]
    labels = {0: OUTSIDE, **dict(zip(found.indices, found.names, strict=True))}
    for cortex, name in ((Cortex(mesh), "x_hemi-L_dseg.label.gii"), (None, "x_dseg.dlabel.nii")):
        cortex = cortex or Cortex(mesh, models=models[0] + models[1])
        image = cortex.image(cortex.joined(found.image))
        write_image(tmp_path / "x_dseg.nii.gz", image, {}, "parts", labels)
        again = open_atlas(tmp_path / name).regions(mask)
        assert (again.names, again.indices) == (found.names, found.indices)
        np.testing.assert_array_equal(again.of_voxel, found.of_voxel)


def test_region_at_a_position(mesh, mask, values):
    found = open_atlas(SurfaceImage(mesh, values), NAMES).regions(mask)
    places = np.concatenate([each.coordinates for each in mesh.parts.values()])
    inside = np.concatenate(list(mask.data.parts.values()))
    names = [found.region_at(place) for place in places[inside][::9]]
    assert names == found.voxel_names[::9].tolist()
    assert found.region_at([500, 0, 0]) == OUTSIDE


def test_the_medial_wall_is_no_region(tmp_path, mask, values):
    names = ["unknown", "front", "Medial_wall", "back"]
    left = write_annotations(tmp_path / "lh.parts.annot", values, names)
    found = open_atlas(left).regions(mask)
    assert found.names == ("L front", "L back", "R front", "R back")
    assert (found.voxel_names[where(values, mask) == 2] == OUTSIDE).all()


def test_names_in_a_table_beside_the_pair(tmp_path, mask, values):
    write_label_pair(tmp_path / "x_hemi-L_dseg.label.gii", values, {})
    (tmp_path / "x_dseg.tsv").write_text("index\tname\n" + "".join(f"{k}\t{n}\n" for k, n in NAMES.items()))
    check(open_atlas(tmp_path / "x_hemi-L_dseg.label.gii").regions(mask), values, mask)


def test_one_hemisphere(mesh, values):
    alone = Cortex(type(mesh)(left=mesh.parts["left"])).image(np.ones(130, bool))
    found = open_atlas(SurfaceImage(mesh, values), NAMES).regions(alone)
    assert found.names == tuple(f"L {name}" for name in NAMES.values()) and not found.missing


def test_what_does_not_fit_is_refused(tmp_path, mesh, mask, values):
    left = write_label_pair(tmp_path / "x_hemi-L_dseg.label.gii", values, NAMES)
    other = Cortex(small_mesh(120, 110)).image(np.ones(230, bool))
    with pytest.raises(
        DataError, match="expected 120 vertices in the left hemisphere, as the data have, got 1"
    ):
        open_atlas(left).regions(other)
    volume = nibabel.Nifti1Image(np.ones((3, 3, 3), np.int16), np.eye(4))
    with pytest.raises(DataError, match="is on a surface, but the data are volumes"):
        open_atlas(left).regions(volume)
    with pytest.raises(DataError, match="is a volume, but the data are on a surface"):
        open_atlas(volume, {1: "a"}).regions(mask)
    alone = SurfaceImage(type(mesh)(left=mesh.parts["left"]), {"left": values["left"]})
    with pytest.raises(DataError, match="has no right hemisphere, and the data have one"):
        open_atlas(alone).regions(mask)
    (tmp_path / "x_hemi-R_dseg.label.gii").unlink()
    with pytest.raises(DataError, match=r"hemi-R_dseg.label.gii: expected a pair, left and right hemisphere"):
        open_atlas(left)
    half = {part: own + 0.5 for part, own in values.items()}
    with pytest.raises(DataError, match="expected one whole number per vertex"):
        open_atlas(SurfaceImage(mesh, half))
    with pytest.raises(DataError, match="no vertex belongs to a region"):
        open_atlas(SurfaceImage(mesh, {part: 0 * own for part, own in values.items()}))
    for name in ("lh.a.annot", "rh.a.annot"):
        (tmp_path / name).write_text("no annotation")
    with pytest.raises(DataError, match=r"lh.a.annot cannot be read"):
        open_atlas(tmp_path / "lh.a.annot")


def test_nilearns_destrieux_is_read_from_its_folder(tmp_path, monkeypatch, mask, values):
    monkeypatch.setattr("nilearn.datasets.get_data_dirs", lambda: [str(tmp_path)])
    with pytest.raises(
        DataError, match=r"Download it once, in Python: nilearn.datasets.fetch_atlas_surf_des"
    ):
        open_atlas("destrieux_surface")
    (tmp_path / "destrieux_surface").mkdir()
    left = tmp_path / "destrieux_surface" / "left.aparc.a2009s.annot"
    write_annotations(left, values, ["Unknown", *NAMES.values()])
    found = open_atlas("destrieux_surface")
    assert found.name == "destrieux_surface"
    check(found.regions(mask), values, mask)
