import numpy as np
import pytest

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.processing import confound_table, fill_missing, read_confounds


def test_confound_files(tmp_path):
    one, two = tmp_path / "one.tsv", tmp_path / "two.tsv"
    one.write_text("x\ty\nn/a\t1\n2\t3\n")
    two.write_text("x\ty\n4\t5\n6\t7\n8\t9\n")
    table = read_confounds((one, two), [2, 3])
    np.testing.assert_array_equal(table, [[np.nan, 1], [2, 3], [4, 5], [6, 7], [8, 9]])
    table = read_confounds((two,), [2, 1])  # one file for two BOLD files
    assert table.shape == (3, 2) and not np.isnan(table).any()


def test_confound_files_that_do_not_fit(tmp_path):
    one, two = tmp_path / "one.tsv", tmp_path / "two.tsv"
    one.write_text("x,y\n1,2\n3,4\n")
    two.write_text("x\n1\n2\n")
    with pytest.raises(DataError, match="expected one file, or one for each of 3 BOLD files, got 2"):
        read_confounds((one, two), [2, 2, 2])
    with pytest.raises(DataError, match="the same columns in all files"):
        read_confounds((one, two), [2, 2])
    with pytest.raises(DataError, match="expected 5 lines below the header, one per volume, got 2"):
        read_confounds((one,), [5])
    with pytest.raises(DataError, match="cannot be read as text"):
        read_confounds((tmp_path / "none.tsv",), [5])
    for bad in ("a", "inf"):
        two.write_text(f"x\n1\n{bad}\n")
        with pytest.raises(DataError, match="expected numbers or n/a"):
            read_confounds((two,), [2])


@pytest.mark.parametrize(
    ("second", "x", "differ"),
    [
        ("x\n5\n6\n", [5, 6], "column 2 (counted from 1) is y in {0} and missing in {1}"),
        ("y\tx\n5\t6\n7\t8\n", [6, 8], "column 1 (counted from 1) is x in {0} and y in {1}"),
        ("x\tz\n5\t6\n7\t8\n", [5, 7], "column 2 (counted from 1) is y in {0} and z in {1}"),
    ],
)
def test_confound_files_of_one_name_in_two_folders_must_agree(tmp_path, second, x, differ):
    """A column fewer, another order, another name: none may be mixed up with the first file's."""
    files = tuple(tmp_path / run / "confounds.tsv" for run in ("run-1", "run-2"))
    for path, text in zip(files, ("x\ty\n1\t2\n3\t4\n", second), strict=True):
        path.parent.mkdir()
        path.write_text(text)
    with pytest.raises(DataError, match="the same columns in all files, in the same order") as caught:
        read_confounds(files, [2, 2])
    assert differ.format(*files) in str(caught.value)
    named = read_confounds(files, [2, 2], ("x",))  # named columns are found wherever they are
    assert named[:, 0].tolist() == [1, 3, *x]


def test_huge_confounds_keep_their_shape_and_overflow_nowhere():
    usual = np.random.default_rng(0).normal(size=(20, 3))
    filled = fill_missing(usual * [1e300, 1.0, 1e-300])
    assert np.isfinite(np.square(filled).sum(axis=0)).all()
    np.testing.assert_array_equal(filled[:, 1:], (usual * [1, 1, 1e-300])[:, 1:])
    np.testing.assert_allclose(filled[:, 0] / filled[0, 0], usual[:, 0] / usual[0, 0], rtol=1e-14)


def test_missing_confounds_become_the_mean_of_the_run():
    filled = fill_missing(np.array([[np.nan, 1, np.nan], [2, 3, np.nan], [4, 5, np.nan]]))
    np.testing.assert_array_equal(filled, [[3, 1, 0], [2, 3, 0], [4, 5, 0]])


def test_a_long_cell_is_not_quoted_whole(tmp_path):
    path = tmp_path / "confounds.tsv"
    path.write_text("trans_x\n" + "x" * 140_000 + "\n")
    with pytest.raises(DataError, match=r"expected numbers or n/a .*xxx \.\.\.\). Keep numeric") as caught:
        confound_table(path, 1, None)
    assert len(str(caught.value)) < 500
