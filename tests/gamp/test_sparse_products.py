"""Compiled products of sparse X against scipy's: same numbers, nothing dense, duplicates added first."""

import numpy as np
import pytest
from scipy import sparse

from mvpa_gamp.gamp import Bernoulli, Design, Gaussian, Probit, SolverSettings, fit_em
from mvpa_gamp.gamp import sparse as module
from mvpa_gamp.gamp.sparse import CenteredSparseBlock, SparseBlock

FORMS = {"csr": sparse.csr_array, "csc": sparse.csc_array, "csr_matrix": sparse.csr_matrix}
# Sums of up to a hundred terms in the precision of X.
ROUNDING = {np.float32: 1e-5, np.float64: 1e-13}


@pytest.fixture(params=["compiled", "interpreted"])
def always_compiled(request, monkeypatch):
    """Small matrices take the loops too: as machine code, and as the Python that it is made from."""
    monkeypatch.setattr(module, "_WORTH_COMPILING", 1)
    if request.param == "compiled":
        pytest.importorskip("numba")
        return
    loops = (getattr(module, f"_{name}") for name in module.Kernels._fields)
    kernels = module.Kernels(*loops)
    monkeypatch.setattr(module, "compiled_kernels", lambda: kernels)


def matrix(form="csr", dtype=np.float32, n_rows=70, n_features=40):
    dense = np.random.default_rng(0).standard_normal((n_rows, n_features))
    dense[np.random.default_rng(1).random(dense.shape) < 0.8] = 0.0
    dense[3] = 0.0  # an empty document
    dense[:, 5] = 0.0  # a word that never occurs
    return FORMS[form](dense.astype(dtype)), dense.astype(dtype).astype(float)


def right_hand_sides(n_columns, dtype, n_rows=70, n_features=40):
    rng = np.random.default_rng(2)
    shapes = ((n_features, n_columns), (n_rows, n_columns))
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("n_columns", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", FORMS)
def test_compiled_products_equal_numpy(form, dtype, n_columns, always_compiled, monkeypatch):
    monkeypatch.setattr(module, "_ENTRIES_PER_PART", 50)  # many parts
    monkeypatch.setattr(module, "_ENTRIES_PER_SUM", 1)
    X, dense = matrix(form, dtype)
    block = SparseBlock(X)
    assert block._is_compiled
    w, s = right_hand_sides(n_columns, dtype)
    got = (*block.forward_pair(w, w**2), *block.adjoint_pair(s, s**2))
    squares_alone = block.forward_pair(w[:, :0], w**2)[1], block.adjoint_pair(s[:, :0], s**2)[1]
    alone = (block.forward(w), squares_alone[0], block.adjoint(s), squares_alone[1])
    wide_w, wide_s = w.astype(float), s.astype(float)
    wanted = (dense @ wide_w, dense**2 @ wide_w**2, dense.T @ wide_s, (dense**2).T @ wide_s**2)
    for pair, single, exact in zip(got, alone, wanted, strict=True):
        np.testing.assert_allclose(pair, exact, atol=ROUNDING[dtype] * np.abs(exact).max(), rtol=0)
        np.testing.assert_array_equal(pair, single)
    assert got[0].dtype == got[1].dtype == np.float64 and got[2].dtype == got[3].dtype == dtype


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_columns_together_equal_columns_alone(form, always_compiled):
    X, _ = matrix(form)
    block = SparseBlock(X)
    w, s = right_hand_sides(3, np.float32)
    together = (*block.forward_pair(w, w**2), *block.adjoint_pair(s, s**2))
    for b in range(3):
        part = slice(b, b + 1)
        alone = (
            *block.forward_pair(w[:, part], w[:, part] ** 2),
            *block.adjoint_pair(s[:, part], s[:, part] ** 2),
        )
        for all_columns, one in zip(together, alone, strict=True):
            np.testing.assert_array_equal(all_columns[:, part], one)


def test_long_lines_are_summed_in_double_precision(always_compiled, monkeypatch):
    monkeypatch.setattr(module, "_SHORT_LINE", 10)
    rng = np.random.default_rng(3)
    dense = rng.random((2, 20_000)).astype(np.float32)
    total = SparseBlock(sparse.csr_array(dense)).forward(np.ones((20_000, 1), dtype=np.float32))
    np.testing.assert_allclose(total[:, 0], dense.sum(axis=1, dtype=float), rtol=1e-12)


@pytest.mark.parametrize("compiled", [False, True])
def test_centered_pairs_equal_single_products(compiled, monkeypatch):
    if compiled:
        pytest.importorskip("numba")
        monkeypatch.setattr(module, "_WORTH_COMPILING", 1)
    X, dense = matrix("csr", np.float64)
    center = dense.mean(axis=0)
    block = CenteredSparseBlock(SparseBlock(X), center[:, None])
    w, s = right_hand_sides(2, np.float64)
    gap = dense - center
    np.testing.assert_allclose(block.forward_pair(w, w**2)[0], gap @ w, atol=1e-12)
    np.testing.assert_allclose(block.forward_pair(w, w**2)[1], gap**2 @ w**2, atol=1e-12)
    np.testing.assert_allclose(block.adjoint_pair(s, s**2)[0], gap.T @ s, atol=1e-12)
    np.testing.assert_allclose(block.adjoint_pair(s, s**2)[1], (gap**2).T @ s**2, atol=1e-12)
    np.testing.assert_allclose(block.forward(w), gap @ w, atol=1e-12)
    np.testing.assert_allclose(block.adjoint(s), gap.T @ s, atol=1e-12)


def test_squares_share_the_index_arrays_and_are_made_only_for_scipy(always_compiled):
    X, _ = matrix()
    block = SparseBlock(X)
    block.forward_pair(*right_hand_sides(1, np.float32)[:1] * 2)
    assert "squares" not in vars(block)
    assert np.shares_memory(block.squares.indices, X.indices)
    assert np.shares_memory(block.squares.indptr, X.indptr)


def test_without_the_compiler_scipy_gives_the_same_fit(monkeypatch):
    pytest.importorskip("numba")
    X, dense = matrix("csr", np.float64, 200, 60)
    y = np.where(dense[:, 0] - dense[:, 1] + 0.3 * dense[:, 2] >= 0, 1.0, -1.0)
    fits = []
    for worth in (1, 10**12):
        monkeypatch.setattr(module, "_WORTH_COMPILING", worth)
        design = Design(X, center="train")
        prior = Bernoulli(0.1, Gaussian(0.0, 1.0))
        fits.append(fit_em(design, y, Probit(2.9), prior, SolverSettings(intercept=True, max_iter=40)).result)
    np.testing.assert_allclose(fits[0].coef, fits[1].coef, atol=1e-9)

    monkeypatch.setattr(module, "_WORTH_COMPILING", 1)
    monkeypatch.setattr(module, "compiled_kernels", lambda: None)
    assert not SparseBlock(X)._is_compiled


def test_an_entry_given_twice_is_squared_as_one():
    twice = sparse.csr_array((np.ones(3), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    np.testing.assert_array_equal(Design(twice).row_energy()[:, 0], [4.0, 1.0])
    assert twice.nnz == 3  # the caller's matrix is left alone
