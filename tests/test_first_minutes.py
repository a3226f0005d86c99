"""What a new user types first: the script alone, the short help, the demo, tab completion."""

import builtins
import re

import pytest

from mvpa_gamp import __main__ as command
from mvpa_gamp import haxby
from mvpa_gamp.study import run as study_run

PARSERS = {"decode": haxby.build_parser, "bids": command.build_parser}


def test_the_script_alone_names_three_commands_to_try(capsys):
    assert command.main([]) == 0
    printed = capsys.readouterr()
    assert re.findall(r"^  mvpa-gamp (\S+)", printed.out, re.M) == ["demo", "decode", "BIDS_DIR"]
    assert not printed.err


@pytest.mark.parametrize("name", PARSERS)
def test_the_short_help_is_short_and_names_options_that_exist(name):
    parser = PARSERS[name]()
    lines = parser.format_short().splitlines()
    assert len(lines) <= 25 and max(map(len, lines)) <= 110
    known = {option for action in parser._actions for option in action.option_strings}
    named = set(re.findall(r"--[a-z][a-z-]*", "\n".join(lines)))
    assert len(named) > 8 and named <= known
    assert "--help-all" in named


@pytest.mark.parametrize("arguments", [["decode"], []])
def test_the_full_help_has_every_option(arguments, capsys):
    with pytest.raises(SystemExit, match="0"):
        command.main([*arguments, "--help-all"])
    printed = capsys.readouterr().out
    parser = PARSERS["decode" if arguments else "bids"]()
    assert all(action.option_strings[0] in printed for action in parser._actions if action.option_strings)
    assert "examples:" in printed


def test_the_demo_writes_the_page_of_the_phantom(tmp_path, capsys):
    out = tmp_path / "shown"
    small = ["--phantom-shape", "9", "11", "9", "--quiet"]
    assert command.main(["demo", "--out", str(out), *small]) == 0
    assert (out / "index.html").stat().st_size > 10_000
    assert "SIMULATED PHANTOM" in capsys.readouterr().err
    assert command.main(["demo", "--out", str(out), *small]) == 2  # never over an earlier one
    assert "--overwrite" in capsys.readouterr().err


def test_a_dataset_called_demo_is_a_dataset(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command.main(["demo", "out", "participant"]) == 2
    assert "demo" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_knows_commands_and_options(shell, capsys):
    pytest.importorskip("shtab", reason="shtab is not installed: pip install shtab")
    assert command.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(word in script for word in ("decode", "demo", "--permutations", "--participant-label"))


def test_completion_for_an_unknown_shell_or_without_shtab_is_a_sentence(capsys, monkeypatch):
    assert command.main(["completion", "fish"]) == 2
    assert "expected one of bash, zsh, tcsh" in capsys.readouterr().err
    found = builtins.__import__

    def without(name, *rest, **more):
        if name == "shtab":
            raise ImportError(name)
        return found(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert command.main(["completion", "bash"]) == 2
    assert "pip install shtab" in capsys.readouterr().err


def test_large_fits_of_a_finished_run_are_removed_and_made_again(tiny, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(study_run, "_MOST_STORED", 1000)
    for name, more in (("kept", ["--keep-fits"]), ("small", [])):
        out = tmp_path / name
        assert command.main(["decode", *tiny.options(out, "--pairs", "face:house"), *more]) == 0
        assert bool(list((out / "work").glob("*_fits.npz"))) == (name == "kept")
        assert ("were removed, because the run is finished" in capsys.readouterr().err) == (name == "small")
    before = (out / "summary.tsv").read_bytes()
    mine = out / "work" / "mine_fits.npz"
    mine.parent.mkdir()
    mine.write_bytes(b"mine")
    assert command.main(["decode", "--out", str(out), "--resume", "--quiet"]) == 0
    assert (out / "summary.tsv").read_bytes() == before and list(mine.parent.iterdir()) == [mine]
