"""GAMPRegressor: a number, such as a rating or an age, predicted from images or from any features."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, assert_all_finite
from sklearn.utils.validation import check_is_fitted, column_or_1d

from mvpa_gamp.decoder.images import build_masker, extract, fit_mask_grid, open_images, transform
from mvpa_gamp.decoder.inputs import ImageInputTags, check_groups
from mvpa_gamp.decoder.model import (
    SCALINGS,
    FittedModel,
    Link,
    pooled,
    root_mean_square,
    scaled,
)
from mvpa_gamp.decoder.model_folder import load_model, save_model
from mvpa_gamp.decoding.regression import (
    NumberCurve,
    NumberScores,
    RegressionTest,
    fit_numbers,
    number_curve,
    number_folds,
    number_scores,
    regression_test,
    usual_exchange,
)
from mvpa_gamp.imaging.brainmaps import to_image
from mvpa_gamp.imaging.spaces import space_of
from mvpa_gamp.methods.fold_fits import FoldFits
from mvpa_gamp.methods.regression import find_regression


class GAMPRegressor(RegressorMixin, BaseEstimator):
    """Predict a number from brain images, or from rows of features, with honest held-out scores and maps.

    The counterpart of ``GAMPDecoder`` for targets that are numbers. All folds and the refit on all images are
    columns of one solve in row space; maps and predictions come from the refit, scores from held-out images.

    Parameters
    ----------
    method : :obj:`str` or regressor of scikit-learn, default="vamp-bg-reg"
        "vamp-bg-reg" and, with neighbours, "vamp-sbg-reg", which have inclusion probabilities; "ridge", whose
        evidence is spread over all voxels; or an object such as ``SVR(kernel="linear")``, cloned for every
        fold.

    mask : filename, image, masker or None, default=None
        Where to look, as for ``GAMPDecoder``. Not for rows of features.

    cv : :obj:`int`, splitter, iterable of (train, test) or None, default=None
        With groups, None leaves one group out, and a number means that many folds of whole groups. Without,
        that many folds (None: five) with the same spread of y.

    scaling : "none", "centre" or "zscore", default="none"
        What is done to the images of each group by themselves: nothing, their mean taken away, or also
        divided by their standard deviation. No label has a part in it.

    smoothing_fwhm : :obj:`float` or None, default=None
        Gaussian smoothing in mm.

    target : :obj:`str`, default="target"
        What y is called in tables, files and pages.

    random_state : :obj:`int`, default=0
        Of permutations and subsets; fits are deterministic.

    memory, memory_level, verbose
        Of nilearn's masker.

    Attributes
    ----------
    coef_ : ndarray of shape (n_elements,)
        Weights of the refit: predictions are ``X @ coef_ + intercept_``.

    intercept_ : :obj:`float`

    coef_img_, pattern_img_, inclusion_img_, selection_freq_img_ : images, or None
        Weights, activation pattern (Haufe et al., 2014), inclusion probability, and the share of folds that
        selected a voxel. None for rows of features, and where a method has none.

    scores_ : NumberScores
        Of all held-out images: ``correlation``; ``within``, after the mean of every group is taken away;
        ``r2``, relative to predicting the mean of the training images; ``error``, the mean absolute one.

    cv_predictions_ : pandas.DataFrame
        One row per held-out image: row, group, fold, true, predicted.

    status_ : pandas.DataFrame
        How every fit ended.

    See Also
    --------
    mvpa_gamp.GAMPDecoder : the same for classes.

    Examples
    --------
    >>> import numpy as np
    >>> from mvpa_gamp import GAMPRegressor
    >>> rng, people = np.random.default_rng(0), np.repeat(np.arange(10), 6)
    >>> X = rng.standard_normal((60, 200))
    >>> rating = X[:, 3] - X[:, 7] + 0.3 * rng.standard_normal(60)
    >>> model = GAMPRegressor("vamp-bg-reg").fit(X, rating, groups=people)
    >>> model.scores_.correlation > 0.8, model.permutation_test(99).pvalue
    (True, 0.01)
    """

    def __init__(
        self,
        method: Any = "vamp-bg-reg",
        mask: Any = None,
        cv: Any = None,
        scaling: str = "none",
        smoothing_fwhm: float | None = None,
        target: str = "target",
        random_state: int = 0,
        memory: Any = None,
        memory_level: int = 0,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.mask = mask
        self.cv = cv
        self.scaling = scaling
        self.smoothing_fwhm = smoothing_fwhm
        self.target = target
        self.random_state = random_state
        self.memory = memory
        self.memory_level = memory_level
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = ImageInputTags()
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def fit(self, X: Any, y: Any, groups: Any = None) -> "GAMPRegressor":
        """Fit to images (4-D, a list of 3-D ones, or paths) or rows X (M, N), numbers y, and groups.

        Parameters
        ----------
        X : images, or array of shape (M, N)
        y : array of shape (M,), the number of each image; finite, and not all equal
        groups : array of shape (M,) or None
            The participant (or run) of each image: left out as a whole, scaled by itself, and exchanged
            within in permutation tests. None: images are independent.

        Returns
        -------
        GAMPRegressor
        """
        method = find_regression(self.method)
        if self.scaling not in SCALINGS:
            raise ValueError(f"scaling: expected {', '.join(SCALINGS)}, got {self.scaling!r}. Change it.")
        raw = self._raw_rows(X)
        y = _numbers(y, len(raw))
        groups = check_groups(groups, len(y))
        folds, self.cv_sentence_ = number_folds(self.cv, y, groups)
        rows = scaled(raw, groups, self.scaling)
        self._runs = np.arange(len(y)) if groups is None else np.unique(groups, return_inverse=True)[1]
        uses_graph = method.uses_connectivity and self.mask_img_ is not None
        self._graph = space_of(self.mask_img_).connectivity() if uses_graph else None
        fits = fit_numbers(method, rows, y, self._runs, folds, self._graph)
        self._method, self._X, self._y, self._groups, self._folds, self._fits = (
            method, rows, y, groups, folds, fits,
        )  # fmt: skip
        self._keep(raw)
        return self

    def _raw_rows(self, X: Any) -> NDArray:
        """Rows (M, N) as they are, and the masker that made them."""
        self._is_series = False
        if isinstance(X, np.ndarray) and X.ndim == 2:
            self.mask_img_, self.masker_ = None, None
            return np.asarray(X, dtype=X.dtype if X.dtype.kind == "f" else float)
        series = open_images(X, self.mask)
        settings = {
            "smoothing_fwhm": self.smoothing_fwhm, "standardize": None, "detrend": False, "high_pass": None,
            "low_pass": None, "t_r": None, "target_affine": None, "target_shape": None,
            "mask_strategy": "background", "memory": self.memory, "memory_level": self.memory_level,
            "verbose": max(int(self.verbose) - 1, 0),
        }  # fmt: skip
        masker = build_masker(self.mask, settings, series)
        notes = fit_mask_grid(masker, self.mask, series)
        found = extract(masker, series, None)
        for note in (*notes, *found.notes):
            warnings.warn(note, stacklevel=3)
        self.masker_, self.mask_img_, self._is_series = found.masker, found.masker.mask_img_, False
        self._mean_img = found.mean_img
        return found.X

    def _keep(self, raw: NDArray) -> None:
        fits, folds, y = self._fits, self._folds, self._y
        refit = fits.refit
        self.coef_, self.intercept_ = refit.coef[:, 0], float(refit.intercept[0])
        self.n_elements_ = len(self.coef_)
        self.scores_: NumberScores = number_scores(y, fits.decision[:, :-1], folds, self._groups)
        fold, rows = np.nonzero(folds.tested.T)
        self.cv_predictions_ = pd.DataFrame({
            "row": rows,
            "group": None if self._groups is None else self._groups[rows],
            "fold": fold + 1,
            "true": y[rows],
            "predicted": fits.decision[rows, fold],
        })  # fmt: skip
        self.status_ = pd.DataFrame({
            "fold": [*range(1, fits.n_folds + 1), "refit"],
            "held_out": [*folds.held_out.tolist(), None],
            "converged": fits.converged,
            "n_iter": fits.n_iter,
            "voxels": fits.support.sum(axis=0),
            "status": fits.status,
            **fits.parameters,
        })  # fmt: skip
        if not fits.converged.all():
            warnings.warn(
                f"{(~fits.converged).sum()} of {fits.converged.size} fits did not converge, see status_.",
                ConvergenceWarning,
                stacklevel=3,
            )
        self._make_images(refit, fits.frequency)
        self._model = FittedModel(
            method=self._method.name,
            classes=None,
            coef=np.ascontiguousarray(refit.coef),
            intercept=refit.intercept,
            coef_std=None if refit.coef_std is None else np.ascontiguousarray(refit.coef_std),
            center=self._X.mean(axis=0, dtype=float).astype(self._X.dtype),
            link=Link(),
            masker=self.masker_,
            scaling=pooled(raw, self._groups, self.scaling),
            cleaned_by_group=False,
            shortest_run=0,
            size=root_mean_square(self._X),
            models=refit.models,
            target=self.target,
        )

    def _make_images(self, refit: FoldFits, frequency: NDArray | None) -> None:
        def image(values: NDArray | None) -> Any:
            return None if values is None or self.mask_img_ is None else to_image(values, self.mask_img_)

        self.coef_img_ = image(refit.coef[:, 0])
        self.pattern_img_ = image(None if refit.pattern is None else refit.pattern[:, 0])
        self.inclusion_img_ = image(None if refit.inclusion is None else refit.inclusion[:, 0])
        self.selection_freq_img_ = image(frequency)

    def predict(self, X: Any, groups: Any = None) -> NDArray:
        """The number of each new image.

        Parameters
        ----------
        X : images, or rows of shape (m, N)
        groups : array of shape (m,) or None
            With a ``scaling``: the participant of each image, scaled by the images given here. None: as the
            images of fit were on average.

        Returns
        -------
        ndarray of shape (m,)
        """
        check_is_fitted(self)
        model = self._model
        if isinstance(X, np.ndarray) and X.ndim == 2:
            raw = np.asarray(X, dtype=float)
        else:
            if self.masker_ is None:
                raise ValueError("X: this regressor was fitted to rows of features. Give rows.")
            raw = transform(self.masker_, open_images(X, self.mask_img_)).astype(float)
        if raw.shape[1] != self.n_elements_:
            raise ValueError(
                f"X has {raw.shape[1]} features, expecting {self.n_elements_}. Give the same ones."
            )
        groups = check_groups(groups, len(raw))
        if groups is not None:
            rows = scaled(raw, groups, self.scaling)
        else:
            rows = raw if model.scaling is None else model.scaling.apply(raw)
        model.mention_scale(rows)
        if model.models is not None:
            return np.asarray(model.models[0].predict(rows), dtype=float)
        return model.scores(rows)[:, 0]

    def permutation_test(self, n: int = 1000, *, exchange: str | None = None) -> RegressionTest:
        """Compare correlation and R2 of held-out predictions with n permutations of y.

        Parameters
        ----------
        n : :obj:`int`
        exchange : "within", "groups", "all", "shift" or None
            What is permuted: numbers within groups (default with groups), whole groups that have one number
            each, or all numbers (default without groups). "shift" moves the numbers of every group along in
            their order, for images that follow each other in time.

        Returns
        -------
        RegressionTest
            With ``pvalue`` of the correlation and ``pvalue_r2``.
        """
        self._check_trained()
        exchange = exchange or usual_exchange(self._y, self._groups, self._is_series)
        return regression_test(
            self._method, self._X, self._y, self._runs, self._folds, n, groups=self._groups,
            exchange=exchange, seed=self.random_state, connectivity=self._graph,
        )  # fmt: skip

    def learning_curve(self, n_splits: int = 20) -> NumberCurve:
        """Correlation and R2 with fewer groups to train on.

        Parameters
        ----------
        n_splits : :obj:`int`
            Random subsets of groups for each number of them.

        Returns
        -------
        NumberCurve
        """
        self._check_trained()
        if self._groups is None:
            raise ValueError("learning_curve needs groups, which are what is added. Give groups to fit.")
        return number_curve(
            self._method, self._X, self._y, self._runs, n_splits=n_splits, seed=self.random_state,
            connectivity=self._graph,
        )  # fmt: skip

    def generate_report(
        self,
        title: str | None = None,
        permutation: RegressionTest | None = None,
        curve: NumberCurve | None = None,
    ) -> Any:
        """A self-contained HTML page: scores, predictions, weights, test, curve, methods text.

        Parameters
        ----------
        title : :obj:`str` or None
        permutation : what ``permutation_test`` returned, or None
        curve : what ``learning_curve`` returned, or None

        Returns
        -------
        An object with ``save_as_html(path)`` and ``html``.
        """
        self._check_trained()
        from string import Template

        from mvpa_gamp.decoder.folder import DecoderReport, Fitted, page

        text = page([Fitted(self, permutation, curve)], title or "")
        return DecoderReport(Template("$page"), "", {"page": text})

    def save(self, folder: str | Path) -> Path:
        """Write the model to a new folder, as ``GAMPDecoder.save`` does; images only."""
        self._check_trained()
        if self.masker_ is None:
            raise ValueError(
                "save: a model folder holds images, and this one was fitted to rows of features."
            )
        about = {
            "scores": self.scores_._asdict(),
            "cross_validation": self.cv_sentence_,
            "images": len(self._y),
        }
        table = (list(self.cv_predictions_.columns), self.cv_predictions_.to_dict("records"))
        return save_model(self._model, folder, about | {"image_scaling": self.scaling}, table)

    @classmethod
    def load(cls, folder: str | Path) -> "GAMPRegressor":
        """The regressor of a folder that ``save`` wrote: it predicts, and shows its weights."""
        model, said = load_model(folder)
        if model.classes is not None:
            raise ValueError(f"{folder} is a model of classes. Load it with GAMPDecoder.load.")
        scaling = said.get("about", {}).get("image_scaling", "none")
        found = cls(model.method, model.masker.mask_img_, scaling=scaling, target=model.target)
        found._model, found.masker_, found.mask_img_ = model, model.masker, model.masker.mask_img_
        found.coef_, found.intercept_ = model.coef[:, 0], float(model.intercept[0])
        found.n_elements_, found.coef_img_ = len(found.coef_), to_image(model.coef[:, 0], found.mask_img_)
        return found

    def _check_trained(self) -> None:
        check_is_fitted(self)
        if not hasattr(self, "_X"):
            raise ValueError(
                "This regressor was loaded from a folder, which holds its weights and no images, so it can "
                "only predict. Fit one for tests and curves."
            )


def _numbers(y: Any, n_rows: int) -> NDArray:
    """Numbers (M,), one per image."""
    if y is None:
        raise ValueError("GAMPRegressor requires y to be passed, but the target y is None. Give numbers.")
    y = column_or_1d(y, warn=True)
    try:
        values = np.asarray(y, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y: expected numbers ({error}). For classes use GAMPDecoder.") from error
    assert_all_finite(values, input_name="y")
    if len(values) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {n_rows} images and {len(values)} "
            "numbers in y. Give exactly one per image."
        )
    if len(values) < 2 or np.ptp(values) == 0:
        raise ValueError(
            f"y: expected different numbers, got {len(set(values))}. There is nothing to predict."
        )
    return values
