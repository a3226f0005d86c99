"""Odd input to the command: options and files that do not fit, as users give them by mistake.

Every run must end in one of two ways: one sentence on the terminal, exit code 2 and nothing written, or
finished results whose tables follow from one another and whose files are those of their manifest.
"""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mvpa_gamp.haxby import main as decode
from mvpa_gamp.results.names import ResultsFolder

from .command_files import DAMAGES, write_files, write_maps
from .commands import Given, judged, line, run
from .outcomes import ELSE, RIGHT, Outcome

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


# Parts of a study that go together or do not: some of them at once.
_PARTS: tuple[dict[str, list[str]], ...] = (
    {"--classes": ["face", "house", "cat"]}, {"--multiclass": []}, {"--cross": ["face:house>cat:house"]},
    {"--cross": ["house:cat>>face:cat"]}, {"--cross": ["face:house>face:cat"]},
    {"--cross-session": ["0-1>2-3"]}, {"--by-region": []}, {"--permutations": ["3"]}, {"--whiten": []},
    {"--fdr": ["0.05"]}, {"--learning-curve": []}, {"--max-inclusion": []}, {"--fold-maps": []},
    {"--class-weight": ["balanced"]}, {"--pairs": ["house:face", "face+cat:house"]}, {"--pairs": ["all"]},
    {"--methods": ["gamp-sbg-lr", "lda"]}, {"--methods": ["onebit-cs", "svm"]}, {"--strict": []},
    {"--methods": ["gamp-l1-lr", "l1-lr-cv"]}, {"--lag-trs": ["2"]}, {"--smoothing-fwhm": ["5"]},
    {"--high-pass": ["0.01"]}, {"--no-standardize": []}, {"--seed": ["7"]},
)  # fmt: skip
# Maps of participants: options that go with them, or do not.
_OF_MAPS: dict[str, tuple[str, ...]] = {
    "--scaling": ("none", "centre", "zscore", "", "full"),
    "--folds": ("2", "3", "participant", "site", "1", "-1", "99", "", "nothing", "condition"),
    "--zero-voxels": ("drop", "keep", "", "some"),
    "--covariates": ("rating", "site", "rating site", "condition", "nothing", ""),
    "--target": ("rating", "site", "condition", "participant", "nothing", ""),
    "--permutations": ("3", "0", "-1"), "--methods": ("vamp-bg", "gamp-sbg-lr lda", "ridge", "magic"),
    "--pairs": ("face:house", "all", "face+cat:house", "face:zebra", ""), "--multiclass": ("",),
    "--cross": ("face:house>cat:house",), "--labels": ("maps.tsv", ""), "--participant-label": ("p1",),
    "--whiten": ("",), "--fold-confounds": ("covariates.tsv",), "--by-region": ("",), "--strict": ("",),
    "--learning-curve": ("",), "--lag-trs": ("2",), "--detrend": ("",), "--standardize": ("",),
}  # fmt: skip
_ALWAYS = ("--bold", "--labels", "--mask", "--participant-label", "--out")
_WORDS = {
    "bold": "BOLD file", "labels": "label file", "atlas-labels": "table of an atlas",
    "fold-confounds": "covariates file", "parts": "parts of a study together",
    "maps": "table of maps", "map": "maps of participants", "options of maps": "options of maps",
}  # fmt: skip
_FILES = ("confounds", "atlas", "fold-confounds")  # that a study may have


