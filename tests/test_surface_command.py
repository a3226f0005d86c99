"""The BIDS command on surfaces: participants and group, GIFTI and CIFTI out, what is refused."""

import html
import math
import re

import nibabel
import numpy as np
import pytest
from nibabel.cifti2 import BrainModelAxis, ScalarAxis
from surface_data import parcels, small_mesh, write_label_pair
from surface_tree import VOLUMES, write_surface_tree

from mvpa_gamp.__main__ import main
from mvpa_gamp.imaging.atlas import open_atlas
from mvpa_gamp.imaging.bids.betas import BetasSource
from mvpa_gamp.imaging.bids.layout import find_layout, find_runs, spaces_of
from mvpa_gamp.imaging.bids.selection import Selection
from mvpa_gamp.imaging.brainmaps import read_image, sidecar_path
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.names import STRUCTURES
from mvpa_gamp.results.files import number, read_json, read_tsv
from mvpa_gamp.results.reader import missing_files, read_results

pytestmark = pytest.mark.whole

BOTH = ("--task", "faces", "houses", "--lag-trs", "0", "--methods", "gamp-sbg-lr", "--quiet")
CONTRAST, METHOD = "faceMinusHouse", "gampSbgLr"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return write_surface_tree(tmp_path_factory.mktemp("surfaces") / "bids")


@pytest.fixture(scope="module")
def dense(tree, tmp_path_factory):
    """Both levels on CIFTI dense series."""
    out = tmp_path_factory.mktemp("dense") / "out"
    assert main(command(tree, out, "--space", "fsLR", "--permutations", "19", *mesh(tree))) == 0
    assert main([str(tree.root), str(out), "group", "--quiet"]) == 0
    return out


def command(tree, out, *more):
    return [str(tree.root), str(out), "participant", *BOTH, *more]


def mesh(tree):
    return ("--surface-mesh", *map(str, tree.meshes))


def pip_of(out, label):
    results = read_results(out / f"sub-{label}")
    return read_image(results.folder.statmap(label, CONTRAST, METHOD, "pip")), results


def test_volumes_are_taken_unless_a_surface_is_asked_for(tree):
    layout = find_layout(tree.root)
    assert spaces_of(layout, "01") == [VOLUMES]
    assert spaces_of(layout, "01", Selection(space="fsLR")) == [VOLUMES, "fsLR:den-91k", "fsnative"]
    both = ("faces", "houses")
    runs = find_runs(layout, "01", Selection(tasks=both))
    assert len(runs) == 4 and all(run.mask is not None for run in runs)
    runs = find_runs(layout, "01", Selection(tasks=both, space="fsLR"))
    assert [run.bold.name.endswith("dtseries.nii") for run in runs] == [True] * 4
    assert all(run.events and run.confounds and not run.mask for run in runs)


def test_planted_vertices_are_found_in_cifti(tree, dense):
    for label in ("01", "02"):
        image, results = pip_of(dense, label)
        row = next(row for row in results.rows if row["contrast"] == CONTRAST)
        assert row["accuracy_percent"] > 90
        planted = tree.data[label, "fsLR"]
        for part, patch in planted.patches.items():
            found = set(np.flatnonzero(image.data.parts[part] > 0.5).tolist())
            assert found <= set(patch.tolist()) and len(found) >= 7
            assert (image.data.parts[part][planted.wall[part]] == 0).all()
        assert not missing_files(results)


def test_maps_are_dense_scalars_with_sidecars(dense):
    _, results = pip_of(dense, "01")
    home = results.folder.mask("01").parent
    (path,) = home.glob(f"*_desc-{METHOD}_stat-pip_statmap.dscalar.nii")
    assert nibabel.load(path).shape == (1, 220)  # the file's own vertices, without the medial wall
    assert read_json(path.with_name(path.name.replace(".dscalar.nii", ".json")))["Method"] == "gamp-sbg-lr"
    assert not list(home.rglob("*.nii.gz"))
    rows = read_tsv(results.folder.subject_table("01", "clusters"))
    assert {row["peak_hemisphere"] for row in rows} == {"L", "R"}
    assert all(number(row["peak_vertex"]) >= 0 and row["volume_mm3"] == "n/a" for row in rows)


def test_the_page_speaks_of_vertices(dense):
    page = (dense / "sub-01" / "index.html").read_text()
    assert "vertices" in page and "both hemispheres from outside and from inside" in page
    assert "<dt>voxels</dt>" not in page and page.count('class="viewer"') == 1
    group = (dense / "index.html").read_text()
    assert "at the vertices analysed in all of them" in group


def answers_of(page):
    """What the box of a page says, question by question, and what it links to."""
    said = page.read_text()
    (box,) = re.findall(r'<dl class="answer">(.*?)</dl>', said, flags=re.DOTALL)
    links = re.findall(r'href="([^"]+)"', box)
    return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)(?:<small>|</dd>)", box)), links


