"""The doors through which data come in: Haxby's volumes, a user's own files, or the phantom."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from numpy.typing import NDArray

from mvpa_gamp.decoding.tasks import Task
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


def _absolute(name: str) -> str:
    """A path that means the same from every folder."""
    return str(Path(name).expanduser().absolute())


def open_door(settings: StudySettings) -> Samples:
    """Load the samples of a study whose door is resolved."""
    steps = processing(settings)
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


def _shape(sides: tuple[int, ...]) -> tuple[int, int, int]:
    """Three sides of a grid."""
    if len(sides) != 3:
        raise StudyError(f"--phantom-shape: expected three numbers, got {len(sides)}. For example 40 64 64.")
    return sides[0], sides[1], sides[2]


def processing(settings: StudySettings) -> Processing:
    """The processing part of the settings."""
    return Processing(
        detrend=settings.detrend,
        standardize=settings.standardize,
        lag_trs=settings.lag_trs,
        smoothing_fwhm=settings.smoothing_fwhm,
        high_pass=settings.high_pass,
        t_r=settings.t_r,
        confounds=settings.confounds,
    )


def planted_voxels(samples: Samples, tasks: Sequence[Task]) -> dict[str, NDArray]:
    """For a phantom, the voxels (N,) bool whose signal differs between the categories of each task."""
    if samples.truth is None:
        return {}
    return {task.name: samples.truth.for_pair(task.positive, task.negative) for task in tasks}
