"""The doors through which data come in: Haxby's volumes, own files, a BIDS dataset, or the phantom."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from numpy.typing import NDArray

from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.bids.betas import DEFAULT_GLOB, load_betas
from mvpa_gamp.imaging.bids.confounds import confound_columns
from mvpa_gamp.imaging.bids.layout import Layout, find_layout, find_runs, repetition_time_of
from mvpa_gamp.imaging.bids.source import DEFAULT_CONFOUNDS, KINDS, BidsChoice, default_lag, load_bids
from mvpa_gamp.imaging.haxby import find_haxby, load_haxby, participant_number
from mvpa_gamp.imaging.phantom import Phantom, phantom_samples
from mvpa_gamp.imaging.phantom.spec import HAXBY_SHAPE
from mvpa_gamp.imaging.processing import Processing
from mvpa_gamp.imaging.samples import Samples, load_samples
from mvpa_gamp.study.console import Console
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.settings import StudySettings


def resolve_door(settings: StudySettings, console: Console) -> StudySettings:
    """Decide which door is meant, refuse options that contradict each other, make paths absolute.

    Without any data option Haxby's volumes are used where nilearn keeps them, and the phantom otherwise.
    """
    if settings.bids_dir is not None:
        return _bids(settings)
    settings = replace(settings, lag_trs=settings.lag_trs or 0)
    doors = {
        "--bold/--labels": settings.bold is not None or settings.labels is not None,
        "--data-dir/--fetch": settings.data_dir is not None or settings.fetch,
        "--phantom": settings.phantom or settings.phantom_shape is not None,
    }
    named = [name for name, given in doors.items() if given]
    if settings.phantom_shape is not None and not settings.phantom:
        named = [name.replace("--phantom", "--phantom-shape") for name in named]
    if len(named) > 1:
        raise StudyError(f"Data come through one door, got options of {' and '.join(named)}. Choose one.")
    if doors["--bold/--labels"]:
        return _own_files(settings)
    if doors["--phantom"]:
        return _phantom(settings)
    return _haxby(settings, console)


def _own_files(settings: StudySettings) -> StudySettings:
    """The user's own files: all three kinds are needed."""
    missing = [f"--{name}" for name in ("bold", "labels", "mask") if not getattr(settings, name)]
    if settings.mask in ("vt", "brain"):
        missing.append(f"a file for --mask ({settings.mask} belongs to Haxby's data)")
    if missing:
        raise StudyError(
            f"Your own data need --bold, --labels and --mask FILE; missing: {', '.join(missing)}. Add it."
        )
    return replace(
        settings,
        bold=tuple(_absolute(name) for name in settings.bold or ()),
        labels=_absolute(settings.labels or ""),
        mask=_absolute(settings.mask or ""),
        participant_label=settings.participant_label and settings.participant_label.removeprefix("sub-"),
        confounds=settings.confounds and tuple(_absolute(name) for name in settings.confounds),
    )


def _phantom(settings: StudySettings) -> StudySettings:
    """The phantom has no name and no confounds but its own."""
    for name in ("participant_label", "confounds"):
        if getattr(settings, name) is not None:
            option = "--" + name.replace("_", "-")
            raise StudyError(f"{option} has no meaning for the phantom. Leave it out, or give real data.")
    return replace(settings, phantom=True)


def _haxby(settings: StudySettings, console: Console) -> StudySettings:
    """Haxby's data: where they were said to be, or where nilearn keeps them; else the phantom."""
    number = participant_number(settings.participant_label or 1)
    found = find_haxby(number, settings.data_dir)
    asked = settings.data_dir is not None or settings.fetch or settings.participant_label is not None
    if found is None and not asked:
        console.note(
            "No Haxby data in nilearn's data folders: a simulated PHANTOM of the same shape is used instead. "
            "Real data: --fetch, --data-dir or --bold (see --help)."
        )
        return _phantom(settings)
    where = settings.data_dir if found is None else str(found.bold.parent.parent)
    return replace(settings, data_dir=where and _absolute(where), participant_label=str(number))


