"""A seeded phantom in Haxby's form: anatomy, patterns, time series, cache, and Samples of it."""

from mvpa_gamp.imaging.phantom.source import phantom_images, phantom_labels, phantom_samples
from mvpa_gamp.imaging.phantom.spec import CATEGORIES, Phantom

__all__ = ["CATEGORIES", "Phantom", "phantom_images", "phantom_labels", "phantom_samples"]
