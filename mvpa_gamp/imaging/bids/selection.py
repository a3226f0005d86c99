"""Which series of a participant are decoded: by task, session, run, space, or the filter file of fMRIPrep.

Series on surfaces are told by their names:
DERIVATIVES/sub-01/[ses-x/]func/..._hemi-L_space-fsaverage5_bold.func.gii and its right hemisphere
DERIVATIVES/sub-01/[ses-x/]func/..._space-fsLR_den-91k_bold.dtseries.nii
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mvpa_gamp.imaging.errors import DataError, reason
from mvpa_gamp.imaging.names import BidsFile, is_surface_file, natural

NATIVE = "native"  # the space of files that name none
PREPROCESSED = "preproc"
# The names of entities in filter files (those of PyBIDS), and in file names.
_ENTITIES = {
    "session": "ses", "task": "task", "acquisition": "acq", "ceagent": "ce", "reconstruction": "rec",
    "direction": "dir", "run": "run", "echo": "echo", "part": "part", "space": "space", "resolution": "res",
    "density": "den", "desc": "desc", "description": "desc",
}  # fmt: skip
_SAID_ANYWAY = {"suffix": "bold", "datatype": "func"}  # of every series
_ANY = "*"  # whatever its value, the entity is there
# Entity of a file name -> values of which a file must have one; None: files without the entity.
Filters = Mapping[str, tuple[str | None, ...]]
_INSTEAD = {"subject": " and give --participant-label"}
SURFACE = ("func.gii", "dtseries.nii")
_SPACES = re.compile(r"fsaverage[0-9]*|fsnative|fsLR|onavg.*")


@dataclass(frozen=True)
class Selection:
    """What is asked of a series; empty: whatever there is, but of tasks and spaces the only one."""

    tasks: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    space: str | None = None
    desc: str = PREPROCESSED  # of derivatives
    filters: Filters = field(default_factory=dict)

    def passes(self, file: BidsFile) -> bool:
        """Whether the filter file lets a series through."""
        own = file.without()
        return all(_matches(own.get(entity), wanted) for entity, wanted in self.filters.items())


def read_filters(path: str) -> Filters:
    """What a filter file of fMRIPrep's form asks of ``bold``; queries of other images are not used.

    A value is a text or number, a list of them, null (the entity is absent) or "*" (it is there).
    """
    if not path:
        return {}
    query = _bold_query(Path(path).expanduser())
    filters: dict[str, tuple[str | None, ...]] = {}
    for name, value in query.items():
        if _SAID_ANYWAY.get(name) == value:
            continue
        if name not in _ENTITIES:
            raise DataError(
                f"--bids-filter-file {path}: expected entities such as {', '.join(list(_ENTITIES)[:4])} "
                f"under bold, got {name!r}. Remove it{_INSTEAD.get(name, '')}."
            )
        filters[_ENTITIES[name]] = tuple(_value(path, name, each) for each in _listed(value))
    return filters


def _bold_query(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise DataError(
            f"--bids-filter-file {path} cannot be read as JSON ({reason(error)}). Correct the path or file."
        ) from error
    query = content.get("bold", {}) if isinstance(content, dict) else None
    if not isinstance(query, dict):
        raise DataError(
            f'--bids-filter-file {path}: expected {{"bold": {{entity: value, ...}}}}, got another form. '
            "Write it as fMRIPrep's documentation shows."
        )
    return query


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _value(path: str, name: str, value: Any) -> str | None:
    """A value as it stands in a file name, indices without leading zeros."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise DataError(
            f"--bids-filter-file {path}: expected a text, a number, a list of them or null for {name}, got "
            f"{value!r}. Correct it."
        )
    text = str(value).removeprefix(f"{_ENTITIES[name]}-")
    return str(int(text)) if name == "run" and text.isdecimal() else text


def _matches(value: str | None, wanted: Sequence[str | None]) -> bool:
    return any(value is not None if each == _ANY else value == each for each in wanted)


