"""The last three lines of a run: the best method, where the page is, and what to try next."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from mvpa_gamp.methods import METHODS
from mvpa_gamp.report.answers import PREFERRED, leading_columns
from mvpa_gamp.report.methods_compared import best_method
from mvpa_gamp.report.printed import chance_text
from mvpa_gamp.results.files import number
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.tables import AVERAGE, selects

_PERMUTATIONS = 200  # enough for p = 0.005


def closing_lines(results: Results, page: Path) -> list[str]:
    """Three lines for the terminal."""
    return [_best(results), f"Page: {page}", f"Next: {_next(results)}"]


def _best(results: Results) -> str:
    """The method with the highest mean accuracy, and against what."""
    found = best_method(results)
    if found is None:
        return "Best: none, because every method failed; the page gives the reasons."
    method, accuracy = found
    measure, _, _, column = leading_columns(results)
    chance = next(
        row[column] for row in results.rows
        if (row["contrast"], row["method"]) == (AVERAGE, method)
    )  # fmt: skip
    count = len(results.tasks)
    over = f" on average over {count} comparisons" if count > 1 else f" on {results.tasks[0]['label']}"
    among = f", the highest of {len(results.labels)} methods" if len(results.labels) > 1 else ""
    name = _named(results.labels, method)
    return f"Best: {name}, {accuracy:.1f} % {measure}{over} (chance {chance_text(chance)} %){among}"


def _named(labels: Mapping[str, str], method: str) -> str:
    """A method as tables and as commands call it."""
    return f"{labels[method]} ({method})"


def group_closing(rows: Sequence[Mapping[str, str]], methods: Mapping[str, str], page: Path) -> list[str]:
    """The same of a group: ``rows`` of group_summary.tsv, labels of methods by name."""
    means = {
        name: [number(row["accuracy_percent"]) for row in rows if row["method"] == name] for name in methods
    }
    name, accuracy = max(((n, sum(v) / len(v)) for n, v in means.items() if v), key=lambda each: each[1])
    count = len({row["contrast"] for row in rows})
    chance = max(number(row["chance_percent"]) for row in rows)
    over = f" on average over {count} comparisons" if count > 1 else f" on {rows[0]['comparison']}"
    able = [row for row in rows if row["method"] not in METHODS or METHODS[row["method"]].is_batched]
    untested = any(int(row["tested"]) < int(row["participants"]) for row in able)
    then = (
        f"test every participant: participant level with --permutations {_PERMUTATIONS} --resume, then group"
        if untested
        else "the page links each participant's page; check participants who differ from the others"
    )
    return [
        f"Best: {_named(methods, name)}, {accuracy:.1f} % correct{over} (chance {chance:.0f} %)",
        f"Page: {page}",
        f"Next: {then}",
    ]


def _next(results: Results) -> str:
    """What a reader of these results would ask for first."""
    if results.phantom:
        return "your own data: --bold FILE --labels FILE --mask FILE instead of --phantom"
    if PREFERRED[0] not in results.labels:
        methods = " ".join([*results.labels, PREFERRED[0]])
        return f"try the spatial prior: add --methods {methods} --resume"
    if not results.inference.get("permutations") and not results.classes:
        return f"is it better than chance? Add --permutations {_PERMUTATIONS} --resume to the command"
    row = next(r for r in results.rows if (r["contrast"], r["method"]) == (AVERAGE, PREFERRED[0]))
    if not selects(row):
        return "no voxel was selected: read the pattern maps, or use more samples (volumes instead of means)"
    if not results.inference.get("learning_curve"):
        return "would more runs help? Add --learning-curve --resume to the command"
    return "the page links the files at the top and has a methods text to copy"
