"""What became of a cell: stored, failed in the worker, or failed on the way to the disk."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from mvpa_gamp.study import cells
from mvpa_gamp.study.errors import StudyError


def cell(path: Path):
    return SimpleNamespace(path=path, fingerprint="of these data")


def test_the_traceback_of_a_worker_is_passed_on(tmp_path):
    assert cells.stored(cell(tmp_path / "fits.npz"), "Traceback: no") == "Traceback: no"
    assert not (tmp_path / "fits.npz").exists()


def test_fits_that_cannot_be_stored_become_a_sentence_of_their_own(tmp_path, monkeypatch):
    def full_disk(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(cells, "save_fits", full_disk)
    assert "No space left on device" in cells.stored(cell(tmp_path / "fits.npz"), object())


def test_a_cell_without_a_file_is_not_done(tmp_path):
    assert not cells.is_done(cell(tmp_path / "fits.npz"), print)


def test_a_damaged_file_is_named_and_made_again(tmp_path):
    path = tmp_path / "fits.npz"
    path.write_bytes(b"not an archive")
    said = []
    assert not cells.is_done(cell(path), said.append)
    assert said == [f"{path} is damaged: its fits are computed again."]


def test_fits_of_other_data_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "fits.npz"
    path.touch()
    monkeypatch.setattr(cells, "load_fits", lambda _: (None, "of other data"))
    with pytest.raises(StudyError, match=r"computed from other data.*Use --overwrite"):
        cells.is_done(cell(path), print)
