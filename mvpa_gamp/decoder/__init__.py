"""GAMPDecoder: images in, images out."""

from .decoder import GAMPDecoder
from .voxels import InformationImages, SelectionImages

__all__ = ["GAMPDecoder", "InformationImages", "SelectionImages"]
