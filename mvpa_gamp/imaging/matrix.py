"""From volumes to a matrix, for every source: one grid, usable voxels, and each run cleaned by itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.masks import border_of, brain_border, fingerprints_of, mask_on_grid
from mvpa_gamp.imaging.processing import Nuisance, Processing, clean_run, read_confounds
from mvpa_gamp.imaging.volumes import (
    check_same_grid,
    like,
    n_volumes,
    name_of,
    repetition_time,
    volume_blocks,
)

BROKEN = 0.5  # a volume without values in more than this share of the mask is itself to blame
_SHOWN = 5  # volumes or files listed in a message
# Which voxels of a mask are used: those that are finite and vary within every run, those that are finite in
# every volume, or all of them, missing values being 0.
VARYING, FINITE, ALL = "varying", "finite", "all"
_NO_VARIANCE = 1e-12  # cleaned values are of order one


class Images(Protocol):
    """What a matrix is made from: images of one space, in order. Volumes are; so are surfaces."""

    @property
    def what(self) -> str:
        """What messages call an image."""

    @property
    def elements(self) -> str:
        """What messages call the columns: voxels or vertices."""

    @property
    def names(self) -> tuple[str, ...]:
        """What messages call each image."""

    @property
    def counts(self) -> tuple[int, ...]:
        """Volumes (time points) of each image."""

    @property
    def n_rows(self) -> int:
        """Those of all images."""

    @property
    def t_r(self) -> float | None:
        """Seconds between them as files tell, None where they do not."""

    def read(self, mask: Any, smoothing_fwhm: float | None = None) -> "Series":
        """The raw values inside a mask (image or file)."""

    def mask_image(self, inside: NDArray, mask_img: Any) -> Any:
        """A mask of some places, given in the form of ``Series.inside``."""


@dataclass(frozen=True)
class Series:
    """M raw volumes at the N voxels of a mask, and which of their values were missing."""

    volumes: Images
    values: NDArray  # (M, N) float32; NaN and infinity are 0
    inside: NDArray  # (x, y, z) bool, or (V,) of vertices
    mask_img: Any  # whose header the voxels' mask gets
    mean_img: Any
    finite: NDArray  # (N,) bool: no volume has NaN or infinity there
    lost: NDArray  # (M,) int: voxels that are NaN or infinite in each volume
    notes: tuple[str, ...] = ()  # what was done to the mask
    border: NDArray | None = None  # (M, S) float32: values of voxels that touch the mask from outside

    def mask_of(self, usable: NDArray) -> Any:
        """The mask of some of the voxels (N,) bool."""
        mask = self.inside.copy()
        mask[self.inside] = usable
        return self.volumes.mask_image(mask, self.mask_img)


class RunSums(NamedTuple):
    """Of the n volumes of a run, each (N,): sums of raw and cleaned values, and products around the means."""

    n: int
    raw: NDArray
    cleaned: NDArray
    products: NDArray  # raw times cleaned
    squares: NDArray  # of cleaned


class Scaling(NamedTuple):
    """What the runs did to voxels on average, each (N,): cleaned = level + (raw - center) / spread.

    For z-scores ``center`` is the mean of all volumes, ``spread`` the deviation within runs that is left
    after detrending, filtering and confounds, and ``level`` 0. Images that are not cleaned stay as they are.
    """

    center: NDArray
    spread: NDArray
    level: NDArray

    def apply(self, raw: NDArray) -> NDArray:
        """Rows (m, N) of raw values in the units of cleaned ones; voxels that never varied stay at level."""
        return np.asarray(self.level + (raw - self.center) / self.spread)


@dataclass(frozen=True)
class Volumes:
    """Images on one grid, in order; a 3-D image is one volume. ``what`` is what messages call an image."""

    images: Sequence[Any]
    what: str = "BOLD file"
    given_names: tuple[str, ...] = ()  # where file names do not tell them apart
    elements: ClassVar[str] = "voxels"

    def __post_init__(self) -> None:
        for image, name in zip(self.images, self.names, strict=True):
            check_same_grid(image, self.images[0], self.what, name)

    @property
    def names(self) -> tuple[str, ...]:
        """What messages call each image."""
        return self.given_names or tuple(map(name_of, self.images))

    @property
    def counts(self) -> tuple[int, ...]:
        """Volumes of each image."""
        return tuple(map(n_volumes, self.images))

    @property
    def shape(self) -> tuple[int, ...]:
        """Grid and number of volumes, (x, y, z, M)."""
        return (*self.images[0].shape[:3], sum(self.counts))

    @property
    def n_rows(self) -> int:
        """Volumes of all images."""
        return sum(self.counts)

    @property
    def t_r(self) -> float | None:
        """Seconds between volumes according to the first header, None where it does not say."""
        return repetition_time(self.images[0])

    def read(self, mask: Any, smoothing_fwhm: float | None = None) -> Series:
        """The raw values at the voxels of a mask."""
        return _read_volumes(self, mask, smoothing_fwhm)

    def mask_image(self, inside: NDArray, mask_img: Any) -> Any:
        """A mask of some voxels (x, y, z) bool, with another mask's header."""
        return like(mask_img, inside.astype(np.uint8))