def test_answer_boxes_name_the_peak_and_the_files_of_surfaces(tree, dense):
    """The group's peak is that of the mean pattern, at a vertex of the planted patches."""
    for page in (dense / "sub-01" / "index.html", dense / "index.html"):
        facts, links = answers_of(page)
        assert len(links) >= 3 and all((page.parent / link).is_file() for link in links)
        assert all(link.endswith(".dscalar.nii") for link in links)
        assert {"How accurate", "How sure", "How stable", "Where"} <= set(facts)
    planted = tree.data["01", "fsLR"]
    places = np.concatenate(
        [planted.image.mesh.parts[part].coordinates[patch] for part, patch in planted.patches.items()]
    )
    words = [" ".join(str(int(np.floor(x + 0.5))) for x in place) for place in places]
    assert facts["Where"] == "not tested"  # two participants are too few
    page = html.unescape((dense / "index.html").read_text()).replace("−", "-")
    (named,) = re.findall(r"mean pattern is largest at ([-0-9 ]+) mm", page)
    assert named in words


def test_the_group_is_on_the_same_surface(dense):
    people = [pip_of(dense, label)[0] for label in ("01", "02")]
    (path,) = (dense / "group").glob(f"*_desc-{METHOD}Mean_stat-pip_statmap.dscalar.nii")
    mean = read_image(path.with_name(path.name.replace(".dscalar.nii", ".nii.gz")))
    for part in ("left", "right"):
        wanted = np.mean([person.data.parts[part] for person in people], axis=0)
        np.testing.assert_allclose(mean.data.parts[part], wanted, atol=1e-6)  # float32 files


@pytest.mark.figures
def test_a_run_is_resumed_and_drawn_again(tree, dense):
    page = dense / "sub-02" / "index.html"
    before = page.read_text()
    page.unlink()
    assert main([str(tree.root), str(dense), "participant", "--resume", "--quiet"]) == 0
    assert page.read_text() == before
    assert main([str(tree.root), str(dense), "participant", "--reports-only", "--quiet"]) == 0
    assert page.read_text() == before


@pytest.mark.parametrize("samples", ["trial", "block"])
def test_trials_and_blocks(tree, tmp_path, samples):
    out, more = tmp_path / "out", () if samples == "block" else ("--confounds", "none")
    asked = ["--task", "faces", "houses", "--methods", "onebit-cs", "--no-standardize", "--quiet", *more]
    given = [
        str(tree.root),
        str(out),
        "participant",
        "--participant-label",
        "01",
        "--samples",
        samples,
        *asked,
    ]
    assert main([*given, "--space", "fsLR", *mesh(tree)]) == 0
    assert read_results(out / "sub-01").summary.data["n_samples"] == 16


def write_betas(folder, data, label="01"):
    """The mean of every block of a participant, as pairs with a table per run and as one CIFTI file."""
    folder.mkdir(parents=True)
    starts = np.flatnonzero((data.y != "rest") & (np.roll(data.y, 1) != data.y))
    parts = {
        part: np.stack([own[:, k : k + 5].mean(axis=1) for k in starts], axis=1)
        for part, own in data.image.data.parts.items()
    }
    for run in np.unique(data.runs):
        here = data.runs[starts] == run
        name = f"sub-{label}_task-faces_run-{run}_hemi-L_space-fsnative_stat-effect_statmap.func.gii"
        for part, letter in (("left", "L"), ("right", "R")):
            arrays = [nibabel.gifti.GiftiDataArray(column) for column in parts[part][:, here].T.copy()]
            path = folder / name.replace("hemi-L", f"hemi-{letter}")
            nibabel.save(nibabel.gifti.GiftiImage(darrays=arrays), path)
        table = folder / name.replace("hemi-L_", "").replace(".func.gii", ".tsv")
        table.write_text("\n".join(["trial_type", *data.y[starts][here]]) + "\n")
    models = [
        BrainModelAxis.from_mask(np.ones(len(own), bool), name=STRUCTURES[part])
        for part, own in parts.items()
    ]
    values = np.concatenate(list(parts.values())).T.astype(np.float32)
    axes = (ScalarAxis([f"trial {k}" for k in range(len(values))]), models[0] + models[1])
    stem = f"sub-{label}_task-faces_space-fsLR_stat-effect_statmap"
    nibabel.save(nibabel.Cifti2Image(values, axes), folder / f"{stem}.dscalar.nii")
    lines = [f"{data.y[k]}\t{data.runs[k]}" for k in starts]
    (folder / f"{stem}.tsv").write_text("\n".join(["trial_type\trun", *lines]) + "\n")


