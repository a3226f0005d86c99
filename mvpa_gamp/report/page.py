"""The page: one self-contained HTML file from a results folder alone, cautions before everything."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from scipy.special import stdtrit

from mvpa_gamp.report import comparisons, designs, inference, tables
from mvpa_gamp.report.cobidas import write_cobidas
from mvpa_gamp.report.comparisons import member_cautions
from mvpa_gamp.report.facts import Page
from mvpa_gamp.report.figures import draw_figures
from mvpa_gamp.report.html import Renderer
from mvpa_gamp.report.viewer import grounds
from mvpa_gamp.results.files import write_text
from mvpa_gamp.results.reader import Results, read_results
from mvpa_gamp.results.tables import AVERAGE, BALANCED, leading_of_tasks

# The page from top to bottom: what each section says, by the name of its template. A function returns what
# the template needs, or None where it has nothing to say; the navigation finds a new section by itself.
SECTIONS: dict[str, Callable[[Page], Mapping[str, Any] | None]] = {
    "classes_answer": designs.classes_answer,
    "classes": designs.classes,
    "cross_answer": designs.cross_answer,
    "overview": comparisons.overview,
    "comparisons": comparisons.comparisons,
    "people": comparisons.people,
    "fold_scores": designs.fold_scores,
    "few_samples": comparisons.few_samples,
    "regions": inference.regions,
    "cross": designs.cross,
    "groups": comparisons.groups,
    "methods_compared": tables.methods_compared,
    "inference": inference.inference,
    "consistency": tables.consistency,
    "truth": tables.truth,
    "confusion": tables.confusion,
    "convergence": tables.convergence,
    "methods": tables.methods,
    "cobidas": tables.cobidas,
    "record": tables.record,
    "grounds": grounds,
}
_PHANTOM = (
    "Everything on this page was computed from simulated volumes; none of it is a finding about a brain."
)
_WHITENED = (
    "Weights are mapped back to {voxels}; inclusion probabilities and selections are those of whitened "
    "{voxels}, each a mixture of a {voxel} and those whose noise it shares; weights have no standard "
    "deviations."
)
_CAUTIONS = 2  # shown at the top; more of them open on a click


def build_report(root: Path) -> Path:
    """Draw the figures and write ``index.html`` of a finished results folder.

    Parameters
    ----------
    root
        The results folder.

    Returns
    -------
    Path
        The page.
    """
    results = read_results(root)
    draw_figures(results)
    write_cobidas(results)
    return write_text(results.folder.page, render(results))


def render(results: Results, title: str = "") -> str:
    """The HTML of the page."""
    page, summary = Page(results), results.summary
    who = ", ".join(f"sub-{subject}" for subject in results.subjects)
    if summary.data.get("counted") == "participant":
        who = f"{summary.data['n_runs']} participants"
    renderer = _renderer(page)
    body = [renderer.section(name, make(page)) for name, make in SECTIONS.items()]
    banners = _banners(page)
    rest = banners["cautions"][_CAUTIONS:]
    return renderer.page(
        body,
        title=f"{'PHANTOM – ' * results.phantom}{title or f'mvpa_gamp: {who}'}",
        heading=title or page.w.said("Which voxels distinguish the categories"),
        lead=page.w.said(summary.data["description"]),
        simulated=_PHANTOM,
        first=[*banners["notes"], *banners["cautions"][:_CAUTIONS]],
        rest=rest,
        more=f"{len(rest)} more caution{'s' * (len(rest) > 1)}",
        facts=_header(page, who),
        version=summary.version,
    )


def section(results: Results, name: str) -> str:
    """The HTML of one of the sections, "" where it has nothing to say."""
    page = Page(results)
    return _renderer(page).section(name, SECTIONS[name](page))


def _renderer(page: Page) -> Renderer:
    results = page.results
    shared = {"w": page.w, "phantom": results.banner, "space": results.summary.data["space"]}
    return Renderer(results.folder.root, results.linked, **shared)


def _header(page: Page, who: str) -> dict[str, Any]:
    """What was decoded, in numbers."""
    results, data, w = page.results, page.results.summary.data, page.w
    seed = results.summary.seed
    return {
        "subject": who,
        w.voxels: f"{data['n_voxels']:,}",
        f"{w.samples} decoded": f"{data['n_samples']:,}",
        f"{w.counted}s": "none" if data["n_runs"] is None else data["n_runs"],
        "comparisons": len(results.tasks),
        "methods": len(results.methods),
        **({} if seed is None else {"seed": seed}),
    }


def _banners(page: Page) -> dict[str, list[tuple[str, str, str]]]:
    """What a reader must not miss: kind, word and sentence of notes, of what failed, and of cautions."""
    results = page.results
    notes = []
    if results.summary.processing.get("whiten"):
        notes.append(("banner", "Noise whitened", _WHITENED.format(voxel=page.w.voxel, voxels=page.w.voxels)))
    failed = [row for row in results.rows if row["status"] != "ok" and row["contrast"] != "average"]
    failed += [row for row in results.inference_rows() if row["status"] != "ok"]
    said = [("banner", "Caution", page.w.said(caution)) for caution in cautions(results)]
    for row in failed:
        what = f"{results.labels[row['method']]} on {row['comparison']}: {row['status']}"
        said.insert(0, ("banner failed", "Failed", what))
    return {"notes": notes, "cautions": said}


_BALANCED = 0.8  # rarer over more frequent category; below, the majority alone is right in over 55 %


def cautions(results: Results) -> list[str]:
    """Sentences about comparisons and methods, in the order of the table."""
    crossed = [each["caution"] for each in results.summary.cross.get("crosses", ()) if each["caution"]]
    return [
        *leaks(results),
        *_dependent(results),
        *_confounded(results),
        *_unbalanced(results),
        *_below_chance(results),
        *member_cautions(results),
        *crossed,
        *_hardly_selecting(results),
        *_failed(results),
    ]


def leaks(results: Results) -> list[str]:
    """What the check before the first fit found; folders of earlier versions have none."""
    return [each["sentence"] for each in results.summary.leakage.get("findings", ())]


def _dependent(results: Results) -> list[str]:
    """Folds that may hold neighbours of the rows they train on."""
    if results.summary.data["n_runs"] is not None:
        return []
    return [
        "No groups were given. If the images are volumes of a scan, neighbours of test images were in the "
        "training set, and scores are too good."
    ]


def _confounded(results: Results) -> list[str]:
    """Covariates that decode a comparison by themselves."""
    return list(results.summary.fold_confounds.get("cautions", ()))


def _failed(results: Results) -> list[str]:
    """Fits that did not meet their stopping rule."""
    rows = [row for row in results.rows if row["contrast"] != AVERAGE and row["status"] == "ok"]
    folds, good = (int(sum(row[name] for row in rows)) for name in ("folds", "folds_converged"))
    return [f"{folds - good} of {folds} fits did not converge, see Convergence."] if good < folds else []


def _unbalanced(results: Results) -> list[str]:
    """Comparisons with many more volumes of one category."""
    out, unit = [], results.summary.data.get("unit", "volumes")
    for task in results.tasks:
        counts = [int(task.get(f"{side}_volumes", 0)) for side in ("positive", "negative")]
        if min(counts) < _BALANCED * max(counts):
            chance = 100 * max(counts) / sum(counts)
            with_what = (
                "The page reports balanced accuracy, with a chance level of 50 %"
                if leading_of_tasks(results.tasks) is BALANCED
                else "Compare accuracies with this"
            )
            out.append(
                f"{task['label']} is unbalanced, {counts[0]} against {counts[1]} {unit}: always predicting "
                f"the more frequent category is correct in {chance:.0f} %. {with_what}; "
                "methods without an intercept cannot use the imbalance."
            )
    return out


def _below_chance(results: Results) -> list[str]:
    """Comparisons that are decoded much worse than by guessing, with the methods that do so."""
    found: dict[str, list[str]] = {}
    for row in results.rows:
        if row["contrast"] != AVERAGE and row["status"] == "ok" and _is_below_chance(row):
            said = f"{results.labels[row['method']]} {row[BALANCED.column]:.1f} %"
            found.setdefault(row["comparison"], []).append(said)
    if not found:
        return []
    which = "; ".join(f"{comparison} ({', '.join(methods)})" for comparison, methods in found.items())
    word = results.fold_word
    return [
        f"Balanced accuracy is far below chance: {which}. Noise alone does this in up to 3 % of comparisons. "
        f"Possible causes are labels that are exchanged in some {word}s and an order of conditions that "
        f"changes between {word}s together with something else, such as drifts. "
        f"Check the labels of every {word}."
    ]


def _is_below_chance(row: Mapping[str, Any]) -> bool:
    """At least ten points below, and p < 0.005 by a t-test over folds (up to 3 % of noise: they depend)."""
    columns = BALANCED.chance, BALANCED.column, BALANCED.spread
    chance, reached, spread = (row.get(name, math.nan) for name in columns)  # earlier versions had none
    below = chance - reached
    if math.isnan(below) or below < 10 or row["folds"] < 3 or math.isnan(spread):
        return False
    return spread == 0 or below / spread > stdtrit(row["folds"] - 1, 0.995)


def _hardly_selecting(results: Results) -> list[str]:
    """Methods that select less than one voxel on average, with the comparisons where they do."""
    out = []
    for method, label in results.labels.items():
        rows = [row for row in results.rows if row["method"] == method and row["contrast"] != AVERAGE]
        empty = [row["comparison"] for row in rows if row["voxels"] < 1]
        if empty:
            where = ", ".join(empty)
            out.append(
                f"{label} selects less than one voxel per fold on {where}: there are too few samples, "
                "or too many redundant voxels, and its consistency there is meaningless. The prediction "
                "uses all voxels together: read accuracy and pattern."
            )
    return out
