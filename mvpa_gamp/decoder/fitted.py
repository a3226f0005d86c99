"""What a fitted decoder can be asked beyond predictions: tests, regions, voxels, a view, a page, files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mvpa_gamp.decoder.decoded import Decoded, permute
from mvpa_gamp.decoder.maps import view_map
from mvpa_gamp.decoder.model import FittedModel
from mvpa_gamp.decoder.settings import DecoderSettings
from mvpa_gamp.decoder.voxels import (
    FoundVoxels,
    InformationImages,
    SelectionImages,
    find_information,
    find_selection,
    region_table,
)
from mvpa_gamp.decoding.permutation import PermutationTest
from mvpa_gamp.decoding.tasks import Task, make_tasks


class FittedDecoder(DecoderSettings):
    """The questions that ``GAMPDecoder`` answers once it is fitted."""

    _data: Decoded
    _model: FittedModel
    classes_: NDArray
    contrasts_: list[str]
    mask_img_: Any
    masker_: Any

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
        self._check_trained()
        return permute(self._data, n, unit or exchange, _seed(self.random_state), self.n_jobs)

    def regions(
        self,
        atlas: Any,
        labels: Any = "",
        *,
        by_region: bool = False,
        permutations: int = 0,
        without: bool = False,
    ) -> Any:
        """A table of the regions of an atlas for every contrast: what of the maps lies in each.

        ``atlas`` is a labelled volume (image or file, with its table beside it or as ``labels``, a file or a
        mapping from number to name), the name of an atlas that nilearn has downloaded, or ``Regions``. Sums
        over regions and "outside the atlas" equal "all voxels". ``by_region`` also decodes from each region
        alone, in the same folds, ``without`` also from all voxels but those of each region (a virtual
        lesion); ``permutations`` adds p-values, of each region and corrected for all.
        """
        self._check_trained()
        if self.whiten and (by_region or permutations or without):
            raise ValueError(
                "regions: with whiten=True a voxel is a mixture of voxels, including those of other "
                "regions. Use a decoder with whiten=False."
            )
        seed = _seed(self.random_state)
        asked = by_region or without, permutations, seed, without
        return region_table(self._data, self.mask_img_, atlas, labels, *asked)

    def view(self, contrast: Any = None, stat: str = "weight", threshold: Any = 1e-6) -> Any:
        """A map in nilearn's interactive viewer (``view_img``), drawn on the mean of the images.

        ``contrast`` is one of ``contrasts_`` (None: the first), ``stat`` "weight", "weightsd", "pip"
        (inclusion probability), "pattern" or "selfreq". Voxels below ``threshold`` are left out. The object
        has nilearn's ``open_in_browser()`` and ``save_as_html(path)``; a notebook shows it.
        """
        self._check_trained()
        return view_map(self, contrast, stat, threshold)

    def information(self, n: int = 999, *, exchange: str = "block") -> InformationImages:
        """Which voxels carry information about each pair of classes, corrected for all voxels.

        Every voxel's correlation with the two classes is compared with n permutations of the labels within
        groups (``mvpa_gamp.decoding.carries_information``); nothing is fitted. Returns images by contrast:
        ``corr_img``, ``logpfwe_img`` and ``mask_img``. Hand it to ``to_bids`` or ``generate_report``.
        """
        self._check_trained()
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
        self._check_trained()
        if self._data.confounds is not None:
            raise ValueError(
                "select: voxels can only be selected from images as measured, but fold_confounds were "
                "regressed out in fit. Use a decoder that was fitted without fold_confounds."
            )
        if self.whiten:
            raise ValueError(
                "select: with whiten=True voxels are mixtures of voxels, for which no false-discovery "
                "rate has been calibrated. Use a decoder with whiten=False."
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
        self._check_trained()
        from mvpa_gamp.decoder.folder import chosen_contrasts, decoder_report

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
        self._check_trained()
        from mvpa_gamp.decoder.folder import write_folder

        return write_folder(self, Path(folder), subject, voxels=FoundVoxels(information, selection))

    def _tasks(self) -> dict[str, Task]:
        """The pairs of classes by contrast."""
        names = np.array([str(name) for name in self.classes_])
        pairs = [(str(a), str(b)) for a, b in self._data.pairs]
        tasks = make_tasks(names[self._data.codes], pairs)
        return dict(zip(self.contrasts_, tasks, strict=True))

    def _check_trained(self) -> None:
        """Refuse what needs the images of fit of a decoder that has none."""
        check_is_fitted(self)
        if not hasattr(self, "_data"):
            raise ValueError(
                "This decoder was loaded from a folder, which holds its weights and no images, so it can "
                "predict and show its weights only. Fit a decoder for tests, regions and reports."
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")


def _seed(random_state: Any) -> int:
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(random_state.randint(2**31 - 1))
