"""The section of the page on how the fits ended."""

import re

from mvpa_gamp.report.markup import cell, folded, table, text
from mvpa_gamp.results.files import number
from mvpa_gamp.results.reader import Results

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")


def convergence_section(results: Results) -> str:
    """How every fit ended, in its own words."""
    head = ("Comparison", "Method", "Fits that ended as intended", "Iterations", "How the fits ended")
    top = "".join(cell(name, "name" if i in (0, 1, 4) else "", header=True) for i, name in enumerate(head))
    labels = {task["contrast"]: task["label"] for task in results.tasks}
    body, before = [], None
    for subject, contrast, method in results.cells():
        folds = results.folds(subject, contrast, method)
        steps = [number(row["n_iter"]) for row in folds]
        ended = [row["status"] for row in folds]
        said = "; ".join(endings(ended))
        good = sum(row["converged"] == "true" for row in folds)
        iterations = f"{min(steps):.0f}–{max(steps):.0f}" if min(steps) < max(steps) else f"{min(steps):.0f}"
        body.append(
            cell("" if contrast == before else labels[contrast], "name")
            + cell(results.labels[method], "name")
            + cell(f"{good} of {len(folds)}")
            + cell(iterations)
            + f'<td class="name wrap">{text(said)}</td>'
        )
        before = contrast
    caption = text("One line per comparison and method; each fold's own status is in its folds table.")
    return folded("convergence", "Convergence", _said(results), table([top], body, caption), bulk=True)


def _said(results: Results) -> str:
    """One line when all is well, else how many fits are not."""
    rows = [results.row(*cell) for cell in results.cells()]
    folds, good = (int(sum(row[name] for row in rows)) for name in ("folds", "folds_converged"))
    return (
        f"All {folds:,} fits converged."
        if good == folds
        else f"{folds - good:,} of {folds:,} fits did not converge."
    )


def endings(statuses: list[str]) -> list[str]:
    """The different ways in which fits ended, with their count; numbers that differ become their range."""
    groups: dict[str, list[str]] = {}
    for status in statuses:
        groups.setdefault(_NUMBER.sub("…", status), []).append(status)
    return [f"{len(some)} × {_with_ranges(some).rstrip('.')}" for some in groups.values()]


def _with_ranges(statuses: list[str]) -> str:
    """Sentences that differ in their numbers as one sentence: "after 12 to 40 iterations"."""
    columns = zip(*(_NUMBER.findall(status) for status in statuses), strict=True)
    ranges = iter([sorted(set(column), key=_size) for column in columns])

    def written(_: re.Match[str]) -> str:
        values = next(ranges)
        return values[0] if len(values) == 1 else f"{values[0]} to {values[-1]}"

    return _NUMBER.sub(written, statuses[0])


def _size(digits: str) -> float:
    """The number that a status wrote, thousands separated by commas or not."""
    return float(digits.replace(",", "").rstrip("."))
