"""Gene expression: folds, measures, and generated data that say so."""

import csv
import json

import numpy as np
import pytest

from mvpa_gamp.methods import METHODS
from pipelines.command import Options
from pipelines.expression import (
    GENERATED,
    METHOD_NAMES,
    NAME,
    fold_places,
    generated,
    load,
    method_of,
    often_selected,
    prepared,
    run,
)

SOME = ("gamp-bg-lr", "gamp-l1-lr", "onebit-cs", "tron")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("expression")
    data = generated(np.random.default_rng(0), 400, 30)
    return out, run(Options(full=False, seed=0, out=out), data, 2, SOME)


def table(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_files_say_that_the_data_are_generated(results):
    out, record = results
    stem = f"{NAME}_generated"
    assert sorted(path.name for path in out.iterdir()) == sorted(
        [f"{stem}.{s}" for s in ("csv", "json", "pdf", "png")] + [f"{stem}_genes.csv", f"{stem}_splits.csv"]
    )
    for name in (stem, f"{stem}_genes", f"{stem}_splits"):
        assert {row["data"] for row in table(out / f"{name}.csv")} == {GENERATED}
    assert record["generated"] is True and GENERATED in record["headline"]
    assert json.loads((out / f"{stem}.json").read_text())["data"] == GENERATED


def test_measures(results):
    means = {row["method"]: row for row in results[1]["means"]}
    assert set(means) == set(SOME)
    for row in means.values():
        assert 0 <= row["error_percent"] < 35  # a majority vote errs in 35 %
        assert row["repeats"] == 2
    assert means["tron"]["consistency_percent"] is None  # it selects nothing
    assert 0 < means["gamp-bg-lr"]["consistency_percent"] <= 100
    assert 1 <= means["gamp-bg-lr"]["genes"] < 100


def test_often_selected_genes_are_planted_ones(results):
    chosen = results[1]["often_selected"]
    assert chosen["gamp-bg-lr"] and not chosen["tron"]
    assert np.mean(np.array(chosen["gamp-bg-lr"]) < 30) >= 0.8


def test_folds_hold_both_classes_and_differ_between_splits():
    y = np.repeat([-1.0, 1.0], [47, 25])
    place = fold_places(y, np.random.default_rng(0))
    for fold in range(5):
        assert 9 <= (y[place == fold] < 0).sum() <= 10 and (y[place == fold] > 0).sum() == 5
    assert (place != fold_places(y, np.random.default_rng(1))).any()


def test_genes_that_do_not_vary_are_left_out():
    data = generated(np.random.default_rng(0), 50, 5)
    data.X[:, 7] = 3.0  # below the clip
    X, genes = prepared(data)
    assert X.shape == (72, 49) and 7 not in genes
    assert np.allclose(X.mean(axis=0), 0, atol=1e-5) and np.allclose(X.std(axis=0), 1, atol=1e-5)


def test_often_selected_counts_folds():
    support = np.array([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]], dtype=bool)
    rows = often_selected({"cdn": support, "tron": np.ones((3, 4), dtype=bool)}, np.array(["a", "b", "c"]))
    assert [(row["method"], row["gene"], row["selected_in"]) for row in rows] == [
        ("cdn", "a", 1.0), ("cdn", "b", 0.75),
    ]  # fmt: skip


def test_a_file_is_read_and_called_real(tmp_path):
    data = generated(np.random.default_rng(0), 30, 3)
    np.savez(tmp_path / "golub.npz", X=data.X, y=data.y)
    real = load(tmp_path / "golub.npz", 0)
    assert real.word == "golub" and "real data" in real.label
    assert np.array_equal(real.genes, np.arange(30))
    np.savez(tmp_path / "other.npz", Z=data.X)
    with pytest.raises(ValueError, match=r"expected arrays X and y, got \['Z'\]"):
        load(tmp_path / "other.npz", 0)
    assert load(None, 0).label == GENERATED


def test_all_methods_are_compared_under_their_own_names():
    # The same solution as l1-lr-cv; those that select no genes; the one whose rate is made for brain maps.
    left_out = {"gamp-l1-lr-cv", "svm", "lda", "vamp-bg"}
    assert set(METHOD_NAMES) == {name for name in METHODS if not METHODS[name].uses_connectivity} - left_out
    assert all(method_of(name).name == name for name in METHOD_NAMES)


def test_l1_lr_has_an_intercept_because_classes_are_not_balanced():
    data = generated(np.random.default_rng(0), 60, 20)
    X, _ = prepared(data)
    place = fold_places(data.y, np.random.default_rng(0))
    fits = method_of("l1-lr-cv").fit_folds(X, data.y, place[:, None] != np.arange(5), place)
    assert (fits.intercept != 0).all()
