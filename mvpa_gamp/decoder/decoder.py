"""GAMPDecoder: images in, images out, in the manner of nilearn's Decoder."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import InputTags, Tags
from sklearn.utils.validation import check_is_fitted

from mvpa_gamp.decoder.contrast_maps import ContrastMaps, contrast_key
from mvpa_gamp.decoder.fit import Decoded, answers, decode_images, is_ignored, permute
from mvpa_gamp.decoder.images import open_images, transform
from mvpa_gamp.decoder.labels import (
    check_fold_confounds,
    check_groups,
    check_images_and_labels,
    class_numbers,
    groups_to_clean,
)
from mvpa_gamp.decoder.tables import confusion_table, predictions_table, stability_table, status_table
from mvpa_gamp.decoder.voxels import (
    FoundVoxels,
    InformationImages,
    SelectionImages,
    find_information,
    find_selection,
)
from mvpa_gamp.decoding.classes import score_classes
from mvpa_gamp.decoding.multiclass import Answers
from mvpa_gamp.decoding.permutation import PermutationTest
from mvpa_gamp.decoding.scoring import mean_score, score_rows
from mvpa_gamp.decoding.tasks import Task, make_tasks


@dataclass
class ImageInputTags(InputTags):
    """scikit-learn's tags and nilearn's two: the decoder takes volumes and surfaces."""

    niimg_like: bool = True
    surf_img: bool = True


class GAMPDecoder(ClassifierMixin, BaseEstimator):
    """Decode classes from images and find the voxels that matter, in the manner of nilearn's Decoder.

    All pairs of classes, all folds and the refits on all images are columns of one solve, and nothing is
    tuned by a grid. Maps and predictions come from the refits (nilearn averages the folds' models); scores
    come from held-out images only. Three or more classes: the pairs' probabilities are coupled (Hastie &
    Tibshirani, 1998) and the largest one is predicted.

    Parameters
    ----------
    method : :obj:`str`, default="gamp-sbg-lr"
        A GAMP name of ``mvpa_gamp.methods.METHODS``: "gamp-sbg-lr", whose prior takes neighbouring voxels as
        alike, "gamp-bg-lr", "gamp-bl-lr", "gamp-bg-pr", "gamp-bg-hl", which do not, or "gamp-l1-lr", which
        has no posterior and therefore no deviation and inclusion maps.

    mask : filename, Nifti1Image, NiftiMasker, SurfaceImage, SurfaceMasker or None, default=None
        Where to decode. An image or file on another grid than the images is resampled to theirs (nearest
        neighbour) with a warning, where nilearn would resample the images to the mask. A masker, fitted or
        not, brings its own cleaning and resampling, as in nilearn. None: nilearn computes a mask; on surfaces
        the vertices that are finite and vary are used.

    cv : :obj:`int`, splitter, iterable of (train, test) or None, default=None
        With groups, None and numbers mean leave-one-group-out, as in nilearn. Without groups: stratified
        folds, None means five.

    scoring : :obj:`str`, callable or None, default="accuracy"
        A scikit-learn scorer of classes, such as "accuracy", "balanced_accuracy" or, for two classes,
        "roc_auc" (nilearn's default). A callable gets an estimator that knows its answers, row numbers as
        X, and y.

    smoothing_fwhm : :obj:`float` or None, default=None
        Gaussian smoothing in mm. Not for surfaces.

    standardize : "zscore_sample", "psc", True, False or None, default=True
        As in nilearn, but each group by itself when groups are given, which decodes better and keeps test
        runs apart from training runs. True is "zscore_sample".

    detrend : :obj:`bool`, default=False
        Remove a line from each voxel's series, each group by itself when groups are given. For volumes in
        the order of the scan; give all volumes of a run, rest included, and name it in ``ignore``.

    whiten : :obj:`bool`, default=False
        Whiten the noise that voxels share, estimated from the spread within blocks (stretches of one class
        and group) of each fold's training images alone, with Ledoit-Wolf shrinkage. Weights are mapped back
        to voxels; inclusion and selection are those of whitened voxels. Not for single maps per block.

    low_pass : :obj:`float` or None, default=None
        Low-pass filter in Hz, each group by itself when groups are given.

    high_pass : :obj:`float` or None, default=None
        High-pass filter in Hz, each group by itself when groups are given.

    t_r : :obj:`float` or None, default=None
        Seconds between volumes, for filters.

    ignore : :obj:`str`, iterable of classes or None, default=None
        Classes of y, such as "rest", whose images help to clean their run and are then left out.

    strict : :obj:`bool`, default=False
        What the check before the first fit finds (blocks split over folds, images given twice, labels tied to
        the order, a mask made from the labels) is an error; otherwise a warning and a caution in the report.

    memory : None, :obj:`str`, :obj:`pathlib.Path` or joblib.Memory, default=None
        Where to keep masked images and fits, so that an equal call is answered at once.

    memory_level : :obj:`int`, default=0
        Caching level of the masker.

    n_jobs : :obj:`int`, default=1
        Processes that share the columns. One is usually best: the solve uses all cores.

    verbose : :obj:`int`, default=0
        1 says what is done, 2 also what the masker does, 3 also how every fit ended.

    random_state : :obj:`int`, RandomState or None, default=0
        Of ``permutation_test``, None for other permutations each time; fits are deterministic.

    class_weight : None, "balanced" or dict, default=None
        Weights of the classes in the likelihood: "balanced" gives both classes of a pair the same total
        weight in every fold's training images. A dict of weights by class is for two classes.

    Attributes
    ----------
    classes_ : ndarray of the K classes, sorted.

    coef_ : ndarray of shape (n_pairs, n_elements)
        Weights of the refits: ``X @ coef_.T + intercept_`` is positive for the second class of a pair.

    coef_img_ : mapping of Nifti1Image
        Weights by contrast: positive values of ``coef_img_["face-house"]`` speak for face. With two classes
        also by class: ``coef_img_["face"]`` is positive where it speaks for face. (nilearn's two-class maps
        have the opposite sign: they speak for the second class under the first one's name.)

    coef_std_img_ : mapping of Nifti1Image, or None
        Posterior standard deviations of the weights.

    confusion_ : pandas.DataFrame
        Counts of held-out images by true (rows) and predicted class.

    contrast_scores_ : dict of lists, one score per fold
        By contrast: the score of its own classifier on held-out images of its two classes.

    contrasts_ : list of :obj:`str`
        Keys of the pairs, in the order of ``coef_``.

    converged_ : :obj:`bool`
        Whether all fits met their stopping rule.

    cv_ : list of (train, test)
        Row numbers among the images that were not ignored.

    cv_predictions_ : pandas.DataFrame
        One row per held-out image: row (place in X), group, fold, true, predicted, probability_<class>.

    cv_scores_ : dict of lists, one score per fold
        By class, as in nilearn: with two classes the same list twice, with more the class against all others
        (whose chance level is high: most images are others). Empty for three or more classes and a callable
        ``scoring``. Of the whole: ``fold_scores_``; of pairs: ``contrast_scores_``.

    fold_scores_ : ndarray of shape (n_folds,)
        The score of all classes together, the one to report: chance of accuracy is 1 / n_classes for equally
        frequent classes.

    inclusion_img_ : mapping of Nifti1Image, or None
        Posterior probabilities that a weight is not zero.

    intercept_ : ndarray of shape (n_pairs,)
        See ``coef_``.

    leakage_ : tuple of :obj:`str`
        What the check before the first fit found; empty where nothing speaks against the scores.

    mask_img_ : Nifti1Image
        The voxels in use.

    masker_ : NiftiMasker
        Turns images into rows, and rows into images.

    n_classes_ : :obj:`int`
        K.

    n_elements_ : :obj:`int`
        Number of voxels.

    notes_ : tuple of :obj:`str`
        What a reader must know: dropped voxels, small groups.

    pattern_img_ : mapping of Nifti1Image
        Activation patterns (Haufe et al., 2014) of the refits: where the two classes differ.

    selection_freq_img_ : mapping of Nifti1Image
        Share of folds that selected a voxel.

    stability_ : pandas.DataFrame
        By contrast: mean number of selected voxels; mean Jaccard overlap of folds and what it would be by
        chance; Nogueira's index with the low and high end of its 95 % interval.

    status_ : pandas.DataFrame
        One row per fit, "refit" the one on all images: converged, n_iter, voxels, parameters, status.

    See Also
    --------
    nilearn.decoding.Decoder : the same for other classifiers.
    mvpa_gamp.GAMPClassifier : two classes of any features, as a scikit-learn estimator.

    Examples
    --------
    >>> from mvpa_gamp import GAMPDecoder
    >>> from mvpa_gamp.imaging.phantom import Phantom, phantom_images, phantom_labels
    >>> spec = Phantom(shape=(12, 14, 10), n_runs=5, categories=("face", "house"), signal=2.5)
    >>> bold, mask, _, _ = phantom_images(spec)
    >>> labels = phantom_labels(spec)
    >>> decoder = GAMPDecoder(mask=mask, ignore="rest").fit(bold, labels.conditions, groups=labels.runs)
    >>> bool(decoder.fold_scores_.mean() > 0.8)
    True
    >>> decoder.coef_img_["face-house"].shape
    (12, 14, 10)
    """

    def __init__(
        self,
        method: str = "gamp-sbg-lr",
        mask: Any = None,
        cv: Any = None,
        scoring: Any = "accuracy",
        smoothing_fwhm: float | None = None,
        standardize: Any = True,
        detrend: bool = False,
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

    # --- fitting

    def fit(self, X: Any, y: Any, groups: Any = None, fold_confounds: Any = None) -> "GAMPDecoder":
        """Fit to images X (4-D, a list of 3-D ones, or paths), their classes y and, best, their runs.

        X may also be nilearn's SurfaceImage, a list of them, or names of surface files: a CIFTI dense series,
        or one file of a GIFTI pair (``hemi-L``, ``hemi-R``), read on the meshes of the mask, else on
        fsaverage5. All maps are then SurfaceImages, and neighbours are vertices that share an edge.

        ``groups`` names the run (or subject) of each image. With it every group is cleaned by itself and
        held out once; without it neighbouring volumes reach both sides of a fold and scores are too good.
        Given run by run, X a list of 4-D images and y a list of their labels, every image is a group.

        ``fold_confounds``, images x covariates such as reaction times, are regressed out of every voxel with
        coefficients of each fold's training images alone; predictions about new images need theirs too.
        """
        data = decode_images(self, X, y, groups, fold_confounds, self._say)
        self.classes_, self.n_classes_, self.notes_ = data.classes, len(data.classes), data.notes
        self.leakage_ = tuple(data.leakage.sentences)
        self._keep_maps(data)
        self._keep_scores(data)
        self._data = data
        self._tell_convergence()
        return self

    def _keep_maps(self, data: Decoded) -> None:
        named = data.pairs
        self.masker_, self.mask_img_ = data.masker, data.masker.mask_img_
        self.n_elements_ = data.X.shape[1]
        self.contrasts_ = [contrast_key(*pair) for pair in named]
        self.coef_ = np.stack([-fits.coef[:, -1] for fits in data.fits])
        self.intercept_ = np.array([-fits.intercept[-1] for fits in data.fits])

        def maps(name: str, signed: bool) -> ContrastMaps | None:
            vectors = [getattr(fits, name) for fits in data.fits]
            if vectors[0] is None:
                return None
            last = np.stack([each[:, -1] for each in vectors], axis=1)
            return ContrastMaps(last, named, self.mask_img_, signed)

        self.coef_img_ = maps("coef", True)
        self.coef_std_img_ = maps("coef_std", False)
        self.inclusion_img_ = maps("inclusion", False)
        self.pattern_img_ = maps("pattern", True)
        frequency = np.stack([fits.frequency for fits in data.fits], axis=1)
        self.selection_freq_img_ = ContrastMaps(frequency, named, self.mask_img_, signed=False)

    def _keep_scores(self, data: Decoded) -> None:
        classes, said = self.classes_, data.said
        found = score_classes(data.scoring, said, data.codes, classes)
        true = data.codes[said.rows]
        self.cv_ = data.splits.folds.rows()
        self.fold_scores_ = found.fold_scores
        self.cv_scores_ = found.class_scores
        self.contrast_scores_ = found.contrast_scores
        groups = None if data.groups is None else data.groups[said.rows]
        self.cv_predictions_ = predictions_table(
            data.rows[said.rows], groups, said.fold, true, found.judged, classes
        )
        self.confusion_ = confusion_table(found.confusion, classes)
        self.stability_ = stability_table(data.fits, self.contrasts_)
        self.status_ = status_table(data.fits, self.contrasts_)
        self.converged_ = bool(self.status_["converged"].all())

    def _tell_convergence(self) -> None:
        undefined = np.isnan(self.fold_scores_)
        if undefined.any():
            warnings.warn(
                f"The score is not defined in {undefined.sum()} of {undefined.size} folds, which do not test "
                "every class: NaN in fold_scores_, left out of means. Use accuracy, or folds of all classes.",
                stacklevel=3,
            )
        failed = ~self.status_["converged"].to_numpy(dtype=bool)
        if failed.any():
            warnings.warn(
                f"{failed.sum()} of {failed.size} fits did not converge, see status_. "
                f"The first one: {self.status_['status'][failed].iloc[0]}",
                ConvergenceWarning,
                stacklevel=3,
            )
        self._say(
            f"{(~failed).sum()} of {failed.size} fits ended as intended; "
            f"mean held-out score {mean_score(self.fold_scores_):.3f}."
        )
        for row in self.status_.itertuples() if self.verbose > 2 else ():
            self._say(f"{row.contrast}, fold {row.fold}: {row.status}")

    # --- using

    def predict(self, X: Any, groups: Any = None, fold_confounds: Any = None) -> NDArray:
        """The class of each image.

        X may also be an array of masked rows. Images on another grid are resampled to the mask's by nilearn,
        which warns. ``groups`` cleans images of several runs run by run; without
        it they are cleaned as one series, as in nilearn. ``fold_confounds`` are their covariates, where
        ``fit`` was given some.
        """
        numbers = self._answers(X, groups, fold_confounds).predicted
        return self.classes_[numbers]

    def decision_function(self, X: Any, groups: Any = None, fold_confounds: Any = None) -> NDArray:
        """Two classes: the linear score (m,), positive for the second; more: log probabilities (m, K)."""
        return self._answers(X, groups, fold_confounds).decision

    def predict_proba(self, X: Any, groups: Any = None, fold_confounds: Any = None) -> NDArray:
        """Probabilities (m, K), averaged over the posterior of the weights, coupled over pairs."""
        return self._answers(X, groups, fold_confounds).proba

    def score(self, X: Any, y: Any, groups: Any = None, fold_confounds: Any = None) -> float:
        """The ``scoring`` of predictions for new images; for images of fit use ``fold_scores_``."""
        found = self._answers(X, groups, fold_confounds)
        y = check_images_and_labels(len(found.predicted), y)
        kept = ~is_ignored(y, self.ignore)
        true = class_numbers(y[kept], self.classes_)
        decision, proba, predicted = (part[kept] for part in found)
        together = np.zeros(len(true), dtype=int)
        scores = score_rows(self._data.scoring, self.classes_, true, decision, proba, predicted, together)
        return float(scores[0])

    def permutation_test(
        self, n: int = 1000, *, exchange: str = "block", unit: str | None = None
    ) -> PermutationTest:
        """Compare the mean of ``fold_scores_`` with n permutations of the labels within groups.

        The whole cross-validation is repeated for each, on the same X of every fold where ``whiten`` or
        ``fold_confounds`` prepare it, which labels do not influence. ``exchange="block"`` exchanges
        stretches of successive images of one class and group as wholes, ``"sample"`` single images, for
        independent ones such as trial-wise maps (``unit`` is its earlier name). The record has ``score``,
        ``null`` (n,),
        ``pvalue`` and a ``caution``.
        """
        check_is_fitted(self)
        return permute(self._data, n, unit or exchange, _seed(self.random_state), self.n_jobs)

    def regions(self, atlas: Any, labels: Any = "", *, by_region: bool = False, permutations: int = 0) -> Any:
        """A table of the regions of an atlas for every contrast: what of the maps lies in each.

        ``atlas`` is a labelled volume (image or file, with its table beside it or as ``labels``, a file or a
        mapping from number to name), the name of an atlas that nilearn has downloaded, or ``Regions``. Sums
        over regions and "outside the atlas" equal "all voxels". ``by_region`` also decodes from each region
        alone, in the same folds; ``permutations`` adds p-values, of each region and corrected for all.
        """
        check_is_fitted(self)
        from mvpa_gamp.decoder.regions import region_table

        if self._data.confounds is not None and (by_region or permutations):
            raise ValueError(
                "regions: they are decoded from images as measured, fold_confounds were regressed out in "
                "fit. Decode by region with a decoder fitted without."
            )
        if self.whiten and (by_region or permutations):
            raise ValueError(
                "regions: a whitened voxel mixes several, also of other regions. Decode by region with "
                "whiten=False."
            )
        seed = _seed(self.random_state)
        return region_table(self._data, self.mask_img_, atlas, labels, by_region, permutations, seed)

    def view(self, contrast: Any = None, stat: str = "weight", threshold: Any = 1e-6) -> Any:
        """A map in nilearn's interactive viewer (``view_img``), drawn on the mean of the images.

        ``contrast`` is one of ``contrasts_`` (None: the first), ``stat`` "weight", "weightsd", "pip"
        (inclusion probability), "pattern" or "selfreq". Voxels below ``threshold`` are left out. The object
        has nilearn's ``open_in_browser()`` and ``save_as_html(path)``; a notebook shows it.
        """
        check_is_fitted(self)
        from mvpa_gamp.decoder.view import view_map

        return view_map(self, contrast, stat, threshold)

    def information(self, n: int = 999, *, exchange: str = "block") -> InformationImages:
        """Which voxels carry information about each pair of classes, corrected for all voxels.

        Every voxel's correlation with the two classes is compared with n permutations of the labels within
        groups (``mvpa_gamp.decoding.carries_information``); nothing is fitted. Returns images by contrast:
        ``corr_img``, ``logpfwe_img`` and ``mask_img``. Hand it to ``to_bids`` or ``generate_report``.
        """
        check_is_fitted(self)
        return find_information(
            self._data.without_confounds, self._tasks(), n, exchange, _seed(self.random_state)
        )

    def select(self, fdr: float = 0.05, *, exchange: str = "block", check: bool = False) -> SelectionImages:
        """Voxels of each pair of classes at a false-discovery rate that permuted labels calibrate.

        The decoder relies on them and they carry information (``mvpa_gamp.decoding.calibrate``). Returns
        images by contrast, ``mask_img`` and ``strength_img``, and ``records`` whose ``verdict`` says what
        was found or why nothing can be. ``check=True`` adds a check with planted effects, as ``--fdr`` of the
        commands makes, which takes longer. Hand it to ``to_bids`` or ``generate_report``.
        """
        check_is_fitted(self)
        if self._data.confounds is not None:
            raise ValueError(
                "select: voxels are selected from images as measured, fold_confounds were regressed out in "
                "fit. Select with a decoder fitted without."
            )
        if self.whiten:
            raise ValueError(
                "select: voxels of whiten=True are mixtures of voxels, which no rate is calibrated for. "
                "Select with a decoder with whiten=False."
            )
        seed = _seed(self.random_state)
        return find_selection(self._data, self._tasks(), fdr, exchange, check, seed, self.n_jobs)

    def generate_report(
        self,
        title: str | None = None,
        subject: str = "01",
        max_contrasts: int = 6,
        permutation: PermutationTest | None = None,
        contrasts: Sequence[str] | None = None,
        information: InformationImages | None = None,
        selection: SelectionImages | None = None,
    ) -> Any:
        """A self-contained HTML page: scores, confusion, maps, stability, convergence, methods text.

        The object has nilearn's ``save_as_html(path)`` and ``open_in_browser()``. Figures are drawn for the
        ``contrasts`` named, such as ``["face-house"]``, or for the first ``max_contrasts``; tables hold all
        of them. ``permutation`` is a ``permutation_test`` to show, ``information`` and ``selection`` are what
        the methods of these names found.
        """
        check_is_fitted(self)
        from mvpa_gamp.decoder.report import chosen_contrasts, decoder_report

        drawn = chosen_contrasts(self, contrasts, max_contrasts)
        voxels = FoundVoxels(information, selection)
        return decoder_report(self, title, subject, drawn, permutation, voxels)

    def to_bids(
        self,
        folder: str | Path,
        subject: str = "01",
        information: InformationImages | None = None,
        selection: SelectionImages | None = None,
    ) -> Path:
        """Write maps and tables under BIDS-derivative names, as the Haxby command does."""
        check_is_fitted(self)
        from mvpa_gamp.decoder.folder import write_folder

        return write_folder(self, Path(folder), subject, voxels=FoundVoxels(information, selection))

    # --- inside

    def _tasks(self) -> dict[str, Task]:
        """The pairs of classes by contrast."""
        names = np.array([str(name) for name in self.classes_])
        pairs = [(str(a), str(b)) for a, b in self._data.pairs]
        tasks = make_tasks(names[self._data.codes], pairs)
        return dict(zip(self.contrasts_, tasks, strict=True))

    def _answers(self, X: Any, groups: Any, fold_confounds: Any) -> Answers:
        check_is_fitted(self)
        rows = self._rows(X, groups)
        return answers(self._data, rows, check_fold_confounds(fold_confounds, len(rows)))

    def _rows(self, X: Any, groups: Any) -> NDArray:
        """Masked rows (m, N) of images, or of an array that holds them already."""
        if isinstance(X, np.ndarray) and X.ndim == 2:
            if X.shape[1] != self.n_elements_:
                raise ValueError(
                    f"X has {X.shape[1]} features per sample; expecting {self.n_elements_}, the voxels of "
                    "mask_img_. Give images, or rows from masker_.transform."
                )
            return np.asarray(X, dtype=np.float64)
        series = open_images(X, self.mask_img_)
        groups = check_groups(groups, series.n_rows)
        rows = transform(self.masker_, series, groups_to_clean(groups, self.masker_)[0])
        return np.asarray(rows, dtype=np.float64)

    def _say(self, sentence: str) -> None:
        if self.verbose:
            print(f"[{type(self).__name__}.fit] {sentence}")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_data")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = ImageInputTags()
        return tags


def _seed(random_state: Any) -> int:
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(random_state.randint(2**31 - 1))
