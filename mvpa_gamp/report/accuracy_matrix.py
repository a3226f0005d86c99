"""The accuracy of every pair of categories as a matrix to click on, of a participant or of a group."""

from collections.abc import Sequence
from dataclasses import dataclass

from mvpa_gamp.report.markup import cell, table, text
from mvpa_gamp.report.style import OVERLAP

_FEWEST = 3  # categories of a matrix
_CAPTION = "Accuracy (%), darker is higher; click on a pair for its maps."


@dataclass(frozen=True)
class Pair:
    """Two categories, where their comparison is on the page, and its accuracy (None where it failed)."""

    positive: str
    negative: str
    place: str
    accuracy: float | None = None
    chance: float = 50.0
    measure: str = "correct"


def accuracy_matrix(pairs: Sequence[Pair], caption: str = _CAPTION) -> str:
    """A cell per pair of categories; nothing where a matrix would hardly have any."""
    names = list(dict.fromkeys(name for pair in pairs for name in (pair.positive, pair.negative)))
    if len(names) < _FEWEST or len(names) == 2 * len(pairs):  # no category is in two pairs
        return ""
    known = {frozenset((pair.positive, pair.negative)): pair for pair in pairs}
    head = cell("", header=True) + "".join(f'<th class="turned"><span>{text(n)}</span></th>' for n in names)
    body = [
        cell(one, "name", header=True)
        + "".join(_cell(known.get(frozenset((one, other))), one, other) for other in names)
        for one in names
    ]
    return table([head], body, text(caption), "matrix")


def _cell(pair: Pair | None, one: str, other: str) -> str:
    if pair is None or one == other:
        return '<td class="none"></td>'
    label = f"{one} against {other}"
    if pair.accuracy is None:
        return f'<td><a href="#{text(pair.place)}" aria-label="{text(label)}: failed">–</a></td>'
    share = min(1.0, max(0.0, (pair.accuracy - pair.chance) / max(100 - pair.chance, 1e-9)))
    red, green, blue, _ = (round(255 * float(part)) for part in OVERLAP(0.85 * share))
    ink = "#fff" if share > 0.55 else "#22282e"
    return (
        f'<td style="background:rgb({red},{green},{blue})"><a style="color:{ink}" href="#{text(pair.place)}" '
        f'aria-label="{text(label)}: {pair.accuracy:.1f} % {text(pair.measure)}">'
        f"{pair.accuracy:.0f}</a></td>"
    )
