"""What decoders are given: settings, labels, groups, runs, confounds; what cannot be meant is refused."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import InputTags, Tags, assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from mvpa_gamp.coupling import check_sortable
from mvpa_gamp.decoder.maps import contrast_key
from mvpa_gamp.decoding.scores import check_scoring_name
from mvpa_gamp.feature_scale import LARGEST
from mvpa_gamp.imaging.errors import DataError, reason
from mvpa_gamp.imaging.matrix import rows_of_runs
from mvpa_gamp.imaging.processing import MIN_VOLUMES, Nuisance, confound_table
from mvpa_gamp.methods import METHODS, FoldFits, Method, find_method
from mvpa_gamp.methods.fold_fits import weights_classes, with_class_weight

# What nilearn's Decoder and FREMClassifier take and GAMPDecoder has no use for, and why.
_UNUSED = {
    "estimator": "the method {method!r} is fitted; choose another one with method",
    "estimator_args": "there is no scikit-learn estimator inside",
    "param_grid": "sparsity and weight scale are learnt from training images, so there is no grid search",
    "screening_percentile": "all voxels of the mask are fitted, and the prior decides which of them count",
    "screening_n_features": "all voxels of the mask are fitted, and the prior decides which of them count",
    "clustering_percentile": "voxels are not clustered; the prior of 'vamp-sbg' assumes that "
    "neighbours are similar",
}
_ALL = 100  # per cent of the voxels: what is done anyway


@dataclass
class ImageInputTags(InputTags):
    """scikit-learn's tags and nilearn's two: the decoder takes volumes and surfaces."""

    niimg_like: bool = True
    surf_img: bool = True


class DecoderSettings(ClassifierMixin, BaseEstimator):
    """Parameters of ``GAMPDecoder``, which documents them; nothing is checked before ``fit``."""

    def __init__(
        self,
        method: Any = "vamp-sbg",
        mask: Any = None,
        cv: Any = None,
        scoring: Any = "accuracy",
        smoothing_fwhm: float | None = None,
        standardize: Any = True,
        detrend: Any = "auto",
        whiten: bool = False,
        low_pass: float | None = None,
        high_pass: float | None = None,
        t_r: float | None = None,
        ignore: Any = None,
        strict: bool = False,
        memory: Any = None,
        memory_level: int = 0,
        n_jobs: int = 1,
        verbose: int = 0,
        random_state: Any = 0,
        class_weight: Any = None,
        predict_scaling: str = "own",
        scaling: str | None = None,
        target_affine: Any = None,
        target_shape: Any = None,
        mask_strategy: str = "background",
        estimator: Any = None,
        estimator_args: Any = None,
        param_grid: Any = None,
        screening_percentile: float | None = None,
        screening_n_features: int | None = None,
        clustering_percentile: float | None = None,
    ) -> None:
        self.method = method
        self.mask = mask
        self.cv = cv
        self.scoring = scoring
        self.smoothing_fwhm = smoothing_fwhm
        self.standardize = standardize
        self.detrend = detrend
        self.whiten = whiten
        self.low_pass = low_pass
        self.high_pass = high_pass
        self.t_r = t_r
        self.ignore = ignore
        self.strict = strict
        self.memory = memory
        self.memory_level = memory_level
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.class_weight = class_weight
        self.predict_scaling = predict_scaling
        self.scaling = scaling
        self.target_affine = target_affine
        self.target_shape = target_shape
        self.mask_strategy = mask_strategy
        self.estimator = estimator
        self.estimator_args = estimator_args
        self.param_grid = param_grid
        self.screening_percentile = screening_percentile
        self.screening_n_features = screening_n_features
        self.clustering_percentile = clustering_percentile

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = ImageInputTags()
        return tags


def mention_unused(decoder: DecoderSettings) -> None:
    """Warn of settings of nilearn's decoders that change nothing here; refuse those that would mislead."""
    if "dummy" in str(decoder.estimator).lower():
        raise ValueError(
            f"estimator={decoder.estimator!r}: expected no estimator, because GAMPDecoder fits "
            f"{decoder.method!r} whatever it is, and its scores would be taken for chance. Use "
            "permutation_test(), or nilearn's Decoder for the dummy."
        )
    said = []
    for name, why in _UNUSED.items():
        value = getattr(decoder, name)
        if value is None or (name.endswith("percentile") and value == _ALL):
            continue
        shown = repr(value) if isinstance(value, (str, int, float)) else type(value).__name__
        said.append(f"{name}={shown} is not used: {why.format(method=decoder.method)}.")
    if said:
        warnings.warn(" ".join(said), stacklevel=4)


