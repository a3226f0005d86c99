"""Decode fMRI and find the voxels that matter, with generalized approximate message passing."""

from typing import Any

from ._version import __version__

__all__ = ["GAMPClassifier", "GAMPDecoder", "GAMPRegressor", "__version__"]


def __getattr__(name: str) -> Any:
    """Load the estimators on first use: the command line's ``--help`` must not wait for scikit-learn."""
    if name == "GAMPClassifier":
        from .classifier import GAMPClassifier

        return GAMPClassifier
    if name == "GAMPDecoder":
        from .decoder import GAMPDecoder

        return GAMPDecoder
    if name == "GAMPRegressor":
        from .decoder import GAMPRegressor

        return GAMPRegressor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
