"""Pages of classes and crosses answer the same questions first; every page offers the tested map first."""

import base64
import io
import json
import re
import shutil
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from PIL import Image

from mvpa_gamp.haxby import main
from mvpa_gamp.report.answers import entries
from mvpa_gamp.report.designs import all_cross_facts, class_facts
from mvpa_gamp.report.facts import comparison_facts, maps_to_use
from mvpa_gamp.report.figures.brain import comparison_maps
from mvpa_gamp.report.html import cut_parts
from mvpa_gamp.report.inference import few_permutations
from mvpa_gamp.report.methods_text import methods_paragraphs, references
from mvpa_gamp.report.page import section
from mvpa_gamp.report.terminal import closing_lines, inference_lines
from mvpa_gamp.report.viewer import viewer
from mvpa_gamp.report.words import place_words
from mvpa_gamp.results.files import number, read_tsv, write_tsv
from mvpa_gamp.results.reader import Results, read_results

pytestmark = pytest.mark.whole

QUESTIONS = ("How accurate", "How sure", "Which voxels", "How stable", "Where", "Which file has the map")


@pytest.fixture(scope="module")
def designed(make_tiny, tmp_path_factory):
    """Three classes together, one cross, and permutations."""
    place = tmp_path_factory.mktemp("designed")
    tiny = make_tiny(place / "data", categories=("face", "house", "cat", "chair"), n_runs=6)
    asked = ["--classes", "face", "house", "cat", "--cross", "face:house>>cat:chair", "--permutations", "10"]
    out = place / "results"
    assert main(tiny.options(out, *asked, "--methods", "gamp-bg-lr", "onebit-cs", "--quiet")) == 0
    return out


def boxes(out):
    """The text and the links of every answer box, in the order of the page."""
    html = (out / "index.html").read_text()
    found = re.findall(r'<dl class="answer">(.*?)</dl>', html, flags=re.S)
    texts = [" ".join(unescape(re.sub(r"<[^>]+>", " ", box)).split()) for box in found]
    return texts, [re.findall(r'href="([^"]+)"', box) for box in found]


def test_the_facts_about_all_classes_are_those_of_the_table(designed):
    results = read_results(designed)
    facts = class_facts(results)
    rows = read_tsv(designed / "sub-tiny" / "sub-tiny_classes.tsv")
    row = next(row for row in rows if (row["class"], row["method"]) == ("all", "gamp-bg-lr"))
    assert facts.method == "gamp-bg-lr" and facts.score.mean == pytest.approx(
        100 * number(row["score"]), abs=0.01
    )
    assert facts.score.chance == pytest.approx(100 / 3) and facts.score.over == "6 held-out runs"
    assert facts.test.p == pytest.approx(number(row["p_value"])) and facts.test.compared == (10, False)
    recall = results.classes["recall"]
    order = sorted(recall, key=lambda name: -recall[name])  # the best recognised first
    assert [place.of for place in facts.places] == order
    assert [
        re.search(r"contrast-(\w+)MinusOthers", path.name)[1] for path in facts.files.paths.values()
    ] == order
    assert facts.confusion.best[0] == order[0] and facts.confusion.least[0] == order[-1]


def test_the_facts_about_a_cross_are_those_of_the_table_and_of_the_classifier_that_was_trained(designed):
    results = read_results(designed)
    (facts,) = all_cross_facts(results)
    (task,) = (task for task in results.tasks if task["contrast"] == "faceMinusHouse")
    trained = comparison_facts(results, "tiny", task)
    row = next(r for r in results.cross_rows() if r["method"] == "gamp-bg-lr")
    assert facts.score.mean == number(row["accuracy_percent"]) and facts.score.over == "6 tested runs"
    assert facts.test.p == number(row["p_value"]) and facts.test.labels == "the training labels"
    assert facts.test.least == pytest.approx(1 / 11)
    assert facts.trained_on == trained.label == "face vs house"
    assert (facts.selected, facts.stability, facts.places) == (
        trained.selected,
        trained.stability,
        trained.places,
    )
    assert facts.files == trained.files


def test_the_page_answers_classes_first_then_crosses_each_with_every_question(designed):
    texts, links = boxes(designed)
    results = read_results(designed)
    for text, facts in zip(texts, [class_facts(results), *all_cross_facts(results)], strict=False):
        for entry in entries(facts):
            said = " ".join((entry.question, entry.said, "; ".join(entry.notes)))
            assert " ".join(said.split()) in text
    assert all(words in texts[0] for words in (*QUESTIONS, "What is confused"))
    assert all(words in texts[1] for words in (*QUESTIONS, "Without crossing"))
    assert all((designed / link).is_file() for each in links for link in each)


