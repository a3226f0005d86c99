"""A block per comparison: its answer always there; maps, clusters, inference and files one click away."""

from collections.abc import Mapping
from typing import Any

from mvpa_gamp.imaging.surface_names import is_there
from mvpa_gamp.report.answer_box import map_line
from mvpa_gamp.report.answer_facts import facts_box, files_of, first_place
from mvpa_gamp.report.figure_parts import maps_figure
from mvpa_gamp.report.map_files import information_files, method_files
from mvpa_gamp.report.markup import (
    block,
    cell,
    details,
    figure,
    file_link,
    file_list,
    headings,
    paragraph,
    section,
    swatch,
    table,
    text,
)
from mvpa_gamp.report.outlines import has_selection
from mvpa_gamp.report.overview import anchor, answers
from mvpa_gamp.report.page_answers import EVERYBODY, NOBODY, Answer, answering, sentence
from mvpa_gamp.report.recommended import informative_voxels
from mvpa_gamp.report.style import colour_of
from mvpa_gamp.report.surface_figures import cluster_volume, surface_caption
from mvpa_gamp.report.viewer import thumbnail, viewer
from mvpa_gamp.report.volumes import read_map
from mvpa_gamp.report.voxel_lists import voxel_lists
from mvpa_gamp.report.words import tenths
from mvpa_gamp.results.files import MISSING, number
from mvpa_gamp.results.reader import Results

_CLUSTERS_SHOWN = 5
FEW = 3  # comparisons up to which the first one is open
_MEANING = {
    "Information": "The correlation of a voxel’s signal with the labels within runs, independent of the "
    "classifier; computed with --permutations, shown where its family-wise p is at most 0.05. "
    "Show this map in a paper to say where the two categories differ.",
    "Weight": "The coefficient of a voxel in the classifier. A weight is not activation: a voxel without "
    "signal can have a weight because it cancels the noise of its neighbours, and an active voxel can have "
    "none because another one carries the same information. Compare sizes within a method only: those of "
    "OneBitCS are sums over volumes, those of the others coefficients of a model.",
    "Pattern": "How a voxel’s signal changes with the classifier’s decision (Haufe et al., 2014): read it "
    "to see where the two categories differ. It does not show which voxels the classifier needed.",
    "Inclusion probability": "The posterior probability that the weight is not zero, given the model. It "
    "shows how certain the model is, not how large an effect is; methods without a posterior lack this map.",
    "Selection frequency": "The share of folds in which a voxel was selected. Folds share most of their "
    "training data, so a high frequency is repeatability, not independent replication.",
}


def comparisons_section(results: Results) -> str:
    """The answer of every comparison, and all that belongs to it."""
    many, few = len(results.tasks) > 1, len(results.tasks) <= FEW
    parts = []
    if results.drawn is not None and len(results.drawn) < len(results.tasks):
        parts.append(_left_out(results))
    for subject in results.subjects:
        clusters = results.table(subject, "clusters")
        for contrast, found in answers(results, subject).items():
            task = next(task for task in results.tasks if task["contrast"] == contrast)
            first = few and task is results.tasks[0]
            parts.append(_block(results, subject, task, found, clusters, unfolded=first))
    meaning = "".join(f"<dt>{text(k)}</dt><dd>{text(v)}</dd>" for k, v in _MEANING.items())
    parts.append(details("What the maps mean, and what they do not", f'<dl class="meaning">{meaning}</dl>'))
    return section("maps", "Comparison by comparison" if many else "The answer", *parts, many=many)


def _left_out(results: Results) -> str:
    return paragraph(
        f"Figures show {len(results.drawn or ())} of {len(results.tasks)} contrasts; "
        "generate_report(contrasts=[...]) draws the contrasts you name, max_contrasts=... more of them; "
        "to_bids writes all maps."
    )


def _block(
    results: Results, subject: str, task: Mapping[str, Any], found: Answer | None,
    clusters: list[dict[str, str]], unfolded: bool,
) -> str:  # fmt: skip
    """One comparison."""
    who = f", sub-{subject}" if len(results.subjects) > 1 else ""
    name, contrast = f"{task['label']}{who}", task["contrast"]
    place = anchor(results, subject, contrast)
    if found is None:
        return block(place, name, _head(name, "Every method failed on this comparison; there is no map."))
    said = sentence(found, results.fold_word)
    mine = [row for row in clusters if row["contrast"] == contrast]
    parts = [facts_box(results, subject, contrast, found)]
    if found.voxels in (0, found.n_voxels):
        parts.append(paragraph(EVERYBODY if found.voxels else NOBODY, kind="note"))
    if results.drawn is None or contrast in results.drawn:
        parts.append(
            viewer(results, subject, task, found.method, first_place(results, subject, contrast, found))
        )
        parts.append(_static_figure(results, subject, task, who, faded=found.voxels > 0))
        parts.append(_glass_brain(results, subject, task, results.labels[found.method]))
    if mine:
        parts.append(details("Largest clusters of selected voxels", _cluster_table(results, mine)))
    parts += voxel_lists(results, subject, contrast)
    title = "Files of this comparison" if results.linked else "Files that to_bids(folder) writes"
    parts.append(details(title, _file_table(results, subject, contrast)))
    shown = thumbnail(results, subject, contrast, found.method) if len(results.tasks) > 1 else ""
    files = files_of(results, subject, contrast, found)
    head = shown + _head(name, said, found.method, results.labels[found.method]) + map_line(files)
    return block(place, name, head, *parts, unfolded=unfolded)


