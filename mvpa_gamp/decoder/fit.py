"""Inside a decoder's fit: from images to rows, the leakage check, and the fits of all pairs."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from nilearn.maskers import NiftiMasker, SurfaceMasker
from numpy.typing import NDArray
from sklearn.utils.validation import check_memory

from mvpa_gamp.coupling import class_pairs
from mvpa_gamp.decoder.images import (
    CLEANING,
    GRID,
    Extracted,
    ImageSeries,
    RowMasker,
    build_masker,
    extract,
    fit_mask_grid,
    open_images,
)
from mvpa_gamp.decoder.inputs import (
    WITHOUT_GROUPS,
    DecoderSettings,
    check_classes,
    check_fold_confounds,
    check_groups,
    check_images_and_labels,
    chosen_method,
    confounds_of_runs,
    groups_to_clean,
    join_runs,
    mention_unused,
    needs_probabilities,
    scoring_of,
    weighted_method,
)
from mvpa_gamp.decoder.model import FEWEST, SCALINGS, Decoded, pooled, scaled
from mvpa_gamp.decoding.exchange import blocks_of_volumes
from mvpa_gamp.decoding.fit import PairFits, Scheme, fit_pairs
from mvpa_gamp.decoding.folds import Splits, make_splits
from mvpa_gamp.decoding.leakage import Checked, Evidence, find_leakage
from mvpa_gamp.decoding.preparation import FoldConfounds, NoiseWhitening, Preparation, in_sequence
from mvpa_gamp.decoding.scores import OF_PROBABILITIES
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.decoding.ties import check_covariates
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.processing import MIN_SERIES, MIN_VOLUMES, Processing, check_series, sorted_by_class
from mvpa_gamp.imaging.spaces import space_of
from mvpa_gamp.methods.fold_fits import Method

# Of fewer images of a group, those that are cleaned together contain enough of each other to be decoded where
# folds train on some and test on others (docs/leakage.md).
MIN_SPLIT = 20


class Given(NamedTuple):
    """What ``fit`` was given, as it was given."""

    X: Any
    y: Any
    groups: Any
    fold_confounds: Any
    confounds: Any


def decode_images(decoder: DecoderSettings, given: Given, say: Callable[[str], None]) -> Decoded:
    """Check the input of a decoder's fit, mask and clean the images, and fit all pairs, folds and refits."""
    mention_unused(decoder)
    asked = _asked(decoder, given)
    say(asked.splits.sentence)
    rows = _rows(decoder, asked, given.confounds)
    leakage = check_leakage(decoder, asked, rows.found)
    say(_size_told(asked, rows))
    covariates = None if asked.covariates is None else FoldConfounds(asked.covariates)
    notes = rows.notes + _covariate_notes(decoder, asked, covariates)
    for note in notes:
        warnings.warn(note, stacklevel=3)
    fitted = _fitted(decoder, asked, rows, covariates)
    if asked.scoring in OF_PROBABILITIES:
        needs_probabilities(asked.method, fitted.pairs.fits, f"scoring={asked.scoring!r}")
    return Decoded(
        method=asked.method,
        scoring=asked.scoring,
        classes=asked.classes,
        X=rows.X,
        codes=asked.codes,
        groups=asked.groups,
        rows=asked.places,
        splits=asked.splits,
        masker=rows.found.masker,
        mean_img=rows.found.mean_img,
        cleaned_by_group=rows.cleaned_by is not None,
        notes=notes,
        confounds=covariates,
        leakage=leakage,
        n_confounds=max((each.values.shape[1] for each in (rows.nuisance or {}).values()), default=0),
        scaling=rows.found.scaling,
        within="" if asked.within == "none" else asked.within,
        are_maps=are_maps(asked.series),
        shortest_run=len(asked.kept) if rows.cleaned_by is None else min(_sizes(rows.cleaned_by)),
        fits=fitted.pairs.fits,
        refits=fitted.pairs.refits,
        preparation=fitted.preparation,
        connectivity=fitted.connectivity,
    )


