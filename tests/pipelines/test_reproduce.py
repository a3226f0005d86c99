"""One command for all pipelines: it goes on after a failure and names what failed."""

import importlib.util
from pathlib import Path

import pytest

from pipelines import reproduce
from pipelines.command import Options

OPTIONS = Options(full=False, seed=3, out=Path("somewhere"))


def good(argv):
    print("a table\n\nheadline of " + argv[-1])
    return 0


def raising(argv):
    raise ValueError("expected one,\ngot two")


def unwilling(argv):
    raise SystemExit(2)


def test_it_goes_on_after_a_failure(capsys):
    outcomes = reproduce.run(
        OPTIONS, {"first": raising, "second": good, "third": unwilling, "fourth": lambda argv: 1}
    )
    assert [outcome.failed for outcome in outcomes] == [True, False, True, True]
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert "FAILED: ValueError: expected one, got two" in lines[0]
    assert lines[1].startswith("second") and lines[1].endswith(f"headline of {Path('somewhere') / 'second'}")
    assert "FAILED: ended with exit code 2" in lines[2]


def test_options_reach_the_pipelines():
    seen = []
    reproduce.run_one("one", lambda argv: seen.append(argv) or 0, OPTIONS)
    assert seen == [["--quick", "--seed", "3", "--out", str(Path("somewhere") / "one")]]


@pytest.mark.parametrize(("broken", "code"), [((), 0), (("robust_labels", "expression"), 1)])
def test_exit_code_and_names(broken, code, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(reproduce, "command_of", lambda name: raising if name in broken else good)
    assert reproduce.main(["--quick", "--out", str(tmp_path)]) == code
    said = capsys.readouterr()
    total = len(reproduce.PIPELINES)
    assert f"{total - len(broken)} of {total} pipelines succeeded" in said.out
    assert ("failed: robust_labels, expression" in said.err) == bool(broken)


def test_default_folder_is_figures(monkeypatch):
    seen = []
    monkeypatch.setattr(reproduce, "run", lambda options, commands: seen.append(options) or [])
    assert reproduce.main([]) == 0
    assert seen[0].out == Path("figures")


def test_every_pipeline_is_there():
    for name in reproduce.PIPELINES:
        assert importlib.util.find_spec(f"pipelines.{name}") is not None, name
