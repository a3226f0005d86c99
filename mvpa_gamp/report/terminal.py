"""What a run says on the terminal: its table as it grows, what goes beyond it, and the last three lines."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvpa_gamp.report.answers import chance_of, class_correct, mean_sentence, sentence
from mvpa_gamp.report.designs import class_facts, has_classes, score_text
from mvpa_gamp.report.facts import (
    ENOUGH,
    PREFERRED,
    leading_columns,
    participant_facts,
)
from mvpa_gamp.report.inference import few_permutations, first_regions, floor_words
from mvpa_gamp.report.words import (
    NONE,
    compared,
    compared_with,
    decimals,
    known,
    p_words,
    seconds_text,
    significant,
    span,
    two_digits,
    voxels_text,
    words_of,
)
from mvpa_gamp.results.files import number
from mvpa_gamp.results.names import ALL_CLASSES
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.tables import (
    AVERAGE,
    ERROR,
    OF_SELECTIONS,
    LeadingMeasure,
    Row,
    selects,
    with_accuracy,
)

_LONGEST_NAME = 48  # characters of a comparison in print
_NARROWEST = 19
_METHOD = 17  # characters of a method in print
_WIDTHS = (12, 13, 11, 7)  # of measures; longer ones still stand apart


@dataclass(frozen=True)
class Measure:
    """A column group of the printed table."""

    title: str
    column: str
    show: Callable[[float], str]
    best: Callable[[Iterable[float]], float]


MEASURES = (
    Measure("Accuracy (%)", "accuracy_percent", lambda v: f"{v:.1f}", max),
    Measure("Voxels per fold", "voxels", voxels_text, min),
    Measure("Sparsity (%)", "sparsity_percent", significant, min),
    Measure("Consistency (%)", "consistency_percent", lambda v: f"{v:.0f}", max),
    Measure("Runtime (s)", "seconds", seconds_text, min),
)


def measures_led_by(lead: LeadingMeasure) -> tuple[Measure, ...]:
    """The measures of a table, the leading one first; what the error rate says is shown as accuracy."""
    if lead == ERROR:
        return MEASURES
    best = max if lead.higher_is_better else min
    return (Measure(lead.title, lead.column, lambda v: f"{v:.1f}", best), *MEASURES[1:])


def show(measure: Measure, value: Any) -> str:
    """A cell of the printed table; a dash where there is no number."""
    return NONE if value is None or math.isnan(float(value)) else measure.show(float(value))


def measured(measure: Measure, row: Row) -> float | None:
    """The number of a row that may be shown: no consistency where the method does not select."""
    row = with_accuracy(row)
    if measure.column in OF_SELECTIONS and not selects(row):
        return None
    return row.get(measure.column)


def pair_lines(
    rows: Sequence[Row], labels: Mapping[str, str], header: bool, names: Sequence[str] = (),
    lead: LeadingMeasure = ERROR, said: Callable[[str], str] = str,
) -> str:  # fmt: skip
    """The lines printed when a comparison is done: one per method, 84 characters wide for short names.

    ``names`` are all comparisons that will be printed: the first column has room for the longest. ``said``
    gives a text about voxels in the words of the space.
    """
    lines = []
    first = _room((*names, *(row["comparison"] for row in rows)), at_least=_NARROWEST)
    if header:
        titles = "Accuracy %" if lead == ERROR else lead.short, said("Voxels (%)"), "Consistency", "Time s"
        lines.append(f"{'Comparison':<{first}} {'Method':<{_METHOD}}{_apart(titles)}")
    for i, row in enumerate(rows):
        name = row["comparison"] if i == 0 else ""
        method = _clip(labels[row["method"]], _METHOD)
        lines.append(f"{_clip(name, first):<{first}} {method:<{_METHOD}}{_measures_text(row, lead)}")
    return "\n".join(lines)


def _apart(cells: Iterable[str]) -> str:
    """Cells to the right of their columns, with a space before each however long it is."""
    return "".join(f" {cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))


def _measures_text(row: Row, lead: LeadingMeasure) -> str:
    """The four measures of one row, or the sentence that says why there are none."""
    if row["status"] != "ok":
        return f"   {row['status']}"
    row = with_accuracy(row)
    first, voxels, sparsity, consistency, seconds = (show(m, measured(m, row)) for m in measures_led_by(lead))
    spread = row["accuracy_se_percent" if lead == ERROR else lead.spread]
    first += f" ± {spread:.1f}" if not math.isnan(spread) else ""
    return _apart((first, f"{voxels} ({sparsity})", consistency, seconds))


def averages(results: Results) -> str:
    """The lines of the averages, below those that were printed as they came."""
    rows = [row for row in results.rows if row["contrast"] == AVERAGE]
    names = [task["label"] for task in results.tasks]
    return pair_lines(rows, results.labels, header=False, names=names, lead=results.leading_measure)


def whole_table(results: Results, width: int) -> str:
    """The paper's table of all results."""
    said = words_of(results).said
    return paper_table(results.rows, results.labels, width, results.leading_measure, said)


