"""Results folders that hold what somebody else put there: files, links, locks, notes, data, names of runs.

A run there must end with a sentence, exit code 2 and nothing changed, or with right results; files of others,
in the folder and outside of it, are never touched.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from mvpa_gamp.__main__ import main as bids_main
from mvpa_gamp.haxby import main as decode
from mvpa_gamp.results.files import read_tsv
from mvpa_gamp.study.lock import Holder

from .bids_files import write_tree
from .command_files import write_files
from .commands import Given, judged, run
from .folders import files_of
from .outcomes import ELSE, NAMED, RAW, RIGHT, Outcome

_PRECIOUS = b"somebody's thesis"
_OPTIONS = ("--resume", "--overwrite", "--reports-only")
_PLACES = ("logs/run.log", "logs", "figures", "summary.tsv", "summary.json", "config.toml", "work", "sub-own",
           "logs/manifest.tsv", "logs/written.jsonl", "index.html", "README.md")  # fmt: skip
_NAMES = ("thesis.txt", "sub-own/raw.txt", "sub-02/func/bold.nii", "figures/mine.png", "logs/notes.txt",
          "x/y/z", "work/mine_fits.npz", ".writing-mine", "group/mine.txt",
          "sub-own/.writing-mine")  # fmt: skip
# A process in a space of process numbers of its own, as a container is one, that holds a folder.
_HOLDER = """
import sys
from pathlib import Path
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.study.lock import FolderLock
with FolderLock(ResultsFolder(Path(sys.argv[1])), "other") as lock:
    lock.take()
    print("held", flush=True)
    sys.stdin.read()
