"""The benchmarks at tiny sizes: what they run, count and write; no time is asserted."""

import csv
import json
import os
import socket
from pathlib import Path

import numpy as np
import pytest

from mvpa_gamp.imaging.phantom import Phantom
from mvpa_gamp.methods import METHODS
from pipelines.benchmarks import __main__ as command
from pipelines.benchmarks import (
    baseline,
    command_worker,
    contenders,
    memory,
    peers,
    problems,
    startup,
    studies,
    study_worker,
    thread_use,
    whole_brain,
)
from pipelines.benchmarks.growth import growth_rows, iteration_seconds
from pipelines.benchmarks.limits import bare_products, fastest_products, limit_rows
from pipelines.benchmarks.machine import describe, machine
from pipelines.benchmarks.nested import Outcome, fits_per_fold, joined, nested_fold
from pipelines.benchmarks.picture import draw
from pipelines.benchmarks.precision import precision_rows
from pipelines.benchmarks.problems import Grids, load_problem, phantom_problem, random_problem, save_problem
from pipelines.benchmarks.sizes import FULL, QUICK, Sizes
from pipelines.benchmarks.solvers import celer_path, find_C, liblinear_path, skglm_path
from pipelines.benchmarks.table import as_text
from pipelines.benchmarks.targets import TARGETS, target_rows
from pipelines.benchmarks.timing import Extrapolated, Timed, in_turns, one_core

pytestmark = pytest.mark.whole

TINY = Sizes(
    shape=(9, 11, 9),
    rounds=2,
    voxels=(40, 80),
    rows=(24, 48),
    columns=(1, 12),
    usual_voxels=60,
    iterations=4,
    starts=1,
    permutations=2,
    region_voxels=40,
    standard_shape=(12, 12, 12),
    standard_voxels=300,
)


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        return phantom_problem(TINY.shape, seed=0, n_runs=4)


def plain_path(X, y, lambdas):
    """A solver that ignores its penalties, for counting."""
    return np.tile(X.T @ y, (len(lambdas), 1))


# timing ----------------------------------------------------------------------------------------------------


def test_jobs_take_turns_and_keep_their_results():
    calls = []
    timed = in_turns({"a": lambda n: calls.append(f"a{n}"), "b": lambda n: calls.append(f"b{n}") or n}, 3)
    assert calls == ["a0", "b0", "a1", "b1", "a2", "b2"]
    assert timed["b"].results == (0, 1, 2)
    assert all(len(timed["a"].seconds) == 3 == len(timed["a"].cpu_seconds) for _ in timed)


def test_a_whole_is_its_parts_times_the_median_part():
    part = Extrapolated(Timed((2.0, 1.0, 9.0), (1.0, 1.0, 1.0), (None,) * 3), parts=12)
    whole = Extrapolated(Timed((4.0, 1.0, 3.0), (2.0, 2.0, 2.0), (None,) * 3), parts=1)
    assert part.seconds == 24.0
    assert not part.is_measured and whole.is_measured
    # per round 12 * 2 / 4, 12 * 1 / 1 and 12 * 9 / 3
    assert part.ratio_to(whole) == 12.0
    assert part.cpu_ratio_to(whole) == 6.0


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system does not pin processes")
def test_one_core_is_given_back():
    before = os.sched_getaffinity(0)
    with pytest.raises(RuntimeError), one_core():
        assert len(os.sched_getaffinity(0)) == 1
        raise RuntimeError
    assert os.sched_getaffinity(0) == before


# problems --------------------------------------------------------------------------------------------------


def test_the_phantom_gives_one_balanced_comparison(problem):
    assert problem.X.dtype == np.float32 and problem.X.flags.c_contiguous
    assert problem.X.shape == (4 * 18, problem.mask.sum())
    assert set(problem.y) == {-1.0, 1.0} and problem.y.sum() == 0
    small = problem.small(10)
    assert small.X.shape[1] == 10 == small.mask.sum()


def test_a_problem_survives_the_way_to_another_process(problem, tmp_path):
    save_problem(problem, tmp_path)
    for before, after in zip(problem, load_problem(tmp_path), strict=True):
        np.testing.assert_array_equal(before, after)


def test_grids_are_those_of_our_own_baseline(problem):
    grids, runs = Grids(problem), problem.run_numbers().tolist()
    left_out = frozenset(runs[:2])
    rows = ~np.isin(problem.runs, runs[:2])
    expected = METHODS["l1-lr-cv"].lambdas(problem.X, rows[None].astype(float))[:, 0]
    np.testing.assert_allclose(grids[left_out], expected)


