"""New images for a fitted decoder: cleaned by themselves, or scaled as the runs of fit were."""

import warnings
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoder.confounds import confounds_of_runs
from mvpa_gamp.decoder.decoded import Decoded
from mvpa_gamp.decoder.fitted import FittedDecoder
from mvpa_gamp.decoder.images import ImageSeries, open_images, transform
from mvpa_gamp.decoder.labels import check_groups, groups_to_clean
from mvpa_gamp.imaging.scaling import Scaling

OWN, TRAINING = "own", "training"
# Of real volumes of two conditions, a held-out run is decoded as well from 6 z-scored alone as from all 18
# (0.81 and 0.82), from 4 with 0.77, from 2 with 0.71.
_FEW = 6
_OF_A_RUN = 0.5  # Where whole runs are detrended, 18 volumes of 121 have 0.61, the run 0.93.


def new_rows(decoder: FittedDecoder, X: Any, groups: Any, confounds: Any) -> NDArray:
    """Masked rows (m, N) of new images, in the units of the rows that the decoder was fitted to."""
    if decoder.predict_scaling not in (OWN, TRAINING):
        raise ValueError(
            f"predict_scaling: expected {OWN!r} or {TRAINING!r}, got {decoder.predict_scaling!r}. Change it."
        )
    masker, series = decoder.masker_, open_images(X, decoder.mask_img_)
    groups = check_groups(groups, series.n_rows)
    if decoder.predict_scaling == TRAINING:
        return _as_in_training(masker, decoder._data.scaling, series, confounds)
    runs = groups_to_clean(groups, masker, confounds is not None)[0]
    nuisance = confounds_of_runs(confounds, series.counts, runs)
    with warnings.catch_warnings():
        # Said below in other words: nilearn leaves a single volume as it is.
        warnings.filterwarnings("ignore", message=".* of 3D signal has been requested but would lead to zero")
        rows = transform(masker, series, runs, nuisance).astype(np.float64)
    _mention_few(decoder._data, len(rows), runs)
    return rows


def _as_in_training(masker: Any, scaling: Scaling | None, series: ImageSeries, confounds: Any) -> NDArray:
    """Rows of images as they are, with the mean and spread of the runs of fit."""
    if confounds is not None:
        raise ValueError(
            f"confounds: predict_scaling={TRAINING!r} scales each image separately, so there is no time "
            "series from which confounds could be regressed out. Leave out confounds, or set "
            f"predict_scaling={OWN!r}."
        )
    raw = transform(masker.uncleaned(), series).astype(np.float64)
    return raw if scaling is None else scaling.apply(raw)


def _mention_few(data: Decoded, n_images: int, runs: NDArray | None) -> None:
    """Warn where so few images are cleaned together, against the runs of fit, that the signal goes too."""
    masker, fewest = data.masker, n_images if runs is None else min(Counter(runs.tolist()).values())
    whole_runs = masker.detrend and data.cleaned_by_group
    enough = max(_FEW, int(_OF_A_RUN * data.shortest_run)) if whole_runs else _FEW
    if not masker.cleans or fewest >= min(enough, data.shortest_run):
        return
    steps = " and ".join(
        word for word, done in (("detrended", masker.detrend), ("z-scored", masker.standardize)) if done
    )
    warnings.warn(
        f"{fewest} image{'s were' if fewest > 1 else ' was'} {steps or 'filtered'} separately, which "
        "removes much of the signal along with the mean. Predict whole runs, or set "
        "decoder.predict_scaling = 'training' to use the mean and spread of the training runs instead.",
        stacklevel=5,
    )
