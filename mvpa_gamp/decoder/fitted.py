"""What a fitted decoder can be asked beyond predictions: tests, regions, voxels, a view, a page, files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mvpa_gamp.coupling import class_pairs
from mvpa_gamp.decoder.inputs import DecoderSettings
from mvpa_gamp.decoder.maps import ContrastMaps, contrast_key, view_map
from mvpa_gamp.decoder.model import Decoded, FittedModel, permute
from mvpa_gamp.decoding.calibration import FdrSelection, calibrate
from mvpa_gamp.decoding.discoveries import PlantedCheck, Planting, planted_check, planted_count
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.localisation import (
    FEWEST_VOXELS,
    InformationMap,
    carries_information,
    decode_regions,
    others,
)
from mvpa_gamp.decoding.permutation import PermutationTest
from mvpa_gamp.decoding.preparation import in_sequence
from mvpa_gamp.decoding.tasks import Task, make_tasks
from mvpa_gamp.imaging.atlas import open_atlas
from mvpa_gamp.imaging.regions import Regions
from mvpa_gamp.results.regions import (
    ACCURACY_COLUMNS,
    REGION_COLUMNS,
    TEST_COLUMNS,
    WITHOUT_COLUMNS,
    WITHOUT_TEST_COLUMNS,
    add_accuracies,
    add_accuracies_without,
    ranked,
    region_rows,
)

_LEVEL = 0.05  # family-wise, of the mask


@dataclass(frozen=True, eq=False)
class InformationImages:
    """Voxels that carry information about the classes, by contrast, as images and as records.

    ``corr_img`` is the correlation of a voxel with the two classes within groups, positive where the
    first one of the contrast is higher; ``logpfwe_img`` -log10 of its family-wise p-value; ``mask_img`` is 1
    where p is at most 0.05. ``records`` hold the same as arrays, with the number of permutations and a
    ``caution``.
    """

    records: Mapping[str, InformationMap]
    corr_img: ContrastMaps
    logpfwe_img: ContrastMaps
    mask_img: ContrastMaps

    def __repr__(self) -> str:
        """One line per contrast: how many voxels are significant."""
        lines = [
            f"  {key}: {int(each.selected(_LEVEL).sum())} of {each.pvalue.size}"
            for key, each in self.records.items()
        ]
        return "\n".join([f"Voxels that carry information, family-wise p <= {_LEVEL:g}:", *lines])


@dataclass(frozen=True, eq=False)
class SelectionImages:
    """Voxels selected at a false-discovery rate, by contrast, as images and as records.

    ``mask_img`` is 1 at selected voxels; ``strength_img`` is what they were ranked by: inclusion probability
    times squared correlation with the classes. ``records`` have the estimated rate, the p-value and a
    sentence (``verdict``); ``checks`` are the planted checks, empty unless asked for.
    """

    fdr: float
    records: Mapping[str, FdrSelection]
    checks: Mapping[str, PlantedCheck]
    mask_img: ContrastMaps
    strength_img: ContrastMaps

    def __repr__(self) -> str:
        """One line per contrast: how many voxels, and the verdict."""
        lines = [f"  {key}: {each.verdict}" for key, each in self.records.items()]
        return "\n".join([f"Voxels selected at a false-discovery rate of {self.fdr:g}:", *lines])


class FoundVoxels(NamedTuple):
    """What was asked of a decoder about single voxels, for its folder and page."""

    information: InformationImages | None = None
    selection: SelectionImages | None = None


def find_information(
    data: Decoded, tasks: Mapping[str, Task], n: int, exchange: str, seed: int
) -> InformationImages:
    """Test every voxel of every contrast, as ``--permutations`` of the commands does."""
    records = {
        key: carries_information(*_given(data, task), n, seed, exchange, _blocks(data, task, exchange))
        for key, task in tasks.items()
    }
    found = list(records.values())
    return InformationImages(
        records,
        _maps(data, [each.correlation for each in found], signed=True),
        _maps(data, [-np.log10(each.pvalue) for each in found]),
        _maps(data, [each.selected(_LEVEL) for each in found]),
    )


def find_selection(
    data: Decoded, tasks: Mapping[str, Task], fdr: float, exchange: str, check: bool, seed: int, n_jobs: int
) -> SelectionImages:
    """Select voxels of every contrast, as ``--fdr`` of the commands does."""
    records, checks = {}, {}
    for key, task in tasks.items():
        given, blocks = _given(data, task), _blocks(data, task, exchange)
        scheme = Scheme(connectivity=data.connectivity, exchange=exchange, blocks=blocks, seed=seed)
        calibration = calibrate(data.method, *given, scheme, n_jobs=n_jobs)
        records[key] = calibration.select(fdr, of="voxel")
        if check and calibration.smallest <= fdr:
            planting = Planting(planted_count(data.X.shape[1]))
            checks[key] = planted_check(
                data.method, *given, scheme, planting, fdr=fdr, calibration=calibration, of="voxel"
            )
    found = list(records.values())
    return SelectionImages(
        fdr,
        records,
        checks,
        _maps(data, [each.selected for each in found]),
        _maps(data, [each.strength for each in found]),
    )


def _given(data: Decoded, task: Task) -> tuple[NDArray, NDArray, NDArray]:
    """X, labels and groups of the rows of a contrast."""
    return data.X[task.rows], task.y, data.exchanged_within[task.rows]


def _blocks(data: Decoded, task: Task, exchange: str) -> NDArray | None:
    """The block of each row, seen in the whole series, as the commands do."""
    if exchange != "block":
        return None
    return data.blocks[task.rows]


def _maps(data: Decoded, vectors: list[Any], signed: bool = False) -> ContrastMaps:
    return ContrastMaps(np.stack(vectors, axis=1), data.pairs, data.masker.mask_img_, signed)


def region_table(
    data: Decoded,
    mask_img: Any,
    atlas: Any,
    labels: Any,
    by_region: bool,
    permutations: int,
    seed: int,
    without: bool = False,
) -> pd.DataFrame:
    """The rows of all contrasts, one below the other, in the columns of the commands' regions.tsv."""
    regions = atlas if isinstance(atlas, Regions) else open_atlas(atlas, labels).regions(mask_img)
    if len(regions.of_voxel) != data.X.shape[1]:
        raise ValueError(
            f"atlas: its regions cover {len(regions.of_voxel)} voxels, but the mask of the decoder has "
            f"{data.X.shape[1]}. Create them with mask_img_ of the decoder."
        )
    tables = []
    for pair, (a, b) in enumerate(data.pairs):
        refit = data.fits[pair].refit
        inclusion = None if refit.inclusion is None else refit.inclusion[:, 0]
        rows = region_rows(regions, refit.coef[:, 0], inclusion, refit.support[:, 0])
        if by_region or permutations or without:
            _decode(data, regions, pair, rows, permutations, seed, without)
        tables += [{"contrast": contrast_key(a, b), **row} for row in ranked(rows)]
    accuracies = (*ACCURACY_COLUMNS, *TEST_COLUMNS, *WITHOUT_COLUMNS, *WITHOUT_TEST_COLUMNS)
    known = ("contrast", *REGION_COLUMNS, *accuracies)
    columns = [name for name in known if any(name in row for row in tables)]
    return pd.DataFrame(tables, columns=columns).astype({"index": "Int64"})


