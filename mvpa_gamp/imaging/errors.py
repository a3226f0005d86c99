"""The one error of everything that reads data."""

import zlib


class DataError(ValueError):
    """Volumes, labels, masks or confounds that cannot be used: what was expected, what came, what to do."""


def reason(error: Exception) -> str:
    """What went wrong in a line, without the number and the path that the system puts around it."""
    if isinstance(error, zlib.error):
        return "its compressed data are damaged"
    words = str(getattr(error, "strerror", None) or error).strip()
    return words.splitlines()[0].rstrip(".") if words else type(error).__name__
