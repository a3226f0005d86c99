from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import binom

from mvpa_gamp.decoding import (
    Calibration,
    PlantedCheck,
    PlantedEffect,
    calibrate,
    planted_check,
    select_at_fdr,
)
from mvpa_gamp.decoding.discoveries import NO_EFFECT_REPEATS, Planting
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.methods import METHODS

pytestmark = pytest.mark.whole

PLANTING = ("n_planted", "effects", "n_repeats", "n_without", "resemblance")
GAMP = METHODS["gamp-bg-lr"]


def too_weak(n_features):
    """A calibration whose permuted labels say nothing: everything observed is selected."""
    return Calibration("any", np.zeros(n_features), np.zeros((n_features, 99)), 0.01, 0)


def study(rng, n_runs=8, rows=10, n_features=120):
    runs = np.repeat(np.arange(n_runs), 2 * rows)
    y = np.tile(np.repeat([1.0, -1.0], rows), n_runs)
    X = rng.standard_normal((y.size, n_features)).astype(np.float32)
    X[:, :8] += 0.6 * y[:, None]
    return X, y, runs


# --- selection ------------------------------------------------------------------------------------------


def test_selection_is_the_largest_set_within_the_rate():
    inclusion = np.array([0.2, 0.99, 0.9, 1.0, 0.6])
    # means of 1 - pi in order of pi: 0, 0.005, 0.037, 0.1275, 0.262
    np.testing.assert_array_equal(select_at_fdr(inclusion, 0.04), [False, True, True, True, False])
    np.testing.assert_array_equal(select_at_fdr(inclusion, 0.13), [False, True, True, True, True])
    assert select_at_fdr(inclusion, 0.3).all()
    assert not select_at_fdr([0.9, 0.5], 0.05).any()


@pytest.mark.parametrize("fdr", [0.01, 0.05, 0.2])
def test_no_larger_set_keeps_the_rate(fdr):
    inclusion = np.random.default_rng(0).beta(0.3, 0.3, 400)
    selected = select_at_fdr(inclusion, fdr)
    k = np.count_nonzero(selected)
    assert 0 < k < 400 and np.mean(1 - inclusion[selected]) <= fdr
    assert np.mean(1 - np.sort(inclusion)[::-1][: k + 1]) > fdr
    assert inclusion[selected].min() >= inclusion[~selected].max()


def test_calibrated_probabilities_give_the_promised_rate():
    rng = np.random.default_rng(1)
    proportions = []
    for _ in range(200):
        inclusion = rng.beta(0.3, 0.6, 500)
        real = rng.random(500) < inclusion  # calibrated by construction
        selected = select_at_fdr(inclusion, 0.1)
        proportions.append(np.mean(~real[selected]))
    error = np.std(proportions) / np.sqrt(200)
    assert (
        abs(np.mean(proportions) - 0.1) < 3 * error + 0.001
    )  # a set just below 0.1 falls short by up to 1/k


@pytest.mark.parametrize(
    ("inclusion", "fdr", "words"),
    [
        (np.ones((3, 2)), 0.05, "one column of FoldFits.inclusion"),
        ([0.5, np.nan], 0.05, r"in \[0, 1\]"),
        ([0.5, 1.2], 0.05, r"in \[0, 1\]"),
        ([0.5], 0.0, "between 0 and 1, got 0"),
        ([0.5], 5, "between 0 and 1, got 5"),
    ],
)
def test_selection_errors_say_what_to_do(inclusion, fdr, words):
    with pytest.raises(ValueError, match=words):
        select_at_fdr(inclusion, fdr)


# --- planted check --------------------------------------------------------------------------------------


def test_strong_planted_effects_are_found():
    X, y, runs = study(np.random.default_rng(2))
    before = X.copy()
    check = planted_check(
        GAMP, X, y, runs, planting=Planting(n_planted=5, effects=(0.0, 0.6), n_repeats=8, n_without=40)
    )
    np.testing.assert_array_equal(X, before)  # the user's X is left alone
    nothing, strong = check.effects
    assert nothing.size == 0 and nothing.power == 0 and nothing.false_rate == check.false_alarms
    assert strong.power > 0.6 and strong.false_rate <= 0.1
    assert nothing.n_repeats == 35 and strong.n_repeats == 8  # half of 70 ways to swap 4 of 8 runs
    assert check.worst is strong and not check.contradicted
    assert ("confirmed by simulation" in check.verdict) == check.holds
    assert f"Planted features found: {100 * strong.power:.0f} % at 0.6 standard deviations." in check.verdict


def test_the_real_effect_is_gone():
    """Only planted voxels are found, although eight others tell the real classes apart."""
    X, y, runs = study(np.random.default_rng(3))
    X[:, :8] += 1.0 * y[:, None]
    check = planted_check(
        GAMP,
        X,
        y,
        runs,
        calibration=calibrate(GAMP, X, y, runs, n=19),
        planting=Planting(n_planted=5, effects=(0.8,), n_repeats=6),
    )
    assert check.effects[0].strict_rate < 0.1 and np.isnan(check.false_alarms)


