"""Maps by contrast: keys from either side, and images made when they are asked for."""

import nibabel
import numpy as np
import pytest

from mvpa_gamp.decoder.contrast_maps import ContrastMaps

MASK = nibabel.Nifti1Image(np.ones((2, 1, 1), dtype=np.uint8), np.eye(4))


def maps(*pairs, signed=True):
    return ContrastMaps(np.arange(2.0 * len(pairs)).reshape(2, -1) + 1, list(pairs), MASK, signed)


def test_a_map_seen_from_the_other_side_changes_its_sign():
    found = maps(("cat", "face"), ("cat", "house"))
    np.testing.assert_array_equal(found.vector("cat-house"), [2, 4])
    np.testing.assert_array_equal(found.vector("house-cat"), [-2, -4])
    np.testing.assert_array_equal(maps(("a", "b"), signed=False).vector("b-a"), [1, 2])
    np.testing.assert_array_equal(found["cat-house"].get_fdata()[:, 0, 0], [2, 4])


def test_keys_of_either_side_are_in_it_and_others_are_not():
    found = maps(("cat", "face"), ("cat", "house"))
    assert list(found) == ["cat-face", "cat-house"] and len(found) == 2
    assert "house-cat" in found and "cat" not in found and "dog-cat" not in found
    assert repr(found) == "ContrastMaps('cat-face', 'cat-house')"
    with pytest.raises(KeyError):
        found["dog-cat"]


def test_with_two_classes_each_class_is_a_key():
    found = maps(("cat", "face"))
    assert list(found) == ["cat-face", "cat", "face"]
    np.testing.assert_array_equal(found.vector("face"), -found.vector("cat"))
