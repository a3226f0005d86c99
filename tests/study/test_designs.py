"""Groups, many classes and cross-decoding from the command line: the numbers of Python, resume, bad input."""

import json
import shutil
from pathlib import Path

import nibabel
import numpy as np
import pytest

from mvpa_gamp import GAMPDecoder
from mvpa_gamp.decoding import (
    NoiseWhitening,
    cross_decode,
    cross_permutation_test,
    make_crosses,
    make_tasks,
    session_crosses,
)
from mvpa_gamp.decoding.exchange import blocks_of_volumes
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.haxby import main
from mvpa_gamp.imaging.labels import read_labels
from mvpa_gamp.imaging.samples import load_samples
from mvpa_gamp.methods import METHODS
from mvpa_gamp.results.files import number, read_tsv
from mvpa_gamp.study import run as study_run

pytestmark = pytest.mark.whole

ASKED = (
    "--methods", "gamp-bg-lr", "onebit-cs", "--classes", "face", "house", "cat", "--permutations", "4",
    "--cross", "face:house>cat:chair", "--cross-session", "0-1>>2-3", "--pairs", "face+cat:house",
)  # fmt: skip
GAMP = METHODS["gamp-bg-lr"]


def manifest(out: Path) -> str:
    return (out / "logs" / "manifest.tsv").read_text()


def table(out: Path, name: str) -> list[dict[str, str]]:
    return read_tsv(out / "sub-tiny" / f"sub-tiny_{name}.tsv")


@pytest.fixture(scope="module")
def four(make_tiny, tmp_path_factory):
    return make_tiny(tmp_path_factory.mktemp("four"), ("face", "house", "cat", "chair"))


@pytest.fixture
def no_page(monkeypatch):
    """Drawing takes longer than computing, and is looked at once."""

    def write(root):
        (root / "index.html").write_text("not drawn")
        return root / "index.html"

    monkeypatch.setattr(study_run, "build_report", write)


@pytest.fixture(scope="module")
def samples(four):
    return load_samples(four.bold, four.labels, four.mask)


@pytest.fixture(scope="module")
def done(four, tmp_path_factory):
    out = tmp_path_factory.mktemp("designs") / "results"
    assert main(four.options(out, *ASKED, "--quiet")) == 0
    return out


@pytest.fixture(scope="module")
def decoder(four):
    labels = read_labels(four.labels)
    decoder = GAMPDecoder("gamp-bg-lr", mask=four.mask, ignore=("rest", "chair"), detrend=True)
    return decoder.fit(four.bold, labels.conditions, groups=labels.runs)


def test_command_and_decoder_give_the_same_numbers_of_many_classes(done, decoder):
    classes = json.loads((done / "summary.json").read_text())["classes"]
    assert classes["names"] == decoder.classes_.tolist() and classes["method"] == "gamp-bg-lr"
    np.testing.assert_allclose(classes["fold_scores"], decoder.fold_scores_)
    counts = np.array([row["count"] for row in classes["confusion"]]).reshape(3, 3)
    np.testing.assert_array_equal(counts, decoder.confusion_.to_numpy())
    assert list(classes["contrast_scores"]) == decoder.contrasts_
    said = read_tsv(done / "sub-tiny" / "sub-tiny_contrast-all_desc-gampBgLr_predictions.tsv")
    table = decoder.cv_predictions_
    assert [row["predicted"] for row in said] == table["predicted"].tolist()
    for name in classes["names"]:
        shown = [number(row[f"probability_{name}"]) for row in said]
        np.testing.assert_allclose(shown, table[f"probability_{name}"], atol=1e-5)
    stem = "sub-tiny_contrast-faceMinusHouse_desc-gampBgLr_stat-weight_statmap.nii.gz"
    weights = nibabel.load(done / "sub-tiny" / stem).get_fdata()
    np.testing.assert_allclose(weights, decoder.coef_img_["face-house"].get_fdata(), atol=1e-5)
    test = decoder.permutation_test(4)
    assert classes["permutation"]["pvalue"] == test.pvalue
    assert classes["permutation"]["score"] == pytest.approx(test.score)


