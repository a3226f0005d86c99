"""Every figure of the page of a participant or a group, drawn from a results folder into its ``figures/``."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mvpa_gamp.imaging.disk import write_atomic
from mvpa_gamp.imaging.names import entity, is_there
from mvpa_gamp.report.backdrops import FAMILY_WISE, read_map
from mvpa_gamp.report.designs import CROSS_NULL, class_maps_path, confusion_path, cross_maps_path
from mvpa_gamp.report.facts import answering
from mvpa_gamp.report.figures.accuracy import (
    accuracy_and_stability,
    accuracy_figure,
    fold_accuracies,
    overlap_matrices,
    precision_recall,
    selection_spread,
)
from mvpa_gamp.report.figures.brain import (
    MapLine,
    comparison_maps,
    glass_figure,
    in_standard_space,
    map_figure,
)
from mvpa_gamp.report.figures.nulls import (
    confusion_figure,
    cross_null_figure,
    learning_curves,
    null_accuracies,
    null_figure,
    region_bars,
    score_figure,
)
from mvpa_gamp.report.figures.panels import Outline
from mvpa_gamp.report.group_facts import Group, answering_designs, class_maps, passed
from mvpa_gamp.report.inference import inference_figures, region_tables, regions_of, regions_path
from mvpa_gamp.report.words import known
from mvpa_gamp.results.reader import Results

_MOST_CROSSES = 6  # whose maps are drawn; those of further crosses are in the folder


def draw_figures(results: Results) -> None:
    """Write every figure of the page into ``figures/``."""
    if results.classes:
        _draw_classes(results)
    if results.cross:
        _draw_crosses(results)
    for what, draw in (
        ("permutations", null_accuracies),
        ("learningcurve", learning_curves),
    ):
        for subject, path in inference_figures(results, what).items():
            write_atomic(path, draw(results, subject))
    for subject in results.subjects:
        _draw_participant(results, subject)
        for task in results.tasks:
            _draw_regions(results, subject, task["contrast"])
        for task in results.shown.tasks:
            if results.finished(subject, task["contrast"]):
                _draw_maps(results, subject, task["contrast"])


def _draw_participant(results: Results, subject: str) -> None:
    """Accuracies, overlap of folds, and how the planted voxels of a phantom are ranked."""
    drawn = {"accuracies": fold_accuracies}
    if len(results.tasks) > 1:
        drawn["accuracy"] = accuracy_and_stability
    if results.has_folds:
        drawn |= {"overlap": overlap_matrices, "selection": selection_spread}
    if results.has_truth:
        drawn["truth"] = precision_recall
    for name, draw in drawn.items():
        write_atomic(results.folder.figure(f"sub-{subject}_{name}.svg"), draw(results, subject))


def _draw_maps(results: Results, subject: str, contrast: str) -> None:
    """The maps of a comparison, and what the answering method selected in a glass brain of standard space."""
    folder, stem = results.folder, f"sub-{subject}_contrast-{contrast}"
    comparison_maps(results, subject, contrast).write(folder.figure(f"{stem}_maps"))
    method = answering(results, subject, contrast)
    path = folder.statmap(subject, contrast, f"{entity(str(method))}Selected", "weight")
    if in_standard_space(results.summary.data) and path.is_file():
        glass_figure(path, True, results.banner).write(folder.figure(f"{stem}_glass"))


def _draw_regions(results: Results, subject: str, contrast: str) -> None:
    """The first regions of every method."""
    named = {method: regions_of(rows) for method, rows in region_tables(results, subject, contrast).items()}
    if named:
        chance = 100 - results.row(subject, contrast, next(iter(named)))["chance_error_percent"]
        write_atomic(regions_path(results, subject, contrast), region_bars(results, named, chance))


def _draw_classes(results: Results) -> None:
    """Scores by fold, confusion, the null, and maps of every class."""
    folder, subject = results.folder, results.subjects[0]
    write_atomic(folder.figure("classes_scores.svg"), score_figure(results))
    write_atomic(folder.figure("classes_confusion.svg"), confusion_figure(results))
    if "permutation" in results.classes:
        write_atomic(folder.figure("classes_null.svg"), null_figure(results))
    for part in results.class_parts[1:]:
        alone = replace(results, summary=replace(results.summary, classes=part))
        write_atomic(confusion_path(results, part), confusion_figure(alone))
    for part in results.class_parts:
        if not part.get("maps") or results.summary.settings:  # a decoder's page draws its contrasts
            continue
        maps, desc = part["maps"], f"{entity(part['method'])}Class"
        lines = [
            MapLine(name, {stat: folder.statmap(subject, contrast, desc, stat) for stat in maps["stats"]})
            for name, contrast in zip(part["names"], maps["contrasts"], strict=True)
        ]
        image = map_figure(lines, folder.background(subject), folder.mask(subject), results.banner)
        image.write(class_maps_path(results, part).with_suffix(""))


def _draw_crosses(results: Results) -> None:
    """Nulls of crosses, and the maps of classifiers that were trained on some runs."""
    folder, subject = results.folder, results.subjects[0]
    if any(known(row["p_value"]) for row in results.cross_rows()):
        write_atomic(folder.figure(CROSS_NULL), cross_null_figure(results))
    own = [each for each in results.cross["crosses"] if each["own_maps"]]
    for each in own[:_MOST_CROSSES]:
        lines = []
        for method, label in results.labels.items():
            paths = {stat: folder.statmap(subject, each["name"], entity(method), stat)
                     for stat in ("weight", "pattern", "pip")}  # fmt: skip
            there = {stat: path for stat, path in paths.items() if is_there(path)}
            lines += [MapLine(label, there)] if there else []
        if lines:
            image = map_figure(lines, folder.background(subject), folder.mask(subject), results.banner)
            image.write(cross_maps_path(results, each).with_suffix(""))


def draw_group(group: Group) -> None:
    """Write every figure of the page into ``figures/``."""
    folder, names = group.folder, {label: label for label in group.study["comparisons"].values()}
    drawn = accuracy_figure(group.summary, group.accuracy, group.labels, names, group.banner)
    write_atomic(folder.figure("group_accuracy.svg"), drawn)
    for contrast in group.study["comparisons"]:
        if lines := line_maps(group, contrast):
            _draw_lines(group, lines, maps_path(group, contrast, "maps"))
            for path in _glass_maps(group, contrast):
                image = glass_figure(path, False, group.banner)
                image.write(maps_path(group, contrast, "glass").with_suffix(""))
    if group.designs:
        _draw_group_designs(group)


def maps_path(group: Group, contrast: str, kind: str) -> Path:
    """The figure of a comparison's ``maps``, or of its ``glass`` brain."""
    return group.folder.figure(f"group_contrast-{contrast}_{kind}.png")


