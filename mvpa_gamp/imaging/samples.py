"""What decoding works on: Samples, and how volumes, labels and a mask become them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from mvpa_gamp.feature_scale import scale_factor
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.labels import (
    UNLABELLED,
    Labels,
    check_not_swapped,
    order_notes,
    read_labels,
    runs_in_order,
    shift_labels,
)
from mvpa_gamp.imaging.matrix import Images, Volumes, volumes_to_matrix
from mvpa_gamp.imaging.names import ALL_VERTICES, entity, files_of
from mvpa_gamp.imaging.processing import Nuisance, Processing, check_order, check_series
from mvpa_gamp.imaging.spaces import space_of
from mvpa_gamp.imaging.volumes import name_of, open_series

PHANTOM_BANNER = "SIMULATED PHANTOM, not a brain"
KINDS = {
    "volume": "volumes",
    "block": "means of events",
    "trial": "single trials",
    "beta": "maps",
}  # what a row is, and its plural
_LONGEST = 60  # of a subject's label; names of files end at 255
DESCRIPTION = "dataset_description.json"


@dataclass(frozen=True)
class Origin:
    """What sidecars say of where a map comes from.

    ``sources`` are URIs: ``bids:<name>:<path in that dataset>`` where ``links`` say which dataset a name
    means, else ``file:``. ``made_by`` are the programs that prepared the volumes (``Name``, ``Version``).
    """

    sources: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    spatial_reference: str = ""
    made_by: tuple[Mapping[str, str], ...] = ()

    def sidecar(self) -> dict[str, Any]:
        """The part of a sidecar that is known."""
        known = {"Sources": list(self.sources), "SpatialReference": self.spatial_reference}
        return {name: value for name, value in known.items() if value}

    @property
    def software(self) -> dict[str, str]:
        """Version by name of the programs that prepared the volumes."""
        return {each["Name"]: each.get("Version", "unknown") for each in self.made_by}


@dataclass(frozen=True)
class PlantedTruth:
    """Responses (K, N) in per cent of the baseline, exactly 0 where a voxel does not respond."""

    categories: tuple[str, ...]
    responses: NDArray

    def response(self, category: str) -> NDArray:
        """The planted map (N,) of a category."""
        if category not in self.categories:
            known = ", ".join(self.categories)
            raise DataError(f"phantom: expected one of its categories {known}, got {category!r}. Change it.")
        return self.responses[self.categories.index(category)]

    def for_pair(self, first: str, second: str) -> NDArray:
        """Voxels (N,) bool that tell two categories apart: their responses differ."""
        return self.response(first) != self.response(second)

    def at(self, voxels: NDArray) -> "PlantedTruth":
        """The truth at some of the voxels, given as a boolean or index array."""
        return PlantedTruth(self.categories, np.ascontiguousarray(self.responses[:, voxels]))


@dataclass(frozen=True)
class Samples:
    """What decoding works on: M labelled samples of N voxels, and what is needed to draw maps of them.

    Columns of X are the voxels of ``mask_img`` in C order. ``kind`` says what a row is: a volume, the mean of
    an event's volumes ("block"), an event's effect in a model ("trial") or a given map ("beta"). ``notes``
    are sentences for the reader, ``provenance`` is only printed, ``truth`` are the planted patterns of a
    phantom. A phantom is always called "phantom", real data never.
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
    kind: str = "volume"
    source: str = "nifti"
    description: str = ""  # a sentence about where the samples come from
    space: str | None = None  # BIDS's name of the space, None where it is not known
    entities: Mapping[str, str] = field(default_factory=dict)  # of BIDS names, those that all input shares
    dropped: tuple[str, ...] = ()  # conditions left out
    confound_columns: tuple[str, ...] = ()  # names of the confounds that were regressed out, where chosen
    around: NDArray | None = None  # (M, S) the same samples at voxels that touch a small mask from outside
    fingerprints: NDArray | None = None  # (M,) digests of the raw volumes
    sessions: NDArray | None = None  # (M,) str: the session of each row, where it is known
    events: Mapping[str, NDArray] = field(default_factory=dict)  # (M,) facts on the event behind each row
    origin: Origin = field(default_factory=Origin)  # what sidecars say of where the samples come from
    held_out: str = "run"  # what ``runs`` numbers: a run, a session, a participant or a fold of participants
    people: NDArray | None = None  # (M,) int: the participant of each row, where there are many
    covariates: Mapping[str, NDArray] = field(default_factory=dict)  # (M,) each, to regress out inside folds
    run_names: Mapping[int, str] = field(default_factory=dict)  # of runs that are not called by a number

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise DataError(f"kind: expected one of {', '.join(KINDS)}, got {self.kind!r}. Change it.")
        try:
            scale_factor(self.X)
        except ValueError as error:
            raise DataError(f"volumes: their values, after cleaning, cannot be decoded. {error}") from error
        if len(self.subject) > _LONGEST:
            raise DataError(
                f"subject: expected a label of at most {_LONGEST} characters, part of every file name, "
                f"got {len(self.subject)}. Shorten it."
            )
        if self.is_phantom != (self.subject.lower() == "phantom"):
            raise DataError(
                f"subject: the name 'phantom' is reserved for the simulated phantom, got {self.subject!r} "
                f"for {'a phantom' if self.is_phantom else 'real data'}. Choose another name."
            )

    @property
    def shown_runs(self) -> NDArray:
        """The run of each row (M,) by its name."""
        if not self.run_names:
            return self.runs
        return np.array([self.run_names[run] for run in self.runs])

    @property
    def plural(self) -> str:
        """What the rows are, for users: volumes, means of events, or maps."""
        return KINDS[self.kind]

    @property
    def banner(self) -> str | None:
        """The sentence that must stand on everything made from a phantom; None for real data."""
        return PHANTOM_BANNER if self.is_phantom else None

    @cached_property
    def connectivity(self) -> csr_array:
        """Which voxels share a face (vertices an edge): a symmetric (N, N) adjacency of the columns of X."""
        return space_of(self.mask_img).connectivity()

    def from_source(self, source: str, description: str, **facts: Any) -> "Samples":
        """The same samples with where they come from; ``facts`` are only printed."""
        told = {"source": source, "description": description, **facts}
        return replace(self, source=source, description=description, provenance=self.provenance | told)


