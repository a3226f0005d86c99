"""Odd input to the command: options and files that do not fit, as users give them by mistake.

Every run must end in one of two ways: one sentence on the terminal, exit code 2 and nothing written, or
finished results whose tables are finite and whose files are those of their manifest.
"""

import io
import math
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mvpa_gamp.haxby import main as decode
from mvpa_gamp.results.files import read_tsv
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.verify import manifest_digests

from .calls import TooLong, limited
from .command_files import DAMAGES, write_files
from .outcomes import ELSE, NAMED, RAW, RIGHT, Outcome

_NUMBERS = ("-1", "0", "1.5", "nan", "inf", "1e9", "1e-300", "", "abc", "99999999999999999999", "0x10")
# Options, and what somebody may write behind them.
_OPTIONS: dict[str, tuple[str, ...]] = {
    "--lag-trs": ("1", "2", "500", *_NUMBERS),
    "--smoothing-fwhm": ("3", *_NUMBERS),
    "--high-pass": ("0.01", "9", *_NUMBERS),
    "--t-r": ("2", *_NUMBERS),
    "--seed": ("7", *_NUMBERS),
    "--permutations": ("3", "1", "-1", "0", "abc", "nan", ""),
    "--fdr": ("-1", "0", "1", "2", "nan", "abc", ""),
    "--pairs": (
        "face", "face:", ":", "face:face", "face:house:cat", "face:zebra", "all", "", "*:*", "face+cat:house",
        "face+house:house", "fa*:hou*", "rest:face", "face:house face:house", "FACE:house", "z*:face",
    ),
    "--methods": ("lda", "svm svm", "magic", "", "gamp-bg-lr,svm", "all", "GAMP-BG-LR", "svm gamp-bl-lr"),
    "--classes": ("face house", "face", "face house cat", "zebra face", "all", "", "f* house", "face face"),
    "--cross": ("face:house>face:cat", "face:house", ">", "face:house>>cat:house", "a>b>c", ""),
    "--cross-session": ("0-1>2-3", "0>>1-3", "1", "9>8", "0-1>1-2", ">", ""),
    "--class-weight": ("balanced", "equal", "1", ""),
    "--participant-label": (
        "01", "sub-01", "../x", "", "a b", "phantom", "PHANTOM", "x" * 300, "\N{DEGREE SIGN}",
    ),
    "--n-jobs": ("0", "-1", "abc", "1.5", ""),
    "--dask": ("here", "local:0", "local:x", "", "tcp://"),
    "--config": ("nowhere.toml", "", "."),
    "--mask": ("vt", "nowhere.nii", ""),
    "--bold": ("nowhere.nii", "", ".", "nowhere-*.nii"),
    "--labels": ("nowhere.tsv", "", "."),
    "--confounds": ("nowhere.tsv", "", "."),
    "--fold-confounds": ("nowhere.tsv", "", ".", "{participant}.tsv", "{x}.tsv"),
    "--atlas": ("nowhere.nii", "", "moon", "phantom"),
    "--phantom-shape": ("9 9 9", "1 1 1", "0 0 0", "a b c", "9 9"),
}  # fmt: skip
_FLAGS = (
    "--whiten", "--strict", "--by-region", "--learning-curve", "--max-inclusion", "--fold-maps",
    "--multiclass", "--resume", "--overwrite", "--reports-only", "--phantom", "--no-standardize",
    "--no-detrend", "--verbose", "--fetch-all", "--quiet",
)  # fmt: skip
_CONFIGS = (
    "[study\n", "[study]\nsede = 1\n", '[study]\nseed = "one"\n', "[other]\n", "", "[study]\nseed = 1.5\n",
    "[study]\npairs = 3\n", '[study]\npairs = "face:house"\n', "[study]\nmethods = []\n", "seed = 1\n",
    "[processing]\nlag_trs = true\n", "[processing]\nt_r = [2]\n", "[study]\nseed = 1\nseed = 2\n", "\x00",
    "[inference]\npermutations = -3\n", "[processing]\nsmoothing_fwhm = nan\n", '[data]\nmask = ["a", 1]\n',
)  # fmt: skip


class Given(NamedTuple):
    """A command line, and in words what is odd about it."""

    options: list[str]
    kind: str
    story: str


