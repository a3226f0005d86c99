"""The results folder before a run: may it be written, is it empty, is it ours, does it fit the settings."""

import os
import tempfile
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from mvpa_gamp.imaging import disk
from mvpa_gamp.imaging.disk import Record, read_record
from mvpa_gamp.results.files import write_text
from mvpa_gamp.results.names import ResultsFolder, is_own_name
from mvpa_gamp.study.ending import StudyError
from mvpa_gamp.study.lock import check_lock
from mvpa_gamp.study.options import check_name
from mvpa_gamp.study.settings import StudySettings, differences, read_earlier

DECODE, PARTICIPANTS, PARTICIPANT = "decode", "participants", "participant"  # kinds of study
_WORK = "work"  # the kind of a folder of stored fits
_KINDS = {
    "decoder": "the files of a fitted decoder (to_bids)",
    DECODE: "a study of one participant (decode)",
    PARTICIPANTS: "the participants of a BIDS dataset",
    PARTICIPANT: "one participant of a BIDS dataset",
    _WORK: "stored fits (--work-dir)",
}
_KEY = 8  # digits that tell folders of the same name apart
_NAMED = 5  # files named in a sentence


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
    kind: str = DECODE
    keep_fits: bool = False  # after a run that ended well, however large they are

    @property
    def folder(self) -> ResultsFolder:
        """The names inside."""
        return ResultsFolder(self.root, self.entities, self.work)

    @cached_property
    def token(self) -> str:
        """What tells the study from any other; a resumed run has that of its folder."""
        record = read_record(self.root) if self.resume else None
        return self.owner if record is None else record.token

    @cached_property
    def work(self) -> Path | None:
        """Where its fits are stored, None in the folder itself; a resumed run remembers."""
        if self.work_dir is not None:
            name = f"{self.root.absolute().name}-{self.token[:_KEY]}"
            return self.work_dir.expanduser().absolute() / name
        return noted_work(self.root, self.token) if self.resume else None

    @property
    def stored(self) -> Path:
        """The folder of its stored fits."""
        return self.work or self.root / "work"


def noted_work(root: Path, token: str) -> Path | None:
    """The folder of fits that a results folder names, where that is one of the same study."""
    try:
        text = disk.read_plain(ResultsFolder(root).work_note, 100_000).decode("utf-8").strip()
        record = read_record(Path(text)) if text and Path(text).is_absolute() else None
    except (OSError, ValueError):
        return None
    return Path(text) if record is not None and (record.kind, record.token) == (_WORK, token) else None


def check_output(output: Output) -> None:
    """Refuse, before any work, a folder that cannot or must not be written."""
    root = output.root
    if output.resume and output.overwrite:
        raise StudyError("--resume keeps results and --overwrite replaces them: give one of the two.")
    _check_place(output)
    check_plain(root, output.option)
    check_lock(output.folder, output.owner)
    _check_writable(root, output.option)
    if output.work is not None:
        check_name(output.work, "--work-dir")
        check_plain(output.work, "--work-dir", everything=True)
        _check_writable(output.work, "--work-dir")
    if not root.exists() or all(path == output.folder.lock for path in root.iterdir()):
        return
    if not output.resume and not output.overwrite:
        raise StudyError(
            f"{output.option} {root} is not empty. Continue the run that wrote it with --resume, replace "
            "its results with --overwrite, or give another folder."
        )
    check_kind(root, output.option, output.kind)
    if output.resume and output.work is None and output.folder.work_note.exists():
        raise StudyError(
            f"--resume: fits of {root} were stored in another folder ({output.folder.work_note} names it), "
            "which is no longer there or belongs to another study. Give --work-dir again, or delete that "
            "file to store them in the results folder."
        )


def check_kind(root: Path, option: str, kind: str) -> Record:
    """The record of a folder that a study of this kind wrote; any other folder is refused."""
    record = read_record(root)
    if record is None:
        raise StudyError(
            f"{option} {root} contains other files, but no results of an earlier run (its file "
            f"{disk.NAME} is missing or damaged). Give another folder."
        )
    if record.kind != kind:
        known = _KINDS.get(record.kind, "something else")
        raise StudyError(
            f"{option} {root} holds {known} ({disk.NAME}), expected {_KINDS[kind]}. Give another "
            "folder, or the command that wrote it."
        )
    return record


