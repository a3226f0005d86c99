"""All classes together and cross-decoding at the group level: tables, page, and the numbers of Python."""

import math
import re
import shutil
from html import unescape

import numpy as np
import pytest
from bids_tree import write_tree

from mvpa_gamp.__main__ import main
from mvpa_gamp.decoding import mean_test
from mvpa_gamp.decoding.group import Score, accuracy_row, group_rows
from mvpa_gamp.report.group_results import read_group
from mvpa_gamp.report.group_sections import group_references
from mvpa_gamp.report.group_words import methods_text
from mvpa_gamp.results.files import number, read_tsv
from mvpa_gamp.results.reader import read_results
from mvpa_gamp.study import finish

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
        patch.setattr(finish, "build_report", _not_drawn)  # pages of participants are looked at elsewhere
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
        '<section id="designs"', "3 classes: cat, face, house", "face vs house &gt; cat vs chair",
        "against 1 / number of classes", "Balanced accuracies of all classes together",
    ):  # fmt: skip
        assert words in page, words


def test_the_methods_text_names_classifiers_folds_and_only_works_that_are_used(done):
    group = read_group(done)
    page = unescape(re.sub(r"<[^>]+>", "", (done / "index.html").read_text(encoding="utf-8")))
    text = methods_text(group.study, group.summary, group.designs)
    assert text in page
    described = group.study["described"]
    assert [method["name"] for method in described] == list(group.study["methods"])
    assert all(f"{each['label']} ({each['short_reference']}): " in text for each in described)
    assert "leave-one-run-out cross-validation within each participant" in text
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