@dataclass(frozen=True)
class _Asked:
    """What a fit is about: n images given, of which M are kept, and how they are decoded."""

    series: ImageSeries
    masker: RowMasker
    method: Method
    scoring: Any
    kept: NDArray  # (n,) bool: not ignored
    given_groups: NDArray | None  # (n,)
    covariates: NDArray | None  # (M, q)
    within: str  # how images of a group are scaled together, "" where standardize says
    classes: NDArray
    codes: NDArray  # (M,)
    splits: Splits
    notes: tuple[str, ...]  # on the mask

    @property
    def places(self) -> NDArray:
        """The kept images among those given, (M,)."""
        return np.flatnonzero(self.kept)

    @property
    def groups(self) -> NDArray | None:
        """The group of each kept image, (M,)."""
        return None if self.given_groups is None else self.given_groups[self.kept]

    @property
    def runs(self) -> NDArray:
        """The same as numbers, all 0 without groups."""
        if self.groups is None:
            return np.zeros(len(self.codes))
        return np.asarray(np.unique(self.groups, return_inverse=True)[1])

    @property
    def blocks(self) -> NDArray:
        """Stretches of successive images of one class and group."""
        return blocks_of_volumes(self.codes, self.runs, self.places)


def _asked(decoder: DecoderSettings, given: Given) -> _Asked:
    """Open the images, and check labels, groups and settings against them."""
    method = chosen_method(decoder.method)
    series = open_images(given.X, decoder.mask)
    y, groups = join_runs(series.counts, given.y, given.groups)
    y = check_images_and_labels(series.n_rows, y)
    groups = check_groups(groups, len(y))
    smallest = len(y) if groups is None else min(_sizes(groups))
    kept = ~is_ignored(y, decoder.ignore)
    within = _within(decoder, series, y, groups, kept)
    fixed = groups is not None and sorted_by_class(y, groups)
    masker = build_masker(decoder.mask, _masker_settings(decoder, series, smallest, within, fixed), series)
    if within and masker.cleans:
        raise ValueError(
            f"scaling={within!r}: the masker given as mask cleans images already. Give one that does not."
        )
    notes = fit_mask_grid(masker, decoder.mask, series)
    covariates = check_fold_confounds(given.fold_confounds, len(y))
    if decoder.ignore is not None and kept.all():
        warnings.warn(
            f"ignore={decoder.ignore!r} does not occur in y, so no image was left out.", stacklevel=4
        )
    classes = check_classes(y[kept], decoder.ignore)
    method = weighted_method(method, decoder.class_weight, classes)
    scoring = scoring_of(decoder.scoring, len(classes))
    codes = np.searchsorted(classes, y[kept])
    splits = make_splits(decoder.cv, codes, classes, None if groups is None else groups[kept])
    mine = None if covariates is None else covariates[kept]
    return _Asked(series, masker, method, scoring, kept, groups, mine, within, classes, codes, splits, notes)


class _Rows(NamedTuple):
    """The kept images as rows of voxels, cleaned, and what is to be said about that."""

    X: NDArray  # (M, N)
    found: Extracted
    cleaned_by: NDArray | None  # (n,) the group that each image given was cleaned with
    nuisance: Any  # confounds by group
    notes: tuple[str, ...]


def _rows(decoder: DecoderSettings, asked: _Asked, confounds: Any) -> _Rows:
    """Mask and clean all images given; the ignored ones help to clean their run."""
    cleaned_by, notes = groups_to_clean(asked.given_groups, asked.masker, confounds is not None)
    in_time = {name: getattr(asked.masker, name) for name in ("detrend", "high_pass", "low_pass")}
    sizes = Counter(np.zeros(len(asked.kept)).tolist() if cleaned_by is None else cleaned_by.tolist())
    check_series(Processing(**in_time), sizes, are_maps(asked.series))
    if cleaned_by is not None:
        _check_whole_groups(asked, min(sizes.values()))
    nuisance = confounds_of_runs(confounds, asked.series.counts, cleaned_by)
    found = extract(asked.masker, asked.series, cleaned_by, nuisance)
    if asked.within in FEWEST:
        return _scaled_within(asked, found, mention=decoder.scaling is None)
    notes = asked.notes + notes + found.notes
    if asked.given_groups is None and decoder.cv is None:
        notes += (WITHOUT_GROUPS,)
    return _Rows(np.ascontiguousarray(found.X[asked.kept]), found, cleaned_by, nuisance, notes)


