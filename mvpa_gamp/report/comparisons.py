"""The comparisons of a participant on the page: all at a glance, then each with what belongs to it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from mvpa_gamp.imaging.brainmaps import read_image
from mvpa_gamp.imaging.names import entity
from mvpa_gamp.imaging.spaces import space_of
from mvpa_gamp.report.answers import (
    above_chance_sentence,
    entries,
    mean_sentence,
    place_of,
    selected_sentence,
    sentence,
)
from mvpa_gamp.report.backdrops import FAMILY_WISE, at_least, read_map
from mvpa_gamp.report.facts import (
    Facts,
    Page,
    answering,
    information_files,
    informative_voxels,
    leading_columns,
    method_files,
)
from mvpa_gamp.report.html import (
    Cell,
    Pair,
    Table,
    accuracy_matrix,
    cell,
    figure_parts,
    name,
    swatched,
    table,
)
from mvpa_gamp.report.inference import inference_row, power_words
from mvpa_gamp.report.viewer import thumbnail, viewer
from mvpa_gamp.report.words import (
    ALPHA,
    NONE,
    Words,
    compared,
    compared_with,
    decimals,
    peak_of_row,
    tenths,
    two_digits,
    voxels_text,
)
from mvpa_gamp.results.files import MISSING, number
from mvpa_gamp.results.reader import Results

_CLUSTERS_SHOWN = 5
_LISTED = 20  # voxels listed on the page; files have all of them
_PLACES = 5  # of a pattern on the page; the table in the folder has up to ten
_MANY_RUNS = 12  # beyond, a table shows the smallest and the largest run
FEW = 3  # comparisons up to which the first one is open


# ---- all comparisons ---------------------------------------------------------------------------------------


def overview(page: Page) -> dict[str, Any] | None:
    """A sentence, a matrix of categories and a table; nothing for a single comparison."""
    if len(page.results.tasks) < 2:
        return None
    return {"subjects": [_overview_of(page, subject) for subject in page.results.subjects]}


def _overview_of(page: Page, subject: str) -> dict[str, Any]:
    facts = page.facts[subject]
    found = [each for each in facts.values() if each is not None]
    tested = any(each.test is not None for each in found)
    labels = page.results.labels
    lead = found[0].method if found else next(iter(labels))
    out: dict[str, Any] = {
        "name": f"sub-{subject}" if len(page.results.subjects) > 1 else "",
        "found": bool(found),
        "matrix": accuracy_matrix([_pair(page, subject, task) for task in page.results.tasks]),
        "table": _comparison_table(page, subject, lead, tested),
        "tested": tested,
        "measure": leading_columns(page.results)[0].replace("correct", "accuracy").capitalize(),
        "lead": labels[lead],
        "map": next((each for each in found if each.files.paths), None),
    }
    if found:
        score, rest = mean_sentence(found).split(" on average", 1)
        methods = " or ".join(dict.fromkeys(each.by for each in found))
        out |= {"score": score, "rest": rest, "methods": methods}
        out |= {"sure": above_chance_sentence(found), "selected": selected_sentence(found)}
    return out


def _pair(page: Page, subject: str, task: Mapping[str, Any]) -> Pair:
    """Two categories of the matrix, whose cell leads to their comparison."""
    facts = page.facts[subject][task["contrast"]]
    score = () if facts is None else (facts.score.mean, facts.score.chance, facts.score.name)
    return Pair(task["positive"], task["negative"], page.anchor(subject, task["contrast"]), *score)


def _comparison_table(page: Page, subject: str, lead: str, tested: bool) -> Table:
    """A line per comparison: what the answering method says, then the accuracy of the other methods."""
    labels = page.results.labels
    others = [method for method in labels if method != lead]
    of_lead = [*(["p"] * tested), f"{page.w.voxels.capitalize()} per fold", "Consistency (%)",
               "Largest cluster (mm)"]  # fmt: skip
    head = ["Comparison", swatched(lead, labels[lead]), *of_lead, *(swatched(m, labels[m]) for m in others)]
    rows = []
    for task in page.results.tasks:
        contrast, label = task["contrast"], task["label"]
        link = Markup('<a href="#{}">{}</a>').format(page.anchor(subject, contrast), label)
        first, *rest = (_accuracy_cell(page.results, subject, contrast, method) for method in (lead, *others))
        answer = _answer_cells(page.facts[subject][contrast], tested)
        rows.append([cell(link, "name", label), first, *answer, *rest])
    return table(head, rows)


def _accuracy_cell(results: Results, subject: str, contrast: str, method: str) -> Cell:
    row, (_, column, spread, _) = results.row(subject, contrast, method), leading_columns(results)
    if row["status"] != "ok":
        return cell("failed", value="-1", title=row["status"])
    se = "" if math.isnan(row[spread]) else f" ± {row[spread]:.1f}"
    return cell(f"{row[column]:.1f}", value=f"{row[column]:.6g}", title=f"{row[column]:.1f} %{se}")


def _answer_cells(facts: Facts | None, tested: bool) -> list[Cell]:
    """P-value, voxels, consistency and where, as the answer says."""
    if facts is None or facts.selected is None or facts.stability is None:
        return [cell(NONE)] * (3 + tested)
    per_fold, shared = facts.selected.per_fold, facts.stability.shared
    p = [] if not tested else [
        cell(NONE, value="nan") if facts.test is None
        else cell(two_digits(facts.test.p), value=f"{facts.test.p:.6g}")
    ]  # fmt: skip
    return [
        *p,
        cell(voxels_text(per_fold), value=f"{per_fold:.6g}"),
        cell(decimals(shared, 0), value=-1 if math.isnan(shared) else shared),
        cell(place_of(facts.places[0]) if facts.where == "clusters" else NONE, "where"),
    ]


# ---- each comparison ---------------------------------------------------------------------------------------


def comparisons(page: Page) -> dict[str, Any]:
    """The answer of every comparison, and all that belongs to it."""
    results = page.results
    drawn = results.drawn is not None and len(results.drawn) < len(results.tasks)
    blocks = [_block(page, subject, task) for subject in results.subjects for task in results.tasks]
    for first in blocks if len(results.tasks) <= FEW else ():
        first["unfolded"] = first["task"] is results.tasks[0]
    return {
        "blocks": blocks,
        "many": len(results.tasks) > 1,
        "drawn": len(results.drawn or ()) if drawn else None,
        "n_tasks": len(results.tasks),
    }


def _block(page: Page, subject: str, task: Mapping[str, Any]) -> dict[str, Any]:
    """One comparison."""
    results, contrast = page.results, task["contrast"]
    facts, who = page.facts[subject][contrast], page.who(subject)
    out = {
        "anchor": page.anchor(subject, contrast),
        "name": task["label"] + who,
        "task": task,
        "facts": facts,
        "unfolded": False,
    }
    if facts is None:
        return out
    clusters = [row for row in results.table(subject, "clusters") if row["contrast"] == contrast]
    shown = results.drawn is None or contrast in results.drawn
    return out | {
        "entries": entries(facts, results.linked, bool(results.classes.get("permutation"))),
        "sentence": sentence(facts),
        "thumbnail": thumbnail(results, subject, facts) if len(results.tasks) > 1 else None,
        "viewer": viewer(results, subject, task, facts) if shown else None,
        "maps": _maps(page, subject, task, facts) if shown else None,
        "clusters": _cluster_table(page, clusters) if clusters else None,
        "voxels": list(_voxel_lists(page, subject, contrast)),
        "files": _files(results, subject, contrast),
    }


def _maps(page: Page, subject: str, task: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    """The same cuts through the maps of all methods, and the selected voxels in a glass brain."""
    results, contrast = page.results, task["contrast"]
    found = {what for method in results.finished(subject, contrast)
             for what in results.inferred(subject, contrast, method)}  # fmt: skip
    stem = f"sub-{subject}_contrast-{contrast}"
    glass = results.folder.figure(f"{stem}_glass.png")
    lead = answering(results, subject, contrast)
    labels = (results.labels[method] for method in results.finished(subject, contrast) if method != lead)
    return {
        "parts": figure_parts(results.folder.figure(f"{stem}_maps.png")),
        "svg": results.folder.figure(f"{stem}_maps.svg"),
        "alt": f"Maps of {task['label']}{page.who(subject)}",
        "others": list(labels),
        "faded": not facts.selected.none if facts.selected else False,
        "flat": min(read_map(results.folder.mask(subject)).data.shape) == 1,
        "family_wise": "logpfwe" in found,
        "fdr": results.inference["fdr"] if "selection" in found else None,
        "information": bool(informative_voxels(results, subject, contrast)),
        "glass": glass if glass.is_file() else None,
    }


def _cluster_table(page: Page, rows: Sequence[Mapping[str, str]]) -> Table:
    """The largest clusters of each method."""
    results = page.results
    named = any(row.get("region", MISSING) not in (MISSING, "") for row in rows)
    extent = "Peak vertex" if page.w.on_surface else "mm³"
    head = ["Method", "Cluster", page.w.voxels.capitalize(), extent, "Peak x, y, z (mm)",
            *(["Region of the peak"] * named), "Peak weight", "Selected in folds"]  # fmt: skip
    body = []
    for method, label in results.labels.items():
        mine = [row for row in rows if row["method"] == method]
        body += [
            [
                name(label),
                f"{row['cluster']} of {len(mine)}",
                row["voxels"],
                _volume(row),
                tenths(peak_of_row(row)),
                *([row.get("region", MISSING)] * named),
                f"{number(row['peak_weight']):+.3g}",
                f"{100 * number(row['peak_selection_frequency']):.0f} %",
            ]
            for row in mine[:_CLUSTERS_SHOWN]
        ]
    return table(head, body)


def _volume(row: Mapping[str, str]) -> str:
    """The volume of a cluster in mm³; of one on a surface the vertex of its peak."""
    if "peak_vertex" in row:
        return f"{row['peak_hemisphere']} {row['peak_vertex']}"
    return f"{number(row['volume_mm3']):.0f}"


def _files(results: Results, subject: str, contrast: str) -> dict[str, dict[str, Path]]:
    """Every map and table of the comparison: those of any method first, then those of each method."""
    lines = {"Of the comparison, independent of the method": information_files(results, subject, contrast)}
    for method in results.finished(subject, contrast):
        lines[results.labels[method]] = method_files(results, subject, contrast, method)
    return {label: files for label, files in lines.items() if files}


def _voxel_lists(page: Page, subject: str, contrast: str) -> Iterator[dict[str, Any]]:
    """Voxels of a comparison that inference names, with their coordinates."""
    results, folder, w = page.results, page.results.folder, page.w
    for method in results.finished(subject, contrast):
        found, label = results.inferred(subject, contrast, method), results.labels[method]
        if "logpfwe" in found:
            path = folder.statmap(subject, contrast, entity(method), "logpfwe")
            used = compared_with([compared(inference_row(results, subject, contrast, method))])
            title = f"{label}: family-wise p ≤ {ALPHA} for the inclusion probability ({used})"
            yield _voxel_list(w, title, path, FAMILY_WISE)
        if "selection" in found:
            row = inference_row(results, subject, contrast, method)
            title = f"{label}: selected at a false-discovery rate of {results.inference['fdr']:g}"
            note = f"{w.said(row['fdr_verdict'].split(':')[0])}; {power_words(results, row)}"
            yield _voxel_list(w, title, folder.fdr_mask(subject, contrast, method), 1.0, note)
    if contrast in results.summary.information.get("contrasts", ()):
        path = folder.information(subject, contrast, "stat-logpfwe_statmap.nii.gz")
        what = f"{w.voxels.capitalize()} that carry information"
        yield _voxel_list(w, f"{what}, family-wise p ≤ {ALPHA}, independent of the method", path, FAMILY_WISE)


def _voxel_list(w: Words, title: str, path: Path, level: float, note: str = "") -> dict[str, Any]:
    """The voxels of a map from a level on, largest value first; maps of -log10 p show p."""
    image = read_image(path)
    space = space_of(image)
    values = space.values(image).astype(float)  # others are 0 and below every level
    there = np.flatnonzero(at_least(values, level))
    there = there[np.argsort(-values[there], kind="stable")]
    count, p = len(there), level == FAMILY_WISE
    places = space.coordinates()[there[:_LISTED]] if count else ()
    rows = [
        [tenths(place), *([two_digits(float(10 ** -values[voxel]))] * p)]
        for voxel, place in zip(there, places, strict=False)
    ]
    return {
        "title": f"{title}: {w.count(count) if count else 'none'}",
        "table": table(["x y z (mm)", *(["p"] * p)], rows, 0) if count else None,
        "note": note,
        "p": p,
        "path": path,
        "more": f"The first {_LISTED} of {count:,}. " if count > _LISTED else "",
    }


# ---- where no voxel was selected, and sides that are several conditions ------------------------------------


def few_samples(page: Page) -> dict[str, Any] | None:
    """What a page leads with when no single voxel can be named: the prediction and the pattern's places."""
    results, labels = page.results, page.labels()
    if not results.summary.pattern_clusters:
        return None
    subjects = []
    for subject in results.subjects:
        places = results.table(subject, "patternclusters")
        cells = dict.fromkeys((row["contrast"], row["method"]) for row in places)
        right = {each: 100 - results.row(subject, *each)["error_percent"] for each in cells}
        said = "; ".join(
            f"{labels[contrast]}, {results.labels[method]}: "
            f"{right[contrast, method]:.1f} % of held-out {page.w.samples} correct"
            for contrast, method in cells
            if contrast in labels
        )
        rows = [
            [
                name(labels.get(row["contrast"], row["contrast"])),
                name(results.labels[row["method"]]),
                name(row["higher_for"]),
                tenths(peak_of_row(row)),
                row["voxels"],
                f"{number(row['peak_pattern']):+.3g}",
            ]
            for row in places
            if number(row["cluster"]) <= _PLACES
        ]
        head = (
            "Comparison",
            "Method",
            "Signal is higher for",
            "Peak (mm)",
            page.w.voxels.capitalize(),
            "Pattern",
        )
        subjects.append({"said": said, "table": table(head, rows, 3)})
    data = results.summary.data
    size = f"{data['n_samples']:,} {page.w.samples} and {data['n_voxels']:,} {page.w.voxels}"
    return {"subjects": subjects, "size": size}


