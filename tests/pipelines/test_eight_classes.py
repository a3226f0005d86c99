"""Eight classes at once: every method on small images, and joint LDA by hand."""

import csv
import json

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from mvpa_gamp.imaging.phantom import Phantom, phantom_images, phantom_labels
from pipelines import eight_classes
from pipelines.command import Options


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("vt")
    phantom = Phantom(shape=(7, 8, 6), n_runs=3, categories=("face", "house", "cat"), signal=3.0)
    bold, mask, _, _ = phantom_images(phantom)
    labels = phantom_labels(phantom)
    bold.to_filename(home / "bold.nii.gz")
    mask.to_filename(home / "mask.nii.gz")
    lines = [f"{c} {r}\n" for c, r in zip(labels.conditions, labels.runs, strict=True)]
    (home / "labels.txt").write_text("labels chunks\n" + "".join(lines))
    return home


def test_methods_are_compared_on_the_same_images(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(eight_classes, "METHODS", ("svm", eight_classes.JOINT, "gamp-sbg-lr"))
    monkeypatch.setattr(eight_classes, "plan", lambda options, names: [
        *((word, name, True, eight_classes.PLAIN) for word in names for name in eight_classes.METHODS),
        ("vt", "gamp-sbg-lr", True, eight_classes.WHITENED),
    ])  # fmt: skip
    eight_classes.run(Options(full=True, seed=0, out=tmp_path), {"vt": folder})
    with (tmp_path / "eight_classes.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["method"] for row in rows] == ["svm", "joint LDA", "gamp-sbg-lr", "gamp-sbg-lr"]
    assert [row["noise"] for row in rows] == ["as measured"] * 3 + ["whitened"]
    assert all(float(row["accuracy_percent"]) > 50 for row in rows)  # chance: a third
    assert "commit" in json.loads((tmp_path / "eight_classes.json").read_text())["provenance"]


def test_the_plan_whitens_some_methods_and_keeps_lines_in_ventral_temporal_cortex():
    whole = eight_classes.plan(Options(full=True, seed=0, out=None), ["slice", "vt"])
    assert not {("slice", "joint LDA", True, "whitened"), ("slice", "svm", False, "as measured")} & set(whole)
    assert ("vt", "joint LDA", False, "as measured") in whole and (
        "vt",
        "vamp-sbg",
        True,
        "whitened",
    ) in whole
    assert len(whole) == len(set(whole)) == 2 * 6 + 6 + 2 * 4


def test_joint_lda_leaves_a_run_out(folder):
    from nilearn.masking import apply_mask
    from nilearn.signal import clean

    labels = np.genfromtxt(folder / "labels.txt", dtype=str, skip_header=1)
    y, runs = labels[:, 0], labels[:, 1].astype(int)
    X = apply_mask(str(folder / "bold.nii.gz"), str(folder / "mask.nii.gz"))
    X = clean(X, runs=runs, detrend=True, standardize="zscore_sample")
    train, test = (runs != 1) & (y != "rest"), (runs == 1) & (y != "rest")
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(X[train], y[train])
    found = eight_classes.joint_lda(folder, y, runs, detrended=True)
    assert found[list(np.unique(runs)).index(1)] == pytest.approx(model.score(X[test], y[test]))
