"""The page: one self-contained HTML file, built from a results folder and nothing else."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mvpa_gamp.report import comparisons, designs, inference, tables
from mvpa_gamp.report.cautions import cautions
from mvpa_gamp.report.cobidas import write_cobidas
from mvpa_gamp.report.facts import Page
from mvpa_gamp.report.figures import draw_figures
from mvpa_gamp.report.html import Renderer
from mvpa_gamp.report.viewer import grounds
from mvpa_gamp.results.files import write_text
from mvpa_gamp.results.reader import Results, read_results

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
    """Draw the figures and write ``index.html`` of a finished results folder; returns the page's path."""
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
