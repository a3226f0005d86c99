"""The volumes of the viewer: every voxel comes back from its image, and pages stay small."""

import base64
import io
import json

import nibabel
import numpy as np
import pytest
from PIL import Image

from mvpa_gamp.report.facts import comparison_facts
from mvpa_gamp.report.style import WEIGHTS
from mvpa_gamp.report.viewer import colours, mosaic, viewer
from mvpa_gamp.results.reader import read_results


def unpacked(address, shape):
    """The volume of an image, as the page's script takes it apart."""
    sheet = np.asarray(Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))))
    nx, ny, nz = shape
    columns = sheet.shape[1] // nx
    slices = [sheet[z // columns * ny :, z % columns * nx :][:ny, :nx].T for z in range(nz)]
    return np.stack(slices, axis=2)


@pytest.mark.parametrize("shape", [(5, 7, 4), (3, 2, 10), (6, 8, 1)])
def test_a_volume_survives_its_image(shape):
    volume = np.random.default_rng(0).integers(0, 256, shape)
    np.testing.assert_array_equal(unpacked(mosaic(volume), shape), volume)


def test_the_viewer_shows_the_map_of_the_file(phantom_results):
    results = read_results(phantom_results)
    facts = comparison_facts(results, "phantom", results.tasks[0])
    made = viewer(results, "phantom", results.tasks[0], facts)
    view = json.loads(made["data"])
    names = [each["name"] for each in view["maps"]]
    assert names == ["inclusion probability", "pattern", "selection frequency", "weight"]
    path = results.folder.statmap("phantom", "faceMinusHouse", "gampBgLr", "pip")
    image = nibabel.as_closest_canonical(nibabel.load(path))
    values = np.asarray(image.dataobj)
    shown = unpacked(view["maps"][0]["image"], view["shape"]) / 255
    weight = view["maps"][3]
    signed = (unpacked(weight["image"], view["shape"]).astype(float) - 128) / 127 * weight["top"]
    path = results.folder.statmap("phantom", "faceMinusHouse", "gampBgLr", "weight")
    assert abs(signed).max() == pytest.approx(abs(nibabel.load(path).get_fdata()).max())
    place = np.array(view["affine"]) @ [*view["at"], 1]  # the peak, in mm
    at = np.rint(np.linalg.inv(image.affine) @ [*place, 1])[:3].astype(int)
    assert abs(values[tuple(at)]) == abs(values).max()
    assert shown[tuple(view["at"])] == pytest.approx(values[tuple(at)], abs=1 / 255)
    assert "PHANTOM" in made["banner"]


def test_colours_are_those_of_the_figures():
    scale = colours(WEIGHTS)
    assert len(scale) == 256 and scale[0] == [5, 48, 97] and scale[255] == [103, 0, 31]