class OpenChoice(DataError):
    """An option that must name one of the values ``available``."""

    def __init__(self, sentence: str, available: Sequence[str]) -> None:
        self.available = available
        super().__init__(sentence)


def chosen_tasks(asked: Sequence[str], available: Sequence[str], who: str) -> tuple[str, ...]:
    """The tasks asked for, each of which must be there; the only one where none is named."""
    if not asked:
        return (choose("--task", None, available, who),)
    return tuple(choose("--task", task, available, who) for task in dict.fromkeys(asked))


def of_sessions(files: Sequence[BidsFile], sessions: Sequence[str], who: str) -> list[BidsFile]:
    """The series of some sessions; all where none is named."""
    return _with_values(files, "ses", "--session-label", sessions, who)


def of_runs(files: Sequence[BidsFile], runs: Sequence[str], who: str) -> list[BidsFile]:
    """The series with some run indices, in whatever session or task; all where none is named."""
    return _with_values(files, "run", "--run-label", runs, who)


def _with_values(
    files: Sequence[BidsFile], entity: str, option: str, asked: Sequence[str], who: str
) -> list[BidsFile]:
    known = values(file.without().get(entity) for file in files)
    wanted = asked_values(option, entity, asked, known, who)
    return [file for file in files if not wanted or file.without().get(entity) in wanted]


def asked_values(option: str, entity: str, asked: Sequence[str], known: Iterable[str], who: str) -> list[str]:
    """The values of an entity that were asked for, as names have them; each must be known."""
    texts = [text.removeprefix(f"{entity}-") for text in asked]
    wanted = [_plain(text) if entity == "run" else text for text in texts]
    known = values(each for each in known if each)
    for text in wanted:
        if text not in known:
            raise DataError(
                f"{option}: expected some of those of {who} ({', '.join(known) or 'none'}), got {text!r}. "
                "Choose among them."
            )
    return wanted


def _plain(text: str) -> str:
    return str(int(text)) if text.isdecimal() else text


def choose(option: str, asked: str | None, available: Sequence[str], who: str) -> str:
    """The one value asked for, or the only one there is; otherwise a sentence with those there are."""
    matching = [v for v in available if asked is None or v == asked]
    if not matching and asked is not None:
        matching = [value for value in available if value.startswith(f"{asked}:")]
    if len(matching) == 1:
        return matching[0]
    known = ", ".join(matching or available) or "none"
    if matching:
        came = "none was given" if asked is None else f"{asked} fits several"
        offer = "one of them, or several" if option == "--task" else "one of them"
        raise OpenChoice(f"{option}: {who} has several ({known}) and {came}. Choose {offer}.", matching)
    raise OpenChoice(
        f"{option}: expected one that {who} has ({known}), got {asked!r}. Choose among them.", available
    )


def space_of(file: BidsFile) -> str:
    """``name[:res-x]``, of surfaces ``name[:den-x]``; files that name no space are in the run's own."""
    name = file.entities.get("space", NATIVE)
    finer = [f":{key}-{file.entities[key]}" for key in ("res", "den") if key in file.entities]
    return "".join([name, *finer])


def values(found: Iterable[str | None]) -> list[str]:
    """Distinct values in natural order."""
    return sorted({value for value in found if value is not None}, key=natural)


def is_surface_space(space: str | None) -> bool:
    """Whether a space, in fMRIPrep's form ``name[:den-x]``, is one of meshes."""
    return space is not None and _SPACES.fullmatch(space.split(":")[0]) is not None


def is_surface_series(file: BidsFile, desc: str) -> bool:
    """Whether a file is a series on a surface; of a pair the left hemisphere speaks for both."""
    return (
        file.extension in SURFACE
        and file.entities.get("hemi") != "R"
        and file.entities.get("desc", desc) == desc == "preproc"
    )


def of_kind(files: Sequence[BidsFile], space: str | None) -> list[BidsFile]:
    """The volumes where no space is asked for and there are some; else all files."""
    volumes = [file for file in files if not is_surface_file(file.path)]
    return volumes if space is None and volumes else list(files)
