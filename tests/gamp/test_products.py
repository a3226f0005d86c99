"""Products with X, block by block, against plain NumPy."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from mvpa_gamp.gamp.blocks import OwnMeanBlock, row_groups
from mvpa_gamp.gamp.design import Design

FORMATS = {
    "dense": np.ascontiguousarray,
    "fortran": np.asfortranarray,
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
}
# Sums of about a hundred terms of order one: a hundred roundings.
ROUNDING = {np.float64: 1e-12, np.float32: 2e-4}


def comparisons(n_rows, n_categories=5):
    """Training rows of every pair of categories, two folds each: (M, B), and labels."""
    category, run = np.arange(n_rows) % n_categories, np.arange(n_rows) // n_categories % 4
    columns, labels = [], []
    for a in range(n_categories):
        for b in range(a):
            for held_out in (0, 1):
                columns.append(np.isin(category, (a, b)) & (run != held_out))
                labels.append(np.where(category == a, 1.0, -1.0))
    return np.array(columns).T, np.array(labels).T


def products(design, w, s, all_rows=False):
    """The four products of all blocks joined."""
    squares_w, squares_s = np.square(w), np.square(s)
    forward = np.zeros((design.shape[0], w.shape[1]))
    forward_squares = forward.copy()
    adjoint, adjoint_squares = np.full_like(w, np.nan), np.full_like(w, np.nan)
    for block in design.blocks(all_rows):
        at = block.features
        forward += block.forward(w[at])
        adjoint[at], adjoint_squares[at] = block.adjoint(s), block.adjoint_pair(s, squares_s)[1]
        forward_squares += block.forward_pair(w[at], squares_w[at])[1]
    return forward, forward_squares, adjoint, adjoint_squares


def plain(X, w, s):
    return X @ w, X**2 @ w**2, X.T @ s, (X**2).T @ s**2


def matrix(rng, n_rows=60, n_features=90, mean=0.0):
    X = rng.standard_normal((n_rows, n_features)) + mean
    X[rng.random(X.shape) < 0.5] = 0.0
    return X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_products_equal_numpy(form, centered, dtype):
    rng = np.random.default_rng(0)
    X = matrix(rng, mean=1.0 if centered else 0.0).astype(dtype)
    center = X.mean(axis=0) if centered else None
    train = rng.random((60, 3)) < 0.8
    w, s = rng.standard_normal((90, 3)).astype(dtype), (rng.standard_normal((60, 3)) * train).astype(dtype)
    design = Design(FORMATS[form](X), train, center=center)
    assert design.shape == (60, 90, 3) and design.dtype == dtype
    reference = X.astype(float) - (0.0 if center is None else center.astype(float))
    for got, wanted in zip(
        products(design, w, s), plain(reference, w.astype(float), s.astype(float)), strict=True
    ):
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, atol=ROUNDING[dtype] * np.abs(wanted).max(), rtol=0)


@pytest.mark.parametrize("form", FORMATS)
def test_precision_of_the_results(form):
    rng = np.random.default_rng(1)
    design = Design(FORMATS[form](matrix(rng).astype(np.float32)), np.ones((60, 2), dtype=bool))
    w, s = np.ones((90, 2), dtype=np.float32), np.ones((60, 2), dtype=np.float32)
    for block in design.blocks():
        assert block.forward(w[block.features]).dtype == np.float64
        part = w[block.features]
        assert all(product.dtype == np.float64 for product in block.forward_pair(part, part))
        assert all(product.dtype == np.float32 for product in (block.adjoint(s), *block.adjoint_pair(s, s)))


def test_integers_and_booleans_become_float64():
    counts = np.arange(12).reshape(4, 3)
    for X in (counts, counts > 4, sparse.csr_array(counts)):
        assert Design(X).dtype == np.float64


def test_many_blocks_cover_every_feature_once():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40, 9000))
    design = Design(X)
    slices = [block.features for block in design.blocks()]
    assert len(slices) == design.n_blocks > 1
    assert slices[0].start == 0 and slices[-1].stop == 9000
    assert all(a.stop == b.start for a, b in pairwise(slices))
    w, s = rng.standard_normal((9000, 1)), rng.standard_normal((40, 1))
    for got, wanted in zip(products(design, w, s), plain(X, w, s), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-11 * np.abs(wanted).max(), rtol=0)


def test_folds_of_one_comparison_need_no_groups():
    assert row_groups(np.ones((40, 3), dtype=bool)) is None
    assert row_groups(~np.repeat(np.eye(4, dtype=bool), 10, axis=0)) is None


def test_groups_partition_the_rows_and_hold_all_their_columns():
    train, _ = comparisons(100)
    groups = row_groups(train)
    assert groups is not None and len(groups) > 3
    members = np.concatenate([group.rows for group in groups])
    np.testing.assert_array_equal(np.sort(members), np.arange(100))
    for rows, columns in groups:
        assert (np.diff(rows) > 0).all() and (np.diff(columns) > 0).all()
        outside = np.setdiff1d(np.arange(train.shape[1]), columns)
        assert not train[np.ix_(rows, outside)].any()
        assert train[np.ix_(rows, columns)].any(axis=0).all()
    work = sum(rows.size * columns.size for rows, columns in groups)
    assert work < 0.5 * train.size  # five categories, two of them in a comparison


def test_rows_without_a_pattern_are_not_grouped():
    rng = np.random.default_rng(0)
    assert row_groups(rng.random((300, 40)) < 0.1) is None
    unused = comparisons(100)[0]
    unused[:10] = False
    assert np.concatenate([group.rows for group in row_groups(unused)]).min() == 10


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_row_groups_give_the_training_rows_their_products_and_others_none(dtype, centered):
    rng = np.random.default_rng(3)
    train, _ = comparisons(100)
    X = (rng.standard_normal((100, 70)) + 0.5).astype(dtype)
    center = X.mean(axis=0) if centered else None
    design = Design(X, train, center=center)
    assert design._groups is not None  # this is what the test is about
    w = rng.standard_normal((70, train.shape[1])).astype(dtype)
    s = np.where(train, rng.standard_normal(train.shape), 0.0).astype(dtype)
    reference = X.astype(float) - (0.0 if center is None else center.astype(float))
    got = products(design, w, s)
    wanted = plain(reference, w.astype(float), s.astype(float))
    used = np.zeros_like(train)
    for rows, columns in row_groups(train):
        used[np.ix_(rows, columns)] = True
    tolerance = [ROUNDING[dtype] * np.abs(part).max() for part in wanted]
    for k in (0, 1):
        np.testing.assert_allclose(got[k][train], wanted[k][train], atol=tolerance[k], rtol=0)
        np.testing.assert_array_equal(got[k][~used], 0.0)
    for k in (2, 3):
        np.testing.assert_allclose(got[k], wanted[k], atol=tolerance[k], rtol=0)
    for part, whole in zip(products(design, w, s, all_rows=True), wanted, strict=True):
        np.testing.assert_allclose(part, whole, atol=ROUNDING[dtype] * np.abs(whole).max(), rtol=0)


@pytest.mark.parametrize("form", ["dense", "csr", "csc"])
@pytest.mark.parametrize("centered", [False, True])
def test_take_is_a_design_of_those_columns(form, centered):
    rng = np.random.default_rng(4)
    X, (train, _) = matrix(rng, 100, 50, mean=1.0), comparisons(100)
    design = Design(FORMATS[form](X), train, center=X.mean(axis=0) if centered else None)
    reference = X - X.mean(axis=0) if centered else X
    for columns in (np.array([0]), np.array([3, 4]), np.array([19, 2, 7, 11]), np.arange(10, 20)):
        part = design.take(columns)
        assert part.shape == (100, 50, columns.size)
        np.testing.assert_array_equal(part.train, train[:, columns])
        rows = part.train
        w, s = rng.standard_normal((50, columns.size)), np.where(rows, rng.standard_normal(rows.shape), 0.0)
        got, wanted = products(part, w, s), plain(reference, w, s)
        for k in (0, 1):
            np.testing.assert_allclose(got[k][rows], wanted[k][rows], atol=1e-11)
        for k in (2, 3):
            np.testing.assert_allclose(got[k], wanted[k], atol=1e-11)
        np.testing.assert_allclose(part.row_energy(), design.row_energy())


@pytest.mark.parametrize("form", ["dense", "csr", "csc"])
@pytest.mark.parametrize("centered", [False, True])
def test_restrict_is_a_design_of_those_features(form, centered):
    rng = np.random.default_rng(5)
    X, (train, _) = matrix(rng, 100, 50, mean=1.0).astype(np.float32), comparisons(100)
    center = X.mean(axis=0) if centered else None
    features = np.array([1, 4, 30, 49])
    part = Design(FORMATS[form](X), train, center=center).restrict(features, np.float64)
    assert part.shape == (100, 4, train.shape[1]) and part.dtype == np.float64
    reference = X[:, features].astype(float) - (0.0 if center is None else center[features].astype(float))
    w, s = rng.standard_normal((4, train.shape[1])), np.where(train, rng.standard_normal(train.shape), 0.0)
    got, wanted = products(part, w, s), plain(reference, w, s)
    for k in (0, 1):
        np.testing.assert_allclose(got[k][train], wanted[k][train], atol=1e-11)
    for k in (2, 3):
        np.testing.assert_allclose(got[k], wanted[k], atol=1e-11)
    np.testing.assert_allclose(part.row_energy()[:, 0], (reference**2).sum(axis=1), rtol=1e-11)


@pytest.mark.parametrize("form", ["dense", "fortran", "csr", "csc"])
@pytest.mark.parametrize("centered", [False, True])
def test_scores_are_those_of_all_rows(form, centered):
    rng = np.random.default_rng(6)
    X, (train, _) = matrix(rng, 100, 50, mean=1.0), comparisons(100)
    design = Design(FORMATS[form](X), train, center=X.mean(axis=0) if centered else None)
    reference = X - X.mean(axis=0) if centered else X
    w, tau_w = rng.standard_normal((50, train.shape[1])), rng.random((50, train.shape[1]))
    z, tau_z, _ = design.scores(w, tau_w)
    np.testing.assert_allclose(z, reference @ w, atol=1e-11)
    np.testing.assert_allclose(tau_z, reference**2 @ tau_w, atol=1e-11)


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_row_energy(form, dtype):
    X = matrix(np.random.default_rng(7)).astype(dtype)
    wanted = (X.astype(float) ** 2).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(Design(FORMATS[form](X)).row_energy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_row_energy_around_a_large_mean(dtype):
    # Raw fMRI: mean 1000, spread 10. Expanding the square would lose all digits of float32.
    X = (1000 + 10 * np.random.default_rng(8).standard_normal((50, 400))).astype(dtype)
    center = X.mean(axis=0)
    wanted = ((X.astype(float) - center.astype(float)) ** 2).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(Design(X, center=center).row_energy(), wanted, rtol=1e-5)


def test_squares_of_centered_sparse_x_are_never_negative():
    rng = np.random.default_rng(9)
    X = 1e6 + rng.random((30, 8))
    X[:, 0] = 1e6  # constant: nothing is left of it
    design = Design(sparse.csr_array(X), center=X.mean(axis=0))
    tau_w, tau_s = rng.random((8, 1)), rng.random((30, 1))
    for block in design.blocks():
        assert (block.forward_pair(tau_w, tau_w)[1] >= 0).all()
        assert (block.adjoint_pair(tau_s, tau_s)[1] >= 0).all()


def test_rows_that_cancel_leave_no_mean():
    """Robust rows of either sign: a mean by a sum of next to nothing would be beyond all bounds."""
    rng = np.random.default_rng(10)
    X, tau_s = rng.standard_normal((40, 6)), np.tile([[1.0], [-1.0]], (20, 1)) + 1e-3 * rng.random((40, 1))
    block = OwnMeanBlock(next(iter(Design(X).blocks())))
    curvature = block.adjoint_pair(tau_s, tau_s)[1]
    np.testing.assert_allclose(curvature, np.maximum((X**2).T @ tau_s, 0), rtol=1e-3)
    assert (np.abs(block.means) < 1e-3).all()
    kept = np.abs(tau_s)
    mean = X.T @ kept / kept.sum()
    curvature = block.adjoint_pair(kept, kept)[1]
    np.testing.assert_allclose(curvature, (X**2).T @ kept - mean**2 * kept.sum(), rtol=1e-6)
    np.testing.assert_allclose(block.means, mean, rtol=1e-6)


def test_x_is_left_alone():
    X = np.random.default_rng(10).standard_normal((20, 5))
    before = X.copy()
    design = Design(X, center=X.mean(axis=0))
    products(design, np.ones((5, 1)), np.ones((20, 1)))
    np.testing.assert_array_equal(X, before)
    assert np.shares_memory(design.X, X)  # C-ordered X is not copied
