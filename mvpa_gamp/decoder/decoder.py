"""GAMPDecoder: images in, images out, in the manner of nilearn's Decoder."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mvpa_gamp.coupling import Answers
from mvpa_gamp.decoder.fit import Given, decode_images, is_ignored
from mvpa_gamp.decoder.fitted import FittedDecoder
from mvpa_gamp.decoder.inputs import (
    check_fold_confounds,
    check_images_and_labels,
    class_numbers,
    no_probabilities,
    scoring_of,
)
from mvpa_gamp.decoder.maps import (
    ContrastMaps,
    confusion_table,
    contrast_key,
    learnt_parameters,
    predictions_table,
    stability_table,
    status_table,
)
from mvpa_gamp.decoder.model import FEWEST, TRAINING, Decoded, model_of
from mvpa_gamp.decoder.model_folder import load_model, save_model
from mvpa_gamp.decoding.scores import mean_score, score_classes, score_rows
from mvpa_gamp.gamp.result import FOUND_NOTHING
from mvpa_gamp.imaging.maskers import CLEANING


class GAMPDecoder(FittedDecoder):
    """Decode classes from images and find the voxels that matter, like nilearn's Decoder.

    All pairs of classes, all folds and the refits on all images are columns of one solve, and nothing is
    tuned by a grid. Maps and predictions come from the refits (nilearn averages the folds' models); scores
    come from held-out images only. Three or more classes are fitted together by the VAMP methods, with one
    map of inclusion; other methods couple the pairs' probabilities (Hastie & Tibshirani, 1998).

    Parameters
    ----------
    method : :obj:`str` or classifier of scikit-learn, default="vamp-sbg"
        A name of ``mvpa_gamp.methods.METHODS``, such as "vamp-sbg" or "gamp-sbg-lr", whose priors take
        neighbouring voxels as alike, "vamp-bg" or "gamp-bg-lr", which do not, "svm" or "lda", or an object
        such as ``LogisticRegression(C=0.1)`` or a pipeline, cloned for every fold. Methods without a
        posterior have no deviation and inclusion maps. The weights of a classifier that is not linear are
        those of the linear function that follows its decisions on the training images; its answers are its
        own.

    mask : filename, Nifti1Image, NiftiMasker, SurfaceImage, SurfaceMasker or None, default=None
        Where to decode. An image or file on another grid than the images is resampled to theirs (nearest
        neighbour) with a warning, where nilearn would resample the images to the mask. A masker, fitted or
        not, brings its own cleaning and resampling, as in nilearn. None: nilearn computes a mask; on surfaces
        the vertices that are finite and vary are used.

    cv : :obj:`int`, splitter, iterable of (train, test) or None, default=None
        Any splitter of scikit-learn. With groups, None means leave-one-group-out, as in nilearn (five to ten
        stratified folds of whole groups where each has one class, as patients and controls have), and a
        number that many folds of whole groups. Without groups: stratified folds, None means five and warns,
        because the decoder cannot know which images are of one run.

    scoring : :obj:`str`, callable or None, default="accuracy"
        A scikit-learn scorer of classes, such as "accuracy", "balanced_accuracy" or, for two classes,
        "roc_auc" (nilearn's default; of three classes or more: each against all others). A callable gets an
        estimator that knows its answers, row numbers as X, and y.

    smoothing_fwhm : :obj:`float` or None, default=None
        Gaussian smoothing in mm. Not for surfaces.

    standardize : "zscore_sample", "psc", True, False or None, default=True
        As in nilearn, but each group by itself when groups are given, which decodes better and keeps test
        runs apart from training runs. True is "zscore_sample".

    detrend : "auto", :obj:`bool`, default="auto"
        Remove a line from each voxel's series, each group by itself when groups are given. Give all volumes
        of a run, rest included, and name it in ``ignore``: "auto" then detrends, as the commands do. Without
        ``ignore`` it does not: from picked volumes, often a block of each class, or from maps in any order, a
        line takes the difference of the classes with it. 3-D images are maps: they are never detrended or
        filtered, and neither are runs of fewer than ten volumes (each would contain parts of the others).
        Where all groups are sorted by class in one order, as maps often are, "auto" does not detrend.

    whiten : :obj:`bool`, default=False
        Whiten the noise that voxels share, estimated from the spread within blocks (stretches of one class
        and group) of each fold's training images alone, with Ledoit-Wolf shrinkage. Weights are mapped back
        to voxels; inclusion and selection are those of whitened voxels. Not for single maps per block. It
        suits "gamp-sbg-lr" better than the default method.

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
        the order, a mask made from the labels, a covariate that decodes by itself) is an error; otherwise a
        warning and a caution in the report.

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

    predict_scaling : "own" or "training", default="own"
        How new images are scaled: "own" cleans them by themselves, as nilearn does, which needs whole runs;
        "training" takes the mean and spread of the training runs, without detrending or filters, also for a
        single volume. It supposes that the level of the signal did not change since. May be set after fit.

    scaling : None, "none", "centre" or "zscore", default=None
        Of maps of many participants (groups), in place of ``standardize``, over the images of each group that
        are not ignored: nothing, their mean is taken away, or z-scores. None: as ``standardize`` says, but
        groups of two 3-D images, of different classes, are centred. New images are scaled with those of
        their ``groups``, or without groups as in training.

    target_affine : array of shape (3, 3) or (4, 4), or None, default=None
        Images and mask are resampled to it by nilearn.

    target_shape : :obj:`tuple` of 3 numbers or None, default=None
        Of the resampled images.

    mask_strategy : :obj:`str`, default="background"
        How nilearn computes a mask where none is given.

    estimator : default=None
        Not used, as are all below: names that users of nilearn's Decoder and FREMClassifier pass. Any other
        value than None gives a warning that says what is done instead, and a dummy is refused.

    estimator_args : default=None
        Not used: there is no scikit-learn estimator inside.

    param_grid : default=None
        Not used: nothing is searched on a grid.

    screening_percentile : default=None
        Not used: all voxels of the mask are fitted, as with 100.

    screening_n_features : default=None
        Not used.

    clustering_percentile : default=None
        Not used: voxels are not clustered.

    Attributes
    ----------
    classes_ : ndarray of the K classes, sorted.

    coef_ : ndarray of shape (n_pairs, n_elements)
        Weights of the refits: ``X @ coef_.T + intercept_`` is positive for the second class of a pair.

    coef_img_ : mapping of Nifti1Image
        Weights by contrast: positive values of ``coef_img_["face-house"]`` favour face. Maps by class are
        as in nilearn. With two classes ``coef_img_["face"]``, of the first one, is ``coef_`` itself: positive
        where it favours the other class (with a warning). With more it is the mean over the pairs of
        face, positive where it favours face.

    coef_std_img_ : mapping of Nifti1Image, or None
        Posterior standard deviations of the weights.

    confusion_ : pandas.DataFrame
        Counts of held-out images by true (rows) and predicted class.

    contrast_scores_ : dict of ndarrays of shape (n_folds,)
        By contrast: the score of its own classifier on held-out images of its two classes.

    contrasts_ : list of :obj:`str`
        Keys of the pairs, in the order of ``coef_``.

    converged_ : :obj:`bool`
        Whether all fits met their stopping rule.

    cv_ : list of (train, test)
        Row numbers among the images that were not ignored.

    cv_params_ : dict of dicts of lists, one number per fold
        What was learnt, by contrast (with two classes also by class, as in nilearn) and parameter.

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
        Activation patterns (Haufe et al., 2014) of the refits: where the two classes differ. By class:
        positive where it is higher.

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

    # --- fitting

    def fit(
        self, X: Any, y: Any, groups: Any = None, fold_confounds: Any = None, confounds: Any = None
    ) -> "GAMPDecoder":
        """Fit to images X (4-D, a list of 3-D ones, or paths), their classes y and, best, their runs.

        X may also be nilearn's SurfaceImage, a list of them, or names of surface files: a CIFTI dense series,
        or one file of a GIFTI pair (``hemi-L``, ``hemi-R``), read on the meshes of the mask, else on
        fsaverage5. All maps are then SurfaceImages, and neighbours are vertices that share an edge.

        ``groups`` names the run (or subject) of each image. With it every group is cleaned by itself and
        held out once; without it neighbouring volumes reach both sides of a fold and scores are too good.
        Given run by run, X a list of 4-D images and y a list of their labels, every image is a group.

        ``fold_confounds``, images x covariates such as reaction times, are regressed out of every voxel with
        coefficients of each fold's training images alone; predictions about new images need theirs too.

        ``confounds``, such as motion parameters, are regressed out of each run's series by
        ``nilearn.signal.clean``, as nilearn's maskers do (its Decoder takes none): a table of all images
        (array, DataFrame, or file with a header), or a list of one for each 4-D image or each group, whose
        columns may differ. Missing values become the mean of their run.
        """
        data = decode_images(self, Given(X, y, groups, fold_confounds, confounds), self._say)
        self.classes_, self.n_classes_, self.notes_ = data.classes, len(data.classes), data.notes
        self.leakage_ = tuple(data.leakage.sentences)
        self._keep_maps(data)
        self._keep_scores(data)
        self._data, self._model = data, model_of(data)
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
            return ContrastMaps(last, named, self.mask_img_, signed, as_nilearn=name == "coef")

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
        self.contrast_scores_ = {key: np.asarray(each) for key, each in found.contrast_scores.items()}
        groups = None if data.groups is None else data.groups[said.rows]
        self.cv_predictions_ = predictions_table(
            data.rows[said.rows], groups, said.fold, true, found.judged, classes
        )
        self.confusion_ = confusion_table(found.confusion, classes)
        self.cv_params_ = learnt_parameters(data.fits, classes, self.contrasts_)
        self.stability_ = stability_table(data.fits, self.contrasts_)
        self.status_ = status_table(data.fits, self.contrasts_)
        self.converged_ = bool(self.status_["converged"].all())

    def _tell_convergence(self) -> None:
        undefined = np.isnan(self.fold_scores_)
        if undefined.any():
            warnings.warn(
                f"The score is undefined in {undefined.sum()} of {undefined.size} folds, because they do "
                "not test every class; these are NaN in fold_scores_ and left out of means. Use accuracy, "
                "or folds that contain all classes.",
                stacklevel=3,
            )
        failed = ~self.status_["converged"].to_numpy(dtype=bool)
        failed &= self.status_["status"].to_numpy() != FOUND_NOTHING
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

    def predict(
        self, X: Any, groups: Any = None, fold_confounds: Any = None, confounds: Any = None
    ) -> NDArray:
        """The class of each image.

        X may also be an array of masked rows. Images on another grid are resampled to the mask's by nilearn,
        which warns. ``groups`` cleans images of several runs run by run; without it they are cleaned as one
        series, as in nilearn. Give whole runs: few images lose their signal with their mean, which a warning
        says, and ``predict_scaling="training"`` helps. ``fold_confounds`` and ``confounds`` are theirs, where
        ``fit`` was given some.
        """
        numbers = self._answers(X, groups, fold_confounds, confounds).predicted
        return self.classes_[numbers]

    def decision_function(
        self, X: Any, groups: Any = None, fold_confounds: Any = None, confounds: Any = None
    ) -> NDArray:
        """Two classes: the linear score (m,), positive for the second; more: log probabilities (m, K)."""
        return self._answers(X, groups, fold_confounds, confounds).decision

    def predict_proba(
        self, X: Any, groups: Any = None, fold_confounds: Any = None, confounds: Any = None
    ) -> NDArray:
        """Probabilities (m, K), averaged over the posterior of the weights, coupled over pairs.

        A method without probabilities, such as "svm", is refused in a sentence.
        """
        check_is_fitted(self)
        if not self._model.has_probabilities:
            raise no_probabilities(self._model.method, "predict_proba")
        return self._answers(X, groups, fold_confounds, confounds).proba

    def score(
        self, X: Any, y: Any, groups: Any = None, fold_confounds: Any = None, confounds: Any = None
    ) -> float:
        """The ``scoring`` of predictions for new images; for images of fit use ``fold_scores_``."""
        found = self._answers(X, groups, fold_confounds, confounds)
        y = check_images_and_labels(len(found.predicted), y)
        kept = ~is_ignored(y, self.ignore)
        true = class_numbers(y[kept], self.classes_)
        decision, proba, predicted = (part[kept] for part in found)
        together = np.zeros(len(true), dtype=int)
        scoring = scoring_of(self.scoring, len(self.classes_))
        scores = score_rows(scoring, self.classes_, true, decision, proba, predicted, together)
        return float(scores[0])

    def save(self, folder: str | Path) -> Path:
        """Write the model to a new folder: NIfTI (weights), JSON (intercept, scaling, classes) and a table.

        Any tool can read it, no code is stored, and ``load`` predicts the same to the bit. Not for surfaces,
        ``whiten``, ``fold_confounds`` and classifiers that are not linear.

        Parameters
        ----------
        folder : :obj:`str` or :obj:`pathlib.Path`
            A new or empty folder.

        Returns
        -------
        :obj:`pathlib.Path`
            The folder.

        Examples
        --------
        >>> decoder.save("face-house-model")  # doctest: +SKIP
        >>> GAMPDecoder.load("face-house-model").predict("new_bold.nii.gz")  # doctest: +SKIP
        """
        self._check_trained()
        if self.whiten or self._data.confounds is not None:
            raise ValueError(
                "save: with whiten or fold_confounds new images are prepared by more than weights and a "
                "scaling, which a model folder cannot hold. Fit a decoder without them."
            )
        about = {
            "score": mean_score(self.fold_scores_),
            "scoring": str(self._data.scoring),
            "cross_validation": self._data.splits.sentence,
            "images": len(self._data.X),
            "notes": list(self.notes_),
        }
        table = (list(self.cv_predictions_.columns), self.cv_predictions_.to_dict("records"))
        about |= {"predict_scaling": self.predict_scaling, "image_scaling": self._data.within or "none"}
        return save_model(self._model, folder, about, table)

    @classmethod
    def load(cls, folder: str | Path) -> "GAMPDecoder":
        """The decoder of a folder that ``save`` wrote: it predicts, and shows its weights.

        Nothing in the folder is run, and everything is checked. New images are cleaned as they were by the
        decoder that was saved; ``predict_scaling`` may be set.

        Parameters
        ----------
        folder : :obj:`str` or :obj:`pathlib.Path`
            What ``save`` wrote.

        Returns
        -------
        GAMPDecoder
            With ``classes_``, ``coef_``, ``intercept_``, ``coef_img_``, ``coef_std_img_``, ``mask_img_`` and
            ``masker_``; what needs the images of fit is refused.
        """
        model, said = load_model(folder)
        if model.classes is None:
            raise ValueError(
                f"{folder} is a model of a number, not of classes. Load it with GAMPRegressor.load."
            )
        scaling = said.get("about", {}).get("predict_scaling", TRAINING)
        within = said.get("about", {}).get("image_scaling", "none")
        known = {name: getattr(model.masker, name) for name in CLEANING}
        decoder = cls(model.method, mask=model.masker.mask_img_, predict_scaling=scaling, **known)
        decoder.scaling = within if within in FEWEST else None
        decoder.classes_, decoder.n_classes_, decoder.notes_ = model.classes, len(model.classes), ()
        decoder.masker_, decoder.mask_img_ = model.masker, model.masker.mask_img_
        decoder.n_elements_, decoder.contrasts_ = len(model.coef), model.contrasts
        decoder.coef_, decoder.intercept_ = -model.coef.T, -model.intercept
        decoder.coef_img_ = ContrastMaps(model.coef, model.pairs, decoder.mask_img_, True, as_nilearn=True)
        decoder.coef_std_img_ = None
        if model.coef_std is not None:
            decoder.coef_std_img_ = ContrastMaps(model.coef_std, model.pairs, decoder.mask_img_, False)
        decoder._model = replace(model, within=decoder.scaling or "")
        return decoder

    # --- inside

    def _answers(self, X: Any, groups: Any, fold_confounds: Any, confounds: Any) -> Answers:
        check_is_fitted(self)
        if isinstance(X, np.ndarray) and X.ndim == 2:
            rows = self._masked_rows(X)
        else:
            rows = self._model.rows(X, groups, confounds, self.predict_scaling)
        covariates = check_fold_confounds(fold_confounds, len(rows))
        if hasattr(self, "_data"):
            rows = self._data.refits.fitted.apply(rows, covariates)
        return self._model.answers(rows)

    def _masked_rows(self, X: NDArray) -> NDArray:
        """An array that holds masked rows (m, N) already."""
        if X.shape[1] != self.n_elements_:
            raise ValueError(
                f"X has {X.shape[1]} features per sample; expecting {self.n_elements_}, the voxels of "
                "mask_img_. Give images, or rows from masker_.transform."
            )
        return np.asarray(X, dtype=np.float64)

    def _say(self, sentence: str) -> None:
        if self.verbose:
            print(f"[{type(self).__name__}.fit] {sentence}")