def _check_whole_groups(asked: _Asked, smallest: int) -> None:
    """Refuse folds that train and test on images of one small group, which cleaning has mixed."""
    assert asked.groups is not None
    folds, groups = asked.splits.folds, asked.runs
    if smallest >= MIN_SPLIT or asked.splits.leave_one_group_out:
        return
    if any(
        np.isin(groups[test], groups[train]).any()
        for train, test in zip(folds.train.T, folds.tested.T, strict=True)
    ):
        raise DataError(
            "cv: folds train and test on images of one group, and each group is cleaned by itself, the "
            f"smallest of {smallest} images: they would contain parts of each other. Hold out whole groups "
            "(cv=None, or a splitter such as GroupKFold), or give standardize=None."
        )


def _size_told(asked: _Asked, rows: _Rows) -> str:
    """How much there is to fit."""
    n_pairs = len(asked.classes) * (len(asked.classes) - 1) // 2
    return (
        f"{len(rows.X)} images of {len(asked.classes)} classes and {rows.X.shape[1]} "
        f"{asked.series.elements}: {len(asked.splits.folds.held_out) + 1} fits of "
        f"{'each of ' * (n_pairs > 1)}{n_pairs} pair{'s' * (n_pairs > 1)}."
    )


def _covariate_notes(
    decoder: DecoderSettings, asked: _Asked, covariates: FoldConfounds | None
) -> tuple[str, ...]:
    """Sentences about covariates that decode by themselves; an error where the decoder is strict."""
    if covariates is None or asked.groups is None:
        return ()
    named = confounded(covariates, asked.codes, asked.classes, asked.runs, asked.blocks)
    if decoder.strict and named:
        raise ValueError(f"strict=True: {named[0]}")
    return named


def _scaled_within(asked: _Asked, found: Extracted, mention: bool) -> _Rows:
    """Images scaled with the others of their group that are decoded."""
    raw, groups = found.X[asked.kept], asked.groups
    assert groups is not None
    _check_whole_groups(asked, min(_sizes(groups)))
    scaling = pooled(raw, groups, asked.within)
    done = ("The mean of each group's images was taken away from them.",) if mention else ()
    X = np.ascontiguousarray(scaled(raw, groups, asked.within))
    notes = (*asked.notes, *found.notes, *done)
    return _Rows(X, found._replace(scaling=scaling), asked.given_groups, None, notes)


def _within(
    decoder: DecoderSettings, series: ImageSeries, y: NDArray, groups: NDArray | None, kept: NDArray
) -> str:
    """How images of a group are scaled together, "" where ``standardize`` says how they are cleaned."""
    asked = decoder.scaling
    if asked is not None:
        if asked not in SCALINGS:
            raise ValueError(f"scaling: expected None, {', '.join(SCALINGS)}, got {asked!r}. Change it.")
        if groups is None and asked != "none":
            raise ValueError(f"scaling={asked!r} needs groups, whose images are scaled together. Give them.")
        return str(asked)
    own = isinstance(decoder.mask, (NiftiMasker, SurfaceMasker))
    if groups is None or own or not decoder.standardize or not are_maps(series):
        return ""
    of = [y[kept & (groups == group)] for group in np.unique(groups)]
    several = all(len(set(labels.tolist())) > 1 for labels in of)
    return "centre" if several and min(_sizes(groups)) < MIN_VOLUMES else ""


class _Fitted(NamedTuple):
    """The fits of all pairs, what folds did to X for them, and the graph they used."""

    pairs: PairFits
    preparation: Preparation
    connectivity: Any


def _fitted(
    decoder: DecoderSettings, asked: _Asked, rows: _Rows, covariates: FoldConfounds | None
) -> _Fitted:
    """Fit all pairs, on X as it is or as every fold prepares it."""
    uses_graph = asked.method.uses_connectivity
    connectivity = space_of(rows.found.masker.mask_img_).connectivity() if uses_graph else None
    preparation = in_sequence([covariates, NoiseWhitening(asked.blocks) if decoder.whiten else None])
    scheme = Scheme(asked.splits.folds, preparation=preparation, connectivity=connectivity)
    solve = check_memory(_location(decoder.memory)).cache(fit_pairs, ignore=["n_jobs"])
    pairs = solve(asked.method, rows.X, asked.codes, asked.runs, scheme, n_jobs=decoder.n_jobs)
    return _Fitted(pairs, preparation, connectivity)


