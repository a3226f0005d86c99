"""Every figure of a participant's page, drawn from a results folder into its ``figures/``."""

from dataclasses import replace

from mvpa_gamp.imaging.disk import write_atomic
from mvpa_gamp.imaging.names import entity, is_there
from mvpa_gamp.report.designs import CROSS_NULL, class_maps_path, confusion_path, cross_maps_path
from mvpa_gamp.report.facts import answering
from mvpa_gamp.report.figures.accuracy import (
    accuracy_and_stability,
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
