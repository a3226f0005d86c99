"""Methods on all data sets and the dense example: what is written, and that differences are paired."""

import csv
import json

import nibabel
import numpy as np
import pytest
from sklearn.linear_model import Ridge

from mvpa_gamp.decoding.tasks import make_tasks
from pipelines import all_pairs, data_sets, dense_effects
from pipelines.command import Options
from pipelines.ridge import PENALTIES, ridge_decisions, ridge_fold_errors


def rows_of(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def phantom(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        data = data_sets.phantom((5, 6, 5), seed=0)
    pairs = [("face", "house"), ("cat", "shoe"), ("cat", "chair")]
    return data_sets.DataSet(data.word, data.label, data.samples, make_tasks(data.samples.conditions, pairs))


def test_all_methods_on_a_phantom(tmp_path, phantom):
    names = ("ridge", "svm", "vamp-sbg")
    record = all_pairs.run(Options(full=False, seed=0, out=tmp_path), [phantom], names)
    rows = rows_of(tmp_path / "all_pairs_phantom.csv")
    kinds = [(name, "as measured") for name in names] + [(name, "whitened") for name in names[1:]]
    assert [(row["method"], row["noise"]) for row in rows] == kinds
    assert {(row["set"], row["comparison"], row["comparisons"]) for row in rows} == {
        ("phantom", "average", "3")
    }
    ridge, _, vamp = rows[:3]
    assert ridge["voxels"] == ridge["null_consistency_percent"] == ""  # nothing is selected
    assert float(vamp["voxels"]) > 0 and 0 < float(vamp["null_consistency_percent"]) <= 100
    assert float(vamp["difference_percent"]) == 0
    assert len(rows_of(tmp_path / "all_pairs_phantom_pairs.csv")) == 15
    stored = json.loads((tmp_path / "all_pairs_phantom.json").read_text())
    assert stored["rows"] == record["rows"] and stored["simulated"] is True
    assert {"commit", "cpu", "command", "seconds"} <= set(stored["provenance"])
    assert not list(tmp_path.glob("*_unfinished*"))
    all_pairs.run(Options(full=False, seed=0, out=tmp_path), [phantom], ("svm",))
    again = rows_of(tmp_path / "all_pairs_phantom.csv")
    unchanged = [row for row in rows if row["method"] != "svm"]
    assert again[:3] == unchanged and [row["method"] for row in again[3:]] == ["svm", "svm"]
    assert {row["error_percent"] for row in again[3:]} <= {row["error_percent"] for row in rows}


def test_maps_of_participants_are_found_centred_and_compared_one_by_one(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    folder, shape = tmp_path / "pain_rejection", (3, 4, 3)
    folder.mkdir()
    lines = [(c, p) for p in range(1, 9) for c in ("friend", "heat", "rejection", "warmth")]
    maps = rng.standard_normal((*shape, len(lines))) + 3 * np.repeat(rng.standard_normal(8), 4)
    maps[0, 0, 0] += 4 * np.array([c == "heat" for c, _ in lines])
    nibabel.Nifti1Image(maps, np.eye(4)).to_filename(folder / "contrasts_2mm.nii.gz")
    nibabel.Nifti1Image(np.ones(shape, np.uint8), np.eye(4)).to_filename(folder / "mask_2mm.nii.gz")
    text = "condition\tparticipant\n" + "".join(f"{c}\t{p:02d}\n" for c, p in lines)
    (folder / "contrasts_2mm.tsv").write_text(text)
    monkeypatch.setenv("MVPA_GAMP_DATA", str(tmp_path))
    data = data_sets.contrasts()
    first = data.tasks[0]
    X, participants = data.rows(first), data.samples.runs[first.rows]
    assert np.allclose([X[participants == each].mean(axis=0) for each in range(1, 9)], 0, atol=1e-5)
    all_pairs.run(Options(full=False, seed=0, out=tmp_path), [data], ("svm", "vamp-sbg"))
    rows = rows_of(tmp_path / "all_pairs_contrasts.csv")
    assert [row["comparison"] for row in rows[:3]] == [
        "heat vs warmth",
        "rejection vs friend",
        "heat vs rejection",
    ]
    assert len(rows) == 6 and {row["noise"] for row in rows} == {"as measured"}
    pairs = rows_of(tmp_path / "all_pairs_contrasts_pairs.csv")
    errors = 100 * np.array(pairs[0]["errors"].split(), float)
    assert float(rows[0]["error_se_percent"]) == pytest.approx(errors.std(ddof=1) / np.sqrt(8))
    (folder / "contrasts_2mm.tsv").write_text(text + "heat\t09\n")
    with pytest.raises(ValueError, match=r"a line per map .32., got 33"):
        data_sets.contrasts()
    monkeypatch.setenv("MVPA_GAMP_DATA", str(tmp_path / "nowhere"))
    assert data_sets.contrasts() is data_sets.half_slice() is data_sets.ventral_temporal() is None


def test_ridge_takes_the_penalty_that_predicts_left_out_groups_best():
    rng = np.random.default_rng(1)
    X, y, groups = rng.standard_normal((24, 60)), np.tile([1.0, -1.0], 12), np.repeat(np.arange(6), 4)
    X[:, :3] += 0.8 * y[:, None]
    train = groups != 5
    rows = np.flatnonzero(train)
    centred = X[rows] - X[rows].mean(axis=0)
    unit = np.linalg.eigvalsh(centred @ centred.T).mean()

    def error(penalty):
        total = 0.0
        for group in range(5):
            inside, out = rows[groups[rows] != group], rows[groups[rows] == group]
            mean = X[rows].mean(axis=0)  # the closed form keeps the centre of all training rows
            fit = Ridge(alpha=penalty * unit, fit_intercept=False).fit(X[inside] - mean, y[inside])
            total += np.square(y[out] - fit.predict(X[out] - mean)).sum()
        return total

    best = min(PENALTIES, key=error)
    expected = Ridge(alpha=best * unit).fit(X[rows], y[rows]).predict(X)
    assert np.allclose(ridge_decisions(X @ X.T, y, groups, train), expected, atol=1e-8)
    blind = y.copy()
    blind[~train] = np.nan
    assert np.allclose(ridge_decisions(X @ X.T, blind, groups, train), expected, atol=1e-8)
    assert ridge_fold_errors(X, y, groups).shape == (6,)


def test_differences_are_paired():
    rng = np.random.default_rng(0)
    base = 0.1 + 0.05 * rng.standard_normal(28)
    pairs = {"vamp-sbg": base, "svm": base + 0.03 + 0.001 * rng.standard_normal(28)}
    cells = [
        {"set": "x", "comparison": str(k), "method": name, "noise": "as measured", "errors": [error, error],
         "voxels": None, "consistency_percent": None, "null_consistency_percent": None, "seconds": 1.0}
        for name, errors in pairs.items()
        for k, error in enumerate(errors)
    ]  # fmt: skip
    reference, svm = all_pairs.summary(cells, False, "vamp-sbg")
    assert reference["difference_percent"] == reference["difference_se_percent"] == 0
    assert svm["difference_percent"] == pytest.approx(3, abs=0.1) and svm["difference_se_percent"] < 0.05
    assert svm["error_se_percent"] == pytest.approx(100 * np.std(pairs["svm"], ddof=1) / np.sqrt(28))


def test_swapped_labels_keep_groups_whole_and_half_of_them():
    runs = np.repeat([3, 1, 2, 7], 5)
    y = np.tile([1.0, 1.0, -1.0, 1.0, -1.0], 4)
    signs = (all_pairs.swapped(y, runs, 0) * y).reshape(4, 5)
    assert (np.ptp(signs, axis=1) == 0).all() and signs[:, 0].sum() == 0


def test_dense_effects_favour_dense_methods(tmp_path):
    size = dense_effects.Size(12, (2, 12), 80, 300, 2)
    dense_effects.run(Options(full=False, seed=0, out=tmp_path), size)
    rows = {
        (float(r["informative_percent"]), r["method"]): r for r in rows_of(tmp_path / "dense_effects.csv")
    }
    sparse, dense = 100 * 4 / 144, 100.0
    errors = {key: float(row["error_percent"]) for key, row in rows.items()}
    assert errors[sparse, "gamp-bg-lr"] < errors[sparse, "svm"]
    assert errors[dense, "lda"] < errors[dense, "l1-lr-cv"]
    assert (tmp_path / "dense_effects.png").stat().st_size > 1000