def resolve_dataset(settings: StudySettings) -> tuple[StudySettings, Layout]:
    """The settings that all participants of a BIDS dataset share, with nothing left to defaults."""
    assert settings.bids_dir is not None
    layout = find_layout(settings.bids_dir, settings.derivatives)
    kind = settings.samples or ("betas" if settings.betas else "tr")
    if kind not in KINDS:
        raise StudyError(f"--samples: expected {', '.join(KINDS)}, got {kind!r}. Choose one of them.")
    if (kind == "betas") != (settings.betas is not None):
        raise StudyError("--samples betas and --betas FOLDER belong together. Give both, or neither.")
    if kind == "betas":
        settings = _betas(settings)
    usual = DEFAULT_CONFOUNDS if layout.derivatives else ("none",)
    confound_columns(settings.confounds or usual)
    return replace(
        settings,
        bids_dir=str(layout.bids_dir),
        derivatives=str(layout.derivatives) if layout.derivatives else "none",
        samples=kind,
        betas=settings.betas and _absolute(settings.betas),
        betas_glob=(settings.betas_glob or DEFAULT_GLOB) if kind == "betas" else None,
        mask=settings.mask and _absolute(settings.mask),
        pairs=settings.pairs or ("all",),
        confounds=settings.confounds or usual,
    ), layout  # fmt: skip


def _bids(settings: StudySettings) -> StudySettings:
    """One participant of a BIDS dataset; the default lag follows from the time between its volumes."""
    settings, layout = resolve_dataset(settings)
    if settings.participant_label is None:
        raise StudyError("A BIDS dataset needs --participant-label. Give one.")
    settings = replace(settings, participant_label=settings.participant_label.removeprefix("sub-"))
    if settings.lag_trs is not None:
        return settings
    runs = find_runs(layout, settings.participant_label or "", settings.task, settings.space)
    return replace(settings, lag_trs=default_lag(repetition_time_of(runs, settings.t_r)))


def _betas(settings: StudySettings) -> StudySettings:
    """Given maps have no time series to clean."""
    for name in ("lag_trs", "smoothing_fwhm", "high_pass", "t_r", "confounds"):
        if getattr(settings, name) not in (None, 0, ("none",)):
            option = "--" + name.replace("_", "-")
            raise StudyError(f"{option} has no meaning for --samples betas: maps have no time. Leave it out.")
    return replace(settings, lag_trs=0, detrend=False, confounds=("none",))


def _absolute(name: str) -> str:
    """A path that means the same from every folder."""
    return str(Path(name).expanduser().absolute())


def open_door(settings: StudySettings) -> Samples:
    """Load the samples of a study whose door is resolved."""
    if settings.bids_dir is not None:
        return _open_bids(settings)
    steps = replace(processing(settings), confounds=settings.confounds)
    if settings.phantom:
        shape = HAXBY_SHAPE if settings.phantom_shape is None else _shape(settings.phantom_shape)
        spec = Phantom(shape=shape, seed=settings.seed)
        return phantom_samples(spec, steps, mask=settings.mask or "brain")
    if settings.bold is not None:
        assert settings.labels is not None
        subject = settings.participant_label or "01"
        return load_samples(settings.bold, settings.labels, settings.mask, steps, subject)
    return load_haxby(
        settings.participant_label or 1, settings.mask or "brain", settings.data_dir, settings.fetch, steps
    )


def _open_bids(settings: StudySettings) -> Samples:
    """Samples of a participant of a BIDS dataset."""
    layout, choice = find_layout(settings.bids_dir or "", settings.derivatives), bids_choice(settings)
    participant = settings.participant_label or ""
    if settings.betas is not None:
        glob = settings.betas_glob or DEFAULT_GLOB
        return load_betas(layout, participant, choice, processing(settings), Path(settings.betas), glob)
    return load_bids(layout, participant, choice, processing(settings))


def bids_choice(settings: StudySettings) -> BidsChoice:
    """The part of the settings that says what is taken from a BIDS dataset."""
    return BidsChoice(
        task=settings.task,
        space=settings.space,
        samples=settings.samples or "tr",
        pairs=settings.pairs or ("all",),
        confounds=settings.confounds or ("none",),
        mask=settings.mask,
    )


def _shape(sides: tuple[int, ...]) -> tuple[int, int, int]:
    """Three sides of a grid."""
    if len(sides) != 3:
        raise StudyError(f"--phantom-shape: expected three numbers, got {len(sides)}. For example 40 64 64.")
    return sides[0], sides[1], sides[2]


def processing(settings: StudySettings) -> Processing:
    """The processing part of the settings, without confounds: only the door knows their files."""
    return Processing(
        detrend=settings.detrend,
        standardize=settings.standardize,
        lag_trs=settings.lag_trs or 0,
        smoothing_fwhm=settings.smoothing_fwhm,
        high_pass=settings.high_pass,
        t_r=settings.t_r,
    )


def planted_voxels(samples: Samples, tasks: Sequence[Task]) -> dict[str, NDArray]:
    """For a phantom, the voxels (N,) bool whose signal differs between the categories of each task."""
    if samples.truth is None:
        return {}
    return {task.name: samples.truth.for_pair(task.positive, task.negative) for task in tasks}
