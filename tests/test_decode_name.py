"""``python -m mvpa_gamp decode``: the second name of ``python -m mvpa_gamp.haxby``."""

import pytest

from mvpa_gamp import haxby
from mvpa_gamp.__main__ import asks_for_own_files, main


def test_both_names_write_the_same_files(finished, tmp_path):
    """The fixture ran under the other name: settings, tables and maps are the same to the byte."""
    assert (
        main(["decode", "--config", str(finished / "config.toml"), "--out", str(tmp_path / "o"), "--quiet"])
        == 0
    )
    for name in ("config.toml", "summary.tsv", "logs/manifest.tsv"):
        assert (tmp_path / "o" / name).read_bytes() == (finished / name).read_bytes()


def test_both_names_have_the_same_options_and_each_help_its_own_name(capsys):
    told = {}
    for command, run in (("mvpa_gamp decode", lambda: main(["decode", "--help-all"])),
                         ("mvpa_gamp.haxby", lambda: haxby.main(["--help-all"]))):  # fmt: skip
        with pytest.raises(SystemExit, match="0"):
            run()
        told[command] = capsys.readouterr().out
        assert told[command].startswith(f"usage: python -m {command} [options]")
        assert f"\n  python -m {command} --bold run-*_bold.nii.gz" in told[command]
    assert told["mvpa_gamp decode"].replace("mvpa_gamp decode", "mvpa_gamp.haxby") == told[
        "mvpa_gamp.haxby"
    ].replace("mvpa_gamp decode", "mvpa_gamp.haxby")


def test_errors_carry_the_name_that_was_called(tmp_path, capsys):
    missing, out = str(tmp_path / "none.nii.gz"), tmp_path / "out"
    assert main(["decode", "--bold", missing, "--labels", missing, "--mask", missing, "--out", str(out)]) == 2
    assert "\nmvpa_gamp decode: error: BOLD file " in capsys.readouterr().err
    assert not out.exists()
    with pytest.raises(SystemExit, match="2"):
        main(["decode", "bold.nii.gz"])  # --bold forgotten
    said = capsys.readouterr().err
    assert "python -m mvpa_gamp decode: error: unrecognized arguments: bold.nii.gz" in said


@pytest.mark.parametrize(
    ("arguments", "own_files"),
    [
        (["decode"], True),
        (["decode", "--help"], True),
        (["decode", "--bold", "participant"], True),  # a value that is called like a level
        (["decode", "--out", "group"], True),
        (["decode", "out", "participant"], False),  # a dataset in a folder called decode
        (["decode", "decode", "group", "--alpha", "0.01"], False),
        (["./decode", "out", "participant"], False),
        (["ds", "decode", "group"], False),
        ([], False),
    ],
)
def test_a_dataset_called_decode_is_told_apart(arguments, own_files):
    assert asks_for_own_files(arguments) is own_files


def test_a_dataset_called_decode_goes_to_the_bids_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["decode", "out", "participant"]) == 2
    assert capsys.readouterr().err.startswith("mvpa_gamp: error: BIDS_DIR ")
