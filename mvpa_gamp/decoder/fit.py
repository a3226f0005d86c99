"""Inside a decoder: from images to rows, to the fits of all pairs, to answers about new rows."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from nilearn.maskers import NiftiMasker, SurfaceMasker
from numpy.typing import NDArray
from sklearn.utils.validation import check_memory

from mvpa_gamp.decoder.confounds import confounds_of_runs
from mvpa_gamp.decoder.images import (
    CLEANING,
    GRID,
    RowMasker,
    build_masker,
    extract,
    fit_mask_grid,
    open_images,
)
from mvpa_gamp.decoder.labels import (
    WITHOUT_GROUPS,
    check_classes,
    check_fold_confounds,
    check_groups,
    check_images_and_labels,
    gamp_method,
    groups_to_clean,
    scoring_of,
    weighted_method,
)
from mvpa_gamp.decoder.leakage import check_leakage
from mvpa_gamp.decoder.run_lists import join_runs
from mvpa_gamp.decoder.settings import DecoderSettings, mention_unused
from mvpa_gamp.decoding.covariate_check import check_covariates
from mvpa_gamp.decoding.crossval import HeldOut, held_out_answers
from mvpa_gamp.decoding.exchange import blocks_of_volumes
from mvpa_gamp.decoding.fold_confounds import FoldConfounds
from mvpa_gamp.decoding.leakage import Checked
from mvpa_gamp.decoding.multiclass import Answers, class_pairs, classify
from mvpa_gamp.decoding.pairwise import fit_pairs
from mvpa_gamp.decoding.permutation import PermutationTest, permutation_test
from mvpa_gamp.decoding.preparation import NoiseWhitening, Preparation, in_sequence, prepared_by_all
from mvpa_gamp.decoding.prepared import PreparedRefits, fit_prepared_pairs
from mvpa_gamp.decoding.scoring import mean_score, score_rows
from mvpa_gamp.decoding.splits import Splits, make_splits
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.scaling import Scaling
from mvpa_gamp.imaging.spaces import space_of
from mvpa_gamp.methods.fold_fits import FoldFits
from mvpa_gamp.methods.gamp import GampMethod

_NO_VARIANCE = 1e-12  # scores are of order one


@dataclass(frozen=True)
class Decoded:
    """What fit worked on and found, for predictions, permutation tests, reports and files.

    M images of K classes and N voxels, without the ignored ones. ``cleaned_by_group`` says whether every
    group was cleaned by itself.
    """

    method: GampMethod
    scoring: Any  # a name or a callable
    classes: NDArray  # (K,)
    X: NDArray  # (M, N) float32
    codes: NDArray  # (M,) class numbers
    groups: NDArray | None  # (M,)
    rows: NDArray  # (M,) place among the images given to fit
    splits: Splits
    fits: tuple[FoldFits, ...]  # one per pair of classes, each with its folds and refit
    center: NDArray  # (N,) mean of X
    masker: RowMasker
    mean_img: Any
    cleaned_by_group: bool
    connectivity: Any  # (N, N) which voxels are neighbours, None where the method does not ask
    notes: tuple[str, ...]
    leakage: Checked
    preparation: Preparation | None = None  # what folds do to X
    refits: PreparedRefits | None = None  # the refits where they do something
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


class Given(NamedTuple):
    """What ``fit`` was given, as it was given."""

    X: Any
    y: Any
    groups: Any
    fold_confounds: Any
    confounds: Any


def decode_images(decoder: DecoderSettings, given: Given, say: Callable[[str], None]) -> Decoded:
    """Check the input of a decoder's fit, mask and clean the images, and fit all pairs, folds and refits."""
    X, y, groups, fold_confounds, confounds = given
    mention_unused(decoder)
    method = gamp_method(decoder.method)
    series = open_images(X, decoder.mask)
    masker = build_masker(decoder.mask, _masker_settings(decoder), series)
    y, groups = join_runs(series.counts, y, groups)
    mask_notes = fit_mask_grid(masker, decoder.mask, series)
    y = check_images_and_labels(series.n_rows, y)
    groups = check_groups(groups, len(y))
    covariates = check_fold_confounds(fold_confounds, len(y))
    kept = ~is_ignored(y, decoder.ignore)
    if decoder.ignore is not None and kept.all():
        warnings.warn(
            f"ignore={decoder.ignore!r} does not occur in y, so no image was left out.", stacklevel=3
        )
    classes = check_classes(y[kept], decoder.ignore)
    method = weighted_method(method, decoder.class_weight, classes)
    scoring = scoring_of(decoder.scoring, len(classes))
    codes = np.searchsorted(classes, y[kept])
    kept_groups = None if groups is None else groups[kept]
    splits = make_splits(decoder.cv, codes, classes, kept_groups)
    say(splits.sentence)
    cleaned_by, notes = groups_to_clean(groups, masker, confounds is not None)
    nuisance = confounds_of_runs(confounds, series.counts, cleaned_by)
    found = extract(masker, series, cleaned_by, nuisance)
    notes = mask_notes + notes + found.notes
    if groups is None and decoder.cv is None:
        notes += (WITHOUT_GROUPS,)
    rows = np.ascontiguousarray(found.X[kept])
    leakage = check_leakage(decoder, found, classes[codes], kept_groups, np.flatnonzero(kept), splits)
    n_pairs = len(classes) * (len(classes) - 1) // 2
    say(
        f"{len(rows)} images of {len(classes)} classes and {rows.shape[1]} {series.elements}: "
        f"{len(splits.folds.held_out) + 1} fits of "
        f"{'each of ' * (n_pairs > 1)}{n_pairs} pair{'s' * (n_pairs > 1)}."
    )
    runs = np.zeros(len(rows)) if kept_groups is None else np.unique(kept_groups, return_inverse=True)[1]
    blocks = blocks_of_volumes(codes, runs, np.flatnonzero(kept))
    in_folds = None if covariates is None else FoldConfounds(covariates[kept])
    if in_folds is not None and kept_groups is not None:
        named = confounded(in_folds, codes, classes, runs, blocks)
        if decoder.strict and named:
            raise ValueError(f"strict=True: {named[0]}")
        notes += named
    for note in notes:
        warnings.warn(note, stacklevel=3)
    connectivity = space_of(found.masker.mask_img_).connectivity() if method.uses_connectivity else None
    places = np.flatnonzero(kept)
    known: dict[str, Any] = {"n_jobs": decoder.n_jobs, "connectivity": connectivity}
    preparation = in_sequence([in_folds, NoiseWhitening(blocks) if decoder.whiten else None])
    refits = None
    if preparation is None:
        solve = check_memory(_location(decoder.memory)).cache(fit_pairs, ignore=["n_jobs"])
        fits = solve(method, rows, codes, runs, splits.folds, **known)
    else:
        fits, refits = fit_prepared_pairs(method, rows, preparation, codes, runs, splits.folds, **known)
    return Decoded(
        method=method,
        scoring=scoring,
        classes=classes,
        X=rows,
        codes=codes,
        groups=kept_groups,
        rows=places,
        splits=splits,
        fits=fits,
        center=rows.mean(axis=0, dtype=float).astype(rows.dtype),
        masker=found.masker,
        mean_img=found.mean_img,
        cleaned_by_group=cleaned_by is not None,
        connectivity=connectivity,
        notes=notes,
        preparation=preparation,
        refits=refits,
        confounds=in_folds,
        leakage=leakage,
        n_confounds=max((each.values.shape[1] for each in (nuisance or {}).values()), default=0),
        scaling=found.scaling,
        shortest_run=len(y) if cleaned_by is None else min(Counter(cleaned_by.tolist()).values()),
    )