def paper_table(
    rows: Sequence[Row], labels: Mapping[str, str], width: int, lead: LeadingMeasure = ERROR,
    said: Callable[[str], str] = str,
) -> str:  # fmt: skip
    """The paper's table: a row per comparison and the average, methods side by side in each measure.

    As many measures stand beside each other as fit into ``width`` characters; the rest follow below.
    """
    methods = [method for method in labels if any(row["method"] == method for row in rows)]
    comparisons = list(dict.fromkeys(row["comparison"] for row in rows))
    if len(comparisons) == 2 and AVERAGE in comparisons:
        comparisons.remove(AVERAGE)  # of one comparison
    by_key = {(row["comparison"], row["method"]): row for row in rows}
    lines = {name: [by_key.get((name, method)) for method in methods] for name in comparisons}
    first = _room(comparisons, at_least=len("Comparison")) + 1
    measures = measures_led_by(lead)
    title = max(len(said(measure.title)) for measure in measures) + 1
    column = max(-(-title // len(methods)), *(len(labels[method]) + 2 for method in methods))
    per_band = max(1, (width - first) // (column * len(methods) + 2))
    bands = [measures[i : i + per_band] for i in range(0, len(measures), per_band)]
    names = [labels[method] for method in methods]
    return "\n\n".join(_band(band, lines, names, first, column, said) for band in bands)


def _band(
    band: Sequence[Measure], rows: Mapping[str, Sequence[Row | None]], names: Sequence[str], first: int,
    column: int, said: Callable[[str], str],
) -> str:  # fmt: skip
    """The measures that stand side by side."""
    place = ">" if len(names) == 1 else "^"  # a single column has its title right above it
    titles = (f"{said(measure.title):{place}{column * len(names)}}" for measure in band)
    heads = "".join(f"{name:>{column}}" for name in names)
    lines = [(" " * first + "  ".join(titles)).rstrip()]
    lines.append(f"{'Comparison':<{first}}" + "  ".join(heads for _ in band))
    rule = "-" * len(lines[-1])
    lines.append(rule)
    for name, known_rows in rows.items():
        lines += [rule] * (name == AVERAGE)
        cells = (
            "".join(f"{show(m, None if row is None else measured(m, row)):>{column}}" for row in known_rows)
            for m in band
        )
        lines.append(f"{_clip(name, first - 1):<{first}}" + "  ".join(cells))
    return "\n".join(lines)


def _room(names: Iterable[str], at_least: int) -> int:
    """Characters that the longest name needs, within reason."""
    return min(_LONGEST_NAME, max([at_least, *(len(name) for name in names)]))


def _clip(text: str, width: int) -> str:
    """``text`` on one line of at most ``width`` characters."""
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= width else text[: width - 1] + "…"


# ---- beyond the table --------------------------------------------------------------------------------------


def beyond_the_table(results: Results) -> list[str]:
    """What inference, regions, classes and crosses found: a text each, where there is any."""
    makers = (inference_lines, region_lines, class_lines, cross_lines)
    return [text for text in ("\n".join(make(results)) for make in makers) if text]


def inference_lines(results: Results) -> list[str]:
    """A line per comparison and method, then one per comparison whose voxels were tested."""
    w = words_of(results)
    lines = [
        f"{row['comparison']}, {results.labels[row['method']]}: {'; '.join(_inferred(results, row))}"
        for row in results.inference_rows()
        if row["status"] == "ok"
    ]
    for subject in results.subjects if results.summary.information else ():
        for row in results.table(subject, "information"):
            n, level = int(row["permutations"]), results.summary.information["level"]
            drawn = compared_with([(n, n < results.inference["permutations"])])
            carry = f"{w.count(int(row['voxels']))} {'carries' if row['voxels'] == '1' else 'carry'}"
            lines.append(
                f"{row['comparison']}: {carry} information about the labels (family-wise p "
                f"<= {level:g}, {drawn})"
            )
    few = few_permutations(results)
    return [*lines, few.replace("≤", "<=")] if few else lines


def _inferred(results: Results, row: Mapping[str, str]) -> list[str]:
    """What inference found for a comparison and method."""
    asked, said = results.inference, []
    if asked["permutations"]:
        floor = floor_words(results)
        more = f"; {floor}" if floor else ""
        said.append(f"p = {two_digits(row['p_value'])} ({compared_with([compared(row)])}{more})")
    if known(row["fdr_voxels"]):
        check = row["fdr_verdict"].split(":")[0]
        voxels = f"{row['fdr_voxels']} {words_of(results).voxels} at FDR {asked['fdr']:g}"
        said.append(f"{voxels} ({check[0].lower()}{check[1:]})")
    elif known(row["fdr_verdict"]):
        voxels = f"no {words_of(results).voxels} are reported at FDR {asked['fdr']:g}"
        said.append(f"{voxels} (the page gives the reason)")
    if known(row["curve"]):
        said.append("learning curve measured")
    return said


def region_lines(results: Results) -> list[str]:
    """The first region of every comparison and method."""
    lines = []
    for label, method, row in first_regions(results):
        if known(row.get("accuracy_percent", "n/a")):
            said = f"{number(row['accuracy_percent']):.1f} % correct alone"
            if known(row.get("p_value_fwe", "n/a")):
                said += f", p = {two_digits(row['p_value_fwe'])} corrected for all regions"
        elif known(row["summed_inclusion"]):
            said = f"summed inclusion {number(row['summed_inclusion']):.2f}"
        else:
            said = f"{number(row['weight_share_percent']):.0f} % of the weight"
        lines.append(f"{label}, {results.labels[method]}: first of all regions: {row['region']} ({said})")
    return lines


def class_lines(results: Results) -> list[str]:
    """All classes together: a line per method."""
    rows = {} if not results.classes else {
        row["method"]: row
        for row in results.table(results.subjects[0], "classes")
        if row["class"] == ALL_CLASSES
    }  # fmt: skip
    lines = []
    for part in results.class_parts:
        row = rows[part["method"]]
        p = f", p = {two_digits(row['p_value'])}" if known(row["p_value"]) else ""
        lines.append(
            f"{len(part['names'])} classes, {results.labels[part['method']]}: "
            f"{part['scoring'].replace('_', ' ')} {score_text(results, row['score'])} (chance "
            f"{score_text(results, row['chance'])}){p}; recall "
            + ", ".join(f"{name} {100 * value:.0f} %" for name, value in part["recall"].items())
        )
    return lines


def cross_lines(results: Results) -> list[str]:
    """Cross-decoding: a line per cross and method."""
    lines = []
    for row in results.cross_rows():
        if row["status"] == "ok":
            p = f", p = {two_digits(row['p_value'])}" if known(row["p_value"]) else ""
            lines.append(
                f"{row['cross']}, {results.labels[row['method']]}: accuracy "
                f"{decimals(row['accuracy_percent'], 1, ' %')} (chance "
                f"{decimals(row['chance_percent'], 1, ' %')}), AUC {two_digits(row['auc'])}{p}"
            )
    return lines


# ---- the last lines ----------------------------------------------------------------------------------------


def closing_lines(results: Results, page: Path) -> list[str]:
    """The answer as the page gives it, where the page is, what to try next."""
    said = _of_classes(results) if has_classes(results) else _of_comparisons(results)
    return [f"Answer: {said}", f"Page: {page}", f"Next: {_next(results)}"]


def _of_classes(results: Results) -> str:
    """All classes together, as the page answers."""
    found = class_facts(results)
    sure = f", {p_words(found.test.p)}, {compared_with([found.test.compared])}" if found.test else ""
    rows = [row for row in results.table(results.subjects[0], "classes") if row["class"] == ALL_CLASSES]
    others = [100 * number(row["score"]) for row in rows if row["method"] != found.method]
    answer = f"{class_correct(found.score)} for {len(results.classes['names'])} classes"
    chance = f"(chance {chance_of(found.score)}{sure})"
    return f"{named(results.labels, found.method)}, {answer} {chance}{other_words(others)}"


def _of_comparisons(results: Results) -> str:
    """What the method that answers on the page says, in the words of the page."""
    of_all = [each for sub in results.subjects for each in participant_facts(results, sub).values()]
    found = [each for each in of_all if each is not None]
    if not found:
        return "none, because every method failed; the page gives the reasons."
    methods = list(dict.fromkeys(each.method for each in found))
    names = " or ".join(named(results.labels, method) for method in methods)
    column = leading_columns(results)[1]
    others = [row[column] for row in results.rows
              if row["contrast"] == AVERAGE and row["method"] not in methods]  # fmt: skip
    said = f"{found[0].label}: {sentence(found[0]).rstrip('.')}"
    if len(found) > 1:
        said = mean_sentence(found)
    return f"{names}, {said}{other_words(others)}"


def other_words(percents: Iterable[float]) -> str:
    """From where to where the other methods are: they are no answer, so none of them is named."""
    values = sorted(f"{value:5.1f}" for value in percents if not math.isnan(value))
    ranged = span(value.strip() for value in values) if values else ""
    return f"; other method{'s' * (len(values) > 1)}: {ranged} %" if values else ""


def named(labels: Mapping[str, str], method: str) -> str:
    """A method as tables and as commands call it."""
    return f"{labels[method]} ({method})"


def _next(results: Results) -> str:
    """What a reader of these results would ask for first."""
    if results.phantom:
        return "your own data: --bold FILE --labels FILE --mask FILE instead of --phantom"
    if not any("sbg" in name for name in results.labels):
        methods = " ".join([*results.labels, PREFERRED[0]])
        return f"try the spatial prior: add --methods {methods} --resume"
    leading = next(name for name in (*PREFERRED, *results.labels) if name in results.labels)
    if not results.inference.get("permutations") and not results.classes:
        return f"is it better than chance? Add --permutations {ENOUGH} --resume to the command"
    if not selects(results.row(results.subjects[0], AVERAGE, leading)):
        more = "use more samples (volumes instead of means)"
        return f"no {words_of(results).voxel} was selected: read the pattern maps, or {more}"
    if not results.inference.get("learning_curve"):
        return f"would more {words_of(results).counted}s help? Add --learning-curve --resume to the command"
    return "the page links the files at the top and has a methods text to copy"
