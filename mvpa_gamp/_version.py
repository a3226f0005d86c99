"""The one place that knows the version."""

__version__ = "1.0.0rc1"
