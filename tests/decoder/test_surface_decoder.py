"""GAMPDecoder on surfaces: planted vertices are found, maps come back where they belong, files and page."""

import importlib.util
import math

import nibabel
import numpy as np
import pytest
from nilearn.maskers import NiftiMasker, SurfaceMasker
from nilearn.surface import SurfaceImage
from sklearn.base import clone
from surface_data import near, planted, small_mesh

from mvpa_gamp import GAMPDecoder
from mvpa_gamp.imaging.cortex import Cortex
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.surface_files import read_surface
from mvpa_gamp.results.files import read_tsv
from mvpa_gamp.results.reader import missing_files, read_results, result_files

CONTRAST = "face-house"


@pytest.fixture(scope="module")
def data():
    return planted(small_mesh())


@pytest.fixture(scope="module")
def fitted(data):
    return GAMPDecoder("gamp-sbg-lr", ignore="rest").fit(data.image, data.y, groups=data.runs)


def test_planted_vertices_are_found(data, fitted):
    assert fitted.fold_scores_.mean() > 0.95
    image = fitted.inclusion_img_[CONTRAST]
    assert isinstance(image, SurfaceImage)
    for part, patch in data.patches.items():
        found = set(np.flatnonzero(image.data.parts[part] > 0.5).tolist())
        assert found <= set(patch.tolist()) and len(found) >= 10
    weights = fitted.coef_img_[CONTRAST].data.parts
    assert weights["left"][data.patches["left"]].mean() > 0 > weights["right"][data.patches["right"]].mean()


def test_vertices_that_never_vary_are_left_out(data, fitted):
    assert fitted.n_elements_ == 240 - 20
    for part, wall in data.wall.items():
        assert not fitted.mask_img_.data.parts[part][wall].any()
        assert (fitted.coef_img_[CONTRAST].data.parts[part][wall] == 0).all()


def test_maps_are_coefs_back_on_the_mesh(fitted):
    image = fitted.coef_img_[CONTRAST]
    values = np.concatenate([image.data.parts[p][fitted.mask_img_.data.parts[p]] for p in ("left", "right")])
    np.testing.assert_array_equal(np.abs(values), np.abs(fitted.coef_[0]).astype(np.float32))


def test_new_images_are_predicted(data, fitted):
    fresh = planted(small_mesh(), seed=9)
    said = fitted.predict(fresh.image, groups=fresh.runs)
    shown = fresh.y != "rest"
    assert (said[shown] == fresh.y[shown]).mean() > 0.95
    rows = fitted.masker_.transform(data.run(2))
    assert rows.shape == (32, 220)
    np.testing.assert_array_equal(fitted.predict(rows), fitted.predict(data.run(2)))


def test_runs_as_a_list_and_single_images(data, fitted):
    runs = [data.run(number) for number in (1, 2, 3, 4)]
    labels = [data.y[data.runs == number].tolist() for number in (1, 2, 3, 4)]
    listed = GAMPDecoder("gamp-sbg-lr", ignore="rest").fit(runs, labels)
    np.testing.assert_array_equal(listed.coef_, fitted.coef_)
    parts = data.image.data.parts
    single = [
        SurfaceImage(data.image.mesh, {p: v[:, [t]] for p, v in parts.items()}) for t in range(len(data.y))
    ]
    again = GAMPDecoder("gamp-sbg-lr", ignore="rest").fit(single, data.y, groups=data.runs)
    plain = GAMPDecoder("gamp-sbg-lr", ignore="rest", detrend=False).fit(data.image, data.y, groups=data.runs)
    np.testing.assert_array_equal(again.coef_, plain.coef_)  # maps one by one are not detrended


def mask_around(data, count):
    """The vertices nearest to the middle of each patch."""
    inside = {
        part: np.isin(np.arange(each.n_vertices), near(each, int(data.patches[part][0]), count))
        for part, each in data.image.mesh.parts.items()
    }
    return SurfaceImage(data.image.mesh, inside)


def test_a_mask_of_just_the_vertices_that_carry_information_is_doubted(data):
    decoder = GAMPDecoder(mask=mask_around(data, 12), ignore="rest")
    with pytest.warns(UserWarning, match="mask"):
        decoder.fit(data.image, data.y, groups=data.runs)
    assert decoder.leakage_ and decoder.n_elements_ == 24


