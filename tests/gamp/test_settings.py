"""Defaults of the solver, and why they are what they are."""

from dataclasses import asdict

import numpy as np
import pytest

from mvpa_gamp.gamp import SolverSettings


def test_sum_product_stops_on_the_cavity_score_in_small_steps():
    run = SolverSettings().resolved()
    assert (run.stop, run.damping, run.patience) == ("cavity", 0.1, 10)


def test_max_sum_runs_to_its_fixed_point():
    run = SolverSettings(mode="max-sum").resolved()
    assert (run.stop, run.damping) == ("fixed-point", 0.5)
    assert run.tol < SolverSettings(stop="fixed-point").resolved().tol  # a support has to be exact


@pytest.mark.parametrize(("damping", "patience"), [(1.0, 3), (0.3, 3), (0.05, 20)])
def test_patience_grows_with_damping(damping, patience):
    assert SolverSettings(damping=damping).resolved().patience == patience


def test_what_was_given_stays():
    given = SolverSettings("sum-product", "fixed-point", 7, 0.1, 0.9, False, 4, "uniform", True)
    assert asdict(given.resolved()) == asdict(given)


def test_nothing_is_left_open():
    for given in (SolverSettings(), SolverSettings(mode="max-sum"), SolverSettings(stop="fixed-point")):
        run = given.resolved()
        assert None not in asdict(run).values()
        assert np.isfinite([run.tol, run.max_iter]).all()
        assert run.adaptive == (run.stop == "fixed-point")  # a cavity run never judges its steps
