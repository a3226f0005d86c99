"""The settings of a decoder: its own, and the names that users of nilearn's decoders pass."""

import warnings
from dataclasses import dataclass
from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import InputTags, Tags

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
