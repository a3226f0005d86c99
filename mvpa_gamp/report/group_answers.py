"""The answers of a group, a block per comparison: how accurate, how sure, how common, where, which files."""

import math
from dataclasses import dataclass
from pathlib import Path

from mvpa_gamp.imaging.surface_names import is_surface_map
from mvpa_gamp.report.answer_box import Fact, Files, answer_box, map_line
from mvpa_gamp.report.answer_facts import stability_fact
from mvpa_gamp.report.answers import place_words
from mvpa_gamp.report.comparisons import FEW
from mvpa_gamp.report.group_maps import WORDS, map_figures, map_files
from mvpa_gamp.report.group_results import Group
from mvpa_gamp.report.group_words import words
from mvpa_gamp.report.markup import block, details, paragraph, section, swatch, text
from mvpa_gamp.report.outlines import FAMILY_WISE, at_least
from mvpa_gamp.report.printed import significant
from mvpa_gamp.report.style import colour_of
from mvpa_gamp.report.viewer import seen_from_above
from mvpa_gamp.report.volumes import peak_of, read_backdrop, read_map
from mvpa_gamp.results.files import number

Row = dict[str, str]


def answer_section(group: Group) -> str:
    """A block per comparison; of a few the first one is open."""
    by = (
        f"Answers are those of {group.study['methods'][group.answering]}, chosen by a fixed order of methods."
    )
    why = "" if group.study["maps"] else " There are no maps of the group; the notes above give the reason."
    rows = group.answers()
    blocks = [_block(group, row, unfolded=len(rows) <= FEW and row is rows[0]) for row in rows]
    title = "The answer" if group.unfolded else "Comparison by comparison"
    return section("answer", title, paragraph(by + why, kind="quiet"), *blocks, many=not group.unfolded)


def _block(group: Group, row: Row, unfolded: bool) -> str:
    """One comparison."""
    contrast, label = row["contrast"], row["comparison"]
    places = _places(group, row)
    head = _thumbnail(group, row) + (
        f'<h3>{text(label)}</h3> <span class="by">{swatch(colour_of(row["method"]))}'
        f'{text(group.study["methods"][row["method"]])}</span> <span class="said">'
        f"{text(sentence(group, row, places))}</span>"
    )
    paths = {WORDS[of, stat]: path for (_, of, stat), path in _ordered(group, row, places).items()}
    files = Files(paths, group.folder.root)
    head += map_line(files)
    parts = [answer_box(_facts(group, row, places), files)]
    if group.maps(contrast):
        parts += [
            map_figures(group, contrast),
            details("Files of this comparison", map_files(group, contrast)),
        ]
    return block(f"comparison-{contrast}", label, head, *parts, unfolded=unfolded)


@dataclass(frozen=True)
class Places:
    """What the group's maps come to; ``peak`` is "" where there are none."""

    peak: str = ""  # x y z in mm of the largest |t|, or of the largest mean pattern
    p: float = math.nan  # family-wise, there
    voxels: int = 0  # with a family-wise p of at most 0.05
    most: float = math.nan  # largest share of participants that select one voxel


def _places(group: Group, row: Row) -> Places:
    found = group.maps(row["contrast"], row["method"])
    maps = {key[1:]: read_map(path) for key, path in found.items()}
    tested, t = maps.get(("SignFlip", "logpfwe")), maps.get(("SignFlip", "t"))
    lead = t or maps.get(("Mean", "pattern"))
    if lead is None:
        return Places()
    at = peak_of(lead.data)
    share = maps.get(("Share", "selfreq"))
    return Places(
        place_words(lead.coordinates(at)),
        math.nan if tested is None else float(10 ** -tested.data[at]),
        0 if tested is None else int(at_least(tested.data, float(FAMILY_WISE)).sum()),
        math.nan if share is None else float(share.data.max()),
    )


def _ordered(group: Group, row: Row, places: Places) -> dict[tuple[str, str, str], Path]:
    """The maps of the answering method, the one to use first.

    As for a participant: what was tested if a voxel passed, else what classifiers need if participants
    selected voxels, else the pattern.
    """
    first = ("Mean", "pip") if places.most > 0 else ("Mean", "pattern")
    first = ("SignFlip", "logpfwe") if places.voxels else first
    maps = group.maps(row["contrast"], row["method"])
    keys = [(row["method"], *key) for key in sorted(WORDS, key=lambda key: key != first)]
    return {key: maps[key] for key in keys if key in maps}


def _thumbnail(group: Group, row: Row) -> str:
    """The share of participants that select a voxel, from above, where there are several comparisons."""
    path = group.maps(row["contrast"], row["method"]).get((row["method"], "Share", "selfreq"))
    if path is None or group.unfolded or is_surface_map(path) or not path.is_file():
        return ""
    backdrop = read_backdrop(group.folder.group_background, group.folder.group_mask)
    words = "Share of participants that select a voxel, from above"
    return seen_from_above(backdrop, backdrop.read(path).data, words, signed=False)


