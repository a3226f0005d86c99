"""GAMPDecoder and GAMPRegressor: images in, images out."""

from .decoder import GAMPDecoder
from .regressor import GAMPRegressor
from .voxels import InformationImages, SelectionImages

__all__ = ["GAMPDecoder", "GAMPRegressor", "InformationImages", "SelectionImages"]
