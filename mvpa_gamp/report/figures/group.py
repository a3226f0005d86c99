"""The figures of a group's page: accuracies of participants, maps of every comparison and of every class."""

from collections.abc import Mapping
from pathlib import Path

from mvpa_gamp.imaging.disk import write_atomic
from mvpa_gamp.report.backdrops import read_map
from mvpa_gamp.report.figures.accuracy import accuracy_figure
from mvpa_gamp.report.figures.brain import MapLine, glass_figure, map_figure
from mvpa_gamp.report.figures.panels import FAMILY_WISE, Outline
from mvpa_gamp.report.group_facts import Group, answering_designs, class_maps, passed


def draw_group(group: Group) -> None:
    """Write every figure of the page into ``figures/``."""
    folder, names = group.folder, {label: label for label in group.study["comparisons"].values()}
    drawn = accuracy_figure(group.summary, group.accuracy, group.labels, names, group.banner)
    write_atomic(folder.figure("group_accuracy.svg"), drawn)
    for contrast in group.study["comparisons"]:
        if lines := line_maps(group, contrast):
            _draw_maps(group, lines, maps_path(group, contrast, "maps"))
            for path in _glass_maps(group, contrast):
                image = glass_figure(path, False, group.banner)
                image.write(maps_path(group, contrast, "glass").with_suffix(""))
    if group.designs:
        _draw_designs(group)


def maps_path(group: Group, contrast: str, kind: str) -> Path:
    """The figure of a comparison's ``maps``, or of its ``glass`` brain."""
    return group.folder.figure(f"group_contrast-{contrast}_{kind}.png")


def class_maps_path(group: Group) -> Path:
    """The figure of the maps of every class."""
    return group.folder.figure("group_classes_maps.png")


def _draw_designs(group: Group) -> None:
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
        lines.append(MapLine(name, _drawn(named, ""), None, _outlines(named, "")))
    if lines:
        _draw_maps(group, lines, class_maps_path(group))


def _draw_maps(group: Group, lines: list[MapLine], path: Path) -> None:
    folder = group.folder
    map_figure(lines, folder.group_background, folder.group_mask, group.banner).write(path.with_suffix(""))


def line_maps(group: Group, contrast: str) -> list[MapLine]:
    """A line of maps per method, the answering one first."""
    maps = group.maps(contrast)
    methods = sorted(dict.fromkeys(key[0] for key in maps), key=lambda name: name != group.answering)
    return [MapLine(group.labels[method], _drawn(maps, method), None, _outlines(maps, method))
            for method in methods]  # fmt: skip


def _drawn(maps: Mapping[tuple[str, str, str], Path], method: str) -> dict[str, Path]:
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
