import nibabel
import numpy as np
import pytest

from mvpa_gamp.imaging.spaces import voxel_connectivity


def of(inside):
    return voxel_connectivity(nibabel.Nifti1Image(inside.astype(np.uint8), np.eye(4)))


def by_hand(inside):
    """Pairs of voxels one step apart, in the order in which a mask picks voxels from a volume."""
    places = np.argwhere(inside)
    return np.abs(places[:, None] - places[None]).sum(axis=2) == 1


def test_neighbours_share_a_face_and_are_in_the_order_of_the_columns(inside):
    found = of(inside)
    np.testing.assert_array_equal(found.toarray() > 0, by_hand(inside))
    number = np.full(inside.shape, -1)
    number[inside] = np.arange(inside.sum())  # as X is filled
    x, y, z = next(place for place in np.argwhere(inside[:-1] & inside[1:]))
    assert found[number[x, y, z], number[x + 1, y, z]] == 1


def test_it_is_symmetric_without_loops_and_has_six_neighbours_at_most(inside):
    found = of(inside)
    assert (found != found.T).nnz == 0 and not found.diagonal().any()
    assert set(found.data) == {1}
    whole = of(np.ones((4, 5, 6), dtype=bool))
    assert found.sum(axis=0).max() <= 6 and whole.sum(axis=0).max() == 6
    assert whole.nnz == 2 * (3 * 5 * 6 + 4 * 4 * 6 + 4 * 5 * 5)


@pytest.mark.parametrize("shape", [(1, 7, 8), (7, 1, 8), (7, 8, 1)])
def test_a_single_slice_has_four_neighbours_at_most(shape):
    inside = np.random.default_rng(1).random(shape) < 0.7
    found = of(inside)
    np.testing.assert_array_equal(found.toarray() > 0, by_hand(inside))
    assert found.sum(axis=0).max() == 4


def test_lone_voxels_have_no_neighbours():
    inside = np.zeros((5, 5, 5), dtype=bool)
    inside[::2, ::2, ::2] = True
    assert of(inside).shape == (27, 27) and of(inside).nnz == 0
    inside[0, 0, 1] = True
    found = of(inside)
    assert found.nnz == 4 and found.sum(axis=0).tolist()[:4] == [1, 2, 1, 0]


def test_the_mask_of_the_real_slice(real_data):
    mask = nibabel.load(real_data / "haxby_slice" / "mask.nii.gz")
    found = voxel_connectivity(mask)
    assert found.shape == (530, 530) and found.sum(axis=0).max() <= 4
    np.testing.assert_array_equal(found.toarray() > 0, by_hand(np.asarray(mask.dataobj) != 0))