def test_folder_of_the_decoder_has_the_same_maps_and_recall_by_class(done, decoder, tmp_path):
    folder = decoder.to_bids(tmp_path / "decoder", subject="tiny")
    name = "sub-tiny_contrast-catMinusOthers_desc-gampBgLrClass_stat-pattern_statmap.nii.gz"
    images = [nibabel.load(root / "sub-tiny" / name).get_fdata() for root in (done, folder)]
    np.testing.assert_allclose(*images, atol=1e-5)
    assert np.abs(images[0]).max() > 0.01
    mine = [row for row in table(done, "classes") if row["method"] == "gamp-bg-lr"]
    for ours, theirs in zip(mine, table(folder, "classes"), strict=True):
        assert (ours["class"], ours["recall_percent"]) == (theirs["class"], theirs["recall_percent"])
    assert mine[0]["class"] == "all" and number(mine[0]["p_value"]) == 0.2


def test_classes_that_are_fitted_together_leave_their_pairs_alone(four, done, tmp_path, no_page):
    """One inclusion map for all classes, the numbers of a decoder; pairs as in a study without classes."""
    asked = ("--methods", "vamp-bg", "--pairs", "face:house", "--quiet")
    both, alone = tmp_path / "both", tmp_path / "alone"
    assert main(four.options(both, *asked, "--classes", "face", "house", "cat", "--permutations", "4")) == 0
    assert main(four.options(alone, *asked)) == 0
    stem = "sub-tiny/sub-tiny_contrast-{}_desc-vampBg{}_stat-{}_statmap.nii.gz"
    pair = [
        nibabel.load(out / stem.format("faceMinusHouse", "", "weight")).get_fdata() for out in (both, alone)
    ]
    np.testing.assert_array_equal(*pair)
    shared = [
        nibabel.load(both / stem.format(f"{name}MinusOthers", "Class", "pip")).get_fdata()
        for name in ("face", "house", "cat")
    ]
    assert np.ptp(shared, axis=0).max() < 1e-6 and shared[0].max() > 0
    labels = read_labels(four.labels)
    decoder = GAMPDecoder("vamp-bg", mask=four.mask, ignore=("rest", "chair"), detrend=True)
    decoder.fit(four.bold, labels.conditions, groups=labels.runs)
    classes = json.loads((both / "summary.json").read_text())["classes"]
    np.testing.assert_allclose(classes["fold_scores"], decoder.fold_scores_)
    assert classes["permutation"]["pvalue"] == decoder.permutation_test(4).pvalue


def test_methods_without_probabilities_vote(done):
    (row,) = [r for r in table(done, "classes") if (r["method"], r["class"]) == ("onebit-cs", "all")]
    assert number(row["score"]) > 0.6 and row["p_value"] == "n/a"


def test_command_and_python_cross_alike(done, samples):
    tasks = make_tasks(samples.conditions, [("face+cat", "house"), ("cat", "chair")])
    crosses = make_crosses(samples.conditions, ["face:house>cat:chair"])
    crosses += session_crosses(tasks, ["0-1>>2-3"], samples.runs)
    rows = {(row["cross"], row["method"]): row for row in table(done, "cross")}
    assert len(rows) == 2 * (2 + 5)  # three pairs of classes, one more of the crosses, and the group
    for name in ("gamp-bg-lr", "onebit-cs"):
        for found in cross_decode(METHODS[name], samples.X, crosses, samples.runs):
            row = rows[found.cross.label, name]
            assert number(row["accuracy_percent"]) == pytest.approx(100 * found.accuracy, rel=1e-5)
            assert number(row["auc"]) == pytest.approx(found.auc, rel=1e-5)
            assert row["status"] == "ok" and (row["p_value"] == "n/a") == (name == "onebit-cs")
    blocks = blocks_of_volumes(samples.conditions, samples.runs, samples.volumes)
    test = cross_permutation_test(GAMP, samples.X, crosses[0], samples.runs, 4, scheme=Scheme(blocks=blocks))
    assert number(rows[crosses[0].label, "gamp-bg-lr"]["p_value"]) == pytest.approx(test.pvalue)


