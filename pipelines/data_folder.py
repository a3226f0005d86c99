"""Where real data are looked for: what the command line names, else the folder in MVPA_GAMP_DATA."""

import os
from pathlib import Path

VARIABLE = "MVPA_GAMP_DATA"


def find_data(named: Path | None, *parts: str) -> Path | None:
    """``named`` if given (it must exist), else ``parts`` inside the folder of MVPA_GAMP_DATA, else None."""
    if named is not None:
        if not named.exists():
            raise FileNotFoundError(f"--data {named}: there is no such file or folder. Correct the name.")
        return named
    root = os.environ.get(VARIABLE)
    inside = Path(root).joinpath(*parts) if root else None
    return inside if inside is not None and inside.exists() else None