def test_classes_and_crosses_are_among_the_items_to_report(designed):
    rows = {row["item"]: row["reported"] for row in read_tsv(designed / "cobidas_multivariate.tsv")}
    target = rows["What is predicted, and its type"]
    assert "Which of 3 classes was shown: cat, face, house." in target
    assert "Trained → tested: face vs house → cat vs chair." in target
    assert rows["Performance found"].startswith("3 classes, GAMP BG-LR: accuracy ")
    assert "face vs house → cat vs chair, GAMP BG-LR: accuracy" in rows["Performance found"]


def test_the_tested_map_is_offered_first_and_weights_never_alone(designed):
    _, links = boxes(designed)
    results = read_results(designed)
    for each, task in zip(links[2:], results.tasks, strict=True):  # comparisons
        first = maps_to_use(results, "tiny", task["contrast"], "gamp-bg-lr")
        assert each[0].endswith(first.first.name) and first.stat in ("pip", "pattern")  # no voxel passed
        assert "desc-informationFwe_stat-corr" in each[1] and "desc-information_stat-corr" in each[2]
        assert not [link for link in each if "stat-weight" in link and "Selected" not in link]
    html = (designed / "index.html").read_text()
    assert '"name": "information"' in unescape(html)  # in the viewer as well


def test_where_voxels_passed_the_test_their_map_is_recommended(designed, tmp_path):
    results = read_results(shutil.copytree(designed, tmp_path / "passed"))
    path = results.folder.subject_table("tiny", "information")
    rows = read_tsv(path)
    write_tsv(path, list(rows[0]), [{**row, "voxels": "2"} for row in rows])
    task = results.tasks[0]
    facts = comparison_facts(results, "tiny", task)
    assert facts.files.stat == "information" and facts.files.first.is_file()
    view = json.loads(viewer(results, "tiny", task, facts)["data"])
    assert view["maps"][0]["name"] == "information"


def test_the_viewer_opens_at_the_place_that_the_answer_names(five):
    results = read_results(five)
    html = (five / "index.html").read_text()
    views = [json.loads(unescape(view)) for view in re.findall(r'data-view="([^"]*)"', html)]
    named = re.findall(r"<dt>Where</dt><dd>([^<]*) mm<small>", html)
    assert len(views) == len(named) == len(results.tasks)
    for view, words in zip(views, named, strict=True):
        place = np.array(view["affine"]) @ [*view["at"], 1]
        assert place_words(place) == unescape(words)


def test_a_tested_information_map_is_the_first_column_of_the_figure(designed, tmp_path):
    results = read_results(shutil.copytree(designed, tmp_path / "passed"))
    contrast = results.tasks[0]["contrast"]
    without = comparison_maps(results, "tiny", contrast)
    path = results.folder.subject_table("tiny", "information")
    rows = read_tsv(path)
    write_tsv(path, list(rows[0]), [{**row, "voxels": "2"} for row in rows])
    results = read_results(tmp_path / "passed")
    drawn = comparison_maps(results, "tiny", contrast)
    titles = re.findall(rb"<!-- (information|weight|pattern|selection frequency) -->", drawn.svg)
    assert titles[0] == b"information" and b"<!-- information -->" not in without.svg
    results.folder.tested_information("tiny", contrast).unlink()  # as in folders of earlier versions
    assert b"<!-- information -->" not in comparison_maps(results, "tiny", contrast).svg


def test_without_permutations_the_inclusion_probability_leads(phantom_results):
    (text,), (links,) = boxes(phantom_results)
    assert links[0].endswith("_stat-pip_statmap.nii.gz") and links[0].rpartition("/")[2] in text


def test_closed_comparisons_name_the_file_of_their_map(five, browser):
    """What a reader sees before anything is opened: a name, not only the words of a link."""
    page = browser.open(five / "index.html")
    results = read_results(five)
    page.run("document.querySelectorAll('details').forEach(part => { part.open = false; })")
    seen = page.run("document.querySelector('main').innerText")
    for task in results.tasks:
        first = maps_to_use(results, "tiny", task["contrast"], "vamp-sbg").first
        assert first.is_file() and first.name in seen
    assert page.run("document.querySelector('table.sortable').tHead.rows[0].cells[1].innerText").startswith(
        "VAMP sBG"  # the answering method comes first
    )


