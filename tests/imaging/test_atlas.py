"""Atlases: files and their tables, names that nilearn knows, and the regions of a mask's voxels."""

import socket

import nibabel
import numpy as np
import pytest
from nilearn.image import resample_to_img

from mvpa_gamp.imaging.atlas import open_atlas, phantom_atlas
from mvpa_gamp.imaging.brainmaps import coordinates
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.phantom.head import Phantom
from mvpa_gamp.imaging.phantom.series import PHANTOM_NAMES, PLANTED, build_scene
from mvpa_gamp.imaging.regions import NILEARN_ATLASES, OUTSIDE, find_table, read_table

SHEARED = np.array([[-3.1, 0.2, 0, 12], [0, 3.5, 0.1, -20], [0, 0, 4.2, 5], [0, 0, 0, 1]])


def image(values, affine=SHEARED, dtype=np.int16):
    return nibabel.Nifti1Image(np.asarray(values).astype(dtype), affine)


@pytest.fixture
def mask():
    inside = np.zeros((6, 7, 5), dtype=np.uint8)
    inside[1:5, 1:6, :4] = 1
    return image(inside, dtype=np.uint8)


@pytest.fixture
def saved(tmp_path):
    """An atlas of four slabs as a file."""
    path = tmp_path / "sub-01_res-2_atlas-slabs_dseg.nii.gz"
    nibabel.save(image(np.broadcast_to(np.arange(6)[:, None, None], (6, 7, 5))), path)
    return path


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