def test_given_maps_on_surfaces(tree, tmp_path):
    """GIFTI pairs and CIFTI files of the same maps, with tables, are the same rows; planted vertices lead."""
    data, folder = tree.data["01", "fsLR"], tmp_path / "betas"
    write_betas(folder, data)
    mine = {"bids_dir": str(tree.root), "betas": str(folder), "surface_mesh": tuple(map(str, tree.meshes))}
    mine |= {"participant_label": "01", "standardize": False, "pairs": ("face:house",)}
    pairs, dense = (BetasSource(**mine, space=space).load() for space in ("fsnative", "fsLR"))
    np.testing.assert_array_equal(pairs.X, dense.X)
    assert pairs.conditions.tolist() == dense.conditions.tolist() and len(pairs.X) == 16
    assert len(pairs.origin.sources) == 12 and pairs.entities == {"task": "faces", "space": "fsnative"}
    asked = ["--samples", "betas", "--betas", str(folder), "--no-standardize", "--participant-label", "01"]
    asked += [
        "--contrasts",
        "face:house",
        "--methods",
        "gamp-sbg-lr",
        "--space",
        "fsLR",
        *mesh(tree),
        "--quiet",
    ]
    assert main([str(tree.root), str(tmp_path / "out"), "participant", *asked]) == 0
    image, results = pip_of(tmp_path / "out", "01")
    assert results.summary.data["n_samples"] == 16 and not missing_files(results)
    for part, patch in data.patches.items():
        assert set(np.argsort(-image.data.parts[part])[:3].tolist()) <= set(patch.tolist())
    next(folder.glob("*run-1_hemi-R*")).unlink()
    with pytest.raises(DataError, match="expected a pair, left and right hemisphere"):
        BetasSource(**mine, space="fsnative").load()


def test_gifti_pairs_of_meshes_that_are_each_participants_own(tree, dense, tmp_path):
    """The same data as in CIFTI give the same maps; the group says why it has none."""
    out = tmp_path / "out"
    assert main(command(tree, out, "--space", "fsnative", *mesh(tree))) == 0
    for label in ("01", "02"):
        (image, results), (other, _) = pip_of(out, label), pip_of(dense, label)
        for part in ("left", "right"):
            np.testing.assert_array_equal(image.data.parts[part], other.data.parts[part])
        names = {path.name for path in results.folder.mask(label).parent.glob(f"*{METHOD}_stat-pip_*.gii")}
        assert len(names) == 2 and not missing_files(results)
        path = results.folder.statmap(label, CONTRAST, METHOD, "pip")
        sources = read_json(sidecar_path(path))["Sources"]
        assert sum(source.endswith(".func.gii") for source in sources) == 8  # both hemispheres of four runs
    assert main([str(tree.root), str(out), "group", "--quiet"]) == 0
    assert "the space fsnative is each participant's own" in (out / "group_summary.json").read_text()


