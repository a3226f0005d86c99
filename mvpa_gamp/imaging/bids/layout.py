"""Finding what belongs to a participant in a BIDS dataset: runs, their events, masks, confounds, sidecars.

BIDS_DIR/sub-01/[ses-x/]func/sub-01_[ses-x_]task-t_[run-1_]{bold.nii.gz,bold.json,events.tsv}
DERIVATIVES/sub-01/[ses-x/]func/..._space-s_desc-{preproc_bold,brain_mask}.nii.gz
DERIVATIVES/sub-01/[ses-x/]func/..._desc-confounds_timeseries.tsv
and series on surfaces (see selection.py).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mvpa_gamp.imaging.bids.selection import (
    PREPROCESSED,
    SURFACE,
    Selection,
    choose,
    chosen_tasks,
    is_surface_series,
    is_surface_space,
    of_kind,
    of_runs,
    of_sessions,
    space_of,
    values,
)
from mvpa_gamp.imaging.errors import DataError, reason
from mvpa_gamp.imaging.matrix import Images, Volumes
from mvpa_gamp.imaging.names import IMAGE, BidsFile, files_in, inherited, is_surface_file, natural
from mvpa_gamp.imaging.samples import Origin, bids_uri, generated_by
from mvpa_gamp.imaging.volumes import check_same_grid, computed_mask, like, open_mask, open_series

if TYPE_CHECKING:
    from mvpa_gamp.imaging.bids.source import BidsSource
    from mvpa_gamp.imaging.cortex import Cortex


MIN_RUNS = 2  # one is left out, one is needed to train on


@dataclass(frozen=True)
class Layout:
    """A raw dataset and, where there are any, the fMRIPrep derivatives made from it."""

    bids_dir: Path
    derivatives: Path | None = None

    @property
    def source(self) -> Path:
        """Where the volumes are taken from."""
        return self.derivatives or self.bids_dir

    @property
    def datasets(self) -> dict[str, Path]:
        """Their names in BIDS URIs."""
        made = {} if self.derivatives is None else {"preprocessed": self.derivatives}
        return {"raw": self.bids_dir, **made}

    def origin(self, files: Sequence[Path], metadata: Mapping[str, Any] | None = None) -> Origin:
        """Where results made from some files come from, the first one being on their grid."""
        sources = tuple(bids_uri(path, self.datasets) for path in files)
        reference = (metadata or {}).get("SpatialReference")
        return Origin(
            sources=sources,
            links={name: root.as_uri() for name, root in self.datasets.items()},
            spatial_reference=reference if isinstance(reference, str) else sources[0],
            made_by=generated_by(self.derivatives) if self.derivatives else (),
        )


@dataclass(frozen=True)
class RunFiles:
    """The files of one run; ``mask`` and ``confounds`` are None where derivatives have none."""

    bold: Path
    entities: dict[str, str]  # of its name
    events: Path | None
    mask: Path | None
    confounds: Path | None
    metadata: dict[str, Any]

    @property
    def session(self) -> str:
        """Its label, empty where the dataset has no sessions."""
        return self.entities.get("ses", "")


def find_layout(bids_dir: str | Path, derivatives: str | Path = "") -> Layout:
    """The dataset; without ``derivatives`` BIDS_DIR/derivatives/fmriprep if it is there; "none": raw data.

    Parameters
    ----------
    bids_dir
        The raw dataset.
    derivatives
        Preprocessed data.

    Returns
    -------
    Layout
        Both.
    """
    root = Path(bids_dir).expanduser().absolute()
    if not root.is_dir():
        raise DataError(f"BIDS_DIR {root}: expected a folder, found none there. Check the path.")
    usual = root / "derivatives" / "fmriprep"
    chosen = derivatives or (usual if usual.is_dir() else "none")
    if str(chosen) == "none":
        return Layout(root)
    folder = Path(chosen).expanduser().absolute()
    if not folder.is_dir():
        raise DataError(
            f"--derivatives {folder}: expected fMRIPrep's output folder, found none there. Check the path, "
            "or give none for raw data."
        )
    return Layout(root, folder)


def participants(layout: Layout) -> list[str]:
    """Labels of all participants (without ``sub-``), raw or preprocessed, in natural order.

    Parameters
    ----------
    layout
        From ``find_layout``.

    Returns
    -------
    list of str
        The labels.
    """
    roots = {layout.bids_dir, layout.source}
    found = {path.name.removeprefix("sub-") for root in roots for path in root.glob("sub-*") if path.is_dir()}
    labels = sorted(found, key=natural)
    if not labels:
        raise DataError(f"{layout.source}: expected folders sub-<label>, found none. Is it a BIDS dataset?")
    return labels


def tasks_of(layout: Layout, participant: str, wanted: Selection | None = None) -> list[str]:
    """The tasks for which a participant has volumes that the filter file lets through."""
    return values(file.entities.get("task") for file in _passing(layout, participant, wanted or Selection()))


def spaces_of(layout: Layout, participant: str, wanted: Selection | None = None) -> list[str]:
    """The spaces of those series (of the tasks asked for), in fMRIPrep's form ``name[:res-x]``.

    Those of surfaces count where a space is asked for, or where there are no volumes.
    """
    wanted = wanted or Selection()
    files = of_kind(_passing(layout, participant, wanted), wanted.space)
    return values(space_of(f) for f in files if not wanted.tasks or f.entities.get("task") in wanted.tasks)


def _passing(layout: Layout, participant: str, wanted: Selection) -> list[BidsFile]:
    return [file for file in bold_files(layout, participant, wanted.desc) if wanted.passes(file)]


def find_runs(layout: Layout, participant: str, wanted: Selection | None = None) -> list[RunFiles]:
    """The runs of a participant by session, task and run; a task or space not named must be the only one."""
    wanted, who = wanted or Selection(), f"sub-{participant}"
    if not (layout.source / who).is_dir():
        raise DataError(f"{layout.source} has no folder {who}. Preprocess the participant, or leave it out.")
    files = bold_files(layout, participant, wanted.desc)
    if not files:
        kind = f"*_desc-{wanted.desc}_bold.nii.gz" if layout.derivatives else "*_bold.nii.gz"
        raise DataError(
            f"{who}: expected {kind} in {layout.source / who}/[ses-*/]func, found none. Check the folder."
        )
    files = _filtered(files, wanted, who)
    tasks = chosen_tasks(wanted.tasks, values(file.entities.get("task") for file in files), who)
    files = [file for file in files if file.entities.get("task") in tasks]
    files = of_runs(of_sessions(files, wanted.sessions, who), wanted.runs, who)
    files = of_kind(files, wanted.space)
    if layout.derivatives is not None or wanted.space is not None:
        place = choose("--space", wanted.space, values(map(space_of, files)), who)
        files = [file for file in files if space_of(file) == place]
    _check_runs(files, participant, " and ".join(tasks))
    files.sort(key=lambda file: (natural(file.entities.get("ses", "")), natural(file.path.name)))
    return [_run_files(layout, file) for file in files]


def _filtered(files: Sequence[BidsFile], wanted: Selection, who: str) -> list[BidsFile]:
    """The series that the filter file lets through."""
    passed = [file for file in files if wanted.passes(file)]
    if not passed:
        asked = ", ".join(f"{key}: {' or '.join(map(str, v))}" for key, v in wanted.filters.items())
        raise DataError(
            f"--bids-filter-file: none of the {len(files)} series of {who} matches ({asked}). Change the "
            "filter."
        )
    return passed


def repetition_time_of(runs: Sequence[RunFiles], given: float | None) -> float:
    """Seconds between volumes: as given, or RepetitionTime of the sidecars, which must agree."""
    if given is not None:
        return given
    times: dict[float, Path] = {}
    for run in runs:
        value = run.metadata.get("RepetitionTime")
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            came = "none" if value is None else repr(value)
            raise DataError(
                f"{run.bold.name}: expected RepetitionTime in seconds in its JSON sidecar or an inherited "
                f"one, got {came}. Add it to the sidecar, or give --t-r."
            )
        times.setdefault(round(float(value), 6), run.bold)
    if len(times) > 1:
        listed = ", ".join(f"{seconds:g} s ({path.name})" for seconds, path in times.items())
        raise DataError(
            f"RepetitionTime: expected the same in all runs, got {listed}. Analyse runs with "
            "different TRs separately."
        )
    return next(iter(times))


def bold_files(layout: Layout, participant: str, desc: str = PREPROCESSED) -> list[BidsFile]:
    """All series of a participant: preprocessed ones of derivatives, else raw ones."""
    home = layout.source / f"sub-{participant}"
    folders = [home / "func", *sorted(path / "func" for path in home.glob("ses-*"))]
    found = [file for folder in folders for file in files_in(folder, ("bold",), (*IMAGE, *SURFACE))]
    found = [file for file in found if file.entities.get("sub") == participant]
    files = [file for file in found if file.extension in IMAGE]
    if layout.derivatives is None:
        return files
    files = [file for file in files if file.entities.get("desc") == desc]
    return [*files, *(file for file in found if is_surface_series(file, desc))]


def _check_runs(files: Sequence[BidsFile], participant: str, task: str) -> None:
    """Refuse single echoes, and fewer runs than cross-validation needs."""
    parts = [file for file in files if {"echo", "part"} & set(file.entities)]
    if parts:
        raise DataError(
            f"sub-{participant}: {parts[0].path.name} is one echo or part of a run. Combine them first "
            "(fMRIPrep does) and give --derivatives."
        )
    first: dict[Any, BidsFile] = {}
    for file in files:
        own = (tuple(sorted(file.without().items())), file.extension if "hemi" in file.entities else "")
        if (other := first.setdefault(own, file)) is not file:
            raise DataError(
                f"sub-{participant}: {other.path.name} and {file.path.name} are one run of one series twice. "
                "Keep one of them, or give every run its own number."
            )
    if len(files) < MIN_RUNS:
        raise DataError(
            f"sub-{participant}: expected at least {MIN_RUNS} runs of task {task}, because cross-validation "
            f"leaves one run out, got {len(files)}. Leave the participant out, or add runs."
        )


def _run_files(layout: Layout, bold: BidsFile) -> RunFiles:
    """What belongs to a series."""
    folder, roots = bold.path.parent, [layout.bids_dir]
    masks, confounds = [], []
    if layout.derivatives is not None:
        roots.append(layout.derivatives)
        masks = [
            file.path
            for file in files_in(folder, ("mask",), IMAGE)
            if file.entities.get("desc") == "brain" and file.without("desc") == bold.without("desc")
        ]
        confounds = [
            file.path
            for file in files_in(folder, ("timeseries", "regressors"), ("tsv",))
            if file.entities.get("desc") == "confounds" and file.speaks_for(bold, "desc")
        ]
    # The raw dataset's events win over copies in derivatives: the latter come first, the last one is taken.
    events = [file.path for root in reversed(roots) for file in inherited(root, bold, "events", "tsv")]
    metadata: dict[str, Any] = {}
    for root in roots:
        for sidecar in inherited(root, bold, "bold", "json"):
            metadata |= _read_json(sidecar.path)
    entities = {name: value for name, value in bold.entities.items() if name != "hemi"}
    return RunFiles(bold.path, entities, _last(events), _last(masks), _last(confounds), metadata)


def _last(files: Sequence[Path]) -> Path | None:
    return files[-1] if files else None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise DataError(f"sidecar {path} cannot be read as JSON ({reason(error)}). Correct it.") from error
    if not isinstance(content, dict):
        raise DataError(
            f"sidecar {path}: expected a JSON object, got a {type(content).__name__}. Correct it."
        )
    return content


_PACKAGED = "fsaverage5"


def mask_of(runs: Sequence[RunFiles], images: Sequence[Any], given: str) -> tuple[Any, tuple[str, ...]]:
    """The mask given, the common part of the runs' brain masks, or one computed from raw volumes."""
    if given:
        return given, ()
    files = [run.mask for run in runs if run.mask is not None]
    if len(files) == len(runs):
        return common_mask(files), ()
    if files or "desc-preproc" in runs[0].bold.name:
        without = next(run.bold.name for run in runs if run.mask is None)
        raise DataError(
            f"mask: expected a desc-brain_mask next to every run, found none for {without}. Add it, or "
            "give --mask."
        )
    for image in images[1:]:
        check_same_grid(image, images[0], "BOLD file")
    mask, size = computed_mask(images)
    if not size:
        raise DataError("mask: none could be computed from the raw volumes. Give one with --mask.")
    return mask, (f"The brain mask was computed from the mean volume: {size:,} voxels.",)