# --- tables


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.tsv", "index\tname\tcolor\n0\tBackground\t#0\n17\tV1\t#1\n", {0: "Background", 17: "V1"}),
        ("a.csv", 'name,index\n"Gyrus, upper",4\n', {4: "Gyrus, upper"}),
        ("a.txt", "# Label R G B A\n1 Left 1 2 3 0\n2 Right A  4 5 6 0\n", {1: "Left", 2: "Right A"}),
        ("a.txt", "1\t7Networks_LH_Vis_1\t120\t18\t131\t0\n", {1: "7Networks_LH_Vis_1"}),
        ("a.txt", "Background\nFrontal Pole\nInsula\n", {0: "Background", 1: "Frontal Pole", 2: "Insula"}),
        ("a.txt", "Frontal Pole\r\nInsular Cortex\r\n", {1: "Frontal Pole", 2: "Insular Cortex"}),
        ("a.tsv", "\ufeffindex\tname\n2\ta\x07 \x1b[31mb\n", {2: "a [31mb"}),
    ],
)  # fmt: skip
def test_tables_are_read_in_three_forms(tmp_path, name, text, found):
    assert read_table(write(tmp_path / name, text)) == found


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("index\tname\n1\ta\n1\tb\n", "region 1 has two names. Keep one of them"),
        ("index\tname\none\ta\n", "expected the number of a region, 0 or more, got 'one'"),
        ("index\tname\n1\n", "line 2 has 1 of 2 columns"),
        ("x\ty\n1\t2\t3\n", "expected the columns index and name, or a number and a name"),
        ("1 a\nb\n", "expected the columns index and name"),
        ("\n\n", "is empty"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(tmp_path, text, sentence):
    with pytest.raises(DataError, match=sentence):
        read_table(write(tmp_path / "a.tsv", text))


def test_bytes_and_missing_files_are_no_tables(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="expected text in UTF-8"):
        read_table(tmp_path / "a.tsv")
    with pytest.raises(DataError, match=r"cannot be read: No such file .* Check the path"):
        read_table(tmp_path / "b.tsv")


def test_the_table_is_found_beside_the_atlas(saved):
    assert find_table(saved) is None
    inherited = write(saved.with_name("sub-01_atlas-slabs_dseg.tsv"), "index\tname\n1\tb\n")
    assert find_table(saved) == inherited
    own = write(saved.with_name("sub-01_res-2_atlas-slabs_dseg.tsv"), "index\tname\n1\ta\n")
    assert find_table(saved) == own


# --- regions of a mask


def test_regions_of_a_file(saved, mask):
    write(saved.with_name("sub-01_atlas-slabs_dseg.tsv"), "index\tname\n1\tone\n2\ttwo\n3\ttwo\n9\tnine\n")
    found = open_atlas(str(saved)).regions(mask)
    assert found.names == ("one", "two (2)", "two (3)", "region 4")
    assert found.indices == (1, 2, 3, 4) and found.missing == ("region 5", "nine")
    assert found.sizes.tolist() == [20] * 4 and found.of_voxel.tolist() == np.repeat(range(4), 20).tolist()
    assert len(found.notes) == 2 and "no name for 4, 5" in found.notes[0]
    assert "2 of its 6 regions have no voxel in the mask (region 5, nine)" in found.notes[1]
    np.testing.assert_array_equal(
        np.asarray(found.image.dataobj)[1:5, 1:6, :4].ravel(), np.repeat([1, 2, 3, 4], 20)
    )


def test_an_atlas_without_a_table_is_numbered(saved, mask):
    found = open_atlas(str(saved)).regions(mask)
    assert found.names[0] == "region 1" and "regions are identified by number" in found.notes[0]
    other = write(saved.with_name("names.txt"), "a\nb\nc\nd\ne\n")
    assert open_atlas(str(saved), str(other)).regions(mask).names == ("a", "b", "c", "d")


def test_resampling_is_nilearns_nearest(mask):
    """Random labels on a finer grid that is turned against the mask's: no voxel centre falls on a border."""
    rng = np.random.default_rng(0)
    turned = np.array([[1.7, 0.31, 0.05, -14], [-0.29, 1.9, 0.11, -23], [0.02, -0.13, 2.3, 3], [0, 0, 0, 1]])
    atlas = image(rng.integers(0, 30, (19, 17, 9)), turned)
    found = open_atlas(atlas, {1: "a"}).regions(mask)
    expected = resample_to_img(atlas, mask, interpolation="nearest", force_resample=True, copy_header=True)
    values = np.asarray(expected.dataobj) * np.asarray(mask.dataobj)
    np.testing.assert_array_equal(np.asarray(found.image.dataobj), values)
    assert (found.of_voxel < 0).any() and "resampled to the grid of the data" in " ".join(found.notes)


def test_region_at_coordinates_is_the_region_of_the_voxel(saved, mask):
    found = open_atlas(str(saved)).regions(mask)
    places = coordinates(mask)
    assert [found.region_at(at) for at in places[::7]] == found.voxel_names[::7].tolist()
    assert found.region_at([500, 0, 0]) == OUTSIDE
    assert found.region_at(SHEARED[:3, 3]) == OUTSIDE  # voxel (0, 0, 0), which is not in the mask


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (np.full((3, 3, 3), 0.5, dtype=np.float32), "expected whole numbers, 0 outside"),
        (np.full((3, 3, 3), -1, dtype=np.float32), "expected whole numbers, 0 outside"),
        (np.full((3, 3, 3), np.nan, dtype=np.float32), "expected whole numbers, 0 outside"),
        (np.ones((3, 3, 3, 2), dtype=np.float32), "probabilistic atlases have one per region"),
        (np.zeros((3, 3, 3), dtype=np.float32), "is empty"),
    ],
)
def test_volumes_that_are_no_atlas_are_refused(values, sentence):
    with pytest.raises(DataError, match=sentence):
        open_atlas(nibabel.Nifti1Image(values, np.eye(4)))


def test_an_atlas_elsewhere_is_refused(mask):
    far = SHEARED.copy()
    far[0, 3] = 900
    with pytest.raises(DataError, match="none of the 80 voxels of the mask lies in one of its regions"):
        open_atlas(image(np.ones((3, 3, 3)), far)).regions(mask)


def test_another_space_is_said(saved, mask):
    atlas = nibabel.load(saved)
    atlas.header["sform_code"], mask.header["sform_code"] = 4, 1
    notes = open_atlas(atlas, {1: "a"}).regions(mask).notes
    assert any(
        "its header says MNI152 space, but that of the data says scanner space" in note for note in notes
    )


# --- names that nilearn knows


@pytest.fixture
def offline(monkeypatch):
    def refused(*_, **__):
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)


