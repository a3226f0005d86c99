"""All classes together and cross-decoding at the group level: tables, page, and the numbers of Python."""

import json
import math
import re
import shutil
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nibabel
import numpy as np
import pytest
from bids_tree import write_tree

from mvpa_gamp.__main__ import main
from mvpa_gamp.decoding import mean_test
from mvpa_gamp.report.group_facts import read_group
from mvpa_gamp.report.group_methods import group_methods_text, group_references
from mvpa_gamp.report.group_page import build_group_page
from mvpa_gamp.results.files import number, read_tsv
from mvpa_gamp.results.group_tables import Score, accuracy_row, group_rows
from mvpa_gamp.results.reader import read_results
from mvpa_gamp.study import run as study_run

pytestmark = pytest.mark.whole

PEOPLE = ("01", "02", "03")
ASKED = (
    "--methods", "gamp-bg-lr", "--classes", "face", "house", "cat", "--permutations", "19",
    "--cross", "face:house>>cat:chair", "face:house>>cat:house",
)  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    four = ("face", "house", "cat", "chair")
    return write_tree(tmp_path_factory.mktemp("four"), PEOPLE, (), 4, (7, 8, 7), categories=four)


@pytest.fixture(scope="module")
def done(tree, tmp_path_factory):
    out = tmp_path_factory.mktemp("designs") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study_run, "build_report", _not_drawn)  # pages of participants are looked at elsewhere
        assert main([str(tree.root), str(out), "participant", *ASKED, "--quiet"]) == 0
    assert main([str(tree.root), str(out), "group", "--quiet"]) == 0
    return out


def _not_drawn(root):
    (root / "index.html").write_text("not drawn")
    return root / "index.html"


def designs(out, name="designs"):
    return {(row["design"], row["contrast"]): row for row in read_tsv(out / f"group_{name}.tsv")}


def by_hand(table, names):
    """Balanced accuracy of a participant: the mean over runs of the mean over classes."""
    runs = dict.fromkeys(row["run"] for row in table)
    shares = [
        [np.mean([row["predicted"] == name for row in table if (row["run"], row["true"]) == (run, name)])
         for name in names]
        for run in runs
    ]  # fmt: skip
    return np.mean(shares)


def area(out, label, design, contrast):
    """A participant's area under the ROC curve above 1/2, which orders equal means."""
    person = read_results(out / f"sub-{label}")
    if design == "classes":
        assert person.classes["auc"] == pytest.approx(person.classes["permutation"]["auc"])
        return person.classes["auc"] - 0.5
    return next(number(r["auc"]) for r in person.cross_rows() if r["contrast"] == contrast) - 0.5


@pytest.mark.parametrize(
    ("design", "contrast", "ending", "names"),
    [
        ("classes", "all", "predictions", ("cat", "face", "house")),
        ("cross", "faceMinusHouseToCatMinusChair", "crosspredictions", ("cat", "chair")),
    ],
)
def test_the_group_is_the_mean_of_its_participants(done, design, contrast, ending, names):
    row = designs(done)[design, contrast]
    stem = f"contrast-{contrast}_desc-gampBgLr_{ending}.tsv"
    paths = [next((done / f"sub-{label}").glob(f"sub-{label}_*{stem}")) for label in PEOPLE]
    tables = [read_tsv(path) for path in paths]
    values = np.array([by_hand(table, names) for table in tables])
    found = mean_test(
        values - 1 / len(names), finer=[area(done, label, design, contrast) for label in PEOPLE]
    )
    told = [
        number(row[name])
        for name in ("balanced_percent", "balanced_low_percent", "t_value", "t_p_value", "signflip_p_value")
    ]
    percents = (100 * max(0.0, value + 1 / len(names)) for value in (found.mean, found.low))
    assert told == pytest.approx([*percents, found.t, found.t_p, found.flip_p], rel=1e-5)
    assert number(row["chance_percent"]) == pytest.approx(100 / len(names), rel=1e-5)
    correct = [np.mean([line["predicted"] == line["true"] for line in table]) for table in tables]
    assert number(row["accuracy_percent"]) == pytest.approx(100 * np.mean(correct), rel=1e-5)
    labellings = [
        number(line["labellings"])
        for label in PEOPLE
        for line in read_results(done / f"sub-{label}").table(label, "cross")
        if line["contrast"] == contrast
    ]
    can = 3 if design == "classes" else sum(1 / each <= 0.05 for each in labellings)
    assert (row["test"], row["tested"], row["participants"]) == ("permutation", str(can), "3"), labellings


def test_participants_are_tested_by_their_own_permutations(done):
    for row in read_tsv(done / "group_designaccuracy.tsv"):
        person = read_results(done / f"sub-{row['subject']}")
        if row["design"] == "classes":
            assert number(row["p_value"]) == pytest.approx(person.classes["permutation"]["pvalue"], rel=1e-5)
            assert row["comparison"] == "3 classes: cat, face, house"
        else:
            (own,) = [r for r in person.cross_rows() if r["contrast"] == row["contrast"]]
            assert row["p_value"] == own["p_value"]