WITHOUT_GROUPS = (
    "Without groups the decoder cannot know which images belong to the same run: neighbouring volumes, "
    "which resemble each other, end up in both training and test sets, and scores are too high. Give the "
    "run of each image as groups, or X and y as lists with one entry per run. If the images are "
    "independent, such as one per participant, confirm this with cv=5."
)


def chosen_method(given: Any) -> Method:
    """The method of a name, a method as it is given, or a classifier of scikit-learn as a method."""
    if isinstance(given, str) and given not in METHODS:
        raise ValueError(
            f"method: expected one of {', '.join(METHODS)}, or a classifier of scikit-learn, got {given!r}. "
            "Change method (of nilearn's Decoder, 'svc' is 'svm' here, or SVC(kernel='linear'))."
        )
    return find_method(given)


def weighted_method(method: Method, class_weight: Any, classes: NDArray) -> Method:
    """The method with weights of the two classes of every pair, the first of which is +1."""
    if class_weight is None:
        return method
    if not weights_classes(method):
        raise ValueError(
            f"class_weight: {method.name!r} takes none from the decoder. Leave it out; a classifier of "
            "scikit-learn may have a class_weight of its own."
        )
    if isinstance(class_weight, str) and class_weight == "balanced":
        return with_class_weight(method, class_weight)
    if (
        not isinstance(class_weight, Mapping)
        or len(classes) > 2
        or set(class_weight) != set(classes.tolist())
    ):
        raise ValueError(
            "class_weight: expected None, 'balanced' or, for two classes, a weight for each of "
            f"{', '.join(map(repr, classes.tolist()))}, got {class_weight!r}. Use 'balanced'."
        )
    first, second = (class_weight[name] for name in classes.tolist())
    return with_class_weight(method, {1: first, -1: second})


def scoring_of(scoring: Any, n_classes: int) -> Any:
    """The scorer; "roc_auc" of three classes or more is that of each against all others, as in nilearn."""
    one_against_others = n_classes > 2 and isinstance(scoring, str) and scoring == "roc_auc"
    return check_scoring_name("roc_auc_ovr" if one_against_others else scoring, n_classes)


def needs_probabilities(method: Method, fits: Sequence[FoldFits], what: str) -> None:
    """Refuse what asks for probabilities of a method that has none."""
    if any(np.isnan(each.proba).any() for each in fits):
        raise no_probabilities(method.name, what)


def no_probabilities(method: str, what: str) -> ValueError:
    """The sentence on what needs probabilities of a method without them."""
    return ValueError(
        f"{what} needs probabilities, which {method!r} does not give. Use decisions, such as "
        "scoring='accuracy' or 'roc_auc' and decision_function, or a method with probabilities such as "
        "'lda'."
    )


def check_images_and_labels(n_images: int, y: Any) -> NDArray:
    """Labels (M,), one per image."""
    if y is None:
        raise ValueError(
            "GAMPDecoder requires y to be passed, but the target y is None. Give one class per image."
        )
    y = column_or_1d(y, warn=True)
    if y.dtype.kind in "fc":
        assert_all_finite(y, input_name="y")
    missing = [number for number, label in enumerate(y.tolist()) if label is None or label != label]
    if missing:
        raise ValueError(
            f"y: expected a label for every image, but {len(missing)} are missing, the first for image "
            f"{missing[0] + 1} (counted from 1). Label these images 'rest', for example, and give "
            "ignore='rest'."
        )
    if len(y) != n_images:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {n_images} images and {len(y)} "
            "labels in y. Give exactly one label per image (volume)."
        )
    check_sortable("y", y)
    try:
        check_classification_targets(y)
    except ValueError as error:
        raise ValueError(
            f"{error} To predict a number, such as a rating, use GAMPRegressor (commands: --target)."
        ) from error
    return y


