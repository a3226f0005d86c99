"""The facts of a comparison one by one, each with what it has to be compared with, and the maps to use."""

import math

from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.imaging.surface_names import is_there
from mvpa_gamp.report.answer_box import Fact, Files, answer_box, tested_words
from mvpa_gamp.report.inference_rows import ENOUGH, power_range, selected_at_rate
from mvpa_gamp.report.map_files import leading_files
from mvpa_gamp.report.page_answers import Answer, correct, peak_words, place
from mvpa_gamp.report.recommended import informative_voxels
from mvpa_gamp.report.words import chance_text, significant, voxels_text
from mvpa_gamp.results.files import number
from mvpa_gamp.results.reader import Results

_PEAKS = 3  # places of a pattern named in the box


def files_of(results: Results, subject: str, contrast: str, found: Answer) -> Files:
    """The maps of a comparison that its answer names."""
    files = leading_files(results, subject, contrast, found.method)
    return Files(files, results.folder.root, results.linked)


def facts_box(results: Results, subject: str, contrast: str, found: Answer) -> str:
    """The same facts one by one, each with what it has to be compared with, and the maps to use."""
    facts = [
        Fact("How accurate", correct(found), _accuracy_note(found, results.fold_word)),
        _test_fact(found, results),
        voxel_fact(results, subject, contrast, found),
        stability_fact(found.shared, found.shared_by_chance),
        place_fact(results, subject, contrast, found),
    ]
    return answer_box(facts, files_of(results, subject, contrast, found))


def _accuracy_note(found: Answer, fold_word: str) -> str:
    return f"chance {chance_text(found.chance)} %; {mean_words(found.folds, fold_word, found.se)}"


def mean_words(count: int, fold_word: str, se: float) -> str:
    """Over what a mean was taken, and its standard error where there is one."""
    spread = "" if math.isnan(se) else f" ± {se:.1f} (standard error)"
    return f"mean over {count} held-out {fold_word}s{spread}"


def _test_fact(found: Answer, results: Results) -> Fact:
    if not found.permutations:
        return untested_fact(results)
    fact = tested_words(found.p, found.compared, found.smallest_p)
    if math.isnan(found.p_holm) or len(results.tasks) == 1:
        return fact
    holm = f"{found.p_holm:.2g} after Holm's correction for {len(results.tasks)} comparisons"
    return Fact(fact.question, fact.said, f"{fact.note}; {holm}")


def untested_fact(results: Results) -> Fact:
    """What to do where nothing was permuted."""
    if results.classes.get("permutation"):
        return Fact("How sure", "not tested", "the test above is of all classes together")
    asked = f"permutation_test({ENOUGH}), given to generate_report"
    how = f"--permutations {ENOUGH} --resume" if results.linked else asked
    return Fact("How sure", "not tested", f"the standard error alone is not a test; to test: {how}")


def voxel_fact(results: Results, subject: str, contrast: str, found: Answer) -> Fact:
    """How many voxels a fold selects; then those of the fit to all data and those that passed a test."""
    question, counts = "Which voxels", _tested_voxels(results, subject, contrast, found.method)
    if found.voxels == 0:
        return Fact(question, "none selected", f"of {found.n_voxels:,}; see the explanation below", counts)
    if found.voxels == found.n_voxels:
        return Fact(question, "all", f"{found.n_voxels:,}; this method selects none", counts)
    if math.isnan(found.fold_voxels):  # a single fold
        note = f"{_share(found.voxels, found.n_voxels)}; by the fit to all data"
        return Fact(question, f"{found.voxels:,} selected", note, counts)
    counts = ((f"{found.voxels:,}", "in the fit to all data, as in its weight and inclusion maps"), *counts)
    note = f"{_share(found.fold_voxels, found.n_voxels)}, on average"
    return Fact(question, f"{voxels_text(found.fold_voxels)} selected per fold", note, counts)


def _share(count: float, total: int) -> str:
    return f"{significant(100 * count / total)} % of {total:,}"


def _tested_voxels(results: Results, subject: str, contrast: str, method: str) -> tuple[tuple[str, str], ...]:
    """How many voxels passed a test, and which."""
    out = []
    count = informative_voxels(results, subject, contrast)
    if count is not None:
        level = results.summary.information["level"]
        out.append((f"{count:,}", f"carry information about the labels (family-wise p ≤ {level:g})"))
    for row in results.inference_rows():
        mine = (row["subject"], row["contrast"], row["method"]) == (subject, contrast, method)
        if mine and selected_at_rate(row):
            rate = f"{results.inference['fdr']:g}{power_range(results, row)}"
            out.append((row["fdr_voxels"], f"needed given the others (false-discovery rate {rate})"))
    return tuple(out)


def stability_fact(shared: float, by_chance: float) -> Fact:
    """Consistency, what it is, and its level by chance (percent)."""
    if math.isnan(shared):
        return Fact("How stable", "–", "no selection whose folds could be compared")
    note = f"share of selected voxels that two folds have in common; {significant(by_chance)} % by chance"
    return Fact("How stable", f"{shared:.0f} % consistency", note)


def first_place(results: Results, subject: str, contrast: str, found: Answer) -> list[float] | None:
    """The place in mm that :func:`place_fact` names first; None where it is the largest value of a map."""
    chose = bool(found.peaks) and found.voxels < found.n_voxels
    if not chose and not results.summary.pattern_clusters:
        return None
    for row in results.table(subject, "clusters" if chose else "patternclusters"):
        if (row["contrast"], row["method"]) == (contrast, found.method):
            return [number(row[f"peak_{axis}_mm"]) for axis in "xyz"]
    return None


def place_fact(results: Results, subject: str, contrast: str, found: Answer) -> Fact:
    """The largest clusters of selected voxels, or where the pattern is strongest."""
    chose = bool(found.peaks) and found.voxels < found.n_voxels
    peaks = found.peaks if chose else _pattern_places(results, subject, contrast, found.method)
    if not peaks:
        note = "no clusters of selected voxels; the pattern shows where signals differ"
        return Fact("Where", "see the maps", note)
    others = f"then {', '.join(peaks[1:])}; " if len(peaks) > 1 else ""
    of = "of the largest clusters" if chose else "of the pattern (a description, not a test)"
    at, _, region = peaks[0].partition(" (")
    named = f"{region.removesuffix(')')}; " if region else ""
    note = f"{named}{others}peak{'s' * (len(peaks) > 1)} (x y z) {of}; space: {space_of(results)}"
    return Fact("Where", f"{at} mm", note)


def _pattern_places(results: Results, subject: str, contrast: str, method: str) -> list[str]:
    """Where the pattern is strongest: its clusters, known where no voxel was selected, or its peak."""
    if results.summary.pattern_clusters:
        rows = results.table(subject, "patternclusters")
        mine = [place(row) for row in rows if (row["contrast"], row["method"]) == (contrast, method)]
        if mine:
            return mine[:_PEAKS]
    path = results.folder.statmap(subject, contrast, entity(method), "pattern")
    return [peak_words(path)] if is_there(path) else []


def space_of(results: Results) -> str:
    """The space of coordinates."""
    data = results.summary.data
    return str(data.get("bids_space") or data["space"])