def _head(name: str, said: str, method: str = "", label: str = "") -> str:
    """What is always there: the comparison, and its answer in a sentence."""
    by = f' <span class="by">{swatch(colour_of(method))}{text(label)}</span>' if method else ""
    return f'<h3>{text(name)}</h3>{by} <span class="said">{text(said)}</span>'


def _static_figure(results: Results, subject: str, task: Mapping[str, Any], who: str, faded: bool) -> str:
    """The same cuts through the maps of all methods."""
    kind = "PHANTOM, simulated. " if results.phantom else ""
    lead = answering(results, subject, task["contrast"])
    label = results.labels[str(lead)]
    fading = "; voxels that were not selected are faded" * faded
    outlines = _outline_words(results, subject, task["contrast"])
    flat = min(read_map(results.folder.mask(subject)).data.shape) == 1
    above = "" if flat else "Views from above show the largest value along the line of sight. "
    caption = (
        f"{kind}Maps of {text(label)}, fitted to all data; slices pass through its largest "
        f"{'weight' if faded else 'pattern'} (ring). <b>Orange to red</b> favours "
        f"{text(task['positive'])}, <b>blue</b> favours "
        f"{text(task['negative'])}{fading}. {text(outlines)}{above}"
        "Neurological convention: the left hemisphere is on the left."
    )
    caption = surface_caption(task, label, kind, outlines) if results.on_surface else caption
    stem = f"sub-{subject}_contrast-{task['contrast']}_maps"
    image, drawing = (results.folder.figure(stem + ending) for ending in (".png", ".svg"))
    link = f" {file_link(drawing, results.folder.root, words='SVG')}" if results.linked else ""
    others = [results.labels[name] for name in results.finished(subject, task["contrast"]) if name != lead]
    return maps_figure(image, caption, f"Maps of {task['label']}{who}", others, link, results.on_surface)


def _glass_brain(results: Results, subject: str, task: Mapping[str, Any], label: str) -> str:
    """The selected voxels in a glass brain, where there is one."""
    path = results.folder.figure(f"sub-{subject}_contrast-{task['contrast']}_glass.png")
    if not path.is_file():
        return ""
    caption = text(
        f"Glass brain (MNI space): weights of the voxels that {label} selected, the largest along each line "
        "of "
        "sight. The left hemisphere is on the left."
    )
    return figure(path, caption, f"Glass brain of {task['label']}", "beside")


def _outline_words(results: Results, subject: str, contrast: str) -> str:
    """What the tested map and the outlines are, if there are any."""
    found = {what for method in results.finished(subject, contrast)
             for what in results.inferred(subject, contrast, method)}  # fmt: skip
    said = []
    if "logpfwe" in found:
        said.append("solid outline: family-wise p ≤ 0.05")
    if has_selection(found):
        said.append(
            f"dotted outline in the inclusion probability: selected at FDR {results.inference['fdr']:g}"
        )
    drawn = is_there(results.folder.tested_information(subject, contrast))
    passed = bool(informative_voxels(results, subject, contrast))
    if passed and not drawn:  # folders of earlier versions
        said.append("grey outline in the pattern: carries information (family-wise p ≤ 0.05)")
    joined = "; ".join(said)
    outlines = f"{joined[:1].upper()}{joined[1:]}. " if said else ""
    return (_INFORMATION if passed and drawn else "") + outlines


_INFORMATION = (
    "Information: a voxel's correlation with the labels, where its family-wise p ≤ 0.05; it does not depend "
    "on the method. "
)
_TOUCH = {
    False: "touch (faces, edges or corners) form a cluster; coordinates are in the space of the image's "
    "affine",
    True: "edges of the mesh join form a cluster; coordinates are those of the mesh",
}  # by whether maps are on surfaces


def _cluster_table(results: Results, rows: list[dict[str, str]]) -> str:
    """The largest clusters of each method."""
    named = any(row.get("region", MISSING) not in (MISSING, "") for row in rows)
    regions = ["Region of the peak"] if named else []
    head = (
        "Method",
        "Cluster",
        "Voxels",
        "Peak vertex" if results.on_surface else "mm³",
        "Peak x, y, z (mm)",
        *regions,
        "Peak weight",
        "Selected in folds",
    )
    body = []
    for method, label in results.labels.items():
        mine = [row for row in rows if row["method"] == method]
        for row in mine[:_CLUSTERS_SHOWN]:
            peak = tenths(number(row[f"peak_{axis}_mm"]) for axis in "xyz")
            cells = (
                f"{row['cluster']} of {len(mine)}",
                row["voxels"],
                cluster_volume(row),
                peak,
                *([row.get("region", MISSING)] if named else []),
                f"{number(row['peak_weight']):+.3g}",
                f"{100 * number(row['peak_selection_frequency']):.0f} %",
            )
            body.append(cell(label, "name") + "".join(cell(value) for value in cells))
    caption = text(
        f"Voxels of the refit that {_TOUCH[results.on_surface]} ({results.summary.data['space']}). All "
        "clusters are in the clusters table of the subject's folder."
    )
    return table([headings(head)], body, caption)


def _file_table(results: Results, subject: str, contrast: str) -> str:
    """Every map and table of the comparison: those of any method first, then those of each method."""
    lines = {"Of the comparison, independent of the method": information_files(results, subject, contrast)}
    for method in results.finished(subject, contrast):
        lines[results.labels[method]] = method_files(results, subject, contrast, method)
    body = []
    for label, files in lines.items():
        if files:
            root = results.folder.root
            body.append(f"<h4>{text(label)}</h4>" + file_list(files, root, results.linked))
    return "".join(body)
