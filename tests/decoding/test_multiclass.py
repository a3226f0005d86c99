"""Pairwise coupling: against independent optima, exact cases, extremes, and bad input."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from mvpa_gamp.coupling import class_pairs, couple, couple_quadratic


def wins(first, n_classes):
    r = np.zeros((n_classes, n_classes))
    for k, (i, j) in enumerate(class_pairs(n_classes)):
        r[i, j], r[j, i] = first[k], 1 - first[k]
    return r


def random_pairs(n_rows, n_classes, spread, seed=0):
    rng = np.random.default_rng(seed)
    return expit(spread * rng.standard_normal((n_rows, len(class_pairs(n_classes)))))


def kullback_leibler(theta, r):
    p = np.exp(theta - theta.max())
    share = p[:, None] / (p[:, None] + p[None, :])
    off = ~np.eye(len(p), dtype=bool)
    return np.sum(r[off] * np.log(r[off] / share[off]))


def quadratic(p, r):
    i, j = np.triu_indices(len(p), 1)
    return 2 * np.sum((r[j, i] * p[i] - r[i, j] * p[j]) ** 2)


@pytest.mark.parametrize("n_classes", [3, 5, 8])
def test_the_coupled_probabilities_are_the_optimum_that_another_solver_finds(n_classes):
    given = random_pairs(6, n_classes, 1.5)
    for p, first in zip(couple(given, n_classes), given, strict=True):
        r = wins(first, n_classes)
        found = minimize(
            kullback_leibler, np.zeros(n_classes), args=(r,), method="BFGS", options={"gtol": 1e-9}
        )
        other = np.exp(found.x - found.x.max())
        np.testing.assert_allclose(p, other / other.sum(), atol=1e-6)  # BFGS with numerical gradients
        assert kullback_leibler(np.log(p), r) <= found.fun + 1e-12


@pytest.mark.parametrize("n_classes", [3, 6])
def test_the_closed_form_is_the_optimum_on_the_simplex(n_classes):
    given = random_pairs(6, n_classes, 1.5, seed=1)
    simplex = {"type": "eq", "fun": lambda p: p.sum() - 1}
    for p, first in zip(couple_quadratic(given, n_classes), given, strict=True):
        r = wins(first, n_classes)
        found = minimize(
            quadratic, np.full(n_classes, 1 / n_classes), args=(r,), method="SLSQP", constraints=simplex,
            bounds=[(0, 1)] * n_classes, options={"ftol": 1e-14, "maxiter": 500},
        )  # fmt: skip
        np.testing.assert_allclose(p, found.x, atol=1e-5)
        assert quadratic(p, r) <= found.fun + 1e-10


@pytest.mark.parametrize("coupling", [couple, couple_quadratic])
def test_pairs_that_agree_give_back_the_probabilities_they_came_from(coupling):
    p = np.random.default_rng(2).dirichlet(np.ones(6), 20)
    first = np.column_stack([p[:, i] / (p[:, i] + p[:, j]) for i, j in class_pairs(6)])
    np.testing.assert_allclose(coupling(first, 6), p, atol=1e-9)


def test_two_classes_need_no_coupling():
    first = np.array([[0.2], [0.9], [0.5]])
    np.testing.assert_allclose(couple(first, 2), [[0.2, 0.8], [0.9, 0.1], [0.5, 0.5]], rtol=1e-12)


@pytest.mark.parametrize("spread", [0.1, 5.0, 50.0, 1e4])
def test_every_class_wins_as_often_as_its_pairs_say_however_sure_they_are(spread):
    given = random_pairs(300, 5, spread, seed=3)
    p = couple(given, 5)
    assert np.isfinite(p).all() and (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    plain = ((given > 1e-6) & (given < 1 - 1e-6)).all(axis=1)  # otherwise p itself rounds to zero
    with np.errstate(invalid="ignore"):
        share = p[:, :, None] / (p[:, :, None] + p[:, None, :])
    share[:, np.arange(5), np.arange(5)] = 0
    expected = np.array([wins(first, 5).sum(axis=1) for first in given])
    np.testing.assert_allclose(share.sum(axis=2)[plain], expected[plain], atol=1e-7)
    assert (p.argmax(axis=1) == expected.argmax(axis=1))[plain].all()  # the order is that of the summed wins


@pytest.mark.parametrize("distance", [5.0, 40.0, 500.0])
@pytest.mark.parametrize("kind", ["chain", "clusters"])
def test_classes_that_never_meet_are_coupled_too(kind, distance):
    """Curvatures of the cost then differ by more orders than a float64 has digits."""
    rng = np.random.default_rng(6)
    place = rng.standard_normal((200, 6))
    place = distance * place if kind == "chain" else place + distance * rng.integers(0, 2, (200, 6))
    i, j = np.array(class_pairs(6)).T
    given = expit(np.clip(place[:, i] - place[:, j] + rng.standard_normal((200, 15)), -700, 700))
    p = couple(given, 6)
    assert np.isfinite(p).all()
    with np.errstate(invalid="ignore"):  # 0 / 0 where both classes are out of reach
        share = np.nan_to_num(p[:, :, None] / (p[:, :, None] + p[:, None, :]), nan=0.5)
    share[:, np.arange(6), np.arange(6)] = 0
    expected = np.array([wins(first, 6).sum(axis=1) for first in given])
    top = p > 1e-300
    np.testing.assert_allclose(share.sum(axis=2)[top], expected[top], atol=1e-6)


def test_certain_pairs_stay_finite():
    for first in ([1.0, 1.0, 1.0], [1.0, 0.0, 1.0], [0.0, 0.0, 0.0]):
        p = couple([first], 3)
        assert np.isfinite(p).all() and p.sum() == pytest.approx(1)
    np.testing.assert_allclose(couple([[1.0, 0.0, 1.0]], 3), 1 / 3)  # a beats b beats c beats a
    np.testing.assert_allclose(couple([[1.0, 1.0, 0.5]], 3)[0, 0], 1, atol=1e-9)


def test_rows_do_not_see_each_other():
    given = random_pairs(40, 4, 3.0, seed=4)
    alone = np.concatenate([couple(row[None], 4) for row in given])
    np.testing.assert_allclose(couple(given, 4), alone, rtol=1e-8, atol=1e-12)


def test_classes_may_be_named_in_any_order():
    given = random_pairs(10, 4, 2.0, seed=5)
    order = np.array([2, 0, 3, 1])
    renamed = np.array([[wins(first, 4)[order[i], order[j]] for i, j in class_pairs(4)] for first in given])
    np.testing.assert_allclose(couple(renamed, 4), couple(given, 4)[:, order], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize(
    ("first", "n_classes", "message"),
    [
        (np.zeros((3, 2)), 3, r"3 classes have 3 pairs: expected one column for each, got shape \(3, 2\)"),
        ([[0.5, 1.2, 0.1]], 3, "between 0 and 1"),
        ([[np.nan, 0.2, 0.1]], 3, "method with a probability model"),
        ([[0.5]], 1, "at least two classes, got 1"),
    ],
)
def test_bad_probabilities_are_explained(first, n_classes, message):
    with pytest.raises(ValueError, match=message):
        couple(first, n_classes)
