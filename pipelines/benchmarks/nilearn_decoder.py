"""nilearn's Decoder on the volumes of a problem, one outer fold at a time."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .nested import Outcome
from .problems import Problem


def decoder_fold(problem: Problem, held_out: int) -> Outcome:
    """Fit ``Decoder(estimator="logistic_l1")`` as its users do, with one outer fold: ``held_out`` is tested.

    Making the images is part of the call but takes a small share of it; users have them already.
    """
    import nibabel
    from nilearn.decoding import Decoder

    test = problem.runs == held_out
    images = nibabel.Nifti1Image(_volumes(problem), problem.affine)
    mask = nibabel.Nifti1Image(problem.mask.astype(np.uint8), problem.affine)
    decoder = Decoder(
        estimator="logistic_l1",
        mask=mask,
        cv=[(np.flatnonzero(~test), np.flatnonzero(test))],
        scoring="accuracy",
        standardize=False,  # each run already is
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        decoder.fit(images, problem.y)
    return _outcome(decoder, held_out, int(np.count_nonzero(test)))


def _volumes(problem: Problem) -> NDArray:
    """X back on its grid, (i, j, k, M) float32."""
    volumes = np.zeros((*problem.mask.shape, len(problem.y)), dtype=np.float32)
    volumes[problem.mask] = problem.X.T
    return volumes


def _outcome(decoder: Any, held_out: int, tested: int) -> Outcome:
    accuracy = float(next(iter(decoder.cv_scores_.values()))[0])
    weights = np.asarray(next(iter(decoder.coef_img_.values())).dataobj)
    return Outcome(
        {held_out: round((1 - accuracy) * tested)}, {held_out: tested}, float(np.count_nonzero(weights))
    )
