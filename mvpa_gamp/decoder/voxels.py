"""Which voxels of a fitted decoder carry information, and which are named at a false-discovery rate."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoder.contrast_maps import ContrastMaps
from mvpa_gamp.decoder.decoded import Decoded
from mvpa_gamp.decoding.calibration import FdrSelection, calibrate
from mvpa_gamp.decoding.discoveries import Planting, planted_check, planted_count
from mvpa_gamp.decoding.exchange import blocks_of_volumes
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.information import InformationMap, carries_information
from mvpa_gamp.decoding.planted import PlantedCheck
from mvpa_gamp.decoding.tasks import Task

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