def draw(folder: Path, rng: np.random.Generator) -> Given:
    """A command line on files of its own in ``folder``, of which one thing or two are odd."""
    files = {name: str(path) for name, path in write_files(folder).items()}
    options = {"--bold": [files["bold"]], "--labels": [files["labels"]], "--mask": [files["mask"]]}
    options |= {"--methods": [str(rng.choice(["svm", "gamp-bg-lr"]))], "--pairs": ["face:house"]}
    options |= {"--participant-label": ["own"], "--out": [str(folder / "out")]}
    kind = str(rng.choice(["options", "flags", "two options", "config", *DAMAGES]))
    if kind in DAMAGES:
        if kind in ("confounds", "atlas"):
            options[f"--{kind}"] = [files[kind]]
        how = str(rng.choice(list(DAMAGES[kind])))
        DAMAGES[kind][how](Path(files[kind]), rng)
        return Given(_line(options), f"file of {kind}", how)
    said = []
    if kind == "config":
        text = _CONFIGS[rng.integers(len(_CONFIGS))]
        (folder / "config.toml").write_text(text)
        options["--config"] = [str(folder / "config.toml")]
        said.append(repr(text))
    if kind == "flags":
        said += [str(each) for each in rng.choice(_FLAGS, size=rng.integers(1, 3), replace=False)]
        options |= {each: [] for each in said}
    for _ in range({"options": 1, "two options": 2}.get(kind, 0)):
        name = str(rng.choice(list(_OPTIONS)))
        value = str(rng.choice(_OPTIONS[name]))
        options[name] = [value] if name in ("--participant-label",) or not value else value.split(" ")
        said.append(f"{name} {value!r}")
    return Given(_line(options), kind, ", ".join(said))


def _line(options: dict[str, list[str]]) -> list[str]:
    return [word for name, values in options.items() for word in (name, *values)]


def run(options: list[str]) -> tuple[int, str]:
    """The exit code, and what the terminal showed of errors and warnings."""
    told = io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(told):
        warnings.simplefilter("always")
        try:
            code = decode(options)
        except SystemExit as error:  # argparse, which writes how the command is used and a sentence
            code = int(error.code or 0)
    return code, told.getvalue()


def judged(given: Given, folder: Path) -> tuple[str, str]:
    """Run a command line and say how it ended."""
    out = folder / "out"
    try:
        with limited(60):
            code, said = run(given.options)
    except (Exception, TooLong) as error:
        return ELSE, f"{type(error).__name__}: {error}"
    if raw := [word for word in (*RAW, "Warning:") if word in said]:
        return ELSE, f"the words {raw} came through: {said[-400:]}"
    if code == 0:
        return (ELSE, wrong) if (wrong := _not_right(out)) else (RIGHT, "")
    if code != 2:
        return ELSE, f"exit code {code}: {said[-400:]}"
    errors = [line for line in said.splitlines() if ": error: " in line]
    if len(errors) != 1:
        return ELSE, f"{len(errors)} sentences: {said[-400:]}"
    return (ELSE, "something was written") if out.exists() else (NAMED, errors[0])


def _not_right(out: Path) -> str:
    """What is not right of finished results."""
    folder = ResultsFolder(out)
    if not folder.manifest.is_file():
        return "" if not out.exists() else "no manifest"
    if missing := [name for name in manifest_digests(folder) if not (out / name).is_file()]:
        return f"missing: {missing}"
    errors = [float(row["error_percent"]) for row in read_tsv(folder.summary)]
    odd = [each for each in errors if not (math.isfinite(each) and 0 <= each <= 100)]
    return f"error rates of {odd} %" if odd else "" if folder.page.is_file() else "no page"


def campaign(n: int, seed: int) -> Iterator[Outcome]:
    """n command lines, judged."""
    for number in range(n):
        place = Path(tempfile.mkdtemp(prefix="faults-"))
        given = draw(place, np.random.default_rng([seed, number]))
        verdict, said = judged(given, place)
        shutil.rmtree(place)
        said = said.replace(str(place), "")
        yield Outcome("haxby", (given.kind,), verdict, f"case {seed}, {number}: {given.story}: {said}")
