"""A seeded phantom in Haxby's form: anatomy, patterns, time series, cache, and Samples of it."""

from mvpa_gamp.imaging.phantom.head import CATEGORIES, Phantom
from mvpa_gamp.imaging.phantom.source import phantom_images, phantom_labels, phantom_samples

__all__ = ["CATEGORIES", "Phantom", "phantom_images", "phantom_labels", "phantom_samples"]
