"""BIDS-derivative names of brain maps."""

import re

from mvpa_gamp.imaging.errors import DataError

STATS = ("weight", "weightsd", "pip", "selfreq", "pattern", "truth", "logpfwe")


def entity(text: str) -> str:
    """A BIDS entity value, ASCII letters and digits only: ``gamp-bg-lr`` becomes ``gampBgLr``."""
    parts = [part for part in re.split(r"[^0-9A-Za-z]+", text) if part]
    if not parts:
        raise DataError(f"name {text!r}: expected at least one letter or digit for a file name. Rename it.")
    return parts[0] + "".join(part[0].upper() + part[1:] for part in parts[1:])


def statmap_name(subject: str, contrast: str, desc: str, stat: str) -> str:
    """``sub-<subject>_contrast-<contrast>_desc-<desc>_stat-<stat>_statmap.nii.gz``, all parts sanitised."""
    return f"sub-{entity(subject)}_{group_map_name(contrast, desc, stat)}"


def group_map_name(contrast: str, desc: str, stat: str) -> str:
    """The name of a map that is not of one subject: the same without ``sub-``."""
    if stat not in STATS:
        raise DataError(f"stat: expected one of {', '.join(STATS)}, got {stat!r}. Change it.")
    return f"contrast-{entity(contrast)}_desc-{entity(desc)}_stat-{stat}_statmap.nii.gz"