def check_groups(groups: Any, n_images: int) -> NDArray | None:
    """Groups (M,), one per image, or None."""
    if groups is None:
        return None
    groups = column_or_1d(groups, warn=True)
    if len(groups) != n_images:
        raise ValueError(
            f"groups: expected the group (run) of each of {n_images} images, got {len(groups)}. "
            "Give one group per image."
        )
    check_sortable("groups", groups)
    if groups.dtype.kind == "f":
        assert_all_finite(groups, input_name="groups")
    return groups


def check_fold_confounds(covariates: Any, n_images: int) -> NDArray | None:
    """Covariates (M, C), one row per image, or None; a vector is one covariate."""
    if covariates is None:
        return None
    try:
        values = np.asarray(covariates, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"fold_confounds: expected numbers ({error}). Give one row per image, one column per covariate."
        ) from error
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != n_images or not np.isfinite(values).all():
        raise ValueError(
            f"fold_confounds: expected finite numbers, {n_images} images x covariates, got "
            f"shape {np.shape(covariates)} or missing values. Give one row per image, ignored ones included."
        )
    if (top := np.abs(values).max(initial=0)) > LARGEST:
        raise ValueError(
            f"fold_confounds: expected values of at most {LARGEST:g} in size, so that float32 can hold "
            f"them, got {top:g}. Divide that column by a number."
        )
    return values