def test_a_mask_or_a_masker_says_where(data):
    mask = mask_around(data, 80)
    by_mask = GAMPDecoder(mask=mask, ignore="rest", detrend=False).fit(data.image, data.y, groups=data.runs)
    assert by_mask.n_elements_ == 160
    for masker in (SurfaceMasker(mask, standardize="zscore_sample"), SurfaceMasker(mask).fit()):
        masker.set_params(standardize="zscore_sample")
        other = GAMPDecoder(mask=masker, ignore="rest").fit(data.image, data.y, groups=data.runs)
        np.testing.assert_array_equal(other.coef_, by_mask.coef_)


def test_files_are_read_on_the_meshes_of_the_mask(data, fitted, tmp_path):
    files = []
    for number in (1, 2, 3, 4):
        for letter, part in (("L", "left"), ("R", "right")):
            values = data.run(number).data.parts[part]
            arrays = [nibabel.gifti.GiftiDataArray(column) for column in values.T]
            path = tmp_path / f"sub-01_run-{number}_hemi-{letter}_bold.func.gii"
            nibabel.save(nibabel.gifti.GiftiImage(darrays=arrays), path)
        files.append(str(tmp_path / f"sub-01_run-{number}_hemi-L_bold.func.gii"))
    from_files = GAMPDecoder("gamp-sbg-lr", mask=fitted.mask_img_, ignore="rest").fit(
        files, data.y, groups=data.runs
    )
    np.testing.assert_array_equal(from_files.coef_, fitted.coef_)
    np.testing.assert_array_equal(
        from_files.predict(files[0]), from_files.predict(read_surface(files[0], Cortex(data.image.mesh)))
    )


def test_the_folder_holds_pairs_and_meshes(fitted, tmp_path):
    root = fitted.to_bids(tmp_path / "out", information=fitted.information(49))
    results = read_results(root)
    names = {path.name for path in result_files(results)}
    stem = "contrast-faceMinusHouse_desc-gampSbgLr_stat-pip_statmap"
    assert {
        f"sub-01_hemi-L_{stem}.func.gii",
        f"sub-01_hemi-R_{stem}.func.gii",
        f"sub-01_{stem}.json",
    } <= names
    assert {
        "sub-01_hemi-L_desc-analysed_surface.surf.gii",
        "sub-01_hemi-R_desc-analysed_mask.label.gii",
    } <= names
    assert not any(name.endswith(".nii.gz") for name in names)
    assert [path.name for path in missing_files(results)] == ["index.html"]
    clusters = read_tsv(root / "sub-01" / "sub-01_clusters.tsv")
    assert sorted(row["peak_hemisphere"] for row in clusters) == ["L", "R"]
    one = nibabel.load(root / "sub-01" / f"sub-01_hemi-L_{stem}.func.gii")
    np.testing.assert_array_equal(one.agg_data(), fitted.inclusion_img_[CONTRAST].data.parts["left"])
    rows = read_tsv(root / "sub-01" / "sub-01_contrast-faceMinusHouse_desc-information_voxels.tsv")
    assert {row["hemisphere"] for row in rows} == {"L", "R"} and "i" not in rows[0]


def test_the_report_of_three_classes_says_where_on_the_meshes(data):
    """Vertices of any pair are counted, the pattern of face peaks in its patch, files are named as pairs."""
    decoder = GAMPDecoder().fit(data.image, data.y, groups=data.runs)
    page = decoder.generate_report().get_standalone()
    box = page.split('<dl class="answer">')[1].split("</dl>")[0]
    maps = [np.concatenate(list(each.data.parts.values())) for each in decoder.inclusion_img_.values()]
    count = round(float(maps[0].sum()))  # one map of inclusion for all classes
    assert count > 12 and f"<dt>Which vertices</dt><dd>{count} selected" in box
    places = data.image.mesh.parts["left"].coordinates[data.patches["left"]]
    words = {" ".join(str(int(np.floor(x + 0.5))) for x in place).replace("-", "−") for place in places}
    assert box.split("<dt>Where</dt><dd>face ")[1].split(" mm")[0] in words
    assert "sub-01_hemi-{L,R}_contrast-faceMinusOthers_desc-vampSbgClass_stat-pattern_statmap.func.gii" in box
    assert ".nii.gz" not in box


