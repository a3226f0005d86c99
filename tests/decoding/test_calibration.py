"""Selection at a false-discovery rate calibrated by permuted labels: counting, exactness, power, refusals."""

import nibabel
import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from scipy.stats import binom

from mvpa_gamp import GAMPClassifier
from mvpa_gamp.decoding import Calibration, calibrate, fdr_refusal, select_at_fdr
from mvpa_gamp.decoding import calibration as module
from mvpa_gamp.decoding.calibration import largest, voxel_strengths
from mvpa_gamp.decoding.exchange import permuted_labels
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.imaging.spaces import voxel_connectivity
from mvpa_gamp.methods import METHODS

SPATIAL, PLAIN = METHODS["gamp-sbg-lr"], METHODS["gamp-bg-lr"]


def by_hand(strengths, fdr):
    """The selection and its p-value for the first column, threshold by threshold."""

    def rates(column):
        own = strengths[:, column]
        return {t: (strengths >= t).sum() / strengths.shape[1] / (own >= t).sum() for t in own if t > 0}

    best = np.array([min(rates(k).values(), default=np.inf) for k in range(strengths.shape[1])])
    pvalue = np.mean(best <= best[0] + 1e-9)
    allowed = [t for t, rate in rates(0).items() if rate <= fdr]
    if pvalue > fdr or not allowed:
        return np.zeros(len(strengths), dtype=bool), pvalue
    return strengths[:, 0] >= min(allowed), pvalue


@pytest.mark.parametrize("digits", [1, 6])  # with ties and without
@pytest.mark.parametrize("effect", [0.0, 3.0])
def test_sets_are_judged_as_by_hand(digits, effect):
    rng = np.random.default_rng(digits)
    for _ in range(20):
        strengths = np.round(rng.exponential(size=(40, 20)), digits)
        strengths[:6, 0] += effect
        found = Calibration("any", strengths[:, 0], largest(strengths[:, 1:]), 0.05, 0).judge(
            strengths[:, 0], 0.2
        )
        selected, pvalue = by_hand(strengths, 0.2)
        assert found.pvalue == pytest.approx(pvalue)
        np.testing.assert_array_equal(found.selected, selected)


def test_maps_that_are_cut_off_change_nothing_of_a_sparse_selection(monkeypatch):
    strengths = np.random.default_rng(0).exponential(size=(300, 40))
    strengths[:8, 0] += 8
    whole = Calibration("any", strengths[:, 0], largest(strengths[:, 1:]), 0.05, 0).judge(
        strengths[:, 0], 0.1
    )
    monkeypatch.setattr(module, "_MOST_VOXELS", 60)
    cut = Calibration("any", strengths[:, 0], largest(strengths[:, 1:]), 0.05, 0).judge(strengths[:, 0], 0.1)
    assert cut.selected.sum() >= 8 and cut.pvalue == whole.pvalue and cut.estimate == whole.estimate
    np.testing.assert_array_equal(cut.selected, whole.selected)


def clumps(rng, n_maps):
    """Maps with clumps of 1, 3, 9, 27 and 81 voxels, each in one map of 20, smaller ones stronger."""
    sizes = [1, 3, 9, 27, 81]
    height = np.repeat(np.arange(5, 0, -1), sizes)
    there = np.repeat(rng.random((5, n_maps)) < 0.05, sizes, axis=0)
    return (height[:, None] + rng.random(there.shape)) * there


def test_without_an_effect_no_more_than_the_rate_select_anything():
    """Exact for exchangeable maps. Without the p-value, searching all thresholds finds a set too often."""
    rng = np.random.default_rng(1)
    gated = searched = 0
    for _ in range(200):
        maps = clumps(rng, 100)
        found = Calibration("any", maps[:, 0], largest(maps[:, 1:]), 0.05, 0)
        gated += found.judge(maps[:, 0], 0.1).selected.any()
        own = np.sort(maps[:, 0])[::-1][:, None]
        rates = (maps[None] >= own[:, :, None]).sum(axis=(1, 2)) / 100 / np.arange(1, len(own) + 1)
        searched += rates[own[:, 0] > 0].min(initial=1) <= 0.1
    assert binom.sf(gated - 1, 200, 0.1) > 0.01
    assert binom.sf(searched - 1, 200, 0.1) < 0.01


