"""GAMPDecoder: images in, images out."""

from .decoder import GAMPDecoder

__all__ = ["GAMPDecoder"]
