"""The page: one self-contained HTML file, built from a results folder and nothing else."""

from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from mvpa_gamp.imaging.atomic_files import write_atomic
from mvpa_gamp.report import brain_figures, plots
from mvpa_gamp.report.cautions import cautions
from mvpa_gamp.report.class_plots import mean_score
from mvpa_gamp.report.classes import classes_section, draw_classes
from mvpa_gamp.report.convergence import convergence_section
from mvpa_gamp.report.few_samples import few_samples_section
from mvpa_gamp.report.headline import headline_section
from mvpa_gamp.report.inference import draw_inference, inference_section
from mvpa_gamp.report.markup import details, paragraph, section, text
from mvpa_gamp.report.methods_text import methods_paragraphs, references
from mvpa_gamp.report.regions import draw_regions, regions_section
from mvpa_gamp.report.sections import (
    comparisons_section,
    confusion_section,
    consistency_section,
    errors_section,
    phantom_section,
)
from mvpa_gamp.results.files import read_json, write_text
from mvpa_gamp.results.reader import Results, read_results

_PHANTOM = (
    "Everything on this page was computed from simulated volumes; none of it is a finding about a brain."
)
_WHITENED = (
    "Weights are mapped back to voxels; inclusion probabilities and selections are those of whitened voxels, "
    "each a mixture of a voxel and those whose noise it shares; weights have no standard deviations."
)
# Nothing may be fetched and no script may run, whatever a label contains.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def build_report(root: Path) -> Path:
    """Draw the figures and write ``index.html`` of a finished results folder; returns the page's path."""
    results = read_results(root)
    draw_figures(results)
    return write_text(results.folder.page, render(results, results))


def draw_figures(results: Results) -> None:
    """Write every figure of the page into ``figures/``."""
    folder = results.folder
    if results.classes:
        draw_classes(results)
    for sub in results.subjects:
        write_atomic(folder.figure(f"sub-{sub}_accuracy.svg"), plots.accuracy_and_stability(results, sub))
        write_atomic(folder.figure(f"sub-{sub}_errors.svg"), plots.fold_errors(results, sub))
        if results.has_folds:
            write_atomic(folder.figure(f"sub-{sub}_overlap.svg"), plots.overlap_matrices(results, sub))
        write_atomic(folder.figure(f"sub-{sub}_selection.svg"), plots.selection_frequency(results, sub))
        if results.has_truth:
            write_atomic(folder.figure(f"sub-{sub}_truth.svg"), plots.precision_recall(results, sub))
        draw_inference(results, sub)
        draw_regions(results, sub)
        for task in results.tasks:
            if results.finished(sub, task["contrast"]):
                name = f"sub-{sub}_contrast-{task['contrast']}_maps.png"
                image = brain_figures.comparison_maps(results, sub, task["contrast"])
                write_atomic(folder.figure(name), image)


def render(results: Results, shown: Results, title: str = "") -> str:
    """The HTML of the page; ``shown`` are the comparisons that have figures."""
    sections = [
        *([classes_section(results)] if results.classes else []),
        few_samples_section(results),
        headline_section(results),
        errors_section(shown),
        *([inference_section(results)] if results.inference else []),
        comparisons_section(shown, left_out=len(results.tasks) - len(shown.tasks)),
        regions_section(results),
        *([consistency_section(shown)] if results.has_folds else []),
        *([phantom_section(results)] if results.has_truth else []),
        convergence_section(results),
        confusion_section(results),
        _methods_section(results),
        _record_section(results),
    ]
    name = title or f"mvpa_gamp: {_who(results)}"
    name = f"PHANTOM – {name}" if results.phantom else name
    return document(name, _header(results, title), sections, results.study["version"])


def document(title: str, header: str, sections: Iterable[str], version: str) -> str:
    """A self-contained page with the shared look."""
    css = resources.files("mvpa_gamp.report").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n"
        f'<link rel="icon" href="data:,">\n<style>\n{css}</style>\n</head>\n<body>\n{header}\n'
        + "\n".join(sections)
        + f"\n<footer>Written by mvpa_gamp {text(version)}.</footer>\n</body>\n</html>\n"
    )


def header(title: str, lead: str, banners: str, facts: Mapping[str, Any], links: Mapping[str, str]) -> str:
    """The top of a page: title, a sentence, banners (HTML), facts and navigation by anchor."""
    entries = "".join(f"<div><dt>{text(k)}</dt><dd>{text(v)}</dd></div>" for k, v in facts.items())
    navigation = "".join(f'<a href="#{anchor}">{text(name)}</a>' for anchor, name in links.items())
    return (
        f"<header>\n<h1>{text(title)}</h1>\n"
        f'<p class="lead">{text(lead)}</p>\n{banners}'
        f'<dl class="facts">{entries}</dl>\n<nav>{navigation}</nav>\n</header>'
    )