@pytest.mark.parametrize("n_columns", [1, 12, 30])
def test_random_problems_hold_out_a_twelfth(n_columns):
    X, y, train = random_problem(48, 30, n_columns, np.random.default_rng(0))
    assert X.shape == (48, 30) and X.dtype == np.float32
    assert y.shape == train.shape == (48, n_columns)
    assert (train.sum(axis=0) == 44).all()
    assert (np.abs(y.sum(axis=0)) <= 1).all()


# peers -----------------------------------------------------------------------------------------------------


def test_nested_tuning_makes_the_fits_it_counts(problem):
    seen = []

    def counted(X, y, lambdas):
        seen.append((len(y), len(lambdas)))
        return plain_path(X, y, lambdas)

    held_out = int(problem.run_numbers()[1])
    outcome = nested_fold(counted, problem, Grids(problem), held_out)
    assert sum(n for _, n in seen) == fits_per_fold(n_runs=4) == 31
    assert [rows for rows, _ in seen] == [36, 36, 36, 54]
    assert outcome.tested == {held_out: 18}
    assert fits_per_fold(n_runs=12) * 12 - 12 == 1320


def test_labels_of_the_held_out_run_only_score(problem):
    grids, held_out = Grids(problem), int(problem.run_numbers()[0])
    turned = problem._replace(y=np.where(problem.runs == held_out, -problem.y, problem.y))
    honest, other = (nested_fold(plain_path, data, grids, held_out) for data in (problem, turned))
    assert honest.wrong[held_out] + other.wrong[held_out] == 18
    assert honest.selected == other.selected


def test_outcomes_join_run_by_run():
    outcomes = [Outcome({0: 1}, {0: 4}, 10.0), Outcome({1: 2}, {1: 4}, 20.0), Outcome({0: 1}, {0: 4}, 30.0)]
    whole = joined(outcomes)
    assert whole.error() == 3 / 8 and whole.selected == 20.0
    assert whole.error([1]) == 0.5


@pytest.mark.parametrize(
    "solver", [pytest.param(skglm_path, marks=pytest.mark.slow), celer_path, liblinear_path]
)  # skglm compiles for seconds
def test_every_peer_solves_the_same_problem(problem, solver):
    if solver is not liblinear_path:
        pytest.importorskip("skglm" if solver is skglm_path else "celer")
    small = problem.small(60)
    gaps = baseline.reached_gaps(solver, small, Grids(small, n_values=4))
    assert gaps.shape == (4,)
    assert (gaps > -1e-6).all() and (gaps < 0.02).all()  # default tolerances, in units of the null objective


def test_C_is_searched_until_the_number_of_features_fits(problem):
    C, found = find_C(problem.X, problem.y, target=8, slack=1)
    assert C > 0 and abs(found - 8) <= 1


def test_comparison_rows_say_what_was_measured(problem):
    def both(data):
        grids = Grids(data)
        return [
            contenders.one_fit(data, 0.1),
            contenders.nested_peer(contenders.LIBLINEAR, data, grids),
        ]

    one, nested = peers.compare(both, problem.small(30), rounds=2)
    assert list(one) == list(nested)
    assert one["ratio"] == 1.0 and not one["extrapolated"]
    assert nested["extrapolated"] and nested["measured"] == "2 of 4 folds (62 of 124 fits)"
    assert nested["seconds"] == pytest.approx(4 * nested["part_seconds"])
    assert one["tested_rows"] == 72 and nested["tested_rows"] == 36
    assert 0 <= nested["error"] <= 1 and 0 <= nested["error_of_first"] <= 1


def test_shared_fits_halve_the_work():
    row = {"name": "x", "what": "", "seconds": 4.0, "ratio": 1.0, "cpu_seconds": 3.0, "cpu_ratio": 1.0}
    half = baseline.shared(row)
    assert (half["seconds"], half["ratio"], half["cpu_seconds"]) == (2.0, 0.5, 1.5)
    assert half["extrapolated"] and row["seconds"] == 4.0


def test_missing_peers_are_said_and_skipped(problem, monkeypatch):
    monkeypatch.setattr(contenders, "find_spec", lambda name: None)
    said = []
    assert baseline.baseline_rows(problem, 1, said.append) == []
    assert "skglm is not installed" in said[0] and "[bench]" in said[0]
    assert contenders.missing(peers.PEERS) == [contenders.SKGLM, contenders.CELER, contenders.DECODER]


