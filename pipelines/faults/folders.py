"""Damage the files of a finished results folder, one way after the other, and see what the command says.

A fault is a file of which a byte is flipped, that is cut, emptied or replaced by a folder. Every run on a
damaged copy must end in one of two ways: with a sentence that names the file and says what to do, or with
results that are right to the last byte.
"""

import io
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mvpa_gamp.haxby import main as decode
from mvpa_gamp.results.files import read_tsv
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.reader import manifest_digests

from .commands import check_stopped
from .outcomes import ELSE, NAMED, RAW, RIGHT, Outcome

HOWS = ("flipped", "cut", "emptied", "folder", "full folder")
COMMANDS = ("--resume", "--reports-only")


class Fault(NamedTuple):
    """A file, by its path in the folder, and what happens to it."""

    path: str
    how: str


_DESIGNS = ("--classes", "face", "house", "cat", "--cross", "face:house>>cat:chair", "--atlas", "phantom",
            "--by-region")  # fmt: skip


def study(out: Path, designs: bool = False) -> Path:
    """A small finished study with maps, tables and permutations; or with classes, a cross and regions."""
    options = ["--phantom", "--phantom-shape", "9", "11", "9", "--pairs", "face:house", "--permutations", "5"]
    options += _DESIGNS if designs else ()
    assert decode([*options, "--methods", "gamp-bg-lr", "--out", str(out), "--quiet"]) == 0
    return out


def files_of(folder: Path) -> list[str]:
    """Every file below a folder, by its path in it."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def draw_faults(names: Sequence[str], n: int, rng: np.random.Generator) -> list[Fault]:
    """n faults; every kind of damage, and every ending of a file, has the same chance."""
    endings = sorted({name.rsplit(".", 1)[-1] for name in names})
    by_ending = {each: [name for name in names if name.endswith(f".{each}")] for each in endings}
    return [
        Fault(str(rng.choice(by_ending[str(rng.choice(endings))])), str(rng.choice(HOWS))) for _ in range(n)
    ]


def damage(folder: Path, fault: Fault, rng: np.random.Generator) -> None:
    """Do to a file what the fault says."""
    path = folder / fault.path
    content = bytearray(path.read_bytes())
    if "folder" in fault.how:
        path.unlink()
        path.mkdir()
        if fault.how == "full folder":
            (path / "somebody's.txt").write_text("not ours")
        return
    if fault.how == "flipped" and content:
        content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    elif fault.how == "cut" and content:
        content = content[: rng.integers(len(content))]
    elif fault.how == "emptied":
        content = bytearray()
    path.write_bytes(content)


def try_faults(finished: Path, command: str, faults: Sequence[Fault], rng: np.random.Generator) -> Outcome:
    """Run the command on a damaged copy of a finished folder, and judge how it ended."""
    with tempfile.TemporaryDirectory(prefix="faults-") as place:
        copy = shutil.copytree(finished, Path(place) / "copy")
        for fault in faults:
            damage(copy, fault, rng)
        before = {name: (copy / name).read_bytes() for name in files_of(copy)}
        told = io.StringIO()
        with redirect_stdout(io.StringIO()), redirect_stderr(told):
            code = decode(["--out", str(copy), command])
        check_stopped(code)
        said = told.getvalue().replace(place, "")
        wrong = _wrong(finished, copy, command, faults, before, code, said)
    verdict = ELSE if wrong else RIGHT if code == 0 else NAMED
    kinds = tuple(fault.how for fault in faults)
    return Outcome(f"`{command}`", kinds, verdict, f"{list(faults)}, exit code {code}: {wrong} {said}")


def _wrong(
    finished: Path, copy: Path, command: str, faults: Sequence[Fault], before: dict[str, bytes], code: int,
    said: str,
) -> str:  # fmt: skip
    """What is not as it should be; empty if nothing is."""
    if raw := [word for word in RAW if word in said]:
        return f"the words {raw} came through;"
    if left := [name for name in files_of(copy) if ".writing-" in name or ".running" in name]:
        return f"left behind: {left};"
    if code == 0:
        return _not_right(finished, copy, command, faults)
    if not any(fault.path in said for fault in faults):
        return "no file is named;"
    if not any(word in said for word in ("--resume", "Move that", "--config", "Give another folder")):
        return "nothing says what to do;"
    if code == 2 and {name: (copy / name).read_bytes() for name in files_of(copy)} != before:
        return "files were changed although the run was refused;"
    return ""


def _not_right(finished: Path, copy: Path, command: str, faults: Sequence[Fault]) -> str:
    """What differs from the unbroken run, of a run that ended well."""
    folder = ResultsFolder(copy)
    damaged = {fault.path for fault in faults}
    if folder.manifest.read_bytes() != ResultsFolder(finished).manifest.read_bytes():
        return "another manifest;"
    told = damaged & {"dataset_description.json"} if command == "--reports-only" else set()  # may be edited
    listed = [name for name in manifest_digests(ResultsFolder(finished)) if name not in told]
    if other := [name for name in listed if (copy / name).read_bytes() != (finished / name).read_bytes()]:
        return f"accepted although wrong: {other};"
    timed = command == "--resume" and any(name.startswith("work/") for name in damaged)
    listed_anew = "logs/run.log" in damaged and not folder.log.is_file()  # the page lists the files there are
    if (
        not timed
        and not listed_anew
        and "timings.tsv" not in damaged
        and folder.page.read_bytes() != _page(finished)
    ):
        return "another page;"
    cells = [{**row, "seconds": ""} for row in read_tsv(folder.timings)]
    if cells != [{**row, "seconds": ""} for row in read_tsv(ResultsFolder(finished).timings)]:
        return "run times of other cells;"
    return ""


def _page(finished: Path) -> bytes:
    return ResultsFolder(finished).page.read_bytes()


def one_by_one(finished: Path, n: int, seed: int) -> Iterator[Outcome]:
    """n faults, each in a run of its own, half of them resumed."""
    rng = np.random.default_rng(seed)
    for number, fault in enumerate(draw_faults(files_of(finished), n, rng)):
        yield try_faults(finished, COMMANDS[number % 2], [fault], rng)


def campaign(n: int, seed: int) -> Iterator[Outcome]:
    """n faults to a study made for them; of odd seeds one with classes, a cross and regions."""
    with tempfile.TemporaryDirectory(prefix="faults-") as place:
        yield from one_by_one(study(Path(place) / "finished", designs=bool(seed % 2)), n, seed)


def quick(finished: Path, n: int, seed: int) -> Iterator[Outcome]:
    """n faults in seconds: refusals one by one, and what --resume repairs many at a time."""
    rng = np.random.default_rng(seed)
    names = files_of(finished)
    listed = [name for name in names if name in manifest_digests(ResultsFolder(finished))]
    asked = [name for name in listed if name != "dataset_description.json"]
    for fault in draw_faults(asked, n * 3 // 5, rng):  # the page cannot be drawn from any of these
        yield try_faults(finished, "--reports-only", [fault], rng)
    for fault in draw_faults(["config.toml"], n // 10, rng):
        yield try_faults(finished, "--resume", [fault], rng)
    healing = [name for name in names if name not in ("config.toml", "logs/run.log")]
    faults = [each for each in draw_faults(healing, n, rng) if each.how != "full folder"]
    chosen = list({fault.path: fault for fault in faults}.values())[: n * 3 // 10]
    for part in (chosen[0::3], chosen[1::3], chosen[2::3]):
        yield try_faults(finished, "--resume", part, rng)
