"""python -m mvpa_gamp decode on surfaces: GIFTI pairs and CIFTI series as --bold."""

import numpy as np
import pytest
from surface_data import planted, small_mesh
from surface_tree import write_dense, write_pair

from mvpa_gamp.haxby import main
from mvpa_gamp.imaging.brainmaps import read_image, sidecar_path
from mvpa_gamp.imaging.cortex import Cortex
from mvpa_gamp.imaging.surface_files import write_mesh, write_surface_map
from mvpa_gamp.results.files import read_json
from mvpa_gamp.results.reader import missing_files, read_results

pytestmark = pytest.mark.whole

CONTRAST, METHOD = "faceMinusHouse", "gampSbgLr"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Four runs as GIFTI pairs and as CIFTI series, a mask of every vertex but few, labels and meshes."""
    folder, data = tmp_path_factory.mktemp("own"), planted(small_mesh())
    for run in range(1, 5):
        write_pair(folder / f"run-{run}_hemi-L_bold.func.gii", data, run)
        write_dense(folder / f"run-{run}_bold.dtseries.nii", data, run)
    lines = [f"{label}\t{run}" for label, run in zip(data.y, data.runs, strict=True)]
    (folder / "labels.tsv").write_text("\n".join(["labels\tchunks", *lines]) + "\n")
    cortex = Cortex(data.image.mesh)
    write_mesh(folder / "mesh.nii.gz", cortex)
    write_surface_map(folder / "own_mask.nii.gz", np.arange(240) % 5 > 0, cortex)
    return folder, data


def decode(home, out, bold, *more):
    mesh = [str(home / f"hemi-{letter}_mesh.surf.gii") for letter in "LR"]
    given = ["--bold", *map(str, bold), "--labels", str(home / "labels.tsv"), "--surface-mesh", *mesh]
    asked = ["--pairs", "face:house", "--methods", "gamp-sbg-lr", "--out", str(out), "--quiet"]
    return main([*given, *asked, *more])


@pytest.fixture(scope="module")
def pairs(home, tmp_path_factory):
    out = tmp_path_factory.mktemp("pairs") / "out"
    assert decode(home[0], out, sorted(home[0].glob("*.func.gii")), "--permutations", "9") == 0
    return out


def pip(out):
    results = read_results(out)
    path = results.folder.statmap("01", CONTRAST, METHOD, "pip")
    return read_image(path), path, results


def test_gifti_pairs_named_by_both_files(home, pairs):
    image, path, results = pip(pairs)
    for part, patch in home[1].patches.items():
        found = set(np.flatnonzero(image.data.parts[part] > 0.5).tolist())
        assert found <= set(patch.tolist()) and len(found) >= 7
    assert len(read_json(sidecar_path(path))["Sources"]) == 8
    assert results.summary.data["n_samples"] == 80 and not missing_files(results)
    assert "vertices" in (pairs / "index.html").read_text()


def test_cifti_series_give_the_same(home, pairs, tmp_path):
    assert decode(home[0], tmp_path / "out", sorted(home[0].glob("*.dtseries.nii"))) == 0
    (image, path, _), (other, _, _) = pip(tmp_path / "out"), pip(pairs)
    for part in ("left", "right"):
        np.testing.assert_array_equal(image.data.parts[part], other.data.parts[part])
    assert list(path.parent.glob("*_stat-pip_statmap.dscalar.nii"))


def test_a_mask_and_the_time_between_columns_of_cifti(home, tmp_path):
    """CIFTI files tell the time that a high-pass filter needs; GIFTI files do not."""
    bold, mask = sorted(home[0].glob("*hemi-L_bold.func.gii")), home[0] / "own_hemi-L_mask.label.gii"
    high = ("--high-pass", "0.01", "--mask", str(mask))
    assert decode(home[0], tmp_path / "dense", sorted(home[0].glob("*.dtseries.nii")), *high) == 0
    kept = np.arange(240) % 5 > 0
    kept[np.concatenate([home[1].wall["left"], 130 + home[1].wall["right"]])] = False
    assert read_results(tmp_path / "dense").summary.data["n_voxels"] == kept.sum()
    assert decode(home[0], tmp_path / "pairs", bold, *high) == 2


def test_what_does_not_fit_is_refused(home, tmp_path, capsys, tiny):
    folder, out = home[0], tmp_path / "out"
    left = sorted(folder.glob("*hemi-L_bold.func.gii"))
    no_mesh = ["--labels", str(folder / "labels.tsv"), "--out", str(out), "--pairs", "face:house"]
    for given, said in (
        (
            ["--bold", str(left[0]), *no_mesh],
            "expected 10,242 vertices in the left hemisphere, as the mesh has",
        ),
        (["--bold", str(left[0]), str(tiny.bold), *no_mesh], "Give files of one kind"),
        (["--bold", str(left[0]), *no_mesh, "--surface-mesh", "a", "b"], "--surface-mesh a: expected a file"),
        (["--bold", str(left[0]), *no_mesh, "--smoothing-fwhm", "4"], "images on surfaces are not smoothed"),
        ([*tiny.options(out), "--surface-mesh", "a", "b"], "--surface-mesh is for runs on surfaces"),
        (["--phantom", "--out", str(out), "--surface-mesh", "a", "b"], "--surface-mesh does not apply to"),
        (["--bold", str(left[0]), *no_mesh, "--mask", str(tiny.mask)], "expected a mask on the surface"),
    ):
        assert main(given) == 2
        assert said in " ".join(capsys.readouterr().err.split())
        assert not out.exists()


def test_settings_are_kept_and_a_run_is_resumed(home, pairs):
    config = (pairs / "config.toml").read_text()
    assert "surface_mesh" in config and config.count("_bold.func.gii") == 4
    assert main(["--out", str(pairs), "--resume", "--quiet"]) == 0
    assert main(["--out", str(pairs), "--reports-only", "--quiet"]) == 0