def test_the_decoder_of_nilearn_runs_one_fold(problem):
    outcome = contenders.nilearn_decoder(problem.small(60)).run(1)
    assert outcome.tested == {int(problem.run_numbers()[1]): 18}
    assert 0 <= outcome.error() <= 1


# memory, growth, limits, start-up --------------------------------------------------------------------------


def test_memory_is_measured_in_a_fresh_process(problem, tmp_path):
    save_problem(problem, tmp_path)
    found = memory._measure(contenders.OURS, str(tmp_path), 1.0)
    assert found["before"] > 0 and found["extra"] >= 0


def test_the_memory_allowed_is_eight_arrays(problem):
    assert memory.allowance(problem) == 8 * problem.X.shape[1] * 4 * 4 / 2**20


def test_an_iteration_is_timed_to_its_end():
    data = random_problem(48, 30, 3, np.random.default_rng(0))
    for tuned in (False, True):
        steps = iteration_seconds(*data, 5, tuned=tuned)
        assert steps.seconds.shape == steps.cpu_seconds.shape == (4,)


def test_growth_has_one_row_per_size():
    rows = growth_rows(TINY, np.random.default_rng(0))
    assert [row["along"] for row in rows] == ["voxels"] * 2 + ["rows"] * 2 + ["columns"] * 2
    assert [row["voxels"] for row in rows] == [40, 80, 60, 60, 60, 60]
    for row in rows:
        assert row["column_ms"] == pytest.approx(row["iteration_ms"] / row["columns"])
    assert rows[0]["times_first"] == 1.0


def test_limits_compare_with_four_products():
    rows = limit_rows(TINY, np.random.default_rng(0))
    assert [row["what"] for row in rows] == ["bare products", "solve", "fit_em"] * 2
    assert rows[0]["times_products"] == 1.0 == rows[3]["fastest_times_products"]
    X = np.ones((3, 5), dtype=np.float32)
    steps = fastest_products([bare_products(X, 2, step, np.random.default_rng(0)) for step in (2, 5)], 3)
    assert steps.seconds.shape == (3,)


@pytest.mark.slow
def test_the_first_fit_is_measured_with_and_without_a_cache():
    rows = startup.compile_rows()
    assert [row["what"] for row in rows] == ["first fit, nothing compiled", "first fit, compiled before"]
    assert all(row["seconds"] >= 0 for row in rows)


def test_a_process_that_fails_says_why():
    with pytest.raises(RuntimeError, match="ValueError: no"):
        startup.fresh_python(("-c", "raise ValueError('no')"))


# machine, promises, output ---------------------------------------------------------------------------------


def test_the_machine_is_described_but_not_named():
    facts = machine()
    text = json.dumps(facts)
    assert facts["cores"] >= 1 and facts["libraries"]["numpy"]
    assert any(pool["user_api"] == "blas" for pool in facts["thread_pools"])
    assert str(Path.home()) not in text and "filepath" not in text and ".so" not in text
    assert socket.gethostname() not in text.split('"')
    assert str(facts["cores"]) in describe(facts)


def test_promises_are_checked_where_they_were_measured():
    rows = target_rows(
        {
            "peers": [
                {"name": contenders.OURS, "ratio": 1.0, "cpu_ratio": 1.0},
                {"name": contenders.ONE_FIT, "ratio": 0.5, "cpu_ratio": 0.25},
                {"name": contenders.SKGLM, "ratio": 41.0, "cpu_ratio": 20.0},
            ]
        }
    )
    rows = [row for row in rows if "neighbours" not in row["promise"]]
    assert [(row["measured"], row["met"]) for row in rows] == [(2.0, False), (41.0, True)]
    assert rows[0]["asked"] == "at most 1.5" and rows[1]["asked"] == "at least 40"
    assert [row["cpu_measured"] for row in rows] == [4.0, 20.0]
    assert target_rows({}) == []


def test_the_promise_with_neighbours_asks_for_wall_and_processor_time():
    measured = {contenders.SPATIAL: (0.6, 1.2), contenders.ONE_FIT: (1.0, 1.0)}
    rows = target_rows(
        {"peers": [{"name": name, "ratio": r, "cpu_ratio": cpu} for name, (r, cpu) in measured.items()]}
    )
    assert [(row["asked"], row["measured"], row["met"]) for row in rows] == [
        ("at most 1", 0.6, True),
        ("at most 1.3", 1.2, True),
    ]