def _decode(
    data: Decoded,
    regions: Regions,
    pair: int,
    rows: list[dict[str, Any]],
    n: int,
    seed: int,
    without: bool,
) -> None:
    """Add the accuracies of one pair of classes, on its own images and in the decoder's folds."""
    first, second = class_pairs(len(data.classes))[pair]
    mine = np.isin(data.codes, (first, second))
    groups, blocks = data.exchanged_within, data.blocks[mine]
    tested = np.flatnonzero(regions.sizes >= FEWEST_VOXELS).tolist()
    if not tested:
        raise ValueError(
            f"atlas: expected a region with at least {FEWEST_VOXELS} voxels in the mask, got none. Give an "
            "atlas with larger regions."
        )
    y = np.where(data.codes[mine] == first, 1, -1)
    scheme = Scheme(
        data.splits.folds, np.flatnonzero(mine), in_sequence([data.confounds]), data.connectivity,
        blocks=blocks, seed=seed,
    )  # fmt: skip
    voxels = [regions.voxels(place) for place in tested]
    found = decode_regions(data.method, data.X, y, groups, voxels, n, scheme)
    add_accuracies(rows, found, tested)
    if without:
        voxels = [others(regions, place) for place in tested]
        found = decode_regions(data.method, data.X, y, groups, voxels, n, scheme)
        add_accuracies_without(rows, found, tested)


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