def confounded(
    confounds: FoldConfounds, codes: NDArray, classes: NDArray, runs: NDArray, blocks: NDArray
) -> tuple[str, ...]:
    """Sentences about covariates that decode a pair of classes by themselves."""
    names = [f"number {column + 1}" for column in range(confounds.values.shape[1])]
    tasks = [
        Task(str(classes[i]), str(classes[j]), at, np.where(codes[at] == i, 1.0, -1.0))
        for i, j in class_pairs(len(classes))
        if (at := np.flatnonzero((codes == i) | (codes == j))).size and np.unique(runs[at]).size > 1
    ]
    found = check_covariates(confounds.values, names, tasks, runs, blocks)
    return tuple(each.caution for each in found if each.caution)


def answers(data: Decoded, rows: NDArray, covariates: NDArray | None = None) -> Answers:
    """Decision, class probabilities and class numbers of new rows (m, N), by the refits.

    The score of a pair has mean X w + b and, under the posterior, variance S tau_w with S the squares of X
    around the mean of the training images, as in the fits. Where folds prepare X, new rows are prepared as
    for the refits.
    """
    refit, center = FoldFits.join([fits.refit for fits in data.fits]), data.center
    if data.refits is not None:
        rows = data.refits.fitted.apply(rows, covariates)
        refit, center = data.refits.fits, data.refits.center
    z = rows @ refit.coef + refit.intercept
    variance = np.zeros_like(z)
    if refit.coef_std is not None:
        variance = np.square(rows - center) @ np.square(refit.coef_std)
    proba = data.method.likelihood.predict_proba(z, np.maximum(variance, _NO_VARIANCE))
    return classify(z, proba, len(data.classes))