def sentence(group: Group, row: Row, places: Places) -> str:
    """The answer in one sentence, without the comparison's name."""
    said = words(row)
    where = f"; {_where(places)}" if places.peak else ""
    p = number(row.get("signflip_p_value", "n/a"))
    tested = "not tested across participants" if math.isnan(p) else f"p = {p:.2g}, sign flips"
    return (
        f"{said['accuracy']} correct on average over {said['participants']} participants ({said['lowest']} "
        f"to {said['highest']}; chance {said['chance']}, {tested}); above chance in "
        f"{said['significant']} (p ≤ {group.study['alpha']:g}, {row['test']}); prevalence "
        f"{said['prevalence']} (95 % interval {said['interval']}){_shared(group, row)}{where}."
    )


def _shared(group: Group, row: Row) -> str:
    """How stable the selections of participants are."""
    shared, chance = group.consistency(row["contrast"], row["method"])
    if math.isnan(shared):
        return ""
    return f"; two folds share {shared:.0f} % of the selected voxels (chance {significant(chance)} %)"


def _where(places: Places) -> str:
    if math.isnan(places.p):
        return f"places not tested, mean pattern strongest at {places.peak} mm"
    if not places.voxels:
        return (
            f"no voxel has a family-wise p ≤ 0.05, pattern largest (p = {places.p:.2g}) at {places.peak} mm"
        )
    return f"pattern largest (family-wise p = {places.p:.2g}) at {places.peak} mm"


def _facts(group: Group, row: Row, places: Places) -> list[Fact]:
    said = words(row)
    spread = number(row["accuracy_se_percent"])
    se = "" if math.isnan(spread) else f" ± {spread:.1f} (standard error)"
    note = (
        f"chance {said['chance']}; mean over {row['participants']} participants{se}; "
        f"{said['lowest']} to {said['highest']}"
    )
    return [
        Fact("How accurate", f"{number(row['accuracy_percent']):.1f} % correct", note),
        _sure(row),
        Fact("How common", f"{said['significant']} participants", _common(group, row)),
        _stable(group, row, places),
        _place_fact(group, places),
    ]


def _sure(row: Row) -> Fact:
    """The sign-flip test over participants."""
    p, least = number(row.get("signflip_p_value", "n/a")), number(row.get("signflip_smallest_p", "n/a"))
    if math.isnan(p):
        return Fact("How sure", "not tested", "too few participants for a test across them")
    holm = f"; {number(row['signflip_p_holm']):.2g} after Holm's correction"
    many = number(row.get("comparisons_tested", "1")) > 1
    note = f"sign flips of {row['participants']} participants; the smallest possible is {least:.2g}"
    return Fact("How sure", f"p = {p:.2g}", note + holm * many)


def _common(group: Group, row: Row) -> str:
    said = words(row)
    how = f"above chance by themselves (p ≤ {group.study['alpha']:g}, {row['test']})"
    if said["prevalence"] == "–":
        return f"{how}; the others cannot be tested"
    return f"{how}; prevalence {said['prevalence']}, 95 % interval {said['interval']}"


def _stable(group: Group, row: Row, places: Places) -> Fact:
    """Consistency of folds inside participants, and how many participants select the same voxel."""
    fact = stability_fact(*group.consistency(row["contrast"], row["method"]))
    n = len(group.study["subjects"])
    same = "" if math.isnan(places.most) else (
        f"; at most {round(places.most * n)} of {n} participants select the same voxel"
    )  # fmt: skip
    return Fact(fact.question, fact.said, f"{fact.note}; mean over participants{same}")


def _place_fact(group: Group, places: Places) -> Fact:
    if not places.peak:
        return Fact("Where", "no maps of the group", "the notes at the top of the page give the reason")
    space = f"; space: {group.study['space']}" if group.study.get("space") else ""
    if math.isnan(places.p):
        note = f"the mean pattern is largest at {places.peak} mm (x y z), a description{space}"
        return Fact("Where", "not tested", note)
    if not places.voxels:
        note = f"the pattern is largest at {places.peak} mm (x y z), family-wise p = {places.p:.2g}{space}"
        return Fact("Where", "no voxel at p ≤ 0.05", note)
    voxels = f"{places.voxels:,} voxel{'s' * (places.voxels != 1)}"
    note = (
        f"peak of the pattern over participants (x y z), family-wise p = {places.p:.2g}; {voxels} with "
        f"p ≤ 0.05{space}"
    )
    return Fact("Where", f"{places.peak} mm", note)
