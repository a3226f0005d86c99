"""The one error of everything that reads data."""


class DataError(ValueError):
    """Volumes, labels, masks or confounds that cannot be used: what was expected, what came, what to do."""
