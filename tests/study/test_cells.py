"""What became of a job: stored, failed in the worker, or failed on the way to the disk."""

import numpy as np
import pytest

from mvpa_gamp.study import jobs, plan
from mvpa_gamp.study.console import Console
from mvpa_gamp.study.ending import StudyError


def one_job(folder):
    return jobs.make_job("face vs house", folder / "a_fits.npz", None, "of these data")


def kept(job, answer):
    answers = jobs.Answers(Console(0))
    answers.keep(jobs.Round(None, (job,)), answer)
    return answers


def test_the_last_line_of_a_workers_traceback_is_the_trouble(tmp_path):
    job = one_job(tmp_path)
    answers = kept(job, "Traceback:\nValueError: no")
    assert answers.trouble([job]) == "ValueError: no" and not job.path.exists()


def test_an_answer_is_stored_and_known_by_its_question(tmp_path):
    job = one_job(tmp_path)
    assert not job.is_stored
    assert kept(job, [{"score": np.arange(3)}]).troubles == {} and job.is_stored
    assert job.read()["score"].tolist() == [0, 1, 2]
    assert not jobs.make_job(job.label, job.path, None, "of other data").is_stored


def test_an_answer_that_cannot_be_stored_becomes_a_sentence_of_its_own(tmp_path, monkeypatch):
    def full_disk(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(jobs, "write_npz", full_disk)
    job = one_job(tmp_path)
    assert "No space left on device" in kept(job, [{}]).trouble([job])


def test_a_round_names_its_jobs_and_counts_their_permutations(tmp_path):
    several = [jobs.make_job(name, tmp_path / name, None, permutations=n) for name, n in (("a", 2), ("b", 3))]
    round_ = jobs.Round(None, tuple(several))
    assert (round_.label, round_.permutations) == ("a and 1 more", 5)


def test_a_cell_without_a_file_is_not_done(tmp_path):
    assert not plan.is_done(one_job(tmp_path), print)


def test_a_damaged_file_is_named_and_made_again(tmp_path):
    job, said = one_job(tmp_path), []
    job.path.write_bytes(b"not an archive")
    assert not plan.is_done(job, said.append)
    assert said == [f"{job.path} is damaged: its fits are computed again."]


def test_fits_of_other_data_are_refused(tmp_path, monkeypatch):
    job = one_job(tmp_path)
    job.path.touch()
    monkeypatch.setattr(plan, "load_fits", lambda _: (None, "of other data"))
    with pytest.raises(StudyError, match=r"computed from other data.*Use --overwrite"):
        plan.is_done(job, print)
