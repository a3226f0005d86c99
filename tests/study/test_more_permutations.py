"""Permutations added to a finished run: only new ones are fitted, and all are those of a single run."""

from types import SimpleNamespace

import nibabel
import numpy as np
import pytest

from mvpa_gamp.decoding import permutation
from mvpa_gamp.decoding.exchange import permuted_labels
from mvpa_gamp.haxby import main
from mvpa_gamp.methods.gamp import GampMethod
from mvpa_gamp.report.inference import few_permutations
from mvpa_gamp.report.terminal import inference_lines
from mvpa_gamp.results.files import read_tsv
from mvpa_gamp.results.reader import read_results
from mvpa_gamp.study import run as study_run

pytestmark = pytest.mark.whole

N_RUNS = 6  # 64 label vectors of two conditions: some of 20 permutations may be equal
KINDS = {
    "comparison": ("--pairs", "face:house", "--max-inclusion"),
    "whitened": ("--pairs", "face:house", "--whiten"),
    "classes": ("--classes", "face", "house", "cat"),
    "cross": ("--pairs", "face:house", "--cross", "face:house>cat:chair"),
    "regions": ("--pairs", "face:house", "--by-region"),
}


@pytest.fixture(scope="module")
def data(make_tiny, tmp_path_factory):
    return make_tiny(tmp_path_factory.mktemp("more"), ("face", "house", "cat", "chair"), n_runs=N_RUNS)


@pytest.fixture(scope="module")
def three_runs(make_tiny, tmp_path_factory):
    """8 label vectors of two conditions."""
    return make_tiny(tmp_path_factory.mktemp("few"), ("face", "house", "cat", "chair"), n_runs=3)


