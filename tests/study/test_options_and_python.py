"""Every design option on the phantom and on the real slice: the command's tables hold the numbers of Python.

A row of the table below is an option, what the command writes for it, and the Python call that a user would
make. Both are compared as the tables print them, to six digits: the arithmetic is the same.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import nibabel
import numpy as np
import pytest

from mvpa_gamp import GAMPDecoder
from mvpa_gamp.decoding import (
    FoldConfounds,
    NoiseWhitening,
    blocks_of_volumes,
    check_covariates,
    cross_decode,
    cross_permutation_test,
    cross_validate,
    fit_tasks,
    fold_balanced_accuracies,
    fold_errors,
    held_out_answers,
    make_crosses,
    make_tasks,
    session_crosses,
)
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.scores import fold_aucs
from mvpa_gamp.haxby import main
from mvpa_gamp.imaging.labels import read_labels
from mvpa_gamp.imaging.phantom import Phantom, phantom_images, phantom_labels
from mvpa_gamp.imaging.samples import Samples, load_samples
from mvpa_gamp.methods import METHODS
from mvpa_gamp.methods.fold_fits import with_class_weight
from mvpa_gamp.results.files import cell, read_tsv
from mvpa_gamp.study import run as study_run

pytestmark = pytest.mark.whole

GAMP = METHODS["gamp-bg-lr"]
CROSS, ONE_WAY, RUNS = "face:house>cat:chair", "face:house>>cat:chair", "0-2>>3-5"


class Data(NamedTuple):
    """A study in files, and its samples."""

    bold: Path
    labels: Path
    mask: Path
    covariates: Path  # of every sample
    samples: Samples

    @property
    def blocks(self) -> np.ndarray:
        return blocks_of_volumes(self.samples.conditions, self.samples.runs, self.samples.volumes)

    @property
    def confounds(self) -> FoldConfounds:
        return FoldConfounds(np.loadtxt(self.covariates, skiprows=1), ("rt", "age"))

    def options(self, *more: str) -> list[str]:
        return ["--bold", str(self.bold), "--labels", str(self.labels), "--mask", str(self.mask), *more]


def data_in(folder: Path, bold: Path, labels: Path, mask: Path) -> Data:
    """The study with covariates: one that follows the faces, one that follows nothing."""
    samples = load_samples(bold, labels, mask)
    values = np.random.default_rng(3).standard_normal((len(samples.runs), 2))
    values[:, 0] += samples.conditions == "face"
    np.savetxt(folder / "covariates.tsv", values, delimiter="\t", header="rt\tage", comments="")
    return Data(bold, labels, mask, folder / "covariates.tsv", samples)


@pytest.fixture(scope="module")
def real(real_data, tmp_path_factory) -> Data:
    home = real_data / "haxby_slice"
    if not home.is_dir():
        pytest.skip(f"real data not found: {home} is no folder (set MVPA_GAMP_DATA)")
    files = (home / name for name in ("bold.nii.gz", "labels.txt", "mask.nii.gz"))
    return data_in(tmp_path_factory.mktemp("slice"), *files)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Data:
    folder = tmp_path_factory.mktemp("phantom")
    spec = Phantom(shape=(9, 11, 9), n_runs=6, categories=("face", "house", "cat", "chair"))
    bold, mask, _, _ = phantom_images(spec)
    nibabel.save(bold, folder / "bold.nii.gz")
    nibabel.save(mask, folder / "mask.nii.gz")
    known = phantom_labels(spec)
    lines = [f"{a}\t{b}" for a, b in zip(known.conditions, known.runs, strict=True)]
    (folder / "labels.tsv").write_text("\n".join(["labels\tchunks", *lines]) + "\n")
    return data_in(folder, *(folder / name for name in ("bold.nii.gz", "labels.tsv", "mask.nii.gz")))


@pytest.fixture(autouse=True)
def _no_page(monkeypatch):
    """Drawing takes longer than computing, and is looked at elsewhere."""

    def write(root):
        (root / "index.html").write_text("not drawn")
        return root / "index.html"

    monkeypatch.setattr(study_run, "build_report", write)


# --- what the command tells


def summary(out: Path) -> list[tuple[str, ...]]:
    columns = ("comparison", "method", "error_percent", "balanced_accuracy_percent", "auc")
    rows = [row for row in read_tsv(out / "summary.tsv") if row["contrast"] != "average"]
    return [tuple(row[name] for name in columns) for row in rows]


def crosses(out: Path) -> list[tuple[str, ...]]:
    columns = ("cross", "accuracy_percent", "balanced_accuracy_percent", "auc", "p_value")
    (path,) = out.glob("sub-*/*_cross.tsv")
    return [tuple(row[name] for name in columns) for row in read_tsv(path)]


def classes(out: Path) -> dict[str, Any]:
    found = json.loads((out / "summary.json").read_text())["classes"]
    counts = [row["count"] for row in found["confusion"]]
    p = found.get("permutation", {}).get("pvalue")
    return {"folds": [cell(score) for score in found["fold_scores"]], "counts": counts, "p": cell(p)}


def covariates(out: Path) -> list[Any]:
    (path,) = out.glob("sub-*/*_foldconfounds.tsv")
    checks = [tuple(row[name] for name in ("covariate", "accuracy", "p_value")) for row in read_tsv(path)]
    return [*summary(out), *checks]


# --- what Python computes


def row(task: Any, name: str, fits: Any) -> tuple[str, ...]:
    said = held_out_answers([fits])
    areas = fold_aucs(said.decision[:, 0], task.y[said.rows] > 0, said.fold)
    shares = 100 * fold_errors(fits, task.y).mean(), 100 * fold_balanced_accuracies(fits, task.y).mean()
    return (task.label, name, *(cell(float(value)) for value in (*shares, areas.mean())))


def validated(
    data: Data, pairs: list[tuple[str, str]], methods: tuple[str, ...] = (GAMP.name,), weight: Any = None
) -> list[tuple[str, ...]]:
    X, runs, out = data.samples.X, data.samples.runs, []
    for task in make_tasks(data.samples.conditions, pairs):
        for name in methods:
            method = with_class_weight(METHODS[name], weight)
            out.append(row(task, name, cross_validate(method, X[task.rows], task.y, runs[task.rows])))
    return out


def crossed(data: Data, prepare: Callable[[Data], Any] = lambda data: None, sessions: bool = False) -> Any:
    samples, preparation = data.samples, prepare(data)
    found = make_crosses(samples.conditions, [ONE_WAY if preparation else CROSS])
    if sessions:
        found = session_crosses(make_tasks(samples.conditions, [("face", "house")]), [RUNS], samples.runs)
    out = []
    for each in cross_decode(GAMP, samples.X, found, samples.runs, scheme=Scheme(preparation=preparation)):
        how = Scheme(blocks=data.blocks, preparation=preparation)
        test = cross_permutation_test(GAMP, samples.X, each.cross, samples.runs, 4, how)
        numbers = 100 * each.accuracy, 100 * each.balanced_accuracy, each.auc, test.pvalue
        out.append((each.cross.label, *map(cell, numbers)))
    return out


def decoded(data: Data, n: int = 0, *chosen: str) -> dict[str, Any]:
    labels = read_labels(data.labels)
    ignore = [
        name for name in np.unique(labels.conditions) if name == "rest" or (chosen and name not in chosen)
    ]
    decoder = GAMPDecoder(GAMP.name, mask=data.mask, ignore=ignore, detrend=True)
    decoder.fit(str(data.bold), labels.conditions, groups=labels.runs)
    p = decoder.permutation_test(n).pvalue if n else None
    counts = decoder.confusion_.to_numpy().ravel().tolist()
    return {"folds": [cell(float(s)) for s in decoder.fold_scores_], "counts": counts, "p": cell(p)}


def without_covariates(data: Data) -> list[Any]:
    samples, confounds = data.samples, data.confounds
    tasks = make_tasks(samples.conditions, [("face", "house")])
    fits = fit_tasks([GAMP], samples.X, tasks, samples.runs, Scheme(preparation=confounds))
    checks = check_covariates(confounds.values, confounds.names, tasks, samples.runs, data.blocks)
    told = [(each.covariate, cell(each.accuracy), cell(each.p_value)) for each in checks]
    return [row(tasks[0], GAMP.name, fits[GAMP.name, tasks[0].name]), *told]


class Case(NamedTuple):
    options: tuple[str, ...]  # COVARIATES stands for the file of the study
    told: Callable[[Path], Any]
    python: Callable[[Data], Any]


BG, FACES = ("--methods", GAMP.name), ("--pairs", "face:house")
COVARIATES, FOUR = "COVARIATES", ("--permutations", "4")
DENSE = ("svm", "lda")
UNEQUAL = [("face+cat", "house")]
CASES = {
    "svm and lda": Case(
        ("--methods", *DENSE, *FACES), summary, lambda data: validated(data, [("face", "house")], DENSE)
    ),
    "groups": Case(
        (*BG, "--pairs", "face+cat:house", "f*:c*"),
        summary,
        lambda data: validated(data, [("face+cat", "house"), ("f*", "c*")]),
    ),
    "classes": Case(
        (*BG, *FOUR, "--classes", "face", "house", "cat"),
        classes,
        lambda data: decoded(data, 4, "face", "house", "cat"),
    ),
    "multiclass": Case((*BG, "--multiclass"), classes, decoded),
    "cross": Case((*BG, *FOUR, "--cross", CROSS), crosses, crossed),
    "cross-session": Case(
        (*BG, *FOUR, *FACES, "--cross-session", RUNS), crosses, lambda data: crossed(data, sessions=True)
    ),
    "cross, whitened": Case(
        (*BG, *FOUR, "--cross", ONE_WAY, "--whiten"),
        crosses,
        lambda data: crossed(data, lambda data: NoiseWhitening(data.blocks)),
    ),
    "cross, without covariates": Case(
        (*BG, *FOUR, "--cross", ONE_WAY, "--fold-confounds", COVARIATES),
        crosses,
        lambda data: crossed(data, lambda data: data.confounds),
    ),
    "class-weight": Case(
        ("--methods", GAMP.name, *DENSE, "--pairs", "face+cat:house", "--class-weight", "balanced"),
        summary,
        lambda data: validated(data, UNEQUAL, (GAMP.name, *DENSE), "balanced"),
    ),
    "fold-confounds": Case(
        (*BG, *FACES, "--fold-confounds", COVARIATES), covariates, without_covariates
    ),
}  # fmt: skip


@pytest.mark.parametrize("option", CASES)
def test_the_command_tells_the_numbers_of_python(option, data, tmp_path):
    agree(option, data, tmp_path)


@pytest.mark.parametrize("option", ["svm and lda", "groups", "cross-session", "fold-confounds"])
def test_so_it_does_on_real_volumes(option, real, tmp_path):
    agree(option, real, tmp_path)


def agree(option, data, tmp_path):
    """The command and Python, side by side."""
    case = CASES[option]
    given = [str(data.covariates) if word == COVARIATES else word for word in case.options]
    assert main([*data.options(*given), "--out", str(tmp_path / "out"), "--quiet"]) == 0
    told = case.told(tmp_path / "out")
    assert told and told == case.python(data)


def test_a_mask_on_another_grid_in_both(data, tmp_path):
    """Every voxel of the mask split into eight: resampled to the volumes it is the mask again."""
    image = nibabel.load(data.mask)
    affine = image.affine @ np.diag([0.5, 0.5, 0.5, 1.0])
    affine[:3, 3] = image.affine[:3, 3] - image.affine[:3, :3] @ np.full(3, 0.25)
    fine = np.kron(np.asarray(image.dataobj) > 0, np.ones((2, 2, 2))).astype(np.uint8)
    nibabel.save(nibabel.Nifti1Image(fine, affine), tmp_path / "fine.nii.gz")
    other = data._replace(mask=tmp_path / "fine.nii.gz")
    assert main([*other.options(*BG, *FACES), "--out", str(tmp_path / "out"), "--quiet"]) == 0
    resampled = load_samples(data.bold, data.labels, other.mask)
    np.testing.assert_array_equal(resampled.X, data.samples.X)
    assert any("nearest" in note for note in resampled.notes)
    assert summary(tmp_path / "out") == validated(data, [("face", "house")])


def test_a_run_given_twice_is_found_by_both_and_strict_stops_both(data, tmp_path, capsys):
    labels = read_labels(data.labels)
    image = nibabel.load(data.bold)
    volumes, shown = np.asarray(image.dataobj).copy(), labels.conditions.copy()
    first, last = (np.flatnonzero(labels.runs == run) for run in (labels.runs[0], labels.runs[-1]))
    volumes[..., last], shown[last] = volumes[..., first], shown[first]
    nibabel.save(nibabel.Nifti1Image(volumes, image.affine, image.header), tmp_path / "bold.nii.gz")
    lines = [f"{a}\t{b}" for a, b in zip(shown, labels.runs, strict=True)]
    (tmp_path / "labels.tsv").write_text("\n".join(["labels\tchunks", *lines]) + "\n")
    twice = data._replace(bold=tmp_path / "bold.nii.gz", labels=tmp_path / "labels.tsv")
    asked = [*twice.options("--methods", "onebit-cs", *FACES), "--out", str(tmp_path / "out")]
    assert main([*asked, "--strict"]) == 2 and not (tmp_path / "out").exists()
    assert "occur in more than one run" in capsys.readouterr().err
    assert main([*asked, "--quiet"]) == 0
    found = json.loads((tmp_path / "out" / "summary.json").read_text())["leakage"]["findings"]
    (count,) = [f["sentence"].split(" volumes ")[0] for f in found if f["check"] == "repeats"]
    decoder = GAMPDecoder(GAMP.name, mask=data.mask, ignore="rest", detrend=True, strict=True)
    given = str(twice.bold), shown
    with pytest.raises(ValueError, match=f"strict=True: {count} volumes occur in more than one group"):
        decoder.fit(*given, groups=labels.runs)