def draw(folder: Path, rng: np.random.Generator) -> Given:
    """A command line on files of its own in ``folder``, of which one thing or two are odd."""
    files = {name: str(path) for name, path in write_files(folder).items()}
    options = {"--bold": [files["bold"]], "--labels": [files["labels"]], "--mask": [files["mask"]]}
    options |= {"--methods": [str(rng.choice(["svm", "gamp-bg-lr"]))], "--pairs": ["face:house"]}
    options |= {"--participant-label": ["own"], "--out": [str(folder / "out")]}
    kinds = ["options", "flags", "two options", "config", "parts", "options of maps", *DAMAGES]
    kind = str(rng.choice(kinds))
    if kind in ("options of maps", "maps", "map"):
        return _draw_maps(folder, kind, rng)
    if kind in DAMAGES:
        if kind in _FILES:
            options[f"--{kind}"] = [files[kind]]
        if kind == "atlas-labels":
            options |= {"--atlas": [files["atlas"]], "--atlas-labels": [files[kind]]}
        how = str(rng.choice(list(DAMAGES[kind])))
        DAMAGES[kind][how](Path(files[kind]), rng)
        return Given(line(options), _WORDS.get(kind, f"{kind} file"), how)
    said = []
    if kind == "config":
        text = _CONFIGS[rng.integers(len(_CONFIGS))]
        (folder / "config.toml").write_text(text)
        options["--config"] = [str(folder / "config.toml")]
        said.append(repr(text))
    if kind == "parts":
        for k in rng.choice(len(_PARTS), size=rng.integers(2, 5), replace=False):
            options |= _PARTS[k]
        options |= {f"--{name}": [files[name]] for name in _FILES if rng.random() < 0.4}
        said.append(" ".join(line({name: values for name, values in options.items() if name not in _ALWAYS})))
    if kind == "flags":
        said += [str(each) for each in rng.choice(_FLAGS, size=rng.integers(1, 3), replace=False)]
        options |= {each: [] for each in said}
    for _ in range({"options": 1, "two options": 2}.get(kind, 0)):
        name = str(rng.choice(list(_OPTIONS)))
        value = str(rng.choice(_OPTIONS[name]))
        options[name] = [value] if name in ("--participant-label",) or not value else value.split(" ")
        said.append(f"{name} {value!r}")
    return Given(line(options), _WORDS.get(kind, kind), ", ".join(said))


def _draw_maps(folder: Path, kind: str, rng: np.random.Generator) -> Given:
    """Maps of participants whose table, images or options are odd."""
    files = write_maps(folder)
    options = {"--maps": [str(files["maps"])], "--methods": ["svm"], "--out": [str(folder / "out")]}
    said = []
    if kind in DAMAGES:
        said.append(str(rng.choice(list(DAMAGES[kind]))))
        DAMAGES[kind][said[0]](files[kind], rng)
    names = list(_OF_MAPS) if kind not in DAMAGES else ["--scaling", "--target", "--folds"]
    for name in rng.choice(names, size=rng.integers(kind not in DAMAGES, 3), replace=False):
        value = str(rng.choice(_OF_MAPS[str(name)]))
        options[str(name)] = [str(folder / value)] if value.endswith(".tsv") else value.split()
        if name == "--target":
            options |= {"--methods": [str(rng.choice(["ridge", "vamp-bg-reg", "svm"]))]}
        said.append(f"{name} {value!r}")
    return Given(line(options), _WORDS[kind], ", ".join(said))


def resumed(given: Given, place: Path, rng: np.random.Generator) -> tuple[Given, str, str]:
    """A finished study continued with another option: how it ended, compared with a run from the start."""
    part = line(_PARTS[rng.integers(len(_PARTS))])
    options = [*given.options, *part]
    more = Given(
        [*options, "--resume"], "resumed with another option", f"{given.story}, then {' '.join(part)}"
    )
    verdict, said = judged(decode, more, place / "out")
    if verdict == RIGHT:
        run(decode, [*options, "--out", str(place / "anew")])
        both = [ResultsFolder(place / name).manifest.read_bytes() for name in ("out", "anew")]
        verdict, said = (RIGHT, "") if both[0] == both[1] else (ELSE, "not as a run from the start")
    return more, verdict, said


def campaign(n: int, seed: int) -> Iterator[Outcome]:
    """n command lines, judged; some finished studies are continued with another option."""
    for number in range(n):
        place = Path(tempfile.mkdtemp(prefix="faults-"))
        rng = np.random.default_rng([seed, number])
        given = draw(place, rng)
        verdict, said = judged(decode, given, place / "out")
        if verdict == RIGHT and given.kind == _WORDS["parts"] and rng.random() < 0.5:
            given, verdict, said = resumed(given, place, rng)
        shutil.rmtree(place)
        said = said.replace(str(place), "")
        yield Outcome("`decode`", (given.kind,), verdict, f"case {seed}, {number}: {given.story}: {said}")
