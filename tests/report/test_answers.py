"""What is answered first, and by which method."""

import math
import re
from dataclasses import replace
from html import unescape

import pytest

from mvpa_gamp.methods import METHODS
from mvpa_gamp.report import style
from mvpa_gamp.report.answers import PREFERRED, Answer, answering, sentence
from mvpa_gamp.report.closing import _others, closing_lines
from mvpa_gamp.report.printed import tenths
from mvpa_gamp.report.style import COLOURS, MARKERS, METHOD_ORDER, OTHER_COLOURS, colour_of, marker_of
from mvpa_gamp.results.reader import read_results

FOUND = Answer(
    method="gamp-sbg-lr", measure="correct", accuracy=97.7, se=1.4, chance=50.0, folds=12, p=0.004975,
    p_holm=0.004975, smallest_p=0.004975,
    permutations=200, voxels=24, fold_voxels=22.0, n_voxels=530, shared=75.0, shared_by_chance=1.02,
    peaks=("36 −6 0", "−24 40 2 (fusiform)"),
)  # fmt: skip


def test_the_answer_in_a_sentence():
    assert sentence(FOUND, "run") == (
        "97.7 % correct (chance 50 %, p = 0.005, 200 permutations); 22 voxels per fold, two folds share 75 % "
        "of them (chance 1.0 %); largest clusters at 36 −6 0, −24 40 2 (fusiform) mm."
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"permutations": 0, "p": math.nan}, "(chance 50 %, standard error 1.4 over 12 runs, not tested)"),
        ({"permutations": 0, "se": math.nan}, "(chance 50 %, not tested)"),
        (
            {"voxels": 0, "peaks": ()},
            "no single voxel was selected (too few samples, or too many redundant voxels",
        ),
        ({"voxels": 530}, "all voxels are used, none selected."),
        ({"shared": math.nan}, "; 22 voxels per fold; largest clusters at"),
        (
            {"voxels": 1, "fold_voxels": 1.2, "peaks": ("1 2 3",)},
            "1.2 voxels per fold, two folds share 75 % of them (chance 1.0 %); at 1 2 3 mm.",
        ),
        ({"fold_voxels": math.nan, "shared": math.nan}, "; 24 voxels in the fit to all data; largest"),
    ],
)
def test_where_something_is_missing_the_sentence_says_so(change, words):
    assert words in sentence(replace(FOUND, **change), "run")


def test_the_answering_method_does_not_depend_on_results(finished, phantom_results):
    assert answering(read_results(phantom_results), "phantom", "faceMinusHouse") == "gamp-bg-lr"
    results = read_results(finished)
    assert answering(results, "tiny", "faceMinusHouse") == next(iter(results.labels))
    assert PREFERRED[0] == "gamp-sbg-lr"


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
    assert _others([]) == "" and _others([84.24]) == "; other method: 84.2 %"
    assert _others([100.0, math.nan, 84.2, 92.6]) == "; other methods: 84.2 to 100.0 %"


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
    from mvpa_gamp.report.overview import _tested

    def found(p_holm, permutations, **facts):
        return [replace(FOUND, permutations=permutations, p_holm=p_holm, **facts)] * 6

    said = _tested(found(0.059, 100))
    assert "cannot be decided" in said and "Give at least 119 permutations." in said
    said = _tested(found(0.19, 63, every=True, smallest_p=2 / 64))
    assert "with all 63 other arrangements of the labels no p-value" in said and "Give more runs." in said
    assert _tested(found(0.03, 200)).startswith("6 of 6 are above chance")
    assert _tested(found(0.5, 200)).startswith("0 of 6 are above chance")
    few = _tested(found(0.19, 40, smallest_p=1 / 32))  # drawn, of few arrangements
    assert "cannot be decided" in few and "Give more runs." in few