def check_classes(y: NDArray, ignore: Any) -> NDArray:
    """The sorted classes of labels, at least two."""
    classes = np.unique(y)
    if len(classes) < 2:
        left = f" besides the ignored {ignore!r}" if ignore is not None else ""
        raise ValueError(
            f"y: expected at least two classes{left}, got {len(classes)}: {classes.tolist()}. "
            "Give images of another class too."
        )
    keys = [contrast_key(*pair) for pair in combinations(classes.tolist(), 2)]
    names = [*keys, *map(str, classes)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(
            f"y: expected class names that give every contrast a name of its own, but {twice!r} would name "
            "two contrasts. Rename classes that contain a hyphen."
        )
    return classes


def class_numbers(y: NDArray, classes: NDArray) -> NDArray:
    """The number of each label among the classes of fit."""
    unknown = np.setdiff1d(y, classes)
    if unknown.size:
        raise ValueError(
            f"y: expected classes seen in fit ({', '.join(map(str, classes))}), got "
            f"{', '.join(map(repr, unknown.tolist()))}. Leave those images out."
        )
    return np.searchsorted(classes, y)


def groups_to_clean(
    groups: NDArray | None, masker: Any, confounds: bool = False
) -> tuple[NDArray | None, tuple[str, ...]]:
    """The groups (M,) to clean one by one; None, with a sentence, where groups are too small.

    None also where the masker cleans nothing and there are no ``confounds`` to regress out.
    """
    if groups is None or not (masker.cleans or confounds):
        return None, ()
    names, counts = np.unique(groups, return_counts=True)
    if counts.min() >= MIN_VOLUMES:
        return groups, ()
    if len(groups) < MIN_VOLUMES:
        raise DataError(
            f"images: cleaning needs at least {MIN_VOLUMES} images, got {len(groups)}. Give more images."
        )
    note = (
        f"Group {str(names[counts.argmin()])!r} has {counts.min()} images, too few to be cleaned "
        "separately, so all images were cleaned as one series. Set standardize=None if the images are "
        "comparable without cleaning."
    )
    return None, (note,)


def join_runs(counts: Sequence[int], y: Any, groups: Any) -> tuple[Any, NDArray | None]:
    """Labels of all images, and their groups; ``counts`` are the images of every image file.

    Where y is a list of lists, one for each image, they are joined, and without groups every one is a run.
    """
    if not isinstance(y, (list, tuple)) or not y or any(np.ndim(part) != 1 for part in y):
        return y, groups
    sizes = [len(part) for part in y]
    if sizes != list(counts):
        raise ValueError(
            f"y: expected a label per image in each of {len(counts)} runs ({_listed(counts)}), got "
            f"{len(sizes)} lists ({_listed(sizes)}). Give one list of labels per image file, in their order."
        )
    if isinstance(groups, (list, tuple)) and all(np.ndim(part) == 1 for part in groups):
        groups = np.concatenate([np.asarray(part) for part in groups])
    runs = np.repeat(np.arange(1, len(sizes) + 1), sizes)
    return np.concatenate([np.asarray(part) for part in y]), runs if groups is None else groups


def _listed(sizes: Sequence[int]) -> str:
    """The first few sizes."""
    return ", ".join(map(str, list(sizes)[:6])) + (" ..." if len(sizes) > 6 else "")


_TABLES = (np.ndarray, pd.DataFrame, pd.Series, str, Path)


def confounds_of_runs(
    confounds: Any, counts: Sequence[int], runs: NDArray | None
) -> dict[Any, Nuisance] | None:
    """The confounds of each run that is cleaned by itself, by its name; None where none are given.

    ``confounds`` is a table of all M images (array, DataFrame or file with a header), or a list of tables,
    one for each image file (``counts`` are their volumes) or one for each of ``runs`` (M,) in their order.
    Tables of different runs may have different columns.
    """
    if confounds is None:
        return None
    members = rows_of_runs(runs, sum(counts))
    places = _places(confounds, counts, members)
    given = confounds if _is_list(confounds) else [confounds]
    tables = [_numbers(table, len(rows)) for table, rows in zip(given, places, strict=True)]
    return {run: _of_run(run, rows, places, tables) for run, rows in members.items()}


def _is_list(confounds: Any) -> bool:
    return isinstance(confounds, (list, tuple)) and any(isinstance(each, _TABLES) for each in confounds)


def _places(confounds: Any, counts: Sequence[int], members: dict[Any, NDArray]) -> list[NDArray]:
    """The rows that each table is about."""
    if not _is_list(confounds):
        return [np.arange(sum(counts))]
    if len(confounds) == len(counts):
        return np.split(np.arange(sum(counts)), np.cumsum(counts)[:-1])
    if len(confounds) == len(members):
        return list(members.values())
    raise DataError(
        f"confounds: expected one table, one for each of {len(counts)} images, or one for each of "
        f"{len(members)} runs that are cleaned separately, got {len(confounds)}. Give a list of one of "
        "these lengths."
    )


def _numbers(table: Any, rows: int) -> NDArray:
    """Numbers (rows, C) of a table, NaN where they are missing."""
    if isinstance(table, (str, Path)):
        return confound_table(Path(table).expanduser(), rows, None)[1]
    try:
        values = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"confounds: expected numbers ({reason(error)}). Keep numeric columns only."
        ) from error
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != rows or np.isinf(values).any():
        raise DataError(
            f"confounds: expected {rows} rows of numbers, one for each image of the run, got shape "
            f"{np.shape(table)}{' with infinite values' * bool(np.isinf(values).any())}. Give the confounds "
            "of exactly these images."
        )
    return values


def _of_run(run: Any, rows: NDArray, places: list[NDArray], tables: list[NDArray]) -> Nuisance:
    """The confounds of a run's rows, which may come from several tables with the same columns."""
    about = [k for k, place in enumerate(places) if np.isin(place, rows).any()]
    widths = {tables[k].shape[1] for k in about}
    if len(widths) > 1:
        raise DataError(
            f"confounds: the images of run {run} are cleaned together, but their tables have different "
            f"numbers of columns ({', '.join(map(str, sorted(widths)))}). Give groups so that each table "
            "belongs to one run, or tables with the same columns."
        )
    values = np.empty((sum(map(len, places)), widths.pop()))
    for k in about:
        values[places[k]] = tables[k]
    return Nuisance(values[rows], np.ones(len(rows), dtype=bool))
