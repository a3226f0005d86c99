"""Noise in blocks, and a decoder that costs nothing, for tests of permutations."""

from types import SimpleNamespace

import numpy as np
from scipy.special import expit


def blocks_of_noise(rng, n_runs=6, blocks_per_class=2, rows=2, n_features=20, shared=1.0):
    """Samples of one block share a part of their noise, as fMRI volumes do; labels say nothing about X."""
    signs = np.repeat([1, -1], blocks_per_class)
    order = np.concatenate([rng.permutation(signs) for _ in range(n_runs)])
    y, blocks = np.repeat(order, rows).astype(float), np.repeat(np.arange(order.size), rows)
    runs = np.repeat(np.arange(n_runs), y.size // n_runs)
    own, common = rng.standard_normal((y.size, n_features)), rng.standard_normal((order.size, n_features))
    return own + shared * common[blocks], y, runs, blocks


class MeanDifference:
    """The cheapest decoder there is, for checks over many data sets: w = X'y on the training rows."""

    name = "mean-difference"

    def fit_folds(self, X, y, train, runs):
        decision = X @ (X.T @ np.where(train, y, 0))
        good = np.ones(decision.shape[1], dtype=bool)
        said = {"decision": decision, "proba": expit(decision), "failed": ~good}
        return SimpleNamespace(**said, inclusion=None, support=np.ones((X.shape[1], good.size), bool))
