"""A fitted model: what it was fitted to, and what answers about new images, fitted or read from a folder."""

import warnings
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from mvpa_gamp.coupling import Answers, class_pairs, classify
from mvpa_gamp.decoder.images import ImageSeries, RowMasker, open_images, transform
from mvpa_gamp.decoder.inputs import check_groups, confounds_of_runs, groups_to_clean
from mvpa_gamp.decoder.maps import contrast_key
from mvpa_gamp.decoding.exchange import blocks_of_volumes
from mvpa_gamp.decoding.fit import Refits, Scheme
from mvpa_gamp.decoding.folds import Splits, one_class_each
from mvpa_gamp.decoding.leakage import Checked
from mvpa_gamp.decoding.permutation import PermutationTest, permutation_test
from mvpa_gamp.decoding.preparation import FoldConfounds, Preparation, prepared_by_all
from mvpa_gamp.decoding.scores import HeldOut, held_out_answers, mean_score, score_rows
from mvpa_gamp.imaging.matrix import Scaling
from mvpa_gamp.methods.fold_fits import FoldFits, Method
from mvpa_gamp.methods.scikit import model_answers

OWN, TRAINING = "own", "training"
SCALINGS = ("none", "centre", "zscore")
FEWEST = {"centre": 2, "zscore": 3}  # images of a group
# Of real volumes of two conditions, a held-out run is decoded as well from 6 z-scored alone as from all 18
# (0.81 and 0.82), from 4 with 0.77, from 2 with 0.71.
_FEW = 6
_OF_A_RUN = 0.5  # Where whole runs are detrended, 18 volumes of 121 have 0.61, the run 0.93.
_NO_VARIANCE = 1e-12  # scores are of order one
_OTHER_SCALE = 4.0  # times as large or as small: other units, or no cleaning; runs and people differ by less


class Link(NamedTuple):
    """How scores become probabilities: with a likelihood, averaged over the posterior of the weights; with
    slopes (P,), by the logistic function; with neither, not at all."""

    likelihood: Any = None
    slope: NDArray | None = None

    def probabilities(self, z: NDArray, variance: NDArray) -> NDArray:
        """The probability of the first class of each pair, (m, P), from scores and their variance."""
        if self.likelihood is not None:
            return np.asarray(self.likelihood.predict_proba(z, np.maximum(variance, _NO_VARIANCE)))
        return np.full(z.shape, np.nan) if self.slope is None else expit(self.slope * z)


