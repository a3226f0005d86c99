import numpy as np
import pytest
from scipy import sparse
from scipy.stats import binomtest

from mvpa_gamp.decoding import blocks_of_volumes, carries_information, haufe_pattern, make_tasks
from mvpa_gamp.decoding.exchange import find_exchange, permuted_labels

pytestmark = pytest.mark.whole


def noise(rng, n_runs=10, rows=6, n_features=80):
    """One block of each class per run; noise is correlated in time and between neighbours."""
    y = np.concatenate([np.repeat(rng.permutation([1, -1]), rows) for _ in range(n_runs)])
    runs = np.repeat(np.arange(n_runs), 2 * rows)
    e = rng.standard_normal((y.size, n_features + 2))
    e = e[:, :-2] + e[:, 1:-1] + e[:, 2:]
    for row in range(1, y.size):
        e[row] = 0.9 * e[row - 1] + np.sqrt(1 - 0.9**2) * e[row]
    return e / e.std(axis=0), y, runs


def false_share(n_sets, n=59, effect=0.0, **options):
    """Share of data sets in which a voxel without an effect is selected, and the share of found effects."""
    false, found = [], []
    for k in range(n_sets):
        X, y, runs = noise(np.random.default_rng([2, k]))
        X[:, :8] += effect * y[:, None]
        selected = carries_information(X, y, runs, n, seed=k, **options).selected()
        false.append(selected[8 if effect else 0 :].any())
        found.append(selected[:8].mean())
    return int(np.sum(false)), float(np.mean(found))


def within_runs(values, runs):
    return np.stack([v - values[runs == r].mean(axis=0) for v, r in zip(values, runs, strict=True)])


def correlations(X, labels, runs):
    """Labels by voxels, from numpy's own."""
    X, labels = within_runs(X, runs), within_runs(labels.astype(float), runs)
    return np.array([[np.corrcoef(x, label)[0, 1] for x in X.T] for label in labels.T])


def brute_force(strength, null):
    """Step-down p-values written out: for the k-th strongest voxel, the maximum over it and all weaker."""
    p, least = np.empty(strength.size), 0.0
    for voxel in np.argsort(-strength):
        weaker = strength <= strength[voxel]
        count = sum(row[weaker].max() >= strength[voxel] - 1e-6 for row in null)
        least = p[voxel] = max(least, (1 + count) / (1 + len(null)))
    return p


# --- p-values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_p_values_are_those_of_the_step_down_written_out(dtype):
    X, y, runs = noise(np.random.default_rng(0), n_features=15)
    X[:, :3] += 0.7 * y[:, None]
    found = carries_information(X.astype(dtype), y, runs, n=49, seed=4)
    observed = correlations(X, y[:, None], runs)[0]
    null = np.abs(correlations(X, permuted_labels(y, runs, 49, 4), runs))
    np.testing.assert_allclose(found.correlation, observed, atol=1e-6)
    np.testing.assert_allclose(found.pvalue, brute_force(np.abs(observed), null), rtol=1e-12)
    assert found.n == 49 and found.n_distinct == 2**10 and found.correlation.dtype == dtype


def test_few_label_vectors_are_enumerated():
    """Six runs have 64 label vectors: p-values are shares of them, whatever the seed."""
    X, y, runs = noise(np.random.default_rng(1), n_runs=6, n_features=15)
    X[:, 0] += 4 * y
    first, second = (carries_information(X, y, runs, n=63, seed=seed) for seed in (0, 1))
    np.testing.assert_array_equal(first.pvalue, second.pvalue)
    assert first.n == 63 and first.n_distinct == 64
    assert first.pvalue[0] == 2 / 64  # the observed labels and their opposite
    assert carries_information(X, y, runs, n=62).n == 62  # else they are drawn