@pytest.fixture(scope="module")
def slab():
    """Smooth noise on an 8 x 8 grid: neighbours and successive volumes are correlated, as in fMRI."""
    runs, y = np.repeat(np.arange(10), 8), np.tile(np.repeat([1, -1], 4), 10)
    rng = np.random.default_rng(3)
    noise = gaussian_filter(rng.standard_normal((2, 80, 8, 8)), (0, 1.0, 0.8, 0.8))
    X = noise.reshape(2, 80, 64).astype(np.float32)
    graph = voxel_connectivity(nibabel.Nifti1Image(np.ones((8, 8, 1), dtype=np.uint8), np.eye(4)))
    return X / X.std(), y, runs, graph


def test_smooth_noise_selects_rarely_and_the_model_s_own_rate_fails(slab):
    """Permuted labels of one X are the data sets: each is judged by 60 others."""
    X, y, runs, graph = slab
    false, promised, n_checks = 0, 0, 0
    for k in range(2):
        labels = permuted_labels(y, runs, 100, seed=k)
        strengths = voxel_strengths(SPATIAL, X[k], labels, runs, graph)
        first = labels[:, :40].astype(float)
        fits = SPATIAL.fit_folds(X[k], first, np.ones(first.shape, bool), runs, connectivity=graph)
        null = largest(strengths[:, 40:])
        for column in range(40):
            n_checks += 1
            found = Calibration("any", strengths[:, column], null, 0.01, 0)
            false += found.judge(strengths[:, column], 0.05).selected.any()
            promised += select_at_fdr(fits.inclusion[:, column], 0.05).any()
    assert binom.sf(false - 1, n_checks, 0.05) > 0.01
    assert binom.sf(promised - 1, n_checks, 0.05) < 1e-4  # the counter-test


@pytest.mark.parametrize("size", [1.0, 4.0])
@pytest.mark.parametrize("method", [SPATIAL, PLAIN], ids=lambda method: method.name)
def test_strong_effects_are_found_however_strong(slab, method, size):
    X, y, runs, graph = slab
    planted = [9, 10, 17, 18, 45]
    data = X[0].copy()
    data[:, planted] += size * y[:, None]
    found = calibrate(method, data, y, runs, n=99, scheme=Scheme(connectivity=graph)).select(0.05, of="voxel")
    assert found.selected[planted].mean() >= 0.8 and found.selected.sum() <= 7
    assert found.estimate <= 0.05 and found.pvalue <= 0.05 and found.n == 99
    rate = f"{100 * found.estimate:.1f} %"
    words = f"{found.selected.sum()} voxels at an estimated false-discovery rate of {rate}"
    assert found.verdict.startswith(words) and "in 1.0 % of 100 arrangements" in found.verdict
    assert "(the real one and 99 permutations)" in found.verdict


def test_strength_is_inclusion_times_the_share_of_variance_within_runs(slab):
    X, y, runs, graph = slab
    data = X[0] + 5 * runs[:, None].astype(np.float32)  # means of runs do not count
    (strength,) = voxel_strengths(SPATIAL, data, y[:, None], runs, graph).T
    everything = np.ones((len(y), 1), dtype=bool)
    fits = SPATIAL.fit_folds(data, y[:, None].astype(float), everything, runs, connectivity=graph)
    centred = data - np.array([data[runs == run].mean(axis=0) for run in runs])
    correlation = np.array([np.corrcoef(column, y)[0, 1] for column in centred.T])
    np.testing.assert_allclose(strength, fits.inclusion[:, 0] * correlation**2, atol=1e-5)