@dataclass(frozen=True)
class Matrix:
    """Cleaned volumes: a row per volume asked for, a column per voxel of ``mask_img`` in C order."""

    X: NDArray  # (M, N) float32, C order
    mask_img: Any
    mean_img: Any
    notes: tuple[str, ...]
    around: NDArray | None = None  # (M, S) cleaned volumes at voxels that touch a small mask from outside
    fingerprints: NDArray | None = None  # (M,) digests of the raw volumes at the mask's voxels
    scaling: Scaling | None = None  # what cleaning did to whole runs, for volumes that are too few for it


def volumes_to_matrix(
    volumes: Images,
    mask: Any,
    processing: Processing,
    runs: NDArray | None = None,
    rows: NDArray | None = None,
    voxels: str = VARYING,
    nuisance: Mapping[Any, Nuisance] | None = None,
) -> Matrix:
    """Read the voxels of a mask (image or file) and clean each run by itself.

    Runs (M,) may be interleaved, None is one run of all volumes. ``rows`` (M,) bool are the volumes kept; the
    others help to clean their run. ``voxels`` is VARYING, FINITE or ALL. ``nuisance`` is known of the runs by
    name, in place of the files that ``processing`` names.
    """
    n = volumes.n_rows
    members_of = rows_of_runs(runs, n)
    rows = np.ones(n, dtype=bool) if rows is None else rows
    if nuisance is None:
        nuisance = _nuisance_of_files(processing, volumes, members_of)
    series = read_series(volumes, mask, processing.smoothing_fwhm)
    usable, notes = usable_voxels(series, list(members_of.values()), voxels)
    X = np.empty((int(rows.sum()), int(usable.sum())), dtype=np.float32)
    border = brain_border(series, list(members_of.values()))
    around = None if border is None else np.empty((len(X), border.shape[1]), dtype=np.float32)
    place, sums = np.cumsum(rows) - 1, []
    for run, members in members_of.items():
        confounds, used = nuisance[run].filled() if run in nuisance else (None, None)
        values = series.values[members]
        values = values if usable.all() else np.compress(usable, values, axis=1)
        cleaned = clean_run(values, processing, processing.t_r, confounds, run, used)
        sums.append(run_sums(values, cleaned))
        wanted = rows[members]
        X[place[members[wanted]]] = cleaned[wanted]
        if border is not None and around is not None:
            outside = clean_run(border[members], processing, processing.t_r, confounds, run, used)
            around[place[members[wanted]]] = outside[wanted]
    notes = series.notes + notes
    if missing := sum(int(np.isnan(each.values).sum()) for each in nuisance.values()):
        notes += (f"{missing} missing values in the confounds were replaced by the mean of their run.",)
    digests = fingerprints_of(series.values[rows])
    return Matrix(X, series.mask_of(usable), series.mean_img, notes, around, digests, pooled_scaling(sums))