def test_both_methods_are_timed_in_the_commands_and_without(problem):
    rows = thread_use.thread_rows(problem, rounds=1)
    assert [(row["name"], row["where"]) for row in rows] == [
        (name, where) for where in ("command", "METHODS") for name in ("gamp-sbg-lr", "l1-lr-cv")
    ]
    assert all(row["cores"] == row["cpu_seconds"] / row["seconds"] > 0 for row in rows)
    assert all(1 <= row["threads"] <= row["allowed"] for row in rows)
    with pytest.raises(RuntimeError, match="ValueError: no luck"):
        thread_use._checked("Traceback\nValueError: no luck\n")


def test_the_baseline_must_have_the_cores_of_gamp():
    cores = {"gamp-sbg-lr": 1.8, "l1-lr-cv": 1.9}
    rows = [{"name": name, "where": "command", "cores": n, "threads": 2} for name, n in cores.items()]
    rows += [
        {"name": name, "where": "METHODS", "cores": 1.8 - (name == "l1-lr-cv"), "threads": 1 + (n < 1.85)}
        for name, n in cores.items()
    ]
    found = [(round(row["measured"], 2), row["met"]) for row in target_rows({"threads": rows})]
    assert found == [(1.0, True), (1.06, True), (0.5, False), (0.44, False)]


def test_permutations_fitted_again_break_a_promise():
    def row(fitted):
        return {
            "what": studies.ADDED,
            "asked": 800,
            "permutations_fitted": fitted,
            "bar_counts_permutations": 1,
        }

    for fitted, met in ((800, True), (696, True), (801, False)):
        found = [r for r in target_rows({"studies": [row(fitted)]}) if "fitted for each" in r["promise"]]
        assert [each["met"] for each in found] == [met]


def test_what_is_only_stated_has_no_bound():
    loaded = {"what": studies.LOAD, "seconds": 3.0, "cpu_seconds": 4.0, "peak_mb": 900.0}
    found = {row["promise"]: row for row in target_rows({"studies": [loaded]})}
    assert {(row["asked"], row["met"]) for row in found.values()} == {("to be stated", True)}
    assert found[f"{studies.LOAD}, peak memory in MB"]["measured"] == 900


@pytest.mark.slow
def test_commands_are_run_and_counted(monkeypatch):
    monkeypatch.setattr(command_worker, "_BEFORE", 50)
    monkeypatch.setattr(command_worker, "_AFTER", 100)
    (found,) = command_worker.added("8,8,8", "60")
    assert 0.9 * 50 <= found["permutations_fitted"] <= 50 and found["bar_counts_permutations"] == 1


def test_participants_that_overlap_are_counted():
    spans = [(0.0, 3.0), (1.0, 2.0), (2.5, 4.0), (5.0, 6.0)]
    assert list(command_worker._at_once(spans)) == [1, 2, 2, 1]


def test_every_promise_can_be_measured_at_full_size():
    assert {31_250, 250_000} <= set(FULL.voxels) and {1, 96} <= set(FULL.columns) & set(QUICK.columns)
    assert {target.section for target in TARGETS} <= set(command.sections(QUICK, 0, print))


def test_tables_are_aligned():
    rows = [{"name": "a", "value": 1.0, "met": True}, {"name": "long", "value": None, "met": False}]
    lines = as_text(rows).splitlines()
    assert lines == [
        "name  value  met",
        "----  -----  ---",
        "a         1  yes",
        "long      -  no",
    ]
    assert as_text([]) == "(nothing measured)"


