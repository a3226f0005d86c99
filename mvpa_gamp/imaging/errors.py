"""The one error of everything that reads data."""

import zlib

_LONGEST = 200  # characters of a library's words: they may quote a whole cell of a table


class DataError(ValueError):
    """Volumes, labels, masks or confounds that cannot be used: what was expected, what came, what to do."""


def reason(error: Exception) -> str:
    """What went wrong in a line, without the number and the path that the system puts around it."""
    if isinstance(error, zlib.error):
        return "its compressed data are damaged"
    words = str(getattr(error, "strerror", None) or error).strip() or type(error).__name__
    line = words.splitlines()[0].rstrip(".")
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..."