def _nuisance_of_files(
    processing: Processing, volumes: Images, members_of: Mapping[Any, NDArray]
) -> dict[Any, Nuisance]:
    """The confounds of each run in the files that the processing names; every volume is used."""
    if not (files := processing.confound_files):
        return {}
    table = read_confounds(files, list(volumes.counts), processing.confound_columns)
    return {run: Nuisance(table[rows], np.ones(len(rows), dtype=bool)) for run, rows in members_of.items()}


def rows_of_runs(runs: NDArray | None, n: int) -> dict[Any, NDArray]:
    """The rows of each run, in order of appearance; None: one run, called 1, of all n."""
    runs = np.ones(n, dtype=int) if runs is None else np.asarray(runs)
    if len(runs) != n:
        raise DataError(
            f"runs: expected the run of each of {n} volumes, got {len(runs)}. Give one per volume."
        )
    return {run: np.flatnonzero(runs == run) for run in dict.fromkeys(runs.tolist())}


def read_series(volumes: Images, mask: Any, smoothing_fwhm: float | None = None) -> Series:
    """Read the voxels (or vertices) of a mask; volumes are smoothed before masking."""
    return volumes.read(mask, smoothing_fwhm)


def _read_volumes(volumes: Volumes, mask: Any, smoothing_fwhm: float | None) -> Series:
    """Read the voxels of a mask block by block, smoothed before masking.

    Infinite and missing values count as 0 in the mean volume and in smoothing. A mask on another grid is
    resampled to that of the volumes, with a note.
    """
    first, total = volumes.images[0], volumes.shape[3]
    mask_img, inside, notes = mask_on_grid(mask, first)
    _check_smoothing(first, smoothing_fwhm)
    values = np.empty((total, int(inside.sum())), dtype=np.float32)
    summed, row = np.zeros(inside.shape), 0
    finite, lost = np.ones(values.shape[1], dtype=bool), np.zeros(total, dtype=int)
    touching = border_of(inside)
    border = np.empty((total, len(touching[0])), dtype=np.float32)
    for block in (block for image in volumes.images for block in volume_blocks(image, volumes.what)):
        here, sums = slice(row, row + block.shape[3]), block.sum(axis=3, dtype=np.float64)
        if not np.isfinite(sums).all():  # some value is not: in float64 no sum of float32 overflows
            good = np.isfinite(block)
            finite &= good[inside].all(axis=1)
            lost[here] = (~good[inside]).sum(axis=0)
            block = np.where(good, block, np.float32(0))
            sums = block.sum(axis=3, dtype=np.float64)
        summed += sums
        smoothed = _smooth(block, first.affine, smoothing_fwhm)
        values[here], border[here] = smoothed[inside].T, smoothed[touching].T
        row = here.stop
    mean = like(first, (summed / total).astype(np.float32))
    return Series(volumes, values, inside, mask_img, mean, finite, lost, notes, border)


def _check_smoothing(image: Any, fwhm: float | None) -> None:
    """Refuse a kernel wider than the volume: it would take minutes and leave nothing."""
    widest = float(np.max(np.linalg.norm(image.affine[:3, :3], axis=0) * image.shape[:3]))
    if fwhm is not None and fwhm > widest:
        raise DataError(
            f"smoothing_fwhm: expected at most the size of the volume, {widest:.4g} mm, got {fwhm:g}. "
            "Lower it (5 is usual)."
        )


def _smooth(block: NDArray, affine: NDArray, fwhm: float | None) -> NDArray:
    """A block of volumes smoothed by nilearn with a Gaussian of ``fwhm`` mm."""
    if fwhm is None:
        return block
    import nibabel
    from nilearn.image import smooth_img

    return np.asarray(smooth_img(nibabel.Nifti1Image(block, affine), fwhm).dataobj, dtype=np.float32)


