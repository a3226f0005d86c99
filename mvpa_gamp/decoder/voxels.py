"""Single voxels and regions of a fitted decoder: information, selection at a rate, tables of an atlas."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvpa_gamp.coupling import class_pairs
from mvpa_gamp.decoder.decoded import Decoded
from mvpa_gamp.decoder.maps import ContrastMaps, contrast_key
from mvpa_gamp.decoding.calibration import FdrSelection, calibrate
from mvpa_gamp.decoding.discoveries import PlantedCheck, Planting, planted_check, planted_count
from mvpa_gamp.decoding.exchange import blocks_of_volumes
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.localisation import (
    FEWEST_VOXELS,
    InformationMap,
    carries_information,
    decode_regions,
    others,
)
from mvpa_gamp.decoding.preparation import in_sequence
from mvpa_gamp.decoding.tasks import Task
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
    return data.X[task.rows], task.y, _groups(data)[task.rows]


def _groups(data: Decoded) -> NDArray:
    return np.zeros(len(data.codes)) if data.groups is None else data.groups


def _blocks(data: Decoded, task: Task, exchange: str) -> NDArray | None:
    """The block of each row, seen in the whole series, as the commands do."""
    if exchange != "block":
        return None
    return blocks_of_volumes(data.codes, _groups(data), data.rows)[task.rows]


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
    groups = np.zeros(len(data.codes)) if data.groups is None else data.groups
    blocks = blocks_of_volumes(data.codes, groups, data.rows)[mine]
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
