"""Labelled documents as sparse matrices: LIBSVM files, scikit-learn's RCV1, an .npz, or a generated set.

Rows are documents, columns words; values are cosine-normalised log tf-idf in float32, labels -1/+1.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

RCV1_ROWS, RCV1_FEATURES, RCV1_DENSITY = 677_399, 47_236, 0.0016
_ROWS_AT_ONCE = 50_000
# Frequencies of words fall like 1 / (rank + 20)^1.05: about 40 % of documents hold the commonest one, as in
# RCV1 after stop words are gone.
_RANK_SHIFT, _RANK_POWER = 20.0, 1.05
_LENGTH_SPREAD = 0.6  # standard deviation of the log of a document's length
_REPEATS = 1.06  # words drawn per different word
_TELLING = 0.1  # share of words that carry weight in a generated set
_NOISE_SHARE = 0.15  # standard deviation of the label noise over that of the scores: about 5 % wrong labels


class TextSet(NamedTuple):
    """Documents to train on and to test on."""

    name: str
    generated: bool
    X: Any  # (M, N) csr_array
    y: NDArray  # (M,)
    X_test: Any  # (T, N)
    y_test: NDArray  # (T,)

    def swapped(self) -> "TextSet":
        """The test documents as the training set, as in the paper's first table."""
        return TextSet(f"{self.name}, swapped", self.generated, self.X_test, self.y_test, self.X, self.y)


def generated_documents(n_rows: int, n_features: int, density: float, rng: np.random.Generator) -> Any:
    """A csr_array (M, N) like a corpus: word frequencies by a power law, rows of norm one, float32."""
    cumulative = np.cumsum(1.0 / (np.arange(n_features) + _RANK_SHIFT) ** _RANK_POWER)
    cumulative /= cumulative[-1]
    word_of_rank = rng.permutation(n_features).astype(np.int32)
    parts = [
        _some_documents(min(_ROWS_AT_ONCE, n_rows - start), density * n_features, cumulative, rng)
        for start in range(0, n_rows, _ROWS_AT_ONCE)
    ]
    lengths, ranks, counts = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    X = sparse.csr_array((1.0 + np.log(counts), word_of_rank[ranks], indptr), shape=(n_rows, n_features))
    X.sort_indices()
    documents = np.bincount(X.indices, minlength=n_features)
    X.data *= np.log((n_rows + 1.0) / (documents + 1.0)).astype(np.float32)[X.indices]
    norms = np.sqrt(np.add.reduceat(np.square(X.data, dtype=np.float64), indptr[:-1]))
    X.data /= np.repeat(np.maximum(norms, 1e-30), lengths).astype(np.float32)
    return X


def _some_documents(
    n_rows: int, mean_length: float, cumulative: NDArray, rng: np.random.Generator
) -> tuple[NDArray, NDArray, NDArray]:
    """Different words per document (m,), and rank and count of each, document by document."""
    spread = rng.lognormal(-0.5 * _LENGTH_SPREAD**2, _LENGTH_SPREAD, n_rows)
    drawn = np.maximum(3, (spread * mean_length * _REPEATS).astype(np.int64))
    rows = np.repeat(np.arange(n_rows), drawn)
    ranks = np.searchsorted(cumulative, rng.random(rows.size)).clip(max=cumulative.size - 1)
    pairs = np.sort(rows * cumulative.size + ranks)
    first = np.flatnonzero(np.diff(pairs, prepend=-1))
    counts = np.diff(first, append=pairs.size).astype(np.float32)
    row, rank = np.divmod(pairs[first], cumulative.size)
    return np.bincount(row, minlength=n_rows), rank, counts


def generated_labels(X: Any, rng: np.random.Generator) -> NDArray:
    """Labels of both kinds: the sign of a sparse linear score plus noise that turns about one in twenty."""
    n_features = X.shape[1]
    w = np.where(rng.random(n_features) < _TELLING, rng.standard_normal(n_features), 0.0)
    score = X @ w.astype(X.dtype)
    noise = _NOISE_SHARE * float(np.std(score)) * rng.standard_normal(X.shape[0])
    return np.where(score - np.median(score) + noise > 0, 1.0, -1.0)


def generated_set(
    n_train: int, n_test: int, n_features: int, density: float, rng: np.random.Generator
) -> TextSet:
    """A generated set, named as such."""
    X = generated_documents(n_train + n_test, n_features, density, rng)
    y = generated_labels(X, rng)
    name = f"generated {n_train:,} x {n_features:,}"
    return TextSet(name, True, X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def libsvm_set(train: Path, test: Path) -> TextSet:
    """Two LIBSVM (svmlight) files, plain, .gz or .bz2."""
    from sklearn.datasets import load_svmlight_files

    X, y, X_test, y_test = load_svmlight_files([str(train), str(test)], dtype=np.float32)
    return _real(train.name.split(".")[0], X, y, X_test, y_test)


def npz_set(matrix: Path, labels: Path) -> TextSet:
    """A scipy.sparse .npz, and an .npz with ``y`` and ``n_train``, the number of leading training rows."""
    X = sparse.load_npz(matrix)
    with np.load(labels) as stored:
        y, n_train = stored["y"], int(stored["n_train"])
    X = sparse.csr_array(X)
    name = matrix.name.split(".")[0].removesuffix("_X")
    return _real(name, X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def fetched_rcv1(folder: Path | None = None) -> TextSet:
    """RCV1 through scikit-learn, CCAT and ECAT against GCAT and MCAT; documents of both sides are left out.

    scikit-learn's split has 23,149 training documents; the paper's had 20,242 of them.
    """
    from sklearn.datasets import fetch_rcv1

    parts = []
    for subset in ("train", "test"):
        bunch = fetch_rcv1(data_home=folder, subset=subset)
        topics = list(bunch.target_names)
        sides = [
            np.asarray(bunch.target[:, [topics.index(name) for name in names]].sum(axis=1)).ravel() > 0
            for names in (("CCAT", "ECAT"), ("GCAT", "MCAT"))
        ]
        clear = sides[0] != sides[1]
        parts += [sparse.csr_array(bunch.data)[clear], np.where(sides[0], 1.0, -1.0)[clear]]
    return _real("rcv1", *parts)


def _real(name: str, X: Any, y: NDArray, X_test: Any, y_test: NDArray) -> TextSet:
    labels = [_signs(name, values) for values in (y, y_test)]
    matrices = [_narrow(sparse.csr_array(matrix)) for matrix in (X, X_test)]
    return TextSet(name, False, matrices[0], labels[0], matrices[1], labels[1])


def _narrow(X: Any) -> Any:
    """X in float32 with 32-bit indices, which LIBLINEAR asks for and which take half the memory."""
    parts = (X.data.astype(np.float32), X.indices.astype(np.int32), X.indptr.astype(np.int32))
    narrow = sparse.csr_array(parts, shape=X.shape)
    narrow.sum_duplicates()
    return narrow


def _signs(name: str, y: NDArray) -> NDArray:
    y = np.asarray(y, dtype=np.float64)
    if not np.isin(y, (-1.0, 1.0)).all():
        raise ValueError(
            f"{name}: labels must be -1 or +1, got {np.unique(y)[:5].tolist()}. Map your two classes to them."
        )
    return y
