"""Wrong labels, at a size that takes seconds and has the paper's ratio of rows to features."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from pipelines.command import Options
from pipelines.robust_labels import BAYES_ERROR, CLASSIFIERS, FULL, NAME, QUICK, Size, run, wrong_labels

SMALL = Size(1024, 64, (0.0, 0.2), 1)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("robust")
    return out, run(Options(full=False, seed=0, out=out), SMALL)


def errors(record, flip):
    return {row["classifier"]: row["error"] for row in record["means"] if row["flip"] == flip}


def test_files_and_rows(results):
    out, record = results
    assert sorted(path.name for path in out.iterdir()) == sorted(
        [f"{NAME}.{s}" for s in ("csv", "json", "pdf", "png")] + [f"{NAME}_trials.csv"]
    )
    with (out / f"{NAME}_trials.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(CLASSIFIERS) * 2
    assert {row["classifier"] for row in rows} == set(CLASSIFIERS)
    assert json.loads((out / f"{NAME}.json").read_text())["headline"] == record["headline"]


def test_nothing_beats_bayes(results):
    assert all(row["error"] >= BAYES_ERROR for row in results[1]["means"])


def test_robust_is_better_than_standard_with_a_fifth_of_the_labels_wrong(results):
    found = errors(results[1], 0.2)
    assert found["robust-genie"] < found["standard-genie"] - 0.01
    assert found["robust-em"] < found["standard-em"]
    assert found["standard-em"] < found["standard-genie"]  # the paper: tuning helps the standard one most
    assert found["robust-em-mean"] < 0.055


def test_without_wrong_labels_robustness_costs_nothing(results):
    found = errors(results[1], 0.0)
    assert abs(found["robust-genie"] - found["standard-genie"]) < 1e-3
    assert abs(found["robust-em"] - found["standard-em"]) < 5e-3


def test_learnt_flip_rate_is_near_the_truth(results):
    learnt = {
        row["flip"]: row["learnt_flip"] for row in results[1]["means"] if row["classifier"] == "robust-em"
    }
    assert learnt[0.0] < 0.03 and abs(learnt[0.2] - 0.2) < 0.06


def test_labels_are_flipped_at_the_given_rates():
    problem = wrong_labels(replace(SMALL, flips=(0.0, 0.1, 0.4)), np.random.default_rng(3))
    clean = problem.labels[:, 0]
    assert clean.sum() == 0
    wrong = problem.labels != clean[:, None]
    assert np.allclose(wrong.mean(axis=0), (0.0, 0.1, 0.4), atol=1e-3)
    assert wrong[:, 2][wrong[:, 1]].all()  # nested, so that curves differ by the rate alone


def test_equal_weights_have_the_bayes_error():
    problem = wrong_labels(SMALL, np.random.default_rng(0))
    assert problem.error(np.ones((64, 2))) == pytest.approx(BAYES_ERROR)
    assert problem.error(np.zeros((64, 2))) == pytest.approx(0.5)


def test_sizes_share_the_papers_ratio():
    assert (FULL.n_rows, FULL.n_features) == (8192, 512)
    assert QUICK.n_rows / QUICK.n_features == FULL.n_rows / FULL.n_features
