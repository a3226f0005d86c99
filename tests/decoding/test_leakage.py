"""Each check finds what was planted, and leaves sound designs and data alone about as often as promised."""

import itertools

import numpy as np
import pytest

from mvpa_gamp.decoding.folds import Folds
from mvpa_gamp.decoding.leakage import Evidence, find_leakage
from mvpa_gamp.decoding.ties import agreement, order_findings, run_findings

CONDITIONS = ("face", "house", "cat")
PAIRS = list(itertools.combinations(CONDITIONS, 2))


def design(rng, n_runs=8, length=6, gap=4, n_voxels=40, conditions=CONDITIONS):
    """Blocks in random order with rest between them: rows with a little signal, labels, runs, places."""
    labels, runs, places, place = [], [], [], 0
    for run in range(n_runs):
        for name in rng.permutation(conditions):
            place += gap
            labels += [str(name)] * length
            runs += [run] * length
            places += range(place, place + length)
            place += length
    labels, runs, places = np.array(labels), np.array(runs), np.array(places)
    X = rng.normal(size=(len(labels), n_voxels)) + 0.5 * (labels == conditions[0])[:, None]
    return X, labels, runs, places


def checks(X, labels, runs, places, **more):
    pairs = more.pop("pairs", PAIRS)
    return {
        each.check: each.sentence
        for each in find_leakage(Evidence(X, labels, runs, pairs, places, **more)).findings
    }


def test_a_sound_design_has_no_finding_and_all_checks_are_made():
    X, labels, runs, places = design(np.random.default_rng(0))
    given = Evidence(X, labels, runs, PAIRS, places, t_r=2.5, lag=2, around=X[:, :25])
    found = find_leakage(given)
    assert found.findings == ()
    assert found.checks == ("blocks", "repeats", "runs", "order", "lag", "mask")
    assert found.as_json() == {"checked": list(found.checks), "findings": []}


def test_a_block_cut_by_the_border_of_two_runs():
    X, labels, runs, places = design(np.random.default_rng(1))
    border = np.flatnonzero(np.diff(runs))[0]
    runs = runs.copy()
    runs[border - 2 : border + 1] += 1  # three volumes of the last block belong to the next run
    said = checks(X, labels, runs, places)["blocks"]
    assert said.startswith(
        f"1 block of one condition goes on across the boundary between two runs: {labels[border]}"
    )
    assert "correct the run numbers" in said


def test_runs_that_happen_to_meet_in_one_condition_are_no_cut_block():
    labels = np.tile(np.repeat(["face", "house", "house", "face"], 5), 4)  # no rest, no gap
    runs, places = np.repeat(np.arange(8), 10), np.arange(80)
    X = np.random.default_rng(2).normal(size=(80, 30))
    assert "blocks" not in checks(X, labels, runs, places, pairs=[("face", "house")])


def smooth_series(rng, n, n_voxels, memory=0.8):
    """Volumes that resemble the one before."""
    X = rng.normal(size=(n, n_voxels))
    for row in range(1, n):
        X[row] = memory * X[row - 1] + np.sqrt(1 - memory**2) * X[row]
    return X


def test_groups_that_cut_through_a_scan_are_seen_in_the_rows():
    rng = np.random.default_rng(3)
    labels, places = np.tile(np.repeat(["face", "house"], 6), 10), np.arange(120)
    groups = np.tile([0, 1, 2], 40)
    said = checks(
        smooth_series(rng, 120, 60), labels, groups, places, pairs=[("face", "house")], word="group"
    )
    assert "cut through blocks of one scan" in said["blocks"]
    independent = rng.normal(size=(120, 60))  # maps of trials, sorted by class: nothing to say
    assert not checks(independent, labels, groups, places, pairs=[("face", "house")])


def test_blocks_split_by_given_folds():
    X, labels, runs, places = design(np.random.default_rng(4))
    tested = (np.arange(len(runs))[:, None] % 2) == np.arange(2)
    said = checks(X, labels, runs, places, folds=Folds(~tested, tested, np.arange(2)))
    assert said["folds"].startswith("24 of 24 blocks are split over folds: fold 1")
    tested = (runs[:, None] % 2) == np.arange(2)
    assert "folds" not in checks(X, labels, runs, places, folds=Folds(~tested, tested, np.arange(2)))


@pytest.mark.parametrize("copy", ["equal", "nearly equal", "raw"])
def test_volumes_that_occur_in_two_runs(copy):
    rng = np.random.default_rng(5)
    X, labels, runs, places = design(rng, n_voxels=3000)
    prints = np.arange(len(X), dtype=np.uint64)
    if copy == "raw":
        prints[60] = prints[3]
    else:
        X[60] = X[3] * 2 + 1 + (rng.normal(0, 0.01, 3000) if copy == "nearly equal" else 0)
    said = checks(X, labels, runs, places, fingerprints=prints)["repeats"]
    assert f"2 of {len(X)} volumes occur in more than one run" in said
    assert f"volume {places[3] + 1} in run 0 and volume {places[60] + 1} in run {runs[60]}" in said
    assert "repeats" not in checks(X[:, ::2] + rng.normal(size=(len(X), 1500)), labels, runs, places)