def test_few_labellings_are_all_used_and_what_they_cannot_reach_is_said(slab):
    X, y, runs, graph = slab
    rows = runs < 4
    found = calibrate(SPATIAL, X[0][rows], y[rows], runs[rows], scheme=Scheme(connectivity=graph))
    assert found.null.shape[1] == 2**4 // 2 - 1 and found.smallest == 1 / 8
    chosen = found.select(0.05, of="voxel")
    assert not chosen.selected.any()
    assert chosen.verdict == (
        "No voxel can be reported at a false-discovery rate of 0.05: only 8 arrangements of the labels were "
        "available, too few for a rate below 0.12. Give more runs or a larger rate."
    )
    assert "only 8 arrangements" not in found.select(0.2).verdict


def test_permutations_depend_on_the_seed_alone(slab):
    X, y, runs, _ = slab
    first, again, other = (
        calibrate(PLAIN, X[0], y, runs, n=9, scheme=Scheme(seed=seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.null, again.null)
    assert (first.null != other.null).any()
    np.testing.assert_allclose(first.strength, other.strength, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"method": METHODS["cdn"]},
            r"needs inclusion probabilities, which 'cdn' does not have.*vamp-sbg",
        ),
        ({"method": "svn"}, r"Unknown method 'svn'. Known methods: gamp-bg-lr, gamp-sbg-lr"),
        (
            {"method": GAMPClassifier()},
            r"got GAMPClassifier. For GAMPClassifier\(\) write 'gamp-bg-lr', with",
        ),
        ({"y": np.arange(80)}, "-1 or \\+1"),
        ({"runs": np.arange(80)}, "every run contains only one class"),
        ({"n": 0, "y": np.tile([1, -1], 40)}, "at least 1 permutation"),
    ],
)
def test_errors_say_what_to_do(slab, change, words):
    X, y, runs, _ = slab
    given = {"method": PLAIN, "X": X[0], "y": y, "runs": runs, "n": 9, **change}
    with pytest.raises(ValueError, match=words):
        calibrate(**given)


def test_one_run_of_independent_samples_is_told_to_exchange_samples():
    """Features of a matrix are called features, and a method has a name."""
    y = np.repeat([1, -1], 20)
    X = np.random.default_rng(0).standard_normal((40, 30))
    X[:, 4] += y
    alone = np.zeros(40)
    in_blocks = calibrate("gamp-bg-lr", X, y, alone).select(0.05)
    assert in_blocks.verdict.startswith(
        "No feature can be reported at a false-discovery rate of 0.05: only 1 arrangement of"
    )
    assert in_blocks.verdict.endswith(
        "One run has few blocks to exchange: give exchange='sample' if samples are independent of each "
        "other, else more runs, or a larger rate."
    )
    found = calibrate("gamp-bg-lr", X, y, alone, n=49, scheme=Scheme(exchange="sample")).select(0.05)
    assert np.flatnonzero(found.selected).tolist() == [4] and found.verdict.startswith("1 feature at an")
    few = calibrate("gamp-bg-lr", X[18:22], y[18:22], alone[:4], scheme=Scheme(exchange="sample")).select(
        0.05
    )
    assert few.verdict.endswith("Give more samples or a larger rate.")
    brief = calibrate("gamp-bg-lr", X, y, alone, n=9, scheme=Scheme(exchange="sample")).select(0.05)
    assert brief.verdict.endswith("below 0.1. Give a larger n (here 9) or a larger rate.")


def test_too_few_permutations_are_told_how_many_exist(slab):
    X, y, runs, _ = slab  # ten runs of two blocks: 2**10 / 2
    chosen = calibrate(PLAIN, X[0], y, runs, n=9).select(0.05)
    assert chosen.verdict.endswith("Give a larger n (here 9; 512 arrangements exist) or a larger rate.")


@pytest.mark.parametrize("fdr", [0.0, 5])
def test_a_rate_is_between_0_and_1(fdr):
    with pytest.raises(ValueError, match="between 0 and 1"):
        Calibration("any", np.ones(3), np.ones((3, 4)), 0.05, 0).select(fdr)


def test_every_method_with_inclusion_probabilities_is_welcome():
    assert {name for name, method in METHODS.items() if not fdr_refusal(method)} >= {
        "gamp-sbg-lr",
        "gamp-bg-lr",
    }
    assert fdr_refusal(METHODS["onebit-cs"])