def _sizes(groups: NDArray) -> list[int]:
    """Images of each group."""
    return list(Counter(groups.tolist()).values())


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


def is_ignored(y: NDArray, ignore: Any) -> NDArray:
    """Which labels (M,) are among those to leave out."""
    if ignore is None:
        return np.zeros(len(y), dtype=bool)
    several = isinstance(ignore, Iterable) and not isinstance(ignore, str)
    return np.isin(y, list(ignore) if several else [ignore])


def _masker_settings(
    decoder: DecoderSettings, series: ImageSeries, smallest: int, within: str, fixed: bool
) -> dict[str, Any]:
    """Settings of the decoder's masker; where there is a memory, nilearn asks for a level of at least 1.

    ``smallest`` counts the images of the smallest group.
    """
    level = 0 if decoder.memory is None else max(1, decoder.memory_level)
    own = {"standardize": None} if within else {}
    return (
        {name: getattr(decoder, name) for name in (*CLEANING, *GRID)}
        | own
        | {
            "detrend": _is_detrended(decoder, series, smallest, fixed),
            "memory": decoder.memory,
            "memory_level": level,
            "verbose": max(int(decoder.verbose) - 1, 0),
        }
    )


def _is_detrended(decoder: DecoderSettings, series: ImageSeries, smallest: int, fixed: bool) -> bool:
    """Whether lines are removed; "auto": where ``ignore`` says that runs are whole, or a masker decides.

    Of a run's volumes of two conditions, often one block each, a line is most of the difference; maps have no
    order in time, and in runs of few volumes a line mixes them. Where all groups are sorted by
    class in one order (``fixed``), as maps often are, a line gives every image a part of the others by its
    place, which is its class: labels that mean nothing are then decoded with 97 %.
    """
    if isinstance(decoder.detrend, str) and decoder.detrend == "auto":
        own = isinstance(decoder.mask, (NiftiMasker, SurfaceMasker))
        usual = decoder.ignore is not None and not own and not are_maps(series) and smallest >= MIN_SERIES
        if usual and fixed:
            warnings.warn(
                "The images of all groups are sorted by class in one order, as maps often are, so no line "
                "was removed: places would be decoded. For volumes of a run give detrend=True or False.",
                stacklevel=5,
            )
        return usual and not fixed
    if not isinstance(decoder.detrend, (bool, np.bool_)):
        raise ValueError(f"detrend: expected 'auto', True or False, got {decoder.detrend!r}. Change it.")
    return bool(decoder.detrend)


def are_maps(series: ImageSeries) -> bool:
    """Whether every image given is a single map."""
    return all(count == 1 for count in series.counts)


def _location(memory: Any) -> Any:
    return str(memory) if isinstance(memory, Path) else memory


_OF_SERIES = ("detrend", "high_pass", "low_pass", "t_r")  # settings that only a time series has


def check_leakage(decoder: Any, asked: _Asked, found: Extracted) -> Checked:
    """What could make the scores too good: a warning each, or with ``strict`` an error.

    The order of images counts as that of a scan where a setting says so, and never that of single maps,
    which are often sorted by class. The decoder does not know by how much labels were shifted. Without groups
    only images and mask are looked at; that neighbours may be on both sides of a fold is said elsewhere.
    """
    maps, places, groups, splits = are_maps(asked.series), asked.places, asked.groups, asked.splits
    series = any(getattr(found.masker, name) for name in _OF_SERIES) or decoder.ignore is not None
    names = asked.classes.tolist()
    checked = find_leakage(
        Evidence(
            X=found.X[places],
            conditions=asked.classes[asked.codes],
            runs=np.zeros(len(places), dtype=int) if groups is None else groups,
            pairs=[(names[i], names[j]) for i, j in class_pairs(len(names))],
            places=places if series and groups is not None and not maps else None,
            kind="beta" if maps else "volume",
            folds=None if groups is None or splits.leave_one_group_out else splits.folds,
            around=None if found.around is None else found.around[places],
            fingerprints=None if found.fingerprints is None else found.fingerprints[places],
            word="group",
        )
    )
    if decoder.strict and checked.findings:
        raise ValueError(f"strict=True: {checked.sentences[0]}")
    for sentence in checked.sentences:
        warnings.warn(sentence, stacklevel=4)
    return checked