def test_every_label_vector_is_met_once():
    y, runs = np.array([1, 1, -1, -1, 1, -1, -1]), np.array([0, 1, 0, 1, 1, 0, 1])
    moved = find_exchange(y, runs, "sample")
    every = moved.every()
    assert every.shape == (7, moved.n_distinct) == (7, 3 * 6)
    assert len(np.unique(every, axis=1).T) == moved.n_distinct
    for run in (0, 1):
        assert (every[runs == run].sum(axis=0) == y[runs == run].sum()).all()
    drawn = {tuple(column) for column in moved.draw(400, 0).T}
    assert drawn == {tuple(column) for column in every.T}


def test_chunks_change_nothing(monkeypatch):
    X, y, runs = noise(np.random.default_rng(2))
    whole = carries_information(X, y, runs, n=99)
    monkeypatch.setattr("mvpa_gamp.decoding.localisation._NUMBERS_AT_ONCE", 7 * 80)
    np.testing.assert_array_equal(carries_information(X, y, runs, n=99).pvalue, whole.pvalue)


def test_levels_of_runs_and_voxels_do_not_matter():
    X, y, runs = noise(np.random.default_rng(3))
    plain = carries_information(X, y, runs, n=99)
    moved = carries_information(50 + 3 * X + 10 * runs[:, None], y, runs, n=99)
    np.testing.assert_allclose(moved.correlation, plain.correlation, atol=1e-10)
    np.testing.assert_array_equal(moved.pvalue, plain.pvalue)


def test_constant_voxels_carry_nothing():
    X, y, runs = noise(np.random.default_rng(4))
    X[:, 0], X[:, 1] = 1e4 + 0.1, runs  # constant, and constant within runs
    found = carries_information(X.astype(np.float32), y, runs, n=39)
    assert (found.correlation[:2] == 0).all() and (found.pvalue[:2] == 1).all()


def test_it_is_haufes_pattern_of_the_labels():
    """With the labels as decision, the pattern is the correlation times the ratio of standard deviations."""
    X, y, runs = noise(np.random.default_rng(5))
    Xc, yc = within_runs(X, runs), within_runs(y[:, None].astype(float), runs)[:, 0]
    pattern = haufe_pattern(np.column_stack([yc, Xc]), np.eye(81)[0])[1:]
    np.testing.assert_allclose(
        carries_information(X, y, runs, n=9).correlation, pattern * yc.std() / Xc.std(axis=0), atol=1e-10
    )


# --- calibration ----------------------------------------------------------------------------------------


def test_false_voxels_are_as_rare_as_promised():
    """At most 7 % of 600 sets, where 5 % are promised; 16,000 sets had 4.9 % (standard error 0.2 %)."""
    false, _ = false_share(600)
    assert false <= 0.07 * 600


def test_exchanging_correlated_samples_singly_breaks_the_promise():
    """The check above can fail: here it does."""
    false, _ = false_share(n_sets=60, exchange="sample")
    assert binomtest(false, 60, 0.07, "greater").pvalue < 1e-6


def test_a_voxel_that_leaks_the_labels_is_found_in_noise():
    """So does it when labels reach X, as by a regressor left in the data."""
    false = 0
    for k in range(30):
        X, y, runs = noise(np.random.default_rng([3, k]))
        X[:, -1] += 2 * y
        false += carries_information(X, y, runs, n=59, seed=k).selected().any()
    assert binomtest(false, 30, 0.07, "greater").pvalue < 1e-6


def test_power_never_falls_and_other_voxels_stay_out():
    """Strong control: effects in eight voxels, however strong, make no other voxel pass."""
    n_sets, power = 60, []
    for effect in (0.3, 0.6, 1.2, 2.4, 4.0):
        false, found = false_share(n_sets, 99, effect)
        assert binomtest(false, n_sets, 0.05, "greater").pvalue > 0.01, effect
        power.append(found)
    assert (np.diff(power) >= 0).all() and power[0] < 0.5 and power[-1] > 0.99


