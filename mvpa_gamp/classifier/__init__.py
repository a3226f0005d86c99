"""scikit-learn's interface to the engine."""

from .estimator import GAMPClassifier

__all__ = ["GAMPClassifier"]