def test_what_does_not_fit_is_refused(data):
    with pytest.raises(DataError, match="images on surfaces are not smoothed"):
        GAMPDecoder(smoothing_fwhm=5).fit(data.image, data.y, groups=data.runs)
    volume = nibabel.Nifti1Image(np.ones((3, 3, 3), np.uint8), np.eye(4))
    for mask in (volume, NiftiMasker(volume)):
        with pytest.raises(TypeError, match="must be of compatible types: the mask is of volumes"):
            GAMPDecoder(mask=mask).fit(data.image, data.y, groups=data.runs)
    inside = SurfaceImage(data.image.mesh, {p: v[:, 0] > 0 for p, v in data.image.data.parts.items()})
    with pytest.raises(TypeError, match="must be of compatible types: the mask is of a surface"):
        GAMPDecoder(mask=inside).fit(nibabel.Nifti1Image(np.ones((3, 3, 3, 4)), np.eye(4)), list("abab"))


def test_other_meshes_are_refused_in_predict(fitted):
    other = planted(small_mesh(131, 110))
    with pytest.raises(DataError, match="another mesh"):
        fitted.predict(other.image)


def test_it_can_be_cloned(data):
    decoder = clone(GAMPDecoder(mask=SurfaceMasker(), ignore="rest"))
    assert decoder.fit(data.image, data.y, groups=data.runs).n_elements_ == 220


def test_regions_of_a_parcellation(data, fitted):
    """nilearn's form, an image and a list of names; planted parcels lead, sums are those of all vertices."""
    values = {part: np.zeros(each.n_vertices, int) for part, each in data.image.mesh.parts.items()}
    for part, patch in data.patches.items():
        values[part][:] = 1 + np.arange(len(values[part])) % 3
        values[part][patch] = 4
    atlas = SurfaceImage(data.image.mesh, values)
    table = fitted.regions(atlas, ["Unknown", "a", "b", "c", "planted"], permutations=4)
    assert set(table["region"][:2]) == {"L planted", "R planted"}
    assert (table["accuracy_percent"][:2] > 80).all() and (table["p_value_fwe"][:2] == 0.2).all()
    whole = table[table["region"] == "all voxels"].iloc[0]
    for name in ("voxels", "summed_inclusion", "summed_abs_weight", "selected_voxels"):
        assert math.fsum(table[name][:-1]) == whole[name]
    with pytest.raises(ValueError, match="is a volume, but the data are on a surface"):
        fitted.regions(nibabel.Nifti1Image(np.ones((2, 2, 2), np.int16), np.eye(4)), {1: "a"})


def test_views_on_surfaces(fitted):
    if importlib.util.find_spec("plotly") is None:
        with pytest.raises(ImportError, match="plotly"):
            fitted.view()
    else:
        assert "face-house: weight" in fitted.view().html


def test_confounds_and_the_scaling_of_training_runs(data, fitted):
    """What drives every vertex is regressed out of the runs; a single image is scaled as they were."""
    drift = np.random.default_rng(4).normal(size=(len(data.y), 1))
    parts = {part: values + 60 * drift.T.astype(np.float32) for part, values in data.image.data.parts.items()}
    noisy = SurfaceImage(data.image.mesh, parts)
    wall = {part: np.isin(np.arange(len(v)), data.wall[part], invert=True) for part, v in parts.items()}
    mask = SurfaceImage(data.image.mesh, wall)
    decoder = GAMPDecoder(mask=mask, ignore="rest")
    decoder.fit(noisy, data.y, groups=data.runs, confounds=drift)
    assert decoder.fold_scores_.mean() > 0.95
    fitted.set_params(predict_scaling="training")
    face = int(np.flatnonzero(data.y == "face")[2])
    one = SurfaceImage(data.image.mesh, {p: v[:, [face]] for p, v in data.image.data.parts.items()})
    assert fitted.predict(one).tolist() == ["face"]
    fitted.set_params(predict_scaling="own")
