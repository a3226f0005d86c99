"""Many classes from pairs: votes where there is no probability, scores, maps by class."""

import numpy as np
import pytest
from sklearn.utils.multiclass import _ovr_decision_function

from mvpa_gamp.coupling import class_pairs, classify, vote
from mvpa_gamp.decoding import leave_one_run_out
from mvpa_gamp.decoding.exchange import blocks_of_volumes
from mvpa_gamp.decoding.fit import Scheme, fit_pairs
from mvpa_gamp.decoding.preparation import NoiseWhitening
from mvpa_gamp.decoding.scores import class_maps, held_out_answers, score_classes
from mvpa_gamp.methods import METHODS


def three_classes(n_runs=4, rows=5, n_features=12):
    rng = np.random.default_rng(8)
    codes = np.tile(np.repeat([0, 1, 2], rows), n_runs)
    X = rng.standard_normal((codes.size, n_features)) + 1.5 * (np.arange(n_features) == codes[:, None])
    return X, codes, np.repeat(np.arange(n_runs), 3 * rows)


def test_votes_are_those_of_scikit_learn():
    decision = np.random.default_rng(0).standard_normal((50, 6))
    pairs = class_pairs(4)
    expected = _ovr_decision_function((decision < 0).astype(int), -decision, 4)
    np.testing.assert_allclose(vote(decision, 4), expected)
    said = classify(decision, np.full_like(decision, np.nan), 4)
    np.testing.assert_array_equal(said.predicted, expected.argmax(axis=1))
    assert np.isnan(said.proba).all() and said.proba.shape == (50, 4) and len(pairs) == 6


@pytest.mark.parametrize("name", ["gamp-bg-lr", "onebit-cs", "cdn"])
def test_every_method_tells_several_classes_apart(name):
    X, codes, runs = three_classes()
    fits = fit_pairs(METHODS[name], X, codes, runs, scheme=Scheme(leave_one_run_out(runs))).fits
    names = np.array(["a", "b", "c"])
    found = score_classes("accuracy", held_out_answers(fits), codes, names)
    assert found.confusion.sum() == codes.size and found.fold_scores.shape == (4,)
    assert found.fold_scores.mean() == pytest.approx(np.trace(found.confusion) / codes.size)
    assert found.fold_scores.mean() > 0.6 and list(found.contrast_scores) == ["a-b", "a-c", "b-c"]


def test_whitened_pairs_answer_the_rows_of_all_classes():
    X, codes, runs = three_classes()
    names = np.array(["a", "b", "c"])[codes]
    blocks, folds = blocks_of_volumes(codes, runs, np.arange(codes.size)), leave_one_run_out(runs)
    for name in ("gamp-bg-lr", "onebit-cs", "cdn"):
        scheme = Scheme(folds, preparation=NoiseWhitening(blocks))
        fits = fit_pairs(METHODS[name], X, codes, runs, scheme).fits
        assert all(each.decision.shape == (codes.size, 5) for each in fits)
        assert np.isnan(fits[0].proba).all() == (name == "onebit-cs")
        score = score_classes("accuracy", held_out_answers(fits), codes, np.unique(names)).fold_scores
        assert score.mean() > 0.6


def test_maps_by_class_speak_for_the_class():
    ab, ac, bc = (np.array([value, 0.0]) for value in (1.0, 2.0, 4.0))
    np.testing.assert_allclose(class_maps([ab, ac, bc], 3, signed=True)[0], [1.5, 1.5, -3.0])
    np.testing.assert_allclose(class_maps([ab, ac, bc], 3, signed=False)[0], [1.5, 2.5, 3.0])
