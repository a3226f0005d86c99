"""The results folder before a run: may it be written, is it empty, is it ours, does it fit the settings."""

import hashlib
import shutil
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mvpa_gamp.results.files import write_text
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.lock import check_lock
from mvpa_gamp.study.settings import StudySettings, differences, read_earlier

TEMPORARY = ".writing-*"  # what a killed run may leave behind
_KEY = 8  # digits that tell folders of the same name apart


@dataclass(frozen=True)
class Output:
    """Where results go, and what may happen to results that are there already."""

    root: Path
    resume: bool = False
    overwrite: bool = False
    option: str = "--out"  # how the command line calls the folder
    owner: str = field(default_factory=lambda: uuid.uuid4().hex)  # the command, for the folder's lock
    entities: Mapping[str, str] = field(default_factory=dict)  # of the input, once it is known
    work_dir: Path | None = None  # where fits are stored, each results folder's in one of its own

    @property
    def folder(self) -> ResultsFolder:
        """The names inside."""
        return ResultsFolder(self.root, self.entities, self.work)

    @property
    def work(self) -> Path | None:
        """Where its fits are stored, None in the folder itself; a resumed run remembers."""
        if self.work_dir is not None:
            key = hashlib.sha256(str(self.root.absolute()).encode()).hexdigest()[:_KEY]
            return self.work_dir.expanduser().absolute() / f"{self.root.name}-{key}"
        note = ResultsFolder(self.root).work_note
        known = note.read_text(encoding="utf-8", errors="replace").strip() if note.is_file() else ""
        return Path(known) if self.resume and Path(known).is_absolute() else None

    @property
    def stored(self) -> Path:
        """The folder of its stored fits."""
        return self.work or self.root / "work"


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
    _check_writable(output.root, output.option)
    if output.work is not None:
        _check_writable(output.work, "--work-dir")
    if not root.exists() or all(path == output.folder.lock for path in root.iterdir()):
        return
    folder = output.folder
    ours = folder.config.is_file()
    if output.resume:  # which deletes nothing: its config.toml may be damaged or gone
        ours = (
            ours or folder.config.exists() or folder.study.exists() or any(output.stored.glob("*_fits.npz"))
        )
    if not ours and (output.resume or output.overwrite):
        raise StudyError(
            f"{output.option} {root} contains other files, but no results of an earlier run. Give another "
            "folder."
        )
    if not output.resume and not output.overwrite:
        raise StudyError(
            f"{output.option} {root} is not empty. Continue the run that wrote it with --resume, replace "
            "its results with --overwrite, or give another folder."
        )


def _check_writable(folder: Path, option: str) -> None:
    """Try to write where a folder is, or where it would be made."""
    place = folder.expanduser().absolute()
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
            f"{option} {folder} cannot be written: {reason}. Give a folder you may write to."
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
        if output.work is not None and output.work.is_dir():
            _remove(output.work)
    for place in (output.root, output.work):
        for path in place.rglob(TEMPORARY) if place else ():
            _remove(path)
    if output.work is not None:
        write_text(output.folder.work_note, f"{output.work}\n")


def _remove(path: Path) -> None:
    """Delete a file, or a folder with all it holds."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
