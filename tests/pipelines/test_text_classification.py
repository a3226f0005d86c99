"""The text pipeline on tiny sets: sparse equals dense, nothing is made dense, every output names its data."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from mvpa_gamp.gamp import Laplace
from pipelines import text_classification, text_methods
from pipelines.benchmarks import sparse_iteration
from pipelines.text_data import TextSet, generated_documents, generated_set, libsvm_set, npz_set
from pipelines.text_methods import CLASSIFIERS, cross_validated, liblinear, two_folds


@pytest.fixture(scope="module")
def data():
    return generated_set(240, 120, 150, 0.08, np.random.default_rng(0))


@pytest.fixture(autouse=True)
def few_values(monkeypatch):
    """Three values are enough to see a choice."""
    few = np.geomspace(0.1, 10.0, 3)
    monkeypatch.setattr(text_methods, "STRENGTHS", few)
    for name, l1 in (("cdn", True), ("tron", False)):
        train = cross_validated("C", few, liblinear(l1))
        monkeypatch.setitem(CLASSIFIERS, name, replace(CLASSIFIERS[name], train=train))


def test_generated_documents_look_like_a_corpus():
    X = generated_documents(3000, 500, 0.05, np.random.default_rng(1))
    assert X.dtype == np.float32 and X.indices.dtype == np.int32 and X.has_canonical_format
    np.testing.assert_allclose(np.sqrt((X * X).sum(axis=1)), 1.0, rtol=1e-5)
    assert X.nnz / np.prod(X.shape) == pytest.approx(0.05, rel=0.3)
    frequency = np.sort(np.bincount(X.indices, minlength=500))[::-1]
    assert frequency[0] > 5 * frequency[250]  # a power law has common words


def test_a_set_is_the_same_for_the_same_seed_and_names_itself_generated(data):
    again = generated_set(240, 120, 150, 0.08, np.random.default_rng(0))
    np.testing.assert_array_equal(again.X.data, data.X.data)
    np.testing.assert_array_equal(again.y, data.y)
    assert data.generated and "generated" in data.name and "generated" in data.swapped().name
    assert data.swapped().X is data.X_test and data.swapped().y_test is data.y
    assert 0.3 < np.mean(data.y > 0) < 0.7  # documents without a telling word tie


@pytest.mark.parametrize("name", ["spgamp-bg-pr", "spgamp-bg-hl", "msgamp-l1-lr-em", "onebit-cs"])
def test_sparse_gives_the_dense_result(name, data):
    folds = two_folds(240, np.random.default_rng(2))
    wide = data.X.astype(np.float64)
    thin = CLASSIFIERS[name].train(wide, data.y, folds)
    dense = CLASSIFIERS[name].train(wide.toarray(), data.y, folds)
    # Products sum in another order; about a hundred iterations carry that on.
    np.testing.assert_allclose(thin.coef, dense.coef, atol=1e-6 * np.abs(dense.coef).max())
    np.testing.assert_array_equal(thin.support, dense.support)
    assert thin.accuracy(data.X_test, data.y_test) == dense.accuracy(data.X_test, data.y_test)


@pytest.mark.parametrize("name", list(CLASSIFIERS))
def test_no_classifier_makes_documents_dense(name, data, monkeypatch):
    def refuse(original):
        def method(self, *args, **kwargs):
            if self.shape[0] > 10:  # a few coefficient vectors may be dense, documents may not
                raise AssertionError(f"a {self.shape} matrix was made dense")
            return original(self, *args, **kwargs)

        return method

    for form in (sparse.csr_array, sparse.csc_array, sparse.csr_matrix, sparse.csc_matrix):
        for how in ("toarray", "todense"):
            monkeypatch.setattr(form, how, refuse(getattr(form, how)))
    trained = CLASSIFIERS[name].train(data.X, data.y, two_folds(240, np.random.default_rng(3)))
    assert trained.coef.shape == trained.support.shape == (150,)
    assert 0 < trained.final_seconds <= trained.seconds
    assert trained.accuracy(data.X, data.y) > 0.6


def test_folds_are_even():
    folds = two_folds(11, np.random.default_rng(4))
    assert sorted(np.bincount(folds)) == [5, 6]


def test_informed_update_has_the_fixed_points_of_em():
    rng = np.random.default_rng(5)
    r, tau_r = rng.laplace(0, 0.5, (4000, 1)), np.full((4000, 1), 0.02)
    tau_r[200:] = 1e12  # words that say nothing
    result = type("Result", (), {"r": r, "tau_r": tau_r})
    informed = Laplace(np.array([8.0]))
    for _ in range(30):
        informed = text_methods.informed_update(informed, result)
    np.testing.assert_allclose(informed.em_update(r, tau_r).rate, informed.rate, rtol=1e-5)
    np.testing.assert_allclose(informed.rate, 2.0, rtol=0.2)
    plain = Laplace(np.array([8.0]))
    for _ in range(5):
        plain = plain.em_update(r, tau_r)
    assert plain.rate[0] > 5  # five plain updates hardly move


def test_real_files_are_read(tmp_path):
    rng = np.random.default_rng(6)
    X = rng.random((12, 7)) * (rng.random((12, 7)) < 0.5)
    X = sparse.csr_array(np.hstack([X, np.ones((12, 1))]))
    y = np.where(np.arange(12) % 2, 1, -1)
    sparse.save_npz(tmp_path / "words_X.npz", X)
    np.savez(tmp_path / "words_y.npz", y=y, n_train=8)
    stored = npz_set(tmp_path / "words_X.npz", tmp_path / "words_y.npz")
    assert isinstance(stored, TextSet) and stored.name == "words" and not stored.generated
    assert stored.X.shape == (8, 8) and stored.X_test.shape == (4, 8)
    from sklearn.datasets import dump_svmlight_file

    for name, rows in (("train", slice(0, 8)), ("test", slice(8, 12))):
        dump_svmlight_file(sparse.csr_matrix(X[rows]), y[rows], str(tmp_path / f"{name}.svmlight"))
    read = libsvm_set(tmp_path / "train.svmlight", tmp_path / "test.svmlight")
    np.testing.assert_allclose(read.X.toarray(), stored.X.toarray(), rtol=1e-6)
    np.testing.assert_array_equal(read.y_test, stored.y_test)


def test_other_labels_are_refused(tmp_path):
    sparse.save_npz(tmp_path / "X.npz", sparse.csr_array(np.eye(4)))
    np.savez(tmp_path / "y.npz", y=np.arange(4), n_train=2)
    with pytest.raises(ValueError, match="labels must be -1 or \\+1, got"):
        npz_set(tmp_path / "X.npz", tmp_path / "y.npz")


def test_half_of_a_pair_of_files_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="--train and --test together"):
        text_classification.main(["--train", str(tmp_path / "a"), "--out", str(tmp_path)])


def test_the_pipeline_writes_tables_and_figures_that_name_the_data(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("MVPA_GAMP_DATA", raising=False)
    monkeypatch.setattr(text_classification, "SMALL", (160, 80, 120, 0.08))
    methods = ["spgamp-bg-pr", "cdn", "onebit-cs"]
    assert text_classification.main(["--out", str(tmp_path), "--methods", *methods]) == 0
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv", ".json", ".png", ".pdf"}
    record = json.loads(next(tmp_path.glob("*.json")).read_text())
    assert record["generated"] and len(record["rows"]) == 2 * len(methods)
    assert all("generated" in row["data"] and 0 <= row["density"] <= 1 for row in record["rows"])
    assert {row["train_rows"] for row in record["rows"]} == {160, 80}
    for found in record["findings"]:
        assert set(found["points_below_best"]) == {"spgamp-bg-pr", "cdn"}
        assert min(found["points_below_best"].values()) == 0
    assert "generated" in capsys.readouterr().out


def test_the_benchmark_of_one_iteration_runs_small(tmp_path, capsys):
    out = ["--out", str(tmp_path)]
    sparse_iteration.main(
        ["--rows", "500", "--features", "200", "--density", "0.05", "--iterations", "3", *out]
    )
    record = json.loads((tmp_path / "sparse_iteration.json").read_text())
    assert record["data"] == "generated" and record["peak_gb"] > 0
    for row in record["models"]:
        assert row["times_products"] > 0 and row["iterations"] == 3
    assert "peak memory" in capsys.readouterr().out
