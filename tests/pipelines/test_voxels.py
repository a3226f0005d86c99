"""The head to head: effects where they should be, false ones counted as such."""

import json
from dataclasses import replace

import numpy as np
import pytest

from mvpa_gamp.decoding.tasks import make_tasks
from pipelines.command import Options
from pipelines.data_sets import phantom
from pipelines.voxels import (
    N_EFFECT,
    NAME,
    PHANTOM,
    QUICK,
    REAL,
    SLOW,
    Bench,
    clusters,
    counted,
    exchanged,
    frem,
    knockoffs,
    problem_of,
    run,
    space_net,
    summary,
    t_tests,
    t_tests_of_blocks,
)

TINY = replace(QUICK, sets=(), shape=(7, 8, 7))


@pytest.fixture(scope="module")
def problem():
    data = phantom((7, 8, 7))
    return problem_of(data, make_tasks(data.samples.conditions, [("face", "house")])[0])


def test_labels_are_exchanged_in_blocks_and_effects_are_where_they_should_be(problem):
    moved = exchanged(problem, 2.0, True, (0, 1, 20))
    per_block = [set(moved.y[problem.blocks == each]) for each in np.unique(problem.blocks)]
    assert all(len(labels) == 1 for labels in per_block)
    assert abs(moved.y @ problem.y) < 0.5 * len(problem.y)  # the real effect is gone
    differs = (moved.X != problem.X).any(axis=0)
    assert differs.sum() == N_EFFECT and (differs == moved.planted).all()
    places = np.argwhere(np.asarray(problem.samples.mask_img.dataobj) != 0)[differs]
    assert np.ptp(places, axis=0).max() <= 3  # a patch
    assert not exchanged(problem, 0.0, True, (0, 1, 0)).planted.any()


def test_neighbours_of_an_effect_are_false_in_the_strict_sense_only(problem):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 4))
    X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    own = problem._replace(X=X, planted=np.array([True, False, False, False]))
    found = counted(own, np.array([True, True, True, False]))
    assert found["false"] == pytest.approx(1 / 3) and found["strict"] == pytest.approx(2 / 3)
    assert found["power"] == 1 and found["voxels"] == 3
    nothing = own._replace(planted=np.zeros(4, dtype=bool))
    assert counted(nothing, np.array([True] + [False] * 3))["false"] == 1
    assert counted(nothing, np.zeros(4, dtype=bool))["false"] == 0
    assert counted(own._replace(planted=None), np.ones(4, dtype=bool))["strict"] is None


def test_t_tests_of_volumes_report_what_is_not_there_and_those_of_blocks_do_not():
    """Volumes of a block that are the same: nine copies are no nine observations."""
    rng = np.random.default_rng(0)
    blocks, any_of = np.repeat(np.arange(24), 9), {"volumes": 0, "blocks": 0}
    data = phantom((7, 8, 7))
    base = problem_of(data, data.tasks[0])
    y = np.tile(np.repeat([1.0, -1.0], 9), 12)
    for _ in range(20):
        X = rng.standard_normal((24, 200))[blocks] + 0.3 * rng.standard_normal((216, 200))
        own = base._replace(X=X, y=y, blocks=blocks)
        any_of["volumes"] += t_tests(own).any()
        any_of["blocks"] += t_tests_of_blocks(own).any()
    assert any_of["volumes"] == 20 and any_of["blocks"] <= 4  # at 5 %, more than four in 20 has p < 0.003


def test_means_are_over_sets_with_a_truth():
    about = {"data": "d", "effect": 0.0, "method": "m", "seconds": 1.0}
    sets = [{"voxels": 2, "false": 1.0, "strict": 1.0, "power": None},
            {"voxels": 0, "false": 0.0, "strict": 0.0, "power": None}]  # fmt: skip
    (row,) = summary([{**about, **each} for each in sets])
    assert row["any_percent"] == 50 and row["false_percent"] == 50 and row["false_se_percent"] == 50
    assert row["power_percent"] is None and row["sets"] == 2


def test_slow_methods_have_fewer_sets_and_every_set_is_shared():
    bench = Bench(replace(TINY, n_quick_factor=3), 0)
    keys = bench.keys()
    assert {word for word, *_ in keys} == {PHANTOM} and {effect for _, effect, *_ in keys} == {REAL}
    slow, quick = (
        {number for _, _, number, name in keys if (name in SLOW) is is_slow} for is_slow in (True, False)
    )
    assert slow < quick


def test_a_run_writes_a_row_per_method(tmp_path, monkeypatch):
    names = ("gamp-sbg-lr", "information map", "t-tests of blocks")
    monkeypatch.setattr("pipelines.voxels.method_names", lambda: list(names))
    run(Options(full=False, seed=0, out=tmp_path), replace(TINY, n_trials=1))
    record = json.loads((tmp_path / f"{NAME}.json").read_text())
    assert [row["method"] for row in record["rows"]] == list(names)
    assert record["provenance"]["commit"] and not list(tmp_path.glob("*unfinished*"))


@pytest.mark.slow
@pytest.mark.parametrize("select", [clusters, knockoffs, space_net, frem])
@pytest.mark.filterwarnings("ignore")
def test_other_packages_answer_per_voxel(problem, select):
    if select in (clusters, knockoffs):
        pytest.importorskip("hidimstat", reason='pip install ".[bench]"')
    if select is knockoffs:
        problem = problem._replace(X=problem.X[:, :40])
    selected = select(problem)
    assert selected.shape == (problem.X.shape[1],) and selected.dtype == bool