def test_maps_of_a_decoder_trained_on_some_runs_are_its_weights(done, samples):
    (cross,) = session_crosses(make_tasks(samples.conditions, [("cat", "chair")]), ["0-1>>2-3"], samples.runs)
    (found,) = cross_decode(GAMP, samples.X, [cross], samples.runs)
    name = f"sub-tiny_contrast-{cross.name}_desc-gampBgLr_stat-weight_statmap.nii.gz"
    inside = np.asarray(nibabel.load(done / "sub-tiny" / "sub-tiny_desc-analysed_mask.nii.gz").dataobj) > 0
    values = np.asarray(nibabel.load(done / "sub-tiny" / name).dataobj)[inside]
    np.testing.assert_allclose(values, found.trained.coef[:, 0], atol=1e-5)


def test_a_group_is_its_members_under_one_label(done, four, tmp_path, no_page):
    text = four.labels.read_text().replace("face\t", "both\t").replace("cat\t", "both\t")
    (tmp_path / "labels.tsv").write_text(text)
    options = four.options(tmp_path / "out", "--pairs", "both:house", "--quiet")
    options[options.index("--labels") + 1] = str(tmp_path / "labels.tsv")
    assert main(options) == 0
    errors = []
    for out, contrast in ((done, "facePluscatMinusHouse"), (tmp_path / "out", "bothMinusHouse")):
        rows = read_tsv(out / "summary.tsv")
        (row,) = [r for r in rows if (r["contrast"], r["method"]) == (contrast, "onebit-cs")]
        errors.append(row["error_percent"])
    assert errors[0] == errors[1]
    study = json.loads((done / "summary.json").read_text())
    (task,) = [task for task in study["tasks"] if "members" in task]
    assert task["members"] == {"face+cat": ["cat", "face"], "house": ["house"]}
    counts = {row["member"]: row["rows"] for row in study["members"]}
    assert counts == {"cat": 20, "face": 20, "house": 20}


def test_the_page_shows_classes_crosses_and_groups(done):
    page = (done / "index.html").read_text(encoding="utf-8")
    for anchor in ("classes", "scores", "cross-answer", "cross", "groups"):
        assert f'<section id="{anchor}"' in page and f'href="#{anchor}"' in page
    assert "face vs house → cat vs chair" in page and "face+cat" in page
    assert "training labels exchanged within runs" in page
    for words in ("Grouped conditions: face+cat (cat, face)", "All 3 classes (cat, face, house)"):
        assert words in page
    assert "Cross-decoding (trained → tested): face vs house → cat vs chair" in page


def test_a_dominating_member_is_cautioned(four, tmp_path, capsys):
    lines = four.labels.read_text().splitlines()
    kept = [line for line in lines if not (line.startswith("cat") and line[-1] in "12")]
    rest = [line if line in kept else line.replace("cat", "rest") for line in lines]
    (tmp_path / "labels.tsv").write_text("\n".join(rest) + "\n")
    options = four.options(tmp_path / "out", "--pairs", "face+cat:house")
    options[options.index("--labels") + 1] = str(tmp_path / "labels.tsv")
    assert main(options) == 0
    assert "face gives 67 % of the side face+cat" in capsys.readouterr().err
    assert "face gives 67 % of the side face+cat" in (tmp_path / "out" / "index.html").read_text()


def test_resumed_parallel_and_repeated_runs_write_the_same(done, four, tmp_path, no_page):
    broken = tmp_path / "broken"
    shutil.copytree(done, broken)
    work = broken / "work"
    for pattern in ("*contrast-all*", "*catMinusHouse_desc-onebitCs*", "*cross_desc-gampBgLr_fits*"):
        assert [path.unlink() for path in work.glob(pattern)]
    assert main(["--out", str(broken), "--resume", "--quiet"]) == 0
    assert manifest(broken) == manifest(done)
    again = ("--config", str(done / "config.toml"), "--out", str(tmp_path / "again"), "--quiet")
    assert main([*again, "--n-jobs", "2"]) == 0
    assert manifest(tmp_path / "again") == manifest(done)


def test_classes_and_crosses_may_be_added_to_a_run(four, tmp_path, no_page):
    out = tmp_path / "out"
    assert main(four.options(out, "--pairs", "face:house", "--quiet")) == 0
    more = ("--classes", "face", "house", "cat", "--cross", "face:house>>cat:chair", "--resume", "--quiet")
    assert main(["--out", str(out), *more]) == 0
    assert len(table(out, "cross")) == 1 and len(table(out, "classes")) == 4
    at_once = tmp_path / "at_once"
    assert main(four.options(at_once, "--pairs", "face:house", *more[:-2], "--quiet")) == 0
    assert manifest(out) == manifest(at_once)


