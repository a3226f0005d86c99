"""The way of a command through the package: a stranger who follows it opens a limited number of files."""

import pytest

from pipelines import way

pytestmark = pytest.mark.whole
MOST = 110  # files of the package


def test_the_first_command_runs_through_few_files(capsys):
    found = way.run([*way.SMALL, "--pairs", "face:chair"])
    assert 60 < len(found) <= MOST  # fewer would mean that calls are not seen
    assert "main" in found["haxby.py"] and "run_study" in found["study/run.py"]
    assert "fit_em" in found["gamp/em.py"]
    assert f"in {len(found)} files of mvpa_gamp" in capsys.readouterr().out