@dataclass(frozen=True)
class FittedModel:
    """Weights of P pairs of K classes at N voxels, and how new images become rows that they apply to.

    Positive scores ``rows @ coef + intercept`` speak for the first class of a pair. Without ``classes`` there
    is one vector of weights, whose scores are predictions of a number. ``models`` answer in place of the
    weights where these only follow them.
    """

    method: str
    classes: NDArray | None  # (K,)
    coef: NDArray  # (N, P)
    intercept: NDArray  # (P,)
    coef_std: NDArray | None  # (N, P)
    center: NDArray  # (N,) mean of the training rows
    link: Link
    masker: Any  # of RowMasker; None for rows of features
    scaling: Scaling | None  # what cleaning did to the training runs
    cleaned_by_group: bool
    shortest_run: int
    size: float  # root mean square of the training rows; 0: not known
    models: NDArray | None = None  # (P,)
    target: str = ""  # the name of the number
    within: str = ""  # how images of a group were scaled together: "centre", "zscore"

    @property
    def pairs(self) -> list[tuple[Any, Any]]:
        """The two classes of each pair."""
        names = [] if self.classes is None else self.classes.tolist()
        return [(names[i], names[j]) for i, j in class_pairs(len(names))] if names else []

    @property
    def contrasts(self) -> list[str]:
        """The names of the weights."""
        return [contrast_key(*pair) for pair in self.pairs] or [self.target or "target"]

    @property
    def has_probabilities(self) -> bool:
        """Whether answers have them."""
        if self.models is not None:
            return all(hasattr(each, "predict_proba") for each in self.models)
        return self.link != Link()

    def scores(self, rows: NDArray) -> NDArray:
        """What weights and intercept say about rows (m, N): (m, P)."""
        return np.asarray(rows @ self.coef + self.intercept)

    def answers(self, rows: NDArray) -> Answers:
        """Decision, class probabilities and class numbers of rows (m, N).

        The score of a pair has mean X w + b and, under the posterior, variance S tau_w with S the squares of
        X around the mean of the training images, as in the fits.
        """
        assert self.classes is not None
        if self.models is not None:
            said = [model_answers(model, rows) for model in self.models]
            z, proba = (np.column_stack(parts) for parts in zip(*said, strict=True))
            return classify(z, proba, len(self.classes))
        z = self.scores(rows)
        variance = np.zeros_like(z)
        if self.coef_std is not None:
            variance = np.square(rows - self.center) @ np.square(self.coef_std)
        return classify(z, self.link.probabilities(z, variance), len(self.classes))

    def rows(self, X: Any, groups: Any = None, confounds: Any = None, scaling: str = OWN) -> NDArray:
        """Masked rows (m, N) of new images, in the units of the rows that the model was fitted to.

        ``scaling`` "own" cleans them by themselves, "training" with the mean and spread of the runs of fit;
        images that are scaled within their group, of which none is given, are scaled as in training.
        """
        if scaling not in (OWN, TRAINING):
            raise ValueError(
                f"predict_scaling: expected {OWN!r} or {TRAINING!r}, got {scaling!r}. Change it."
            )
        series = open_images(X, self.masker.mask_img_)
        groups = check_groups(groups, series.n_rows)
        if self.within and groups is None:
            scaling = TRAINING  # nobody's other images are known
        if self.within and scaling == OWN:
            raw = transform(self.masker, series).astype(np.float64)
            rows = scaled(raw, groups, self.within)
        elif scaling == TRAINING:
            rows = self._as_in_training(series, confounds)
        else:
            runs = groups_to_clean(groups, self.masker, confounds is not None)[0]
            nuisance = confounds_of_runs(confounds, series.counts, runs)
            with warnings.catch_warnings():
                # Said below in other words: nilearn leaves a single volume as it is.
                warnings.filterwarnings("ignore", message=".* of 3D signal has been requested but would lead")
                rows = transform(self.masker, series, runs, nuisance).astype(np.float64)
            if self._mention_few(len(rows), runs):
                return rows
        self.mention_scale(rows)
        return rows

    def _as_in_training(self, series: ImageSeries, confounds: Any) -> NDArray:
        """Rows of images as they are, with the mean and spread of the runs of fit."""
        if confounds is not None:
            raise ValueError(
                f"confounds: predict_scaling={TRAINING!r} scales each image separately, so there is no time "
                "series from which confounds could be regressed out. Leave out confounds, or set "
                f"predict_scaling={OWN!r}."
            )
        raw = transform(self.masker.uncleaned(), series).astype(np.float64)
        return raw if self.scaling is None else self.scaling.apply(raw)

    def _mention_few(self, n_images: int, runs: NDArray | None) -> bool:
        """Warn, and say so, where so few images are cleaned together that the signal goes too."""
        masker, fewest = self.masker, n_images if runs is None else min(Counter(runs.tolist()).values())
        whole_runs = masker.detrend and self.cleaned_by_group
        enough = max(_FEW, int(_OF_A_RUN * self.shortest_run)) if whole_runs else _FEW
        if not masker.cleans or fewest >= min(enough, self.shortest_run):
            return False
        steps = " and ".join(
            word for word, done in (("detrended", masker.detrend), ("z-scored", masker.standardize)) if done
        )
        warnings.warn(
            f"{fewest} image{'s were' if fewest > 1 else ' was'} {steps or 'filtered'} separately, which "
            "removes much of the signal along with the mean. Predict whole runs, or set "
            "decoder.predict_scaling = 'training' to use the mean and spread of the training runs instead.",
            stacklevel=5,
        )
        return True

    def mention_scale(self, rows: NDArray) -> None:
        """Warn where the images are much larger or smaller than those of fit, in the same units."""
        size = root_mean_square(rows)
        if not (self.size and size) or 1 / _OTHER_SCALE < size / self.size < _OTHER_SCALE:
            return
        warnings.warn(
            f"The new images are {size / self.size:.3g} times as large as those that the model was fitted to "
            f"(root mean square {size:.3g}, there {self.size:.3g}), so scores are not comparable. Give "
            "images in the same units and with the same processing.",
            stacklevel=5,
        )