def banner(strong: str, sentence: str, kind: str = "banner") -> str:
    """A paragraph that a reader must not miss."""
    return f'<p class="{kind}"><strong>{text(strong)}.</strong> {text(sentence)}</p>\n'


def _who(results: Results) -> str:
    """The subjects, as in file names."""
    return ", ".join(f"sub-{subject}" for subject in results.subjects)


def _header(results: Results, title: str) -> str:
    """Title, what was decoded, banner and navigation."""
    study, data = results.study, results.study["data"]
    facts = {
        "subject": _who(results),
        "voxels": f"{data['n_voxels']:,}",
        data.get("unit", "volumes"): f"{data['n_samples']:,}",
        "runs": "none" if data["n_runs"] is None else data["n_runs"],
        "comparisons": len(results.tasks),
        "methods": len(results.methods),
        **({} if study["seed"] is None else {"seed": study["seed"]}),
        **({results.classes["scoring"]: f"{mean_score(results):.3f}"} if results.classes else {}),
    }
    links = {
        **({"scores": "Scores"} if results.classes else {}),
        **({"pattern": "Pattern"} if results.study.get("pattern_clusters") else {}),
        "headline": "Table",
        "errors": "Errors",
        **({"inference": "Inference"} if results.inference else {}),
        "maps": "Brain maps",
        **({"regions": "Regions"} if results.study.get("regions") else {}),
        **({"consistency": "Consistency"} if results.has_folds else {}),
        **({"truth": "Planted truth"} if results.has_truth else {}),
        "convergence": "Convergence",
        "confusion": "Confusion",
        "methods": "Methods text",
        "record": "Settings",
    }
    title = title or "Which voxels tell the categories apart"
    return header(title, data["description"], _banners(results), facts, links)


def _banners(results: Results) -> str:
    """What a reader must not miss: simulated data, results that need caution, what failed."""
    out = ""
    if results.phantom:
        out += banner(str(results.banner), _PHANTOM)
    if results.study["processing"].get("whiten"):
        out += banner("Noise whitened", _WHITENED)
    for caution in cautions(results):
        out += banner("Caution", caution)
    failed = [row for row in results.rows if row["status"] != "ok" and row["contrast"] != "average"]
    failed += [row for row in results.inference_rows() if row["status"] != "ok"]
    for row in failed:
        what = f"{results.labels[row['method']]} on {row['comparison']}: {row['status']}"
        out += banner("Failed", what, "banner failed")
    return out


def _methods_section(results: Results) -> str:
    """The paragraph for a paper and its references."""
    prose = "".join(f"<p>{text(part)}</p>" for part in methods_paragraphs(results))
    works = "".join(f"<li>{text(work)}</li>" for work in references(results))
    return section(
        "methods",
        "Methods text, ready for a paper",
        paragraph("Written from the settings of this run; adapt it freely and cite the works below."),
        f'<div class="prose">{prose}</div>',
        f'<ol class="references">{works}</ol>',
    )


def _record_section(results: Results) -> str:
    """Settings, versions and notes: what is needed to repeat the run."""
    folder = results.folder
    notes = "".join(f"<li>{text(note)}</li>" for note in results.study["data"]["notes"])
    versions = "\n".join(f"{k}: {v}" for k, v in read_json(folder.environment).items())
    return section(
        "record",
        "Settings, versions and seed",
        f"<ul>{notes}</ul>" if notes else "",
        f"<pre>{text(_study_settings(results))}</pre>",
        details("Versions and machine", f"<pre>{text(versions)}</pre>"),
        details("Where the data came from", f"<pre>{text(_provenance(results))}</pre>"),
        details("What each method was set to", f"<pre>{text(_settings(results))}</pre>"),
    )


def _study_settings(results: Results) -> str:
    """config.toml, or the settings of a decoder."""
    own = results.study.get("settings")
    if own:
        return "\n".join(f"{name}: {value}" for name, value in own.items())
    return results.folder.config.read_text(encoding="utf-8")


def _provenance(results: Results) -> str:
    """The record of the data door, one line per item."""
    return "\n".join(f"{key}: {value}" for key, value in results.study["data"]["provenance"].items())


def _settings(results: Results) -> str:
    """The settings of every method object, one line each."""
    return "\n".join(f"{method['name']}: {method['settings']}" for method in results.methods)
