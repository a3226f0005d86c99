"""BIDS entities in file names."""

import re
from collections.abc import Iterable, Mapping

from mvpa_gamp.imaging.errors import DataError

# Entities of the input that names of results repeat, in BIDS's order.
REPEATED = ("ses", "task", "acq", "ce", "rec", "dir", "hemi", "space", "res", "den")


def entity(text: str) -> str:
    """A BIDS entity value, ASCII letters and digits only: ``gamp-bg-lr`` becomes ``gampBgLr``."""
    parts = [part for part in re.split(r"[^0-9A-Za-z]+", text) if part]
    if not parts:
        raise DataError(f"name {text!r}: expected at least one letter or digit for a file name. Rename it.")
    return parts[0] + "".join(part[0].upper() + part[1:] for part in parts[1:])


def entities_text(entities: Mapping[str, str]) -> str:
    """``ses-01_task-x_space-y_`` in BIDS's order, empty without entities."""
    return "".join(f"{name}-{entities[name]}_" for name in REPEATED if name in entities)


def shared_entities(each: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The entities of ``REPEATED`` that some files have in common, with the same value."""
    first, *others = each
    known = {name: first[name] for name in REPEATED if name in first}
    return {name: value for name, value in known.items() if all(o.get(name) == value for o in others)}
