"""What a decoder's fit worked on and found, and its answers about new rows and permuted labels."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.coupling import class_pairs, classify
from mvpa_gamp.decoder.images import RowMasker
from mvpa_gamp.decoder.model import FittedModel, link_of, root_mean_square
from mvpa_gamp.decoding.exchange import blocks_of_volumes
from mvpa_gamp.decoding.fit import Refits, Scheme
from mvpa_gamp.decoding.folds import Splits
from mvpa_gamp.decoding.leakage import Checked
from mvpa_gamp.decoding.permutation import PermutationTest, permutation_test
from mvpa_gamp.decoding.preparation import FoldConfounds, Preparation, prepared_by_all
from mvpa_gamp.decoding.scores import HeldOut, held_out_answers, mean_score, score_rows
from mvpa_gamp.imaging.matrix import Scaling
from mvpa_gamp.methods.fold_fits import FoldFits, Method


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
        cleaned_by_group=data.cleaned_by_group,
        shortest_run=data.shortest_run,
        size=root_mean_square(data.X),
        models=refit.models,
    )


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