def people(page: Page) -> dict[str, Any] | None:
    """Forced choice within participants, sensitivity, specificity and area under the curve."""
    rows = page.results.summary.people
    if not rows:
        return None
    chosen = [row for row in rows if row["participants"]]
    tested = any(row["p_value"] is not None for row in rows)
    asked = ("Forced choice % (95 % interval)", *(["p"] if tested else [])) if chosen else ()
    head = ("Comparison", "Method", *asked, "Sensitivity %", "Specificity %", "AUC")
    body = [
        [
            name(row["comparison"]),
            name(page.results.labels[row["method"]]),
            *_choice(row)[: len(asked)],
            _or_none(row["sensitivity_percent"]),
            _or_none(row["specificity_percent"]),
            _or_none(row["auc"], 3),
        ]
        for row in rows
    ]
    counts = sorted({row["participants"] for row in chosen})
    return {"table": table(head, body, 2), "tested": tested, "participants": " to ".join(map(str, counts))}


def _choice(row: Mapping[str, Any]) -> tuple[str, str]:
    """The forced choice with its interval, and its p-value."""
    low, high = _or_none(row["low_percent"]), _or_none(row["high_percent"])
    choice = f"{_or_none(row['forced_choice_percent'])} ({low} to {high})" if row["participants"] else NONE
    return choice, NONE if row["p_value"] is None else two_digits(row["p_value"])