def test_step_down_finds_weak_voxels_beside_strong_ones():
    """A single step compares all voxels with the maximum over all, which strong voxels raise."""
    step_down, single = [], []
    for k in range(30):
        X, y, runs = noise(np.random.default_rng([4, k]))
        X[:, :20] += 4.0 * y[:, None]
        X[:, 20:28] += 0.7 * y[:, None]
        step_down.append(carries_information(X, y, runs, n=99, seed=k).pvalue)
        null = np.abs(fast(X, permuted_labels(y, runs, 99, k), runs)).max(axis=1)
        single.append([(1 + (null >= u - 1e-6).sum()) / 100 for u in np.abs(fast(X, y[:, None], runs)[0])])
    step_down, single = np.array(step_down), np.array(single)
    assert (step_down <= single + 1e-12).all()
    assert (step_down[:, 20:28] <= 0.05).mean() > (single[:, 20:28] <= 0.05).mean() + 0.1


def fast(X, labels, runs):
    X, labels = within_runs(X, runs), within_runs(labels.astype(float), runs)
    return (labels / np.linalg.norm(labels, axis=0)).T @ (X / np.linalg.norm(X, axis=0))


def test_a_factor_shared_by_all_voxels_breaks_the_promise():
    """Why the decoder's accuracy is no part of the statistic: it lifts voxels without an effect."""
    false = 0
    for k in range(30):
        X, y, runs = noise(np.random.default_rng([5, k]))
        X[:, :8] += 4.0 * y[:, None]
        U = np.abs(fast(X, np.column_stack([y, permuted_labels(y, runs, 99, k)]), runs))
        U *= U.max(axis=1, keepdims=True)  # a stand-in for skill: how well the best voxel does
        false += (brute_force(U[0], U[1:])[8:] <= 0.05).any()
    assert binomtest(false, 30, 0.05, "greater").pvalue < 1e-3


# --- real data and refusals -----------------------------------------------------------------------------


@pytest.mark.parametrize("data", ["toy_study", "haxby_slice"])
def test_a_study_has_voxels_that_carry_information(data, request):
    X, shown, runs = request.getfixturevalue(data)
    (task,) = make_tasks(shown, [("cat", "scissors")])
    blocks = blocks_of_volumes(shown, runs, np.arange(runs.size))[task.rows]
    found = carries_information(X[task.rows], task.y, runs[task.rows], blocks=blocks)
    selected = found.selected()
    assert 2 < selected.sum() < 0.2 * selected.size and found.caution == ""
    if data == "toy_study":
        assert set(np.flatnonzero(selected)) <= {*range(0, 4), *range(10, 14)}
        assert (found.correlation[:3] > 0).all() and (found.correlation[10:13] < 0).all()


def test_too_few_label_vectors_are_said():
    X, y, runs = noise(np.random.default_rng(6), n_runs=4)
    found = carries_information(X, y, runs)
    assert "Only 16 label vectors" in found.caution and found.pvalue.min() >= 2 / 16


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"X": np.ones((3, 2))}, "the run of each of the 3 rows of X"),
        ({"y": np.ones(3)}, "a label for each of the 24 rows of X"),
        (
            {"runs": np.array([None, 1] * 12, dtype=object)},
            r"runs has missing labels \(None\) in 12 of 24 samples",
        ),
        ({"X": np.full((24, 5), 1e300)}, r"at most 1e\+15 in size, got 1e\+300"),
        ({"X": sparse.eye_array(24, 5, format="csr")}, "dense matrix"),
        ({"X": np.full((24, 5), np.inf)}, "must be finite"),
        ({"y": np.arange(24)}, r"y must be -1 or \+1 in every row, got 0, 1, 2, 3, 4, ...\. Make"),
        ({"runs": np.arange(24)}, "every run contains only one class"),
        ({"n": 0}, "at least 1 permutation"),
    ],
)
def test_refusals_say_what_to_do(change, words):
    X, y, runs = noise(np.random.default_rng(7), n_runs=2, n_features=5)
    with pytest.raises(ValueError, match=words):
        carries_information(**{"X": X, "y": y, "runs": runs, "n": 1, **change})