def usable_voxels(
    series: Series, runs: Sequence[NDArray], voxels: str = VARYING
) -> tuple[NDArray, tuple[str, ...]]:
    """The voxels (N,) bool that are used, and a sentence about each kind left out; ``runs``: rows of each."""
    size, words = series.values.shape[1], series.volumes.elements
    finite = np.ones(size, dtype=bool) if voxels == ALL else series.finite
    varying = _varying(series.values, runs) if voxels == VARYING else np.ones(size, dtype=bool)
    usable = finite & varying
    unknown, constant = int((~finite).sum()), int((finite & ~varying).sum())
    broken = _broken_volumes(series) if unknown else ""
    if not usable.any() and broken:
        raise DataError(
            f"{broken}, so that no voxel is finite throughout. Repair the file, or leave out such volumes "
            "together with their labels."
        )
    if not usable.any():
        raise DataError(
            f"mask: none of its {size} {words} can be used ({unknown} with NaN or infinity, {constant} "
            f"constant within a run). Check that mask and {series.volumes.what} belong together."
        )
    notes = []
    if unknown:
        notes.append(
            f"{unknown} of {size} {words} of the mask have NaN or infinite values and were dropped."
            + (f" {broken}: without such volumes more {words} would be left." if broken else "")
        )
    if constant:
        notes.append(f"{constant} of {size} {words} of the mask are constant within a run and were dropped.")
    return usable, tuple(notes)


def _varying(values: NDArray, runs: Sequence[NDArray]) -> NDArray:
    """Voxels (N,) that vary within every run; where each run is a single volume, that vary over the runs."""
    varying = np.ones(values.shape[1], dtype=bool)
    for members in [run for run in runs if len(run) > 1] or [np.arange(len(values))]:
        run = values[members]
        varying &= (run != run[0]).any(axis=0)
    return varying


def _broken_volumes(series: Series) -> str:
    """Which volumes are NaN or infinite in most of the mask, by file and number from 1.

    Empty where none is, and where most volumes are: then the mask does not fit.
    """
    volumes, size = series.volumes, series.values.shape[1]
    if np.mean(series.lost > BROKEN * size) > BROKEN:
        return ""
    said = []
    for name, lost in zip(volumes.names, np.split(series.lost, np.cumsum(volumes.counts)[:-1]), strict=True):
        bad = np.flatnonzero(lost > BROKEN * size)
        if bad.size:
            share = "all" if (lost[bad] == size).all() else "most"
            which = " is" if len(lost) == 1 else f": {_volume_numbers(bad)}"
            said.append(f"{volumes.what} {name}{which} NaN or infinite in {share} voxels of the mask")
    more = [f"and {len(said) - _SHOWN} more"] if len(said) > _SHOWN else []
    return "; ".join([*said[:_SHOWN], *more])


def _volume_numbers(places: NDArray) -> str:
    """``volume 6 is``, ``volumes 6, 7, 8 are``: places from 0 as numbers from 1, a few of them."""
    shown = ", ".join(str(place + 1) for place in places[:_SHOWN])
    if len(places) == 1:
        return f"volume {shown} (counted from 1) is"
    more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
    return f"volumes {shown}{more} (counted from 1) are"


def run_sums(raw: NDArray, cleaned: NDArray) -> RunSums:
    """The sums of a run (T, N); volumes that cleaning left out are NaN there and not counted."""
    used = ~np.isnan(cleaned[:, 0])
    if not used.all():
        raw, cleaned = raw[used], cleaned[used]
    n, of_raw, of_cleaned = len(raw), raw.sum(axis=0, dtype=float), cleaned.sum(axis=0, dtype=float)
    return RunSums(
        n,
        of_raw,
        of_cleaned,
        np.einsum("tn,tn->n", raw, cleaned, dtype=float) - of_raw * of_cleaned / n,
        np.einsum("tn,tn->n", cleaned, cleaned, dtype=float) - np.square(of_cleaned) / n,
    )


def pooled_scaling(runs: Sequence[RunSums]) -> Scaling:
    """The scaling of several runs together: raw units per unit of cleaned values, by regression within runs.

    Cleaned values are what trends, filters and confounds left, which they are orthogonal to, so that for
    z-scores the slope is the deviation that they were divided by.
    """
    n, raw, cleaned, products, squares = (sum(part[1:], part[0]) for part in zip(*runs, strict=True))
    varies = squares > _NO_VARIANCE * n
    varies &= products != 0
    spread = np.divide(products, squares, out=np.full(squares.shape, np.inf), where=varies)
    return Scaling(raw / n, spread, cleaned / n)