def test_the_command_prints_and_stores_its_sections(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(command, "QUICK", TINY)
    monkeypatch.setattr(problems, "phantom_samples", None)  # these sections need no phantom
    assert command.main(["--out", str(tmp_path), "--only", "limits", "growth"]) == 0
    printed = capsys.readouterr().out
    assert "limits" in printed and "growth" in printed and "promises" in printed
    record = json.loads((tmp_path / "limits.json").read_text())
    assert record["section"] == "limits" and len(record["rows"]) == 6
    assert record["machine"]["cores"] and record["provenance"]["size"] == "quick"
    with (tmp_path / "growth.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 6
    assert (tmp_path / "promises.json").is_file()


def test_sections_of_the_same_commit_and_size_are_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(command, "QUICK", TINY)
    monkeypatch.setattr(command, "growth_rows", lambda *_: [{"along": "voxels", "voxels": 1}])
    assert command.main(["--out", str(tmp_path), "--only", "growth"]) == 0
    monkeypatch.setattr(command, "growth_rows", None)
    assert command.main(["--out", str(tmp_path), "--only", "growth", "--resume"]) == 0
    monkeypatch.setattr(command, "commit", lambda: "another")
    with pytest.raises(TypeError):
        command.main(["--out", str(tmp_path), "--only", "growth", "--resume"])


# whole brains ----------------------------------------------------------------------------------------------


def test_maps_of_participants_are_timed_beside_svm(monkeypatch):
    """Random maps where there are no real ones; the ratio is to the first method of the same process."""
    monkeypatch.setattr(whole_brain, "contrasts", lambda: None)
    monkeypatch.setattr(whole_brain, "_BOX", (8, 7, 6))
    rows = whole_brain._job(whole_brain.FIT, "2", "4", "300", "5", "svm", "vamp-sbg")
    assert [(row["name"], row["rows"], row["voxels"], row["folds"]) for row in rows] == [
        ("svm", 8, 300, 4), ("vamp-sbg", 8, 300, 4),
    ]  # fmt: skip
    ratio = rows[1]["seconds"] / rows[0]["seconds"]
    assert rows[0]["ratio"] == 1 and rows[1]["ratio"] == pytest.approx(ratio)
    (null,) = whole_brain._job(whole_brain.PERMUTE, "2", "4", "300", "5", "vamp-sbg")
    assert null["permutations"] == 5 and null["peak_mb"] > 0
    rows[1] |= {"rows": 16 * 4, "ratio": 1.3}
    found = {row["promise"]: row["met"] for row in target_rows({"whole_brain": rows})}
    assert found == {"16 maps of 59 people: vamp-sbg / svm": False}


# studies ---------------------------------------------------------------------------------------------------


@pytest.fixture
def small_phantoms(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(study_worker, "Phantom", lambda shape: Phantom(shape=shape, n_runs=4))


def test_studies_count_their_fits(small_phantoms):
    shape = ",".join(map(str, TINY.shape))
    (found,) = study_worker.permutations(shape, "2", "40")
    assert (found["what"], found["voxels"], found["fits"]) == (studies.FEW_VOXELS, 40, 8)
    (found,) = study_worker.pairs(shape)
    assert found["fits"] == 28 * 5 and found["rows"] == 4 * 8 * 9
    assert found["seconds"] > 0 and found["cpu_seconds"] > 0 and found["peak_mb"] > 0


def test_a_participant_in_a_standard_space_is_written_loaded_and_compared():
    read, load, compared = study_worker.standard_space("12,12,12", "300")
    assert [row["what"] for row in (read, load, compared)] == [
        studies.READ,
        studies.LOAD,
        studies.COMPARISON,
    ]
    assert load["rows"] == compared["rows"] == 216 and compared["fits"] == 13
    assert 300 <= compared["voxels"] <= 330  # those at the same distance from the middle belong together


def test_precision_compares_both_with_float32(problem):
    rows = precision_rows(problem, rounds=1)
    assert [(row["precision"], row["neighbours"]) for row in rows] == [
        ("float32", False),
        ("float64", False),
        ("float32", True),
        ("float64", True),
    ]
    assert rows[0]["ratio"] == 1.0 and rows[3]["ratio"] > 0


def test_the_picture_shows_what_was_measured(tmp_path):
    growth = [
        {"along": along, "voxels": n, "columns": n, "iteration_ms": 1.0 * n}
        for along in ("voxels", "columns")
        for n in (1, 10)
    ]
    peers_measured = [{"name": name, "seconds": 1.0} for name in (contenders.OURS, contenders.SKGLM)]
    tests = [{"what": studies.PERMUTATIONS, "voxels": 10, "fits": 24, "seconds": 3.0}]
    found = {"growth": growth, "peers": peers_measured, "studies": tests}
    assert [path.suffix for path in draw(found, tmp_path / "benchmarks")] == [".png", ".pdf"]
    assert draw({"growth": growth}, tmp_path / "nothing") == []


def test_unknown_sections_are_refused(capsys):
    with pytest.raises(SystemExit):
        command.main(["--only", "nothing"])
    assert "invalid choice: 'nothing'" in capsys.readouterr().err
