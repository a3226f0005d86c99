"""The results folder before a run: may it be written, is it empty, is it ours, does it fit the settings."""

import shutil
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.lock import check_lock
from mvpa_gamp.study.settings import StudySettings, differences, read_earlier

TEMPORARY = ".writing-*"  # what a killed run may leave behind


@dataclass(frozen=True)
class Output:
    """Where results go, and what may happen to results that are there already."""

    root: Path
    resume: bool = False
    overwrite: bool = False
    option: str = "--out"  # how the command line calls the folder
    owner: str = field(default_factory=lambda: uuid.uuid4().hex)  # the command, for the folder's lock
    entities: Mapping[str, str] = field(default_factory=dict)  # of the input, once it is known

    @property
    def folder(self) -> ResultsFolder:
        """The names inside."""
        return ResultsFolder(self.root, self.entities)


def check_output(output: Output) -> None:
    """Refuse, before any work, a folder that cannot or must not be written."""
    root = output.root
    if output.resume and output.overwrite:
        raise StudyError("--resume keeps results and --overwrite replaces them: give one of the two.")
    if root.is_symlink() and not root.exists():
        raise StudyError(
            f"{output.option} {root} is a link to {root.readlink()}, which does not exist. Give another name."
        )
    if root.exists() and not root.is_dir():
        raise StudyError(f"{output.option} {root} is a file, a folder is needed. Give another name.")
    check_lock(output.folder, output.owner)
    _check_writable(output)
    if not root.exists() or all(path == output.folder.lock for path in root.iterdir()):
        return
    folder = output.folder
    ours = folder.config.is_file()
    if output.resume:  # which deletes nothing: its config.toml may be damaged or gone
        ours = ours or folder.config.exists() or folder.study.exists() or any(root.glob("work/*_fits.npz"))
    if not ours and (output.resume or output.overwrite):
        raise StudyError(
            f"{output.option} {root} holds other files, and no results of an earlier run. Give another "
            "folder."
        )
    if not output.resume and not output.overwrite:
        raise StudyError(
            f"{output.option} {root} is not empty. Continue the run that wrote it with --resume, replace "
            "its results with --overwrite, or give another folder."
        )


def _check_writable(output: Output) -> None:
    """Try to write where the folder is, or where it would be made."""
    place = output.root.absolute()
    while not place.exists():
        place = place.parent
    try:
        if not place.is_dir():
            raise NotADirectoryError(20, f"{place} is a file")
        with tempfile.TemporaryDirectory(dir=place, prefix=".writing-"):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise StudyError(
            f"{output.option} {output.root} cannot be written: {reason}. Give a folder you may write to."
        ) from error


def check_resume(output: Output, settings: StudySettings) -> None:
    """Refuse to mix two studies in one folder."""
    earlier = read_earlier(output.folder) if output.resume else None
    if earlier is None:  # damaged settings are written again; stored fits know what they were made of
        return
    changed = differences(earlier, settings)
    if changed:
        raise StudyError(
            f"The run in {output.root} had other settings ({'; '.join(changed)}). Give the same "
            f"options (--config {output.folder.config}), or another {output.option}, or --overwrite."
        )


def prepare(output: Output) -> None:
    """Make the folder, empty it of old results if asked to, and sweep up after a killed run.

    The manifest goes: it is of a run that has ended, and this one begins.
    """
    output.root.mkdir(parents=True, exist_ok=True)
    if output.folder.manifest.is_file():
        output.folder.manifest.unlink()
    if output.overwrite:
        for path in output.folder.own_entries():
            _remove(path)
    for path in output.root.rglob(TEMPORARY):
        _remove(path)


def _remove(path: Path) -> None:
    """Delete a file, or a folder with all it holds."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