def common_mask(files: Sequence[Path]) -> Any:
    """The voxels that are in every mask, as an image on the first one's grid."""
    first, inside = open_mask(files[0])
    for path in files[1:]:
        image, other = open_mask(path)
        check_same_grid(image, first, "mask")
        inside = inside & other
    if not inside.any():
        raise DataError(
            f"mask: the brain masks of the {len(files)} runs have no voxel in common. Give one with --mask."
        )
    return like(first, inside.astype(np.uint8))


def is_on_surface(runs: Sequence["RunFiles"]) -> bool:
    """Whether runs are series on surfaces; all of them are of one space."""
    return is_surface_file(runs[0].bold)


def open_runs(source: "BidsSource", runs: Sequence["RunFiles"]) -> Images:
    """The series of runs, volumes or surfaces."""
    if not is_on_surface(runs):
        return Volumes([open_series(run.bold) for run in runs])
    from mvpa_gamp.imaging.surfaces import read_surfaces

    return read_surfaces([run.bold for run in runs], cortex_of_runs(source, runs))


def mask_for(source: "BidsSource", runs: Sequence["RunFiles"], series: Any) -> tuple[Any, tuple[str, ...]]:
    """The mask of runs, and notes; None where every vertex that varies is used."""
    if not is_on_surface(runs):
        return mask_of(runs, series.images, source.mask)
    from mvpa_gamp.imaging.surfaces import surface_mask

    return surface_mask(source.mask, series.cortex), ()


