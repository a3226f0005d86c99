"""What a decoder's fit worked on and found, and its answers about new rows and permuted labels."""

import warnings
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from mvpa_gamp.decoder.images import ImageSeries, RowMasker, open_images, transform
from mvpa_gamp.decoder.inputs import check_groups, confounds_of_runs, groups_to_clean
from mvpa_gamp.decoding.exchange import blocks_of_volumes
from mvpa_gamp.decoding.fit import Refits, Scheme
from mvpa_gamp.decoding.fold_confounds import FoldConfounds
from mvpa_gamp.decoding.leakage import Checked
from mvpa_gamp.decoding.multiclass import Answers, class_pairs, classify
from mvpa_gamp.decoding.permutation import PermutationTest, permutation_test
from mvpa_gamp.decoding.preparation import Preparation, prepared_by_all
from mvpa_gamp.decoding.scorers import mean_score, score_rows
from mvpa_gamp.decoding.scores import HeldOut, held_out_answers
from mvpa_gamp.decoding.splits import Splits
from mvpa_gamp.imaging.scaling import Scaling
from mvpa_gamp.methods.fold_fits import FoldFits, Method
from mvpa_gamp.methods.scikit import model_answers

_NO_VARIANCE = 1e-12  # scores are of order one


@dataclass(frozen=True)
class Decoded:
    """What fit worked on and found, for predictions, permutation tests, reports and files.

    M images of K classes and N voxels, without the ignored ones. ``cleaned_by_group`` says whether every
    group was cleaned by itself.
    """

    method: Method
    scoring: Any  # a name or a callable
    classes: NDArray  # (K,)
    X: NDArray  # (M, N) float32
    codes: NDArray  # (M,) class numbers
    groups: NDArray | None  # (M,)
    rows: NDArray  # (M,) place among the images given to fit
    splits: Splits
    fits: tuple[FoldFits, ...]  # one per pair of classes, each with its folds and refit
    masker: RowMasker
    mean_img: Any
    cleaned_by_group: bool
    connectivity: Any  # (N, N) which voxels are neighbours, None where the method does not ask
    notes: tuple[str, ...]
    leakage: Checked
    preparation: Preparation  # what folds do to X
    refits: Refits
    confounds: FoldConfounds | None = None
    n_confounds: int = 0  # regressed out of each run, the largest number
    scaling: Scaling | None = None  # what cleaning did to the runs
    shortest_run: int = 0  # images of the smallest group that was cleaned by itself

    @property
    def pairs(self) -> list[tuple[Any, Any]]:
        """The two classes of each pair, in the order of ``fits``."""
        names = self.classes.tolist()
        return [(names[i], names[j]) for i, j in class_pairs(len(names))]

    @property
    def covariate_names(self) -> list[str]:
        """Of the covariates regressed out inside folds, which have numbers only."""
        count = 0 if self.confounds is None else self.confounds.values.shape[1]
        return [f"number {column + 1}" for column in range(count)]

    @property
    def without_confounds(self) -> "Decoded":
        """The same with X without what covariates explain in all images, for tests of single voxels."""
        if self.confounds is None:
            return self
        return replace(self, X=prepared_by_all(self.confounds, self.X).X)

    @property
    def said(self) -> HeldOut:
        """What the pairs say about held-out images, fold after fold."""
        return held_out_answers(self.fits)

    @property
    def n_folds(self) -> int:
        """Folds, without the refit."""
        return self.fits[0].n_folds


def answers(data: Decoded, rows: NDArray, covariates: NDArray | None = None) -> Answers:
    """Decision, class probabilities and class numbers of new rows (m, N), by the refits.

    The score of a pair has mean X w + b and, under the posterior, variance S tau_w with S the squares of X
    around the mean of the training images, as in the fits. Where folds prepare X, new rows are prepared as
    for the refits.
    """
    fitted, refit, center = data.refits
    rows = fitted.apply(rows, covariates)
    if refit.models is not None:
        said = [model_answers(model, rows) for model in refit.models]
        z, proba = (np.column_stack(parts) for parts in zip(*said, strict=True))
        return classify(z, proba, len(data.classes))
    z = rows @ refit.coef + refit.intercept
    return classify(z, _probabilities(data.method, refit, rows - center, z), len(data.classes))


def _probabilities(method: Any, refit: FoldFits, centred: NDArray, z: NDArray) -> NDArray:
    """The probability of +1 of scores z (m, P): averaged over the posterior, logistic, or not known (NaN)."""
    if not hasattr(method, "likelihood"):
        return np.where(np.isnan(refit.proba).all(axis=0), np.nan, expit(z))
    variance = np.zeros_like(z)
    if refit.coef_std is not None:
        variance = np.square(centred) @ np.square(refit.coef_std)
    return np.asarray(method.likelihood.predict_proba(z, np.maximum(variance, _NO_VARIANCE)))


def permute(data: Decoded, n: int, exchange: str, seed: int, n_jobs: int) -> PermutationTest:
    """The permutation test of the mean score over folds."""
    groups = np.zeros(len(data.codes)) if data.groups is None else data.groups
    blocks = blocks_of_volumes(data.codes, groups, data.rows) if exchange == "block" else None

    def judge(codes: NDArray, said: HeldOut) -> float:
        judged = classify(said.decision, said.proba, len(data.classes))
        return mean_score(score_rows(data.scoring, data.classes, codes[said.rows], *judged, said.fold))

    scheme = Scheme(data.splits.folds, None, data.preparation, data.connectivity, exchange, blocks, seed)
    score = None if data.scoring == "accuracy" else judge
    return permutation_test(data.method, data.X, data.codes, groups, n, scheme, score=score, n_jobs=n_jobs)


OWN, TRAINING = "own", "training"


# Of real volumes of two conditions, a held-out run is decoded as well from 6 z-scored alone as from all 18
# (0.81 and 0.82), from 4 with 0.77, from 2 with 0.71.
_FEW = 6


_OF_A_RUN = 0.5  # Where whole runs are detrended, 18 volumes of 121 have 0.61, the run 0.93.


def new_rows(decoder: Any, X: Any, groups: Any, confounds: Any) -> NDArray:
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
