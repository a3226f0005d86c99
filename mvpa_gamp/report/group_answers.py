"""The answers of a group, a block per comparison: how accurate, how sure, how common, where, which files."""

import math

from mvpa_gamp.report.answer_box import Fact, Files, answer_box, map_line
from mvpa_gamp.report.comparisons import FEW
from mvpa_gamp.report.group_facts import (
    Row,
    accuracy_fact,
    common_fact,
    holm_words,
    place_fact,
    stable_fact,
    sure_fact,
)
from mvpa_gamp.report.group_maps import map_figures, map_files
from mvpa_gamp.report.group_places import WORDS, Maps, Places, ordered, places_of
from mvpa_gamp.report.group_results import Group
from mvpa_gamp.report.group_viewer import backdrop_of_group, comparison_viewer, thumbnail
from mvpa_gamp.report.group_words import words
from mvpa_gamp.report.markup import block, details, paragraph, section, swatch, text
from mvpa_gamp.report.style import colour_of
from mvpa_gamp.report.surface_viewer import MeshBackdrop
from mvpa_gamp.report.volumes import Backdrop
from mvpa_gamp.report.words import significant
from mvpa_gamp.results.files import MISSING, number


def answer_section(group: Group) -> str:
    """A block per comparison; of a few the first one is open."""
    by = (
        f"Answers are those of {group.study['methods'][group.answering]}, chosen by a fixed order of methods."
    )
    why = "" if group.study["maps"] else " There are no maps of the group; the notes above give the reason."
    rows, backdrop = group.answers(), backdrop_of_group(group)
    blocks = [_block(group, row, backdrop, unfolded=len(rows) <= FEW and row is rows[0]) for row in rows]
    title = "The answer" if group.unfolded else "Comparison by comparison"
    return section("answer", title, paragraph(by + why, kind="quiet"), *blocks, many=not group.unfolded)


def _block(group: Group, row: Row, backdrop: Backdrop | MeshBackdrop | None, unfolded: bool) -> str:
    """One comparison."""
    contrast, label, maps = row["contrast"], row["comparison"], group.maps_of(row["contrast"], row["method"])
    places = places_of(maps)
    files = files_of(group, maps, places)
    head = str(thumbnail(group, backdrop, maps)) + head_of(group, row, sentence(group, row, places), files)
    parts = [
        answer_box(comparison_facts(group, row, places), files),
        comparison_viewer(group, backdrop, contrast, maps, places),
    ]
    if group.maps(contrast):
        parts += [
            map_figures(group, contrast),
            details("Files of this comparison", map_files(group, contrast)),
        ]
    return block(f"comparison-{contrast}", label, head, *parts, unfolded=unfolded)


def head_of(group: Group, row: Row, said: str, files: Files) -> str:
    """What of a block is always there: its name, the method, the answer in a sentence, the map."""
    return (
        f'<h3>{text(row["comparison"])}</h3> <span class="by">{swatch(colour_of(row["method"]))}'
        f'{text(group.study["methods"][row["method"]])}</span> <span class="said">{text(said)}</span>'
        f"{map_line(files)}"
    )


def files_of(group: Group, maps: Maps, places: Places) -> Files:
    """The maps of a comparison by what they show, the one to use first."""
    return Files({WORDS[key]: path for key, path in ordered(maps, places).items()}, group.folder.root)


def comparison_facts(group: Group, row: Row, places: Places) -> list[Fact]:
    """What the box of a comparison says."""
    return [
        accuracy_fact(row),
        sure_fact(row),
        common_fact(group, row),
        stable_fact(group, row["contrast"], row["method"], places),
        place_fact(group, places, row["contrast"]),
    ]


def sentence(group: Group, row: Row, places: Places) -> str:
    """The answer in one sentence, without the comparison's name."""
    where = f"; {_where(group, row, places)}" if places.peak else ""
    return f"{score_sentence(group, row)}{_shared(group, row)}{where}."


def score_sentence(group: Group, row: Row) -> str:
    """How accurate, how sure and how common, in a line."""
    said = words(row)
    p = number(row.get("signflip_p_value", MISSING))
    tested = "not tested across participants" if math.isnan(p) else f"p = {p:.2g}, sign flips"
    common = (
        f"; above chance in {said['significant']} (p ≤ {group.study['alpha']:g}, {row['test']})"
        if int(row["tested"])
        else ""
    )
    return (
        f"{said['accuracy']} correct on average over {said['participants']} participants ({said['lowest']} "
        f"to {said['highest']}; chance {said['chance']}, {tested}{holm_words(row)}){common}"
    )


def _shared(group: Group, row: Row) -> str:
    """How stable the selections of participants are."""
    shared, chance = group.consistency(row["contrast"], row["method"])
    if math.isnan(shared):
        return ""
    return f"; two folds share {shared:.0f} % of the selected voxels (chance {significant(chance)} %)"


def _where(group: Group, row: Row, places: Places) -> str:
    at = f"{places.peak} mm (higher for {group.side(row['contrast'], places.higher)})"
    if math.isnan(places.p):
        return f"location not tested, mean pattern strongest at {at}"
    if not places.voxels:
        return f"no voxel has a family-wise p ≤ 0.05, mean pattern strongest at {at}"
    return f"largest |t| of the pattern (family-wise p = {places.p:.2g}) at {at}"
