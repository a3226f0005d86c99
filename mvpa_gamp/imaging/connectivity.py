"""Which voxels are neighbours: the connectivity that methods with spatial priors ask for."""

from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array


def voxel_connectivity(mask_img: Any) -> csr_array:
    """The adjacency (N, N) of the N voxels of a mask: 1 where two of them share a face, symmetric.

    Voxels are in the mask's C order, as the columns of :class:`~mvpa_gamp.imaging.samples.Samples`. A voxel
    has at most six neighbours (four in a single slice), one on its own has none, and none is its own.

    >>> import nibabel
    >>> line = nibabel.Nifti1Image(np.array([1, 1, 0, 1], dtype=np.uint8).reshape(4, 1, 1), np.eye(4))
    >>> voxel_connectivity(line).toarray().tolist()
    [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    """
    from sklearn.feature_extraction.image import grid_to_graph

    inside = np.asarray(mask_img.dataobj) != 0
    inside = inside.reshape(inside.shape[:3])
    graph = grid_to_graph(*inside.shape, mask=inside, return_as=coo_array, dtype=np.uint8)
    off = graph.row != graph.col  # scikit-learn connects every voxel with itself as well
    return csr_array((graph.data[off], (graph.row[off], graph.col[off])), shape=graph.shape)
