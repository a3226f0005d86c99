"""The door between volumes and the matrix: BOLD files, labels and a mask in, Samples out."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.confounds import fill_missing, read_confounds
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.file_kinds import check_not_swapped
from mvpa_gamp.imaging.file_order import order_notes
from mvpa_gamp.imaging.labels import (
    UNLABELLED,
    Labels,
    read_labels,
    runs_in_order,
    runs_of_files,
    shift_labels,
)
from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.imaging.masked_series import Series, read_series, usable_voxels
from mvpa_gamp.imaging.processing import Processing, clean_run
from mvpa_gamp.imaging.truth import PlantedTruth
from mvpa_gamp.imaging.volumes import check_same_grid, like, name_of, open_mask, open_series

PHANTOM_BANNER = "SIMULATED PHANTOM, not a brain"


@dataclass(frozen=True)
class Samples:
    """What decoding works on: M labelled volumes of N voxels, and what is needed to draw maps of them.

    Columns of X are the voxels of ``mask_img`` in C order. ``notes`` are sentences for the reader,
    ``truth`` the planted patterns of a phantom. A phantom is always called "phantom", real data never.
    """

    X: NDArray  # (M, N) float32, C order
    conditions: NDArray  # (M,) str
    runs: NDArray  # (M,) int
    mask_img: Any
    background_img: Any
    subject: str
    is_phantom: bool = False
    notes: tuple[str, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)
    truth: PlantedTruth | None = None
    volumes: NDArray | None = None  # (M,) int: place of each row in the BOLD series, from 0

    def __post_init__(self) -> None:
        if self.is_phantom != (self.subject.lower() == "phantom"):
            raise DataError(
                f"subject: the name 'phantom' belongs to the phantom alone, got {self.subject!r} for "
                f"{'a phantom' if self.is_phantom else 'real data'}. Choose another name."
            )

    @property
    def unit(self) -> str:
        """What a row is: volumes, or what the door made of them."""
        return str(self.provenance.get("unit", "volumes"))

    @property
    def banner(self) -> str | None:
        """The sentence that must stand on everything made from a phantom; None for real data."""
        return PHANTOM_BANNER if self.is_phantom else None


def load_samples(
    bold: Any,
    labels: str | Path | Labels,
    mask: Any,
    processing: Processing | None = None,
    subject: str = "01",
    provenance: dict[str, Any] | None = None,
) -> Samples:
    """Samples from NIfTI files (or nibabel images), labels per volume and a mask on the same grid.

    Several BOLD files are concatenated in the given order; without a run column in the labels each file
    is a run. Raises DataError with one sentence when something does not fit.
    """
    processing = processing or Processing()
    files = list(bold) if isinstance(bold, Sequence) and not isinstance(bold, str) else [bold]
    if not files:
        raise DataError("BOLD: expected at least one 4-D NIfTI file, got none. Give the files.")
    check_not_swapped(files, labels)
    known = labels if isinstance(labels, Labels) else read_labels(labels)
    images = [open_series(image) for image in files]
    mask_img, inside = open_mask(mask)
    for image in images[1:]:
        check_same_grid(image, images[0], "BOLD file")
    check_same_grid(mask_img, images[0], "mask")
    known = _complete_labels(known, [image.shape[3] for image in images])
    notes = order_notes([name_of(image) for image in images], [image.shape[3] for image in images], known)
    series = read_series(images, inside, processing.smoothing_fwhm)
    origin = {
        "source": "nifti",
        "bold": [name_of(image) for image in images],
        "labels": "in memory" if isinstance(labels, Labels) else str(labels),
        "mask": name_of(mask_img),
    }
    samples = process_series(series, known, processing, mask_img, entity(subject))
    return replace(
        samples, notes=notes + samples.notes, provenance=samples.provenance | origin | (provenance or {})
    )


def process_series(
    series: Series,
    labels: Labels,
    processing: Processing,
    reference: Any,
    subject: str,
    is_phantom: bool = False,
) -> Samples:
    """Clean each run, drop unusable voxels and unlabelled volumes; ``reference`` gives the mask's header."""
    assert labels.runs is not None
    stretches = runs_in_order(labels.runs)
    t_r = processing.t_r or series.t_r
    confounds, missing = _confounds(processing, series)
    kept, notes = usable_voxels(series, stretches)
    conditions = shift_labels(labels, processing.lag_trs)
    rows = ~np.isin(conditions, [*processing.drop, UNLABELLED])
    if not rows.any():
        _check_lag(labels, processing, max(span.stop - span.start for _, span in stretches))
        raise DataError(
            f"labels: no volume is left after dropping {', '.join(processing.drop)}; the conditions are "
            f"{', '.join(sorted(set(map(str, labels.conditions)))[:10])}. Check the label file."
        )
    X = np.empty((int(rows.sum()), int(kept.sum())), dtype=np.float32)
    filled = 0
    for run, span in stretches:
        nuisance = None if confounds is None else fill_missing(confounds[span])
        cleaned = clean_run(series.values[span][:, kept], processing, t_r, nuisance, run)
        wanted = rows[span]
        X[filled : filled + wanted.sum()] = cleaned[wanted]
        filled += int(wanted.sum())
    if missing:
        notes += (f"{missing} missing values in the confounds were replaced by the mean of their run.",)
    mask = series.mask.copy()
    mask[series.mask] = kept
    return Samples(
        X=X,
        conditions=conditions[rows],
        runs=labels.runs[rows],
        mask_img=like(reference, mask.astype(np.uint8)),
        background_img=series.mean_img,
        subject=subject,
        is_phantom=is_phantom,
        notes=notes,
        volumes=np.flatnonzero(rows),
        provenance={"processing": processing.description(), "t_r": t_r, "volumes": list(series.volumes)},
    )


def _complete_labels(labels: Labels, volumes: list[int]) -> Labels:
    """Check the number of labels; without runs in the label file every BOLD file is a run."""
    if len(labels) != sum(volumes):
        per_file = "" if len(volumes) == 1 else f" ({' + '.join(map(str, volumes))})"
        raise DataError(
            f"labels: expected one label per volume, {sum(volumes)}{per_file}, got {len(labels)}. "
            "Give the label file of exactly these BOLD files."
        )
    if labels.runs is not None:
        return labels
    if len(volumes) == 1:
        raise DataError(
            "labels: expected a column with the run of each volume (chunks or run), got none for a single "
            "BOLD file. Add the column: cross-validation leaves one run out."
        )
    return Labels(labels.conditions, runs_of_files(volumes))


def _check_lag(labels: Labels, processing: Processing, longest: int) -> None:
    """Blame the lag, not the labels, where it alone leaves no volume."""
    if processing.lag_trs and not np.isin(labels.conditions, [*processing.drop, UNLABELLED]).all():
        raise DataError(
            f"lag_trs: a lag of {processing.lag_trs} volumes moves every label out of its run (the longest "
            f"run has {longest} volumes). Give a smaller lag."
        )


def _confounds(processing: Processing, series: Series) -> tuple[NDArray | None, int]:
    files = processing.confound_files
    if not files:
        return None, 0
    return read_confounds(files, list(series.volumes), processing.confound_columns)
