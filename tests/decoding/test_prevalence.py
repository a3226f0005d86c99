import numpy as np
import pytest
from scipy import stats

from mvpa_gamp.decoding.group import (
    bayesian_prevalence,
    minimum_statistic,
    run_test,
    runs_above_by_chance,
    smallest_run_p,
)


def test_the_test_counts_runs_and_ties_count_against_the_data():
    assert run_test([0.6] * 5) == smallest_run_p(5) == pytest.approx(0.0907, abs=1e-4)  # normal orthant
    assert run_test([0.6, 0.6, 0.6, 0.6, 0.6, 0.5]) == runs_above_by_chance(6)[5] > 7 / 64
    assert run_test([0.4] * 6) == pytest.approx(1.0)
    # Three sums with correlations of 1/2: P(all above) = 1/8 + 3 arcsin(1/2) / (4 pi) = 1/4.
    assert smallest_run_p(3) == pytest.approx(0.25, abs=1e-9)
    assert smallest_run_p(6) > 0.05 > smallest_run_p(7)


@pytest.mark.parametrize(("k", "n", "alpha"), [(0, 4, 0.05), (3, 3, 0.05), (7, 12, 0.05), (9, 20, 0.01)])
def test_the_posterior_is_the_binomial_likelihood_under_a_uniform_prior(k, n, alpha):
    found = bayesian_prevalence(k, n, alpha)
    share = np.linspace(0, 1, 200_001)
    density = stats.binom.pmf(k, n, alpha + (1 - alpha) * share)
    density /= density.sum()
    assert found.mode == pytest.approx(share[np.argmax(density)], abs=1e-4)
    assert found.majority == pytest.approx(density[share > 0.5].sum(), abs=1e-4)
    inside = (share >= found.low) & (share <= found.high)
    assert density[inside].sum() == pytest.approx(0.95, abs=1e-3)
    assert density[inside].min() >= density[~inside].max() * (1 - 1e-2)  # the densest 95 %, up to the grid


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Over truths drawn from the prior a 95 % interval holds 95 % of them (within 3 standard errors)."""
    rng = np.random.default_rng(1)
    truths = rng.uniform(size=400)
    n, alpha = 20, 0.05
    table = [bayesian_prevalence(k, n, alpha) for k in range(n + 1)]
    counts = rng.binomial(n, alpha + (1 - alpha) * truths)
    held = [table[k].low <= truth <= table[k].high for k, truth in zip(counts, truths, strict=True)]
    assert np.mean(held) == pytest.approx(0.95, abs=3 * (0.95 * 0.05 / 400) ** 0.5)


def test_counts_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="k = 4, n = 3"):
        bayesian_prevalence(4, 3)


def test_the_minimum_statistic_is_the_limit_of_second_level_permutations():
    rng = np.random.default_rng(2)
    scores = [0.62, 0.58, 0.6]
    nulls = [rng.normal(0.5, 0.05, 199) for _ in scores]
    found = minimum_statistic(scores, nulls)
    members = [np.append(null, score) for null, score in zip(nulls, scores, strict=True)]
    drawn = np.min([rng.choice(m, 400_000) for m in members], axis=0)
    expected = np.mean(drawn >= min(scores))
    assert found.pvalue == pytest.approx(expected, abs=4 * (expected / 400_000) ** 0.5)
    at_bound = ((1 - found.bound) * found.pvalue ** (1 / 3) + found.bound) ** 3
    assert at_bound == pytest.approx(0.05)


def test_one_participant_at_chance_leaves_no_bound():
    nulls = [np.full(99, 0.5)] * 3
    assert np.isnan(minimum_statistic([0.9, 0.9, 0.4], nulls).bound)
