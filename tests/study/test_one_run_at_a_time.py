"""Two runs in one folder, a full disk: a sentence, and nothing damaged."""

import ctypes
import errno
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from mvpa_gamp.haxby import main
from mvpa_gamp.imaging.disk import WriteError, write_atomic
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.study import lock as module
from mvpa_gamp.study.ending import StudyError
from mvpa_gamp.study.lock import FolderLock, Holder, check_lock

pytestmark = pytest.mark.whole


def everything(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_second_run_is_refused_and_touches_nothing(finished, tmp_path, capsys):
    copy = shutil.copytree(finished, tmp_path / "copy")
    with FolderLock(ResultsFolder(copy), "somebody") as lock:
        lock.take()
        before = everything(copy)
        for option in ("--resume", "--reports-only"):
            assert main(["--out", str(copy), option]) == 2
            said = capsys.readouterr().err
            assert "another run is writing there" in said
            assert f"process {os.getpid()} on {socket.gethostname()}" in said
        assert everything(copy) == before
    assert not ResultsFolder(copy).lock.exists()


def test_a_run_that_began_meanwhile_is_not_disturbed(tiny, tmp_path, capsys, monkeypatch):
    """Both found the folder empty; the other one was first to write."""
    out = tmp_path / "out"
    other = FolderLock(ResultsFolder(out), "somebody")
    from mvpa_gamp.study import run

    plan = run.plan_analyses

    def slow(*given):
        other.take()
        return plan(*given)

    monkeypatch.setattr(run, "plan_analyses", slow)
    assert main(tiny.options(out, "--pairs", "face:house")) == 2
    assert "another run is writing there" in capsys.readouterr().err
    assert list(everything(out)) == [Path(".running.json")]
    other.release()


def test_a_lock_of_a_process_that_has_ended_holds_nothing(tmp_path):
    folder = ResultsFolder(tmp_path)
    script = (
        "import sys; from pathlib import Path; from mvpa_gamp.study.lock import FolderLock\n"
        "from mvpa_gamp.results.names import ResultsFolder\n"
        "FolderLock(ResultsFolder(Path(sys.argv[1])), 'dead').take()"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    assert folder.lock.exists()
    with FolderLock(folder, "next") as lock:
        lock.take()
        assert json.loads(folder.lock.read_text())["owner"] == "next"


def test_of_another_machine_nothing_is_known(tmp_path):
    folder = ResultsFolder(tmp_path)
    here = Holder.me("first")._asdict()
    for boot in ("another", ""):  # the machine may have started again, or be another one of the same name
        elsewhere = {**here, "boot": boot, "host": "elsewhere", "born": "1"}
        folder.lock.write_text(json.dumps(elsewhere))
        with pytest.raises(StudyError, match=r"on elsewhere.*delete .*\.running\.json"):
            FolderLock(folder, "second").take()
        check_lock(folder, "first")  # a worker of the same command goes on where another one died
    folder.lock.write_text(json.dumps({**here, "host": "a container of this machine", "pid": 2}))
    check_lock(folder, "second")  # it would have locked the file


def test_without_locks_of_the_file_system_processes_are_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("mvpa_gamp.study.lock._is_locked", lambda number, alone: None)
    folder, here = ResultsFolder(tmp_path), Holder.me("first")
    folder.lock.write_text(json.dumps(here._asdict()))
    with pytest.raises(StudyError, match="another run"):
        check_lock(folder, "second")
    folder.lock.write_text(json.dumps(here._replace(born="1")._asdict()))  # a number used again
    check_lock(folder, "second")
    folder.lock.write_text(json.dumps(here._replace(born="1", space="pid:[1]")._asdict()))
    with pytest.raises(StudyError, match="another run"):  # the number means another process there
        check_lock(folder, "second")


class Kernel:
    """What Windows answers about processes: this one runs, 2 is a service, 3 has ended, others never were."""

    def __init__(self):
        self.OpenProcess = Mock(
            side_effect=lambda how, inherit, pid: pid if pid in (os.getpid(), 3) else None
        )
        self.asked = self.OpenProcess.call_args_list

    def GetLastError(self):
        return 5 if self.asked[-1].args[2] == 2 else 87

    def GetExitCodeProcess(self, handle, code):
        code._obj.value = 0 if handle.value == 3 else 259
        return 1

    def GetProcessTimes(self, handle, born, *others):
        born._obj.value = 1234
        return 1

    def CloseHandle(self, handle):
        assert handle.value


def test_on_windows_no_process_is_sent_a_signal_and_a_lock_is_closed_before_it_is_removed(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(module, "_WINDOWS", True)
    monkeypatch.setattr(module, "_is_locked", lambda number, alone: None)
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=Kernel()), raising=False)
    monkeypatch.setattr(os, "kill", None)  # Ctrl-C for the process and all that share its window
    steps, close, unlink = [], os.close, Path.unlink
    monkeypatch.setattr(os, "close", lambda number: steps.append("close") or close(number))
    monkeypatch.setattr(Path, "unlink", lambda path, **how: steps.append("unlink") or unlink(path, **how))
    folder = ResultsFolder(tmp_path)
    with FolderLock(folder, "first") as lock:
        lock.take()
        assert json.loads(folder.lock.read_text())["born"] == "1234"
        with pytest.raises(StudyError, match="another run"):
            check_lock(folder, "second")
    assert steps[-2:] == ["close", "unlink"] and not folder.lock.exists()
    assert [module._born(pid) for pid in (2, 3, 4)] == ["", None, None]


DAMAGED = {
    "huge": '{"pid": ' + "9" * 300 + "}",
    "large": " " * 20_000 + "{}",
    "text": "a note",
    "null": "null",
    "nested": "[" * 9_000,
    "of nobody": json.dumps({**Holder.me("x")._asdict(), "pid": "nobody"}),
    "of a pid beyond all": json.dumps({**Holder.me("x")._asdict(), "pid": 2**70}),
    "of an older version": json.dumps({"pid": 1, "host": "a", "born": "", "since": "", "owner": ""}),
}


@pytest.mark.parametrize("kind", [*DAMAGED, "pipe", "link", "folder"])
def test_a_damaged_lock_ends_in_a_sentence(tmp_path, kind):
    folder = ResultsFolder(tmp_path)
    if kind in DAMAGED:
        folder.lock.write_text(DAMAGED[kind])
    elif kind == "pipe":
        os.mkfifo(folder.lock)
    elif kind == "link":
        folder.lock.symlink_to(tmp_path / "elsewhere")
    else:
        folder.lock.mkdir()
    with pytest.raises(StudyError, match=r"\.running\.json: expected a lock.*delete it"):
        check_lock(folder, "next")
    with pytest.raises((StudyError, WriteError), match=r"\.running\.json"):
        FolderLock(folder, "next").take()
    assert os.path.lexists(folder.lock) and not (tmp_path / "elsewhere").exists()


_HOLD = """
import sys, time
from pathlib import Path
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.study.lock import FolderLock
with FolderLock(ResultsFolder(Path(sys.argv[1])), "first") as lock:
    lock.take()
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_process_of_another_container_holds_its_folder(tmp_path):
    """Process numbers are counted anew in a container, so that its number means nothing outside."""
    apart = ["unshare", "--user", "--map-root-user", "--pid", "--fork"]
    try:
        subprocess.run([*apart, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this system does not let tests make a space of process numbers (unshare)")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [*apart, sys.executable, "-c", _HOLD, str(tmp_path)]
    with subprocess.Popen(command, **pipes) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(StudyError, match="another run is writing there"):
            FolderLock(ResultsFolder(tmp_path), "second").take()
        other.stdin.close()
    with FolderLock(ResultsFolder(tmp_path), "second") as lock:
        lock.take()


def test_a_lock_cut_short_by_a_full_disk_holds_nothing(tmp_path):
    folder = ResultsFolder(tmp_path)
    folder.lock.write_text("")
    os.utime(folder.lock, (0, 0))
    with FolderLock(folder, "next") as lock:
        lock.take()


class FullDisk:
    """A disk with room for so many more files."""

    def __init__(self, room):
        self.room = room

    def __call__(self, source, target):
        self.room -= 1
        if self.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.rename(source, target)


@pytest.mark.parametrize("room", [0, 4, 12])
def test_a_full_disk_ends_in_a_sentence_and_can_be_resumed(finished, tmp_path, capsys, monkeypatch, room):
    copy = shutil.copytree(finished, tmp_path / "copy")
    next((copy / "work").glob("*.npz")).unlink()
    monkeypatch.setattr("mvpa_gamp.imaging.disk.os.replace", FullDisk(room))
    assert main(["--out", str(copy), "--resume", "--quiet"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len([line for line in said if "error: " in line]) == 1
    assert "cannot be written: the disk is full. Free some space, then try again" in said[-1]
    assert not [path for path in copy.rglob("*") if path.name.startswith((".writing-", ".running"))]
    monkeypatch.undo()
    assert main(["--out", str(copy), "--resume", "--quiet"]) == 0
    assert ResultsFolder(copy).manifest.read_bytes() == ResultsFolder(finished).manifest.read_bytes()


def test_an_empty_folder_makes_way_for_a_file_and_a_full_one_does_not(tmp_path):
    (tmp_path / "a.tsv").mkdir()
    write_atomic(tmp_path / "a.tsv", b"x")
    assert (tmp_path / "a.tsv").read_bytes() == b"x"
    (tmp_path / "b.tsv").mkdir()
    (tmp_path / "b.tsv" / "thesis.txt").write_text("mine")
    with pytest.raises(WriteError, match=r"b\.tsv cannot be written: a folder with files"):
        write_atomic(tmp_path / "b.tsv", b"x")
    with pytest.raises(WriteError, match=r"a\.tsv is a file, a folder is needed"):
        write_atomic(tmp_path / "a.tsv" / "c.tsv", b"x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tsv", "b.tsv"]