"""
_APART = ("unshare", "--user", "--map-root-user", "--pid", "--fork")
Change = Callable[[Path, Path, np.random.Generator], None]


def _files(out: Path, outside: Path, rng: np.random.Generator) -> None:
    for name in rng.choice(_NAMES, size=3, replace=False):
        _write(out / str(name))


def _link(out: Path, outside: Path, rng: np.random.Generator) -> None:
    place = out / str(rng.choice(_PLACES))
    target = outside / place.name
    if rng.random() < 0.5 and place.exists():
        shutil.move(place, target)
    elif place.is_dir():
        shutil.rmtree(place)
        target.mkdir()
        _write(target / "mine")
    else:
        place.unlink(missing_ok=True)
        _write(target)
    place.symlink_to(target)


def _pipe(out: Path, outside: Path, rng: np.random.Generator) -> None:
    place = out / str(
        rng.choice(("logs/run.log", "summary.tsv", "sub-own/pipe", ".running.json", "config.toml"))
    )
    place.parent.mkdir(exist_ok=True)
    place.unlink(missing_ok=True)
    os.mkfifo(place)


def _manifest(out: Path, outside: Path, rng: np.random.Generator) -> None:
    target = outside / "listed"
    _write(target)
    place = str(rng.choice(["/dev/stdin", "/dev/zero", "../outside/listed", str(target), "a/../../x", "\0"]))
    with (out / "logs" / "manifest.tsv").open("a") as stream:
        stream.write(f"{place}\t{'0' * 64}\n")


def _record(out: Path, outside: Path, rng: np.random.Generator) -> None:
    _write(outside / "listed")
    digest = hashlib.sha256(_PRECIOUS).hexdigest()
    lines = [
        json.dumps([digest, place, ".writing-x"]) for place in ("../outside/listed", str(outside / "listed"))
    ]
    kind = str(rng.choice(["decode", "participants", "work", "other"]))
    head = json.dumps({"written_by": "mvpa_gamp", "kind": kind, "token": str(rng.choice(["x", ""]))})
    lines += [str(rng.choice(["[" * 5000, "null", "{}", '["a"', head, "\x00"])) for _ in range(2)]
    rng.shuffle(lines)
    with (out / "logs" / "written.jsonl").open("a") as stream:
        stream.write("\n" + "\n".join(lines))


def _work_note(out: Path, outside: Path, rng: np.random.Generator) -> None:
    for name in (".writing-mine", "deep/.writing-mine"):
        _write(outside / name)
    if rng.random() < 0.5:
        head = {"written_by": "mvpa_gamp", "kind": "work", "token": "of another study"}
        (outside / "logs").mkdir()
        (outside / "logs" / "written.jsonl").write_text(json.dumps(head))
    (out / "logs" / "work_dir.txt").write_text(str(rng.choice([str(outside), "/dev/null", "..", "\0", "/"])))


def _summary(out: Path, outside: Path, rng: np.random.Generator) -> None:
    path = out / "summary.json"
    content = json.loads(path.read_text())
    name = str(rng.choice(["subjects", "tasks", "methods", "maps", "cross", "classes", "regions", "data"]))
    odd = ["../../outside", "/etc", None, 3, [], {}, ["../outside"], [{"contrast": "../../outside/x"}]]
    content[name] = odd[rng.integers(len(odd))]
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_text(json.dumps(content))
    manifest = out / "logs" / "manifest.tsv"  # which tells of the summary as it is now
    manifest.write_text(manifest.read_text().replace(before, hashlib.sha256(path.read_bytes()).hexdigest()))


def _lock(out: Path, outside: Path, rng: np.random.Generator) -> None:
    mine = Holder.me("other")._asdict()
    kinds: list[str] = [
        "", " " * 20_000, "null", "a note", "[" * 5_000, '{"pid": ' + "9" * 400 + "}", "\x00",
        *(json.dumps(mine | odd) for odd in ({"pid": 2**80}, {"boot": "other"}, {"pid": -1}, {"pid": None})),
        json.dumps(mine | {"boot": "", "host": "elsewhere"}), json.dumps(mine), '{"pid": {"pid": 1}}',
    ]  # fmt: skip
    (out / ".running.json").write_text(str(kinds[rng.integers(len(kinds))]))


_CHANGES: dict[str, Change] = {
    "files of others": _files,
    "links": _link,
    "pipes": _pipe,
    "paths in the manifest": _manifest,
    "paths in the record": _record,
    "a note on stored fits": _work_note,
    "names in the summary": _summary,
    "locks": _lock,
}


def _write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_PRECIOUS)


def precious(place: Path) -> dict[str, bytes]:
    """The files of others below a folder."""
    found = {name: _plain(place / name) for name in files_of(place)}
    return {name: content for name, content in found.items() if content == _PRECIOUS}


def _plain(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _in_folder(finished: Path, files: list[str], rng: np.random.Generator) -> Outcome:
    """A finished folder with one or two of the changes, and a command on it."""
    with tempfile.TemporaryDirectory(prefix="faults-") as text:
        place = Path(text)
        out, outside = shutil.copytree(finished, place / "out"), place / "outside"
        outside.mkdir()
        kinds = [
            str(each)
            for each in rng.choice(list(_CHANGES), size=min(len(_CHANGES), rng.integers(1, 3)), replace=False)
        ]
        try:
            for kind in kinds:
                _CHANGES[kind](out, outside, rng)
        except OSError as error:  # two changes that do not go together
            kinds, _ = kinds[:1], error
        option = str(rng.choice(_OPTIONS))
        before = precious(place)
        given = ["--out", str(out), option, *(files if option == "--overwrite" else ())]
        verdict, said = judged(decode, Given(given, "", ""), out)
        if verdict != ELSE and (lost := [name for name in before if name not in precious(place)]):
            verdict, said = ELSE, f"files of others are gone or changed: {lost}"
        told = said.replace(text, "")
        return Outcome(f"`{option}`", tuple(kinds), verdict, f"{kinds}, {option}: {told}")


def _skipped(out: Path, outside: Path, rng: np.random.Generator) -> None:
    notes = ("[" * 9000, "null", "[]", "{}", '{"participant": 3, "reason": []}', '{"reason": "<script>"}')
    (out / "logs" / f"sub-{rng.integers(99)}_skipped.json").write_text(str(rng.choice(notes)))


def _of_participant(change: Change) -> Change:
    return lambda out, outside, rng: change(out / "sub-01", outside, rng)


# What may be wrong with the folder of a dataset's participants at the group level.
_GROUP_CHANGES: dict[str, Change] = {
    "files of others": _files,
    "links": _link,
    "pipes": _pipe,
    "paths in the record": _record,
    "locks": _lock,
    "notes on participants": _skipped,
    "paths in a participant's manifest": _of_participant(_manifest),
    "names in a participant's summary": _of_participant(_summary),
}


def _group(participants: Path, rng: np.random.Generator) -> Outcome:
    """The group level of participants of whom one is left out, or refused, or all is right."""
    with tempfile.TemporaryDirectory(prefix="faults-") as text:
        place = Path(text)
        out, outside = shutil.copytree(participants, place / "out"), place / "outside"
        outside.mkdir()
        kind = str(rng.choice(list(_GROUP_CHANGES)))
        _GROUP_CHANGES[kind](out, outside, rng)
        before, (code, said) = precious(place), run(bids_main, [str(place), str(out), "group"])
        told = f"{kind}, exit code {code}: {said[-400:].replace(text, '')}"
        sentences = sum(": error: " in line for line in said.splitlines())
        named = (code, sentences) == (2, 1) or (code == 1 and "is not part of the group" in said)
        raw = any(word in said for word in (*RAW, "Warning:"))
        if raw or not (code == 0 or named) or before != precious(place):
            return Outcome("group level", (kind,), ELSE, told)
        return Outcome("group level", (kind,), NAMED if code else RIGHT, told)


def _another_process(finished: Path, rng: np.random.Generator) -> Outcome:
    """A process of another container holds the folder, or has just been killed."""
    with tempfile.TemporaryDirectory(prefix="faults-") as place:
        out = shutil.copytree(finished, Path(place) / "out")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen([*_APART, sys.executable, "-c", _HOLDER, str(out)], **pipes) as other:  # type: ignore[call-overload]
            if other.stdout.readline() != b"held\n":
                return Outcome("two writers", ("no other container here",), NAMED, "unshare is not allowed")
            option = str(rng.choice(("--resume", "--reports-only")))
            verdict, said = judged(decode, Given(["--out", str(out), option], "", ""), out)
            ended = bool(rng.random() < 0.5)
            other.stdin.close()
        if verdict != NAMED or "another run" not in said:
            return Outcome(f"`{option}`", ("another container's lock",), ELSE, said)
        if ended:
            verdict, said = judged(decode, Given(["--out", str(out), option], "", ""), out)
        return Outcome(f"`{option}`", ("another container's lock",), verdict, said)


def _data_inside(rng: np.random.Generator) -> Outcome:
    """Data in the results folder, or a dataset that is given as one."""
    with tempfile.TemporaryDirectory(prefix="faults-") as text:
        place = Path(text)
        out = place / "out"
        home = out / str(rng.choice(["", "data", "sub-own/func", "figures", "work"]))
        files = {name: str(path) for name, path in write_files(home).items()}
        if rng.random() < 0.5:
            (out / "config.toml").write_text("[study]\nseed = 0\n")
        before = {name: (out / name).read_bytes() for name in files_of(out)}
        given = [
            *_own(files),
            "--out",
            str(out),
            *([str(rng.choice(_OPTIONS[:2]))] if rng.random() < 0.8 else ()),
        ]
        verdict, said = judged(decode, Given(given, "", ""), out)
        if {name: (out / name).read_bytes() for name in files_of(out)} != before or verdict != NAMED:
            verdict = ELSE
        return Outcome("`decode`", ("data in the results folder",), verdict, said)


def _run_names(rng: np.random.Generator) -> Outcome:
    """Names of runs that look alike as numbers; every one is a fold."""
    with tempfile.TemporaryDirectory(prefix="faults-") as text:
        place = Path(text)
        files = {name: str(path) for name, path in write_files(place).items()}
        table = read_tsv(Path(files["labels"]))
        column = next(name for name in table[0] if name in ("chunks", "run", "runs"))
        known = list(dict.fromkeys(row[column] for row in table))
        pool = ["1_1", "1_11", "11_1", "1", "01", "1.0", "1e0", "2", "02", "2.50", "inf", "nan", "-1", "+1",
                "0x1", "\u0661", "run-1", "run-01", "a", "B", "10"]  # fmt: skip
        names = dict(
            zip(known, (str(each) for each in rng.choice(pool, len(known), replace=False)), strict=True)
        )
        rows = ["\t".join(names[row[name]] if name == column else row[name] for name in row) for row in table]
        Path(files["labels"]).write_text("\n".join(["\t".join(table[0]), *rows]) + "\n")
        out = place / "out"
        verdict, said = judged(decode, Given([*_own(files), "--out", str(out)], "", ""), out)
        if verdict == RIGHT:
            shown = {row["run"] for path in out.rglob("*_predictions.tsv") for row in read_tsv(path)}
            folds = {len(read_tsv(path)) - 1 for path in out.rglob("*_folds.tsv")}
            if len(shown) != len(known) or folds != {len(known)}:
                verdict, said = ELSE, f"{len(known)} runs, shown are {shown}, folds {folds}"
        return Outcome("`decode`", ("names of runs",), verdict, f"{list(names.values())}: {said}")


def _own(files: dict[str, str]) -> list[str]:
    data = [word for name in ("bold", "labels", "mask") for word in (f"--{name}", files[name])]
    return [*data, "--methods", "svm", "--pairs", "face:house", "--participant-label", "own", "--quiet"]


def campaign(n: int, seed: int) -> Iterator[Outcome]:
    """n runs, most of them in a folder that was finished once, or at the group level of participants."""
    rng = np.random.default_rng([seed, 33])
    with tempfile.TemporaryDirectory(prefix="faults-") as place:
        files = _own({name: str(path) for name, path in write_files(Path(place) / "data").items()})
        finished = Path(place) / "finished"
        assert run(decode, [*files, "--out", str(finished)])[0] == 0
        dataset, participants = Path(place) / "ds", Path(place) / "participants"
        write_tree(dataset, False)
        asked = ["participant", "--methods", "svm", "--contrasts", "face:house"]
        assert run(bids_main, [str(dataset), str(participants), *asked])[0] == 0
        for _ in range(n):
            kind = rng.random()
            if kind < 0.5:
                yield _in_folder(finished, files, rng)
            elif kind < 0.68:
                yield _group(participants, rng)
            elif kind < 0.8:
                yield _data_inside(rng)
            elif kind < 0.95:
                yield _run_names(rng)
            else:
                yield _another_process(finished, rng)
