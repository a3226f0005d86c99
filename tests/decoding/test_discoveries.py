import numpy as np
import pytest

from mvpa_gamp.decoding.discoveries import PlantedCheck, PlantedEffect, planted_check, select_at_fdr
from mvpa_gamp.methods import METHODS

GAMP = METHODS["gamp-bg-lr"]


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


def test_strong_planted_effects_are_found_and_the_rate_holds():
    X, y, runs = study(np.random.default_rng(2))
    before = X.copy()
    check = planted_check(GAMP, X, y, runs, n_planted=5, effects=(0.0, 0.6), n_repeats=8)
    np.testing.assert_array_equal(X, before)  # the user's X is left alone
    nothing, strong = check.effects
    assert nothing.size == 0 and nothing.power == 0 and nothing.false_rate == check.false_alarms
    assert strong.power > 0.6 and strong.false_rate <= 0.1
    assert check.worst is strong and check.holds and "holds here" in check.verdict
    assert check.verdict.count("nominal 5.0%") == 1


def test_the_real_effect_is_gone():
    """Only planted voxels are found, although eight others tell the real classes apart."""
    X, y, runs = study(np.random.default_rng(3))
    X[:, :8] += 1.0 * y[:, None]
    check = planted_check(GAMP, X, y, runs, n_planted=5, effects=(0.8,), n_repeats=6)
    assert check.effects[0].strict_rate < 0.1 and np.isnan(check.false_alarms)


def test_the_check_can_fail():
    """A method that is sure of voxels whatever the data: everything it selects is false."""

    class Sure:
        name = "sure"

        def fit_folds(self, X, y, train, runs):
            fits = GAMP.fit_folds(X, y, train, runs)
            object.__setattr__(fits, "inclusion", np.linspace(0, 1, X.shape[1])[:, None])
            return fits

    X, y, runs = study(np.random.default_rng(4), n_runs=6, rows=4, n_features=60)
    check = planted_check(Sure(), X, y, runs, n_planted=2, effects=(0.0, 0.5), n_repeats=3)
    assert not check.holds and check.false_alarms == 1
    assert "Do not rely" in check.verdict and "100% of checks still selected" in check.verdict


def test_a_neighbour_of_a_planted_voxel_is_false_only_strictly():
    rng = np.random.default_rng(5)
    X, y, runs = study(rng, n_runs=6, rows=6, n_features=30)
    twins = np.hstack([X, X + 0.3 * rng.standard_normal(X.shape).astype(np.float32)])

    class Pairs:
        name = "pairs"

        def fit_folds(self, X, y, train, runs):
            fits = GAMP.fit_folds(X, y, train, runs)
            shift = np.abs(y @ X)
            sure = shift >= np.sort(shift)[-2]
            object.__setattr__(fits, "inclusion", (sure | np.roll(sure, 30)).astype(float)[:, None])
            return fits

    check = planted_check(Pairs(), twins, y, runs, n_planted=2, effects=(3.0,), n_repeats=4)
    (effect,) = check.effects
    assert effect.power == 1 and effect.false_rate == 0 and effect.strict_rate > 0.3


def test_sizes_come_from_the_data_and_repeats_from_the_seed():
    X, y, runs = study(np.random.default_rng(6), n_features=40)
    first, again = (planted_check(GAMP, X, y, runs, n_planted=4, n_repeats=2, seed=3) for _ in range(2))
    assert first == again
    sizes = [effect.size for effect in first.effects]
    assert sizes == pytest.approx(np.array([0, 0.5, 1, 2]) * sizes[2])
    assert 0.5 < sizes[2] < 0.9  # 0.6 was put into eight voxels


def test_a_rate_above_the_nominal_one_within_its_error_is_called_open():
    effect = PlantedEffect(0.3, 0.08, 0.03, 0.08, 0.03, 0.5, 0.1, 4.0)
    check = PlantedCheck("any", 0.05, 5, 10, 0.5, 0, (effect,))
    assert check.holds and "not contradicted here, but not confirmed" in check.verdict
    unseen = effect._replace(false_rate=0.0, n_selected=0.0)
    assert "could not be checked" in PlantedCheck("any", 0.05, 5, 10, 0.5, 0, (unseen,)).verdict


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_planted": 0}, "1 to 20 planted voxels"),
        ({"n_repeats": 1}, "at least 2 repeats"),
        ({"effects": (0.0,)}, "one of them above 0"),
        ({"fdr": 2}, "between 0 and 1"),
        ({"X": np.ones((3, 2))}, "one row per label"),
        ({"method": METHODS["cdn"]}, r"'cdn' does not have.*gamp-bg-lr"),
    ],
)
def test_check_errors_say_what_to_do(change, words):
    X, y, runs = study(np.random.default_rng(7), n_runs=3, rows=3, n_features=20)
    given = {"method": GAMP, "X": X, "y": y, "runs": runs, "n_repeats": 2, "n_planted": 3, **change}
    with pytest.raises(ValueError, match=words):
        planted_check(**given)
