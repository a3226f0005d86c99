"""GAMPDecoder and GAMPRegressor: images in, images out."""

from .decoder import GAMPDecoder
from .fitted import InformationImages, SelectionImages
from .regressor import GAMPRegressor

__all__ = ["GAMPDecoder", "GAMPRegressor", "InformationImages", "SelectionImages"]
