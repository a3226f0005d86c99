"""Maps by contrast: keys from either side, and images made when they are asked for."""

import nibabel
import numpy as np
import pytest

from mvpa_gamp.decoder.maps import ContrastMaps

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
    assert list(found) == ["cat-face", "cat-house", "cat", "face", "house"] and len(found) == 5
    assert "house-cat" in found and "cat" in found and "dog" not in found and "dog-cat" not in found
    assert repr(found) == "ContrastMaps('cat-face', 'cat-house', 'cat', 'face', 'house')"
    with pytest.raises(
        KeyError, match=r"no map of 'dog-cat'; there are maps of pairs .*'cat-face', 'cat-house'"
    ):
        found["dog-cat"]


def test_with_two_classes_each_class_is_a_key():
    found = maps(("cat", "face"))
    assert list(found) == ["cat-face", "cat", "face"]
    np.testing.assert_array_equal(found.vector("cat"), found.vector("cat-face"))
    np.testing.assert_array_equal(found.vector("face"), -found.vector("cat"))


def test_with_nilearns_sign_a_class_of_two_shows_what_speaks_for_the_other():
    found = ContrastMaps(np.array([[1.0], [2.0]]), [("cat", "face")], MASK, signed=True, as_nilearn=True)
    with pytest.warns(
        UserWarning, match=r"map of 'cat' follows nilearn's sign.* favour the other one, 'face'"
    ):
        np.testing.assert_array_equal(found.vector("cat"), [-1, -2])
    with pytest.warns(UserWarning, match=r"In the map of 'cat-face' they favour 'cat'"):
        np.testing.assert_array_equal(found["face"].get_fdata()[:, 0, 0], [1, 2])
    np.testing.assert_array_equal(found.vector("cat-face"), [1, 2])  # and nothing is said


def test_of_three_classes_a_map_is_the_mean_over_its_pairs():
    pairs = [("cat", "face"), ("cat", "house"), ("face", "house")]
    values = np.array([[1.0, 2.0, 4.0], [0.0, 0.0, 2.0]])
    signed = ContrastMaps(values, pairs, MASK, signed=True, as_nilearn=True)
    for name, expected in (("cat", [1.5, 0]), ("face", [1.5, 1]), ("house", [-3, -1])):
        np.testing.assert_array_equal(signed.vector(name), expected)
    np.testing.assert_array_equal(ContrastMaps(values, pairs, MASK, signed=False).vector("house"), [3, 1])