def group_classes_path(group: Group) -> Path:
    """The figure of the maps of every class."""
    return group.folder.figure("group_classes_maps.png")


def _draw_group_designs(group: Group) -> None:
    """Accuracies of classes and crosses, and the maps of every class."""
    used = {row["method"] for row in group.designs}
    methods = {name: label for name, label in group.labels.items() if name in used}
    labels = dict.fromkeys(row["comparison"] for row in group.designs)
    names = {label: label.split(":")[0].replace(" → ", "\n→ ") for label in labels}  # in several lines
    drawn = accuracy_figure(group.designs, group.design_accuracy, methods, names, group.banner)
    write_atomic(group.folder.figure("group_designs.svg"), drawn)
    lead = next((row["method"] for row in answering_designs(group) if row["design"] == "classes"), None)
    lines = []
    for name, paths in class_maps(group, lead).items() if lead else ():
        named = {("", *key): path for key, path in paths.items()}
        lines.append(MapLine(name, _drawn_maps(named, ""), None, _outlines(named, "")))
    if lines:
        _draw_lines(group, lines, group_classes_path(group))


def _draw_lines(group: Group, lines: list[MapLine], path: Path) -> None:
    folder = group.folder
    map_figure(lines, folder.group_background, folder.group_mask, group.banner).write(path.with_suffix(""))


def line_maps(group: Group, contrast: str) -> list[MapLine]:
    """A line of maps per method, the answering one first."""
    maps = group.maps(contrast)
    methods = sorted(dict.fromkeys(key[0] for key in maps), key=lambda name: name != group.answering)
    return [MapLine(group.labels[method], _drawn_maps(maps, method), None, _outlines(maps, method))
            for method in methods]  # fmt: skip


def _drawn_maps(maps: Mapping[tuple[str, str, str], Path], method: str) -> dict[str, Path]:
    """What a method's line shows: the tested map where a voxel passed, then means and shares."""
    tested = maps.get((method, "SignFlip", "logpfwe"))
    lead = {} if tested is None or not passed(read_map(tested).data) else {"logpfwe": tested}
    return lead | {
        stat: path for (name, of, stat), path in maps.items() if name == method and of != "SignFlip"
    }


def _outlines(maps: Mapping[tuple[str, str, str], Path], method: str) -> list[Outline]:
    path = maps.get((method, "SignFlip", "logpfwe"))
    return [] if path is None else [Outline(path, FAMILY_WISE, "-", "pattern")]


def _glass_maps(group: Group, contrast: str) -> list[Path]:
    """The mean inclusion map of the first method that has one, in standard space."""
    if not str(group.study.get("space", "")).startswith("MNI"):
        return []
    return [path for (_, of, stat), path in group.maps(contrast).items() if (of, stat) == ("Mean", "pip")][:1]
