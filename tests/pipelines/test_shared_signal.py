"""A strong signal that all voxels share: nothing fails in silence, and the recommended method is near LDA."""

import csv

import numpy as np
import pytest

from mvpa_gamp.gamp import Bernoulli, Design, Gaussian, Logistic, fit_em, solve
from mvpa_gamp.gamp.result import DIVERGED, SMALLER_STEPS
from mvpa_gamp.gamp.starts import start_prior
from mvpa_gamp.methods.gamp import FELL_BACK
from pipelines import shared_signal as shared

SMALL = shared.Size((12, 11, 10), 5, 32, (1.0,), 1)


def study(mode, seed=1):
    return shared.simulate(SMALL, mode, 1.0, np.random.default_rng(seed))


def test_a_run_that_diverged_says_so_and_has_a_named_fallback():
    """Patience ran out without the score ever rising, and that was called a good end."""
    data = study(5.0)
    design, y = Design(data.X), data.y
    alone = solve(design, y, Logistic(), Bernoulli(0.1, Gaussian(0.0, 0.1)))
    assert alone.status[0] == DIVERGED and not alone.converged[0] and alone.failed[0]
    fits, _ = shared.fit("gamp-sbg-lr", data, SMALL.shape)
    fell_back = np.asarray(fits.status) == FELL_BACK.format(name="VAMP sBG")
    assert fell_back.all() and not fits.converged.any() and fits.failed.all()
    vamp, _ = shared.fit("vamp-sbg", data, SMALL.shape)
    np.testing.assert_array_equal(fits.coef, vamp.coef)
    np.testing.assert_array_equal(fits.support, vamp.support)
    np.testing.assert_allclose(data.X @ fits.coef + fits.intercept, fits.decision, atol=1e-3)
    assert set(fits.parameters) == {"prior.rate", "prior.slab.mean", "prior.slab.var"}


def test_smaller_steps_are_tried_first():
    data = study(5.0, seed=0)
    fits, train = shared.fit("gamp-sbg-lr", data, SMALL.shape)
    assert set(fits.status) == {SMALLER_STEPS} and fits.converged.all()
    right = (fits.decision > 0) == (data.y > 0)[:, None]
    assert right[~train].mean() > 0.75


@pytest.mark.parametrize("name", ["logistic", "permuted"])
def test_a_fit_that_found_nothing_says_so(name):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 400)).astype(np.float32), np.repeat([1.0, -1.0], 30)
    design = Design(X)
    tuned = fit_em(
        design,
        y if name == "logistic" else rng.permutation(y),
        Logistic(),
        start_prior("bernoulli-gaussian", design),
    )
    assert tuned.result.status[0].startswith("Found nothing")
    assert not tuned.result.converged[0] and not tuned.result.failed[0]


def test_the_recommended_method_is_near_lda():
    """Without care for the shared signal in what a typical row is, it was 6 points below LDA here."""
    shape = shared.Size((16, 15, 14), 5, 40, (1.0,), 1)
    below = []
    for seed in range(3):
        data = shared.simulate(shape, 5.0, 1.0, np.random.default_rng(seed))
        ours, lda = (shared.judged(m, data, shape.shape)["accuracy_percent"] for m in ("vamp-sbg", "lda"))
        below.append(ours - lda)
    assert np.mean(below) > -3


def test_tables_are_written(tmp_path):
    from pipelines.command import Options

    options = Options(full=False, seed=0, out=tmp_path)
    tiny = shared.Size((6, 6, 6), 3, 16, (1.0,), 2)
    record = shared.run(options, tiny)
    assert "fits failed in silence" in record["headline"]
    with (tmp_path / "shared_signal.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(shared.MODES) * len(shared.COMPARED) and rows[0]["method"] == "vamp-sbg"