def test_one_order_in_all_runs():
    rng = np.random.default_rng(6)
    X, labels, runs, places = design(rng, n_runs=4)
    order = np.concatenate(
        [np.flatnonzero(runs == run)[np.argsort(labels[runs == run], kind="stable")] for run in range(4)]
    )
    said = checks(X, labels[order], runs, places)["order"]
    assert "face before house in all 4 runs" in said and "cat" in said
    assert "randomise the order" in said


def test_agreement_is_exact_against_all_orders():
    """Two and three blocks in two runs: every order once, by hand."""
    orders = set(itertools.permutations("aabbb"))
    counts = [sum(x == "a" and y == "b" for x, y in itertools.combinations(order, 2)) for order in orders]
    totals = np.add.outer(counts, counts).ravel()
    labels, runs = np.array(list("aabbb" + "ababb")), np.repeat([0, 1], 5)
    share, p, n_runs = agreement(labels, runs, "a", "b")
    assert (share, n_runs) == (11 / 12, 2)
    assert p == pytest.approx(np.mean(np.abs(totals - 6) >= 5))


@pytest.mark.parametrize(
    ("n_conditions", "n_runs", "n_blocks"), [(2, 6, 1), (2, 12, 1), (6, 6, 1), (3, 8, 3)]
)
def test_few_random_orders_are_told(n_conditions, n_runs, n_blocks):
    """At most 5 % by construction; 150 designs stay below 9 % (three standard errors more)."""
    rng, names = np.random.default_rng(7), np.array([f"c{k}" for k in range(n_conditions)])
    pairs, runs = (
        list(itertools.combinations(names, 2)),
        np.repeat(np.arange(n_runs), n_conditions * n_blocks),
    )
    told = [
        bool(
            order_findings(
                np.concatenate([rng.permutation(np.repeat(names, n_blocks)) for _ in range(n_runs)]),
                runs,
                pairs,
            )
        )
        for _ in range(150)
    ]
    assert np.mean(told) < 0.09


def test_conditions_in_different_runs_and_sessions():
    runs = np.repeat(np.arange(8), 4)
    apart = np.where(runs % 2, "face", "house")
    pair = [("face", "house")]
    assert "different runs: face and house" in run_findings(apart, runs, pair, None, "run")[0]
    sessions = np.where(runs < 4, "01", "02")
    mostly = np.where(runs < 4, "face", "house")
    assert "different sessions: face and house" in run_findings(mostly, runs, pair, sessions, "run")[0]
    one_each = np.repeat(["face", "house"], 6)
    said = run_findings(one_each, np.arange(12), pair, None, "run")
    assert "different parts of the experiment" in said[0]
    rng = np.random.default_rng(8)
    mixed = [rng.permutation(np.repeat(["face", "house"], 16)) for _ in range(100)]
    assert sum(bool(run_findings(each, runs, pair, sessions, "run")) for each in mixed) <= 4


@pytest.mark.parametrize(
    ("gap", "lag", "word"),
    [
        (0, 0, "previous"),
        (0, 2, ""),
        (4, 0, ""),
        (0, 4, "next"),
        (4, 5, "is gone after 10 s"),
        (1, 0, "previous"),
    ],
)
def test_labels_that_hold_a_neighbours_response(gap, lag, word):
    """TR 2.5 s: two volumes of delay, so without gap and lag two of six are the previous block's."""
    X, labels, runs, places = design(np.random.default_rng(9), gap=gap)
    said = checks(X, labels, runs, places, t_r=2.5, lag=lag).get("lag", "")
    assert (word in said) if word else not said
    if (gap, lag) == (0, 0):
        blocks = len(labels) // 6
        assert said.startswith(f"{2 * (blocks - 8)} of {len(labels)} labelled volumes")


def test_a_mask_that_the_labels_chose():
    rng = np.random.default_rng(10)
    X, labels, runs, places = design(rng, n_voxels=600)
    X = rng.normal(size=X.shape)  # no signal at all
    effect = np.abs(X[labels == "face"].mean(axis=0) - X[labels == "house"].mean(axis=0))
    chosen = effect > np.sort(effect)[-60]
    said = checks(X[:, chosen], labels, runs, places, around=X[:, ~chosen])["mask"]
    assert "the difference between face and house is larger inside" in said and "other runs" in said
    half = runs < 4
    effect = np.abs(X[half & (labels == "face")].mean(axis=0) - X[half & (labels == "house")].mean(axis=0))
    other = effect > np.sort(effect)[-60]  # a mask from other runs is sound
    rest = ~half
    assert not checks(X[rest][:, other], labels[rest], runs[rest], places[rest], around=X[rest][:, ~other])