def load_samples(
    bold: Any,
    labels: str | Path | Labels,
    mask: Any,
    processing: Processing | None = None,
    subject: str = "01",
    nuisance: Mapping[Any, Nuisance] | None = None,
) -> Samples:
    """Samples from NIfTI files (or nibabel images), labels per volume and a mask on the same grid.

    ``bold`` may also be a series that is open already, of volumes or surfaces.
    Several BOLD files are concatenated in the given order; without a run column in the labels each file
    is a run. ``nuisance`` are confounds of the runs by name, and the volumes to be used. Raises DataError
    with one sentence when something does not fit.

    Parameters
    ----------
    bold
        A file, an image, or several.
    labels
        A label file, or what ``read_labels`` returns.
    mask
        A file or an image.
    processing
        Lag, lines, filters and scaling; None: the defaults.
    subject
        The participant's label.
    nuisance
        Confounds by run.

    Returns
    -------
    Samples
        X (M, N), conditions and runs (M,), and the way back to images.
    """
    processing = processing or Processing()
    volumes = _opened(bold, labels) if not hasattr(bold, "counts") else bold
    known = labels if isinstance(labels, Labels) else read_labels(labels)
    known = known.of_files(volumes.counts)
    steps = replace(processing, t_r=processing.t_r or volumes.t_r)
    samples = samples_of(volumes, mask, known, steps, entity(subject), nuisance=nuisance)
    names = volumes.names
    notes = order_notes(names, volumes.counts, known) + samples.notes
    files = [file for name in names for file in files_of(Path(name))]
    samples = replace(samples, notes=notes, origin=origin_of_files(files), run_names=known.run_names or {})
    files_told = f"{len(names)} files" if len(names) > 1 else Path(names[0]).name
    told = f"fMRI volumes of sub-{samples.subject} ({files_told})."
    where = ALL_VERTICES if mask is None else name_of(mask)
    origin = {"labels": "in memory" if isinstance(labels, Labels) else str(labels), "mask": where}
    if known.run_names:  # tables number the runs
        origin["runs"] = ", ".join(f"{run} = {name}" for run, name in known.run_names.items())
    return samples.from_source("nifti", told, bold=list(names), **origin)