def check_plain(root: Path, option: str, everything: bool = False) -> None:
    """Refuse a folder with links, pipes or devices where results are."""
    ours = is_own_name if not everything else lambda name: True
    for path, what in disk.irregular(root, ours):
        raise StudyError(
            f"{option} {root}: {path} is {what}, expected a file or a folder. Put the file itself there, "
            "or give another folder."
        )


def check_inputs(output: Output, settings: StudySettings) -> None:
    """Refuse data that lie in the results folder, which a later --overwrite is to empty."""
    root = output.root.resolve()
    for option, path in _inputs(settings):
        check_name(path, option)
        if path.resolve().is_relative_to(root):
            raise StudyError(
                f"{option} {path} lies in {output.option} {output.root}, expected data outside of the "
                "results folder. Give another folder for the results."
            )


def _inputs(settings: StudySettings) -> Iterable[tuple[str, Path]]:
    """Files and folders that a study reads, with the options that name them."""
    source = settings.source
    named = {name: getattr(source, name) for name in source.paths}
    named |= {name: getattr(settings, name) for name in ("atlas", "atlas_labels", "fold_confounds")}
    named |= {"bids_filter_file": getattr(source, "bids_filter_file", "")}
    for name, value in named.items():
        for text in value if isinstance(value, tuple) else (value,):
            if text and Path(text).expanduser().exists():
                option = "BIDS_DIR" if name == "bids_dir" else "--" + name.replace("_", "-")
                yield option, Path(text).expanduser()
    yield from source.listed()


def _check_place(output: Output) -> None:
    """Refuse what is no folder and cannot become one."""
    root = output.root
    if root.is_symlink() and not root.exists():
        raise StudyError(
            f"{output.option} {root} is a link to {root.readlink()}, which does not exist. Give another name."
        )
    if root.exists() and not root.is_dir():
        raise StudyError(f"{output.option} {root} is a file, a folder is needed. Give another name.")


def _check_writable(folder: Path, option: str) -> None:
    """Try to write where a folder is, or where it would be made."""
    place = folder.expanduser().absolute()
    while not place.exists():
        place = place.parent
    try:
        if not place.is_dir():
            raise NotADirectoryError(20, f"{place} is a file")
        with tempfile.TemporaryFile(dir=place):
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


def prepare(output: Output) -> str:
    """Make the folder, empty it of old results if asked to, and sweep up after a killed run.

    Only files that the folder's record names are removed; returns a sentence about what else is there.
    The manifest goes: it is of a run that has ended, and this one begins.
    """
    root, record = output.root, read_record(output.root)
    manifest = output.folder.manifest
    try:
        disk.make_way(manifest)
        manifest.unlink(missing_ok=True)
    except OSError as error:
        raise disk.write_error(manifest, error) from error
    if record is not None:
        old_work = noted_work(root, record.token)
        for place in filter(None, (root, old_work)):
            known = read_record(place)
            assert known is not None
            disk.remove_temporary(place, known)
            if output.overwrite:
                disk.remove_recorded(place, known)
                (place / disk.NAME).unlink()
    disk.begin(root, output.kind, output.token)
    if output.work is not None:
        disk.begin(output.work, _WORK, output.token)
        write_text(output.folder.work_note, f"{output.work}\n")
    description = output.folder.description
    if output.overwrite:
        return _left(output)
    if disk.edited(root, description.name):
        return f"{description} was edited since its run wrote it: it is kept as it is."
    return ""


def keep_record(output: Output) -> None:
    """Give a folder of participants its record, where it has none yet."""
    if read_record(output.root) is None:
        disk.begin(output.root, output.kind, output.token)


def _left(output: Output) -> str:
    """What is still in a folder that was emptied."""
    own = ("written.jsonl", output.folder.lock.name, output.folder.config.name, "work_dir.txt")
    found = [Path(home) / name for home, _, names in os.walk(output.root) for name in sorted(names)]
    names = [path.relative_to(output.root).as_posix() for path in found if path.name not in own]
    if not names:
        return ""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return (
        f"Not removed from {output.root}, because the earlier run did not write them or they were changed "
        f"since: {', '.join(names[:_NAMED])}{more}."
    )
