"""The variants of neighbours, step and whitening: each changes what it says, and the trap leaks."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.feature_extraction.image import grid_to_graph

from mvpa_gamp.decoding import NoiseWhitening
from pipelines.command import Options
from pipelines.data_sets import phantom
from pipelines.neighbours import AS_THEY_ARE, NAME, TRAP, AllRuns, changed_graph, run, summary


def test_graphs_lose_what_they_say():
    graph = grid_to_graph(6, 6, 3)
    n_edges = graph.nnz
    assert changed_graph(graph, "faces", 0).nnz == n_edges
    shuffled = changed_graph(graph, "shuffled", 0)
    assert shuffled.nnz == n_edges and (shuffled != graph).nnz > n_edges / 2
    kept = changed_graph(graph, "half", 0)
    assert (kept.sum(axis=1) == 0).mean() >= 0.5 and 0 < kept.nnz < n_edges / 2
    assert changed_graph(graph, "empty", 0).nnz == 0


def test_the_trap_uses_the_held_out_run_and_whitening_does_not():
    rng = np.random.default_rng(0)
    X, runs = rng.standard_normal((48, 6)), np.repeat(np.arange(4), 12)
    train = runs[:, None] != np.arange(4)
    right = NoiseWhitening(np.arange(48) // 3)
    other = np.where((runs == 0)[:, None], 5 * X[:, ::-1], X)  # another held-out run 0
    for preparation, changes in ((right, False), (AllRuns(right), True)):
        one, two = (next(preparation.groups(each, train)).X[12:] for each in (X, other))
        assert np.allclose(one, two) is not changes


def test_differences_are_paired():
    cells = [
        {"set": "s", "variant": name, "comparison": pair, "error_percent": error, "voxels": 1.0,
         "consistency_percent": 50.0, "average_precision": None}
        for name, errors in (("gamp-bg-lr", (10.0, 30.0)), ("other", (9.0, 28.0)))
        for pair, error in zip("ab", errors, strict=True)
    ]  # fmt: skip
    plain, other = summary(cells)
    assert plain["difference_percent"] == 0 and other["difference_percent"] == -1.5
    assert other["difference_se_percent"] == pytest.approx(0.5) and other["error_se_percent"] == 9.5


def test_a_run_writes_a_row_per_variant(tmp_path, monkeypatch):
    def one_pair():
        data = phantom((7, 8, 7))
        return replace(data, tasks=data.tasks[:1])

    monkeypatch.setattr(
        "pipelines.neighbours.plan", lambda options, slice_only: [(one_pair, (AS_THEY_ARE[0], *TRAP))]
    )
    run(Options(full=False, seed=0, out=tmp_path))
    record = json.loads((tmp_path / f"{NAME}.json").read_text())
    assert [row["variant"] for row in record["rows"]] == ["gamp-bg-lr", TRAP[0].name]
    assert all(row["average_precision"] is not None for row in record["rows"])
    assert not list(tmp_path.glob("*unfinished*"))
