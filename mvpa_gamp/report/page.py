"""The page: one self-contained HTML file, built from a results folder and nothing else."""

from collections.abc import Callable
from pathlib import Path

from mvpa_gamp.imaging.atomic_files import write_atomic
from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.report import brain_figures, plots
from mvpa_gamp.report.cautions import cautions
from mvpa_gamp.report.class_answers import class_answer_section
from mvpa_gamp.report.class_methods import draw_class_methods
from mvpa_gamp.report.classes import classes_section, draw_classes, fold_scores_section
from mvpa_gamp.report.cobidas import write_cobidas
from mvpa_gamp.report.comparisons import comparisons_section
from mvpa_gamp.report.convergence import convergence_section
from mvpa_gamp.report.cross import cross_section, draw_cross
from mvpa_gamp.report.cross_answers import cross_answer_section
from mvpa_gamp.report.data_words import held_out_word
from mvpa_gamp.report.few_samples import few_samples_section
from mvpa_gamp.report.for_the_paper import cobidas_section, methods_text_section
from mvpa_gamp.report.frame import banner, document, header
from mvpa_gamp.report.glass_brain import glass_figure, in_standard_space
from mvpa_gamp.report.groups import groups_section
from mvpa_gamp.report.inference import draw_inference, inference_section
from mvpa_gamp.report.markup import details
from mvpa_gamp.report.methods_compared import methods_compared_section
from mvpa_gamp.report.overview import overview_section
from mvpa_gamp.report.page_answers import answering
from mvpa_gamp.report.record import record_section
from mvpa_gamp.report.regions import draw_regions, regions_section
from mvpa_gamp.report.sections import confusion_section, consistency_section, phantom_section
from mvpa_gamp.report.surface_figures import worded
from mvpa_gamp.report.viewer import grounds
from mvpa_gamp.results.files import write_text
from mvpa_gamp.results.reader import Results, read_results

# The page from top to bottom: each section is a function of the results that returns HTML, or "" where it has
# nothing to say. A new one is a file of report/ and a line here; the navigation finds it by itself.
SECTIONS: tuple[Callable[[Results], str], ...] = (
    class_answer_section,
    classes_section,
    cross_answer_section,
    overview_section,
    comparisons_section,
    fold_scores_section,
    few_samples_section,
    regions_section,
    cross_section,
    groups_section,
    methods_compared_section,
    inference_section,
    consistency_section,
    phantom_section,
    confusion_section,
    convergence_section,
    methods_text_section,
    cobidas_section,
    record_section,
    grounds,
)
_PHANTOM = (
    "Everything on this page was computed from simulated volumes; none of it is a finding about a brain."
)
_WHITENED = (
    "Weights are mapped back to voxels; inclusion probabilities and selections are those of whitened voxels, "
    "each a mixture of a voxel and those whose noise it shares; weights have no standard deviations."
)
_CAUTIONS = 2  # shown at the top; more of them open on a click


def build_report(root: Path) -> Path:
    """Draw the figures and write ``index.html`` of a finished results folder; returns the page's path."""
    results = read_results(root)
    draw_figures(results)
    write_cobidas(results)
    return write_text(results.folder.page, render(results))


def draw_figures(results: Results) -> None:
    """Write every figure of the page into ``figures/``."""
    folder = results.folder
    if results.classes:
        draw_classes(results)
        draw_class_methods(results)
    if results.cross:
        draw_cross(results)
    for sub in results.subjects:
        if len(results.tasks) > 1:
            write_atomic(folder.figure(f"sub-{sub}_accuracy.svg"), plots.accuracy_and_stability(results, sub))
        write_atomic(folder.figure(f"sub-{sub}_accuracies.svg"), plots.fold_accuracies(results, sub))
        if results.has_folds:
            write_atomic(folder.figure(f"sub-{sub}_overlap.svg"), plots.overlap_matrices(results, sub))
            write_atomic(folder.figure(f"sub-{sub}_selection.svg"), plots.selection_spread(results, sub))
        if results.has_truth:
            write_atomic(folder.figure(f"sub-{sub}_truth.svg"), plots.precision_recall(results, sub))
        draw_inference(results, sub)
        draw_regions(results, sub)
        for task in results.shown.tasks:
            if results.finished(sub, task["contrast"]):
                stem = folder.figure(f"sub-{sub}_contrast-{task['contrast']}_maps")
                brain_figures.comparison_maps(results, sub, task["contrast"]).write(stem)
                _draw_glass_brain(results, sub, task["contrast"])


def _draw_glass_brain(results: Results, subject: str, contrast: str) -> None:
    """What the answering method selected, where coordinates are those of a standard brain."""
    method, folder = answering(results, subject, contrast), results.folder
    path = folder.statmap(subject, contrast, f"{entity(str(method))}Selected", "weight")
    if in_standard_space(results.summary.data) and path.is_file():
        stem = folder.figure(f"sub-{subject}_contrast-{contrast}_glass")
        glass_figure(path, True, results.banner).write(stem)


def render(results: Results, title: str = "") -> str:
    """The HTML of the page."""
    name = title or f"mvpa_gamp: {_who(results)}"
    name = f"PHANTOM – {name}" if results.phantom else name
    parts = [make(results) for make in SECTIONS]
    page = document(name, _header(results, title), parts, results.summary.version)
    return worded(page, results.folder.mask(results.subjects[0]))


def _who(results: Results) -> str:
    """The subjects, as in file names."""
    return ", ".join(f"sub-{subject}" for subject in results.subjects)


def _header(results: Results, title: str) -> str:
    """Title, what was decoded, and banners."""
    summary, data = results.summary, results.summary.data
    facts = {
        "subject": _who(results),
        "voxels": f"{data['n_voxels']:,}",
        f"{data.get('unit', 'volumes')} decoded": f"{data['n_samples']:,}",
        f"{held_out_word(summary)}s": "none" if data["n_runs"] is None else data["n_runs"],
        "comparisons": len(results.tasks),
        "methods": len(results.methods),
        **({} if summary.seed is None else {"seed": summary.seed}),
    }
    title = title or "Which voxels distinguish the categories"
    return header(title, data["description"], _banners(results), facts)


def _banners(results: Results) -> str:
    """What a reader must not miss: simulated data, results that need caution, what failed."""
    out = ""
    if results.phantom:
        out += banner(str(results.banner), _PHANTOM)
    if results.summary.processing.get("whiten"):
        out += banner("Noise whitened", _WHITENED)
    said = [banner("Caution", caution) for caution in cautions(results)]
    failed = [row for row in results.rows if row["status"] != "ok" and row["contrast"] != "average"]
    failed += [row for row in results.inference_rows() if row["status"] != "ok"]
    for row in failed:
        what = f"{results.labels[row['method']]} on {row['comparison']}: {row['status']}"
        said.insert(0, banner("Failed", what, "banner failed"))
    rest = said[_CAUTIONS:]
    more = f"{len(rest)} more caution{'s' * (len(rest) > 1)}"
    return out + "".join(said[:_CAUTIONS]) + (details(more, *rest) if rest else "")