@pytest.mark.slow
def test_the_real_fsaverage5(tmp_path):
    """Both levels on GIFTI pairs of 2 x 10,242 vertices; outlier columns differ between runs."""
    tree = write_surface_tree(tmp_path / "bids", fsaverage5=True)
    out = tmp_path / "out"
    asked = ("--space", "fsaverage5", "--confounds", "motion6", "motion_outlier*")
    assert main(command(tree, out, *asked)) == 0
    assert main([str(tree.root), str(out), "group", "--quiet"]) == 0
    for label in ("01", "02"):
        image, results = pip_of(out, label)
        row = next(row for row in results.rows if row["contrast"] == CONTRAST)
        assert row["accuracy_percent"] > 90
        assert image.shape == (20484,) and results.summary.data["n_voxels"] == 20484 - 20
        assert any("too much motion" in note for note in results.summary.data["notes"])
        for part, patch in tree.data[label, "fsaverage5"].patches.items():
            found = set(np.flatnonzero(image.data.parts[part] > 0.5).tolist())
            assert len(found & set(patch.tolist())) >= 7 and len(found - set(patch.tolist())) <= 2
        assert not missing_files(results)
        names = {path.name for path in results.folder.mask(label).parent.glob("*.surf.gii")}
        assert sum("desc-drawn" in name for name in names) == 2
    pairs = sorted(path.name for path in (out / "group").glob(f"*{METHOD}Mean_stat-pip_statmap.func.gii"))
    assert len(pairs) == 2 and "hemi-L" in pairs[0] and "hemi-R" in pairs[1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--space", "fsLR"), "Give --surface-mesh LEFT RIGHT"),
        (("--space", "fsLR", "--smoothing-fwhm", "5"), "images on surfaces are not smoothed, got 5 mm"),
        (("--space", "fsaverage5"), "expected one that the dataset has"),
        (("--space", VOLUMES, "--surface-mesh", "a", "b"), "--surface-mesh a: expected a file"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_written(tree, tmp_path, capsys, given, said):
    out = tmp_path / "out"
    assert main(command(tree, out, *given)) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not out.exists()


@pytest.fixture(scope="module")
def by_region(tree, tmp_path_factory):
    """A participant's regions from a pair of label files: the planted patches and three parcels around."""
    home = tmp_path_factory.mktemp("regions")
    data = tree.data["01", "fsLR"]
    values = parcels(data.image.mesh)
    for part, patch in data.patches.items():
        values[part][patch] = 4
    names = {0: "???", 1: "front", 2: "middle", 3: "back", 4: "planted"}
    atlas = write_label_pair(home / "parts_hemi-L_dseg.label.gii", values, names)
    asked = ("--atlas", str(atlas), "--by-region", "--permutations", "19", "--participant-label", "01")
    assert main(command(tree, home / "out", "--space", "fsLR", *mesh(tree), *asked)) == 0
    return home, atlas


def test_regions_of_a_parcellation(tree, by_region):
    """The planted regions come first, clusters lie in them, sums over regions are those of all vertices."""
    results = read_results(by_region[0] / "out" / "sub-01")
    rows = read_tsv(results.folder.cell_table("01", CONTRAST, METHOD, "regions"))
    assert {row["region"] for row in rows[:2]} == {"L planted", "R planted"}
    assert all(number(row["p_value_fwe"]) == 0.05 for row in rows[:2])
    whole = next(row for row in rows if row["region"] == "all voxels")
    for name in ("voxels", "summed_inclusion", "summed_abs_weight", "selected_voxels"):
        own = [number(row[name]) for row in rows if row is not whole]
        assert math.fsum(own) == number(whole[name])
    clusters = read_tsv(results.folder.subject_table("01", "clusters"))
    assert {row["region"] for row in clusters} == {"L planted", "R planted"}
    assert not missing_files(results)
    stored = open_atlas(next(results.folder.mask("01").parent.glob("*_desc-regions_dseg.dlabel.nii")))
    assert "L planted" in stored.names.values()
    page = (by_region[0] / "out" / "sub-01" / "index.html").read_text()
    assert "L planted" in page and "8 have vertices in the mask" in page


def test_a_parcellation_that_does_not_fit_is_refused(tree, by_region, tmp_path, capsys):
    out, asked = tmp_path / "out", ("--space", "fsLR", *mesh(tree), "--participant-label", "01")
    volume = nibabel.Nifti1Image(np.ones((3, 3, 3), np.int16), np.eye(4))
    nibabel.save(volume, tmp_path / "volume.nii")
    small = write_label_pair(tmp_path / "lh.x.label.gii", parcels(small_mesh(120, 110)), {1: "a"})
    for atlas, said in (
        (tmp_path / "volume.nii", "is a volume, but the data are on a surface"),
        (small, "expected 130 vertices in the left hemisphere, as the data have, got 120"),
    ):
        assert main(command(tree, out, *asked, "--atlas", str(atlas))) == 2
        assert said in " ".join(capsys.readouterr().err.split())
        assert not out.exists()
    given = ("--space", VOLUMES, "--participant-label", "01", "--atlas", str(by_region[1]))
    assert main(command(tree, out, *given)) == 2
    assert "is on a surface, but the data are volumes" in " ".join(capsys.readouterr().err.split())
    assert not out.exists()


def test_meshes_and_masks_that_do_not_fit(tree, tmp_path, capsys):
    out, asked = tmp_path / "out", ("--space", "fsLR", *mesh(tree))
    volume = next(tree.derivatives.rglob("*_desc-brain_mask.nii.gz"))
    assert main(command(tree, out, *asked, "--mask", str(volume))) == 2
    assert "expected a mask on the surface" in capsys.readouterr().err
    turned = ("--surface-mesh", *map(str, tree.meshes[::-1]))
    assert main(command(tree, out, "--space", "fsLR", *turned)) == 2
    assert "expected 110 vertices in the left hemisphere, as the mesh has, got 130" in capsys.readouterr().err
    assert main(command(tree, out, "--space", VOLUMES, *mesh(tree))) == 2
    assert "--surface-mesh is for runs on surfaces" in capsys.readouterr().err
    assert not out.exists()


def test_a_mask_on_the_surface(tree, dense, tmp_path):
    """The vertices that participant 01 selected, as a mask for participant 02."""
    results = read_results(dense / "sub-01")
    mask = next(results.folder.mask("01").parent.glob(f"*_desc-{METHOD}Selected_mask.dscalar.nii"))
    out = tmp_path / "out"
    given = command(tree, out, "--space", "fsLR", *mesh(tree), "--mask", str(mask))
    assert main([*given, "--participant-label", "02"]) == 0
    wanted = int((nibabel.load(mask).get_fdata() != 0).sum())
    assert read_results(out / "sub-02").summary.data["n_voxels"] == wanted