def test_paper_shows_answers_and_one_row_of_maps_per_comparison(five, browser):
    page = browser.open(five / "index.html")
    browser.ask("Emulation.setEmulatedMedia", page.session, media="print")
    page.run("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    shown = "each => each.checkVisibility() && each.getBoundingClientRect().height > 0"
    for what, many in (
        ("#maps .block .said", True), ("#maps .block .map", True), ("#maps .block img", True),
        ("#maps .answer", False), (".viewer", False), ("nav", False), (".bulk table", False),
    ):  # fmt: skip
        assert page.run(f"[...document.querySelectorAll('{what}')].some({shown})") == many, what
    images = "[...document.querySelectorAll('#maps figure.maps img')]"
    assert page.run(f"{images}.map({shown})") == [True, False] * 3  # the answering method, the other four
    for first, others in batched_pairs(page.run(f"{images}.map(each => each.naturalHeight)")):
        assert 0.15 < first / (first + others) < 0.35
    sheets = base64.b64decode(browser.ask("Page.printToPDF", page.session)["data"])
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", sheets)) <= 8


def batched_pairs(values):
    return zip(values[::2], values[1::2], strict=True)


def test_the_first_line_of_a_figure_and_the_others_keep_every_row_of_pixels_below_its_headings(five):
    """Nothing of the figure is lost, and both parts begin with the headings."""
    (path, *_) = sorted(five.glob("figures/*_maps.png"))
    with Image.open(path) as image:
        heading, end = map(int, image.info["Cut"].split())
        whole = np.asarray(image.convert("RGB"))
    first, rest = (np.asarray(Image.open(io.BytesIO(part))) for part in cut_parts(path))
    assert (first == whole[:end]).all() and (rest[heading:] == whole[end:]).all()
    assert (rest[:heading] == whole[:heading]).all() and (whole[:heading] < 128).any()
    bare = [(whole[row] > 250).all() for row in (heading, end)]
    assert bare == [True, True]  # no letter is cut


@pytest.fixture(scope="module")
def five(tiny, tmp_path_factory):
    """The command's own five methods."""
    out = tmp_path_factory.mktemp("five") / "results"
    methods = ["l1-lr-cv", "gamp-l1-lr", "gamp-bg-lr", "onebit-cs", "vamp-sbg"]
    assert main(tiny.options(out, "--pairs", "all", "--methods", *methods, "--quiet")) == 0
    return out


@pytest.mark.parametrize("which", ["five", "designed"])
def test_no_table_scrolls_on_a_desk(which, request, browser):
    page = browser.open(request.getfixturevalue(which) / "index.html")
    page.run("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    wide = "[...document.querySelectorAll('.scroll')].filter(each => each.scrollWidth > each.clientWidth + 1)"
    assert page.run(f"{wide}.map(each => each.textContent.slice(0, 60))") == []
    assert page.requests == [] and page.complaints == []


class Permuted(Results):
    """8 runs: 256 ways to arrange the labels, of which two always give the same accuracy."""

    def inference_rows(self):
        facts = {
            "permutations": "255",
            "labellings": "256",
            "smallest_p_value": "0.0078125",
            "p_value": "0.0078125",
        }
        return [{**row, **facts} for row in super().inference_rows()]

    def table(self, subject, name):
        rows = super().table(subject, name)
        return [{**row, "permutations": "255"} for row in rows] if name == "information" else rows


def asked(results, permutations, kind=Results):
    """The same results, from so many permutations."""
    inference = {**results.summary.inference, "permutations": permutations}
    summary = replace(results.summary, inference=inference)
    return kind(results.folder, summary, results.rows, results.texts)


def test_the_methods_text_has_the_test_behind_the_information_map(designed):
    results = read_results(designed)
    said = " ".join(methods_paragraphs(results))
    assert "by step-down maxima over voxels (Westfall & Young, 1993)" in said
    assert any(work.startswith("Westfall PH") for work in references(results))
    assert not any(work.startswith("Westfall PH") for work in references(asked_nothing(results)))


def asked_nothing(results):
    """The same results without any inference."""
    return replace(results, summary=replace(results.summary, inference={}, information={}))


def test_where_labels_have_few_arrangements_text_and_terminal_say_why_p_is_not_smaller(designed):
    results = asked(read_results(designed), 300, Permuted)
    floor = "never below 0.0078 because the labels can be arranged in only 256 ways"
    said, lines = " ".join(methods_paragraphs(results)), "\n".join(inference_lines(results))
    assert floor in said and "all 255 other arrangements of the labels" in said
    assert f"p = 0.0078 (all 255 other arrangements of the labels; {floor}" in lines
    assert "tested with all 255 other arrangements of the labels: labels were exchanged" in said
    assert "all 255 other arrangements of the labels)" in lines and not few_permutations(results)


def test_the_terminal_ends_with_all_classes_where_they_were_asked_for(designed):
    results = read_results(designed)
    answered = closing_lines(results, results.folder.page)[0]
    said = (
        r"Answer: GAMP BG-LR \(gamp-bg-lr\), \d+\.\d % correct for 3 classes \(chance 33.3 %, p = [\d.]+, 10 "
    )
    assert re.match(said, answered) and "; other method: " in answered


def test_fewer_than_a_thousand_permutations_are_said_to_be_few_for_maps(designed):
    results = read_results(designed)
    assert few_permutations(asked(results, 10)).startswith("10 permutations are few for family-wise p")
    assert few_permutations(results) in section(results, "inference")
    assert not few_permutations(asked_nothing(results)) and not few_permutations(asked(results, 1000))
