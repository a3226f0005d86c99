"""Compiled products of dense X against those of the BLAS, and whole fits with either."""

import numpy as np
import pytest

from mvpa_gamp.gamp import Design, compiled
from mvpa_gamp.gamp.dense import column_sets, one_set
from mvpa_gamp.methods import METHODS

TOLERANCE = {np.float32: 2e-5, np.float64: 1e-12}  # of the largest value: sums in another order
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])
pytestmark = pytest.mark.skipif(not compiled.is_available(), reason="Numba is not installed")


def three_classes(n_rows=45, n_features=700):
    """X, and training rows (M, 6) of three comparisons of 30 rows with two folds each."""
    rng = np.random.default_rng(0)
    X = 1.5 + rng.standard_normal((n_rows, n_features))
    kind, fold = np.arange(n_rows) % 3, np.arange(n_rows) // 3 % 5
    train = [(kind != left) & (fold != out) for left in range(3) for out in range(2)]
    return X, np.array(train).T


def design(monkeypatch, is_compiled, X, train, **more):
    monkeypatch.setattr(compiled, "is_worth_it", lambda n_products: is_compiled)
    return Design(X, train, center="train", **more)


def products(made, s, tau_s, w, tau_w):
    """All pairs of products of a design, joined over its blocks."""
    adjoint, curvature, z, tau_z = [], [], 0.0, 0.0
    for block in made.blocks():
        for whole, part in zip((adjoint, curvature), block.adjoint_pair(s, tau_s), strict=True):
            whole.append(np.array(part))
        z_part, tau_part = block.forward_pair(w[block.features], tau_w[block.features])
        z, tau_z = z + z_part, tau_z + tau_part
    used = made.train
    return np.vstack(adjoint), np.vstack(curvature), np.where(used, z, 0), np.where(used, tau_z, 0)


@DTYPES
def test_products_equal_those_of_the_blas(monkeypatch, dtype):
    X, train = three_classes()
    rng = np.random.default_rng(1)
    s, tau_s = (
        np.where(train, values, 0).astype(dtype)
        for values in (rng.standard_normal(train.shape), rng.random(train.shape))
    )
    w, tau_w = (rng.random((X.shape[1], train.shape[1])).astype(dtype) for _ in range(2))
    made = [design(monkeypatch, each, X.astype(dtype), train) for each in (False, True)]
    assert [each._is_compiled for each in made] == [False, True]
    for plain, fused in zip(*(products(each, s, tau_s, w, tau_w) for each in made), strict=True):
        np.testing.assert_allclose(fused, plain, atol=TOLERANCE[dtype] * np.abs(plain).max())
    for plain, fused in zip(*(each.scores(w, tau_w) for each in made), strict=True):
        np.testing.assert_allclose(fused, plain, atol=TOLERANCE[dtype] * np.abs(plain).max())
    np.testing.assert_allclose(made[1].row_energy(), made[0].row_energy(), rtol=TOLERANCE[dtype])


@DTYPES
@pytest.mark.parametrize("name", ["gamp-bg-lr", "gamp-bl-lr"])
def test_fits_are_the_same(monkeypatch, dtype, name):
    X, train = three_classes()
    y = np.where(np.arange(len(X)) % 2 == 0, 1.0, -1.0)
    X[:, :5] += y[:, None]
    weights = np.linspace(0.5, 2, len(X))

    def fit(is_compiled):
        monkeypatch.setattr(compiled, "is_worth_it", lambda n_products: is_compiled)
        return METHODS[name].fit_folds(X.astype(dtype), y, train, np.arange(len(X)), None, weights)

    plain, fused = fit(False), fit(True)
    tolerance = 1e-3 if dtype == np.float32 else 1e-8  # amplified over the iterations
    np.testing.assert_allclose(fused.decision, plain.decision, atol=tolerance * np.abs(plain.decision).max())
    np.testing.assert_array_equal(fused.support, plain.support)


def test_means_that_eat_digits_are_removed_first(monkeypatch):
    X, train = three_classes()
    large = design(monkeypatch, True, (X + 1e4).astype(np.float32), train)
    assert large.center is not None and not large._is_compiled
    np.testing.assert_allclose(
        large.row_energy(), design(monkeypatch, True, X, train).row_energy(), rtol=1e-3
    )
    with pytest.raises(ValueError, match="squares of X must be finite"):
        design(monkeypatch, True, (1e30 * X).astype(np.float32), train)


def test_columns_are_in_the_set_of_their_comparison():
    _, train = three_classes()
    sets = column_sets(train)
    assert np.diff(sets.column_at).tolist() == [2, 2, 2] and sets.n_rows.tolist() == [30, 30, 30]
    for g, at in enumerate(sets.row_at[:-1]):
        rows = sets.rows[at : at + 30].astype(int)
        np.testing.assert_array_equal(rows, np.flatnonzero(train[:, [2 * g, 2 * g + 1]].any(axis=1)))
    assert sets.row_at.tolist() == [0, 32, 64, 96]  # in fours
    few = sets.take(np.array([1, 4]))
    assert few.columns.tolist() == [0, 1] and np.diff(few.column_at).tolist() == [1, 0, 1]
    assert one_set(7, 3).n_rows.tolist() == [7]