def _or_none(value: float | None, digits: int = 1) -> str:
    return NONE if value is None else f"{value:.{digits}f}"


def groups(page: Page) -> dict[str, Any] | None:
    """The members of every side that is several conditions, how many samples each gives in all and by run."""
    members = page.results.summary.members
    if not members:
        return None
    runs = list(members[0]["by_run"])
    few, word = len(runs) <= _MANY_RUNS, page.w.counted
    columns = [f"{word} {run}" for run in runs] if few else [f"smallest {word}", f"largest {word}"]
    body = []
    for row in members:
        counts = list(row["by_run"].values())
        shown = counts if few else [min(counts), max(counts)]
        total = cell(row["rows"], "caution" if row["dominates"] else "")
        names = (name(row[each]) for each in ("comparison", "side", "member"))
        body.append([*names, total, *(cell(count, "quiet") for count in shown)])
    head = ("Comparison", "Side", "Condition", page.w.samples, *columns)
    return {"table": table(head, body, 3), "cautions": member_cautions(page.results)}


def member_cautions(results: Results) -> list[str]:
    """A sentence about every side that one of its conditions dominates."""
    rows = results.summary.members
    out = []
    for row in rows:
        if row["dominates"]:
            same = [r["rows"] for r in rows if (r["contrast"], r["side"]) == (row["contrast"], row["side"])]
            share = 100 * row["rows"] / sum(same)
            out.append(
                f"{row['comparison']}: {row['member']} gives {share:.0f} % of the side {row['side']}, which "
                "is then mostly about this one condition. Compare it alone as well."
            )
    return out