@pytest.mark.parametrize("name", NILEARN_ATLASES)
def test_an_atlas_that_is_not_there_is_not_downloaded(name, offline, tmp_path, monkeypatch):
    monkeypatch.setenv("NILEARN_DATA", str(tmp_path))
    call = NILEARN_ATLASES[name].call(NILEARN_ATLASES[name].usual)
    with pytest.raises(DataError, match=r"nothing is downloaded here\. Download it once") as error:
        open_atlas(name)
    assert call in str(error.value) and not list(tmp_path.iterdir())


def test_atlases_that_are_there_are_read(offline, tmp_path, monkeypatch, mask):
    monkeypatch.setenv("NILEARN_DATA", str(tmp_path))
    straight = np.diag([2.0, 2, 2, 1])
    mask = image(mask.dataobj, straight)
    labels = image(np.broadcast_to(np.array([0, 1, 2, 2, 1, 0])[:, None, None], (6, 7, 5)), straight)
    for place in ("schaefer_2018", "destrieux_2009", "fsl/data/atlases/HarvardOxford", "aal_3v2/AAL3"):
        (tmp_path / place).mkdir(parents=True)
    own = tmp_path / "schaefer_2018"
    write(
        own / "Schaefer2018_100Parcels_7Networks_order.txt", "1\tLH_Vis\t1\t2\t3\t0\n2\tRH_Vis\t1\t2\t4\t0\n"
    )
    nibabel.save(labels, own / "Schaefer2018_100Parcels_7Networks_order_FSLMNI152_2mm.nii.gz")
    own = tmp_path / "destrieux_2009"
    write(own / "destrieux2009_rois_labels_lateralized.csv", "index,name\n0,Background\n1,L G\n2,R G\n")
    nibabel.save(labels, own / "destrieux2009_rois_lateralized.nii.gz")
    write(own / "destrieux2009.rst", "text")
    own = tmp_path / "fsl" / "data" / "atlases"
    write(
        own / "HarvardOxford-Cortical.xml",
        '<atlas><data><label index="0">Frontal Pole</label><label index="1">Insula</label></data></atlas>',
    )
    nibabel.save(labels, own / "HarvardOxford" / "HarvardOxford-cort-maxprob-thr25-2mm.nii.gz")
    own = tmp_path / "aal_3v2" / "AAL3"
    two = "".join(f"<label><index>{k}</index><name>A_{k}</name></label>" for k in (1, 2))
    write(own / "AAL3v1.xml", f"<atlas><data>{two}</data></atlas>")
    nibabel.save(labels, own / "AAL3v1.nii")
    for name, expected in {
        "schaefer_2018:100": ("LH_Vis", "RH_Vis"),
        "destrieux_2009": ("L G", "R G"),
        "harvard_oxford": ("Frontal Pole", "Insula"),
        "aal": ("A_1", "A_2"),
    }.items():
        found = open_atlas(name).regions(mask)
        assert found.names == expected and found.sizes.tolist() == [40, 40], name


def test_unknown_names_and_choices_are_refused(saved):
    with pytest.raises(DataError, match=r"expected a file .* or one of harvard_oxford, .* phantom"):
        open_atlas("no-such-atlas")
    with pytest.raises(DataError, match=r"expected schaefer_2018, or schaefer_2018:CHOICE .* got '77'"):
        open_atlas("schaefer_2018:77")
    with pytest.raises(DataError, match="atlases given by name have their own labels"):
        open_atlas("aal", str(saved))


# --- the phantom's own


def test_everything_planted_is_in_the_planted_regions():
    scene = build_scene(Phantom(shape=(14, 18, 16)))
    anatomy = scene.anatomy
    found = phantom_atlas(
        nibabel.Nifti1Image(anatomy.mask.astype(np.uint8), Phantom(shape=(14, 18, 16)).affine)
    )
    planted = (scene.patterns != 0).any(axis=0)
    names = {PHANTOM_NAMES[index] for index in PLANTED}
    assert set(found.voxel_names[planted]) == names
    assert set(found.names) == set(PHANTOM_NAMES.values()) and OUTSIDE in found.voxel_names
    assert found.sizes.sum() + (found.of_voxel < 0).sum() == anatomy.mask.sum()
