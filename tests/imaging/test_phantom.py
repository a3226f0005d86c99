"""The phantom: Haxby's sizes, a plausible head, planted patterns, honest noise, and a careful cache."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import ndimage
from sklearn.linear_model import LogisticRegression

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.phantom import CATEGORIES, Phantom, phantom_images, phantom_labels, phantom_samples
from mvpa_gamp.imaging.phantom.head import build_anatomy
from mvpa_gamp.imaging.phantom.series import (
    block_responses,
    cache_folder,
    cache_key,
    haemodynamic_response,
    read_cached,
    source_digest,
    ventral_temporal,
)
from mvpa_gamp.imaging.processing import Processing

SMALL = Phantom(shape=(14, 20, 20), n_runs=4)


@pytest.fixture(scope="module")
def small():
    return phantom_samples(SMALL, cache=False)


def test_haxbys_sizes_are_the_default():
    spec = Phantom()
    assert (spec.voxels, spec.n_runs, spec.volumes_per_run, spec.t_r) == (31_398, 12, 121, 2.5)
    np.testing.assert_allclose(np.abs(np.diag(spec.affine)[:3]), [3.5, 3.75, 3.75])
    labels = phantom_labels(spec)
    for run in range(12):
        conditions = labels.conditions[labels.runs == run]
        counts = {category: int((conditions == category).sum()) for category in CATEGORIES}
        assert set(counts.values()) == {9} and (conditions == "rest").sum() == 49
    firsts = {labels.conditions[labels.runs == run][6] for run in range(12)}
    assert len(firsts) > 3  # the order is shuffled run by run


def test_block_timing_is_the_real_slices(real_data):
    lines = (real_data / "haxby_slice" / "labels.txt").read_text().split("\n")[1:]
    real = np.array([line.split()[0] for line in lines if line]) == "rest"
    np.testing.assert_array_equal(phantom_labels(Phantom()).conditions == "rest", real)


def test_the_head_has_exactly_the_voxels_asked_for():
    anatomy = build_anatomy(Phantom())
    assert anatomy.mask.shape == (40, 64, 64) and anatomy.mask.sum() == 31_398
    assert ndimage.label(anatomy.mask)[1] == 1  # one piece
    assert not anatomy.mask[:, [0, -1]].any() and not anatomy.mask[:, :, [0, -1]].any()
    assert 400 < ventral_temporal(anatomy).sum() < 1500  # the real masks have about 300 to 700
    np.testing.assert_allclose(anatomy.coordinates.mean(axis=0), 0, atol=15)
    assert anatomy.baseline.min() > 100 and anatomy.baseline.max() < 3000


@pytest.mark.parametrize("shape", [(3, 3, 3), (7, 8, 9), (9, 11, 9)])
def test_tiny_phantoms_work(shape):
    samples = phantom_samples(Phantom(shape=shape, n_voxels=20, n_runs=2), cache=False)
    assert samples.X.shape == (2 * 8 * 9, 20) and np.isfinite(samples.X).all()
    assert samples.truth.for_pair("face", "house").any()


def test_samples_say_that_they_are_simulated(small):
    assert small.is_phantom and small.subject == "phantom"
    assert small.banner == "SIMULATED PHANTOM, not a brain"
    assert small.provenance["source"] == "phantom" and "not a brain" in small.provenance["description"]


def test_shapes_and_header(small):
    assert small.X.shape == (4 * 8 * 9, SMALL.voxels) and small.X.dtype == np.float32
    header = small.mask_img.header
    np.testing.assert_allclose(header.get_zooms(), [10, 12, 12])
    assert header.get_xyzt_units() == ("mm", "sec")
    assert int(header["sform_code"]) == 1 and int(header["qform_code"]) == 1
    np.testing.assert_array_equal(small.mask_img.affine, SMALL.affine)
    assert (np.asarray(small.background_img.dataobj)[np.asarray(small.mask_img.dataobj) == 0] == 0).all()


def test_one_seed_one_phantom(small):
    np.testing.assert_array_equal(phantom_samples(SMALL, cache=False).X, small.X)
    other = phantom_samples(replace(SMALL, seed=1), cache=False)
    assert not np.array_equal(np.asarray(other.mask_img.dataobj), np.asarray(small.mask_img.dataobj))


def test_more_runs_leave_the_first_runs_alone(small):
    longer = phantom_samples(replace(SMALL, n_runs=5), cache=False)
    np.testing.assert_array_equal(longer.X[longer.runs < 4], small.X)


def test_the_response_rises_and_falls():
    np.testing.assert_allclose(np.argmax(haemodynamic_response(np.arange(0, 30, 0.1))) / 10, 5, atol=0.1)
    first = block_responses(Phantom())[:, 0]
    assert first[:4].max() == 0 and first.max() > 0.9 and first[6] > 0.5  # labels start when it has risen
    assert abs(first[30:]).max() < 0.01


def test_truth_is_where_categories_differ(small):
    truth = small.truth
    assert truth.responses.shape == (8, SMALL.voxels)
    assert not truth.for_pair("cat", "cat").any()
    np.testing.assert_array_equal(truth.for_pair("cat", "shoe"), truth.for_pair("shoe", "cat"))
    planted = truth.for_pair("face", "house")
    assert 0 < planted.mean() < 0.2
    shown = [small.X[small.conditions == category].mean(axis=0) for category in ("face", "house")]
    contrast = np.abs(shown[0] - shown[1])
    assert contrast[planted].mean() > 1.5 * contrast[~planted].mean()
    with pytest.raises(DataError, match="got 'zebra'"):
        truth.response("zebra")


def test_the_default_phantoms_truth_lies_in_the_back_of_the_brain():
    spec = Phantom(shape=(20, 32, 32))
    samples = phantom_samples(replace(spec, n_runs=1), cache=False)
    planted = samples.truth.for_pair("face", "house")
    y = build_anatomy(spec).coordinates[:, 1]
    assert y[planted].max() < 0 and 0.005 < planted.mean() < 0.06


def test_without_signal_there_is_no_truth_and_no_information():
    silent = phantom_samples(replace(SMALL, signal=0.0), cache=False)
    assert not silent.truth.response("face").any()
    assert 0.25 < error(silent, "face", "house") < 0.75


def error(samples, first, second):
    """Leave-one-run-out error of ridge-like logistic regression."""
    rows = np.isin(samples.conditions, [first, second])
    X, y, runs = samples.X[rows], samples.conditions[rows] == first, samples.runs[rows]
    wrong = []
    for run in np.unique(runs):
        fit = LogisticRegression(C=1e-3).fit(X[runs != run], y[runs != run])
        wrong.append(np.mean(fit.predict(X[runs == run]) != y[runs == run]))
    return np.mean(wrong)


def test_easy_pairs_are_easier_than_hard_ones(small):
    """As in the paper's table: cat against house is easy, bottle against shoe is not."""
    assert error(small, "cat", "house") < 0.25
    assert error(small, "bottle", "shoe") > error(small, "cat", "house") + 0.05