@pytest.fixture(scope="module")
def atlas(data, tmp_path_factory):
    image = nibabel.load(data.mask)
    values = (1 + np.indices(image.shape[:3])[0] // 3).astype(np.int16)
    path = tmp_path_factory.mktemp("atlas") / "halves_dseg.nii.gz"
    nibabel.save(nibabel.Nifti1Image(values, image.affine), path)
    return path


@pytest.fixture
def fitted(monkeypatch):
    """A list with an entry for every classifier that is fitted."""
    seen = []
    fit = GampMethod.fit_folds

    def spy(self, X, y, train, *how, **more):
        seen.extend(range(train.shape[1]))
        return fit(self, X, y, train, *how, **more)

    monkeypatch.setattr(GampMethod, "fit_folds", spy)
    monkeypatch.setattr(study_run, "build_report", lambda root: root / "index.html")
    monkeypatch.setattr(study_run, "missing_files", lambda *_: [])
    return seen


@pytest.fixture
def command(data, atlas, tmp_path):
    """Runs a study with so many permutations, or adds to one."""

    def ask(name, n, kind="comparison", data=data):
        out, regions = tmp_path / name, ("--atlas", str(atlas)) * (kind == "regions")
        asked = ("--permutations", str(n), "--methods", "gamp-bg-lr")
        given = data.options(out, *KINDS[kind], *regions, *asked)
        assert main([*given, "--resume"] if out.exists() else given) == 0
        return SimpleNamespace(
            manifest=(out / "logs" / "manifest.tsv").read_text(),
            stored={path: path.read_bytes() for path in (out / "work").glob("*.npz")},
        )

    return ask


def answers(done):
    """What is stored beside the fits of the table, which hold their own run time, by name."""
    return {path.name: content for path, content in done.stored.items() if "_fits." not in path.name}


def new_vectors(before, after):
    """Distinct label vectors that permutations up to ``after`` bring, beyond those up to ``before``."""
    labels = np.tile([1, -1], N_RUNS)  # one block each, as in the data
    drawn = permuted_labels(labels, np.repeat(np.arange(N_RUNS), 2), after)
    known = {labels.tobytes(), *(each.tobytes() for each in drawn.T[:before])}
    return len({each.tobytes() for each in drawn.T} - known)


@pytest.mark.parametrize("kind", KINDS)
def test_only_new_permutations_are_fitted_and_all_are_those_of_one_run(command, fitted, monkeypatch, kind):
    monkeypatch.setattr(permutation, "_CHUNK_SIZES", (3,))
    whole = command("whole", 9, kind)
    n_whole = len(fitted)
    fitted.clear()
    few = command("grown", 3, kind)
    n_few = len(fitted)
    fitted.clear()
    grown = command("grown", 9, kind)
    assert n_few < n_whole and n_few + len(fitted) == n_whole  # nothing twice
    if kind == "comparison":
        assert len(fitted) == N_RUNS * new_vectors(3, 9)
    assert grown.manifest == whole.manifest
    assert {path: grown.stored[path] for path in few.stored} == few.stored
    assert answers(grown) == answers(whole)  # to the bit


def test_a_single_permutation_more(command, fitted, monkeypatch):
    """It is fitted alone where chunks hold one; otherwise with its chunk, which then serves the next."""
    monkeypatch.setattr(permutation, "_CHUNK_SIZES", (1,))
    for n in (7, 8, 9):
        fitted.clear()
        one_by_one = command("one", n)
        observed = (N_RUNS + 1) + N_RUNS  # with a refit in the table, without one in the test
        assert len(fitted) == N_RUNS * new_vectors(n - 1 if n > 7 else 0, n) + observed * (n == 7)
    monkeypatch.setattr(permutation, "_CHUNK_SIZES", (5,))
    counts = []
    for n in (5, 6, 9):
        fitted.clear()
        ahead = command("five", n)
        counts.append(len(fitted))
    assert counts[1:] == [N_RUNS * new_vectors(5, 10), 0]
    assert ahead.manifest == one_by_one.manifest  # here not even rounding differs in what is written


def test_a_killed_run_has_what_was_stored(command, fitted, monkeypatch):
    """Answers that are missing are computed, and nothing else."""
    monkeypatch.setattr(permutation, "_CHUNK_SIZES", (5,))
    whole = command("whole", 20)
    lost = [path for path in whole.stored if path.name.endswith(("permutations-0002.npz", "-0004.npz"))]
    assert len(lost) == 2
    for path in lost:
        path.unlink()
    fitted.clear()
    again = command("whole", 20)
    assert len(fitted) == N_RUNS * (new_vectors(5, 10) + new_vectors(15, 20))
    assert again == whole


@pytest.mark.parametrize("kind", ["comparison", "whitened", "cross", "regions"])
def test_all_arrangements_after_some_draws_are_those_of_a_fresh_run(command, fitted, three_runs, kind):
    """And there is nothing to add to them, whatever number is asked for."""
    command("grown", 3, kind, three_runs)
    grown = command("grown", 20, kind, three_runs)
    fitted.clear()
    more = command("grown", 200, kind, three_runs)
    assert not fitted and answers(more) == answers(grown)
    assert answers(grown) == answers(command("whole", 20, kind, three_runs))  # to the bit
    assert more.manifest == command("many", 200, kind, three_runs).manifest


def test_the_table_and_the_terminal_have_the_number_that_was_used(command, three_runs, tmp_path, capsys):
    command("few", 200, "cross", three_runs)
    said = capsys.readouterr().err
    assert "Permutations: all 7 other arrangements of the labels for GAMP BG-LR, 14 in all" in said
    for name in ("inference", "cross"):
        rows = read_tsv(next((tmp_path / "few").glob(f"sub-*/*_{name}.tsv")))
        assert rows and {(row["permutations"], row["labellings"]) for row in rows} == {("7", "8")}
        assert all(float(row["p_value"]) in np.arange(1, 9) / 8 for row in rows)
    results = read_results(tmp_path / "few")
    assert "(all 7 other arrangements of the labels; never below 0.25" in "".join(inference_lines(results))
    assert not few_permutations(results)


def test_fewer_permutations_than_before_are_said_to_replace_them(command, fitted, three_runs, capsys):
    words = "5 permutations were asked for, 9 in the run before: its results are replaced by those of 5."
    for n in (9, 9, 20):
        command("seven", n)
    assert "replaced" not in capsys.readouterr().err
    command("nine", 9)
    command("nine", 5)
    assert words in capsys.readouterr().err
    for n in (20, 9):  # the same 7 arrangements
        command("three", n, "comparison", three_runs)
    assert "replaced" not in capsys.readouterr().err