def _opened(bold: Any, labels: Any) -> Volumes:
    """The volumes of one file or several."""
    files = list(bold) if isinstance(bold, Sequence) and not isinstance(bold, str) else [bold]
    if not files:
        raise DataError("BOLD: expected at least one 4-D NIfTI file, got none. Give the files.")
    check_not_swapped(files, labels)
    return Volumes([open_series(image) for image in files])


def samples_of(
    volumes: Images,
    mask: Any,
    labels: Labels,
    processing: Processing,
    subject: str,
    is_phantom: bool = False,
    nuisance: Mapping[Any, Nuisance] | None = None,
) -> Samples:
    """Clean each run, drop unusable voxels, unlabelled volumes and those that are not used."""
    assert labels.runs is not None
    stretches = runs_in_order(labels.runs)
    conditions = shift_labels(labels, processing.lag_trs)
    rows = ~np.isin(conditions, [*processing.drop, UNLABELLED])
    used = np.ones(len(rows), dtype=bool)
    for run, each in (nuisance or {}).items():
        used[labels.runs == run] = each.used
    rows &= used
    sizes = {run: int(used[span].sum()) for run, span in stretches}
    check_series(processing, sizes, are_maps=all(count == 1 for count in volumes.counts))
    check_order(processing, np.asarray(labels.conditions), np.asarray(labels.runs))
    if not rows.any():
        _check_lag(labels, processing, max(span.stop - span.start for _, span in stretches))
        raise DataError(
            f"labels: no volume is left after dropping {', '.join(processing.drop)}; the conditions are "
            f"{', '.join(sorted(set(map(str, labels.conditions)))[:10])}. Check the label file."
        )
    matrix = volumes_to_matrix(volumes, mask, processing, labels.runs, rows, nuisance=nuisance)
    steps = {"processing": processing.description(), "t_r": processing.t_r, "volumes": list(volumes.counts)}
    return Samples(
        X=matrix.X,
        conditions=conditions[rows],
        runs=labels.runs[rows],
        mask_img=matrix.mask_img,
        background_img=matrix.mean_img,
        subject=subject,
        is_phantom=is_phantom,
        notes=matrix.notes,
        provenance=steps,
        volumes=np.flatnonzero(rows),
        dropped=processing.drop,
        around=matrix.around,
        fingerprints=matrix.fingerprints,
    )


def _check_lag(labels: Labels, processing: Processing, longest: int) -> None:
    """Blame the lag, not the labels, where it alone leaves no volume."""
    if processing.lag_trs and not np.isin(labels.conditions, [*processing.drop, UNLABELLED]).all():
        raise DataError(
            f"lag_trs: a lag of {processing.lag_trs} volumes moves every label out of its run (the longest "
            f"run has {longest} volumes). Give a smaller lag."
        )


def origin_of_files(files: Iterable[Any]) -> Origin:
    """The origin of volumes that are no BIDS dataset: their files, where they are files."""
    paths = [Path(str(file)) for file in files]
    return Origin(tuple(path.absolute().as_uri() for path in paths if path.is_file()))


def bids_uri(path: Path, datasets: Mapping[str, Path]) -> str:
    """``bids:<name>:<path>`` in the innermost of some datasets that holds a file, else its ``file:`` URI."""
    holding = {name: root for name, root in datasets.items() if path.is_relative_to(root)}
    if not holding:
        return path.absolute().as_uri()
    name = max(holding, key=lambda name: len(holding[name].parts))
    return f"bids:{name}:{path.relative_to(holding[name]).as_posix()}"


def generated_by(dataset: Path) -> tuple[dict[str, str], ...]:
    """The programs that a derivative dataset names, with versions; nothing where it does not say.

    Datasets of BIDS before 1.4 name one as ``PipelineDescription``.
    """
    try:
        about = json.loads((dataset / DESCRIPTION).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return ()
    if not isinstance(about, dict):
        return ()
    named = about.get("GeneratedBy") or about.get("PipelineDescription") or ()
    each = named if isinstance(named, list) else [named]
    return tuple(
        {key: str(one[key]) for key in ("Name", "Version") if one.get(key)}
        for one in each
        if isinstance(one, dict) and one.get("Name")
    )
