"""The phase plane of state evolution, on a small grid."""

import csv
import json

import pytest

from pipelines.command import Options
from pipelines.state_evolution_phase_plane import FULL, NAME, QUICK, Plan, run

SMALL = Plan(n_features=256, n_test=256, n_designs=2, n_columns=8, ratios=(0.2, 0.5, 0.8))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("plane")
    return out, run(Options(full=False, seed=0, out=out), SMALL)


def test_files_are_there(results):
    out, record = results
    assert sorted(path.name for path in out.iterdir()) == [
        f"{NAME}.{s}" for s in ("csv", "json", "pdf", "png")
    ]
    assert json.loads((out / f"{NAME}.json").read_text()) == json.loads(json.dumps(record))
    assert record["provenance"]["command"] == f"python -m pipelines.{NAME} --quick --seed 0"


def test_no_point_has_more_features_than_samples(results):
    out, record = results
    with (out / f"{NAME}.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == record["points"] == 6
    assert all(float(row["K/N"]) <= float(row["M/N"]) + 1e-3 for row in rows)


def test_averages_agree_with_predictions(results):
    _, record = results
    assert record["predictions_converged"] == 6
    assert record["fits_converged"] >= 0.95 * record["fits"]
    # 16 fits of 256 features: a standard error is about 0.01 of the error rate and 0.3 dB
    assert record["error_rate_gap_largest"] < 0.04
    assert record["mse_db_gap_largest"] < 1.0


def test_same_seed_same_table(results, tmp_path):
    out, _ = results
    run(Options(full=False, seed=0, out=tmp_path), SMALL)
    for suffix in ("csv", "png", "pdf"):
        assert (tmp_path / f"{NAME}.{suffix}").read_bytes() == (out / f"{NAME}.{suffix}").read_bytes()


def test_sizes_are_those_of_the_paper():
    assert QUICK.n_features == FULL.n_features == 1024
    assert FULL.n_designs * FULL.n_columns == 1000