def test_the_check_can_fail():
    """Permuted labels that say nothing, as a broken null does: whatever is seen passes."""
    X, y, runs = study(np.random.default_rng(4), n_runs=6, rows=4, n_features=60)
    check = planted_check(
        GAMP,
        X,
        y,
        runs,
        calibration=too_weak(60),
        planting=Planting(n_planted=2, effects=(0.0, 0.5), n_repeats=3, n_without=5),
    )
    assert not check.holds and check.contradicted and check.false_alarms == 1
    for words in (
        "Do not rely",
        "without any effect, 100.0 % of",
        "features one by one, with Benjamini-Hochberg",
    ):
        assert words in check.verdict


def test_a_neighbour_of_a_planted_voxel_is_false_only_strictly():
    rng = np.random.default_rng(5)
    X, y, runs = study(rng, n_runs=6, rows=6, n_features=30)
    twins = np.hstack([X, X + 0.3 * rng.standard_normal(X.shape).astype(np.float32)])

    class Pairs:
        name = "pairs"
        has_posterior, uses_connectivity = True, False

        def fit_folds(self, X, y, train, runs):
            fits = GAMP.fit_folds(X, y, train, runs)
            shift = np.abs(y[:, 0] @ X)
            sure = shift >= np.sort(shift)[-2]
            object.__setattr__(fits, "inclusion", (sure | np.roll(sure, 30)).astype(float)[:, None])
            return fits

    check = planted_check(
        Pairs(),
        twins,
        y,
        runs,
        calibration=too_weak(60),
        planting=Planting(n_planted=2, effects=(3.0,), n_repeats=4),
    )
    (effect,) = check.effects
    assert effect.power == 1 and effect.false_rate == 0 and effect.strict_rate > 0.3


def test_sizes_come_from_the_data_and_repeats_from_the_seed():
    X, y, runs = study(np.random.default_rng(6), n_features=40)
    planting, scheme = Planting(n_planted=4, n_repeats=2, n_without=5), Scheme(seed=3)
    first, again = (
        planted_check(
            GAMP, X, y, runs, scheme, planting, calibration=calibrate(GAMP, X, y, runs, scheme, n=19)
        )
        for _ in range(2)
    )
    assert first == again
    sizes = [effect.size for effect in first.effects]
    assert sizes == pytest.approx(np.array([0, 0.5, 1, 2]) * sizes[2])
    assert 0.5 < sizes[2] < 0.9  # 0.6 was put into eight voxels


NOTHING = PlantedEffect(0.0, 0.02, 0.01, 0.02, 0.01, 0.0, 0.0, 0.1, 191)
FOUND = PlantedEffect(0.3, 0.03, 0.02, 0.03, 0.02, 0.5, 0.1, 4.0, 10)


def verdict_of(*effects):
    check = PlantedCheck("any", 0.05, 5, 10, 0.5, 0, effects, of="voxel")
    assert ("confirmed by simulation" in check.verdict) == check.holds
    assert not (check.holds and check.contradicted)
    return check.verdict


def test_the_verdict_holds_only_when_both_checks_do():
    verdict = verdict_of(NOTHING, FOUND)
    for words in (
        "confirmed by simulation",
        "2.0 % of 191 simulated data sets selected a voxel (standard error 1.0 %, nominal 5.0 %)",
        "3.0 % of the voxels selected in 10 simulated data sets were false (standard error 2.0 %",
        "Planted voxels found: 50 % at 0.3 standard deviations.",
    ):
        assert words in verdict


@pytest.mark.parametrize(
    ("nothing", "found", "words"),
    [
        ({"false_rate": 0.30}, {}, "Do not rely on"),
        ({}, {"false_rate": 0.2}, "Do not rely on"),
        ({"false_rate": 0.06}, {}, "not contradicted here, but not confirmed"),
        ({}, {"false_rate": 0.08, "false_rate_se": 0.03}, "not contradicted here, but not confirmed"),
        ({"n_repeats": 100}, {}, "nominal 5.0 %, too few to distinguish it from 10.0 %"),
        ({}, {"false_rate": 0.0, "n_selected": 0.0, "power": 0.0}, "could not be checked"),
        ({"false_rate": 0.3}, {"n_selected": 0.0, "false_rate": 0.0}, "Do not rely on"),
    ],
)
def test_no_other_verdict_says_that_the_rate_holds(nothing, found, words):
    assert words in verdict_of(NOTHING._replace(**nothing), FOUND._replace(**found))


def test_a_check_that_was_not_made_confirms_nothing():
    verdict = verdict_of(FOUND)
    assert "not confirmed" in verdict and "checks without an effect were not made" in verdict


