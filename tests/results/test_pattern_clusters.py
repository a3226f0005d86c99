"""Places of a pattern where no voxel is selected: rows, when they are written, the lead of the page."""

import nibabel
import numpy as np
import pytest

from mvpa_gamp import GAMPDecoder
from mvpa_gamp.imaging.spaces import VoxelSpace
from mvpa_gamp.report.page import section
from mvpa_gamp.results.files import number, read_tsv
from mvpa_gamp.results.reader import read_results, result_files
from mvpa_gamp.results.regions import pattern_cluster_rows

AFFINE = np.diag([2.0, 3.0, 4.0, 1.0])


def space(mask):
    return VoxelSpace(nibabel.Nifti1Image(mask.astype(np.uint8), AFFINE))


def test_places_are_split_by_sign_and_cut_at_half_of_the_peak():
    mask = np.ones((6, 4, 1), dtype=bool)
    pattern = np.zeros(mask.shape)
    pattern[0, 0], pattern[0, 1] = 2.0, 1.1  # one place
    pattern[1, 1] = -1.5  # touches it, other sign
    pattern[5, 3], pattern[3, 3] = 1.2, 0.9  # another place, and a voxel that is too weak
    rows = pattern_cluster_rows(pattern[mask], ("face", "house"), space(mask))
    assert [row["cluster"] for row in rows] == [1, 2, 3]
    assert [row["peak_pattern"] for row in rows] == [2.0, -1.5, 1.2]
    assert [row["higher_for"] for row in rows] == ["face", "house", "face"]
    assert [row["voxels"] for row in rows] == [2, 1, 1] and rows[0]["volume_mm3"] == pytest.approx(48)
    assert [rows[2][f"peak_{axis}_mm"] for axis in "xyz"] == [10.0, 9.0, 0.0]


@pytest.mark.parametrize("pattern", [np.zeros(4), np.full(4, np.nan)])
def test_no_pattern_has_no_places(pattern):
    assert pattern_cluster_rows(pattern, ("a", "b"), space(np.ones((4, 1, 1)))) == []


@pytest.fixture(scope="module")
def few():
    """A decoder of one map per class and run of seven runs: fourteen samples, too few to name a voxel."""
    rng = np.random.default_rng(0)
    volumes = rng.standard_normal((10, 10, 4, 14))
    y = np.tile(["face", "house"], 7)
    volumes[2:5, 2:5, 1:3, y == "face"] += 1.0
    mask = nibabel.Nifti1Image(np.ones((10, 10, 4), dtype=np.uint8), AFFINE)
    decoder = GAMPDecoder("gamp-bg-lr", mask, standardize=False)
    return decoder.fit(nibabel.Nifti1Image(volumes, AFFINE), y, groups=np.repeat(np.arange(7), 2))


def test_the_folder_has_the_places_and_promises_them(few, tmp_path):
    assert not (few.inclusion_img_["face-house"].get_fdata() > 0.5).any()
    out = few.to_bids(tmp_path / "out", "few")
    path = out / "sub-few" / "sub-few_patternclusters.tsv"
    rows = read_tsv(path)
    assert rows and path in set(result_files(read_results(out)))
    strengths = [abs(number(row["peak_pattern"])) for row in rows]
    assert strengths == sorted(strengths, reverse=True)
    pattern = few.pattern_img_["face-house"].get_fdata()
    first = tuple(int(rows[0][f"peak_{axis}"]) for axis in "ijk")
    assert abs(pattern[first]) == pytest.approx(np.abs(pattern).max())
    assert rows[0]["contrast"] == "faceMinusHouse" and rows[0]["method"] == "gamp-bg-lr"
    lead = section(read_results(out), "few_samples")
    accuracy = 100 * np.mean(few.contrast_scores_["face-house"])
    assert f"{accuracy:.1f} % of held-out " in lead, lead
    assert "some fits select no voxel" in lead and "is not a test" in lead


def test_the_page_leads_with_prediction_and_pattern(few):
    page = few.generate_report().html
    assert 0 < page.index('id="pattern"') < page.index('id="methods-compared"') and 'href="#pattern"' in page


def test_where_voxels_are_selected_nothing_of_it_is_there(finished):
    results = read_results(finished)
    assert section(results, "few_samples") == "" and not results.summary.pattern_clusters
    assert not list(finished.rglob("*patternclusters*"))