def permute(data: Decoded, n: int, exchange: str, seed: int, n_jobs: int) -> PermutationTest:
    """The permutation test of the mean score over folds."""
    groups = np.zeros(len(data.codes)) if data.groups is None else data.groups
    blocks = blocks_of_volumes(data.codes, groups, data.rows) if exchange == "block" else None

    def judge(codes: NDArray, said: HeldOut) -> float:
        judged = classify(said.decision, said.proba, len(data.classes))
        return mean_score(score_rows(data.scoring, data.classes, codes[said.rows], *judged, said.fold))

    return permutation_test(
        data.method, data.X, data.codes, groups, n, seed=seed, exchange=exchange, blocks=blocks,
        folds=data.splits.folds, score=None if data.scoring == "accuracy" else judge, n_jobs=n_jobs,
        connectivity=data.connectivity, preparation=data.preparation,
    )  # fmt: skip


def is_ignored(y: NDArray, ignore: Any) -> NDArray:
    """Which labels (M,) are among those to leave out."""
    if ignore is None:
        return np.zeros(len(y), dtype=bool)
    several = isinstance(ignore, Iterable) and not isinstance(ignore, str)
    return np.isin(y, list(ignore) if several else [ignore])


def _masker_settings(decoder: DecoderSettings) -> dict[str, Any]:
    """Settings of the decoder's masker; where there is a memory, nilearn asks for a level of at least 1."""
    level = 0 if decoder.memory is None else max(1, decoder.memory_level)
    return {name: getattr(decoder, name) for name in (*CLEANING, *GRID)} | {
        "detrend": _is_detrended(decoder),
        "memory": decoder.memory,
        "memory_level": level,
        "verbose": max(int(decoder.verbose) - 1, 0),
    }


def _is_detrended(decoder: DecoderSettings) -> bool:
    """Whether lines are removed; "auto": where ``ignore`` says that runs are whole, or a masker decides.

    Of a run's volumes of two conditions, often one block each, a line is most of the difference.
    """
    if isinstance(decoder.detrend, str) and decoder.detrend == "auto":
        return decoder.ignore is not None and not isinstance(decoder.mask, (NiftiMasker, SurfaceMasker))
    if not isinstance(decoder.detrend, (bool, np.bool_)):
        raise ValueError(f"detrend: expected 'auto', True or False, got {decoder.detrend!r}. Change it.")
    return bool(decoder.detrend)


def _location(memory: Any) -> Any:
    return str(memory) if isinstance(memory, Path) else memory