def cortex_for(source: "BidsSource", space: str) -> "Cortex":
    """The meshes of a space: those given, or fsaverage5 as it comes with nilearn."""
    from mvpa_gamp.imaging.cortex import packaged_cortex, read_cortex

    if source.surface_mesh:
        return read_cortex(source.surface_mesh)
    if space != _PACKAGED:
        raise DataError(
            f"--space {space or 'none'}: its meshes do not come with this package (those of {_PACKAGED} do), "
            "and neighbours and figures need them. Give --surface-mesh LEFT RIGHT, for example the "
            "*_midthickness.surf.gii that belong to it."
        )
    return packaged_cortex()


def cortex_of_runs(source: "BidsSource", runs: Sequence["RunFiles"]) -> "Cortex":
    """The meshes of runs."""
    return cortex_for(source, runs[0].entities.get("space", ""))


def check_surface_runs(source: "BidsSource", runs: Sequence["RunFiles"]) -> None:
    """Refuse what runs on a surface have no use for; of the series the first is read, to see if it fits."""
    from mvpa_gamp.imaging.surface_files import read_surface
    from mvpa_gamp.imaging.surfaces import check_unsmoothed, surface_mask

    check_unsmoothed(source.smoothing_fwhm)
    cortex = cortex_of_runs(source, runs)
    surface_mask(source.mask, cortex)
    read_surface(runs[0].bold, cortex)


def check_surface_settings(source: "BidsSource") -> None:
    """Refuse settings that contradict the kind of the space asked for, as far as its name tells."""
    from mvpa_gamp.imaging.surfaces import check_mesh_files, check_unsmoothed

    surface = is_surface_space(source.space)
    if surface:
        check_unsmoothed(source.smoothing_fwhm)
    check_mesh_files(source.surface_mesh)
    if source.surface_mesh and source.space is not None and not surface:
        raise DataError(
            f"--surface-mesh is for runs on surfaces, got --space {source.space}. Leave it out, or choose "
            "fsLR, fsaverage or fsnative."
        )
