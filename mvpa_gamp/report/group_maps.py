"""The maps of a group on its page: figures, glass brains, links to the files."""

from collections.abc import Mapping
from pathlib import Path

from mvpa_gamp.report.brain_figures import MapLine, map_figure
from mvpa_gamp.report.glass_brain import glass_figure
from mvpa_gamp.report.group_places import WORDS, Maps, passed
from mvpa_gamp.report.group_results import Group
from mvpa_gamp.report.markup import figure, file_link, file_list, text
from mvpa_gamp.report.outlines import FAMILY_WISE, Outline
from mvpa_gamp.report.surface_figures import group_caption
from mvpa_gamp.report.volumes import read_map

_CAPTION = (
    "Means over participants of the fits' patterns (each scaled to unit root mean square first) and, where "
    "all methods have them, of inclusion probabilities, at the voxels analysed in all participants; and the "
    "share of participants that select a voxel (selection frequency). The same slices for every method: "
    "those through the answering method's largest pattern (ring). {outline}Views from above show the largest "
    "value of all slices on the outline of the analysed voxels. Grey voxels were not analysed in all "
    "participants. Neurological convention: the left hemisphere "
    "is on the left."
)
_TESTED = "Family-wise p: −log10 p over sign flips of participants, shown where p ≤ 0.05 (1.3). "
_OUTLINE = "Solid outline in the pattern: family-wise p ≤ 0.05 over sign flips of participants. "
_GLASS = (
    "Glass brain (MNI space): mean inclusion probability, the largest along each line of sight, where it is "
    "at least 0.2."
)


def draw_group_maps(group: Group) -> None:
    """Write the figures of every comparison into ``figures/``."""
    folder = group.folder
    for contrast in group.study["comparisons"]:
        lines = _lines(group, contrast)
        if not lines:
            continue
        drawn = map_figure(lines, folder.group_background, folder.group_mask, group.banner)
        drawn.write(folder.figure(f"group_contrast-{contrast}_maps"))
        for path in _glass_maps(group, contrast):
            stem = folder.figure(f"group_contrast-{contrast}_glass")
            glass_figure(path, False, group.banner).write(stem)


def _lines(group: Group, contrast: str) -> list[MapLine]:
    """A line per method, the answering one first."""
    maps = group.maps(contrast)
    methods = sorted(dict.fromkeys(key[0] for key in maps), key=lambda name: name != group.answering)
    return [MapLine(group.study["methods"][method], _drawn(maps, method), None, _outlines(maps, method))
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


def map_figures(group: Group, contrast: str) -> str:
    """The figures of a comparison."""
    label, folder = group.study["comparisons"][contrast], group.folder
    tested = any(of == "SignFlip" for _, of, _ in group.maps(contrast))
    stem = f"group_contrast-{contrast}_maps"
    link = f" {file_link(folder.figure(stem + '.svg'), folder.root, words='SVG')}"
    found = "logpfwe" in _lines(group, contrast)[0].paths
    outline = _TESTED * found + _OUTLINE * tested
    caption = group_caption(folder.group_mask, text(_CAPTION.format(outline=outline)), outline)
    picture = figure(folder.figure(stem + ".png"), caption, f"Mean maps of {label}", "wide maps", link)
    glass = folder.figure(f"group_contrast-{contrast}_glass.png")
    if glass.is_file():
        picture += figure(glass, text(_GLASS), f"Glass brain of {label}", "beside")
    return picture


_CLASSES = "group_classes_maps"
_CLASS_CAPTION = (
    "Maps of each class against the others, means over participants and over the pairs with that class; the "
    "same slices for all, those through the largest pattern of the first one (ring). {outline}Neurological "
    "convention: the left hemisphere is on the left."
)


def draw_class_maps(group: Group, maps: Mapping[str, Maps]) -> None:
    """Write the figure of all classes, a line each."""
    if not maps:
        return
    lines = []
    for name, paths in maps.items():
        named = {("", *key): path for key, path in paths.items()}
        lines.append(MapLine(name, _drawn(named, ""), None, _outlines(named, "")))
    folder = group.folder
    drawn = map_figure(lines, folder.group_background, folder.group_mask, group.banner)
    drawn.write(folder.figure(_CLASSES))


def class_figure(group: Group, maps: Mapping[str, Maps]) -> str:
    """The figure of all classes."""
    folder = group.folder
    tested = any(("SignFlip", "logpfwe") in paths for paths in maps.values())
    caption = text(_CLASS_CAPTION.format(outline=_OUTLINE * tested))
    caption = group_caption(folder.group_mask, caption, _OUTLINE * tested)
    link = f" {file_link(folder.figure(_CLASSES + '.svg'), folder.root, words='SVG')}"
    return figure(folder.figure(_CLASSES + ".png"), caption, "Mean maps of all classes", "wide maps", link)


def _words(of: str, stat: str) -> str:
    """What a map holds, in a few words; earlier versions wrote other kinds."""
    return WORDS.get((of, stat), f"{of.lower()} {stat}").split(":")[0]


def map_files(group: Group, contrast: str) -> str:
    """Links to every map of a comparison."""
    by_method: dict[str, dict[str, Path]] = {}
    for (method, of, stat), path in group.maps(contrast).items():
        by_method.setdefault(method, {})[_words(of, stat)] = path
    return "".join(
        f"<h4>{text(group.study['methods'][method])}</h4>{file_list(files, group.folder.root)}"
        for method, files in by_method.items()
    )