def test_whitened_classes_and_crosses(four, samples, tmp_path, no_page):
    more = ("--methods", "gamp-bg-lr", "--multiclass", "--cross", "face:house>>cat:chair")
    assert main(four.options(tmp_path / "out", *more, "--whiten", "--permutations", "4", "--quiet")) == 0
    labels = read_labels(four.labels)
    decoder = GAMPDecoder("gamp-bg-lr", mask=four.mask, ignore="rest", detrend=True, whiten=True)
    decoder.fit(four.bold, labels.conditions, groups=labels.runs)
    classes = json.loads((tmp_path / "out" / "summary.json").read_text())["classes"]
    np.testing.assert_allclose(classes["fold_scores"], decoder.fold_scores_)
    blocks = blocks_of_volumes(samples.conditions, samples.runs, samples.volumes)
    crosses = make_crosses(samples.conditions, ["face:house>>cat:chair"])
    scheme = Scheme(blocks=blocks, preparation=NoiseWhitening(blocks))
    (found,) = cross_decode(GAMP, samples.X, crosses, samples.runs, scheme)
    row = table(tmp_path / "out", "cross")[0]
    assert number(row["accuracy_percent"]) == pytest.approx(100 * found.accuracy, rel=1e-5)
    test = cross_permutation_test(GAMP, samples.X, crosses[0], samples.runs, 4, scheme)
    assert number(row["p_value"]) == pytest.approx(test.pvalue)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--pairs", "face+dog:house"), ("--pairs: ", "names 'dog', which the data do not contain")),
        (("--pairs", "f*:face+house"), ("'face' on both sides",)),
        (("--classes", "face"), ("--classes: expected at least two classes",)),
        (("--classes", "face", "dog"), ("--classes: ", "'dog'")),
        (("--classes", "face", "fa*"), ("--classes: ", "belongs to two of the classes")),
        (("--cross", "face:house"), ("--cross: expected face:house>cat:chair", "quotation marks")),
        (("--cross", "face:house>cat:dog"), ("--cross: ", "'dog'")),
        (("--cross", "face:house>house:face"), ("--cross: ", "the same comparison")),
        (("--cross", "f*:house>>face:house"), ("--cross: ", "the same comparison")),
        (("--cross", ">"), ("--cross: ", "For example face:house")),
        (("--cross-session", "0-1"), ("--cross-session: expected", "quotation marks")),
        (("--cross-session", "0-1>1-3"), ("--cross-session: Run 1 is trained on and tested on",)),
        (("--cross-session", "0-1>ses-2"), ("--cross-session: ", "'ses-2'", "among the runs 0, 1, 2")),
    ],
)
def test_designs_that_cannot_be_run_are_refused(four, tmp_path, capsys, more, words):
    out = tmp_path / "out"
    assert main(four.options(out, *more)) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if "error: " in line]
    assert len(said) == 1 and all(word in said[0] for word in words), said
    assert not out.exists()


def test_a_class_in_one_run_only_is_refused(four, tmp_path, capsys):
    lines = [
        line if not line.startswith("cat") or line.endswith("\t0") else line.replace("cat", "rest")
        for line in four.labels.read_text().splitlines()
    ]
    (tmp_path / "labels.tsv").write_text("\n".join(lines) + "\n")
    options = four.options(tmp_path / "out", "--classes", "cat", "face", "house")
    options[options.index("--labels") + 1] = str(tmp_path / "labels.tsv")
    assert main(options) == 2 and "without run 0" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_cross_of_a_comparison_that_the_study_has_the_other_way_round(four, tmp_path):
    given = ("--methods", "svm", "--pairs", "house:face", "--cross", "face:house>>cat:chair", "--quiet")
    out = tmp_path / "results"
    assert main(four.options(out, *given)) == 0
    cross = json.loads((out / "summary.json").read_text())["cross"]["crosses"][0]
    assert cross["contrast"] == "houseMinusFace" and cross["trained_on"] == "face vs house"
    assert "houseMinusFace_desc-svm_stat-pattern" in (out / "index.html").read_text()