def test_falling_power_is_said():
    strong = FOUND._replace(size=2.0, power=0.1)
    assert "50 % at 0.3, 10 % at 2 standard deviations. Power falls" in verdict_of(NOTHING, strong, FOUND)


def test_repeats_tell_ten_percent_from_five():
    """The constant's reason: power 0.8 of a one-sided binomial test at 5 %."""
    fewest = int(binom.isf(0.05, NO_EFFECT_REPEATS, 0.05)) + 1
    assert binom.sf(fewest - 1, NO_EFFECT_REPEATS, 0.10) >= 0.8
    at_fewest = NOTHING._replace(false_rate=fewest / 191)
    assert "Do not rely" in verdict_of(at_fewest, FOUND)
    assert "Do not rely" not in verdict_of(NOTHING._replace(false_rate=(fewest - 1) / 191), FOUND)


def test_checks_without_an_effect_are_one_solve_of_distinct_labels():
    class Spy:
        name, has_posterior, uses_connectivity = "spy", True, False
        seen: ClassVar[list] = []

        def fit_folds(self, X, y, train, runs):
            self.seen.append(y)
            return GAMP.fit_folds(X, y, train, runs)

    X, y, runs = study(np.random.default_rng(8), n_runs=4, rows=4, n_features=30)
    check = planted_check(
        Spy(), X, y, runs, planting=Planting(n_planted=2, effects=(0.0, 1.0), n_repeats=2, n_without=50)
    )
    (calibrated, together, *single) = Spy.seen
    assert calibrated.shape[1] == 8  # all labellings of four runs, opposites once
    assert len(single) == 2 and together.shape[1] == check.effects[0].n_repeats == 3  # half of 6
    assert (together.T @ y == 0).all() and len(np.unique(together, axis=1).T) == together.shape[1]


def test_the_calibration_given_is_the_one_that_is_checked():
    X, y, runs = study(np.random.default_rng(9), n_runs=6, rows=4, n_features=30)
    calibration = calibrate(GAMP, X, y, runs, n=9)
    blind = replace(calibration, null=np.full((30, 9), 2.0))  # permuted labels always look better
    check = planted_check(
        GAMP, X, y, runs, calibration=blind, planting=Planting(n_planted=2, effects=(0.0, 2.0), n_repeats=2)
    )
    assert not check.selects and check.false_alarms == 0 and "could not be checked" in check.verdict


def test_samples_are_exchanged_as_in_the_calibration():
    """Sorted samples without runs have two blocks, whose exchange changes nothing: one data set."""
    rng = np.random.default_rng(10)
    X, y, alone = rng.standard_normal((40, 30)), np.repeat([1, -1], 20), np.zeros(40)
    calibration = calibrate(GAMP, X, y, alone, n=49, scheme=Scheme(exchange="sample"))
    planting = Planting(n_planted=2, effects=(0.0, 1.0), n_repeats=2, n_without=30)

    def check(calibration=None, **how):
        return planted_check(GAMP, X, y, alone, Scheme(**how), planting, calibration=calibration)

    taken, said = check(calibration), check(calibration, exchange="sample")
    assert taken == said and taken.nothing.n_repeats == 30
    assert check(exchange="sample").nothing.n_repeats == 30
    assert check(blocks=np.arange(40)).nothing.n_repeats == 30
    blocks = check(replace(calibration, exchange="block"))
    assert blocks.nothing.n_repeats == 1


def test_the_verdict_has_the_word_for_a_feature():
    for effects in (
        (NOTHING, FOUND),
        (NOTHING, FOUND._replace(false_rate=0.4)),
        (NOTHING, FOUND._replace(n_selected=0.0)),
    ):
        check = PlantedCheck("any", 0.05, 5, 10, 0.5, 0, effects)
        assert "feature" in check.verdict and "voxel" not in check.verdict
        assert replace(check, of="gene").verdict.count("gene") == check.verdict.count("feature")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_planted": 0}, "1 to 20 planted features"),
        ({"n_repeats": 1}, "at least 2 repeats"),
        ({"effects": (0.0,)}, "one of them above 0"),
        ({"fdr": 2}, "between 0 and 1"),
        ({"X": np.ones((3, 2))}, "run of each of the 3 rows"),
        ({"method": METHODS["cdn"]}, r"'cdn' does not have.*vamp-sbg"),
    ],
)
def test_check_errors_say_what_to_do(change, words):
    X, y, runs = study(np.random.default_rng(7), n_runs=3, rows=3, n_features=20)
    planting = {"n_planted": 3, "n_repeats": 2} | {n: v for n, v in change.items() if n in PLANTING}
    given = {"method": GAMP, "X": X, "y": y, "runs": runs} | change
    given = {name: value for name, value in given.items() if name not in PLANTING}
    with pytest.raises(ValueError, match=words):
        planted_check(**given, planting=Planting(**planting))
