"""Error and estimated sparsity against K, at a size that takes seconds."""

import csv
import json

import numpy as np
import pytest

from mvpa_gamp.methods import METHODS
from pipelines.command import Options
from pipelines.sparsity_vs_error import (
    BAYES_ERROR,
    FULL,
    NAME,
    QUICK,
    Size,
    classifiers,
    run,
    sparse_means,
    to_fixed_point,
)

SMALL = Size(600, 100, (3, 5), 2, ("gamp-bg-pr",), 2)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("sparsity")
    return out, run(Options(full=False, seed=0, out=out), SMALL)


def table(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_files_and_record(results):
    out, record = results
    assert sorted(path.name for path in out.iterdir()) == sorted(
        [f"{NAME}.{s}" for s in ("csv", "json", "pdf", "png")] + [f"{NAME}_trials.csv"]
    )
    assert json.loads((out / f"{NAME}.json").read_text())["headline"] == record["headline"]
    assert (out / f"{NAME}.png").read_bytes().startswith(b"\x89PNG")


def test_every_line_at_every_sparsity(results):
    out, _ = results
    rows = table(out / f"{NAME}.csv")
    lines = {(row["method"], row["stop"]) for row in rows}
    assert len(lines) == 5 and len(rows) == 2 * len(lines)
    assert len(table(out / f"{NAME}_trials.csv")) == 2 * 2 * len(lines)


def test_nothing_beats_bayes_and_learning_happens(results):
    for row in results[1]["means"]:
        assert BAYES_ERROR <= row["error"] < 0.4
    ours = [row for row in results[1]["means"] if (row["method"], row["stop"]) == ("gamp-bg-lr", "cavity")]
    assert all(abs(row["selected"] - row["sparsity"]) <= 0.5 * row["sparsity"] for row in ours)


def test_means_are_those_of_the_trials(results):
    out, record = results
    first = record["means"][0]
    errors = [
        float(row["error"])
        for row in table(out / f"{NAME}_trials.csv")
        if (row["method"], row["stop"], row["sparsity"]) == (first["method"], first["stop"], "3")
    ]
    assert first["sparsity"] == 3 and first["error"] == pytest.approx(np.mean(errors))
    assert first["error_se"] == pytest.approx(np.std(errors, ddof=1) / np.sqrt(2))


def test_closed_form_error_agrees_with_new_examples():
    problem = sparse_means(40, 4000, 4, np.random.default_rng(1))
    coef = np.random.default_rng(2).standard_normal(40) * 0.2 + (problem.X * problem.y[:, None]).mean(axis=0)
    fresh = np.mean(np.sign(problem.X @ coef) != problem.y)
    # the examples are new to coef but for its small second part; binomial spread 0.006
    assert problem.error(coef) == pytest.approx(fresh, abs=0.025)
    assert problem.error(np.zeros(40)) == 0.5


def test_the_best_weights_have_the_bayes_error():
    problem = sparse_means(50, 20_000, 5, np.random.default_rng(0))
    means = (problem.X * problem.y[:, None]).mean(axis=0)
    assert problem.error(np.where(np.abs(means) > 0.5, np.sign(means), 0)) == pytest.approx(BAYES_ERROR)


def test_onebit_cs_tries_every_size_within_ten():
    (onebit,) = [method for name, _, method in classifiers(QUICK, 15, 0) if name == "onebit-cs"]
    assert np.array_equal(onebit.sizes(QUICK.n_features), np.arange(5, 26))
    (small,) = [method for name, _, method in classifiers(QUICK, 5, 0) if name == "onebit-cs"]
    assert np.array_equal(small.sizes(QUICK.n_features), np.arange(1, 16))


def test_full_is_the_papers_size_and_stops_differ():
    assert (FULL.n_features, FULL.n_rows, FULL.n_trials) == (30_000, 300, 50)
    assert (FULL.sparsities[0], FULL.sparsities[-1]) == (5, 30)
    assert to_fixed_point(METHODS["gamp-bg-pr"]).settings.stop == "fixed-point"


def test_only_the_first_trials_are_run_to_their_fixed_point():
    stops = [[stop for _, stop, _ in classifiers(QUICK, 5, trial)] for trial in (0, QUICK.n_ended)]
    assert stops[0].count("fixed-point") == len(QUICK.fixed_point)
    assert "fixed-point" not in stops[1]
    assert stops[1].count("cavity") == stops[0].count("cavity")
