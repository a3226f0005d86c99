"""Values of BIDS entities in file names."""

import re

from mvpa_gamp.imaging.errors import DataError


def entity(text: str) -> str:
    """A BIDS entity value, ASCII letters and digits only: ``gamp-bg-lr`` becomes ``gampBgLr``."""
    parts = [part for part in re.split(r"[^0-9A-Za-z]+", text) if part]
    if not parts:
        raise DataError(f"name {text!r}: expected at least one letter or digit for a file name. Rename it.")
    return parts[0] + "".join(part[0].upper() + part[1:] for part in parts[1:])
