"""Which columns of fMRIPrep's confounds table are regressed out."""

import difflib
from collections.abc import Sequence
from pathlib import Path

from mvpa_gamp.imaging.errors import DataError

_MOTION = tuple(f"{kind}_{axis}" for kind in ("trans", "rot") for axis in "xyz")
_EXPANSION = ("", "_derivative1", "_power2", "_derivative1_power2")
SETS = {
    "none": (),
    "motion6": _MOTION,
    "motion24": tuple(name + ending for name in _MOTION for ending in _EXPANSION),  # Friston et al., 1996
}


def confound_columns(chosen: Sequence[str]) -> tuple[str, ...]:
    """Column names from names of sets (none, motion6, motion24) and of columns, commas allowed, each once."""
    names = [name.strip() for text in chosen for name in text.split(",") if name.strip()]
    if "none" in names and len(names) > 1:
        raise DataError(
            f"--confounds: none excludes all others, got {', '.join(names)}. Leave out one or other."
        )
    return tuple(dict.fromkeys(column for name in names for column in SETS.get(name, (name,))))


def check_columns(path: Path, columns: Sequence[str]) -> None:
    """Refuse a table without the columns asked for, naming those that look alike."""
    try:
        with path.open(encoding="utf-8-sig") as stream:
            header = stream.readline().rstrip("\r\n").split("\t")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"confounds {path} cannot be read as text ({error}). Check the file.") from error
    missing = [name for name in columns if name not in header]
    if missing:
        near = difflib.get_close_matches(missing[0], header, n=5, cutoff=0.4) or header[:5]
        meant = difflib.get_close_matches(missing[0], SETS, n=1)
        offer = f"Did you mean {meant[0]}? " if meant else ""
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise DataError(
            f"--confounds: {path.name} has no column {missing[0]}{more}. {offer}Choose among its "
            f"{len(header)} columns, such as {', '.join(near)}; or none, motion6, motion24."
        )
