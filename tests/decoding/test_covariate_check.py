import numpy as np
import pytest

from mvpa_gamp.decoding import check_covariates, make_tasks

pytestmark = pytest.mark.whole


def design(rng, n_runs=8, rows=4):
    shown = np.concatenate([np.repeat(rng.permutation(["a", "b", "c"]), rows) for _ in range(n_runs)])
    return shown, np.repeat(np.arange(n_runs), 3 * rows), np.arange(shown.size) // rows


def checks(rng, effect=0.0, n_runs=8, n_covariates=2):
    """Covariates that are alike within blocks; the first one differs between a and b by ``effect``."""
    shown, runs, blocks = design(rng, n_runs)
    values = rng.standard_normal((blocks[-1] + 1, n_covariates))[blocks]
    values = values + 0.3 * rng.standard_normal(values.shape)
    values[:, 0] += effect * (shown == "a")
    tasks = make_tasks(shown, [("a", "b"), ("b", "c")])
    return check_covariates(values, [f"v{k}" for k in range(n_covariates)], tasks, runs, blocks)


def test_a_covariate_that_decodes_is_named_with_its_accuracy():
    found = checks(np.random.default_rng(0), effect=5.0)
    assert [(each.covariate, each.comparison) for each in found if each.decodes] == [("v0", "a vs b")]
    (caution,) = [each.caution for each in found if each.caution]
    assert "The covariate v0 alone decodes a vs b with an accuracy of" in caution
    assert found[0].accuracy > 0.9 and found[0].p_value <= found[0].p_value_holm


def test_others_are_rarely_named():
    """In at most 5 % of comparisons, of which there are two here."""
    named = [any(each.decodes for each in checks(np.random.default_rng([1, k]))) for k in range(40)]
    assert sum(named) <= 10  # 11 or more of 40 at a rate of 10 %: 0.1 %


def test_a_covariate_of_moderate_accuracy_is_mostly_named():
    found = [checks(np.random.default_rng([4, k]), effect=2.5, n_runs=12)[0] for k in range(10)]
    assert sum(each.decodes for each in found) >= 7 and np.mean([each.accuracy for each in found]) < 0.92


def test_few_runs_are_judged_by_accuracy():
    found = checks(np.random.default_rng(2), effect=8.0, n_runs=3)
    assert found[0].decodes and found[0].p_value > 0.05  # 8 labellings cannot reach 5 %
    assert not found[3].decodes or found[3].accuracy >= 0.9


def test_with_few_runs_others_are_rarely_named():
    """Four runs, judged by accuracy: 1.5 % of the comparisons of 300 designs; a limit of 80 % names 8.5 %."""
    found = [check for k in range(60) for check in checks(np.random.default_rng([3, k]), n_runs=4)]
    assert sum(each.decodes for each in found) <= 7  # of 240; 8 or more at a rate of 1 %: 0.3 %
    assert sum(each.accuracy >= 0.8 for each in found) >= 4


def test_the_scale_of_a_covariate_does_not_matter():
    (shown, runs, blocks), values = design(np.random.default_rng(0)), np.random.default_rng(1)
    values = values.standard_normal((len(shown), 2)) / 4
    tasks = make_tasks(shown, [("a", "b")])
    small, large = (
        check_covariates(values * scale, ["v", "w"], tasks, runs, blocks) for scale in (1, 2.0**1023)
    )
    assert [each.accuracy for each in small] == [each.accuracy for each in large]