def test_a_cross_with_a_shared_condition_has_an_accuracy_and_no_test(done):
    row = designs(done)["cross", "faceMinusHouseToCatMinusHouse"]
    assert number(row["accuracy_percent"]) > 50 and row["tested"] == "0" and row["significant"] == "0"
    assert {row[name] for name in ("balanced_percent", "signflip_p_value", "t_p_holm", "test")} == {
        "n/a",
        "none",
    }
    assert designs(done)["cross", "faceMinusHouseToCatMinusChair"]["comparisons_tested"] == "1"


def test_the_page_and_the_methods_text_tell_it(done):
    page = (done / "index.html").read_text()
    for words in (
        '<section id="designs"', "3 classes: cat, face, house", "face vs house → cat vs chair",
        "against 1 / number of classes", "Balanced accuracies of all classes together",
    ):  # fmt: skip
        assert words in page, words


def first_box(out, section):
    """The text and the links of the first answer box of a section."""
    page = (out / "index.html").read_text()
    page = page[page.index(f'<section id="{section}"') :]
    box = re.search(r'<dl class="answer">(.*?)</dl>', page, flags=re.S)[1]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", box)).split()), re.findall(r'href="([^"]+)"', box)


def test_classes_are_answered_first_with_stability_place_and_file(done):
    said, links = first_box(done, "designs-answer")
    for words in (
        "How accurate", "How sure", "How common", "What is confused", "How stable", "Where",
        "Which file has the map",
    ):  # fmt: skip
        assert words in said, words
    row = designs(done)["classes", "all"]
    assert f"{number(row['accuracy_percent']):.1f} % correct chance 33.3 %; mean over 3 participants" in said
    people = [read_results(done / f"sub-{label}") for label in PEOPLE]
    shared = [
        r["consistency_percent"] for person in people for r in person.rows if r["contrast"] == "average"
    ]
    assert len(shared) == 3 and f"{np.mean(shared):.0f} % consistency" in said
    names, counts = ["cat", "face", "house"], 0
    for person in people:
        counts = counts + np.array([each["count"] for each in person.classes["confusion"]]).reshape(3, 3)
    recall = np.diagonal(counts) / counts.sum(axis=1)
    names = [names[k] for k in np.argsort(-recall, kind="stable")]
    assert f"highest recall: {names[0]}" in said
    path = done / links[0]
    pattern = load(path)
    sign = "more" if pattern.flat[np.abs(pattern).argmax()] > 0 else "less"
    assert re.search(rf"Where {names[0]} \S+ \S+ \S+ mm \({sign} signal\)", said)
    assert [
        re.search(r"contrast-(\w+)MinusOthers_desc-gampBgLrClassMean_stat-pattern", x)[1] for x in links
    ] == names
    assert all((done / link).is_file() for link in links)
    assert links[0].rsplit("/")[-1] in said  # the name of the file, not only a link


def test_maps_of_classes_are_means_of_the_participants_scaled_patterns(done):
    ending = "contrast-faceMinusOthers_desc-gampBgLrClass{}_stat-pattern_statmap.nii.gz"
    mean = load(next((done / "group").glob(f"*{ending.format('Mean')}")))
    inside = load(next((done / "group").glob("*desc-common_mask.nii.gz"))) > 0
    values = [
        load(next((done / f"sub-{label}").glob(f"sub-{label}_*{ending.format('')}")))[inside]
        for label in PEOPLE
    ]
    scaled = [each / np.sqrt(np.mean(each**2)) for each in values]
    np.testing.assert_allclose(mean[inside], np.mean(scaled, axis=0), rtol=1e-5, atol=1e-6)
    assert np.ptp(values[0]) > 0 and not mean[~inside].any()


def load(path):
    return np.asarray(nibabel.load(path).dataobj, dtype=float)


def test_a_cross_names_what_its_classifier_does_without_crossing(done):
    page = unescape((done / "index.html").read_text())
    block = page[page.index('id="design-faceMinusHouseToCatMinusChair"') :]
    block = block[: block.index("</details>")]
    (row,) = [r for r in read_tsv(done / "group_summary.tsv") if r["comparison"] == "cat vs chair"]
    assert f"Without crossing</dt><dd>{number(row['accuracy_percent']):.1f} % correct" in block
    assert "of the classifier trained on face vs house" in block
    assert "contrast-faceMinusHouse_desc-gampBgLrMean_stat-pip" in block


EVIL = "<img src=x onerror=document.title='bad'>"
SLIDER = """(async () => {
  document.querySelectorAll("details").forEach(part => { part.open = true; });
  const viewers = [...document.querySelectorAll("figure.viewer")];
  for (let i = 0; i < 1000; i++) {
    const texts = viewers.map(each => each.querySelector(".readout")?.textContent);
    if (texts.every(Boolean)) break;
    await new Promise(done => setTimeout(done, 20));
  }
  return viewers.map(viewer => {
    const slider = viewer.querySelector("input"), level = viewer.querySelector("output");
    return [0, 60, 100].map(value => {
      slider.value = value;
      slider.dispatchEvent(new Event("input"));
      return Number(level.textContent.match(/: ([\\d,]+) voxel/)[1].replace(",", ""));
    });
  });
})()"""


def test_the_group_page_has_viewers_and_nothing_runs_from_labels(done, tmp_path, browser):
    out = shutil.copytree(done, tmp_path / "out")
    path = out / "group_summary.json"
    study = json.loads(path.read_text())
    study["sides"] = {contrast: [EVIL, "house"] for contrast in study["sides"]}
    study["comparisons"] = {name: said.replace("face", EVIL) for name, said in study["comparisons"].items()}
    study["classes"]["names"] = [EVIL, *study["classes"]["names"][1:]]
    path.write_text(json.dumps(study))
    for name in ("summary", "accuracy", "designs", "designaccuracy"):
        table = out / f"group_{name}.tsv"
        table.write_text(table.read_text().replace("face", EVIL).replace(f"{EVIL}Minus", "faceMinus"))
    build_group_page(out)
    page = browser.open(out / "index.html")
    found = page.run(SLIDER)
    assert len(found) == 1 + len(study["comparisons"])  # all classes, and every comparison
    assert all(counts[0] >= counts[1] >= counts[2] and counts[0] > counts[2] for counts in found)
    assert page.run("document.title") == "mvpa_gamp: group"
    assert "onerror" in page.run("document.body.innerText")
    links = page.run("""[...document.querySelectorAll("a[href]:not([href^='#'])")].map(link => link.href)""")
    assert links and all(Path(unquote(urlsplit(link).path)).is_file() for link in links)
    assert page.requests == [] and page.complaints == []


def test_no_table_of_the_group_page_scrolls_and_it_is_short(done, browser):
    page = browser.open(done / "index.html")
    asked = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.ask("Emulation.setDeviceMetricsOverride", page.session, **asked)
    assert page.run("document.documentElement.scrollHeight") < 4500
    page.run("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    wide = "[...document.querySelectorAll('.scroll')].filter(each => each.scrollWidth > each.clientWidth + 1)"
    assert page.run(f"{wide}.length") == 0


def test_the_methods_text_names_classifiers_folds_and_only_works_that_are_used(done):
    group = read_group(done)
    page = unescape(re.sub(r"<[^>]+>", "", (done / "index.html").read_text(encoding="utf-8")))
    text = group_methods_text(group)
    assert text in page
    described = group.study["described"]
    assert [method["name"] for method in described] == list(group.study["methods"])
    assert all(f"{each['label']} ({each['short_reference']}): " in text for each in described)
    assert "leave-one-run-out cross-validation within each participant" in text
    assert (
        "were tested (permutation test: all 15 other arrangements of the labels) at a level of 0.05" in text
    )
    listed = " ".join(group_references(group))
    assert all(each["reference"] in page and each["reference"] in listed for each in described)
    for author in ("Allefeld", "Haufe", "Ince"):
        assert (author in text) == (author in listed), author


def test_tables_of_an_earlier_group_do_not_stay(tree, done, tmp_path):
    out = shutil.copytree(done, tmp_path / "out")
    for label in PEOPLE:
        shutil.rmtree(out / f"sub-{label}")
    plain = ["--methods", "onebit-cs", "--contrasts", "face:house", "--participant-label", "01"]
    assert main([str(tree.root), str(out), "participant", *plain, "--quiet", "--overwrite"]) == 0
    assert main([str(tree.root), str(out), "group", "--quiet"]) == 0
    assert not list(out.glob("group_design*.tsv"))
    assert '<section id="designs"' not in (out / "index.html").read_text()


def test_classes_without_permutations_are_not_tested_one_by_one():
    """Runs above chance are counted for two classes only, so there is no test to count participants by."""
    scores = [Score(f"{k}", "all", "4 classes", "m", 0.4, 0.25, (0.4, 0.3), level=0.25, runs_count=False)
              for k in range(6)]  # fmt: skip
    assert math.isnan(scores[0].p_value) and not scores[0].testable(0.05) and scores[0].test == "none"
    (row,) = group_rows(scores, 0.05)
    assert row["tested"] == 0 and row["signflip_p_value"] == 2**-6 and row["prevalence"] is None
    assert row["balanced_percent"] == pytest.approx(35)
    assert accuracy_row(scores[0], 0.05)["runs_above_chance"] == 2