def test_noise_looks_like_the_slices():
    """Lag-1 autocorrelation about 0.35, neighbours at 0.2 to 0.4, little far away."""
    spec = Phantom(shape=(20, 24, 24), n_runs=2, signal=0.0)
    samples = phantom_samples(spec, Processing(drop=()), cache=False)
    first = samples.X[samples.runs == 0]
    assert 0.25 < np.mean(first[1:] * first[:-1]) < 0.5
    grid = np.zeros((*spec.shape, len(first)), dtype=np.float32)
    mask = np.asarray(samples.mask_img.dataobj) > 0
    grid[mask] = first.T
    near, far = mask[:, 1:] & mask[:, :-1], mask[:, 6:] & mask[:, :-6]
    assert 0.15 < np.mean(grid[:, 1:][near] * grid[:, :-1][near]) < 0.45
    assert abs(np.mean(grid[:, 6:][far] * grid[:, :-6][far])) < 0.12


def test_the_ventral_mask_keeps_the_truth_aligned(small):
    ventral = phantom_samples(SMALL, cache=False, mask="vt")
    kept = np.asarray(ventral.mask_img.dataobj)[np.asarray(small.mask_img.dataobj) > 0] > 0
    np.testing.assert_array_equal(ventral.X, small.X[:, kept])
    np.testing.assert_array_equal(ventral.truth.responses, small.truth.responses[:, kept])
    with pytest.raises(DataError, match=r"expected brain or vt, got 'mine\.nii'"):
        phantom_samples(SMALL, cache=False, mask="mine.nii")