def scaled(rows: NDArray, groups: NDArray | None, scaling: str) -> NDArray:
    """Rows (M, N) with what each group's own rows say taken out; one group where there are none."""
    if scaling == "none":
        return rows
    at = np.zeros(len(rows), dtype=int) if groups is None else np.unique(groups, return_inverse=True)[1]
    out = np.empty_like(rows)
    for group in range(at.max() + 1):
        mine = at == group
        if mine.sum() < FEWEST[scaling]:
            raise ValueError(
                f"scaling={scaling!r} needs at least {FEWEST[scaling]} images of every group, got "
                f"{mine.sum()}. Use scaling='none'."
            )
        part = rows[mine] - rows[mine].mean(axis=0, dtype=float).astype(rows.dtype)
        if scaling == "zscore":
            spread = part.std(axis=0, ddof=1)
            part /= np.where(spread > 0, spread, 1)
        out[mine] = part
    return out


def pooled(raw: NDArray, groups: NDArray | None, scaling: str) -> Scaling | None:
    """What ``scaled`` did on average, for images of new groups one at a time."""
    if scaling == "none":
        return None
    spread = np.ones(raw.shape[1])
    if scaling == "zscore":
        centred = scaled(raw.astype(float), groups, "centre")
        n_groups = 1 if groups is None else len(np.unique(groups))
        deviation = np.sqrt(np.square(centred).sum(axis=0) / max(1, len(raw) - n_groups))
        spread = np.where(deviation > 0, deviation, np.inf)
    return Scaling(raw.mean(axis=0, dtype=float), spread, np.zeros(raw.shape[1]))


def root_mean_square(rows: NDArray) -> float:
    """The typical size of values (m, N): the median over rows of the root of their mean square."""
    return float(np.median(np.sqrt(np.einsum("mn,mn->m", rows, rows, dtype=float) / rows.shape[1])))


def link_of(method: Any, refit: FoldFits) -> Link:
    """How the probabilities of a method follow from its scores."""
    if hasattr(method, "likelihood"):
        return Link(likelihood=method.likelihood)
    if np.isnan(refit.proba).all():
        return Link()
    return Link(slope=np.asarray(refit.parameters.get("slope", np.ones(refit.coef.shape[1])), dtype=float))


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
    within: str = ""  # how images of a group were scaled together
    are_maps: bool = False  # whether every image is a single map
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
    def exchanged_within(self) -> NDArray:
        """Within what labels are exchanged (M,): groups; folds (else all) where every group has one class."""
        if self.groups is None:
            return np.zeros(len(self.codes))
        if not one_class_each(self.groups, self.codes):
            return self.groups
        tested = self.splits.folds.tested
        return tested.argmax(axis=1) if (tested.sum(axis=1) == 1).all() else np.zeros(len(self.codes))

    @property
    def blocks(self) -> NDArray:
        """What is exchanged as a whole (M,): stretches of one class and group; groups of one class each."""
        if self.groups is not None and one_class_each(self.groups, self.codes):
            return np.asarray(np.unique(self.groups, return_inverse=True)[1])
        groups = np.zeros(len(self.codes)) if self.groups is None else self.groups
        return blocks_of_volumes(self.codes, groups, self.rows)

    @property
    def said(self) -> HeldOut:
        """What the pairs say about held-out images, fold after fold."""
        return held_out_answers(self.fits)

    @property
    def n_folds(self) -> int:
        """Folds, without the refit."""
        return self.fits[0].n_folds


def model_of(data: Decoded) -> FittedModel:
    """What answers about new images: the refits; where folds prepare X, about rows prepared as for them."""
    _, refit, center = data.refits
    return FittedModel(
        method=data.method.name,
        classes=data.classes,
        coef=np.ascontiguousarray(refit.coef),
        intercept=refit.intercept,
        coef_std=None if refit.coef_std is None else np.ascontiguousarray(refit.coef_std),
        center=center,
        link=link_of(data.method, refit),
        masker=data.masker,
        scaling=data.scaling,
        within=data.within,
        cleaned_by_group=data.cleaned_by_group,
        shortest_run=data.shortest_run,
        size=root_mean_square(data.X),
        models=refit.models,
    )


def permute(data: Decoded, n: int, exchange: str, seed: int, n_jobs: int) -> PermutationTest:
    """The permutation test of the mean score over folds."""
    groups, blocks = data.exchanged_within, data.blocks if exchange == "block" else None

    def judge(codes: NDArray, said: HeldOut) -> float:
        judged = classify(said.decision, said.proba, len(data.classes))
        return mean_score(score_rows(data.scoring, data.classes, codes[said.rows], *judged, said.fold))

    scheme = Scheme(data.splits.folds, None, data.preparation, data.connectivity, exchange, blocks, seed)
    score = None if data.scoring == "accuracy" else judge
    return permutation_test(data.method, data.X, data.codes, groups, n, scheme, score=score, n_jobs=n_jobs)
