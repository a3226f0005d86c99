"""The one error of everything that reads data."""


class DataError(ValueError):
    """Volumes, labels, masks or confounds that cannot be used: what was expected, what came, what to do."""


def reason(error: Exception) -> str:
    """What went wrong, without the number and the path that the system puts around it."""
    return getattr(error, "strerror", None) or str(error)