def test_images_hold_the_same_values(small):
    bold, brain, ventral, truth = phantom_images(SMALL)
    assert bold.shape == (14, 20, 20, 4 * 121) and bold.get_data_dtype() == np.int16
    assert bold.header.get_zooms()[3] == 2.5
    np.testing.assert_array_equal(np.asarray(brain.dataobj), np.asarray(small.mask_img.dataobj))
    assert np.asarray(ventral.dataobj)[np.asarray(brain.dataobj) == 0].max() == 0
    np.testing.assert_array_equal(truth.responses, small.truth.responses)


def test_the_cache_gives_the_same_and_is_used(small, monkeypatch):
    np.testing.assert_array_equal(phantom_samples(SMALL).X, small.X)
    assert sorted(path.suffix for path in cache_folder().iterdir()) == [".int16", ".json"]
    monkeypatch.setattr("mvpa_gamp.imaging.phantom.source.simulate_run", None)  # cannot be called
    np.testing.assert_array_equal(phantom_samples(SMALL).X, small.X)


@pytest.mark.parametrize("damage", ["cut", "flip", "no json", "bad json", "other code"])
def test_a_damaged_cache_is_rebuilt(small, damage):
    phantom_samples(SMALL)
    stem = cache_folder() / f"phantom-{cache_key(SMALL)}"
    data, about = stem.with_suffix(".int16"), stem.with_suffix(".json")
    content = bytearray(data.read_bytes())
    content[1000] ^= 1
    {
        "cut": lambda: data.write_bytes(content[:-10]),
        "flip": lambda: data.write_bytes(content),
        "no json": about.unlink,
        "bad json": lambda: about.write_text('{"crc32": '),
        "other code": lambda: about.write_text(about.read_text().replace(source_digest(), "0" * 64)),
    }[damage]()
    assert read_cached(SMALL) is None
    np.testing.assert_array_equal(phantom_samples(SMALL).X, small.X)
    assert read_cached(SMALL) is not None


def test_a_folder_that_cannot_be_written_is_no_obstacle(small, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="The phantom cannot be stored for the next run"):
        samples = phantom_samples(SMALL)
    np.testing.assert_array_equal(samples.X, small.X)


def test_the_cache_tells_phantoms_apart():
    keys = {cache_key(spec) for spec in (SMALL, replace(SMALL, seed=1), replace(SMALL, n_runs=3))}
    assert len(keys) == 3


@pytest.mark.parametrize(
    "settings",
    [
        {"shape": (2, 8, 9)},
        {"shape": (8, 9)},
        {"n_voxels": 0},
        {"shape": (7, 8, 9), "n_voxels": 505},
        {"n_runs": 0},
        {"categories": ()},
        {"categories": ("cat", "cat")},
        {"categories": ("zebra",)},
        {"block_volumes": 0},
        {"t_r": 0.0},
        {"signal": -1.0},
        {"seed": -1},
    ],
)
def test_impossible_phantoms(settings):
    with pytest.raises(ValueError, match=rf"Phantom {list(settings)[-1]}: expected .* got"):
        Phantom(**settings)


@pytest.mark.slow
def test_the_whole_phantom_is_quick_and_resembles_the_papers_table():
    samples = phantom_samples(cache=False)
    assert samples.X.shape == (864, 31_398) and samples.notes == ()
    errors = {}
    for pair in (("cat", "house"), ("face", "chair"), ("bottle", "shoe")):
        rows = np.isin(samples.conditions, pair)
        X, y, runs = samples.X[rows], samples.conditions[rows] == pair[0], samples.runs[rows]
        wrong = []
        for run in (0, 3, 6, 9):
            train = runs != run
            fit = LogisticRegression(l1_ratio=1, C=0.1, solver="liblinear", tol=1e-2, random_state=0)
            wrong.append(np.mean(fit.fit(X[train], y[train]).predict(X[~train]) != y[~train]))
        errors[pair] = np.mean(wrong)
    assert errors["cat", "house"] < 0.08 and errors["face", "chair"] < 0.12
    assert 0.1 < errors["bottle", "shoe"] < 0.45
