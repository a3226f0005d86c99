"""What is answered first, and by which method."""

import math
import re
from dataclasses import replace
from html import unescape

import pytest

from mvpa_gamp.methods import METHODS
from mvpa_gamp.report import style
from mvpa_gamp.report.answers import above_chance_sentence, entries, sentence
from mvpa_gamp.report.facts import (
    PREFERRED,
    Facts,
    Files,
    LabelTest,
    Place,
    Score,
    Selected,
    Stability,
    answering,
)
from mvpa_gamp.report.methods_text import selected_words
from mvpa_gamp.report.style import COLOURS, MARKERS, METHOD_ORDER, OTHER_COLOURS, colour_of, marker_of
from mvpa_gamp.report.terminal import closing_lines, other_words
from mvpa_gamp.report.words import Words, tenths
from mvpa_gamp.results.reader import read_results

FOUND = Facts(
    "faceMinusHouse",
    "face vs house",
    "gamp-sbg-lr",
    "GAMP sBG-LR",
    Score(97.7, 1.4, 50.0, "12 held-out runs"),
    LabelTest(0.004975, 0.004975, 0.004975, (200, False)),
    Files({}),
    Words(),
    Selected(24, 530, 22.0),
    Stability(75.0, 1.02),
    (Place((36.0, -6.0, 0.0)), Place((-24.0, 40.0, 2.0), "fusiform")),
    "clusters",
)
ALONE = (Place((1.0, 2.0, 3.0)),)


def test_the_answer_in_a_sentence():
    assert sentence(FOUND) == (
        "97.7 % correct (chance 50 %, p = 0.005, 200 permutations); 22 voxels per fold, two folds share 75 % "
        "of them (chance 1.0 %); largest clusters at 36 −6 0, −24 40 2 (fusiform) mm."
    )
    vertices = sentence(replace(FOUND, w=Words("vertex", "vertices")))
    assert "22 vertices per fold" in vertices and "voxel" not in vertices


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"test": None}, "(chance 50 %, standard error 1.4 over 12 runs, not tested)"),
        ({"test": None, "score": replace(FOUND.score, se=math.nan)}, "(chance 50 %, not tested)"),
        ({"selected": Selected(0, 530, 0.0)}, "no single voxel was selected (too few samples, or too many"),
        ({"selected": Selected(530, 530, 530.0)}, "all voxels are used, none selected."),
        ({"stability": Stability()}, "; 22 voxels per fold; largest clusters at"),
        (
            {"selected": Selected(1, 530, 1.2), "places": ALONE},
            "1.2 voxels per fold, two folds share 75 % of them (chance 1.0 %); at 1 2 3 mm.",
        ),
        (
            {"selected": Selected(24, 530), "stability": Stability()},
            "; 24 voxels in the fit to all data; largest",
        ),
    ],
)
def test_where_something_is_missing_the_sentence_says_so(change, words):
    assert words in sentence(replace(FOUND, **change))


def test_a_budget_is_called_one():
    """VAMP names voxels whether or not there is an effect: page, sidecars and methods text say what it is."""
    by = {method: selected_words([method, "svm"]) for method in ("vamp-sbg", "gamp-bg-lr")}
    assert "budget" in by["vamp-sbg"] and "one half" not in by["vamp-sbg"] and "one half" in by["gamp-bg-lr"]
    both = selected_words(["gamp-bg-lr", "vamp-sbg"])
    assert "budget" in both and "one half" in both
    for method, is_budget in (("vamp-sbg", True), ("gamp-sbg-lr", False)):
        notes = " ".join(note for each in entries(replace(FOUND, method=method)) for note in each.notes)
        assert ("a budget" in notes) == is_budget


def test_the_answering_method_does_not_depend_on_results(finished, phantom_results):
    assert answering(read_results(phantom_results), "phantom", "faceMinusHouse") == "gamp-bg-lr"
    results = read_results(finished)
    assert answering(results, "tiny", "faceMinusHouse") == next(iter(results.labels))
    assert PREFERRED[0] == "vamp-sbg"


def test_a_phantom_leads_to_own_data(phantom_results):
    results = read_results(phantom_results)
    answered, page, then = closing_lines(results, results.folder.page)
    page_says = unescape(re.sub(r"<[^>]+>", "", results.folder.page.read_text(encoding="utf-8")))
    label = results.labels["gamp-bg-lr"]
    assert answered.startswith(f"Answer: {label} (gamp-bg-lr), face vs house: ") and "Best" not in answered
    said = answered.split("face vs house: ")[1].split("; other method")[0]
    assert said in page_says, "the terminal says what the page says, in its words"
    assert page.endswith("index.html") and "--bold FILE" in then


def test_other_methods_are_a_range_without_names(phantom_results):
    assert other_words([]) == "" and other_words([84.24]) == "; other method: 84.2 %"
    assert other_words([100.0, math.nan, 84.2, 92.6]) == "; other methods: 84.2 to 100.0 %"


def test_the_same_place_has_the_same_digits_whatever_it_is_read_from():
    """17.05 of a table and 17.0499999 of an affine were 17.1 and 17.0 on one page."""
    assert tenths((17.05, -20.15, 3)) == tenths((17.049999, -20.150001, 3.0)) == "17.1, -20.1, 3.0"


def test_a_method_has_its_colour_whatever_the_others_are(monkeypatch):
    assert set(METHOD_ORDER) == set(METHODS)
    assert len({colour_of(name) for name in METHOD_ORDER[: len(COLOURS)]}) == min(
        len(METHOD_ORDER), len(COLOURS)
    )
    # colours that are given already stay with their methods
    assert METHOD_ORDER[:3] == ("gamp-bg-lr", "l1-lr-cv", "onebit-cs") and METHOD_ORDER[12] == "lda"
    monkeypatch.setattr(style, "METHOD_ORDER", tuple(f"method-{k}" for k in range(200)))
    looks = {(colour_of(name), marker_of(name)) for name in style.METHOD_ORDER}
    assert len(looks) == 200, "when colours are used up, markers tell methods apart"


def test_methods_of_others_have_colours_of_their_own():
    unknown = colour_of("someone-elses-method")
    assert unknown in OTHER_COLOURS and not set(OTHER_COLOURS) & set(COLOURS)
    assert unknown == colour_of("someone-elses-method") and marker_of("someone-elses-method") in MARKERS
    assert len({colour_of(f"other-{k}") for k in range(30)}) == len(OTHER_COLOURS)


def test_too_few_permutations_are_no_null_result():
    """With 100 permutations six corrected p-values cannot be at most 0.05: that is said, not "0 of 6"."""

    def found(holm, n, every=False, least=0.0):
        return [replace(FOUND, test=LabelTest(0.01, holm, least, (n, every)))] * 6

    said = above_chance_sentence(found(0.059, 100))
    assert "cannot be decided" in said and "Give at least 119 permutations." in said
    said = above_chance_sentence(found(0.19, 63, every=True, least=2 / 64))
    assert "with all 63 other arrangements of the labels no p-value" in said and "Give more runs." in said
    assert above_chance_sentence(found(0.03, 200)).startswith("6 of 6 are above chance")
    assert above_chance_sentence(found(0.5, 200)).startswith("0 of 6 are above chance")
    few = above_chance_sentence(found(0.19, 40, least=1 / 32))  # drawn, of few arrangements
    assert "cannot be decided" in few and "Give more runs." in few
