"""Odd input to the command for BIDS datasets: options and files of a dataset that do not fit.

Ends as for the other command; a participant that cannot be analysed may also be left out with a sentence.
"""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mvpa_gamp.__main__ import main

from .bids_files import DAMAGES, SPACE, write_tree
from .commands import Given, judged, line
from .outcomes import Outcome

_NUMBERS = ("-1", "0", "1.5", "nan", "inf", "1e9", "1e-300", "", "abc", "99999999999999999999")
_OPTIONS: dict[str, tuple[str, ...]] = {
    "--task": ("objects", "faces", "", "objects faces", "*", "task-objects"),
    "--session-label": ("01", "", "ses-01", "*"),
    "--run-label": ("1 2", "1", "9", "", "01 02", "run-1", "abc", "-1"),
    "--space": (SPACE, f"{SPACE}:res-2", "fsaverage5", "fsLR", "T1w", "", "none", "fsnative"),
    "--derivatives": ("none", "nowhere", "", "."),
    "--mask": ("nowhere.nii", "", "."),
    "--samples": ("tr", "block", "trial", "betas", "volume", ""),
    "--trial-model": ("lss", "lsa", "both"),
    "--hrf-model": ("spm", "glover", "fir", "", "glover + derivative"),
    "--drift-model": ("none", "polynomial", "slow"),
    "--cv": ("run", "session", "fold"),
    "--lag-trs": ("0", "2", "500", *_NUMBERS),
    "--confounds": (
        "none", "motion6", "motion24", "trans_x rot_y", "motion_outlier*", "none motion6", "csf", "",
    ),
    "--confounds-strategy": ("simple", "scrubbing", "compcor", "ica_aroma", "all"),
    "--t-r": ("2", "2.5", *_NUMBERS),
    "--high-pass": ("0.01", "9", *_NUMBERS),
    "--smoothing-fwhm": ("3", *_NUMBERS),
    "--betas": ("nowhere", "", "."),
    "--participant-label": ("01", "01 02", "sub-02", "03", "", "*", "../01"),
    "--contrasts": ("face:house", "face:zebra", "all", "face+cat:house", "f*:house", "", "Face:House"),
    "--methods": ("svm", "gamp-sbg-lr", "lda onebit-cs", "magic", ""),
    "--fold-confounds": ("nowhere.tsv", "{participant}.tsv", ""),
    "--surface-mesh": ("nowhere.gii nowhere.gii", "one.gii"),
    "--n-jobs": ("0", "abc", "1"),
    "--alpha": ("0.05", *_NUMBERS),
    "--permutations": ("3", "0", "-1", "abc"),
    "--class-weight": ("balanced", "equal"),
}  # fmt: skip
_FLAGS = (
    "--whiten", "--strict", "--by-region", "--learning-curve", "--max-inclusion", "--fold-maps",
    "--multiclass", "--resume", "--overwrite", "--reports-only", "--no-standardize", "--no-detrend",
    "--verbose", "--quiet",
)  # fmt: skip
_PARTS: tuple[dict[str, list[str]], ...] = (
    {"--samples": ["block"]}, {"--samples": ["trial"]}, {"--samples": ["trial"], "--trial-model": ["lsa"]},
    {"--samples": ["trial"], "--no-standardize": []}, {"--confounds": ["motion_outlier*", "trans_x"]},
    {"--whiten": []}, {"--classes": ["face", "house", "cat"]}, {"--lag-trs": ["1"]},
    {"--cross": ["face:house>cat:house"]}, {"--permutations": ["3"]}, {"--methods": ["gamp-bg-lr", "lda"]},
    {"--run-label": ["1", "2"]}, {"--confounds-strategy": ["scrubbing"]}, {"--learning-curve": []},
    {"--class-weight": ["balanced"]}, {"--contrasts": ["face+cat:house"]}, {"--high-pass": ["0.02"]},
)  # fmt: skip
_FILTERS = (
    '{"bold": {"run": 1}}', '{"bold": {"run": ["1", "2"]}}', "{}", "[]", '{"bold": 3}',
    '{"bold": {"echo": null}}',
    '{"bold": {"color": "red"}}', '{"bold": {"session": "01"}}', "{",
    '{"t1w": {"acq": "x"}}', '{"bold": {"run": 1.5}}',
)  # fmt: skip
_WORDS = {
    "bold": "BOLD file", "raw": "raw BOLD file", "description": "description of the dataset",
    "sidecar": "sidecar", "parts": "parts of a study together",
}  # fmt: skip


def draw(folder: Path, rng: np.random.Generator) -> Given:
    """A command line on a dataset of its own in ``folder``, of which something is odd."""
    kind = str(rng.choice(["options", "flags", "two options", "filter file", "parts", *DAMAGES]))
    surfaces = kind in ("surface", "mesh") or (kind not in ("bold", "mask", "raw") and rng.random() < 0.1)
    files = write_tree(folder / "ds", surfaces)
    options: dict[str, list[str]] = {"--methods": ["svm"], "--contrasts": ["face:house"]}
    if surfaces:
        options |= {"--space": ["fsnative"], "--surface-mesh": [str(path) for path in files["mesh"]]}
    said = []
    if kind in DAMAGES:
        said.append(_damage(kind, files, rng))
        if kind == "raw":
            options |= {"--derivatives": ["none"], "--mask": [str(files["brain"][0])]}
    if kind == "filter file":
        text = str(rng.choice(_FILTERS))
        (folder / "filter.json").write_text(text)
        options["--bids-filter-file"] = [str(folder / "filter.json")]
        said.append(text)
    if kind == "parts":
        for k in rng.choice(len(_PARTS), size=rng.integers(1, 4), replace=False):
            options |= _PARTS[k]
        said.append(" ".join(line(options)))
    if kind == "flags":
        said += [str(each) for each in rng.choice(_FLAGS, size=rng.integers(1, 3), replace=False)]
        options |= {each: [] for each in said}
    for _ in range({"options": 1, "two options": 2}.get(kind, 0)):
        name = str(rng.choice(list(_OPTIONS)))
        value = str(rng.choice(_OPTIONS[name]))
        options[name] = value.split(" ") if value else [""]
        said.append(f"{name} {value!r}")
    level = "group" if rng.random() < 0.03 else "participant"
    words = [str(folder / "ds"), str(folder / "out"), level, *line(options)]
    kind = _WORDS.get(kind, f"{kind} file" if kind in DAMAGES else kind)
    return Given(words, kind, json.dumps([surfaces, *said]))


def _damage(kind: str, files: dict[str, list[Path]], rng: np.random.Generator) -> str:
    """Damage one file of a kind, or all of them."""
    chosen = files.get(kind, [])
    how = str(rng.choice(list(DAMAGES[kind])))
    several = bool(rng.random() < 0.3)
    for path in chosen if several else [chosen[rng.integers(len(chosen))]]:
        DAMAGES[kind][how](path, rng)
    return f"{how}, {'all files' if several else 'one file'}"


def campaign(n: int, seed: int) -> Iterator[Outcome]:
    """n command lines, judged."""
    for number in range(n):
        place = Path(tempfile.mkdtemp(prefix="faults-"))
        given = draw(place, np.random.default_rng([seed, number]))
        verdict, said = judged(main, given, place / "out")
        shutil.rmtree(place)
        said = said.replace(str(place), "")
        yield Outcome("BIDS command", (given.kind,), verdict, f"case {seed}, {number}: {given.story}: {said}")
