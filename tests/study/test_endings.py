"""How a command ends when a signal, the terminal or its surroundings get in its way."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mvpa_gamp.gamp import compiled
from mvpa_gamp.haxby import main
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.study import jobs
from mvpa_gamp.study.settings import read_settings

pytestmark = pytest.mark.whole


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_ends_in_a_sentence_and_can_be_resumed(finished, tiny, tmp_path, capsys, monkeypatch, name):
    out, number, stored = tmp_path / "out", getattr(signal, name), []
    options = tiny.options(out, "--methods", "onebit-cs", "cdn", "--pairs", "all", "--fold-maps", "--quiet")
    save = jobs.save_fits

    def save_or_end(path, *given):
        stored.append(path)
        if len(stored) == 3:
            os.kill(os.getpid(), number)
            for _ in range(100):  # until it has come
                time.sleep(0.02)
            raise RuntimeError("what a worker says that shares the signal")
        save(path, *given)

    monkeypatch.setattr(jobs, "save_fits", save_or_end)
    before = signal.getsignal(number)
    assert main(options) == 128 + number
    said = capsys.readouterr().err.strip().splitlines()
    assert len([line for line in said if "error: interrupted" in line]) == 1 and "--resume" in said[-1], said
    assert signal.getsignal(number) is before
    assert not ResultsFolder(out).lock.exists() and not list(out.rglob(".writing-*"))
    monkeypatch.undo()
    assert main([*options, "--resume"]) == 0
    assert ResultsFolder(out).manifest.read_bytes() == ResultsFolder(finished).manifest.read_bytes()


def run_apart(arguments, **more):
    """A command of its own with Jupyter's way to show figures in its surroundings."""
    given = {**os.environ, "MPLBACKEND": "module://nowhere_inline.backend_inline"}
    command = [sys.executable, "-m", "mvpa_gamp.haxby", *arguments]
    return subprocess.run(command, env=given, stderr=subprocess.PIPE, text=True, **more)


@pytest.mark.parametrize("kind", ["closed", "full"])
def test_a_stream_that_takes_nothing_ends_no_run(finished, tmp_path, kind):
    copy = shutil.copytree(finished, tmp_path / "copy")
    given = ["--out", str(copy), "--resume"]
    if kind == "closed":
        done = run_apart(given, preexec_fn=lambda: os.close(1))
    else:
        with open("/dev/full", "w") as full:
            done = run_apart(given, stdout=full)
    assert done.returncode == 1, done.stderr
    assert "error: stdout was closed or full" in done.stderr and "Traceback" not in done.stderr
    assert ResultsFolder(copy).manifest.read_bytes() == ResultsFolder(finished).manifest.read_bytes()
    assert (copy / "index.html").stat().st_size == (finished / "index.html").stat().st_size


BAD_NAMES = {
    "long path": ("x" * 200 + "/") * 25,
    "long name": "x" * 300,
    "not utf-8": os.fsdecode(b"caf\xe9"),
}


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize("option", [(), ("--resume",), ("--reports-only",)])
def test_names_that_no_results_folder_can_have(tiny, tmp_path, capsys, name, option):
    assert main(tiny.options(tmp_path / BAD_NAMES[name], "--pairs", "face:house", *option)) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1 and "error: --out" in said[0] and "ive a" in said[0], said
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 20_000,
        ".".join(["a"] * 50_000) + " = 1",
        "[" + ".".join(['"a.b"'] * 50_000) + "]",
        '"\\' * 50_000 + "." * 50_000,
        "#" * 11_000_000,
    ],
    ids=["nested", "dotted", "header", "texts", "long"],
)
def test_settings_beyond_all_measure(tiny, tmp_path, capsys, text):
    (tmp_path / "config.toml").write_text(text)
    assert main(tiny.options(tmp_path / "out", "--config", str(tmp_path / "config.toml"))) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1 and "--config" in said[0] and len(said[0]) < 1000, said[0][:500]


def test_many_dots_in_values_and_comments_are_no_long_key(tmp_path):
    names = ", ".join(f'\'run-{number}.nii.gz\', "a\\"b.{number}.nii"' for number in range(200))
    (tmp_path / "config.toml").write_text(f"# {'.' * 200} don't\n[data]\nbold = [{names}]  # {'.' * 200}\n")
    assert len(read_settings(tmp_path / "config.toml")["bold"]) == 400


def test_loops_that_may_not_be_compiled_are_not_used(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert not compiled.is_available()
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    assert compiled.is_available()


def test_an_edited_description_and_readme_are_kept(finished, tmp_path, capsys):
    copy = shutil.copytree(finished, tmp_path / "copy")
    folder = ResultsFolder(copy)
    for path in (folder.description, folder.readme):
        path.write_text(path.read_text().replace("mvpa_gamp decoding results", "Our results"))
    kept = folder.description.read_bytes(), folder.readme.read_bytes()
    for option in ("--resume", "--reports-only", "--resume"):
        assert main(["--out", str(copy), option]) == 0
        assert "it is kept as it is" in capsys.readouterr().err or option != "--resume"
        assert (folder.description.read_bytes(), folder.readme.read_bytes()) == kept


def test_names_of_data_that_settings_cannot_hold_are_refused_before_anything_is_written(
    tiny, tmp_path, capsys
):
    odd = str(shutil.copy(tiny.mask, tmp_path / os.fsdecode(b"caf\xe9.nii.gz")))
    for more in (["--mask", odd], ["--work-dir", str(tmp_path / os.fsdecode(b"\xe9"))]):
        assert main([*tiny.options(tmp_path / "out", "--pairs", "face:house"), *more]) == 2
        said = capsys.readouterr().err
        assert f"{more[0]} " in said and "expected a name in UTF-8" in said
    assert not (tmp_path / "out").exists()


def test_a_current_folder_that_was_removed(tiny, tmp_path, capsys, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert main(tiny.options(Path("out"), "--pairs", "face:house")) == 2
    assert "the folder you are in was removed" in capsys.readouterr().err
