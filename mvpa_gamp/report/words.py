"""Numbers and notions in print: the same on the terminal, on pages and in texts."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mvpa_gamp.imaging.names import in_vertices
from mvpa_gamp.results.files import MISSING, number
from mvpa_gamp.results.reader import Results

ALPHA = 0.05
NONE = "–"  # in place of a number that does not exist
_RUNS = re.compile(r"\brun(s?)\b(?!\.\w| time)")
Compared = tuple[int, bool]  # how many label vectors a test compared with, and whether these are all others


@dataclass(frozen=True)
class Words:
    """What the data of a study are called: ``w`` in every template and in every record of facts."""

    voxel: str = "voxel"
    voxels: str = "voxels"
    samples: str = "volumes"
    run: str = "run"  # what a fold holds out
    counted: str = "run"  # what the numbers of runs count

    @property
    def on_surface(self) -> bool:
        """Whether maps are on meshes."""
        return self.voxel == "vertex"

    def count(self, n: int) -> str:
        """So many voxels."""
        return f"{n:,} {self.voxel if n == 1 else self.voxels}"

    def said(self, text: str) -> str:
        """A sentence that speaks of voxels and of runs, whatever they are here."""
        text = text if self.counted == "run" else _RUNS.sub(rf"{self.counted}\1", text)
        return in_vertices(text) if self.on_surface else text


def words_of(results: Results) -> Words:
    """The words of a participant's results."""
    summary = results.summary
    counted = "session" if summary.held_out == "session" else summary.data.get("counted", "run")
    return words_for(results.on_surface, summary.data.get("unit", "volumes"), summary.held_out, counted)


def words_for(on_surface: bool, samples: str = "volumes", run: str = "run", counted: str = "run") -> Words:
    """The words for maps of voxels or of vertices."""
    return Words(*(("vertex", "vertices") if on_surface else ("voxel", "voxels")), samples, run, counted)


def significant(value: float) -> str:
    """A small percentage with as many decimals as it needs: 12, 3.4, 0.12, 0.013."""
    if value == 0 or value >= 10:
        return f"{value:.0f}" if value != 0 else "0"
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def voxels_text(value: float) -> str:
    """A mean number of voxels, with a decimal where it is small."""
    if math.isnan(value):
        return NONE
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def chance_text(percent: float) -> str:
    """A chance level the same way everywhere: 50, or 50.2 where it is not a whole percentage."""
    return f"{percent:.1f}".removesuffix(".0")


def seconds_text(value: float) -> str:
    """Seconds with a decimal where it says something."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def span(values: Iterable[str]) -> str:
    """The first and the last of some texts, or the one they are: "3 to 7", "5"."""
    known = list(values)
    return " to ".join(dict.fromkeys((known[0], known[-1])))


def decimals(value: float | str, digits: int, unit: str = "") -> str:
    """A number with so many decimals, a dash where there is none; a cell of a table is its text."""
    known = number(value) if isinstance(value, str) else value
    return NONE if math.isnan(known) else f"{known:.{digits}f}{unit}"


def two_digits(value: float | str) -> str:
    """A p-value, or another small number, in two digits."""
    known = number(value) if isinstance(value, str) else value
    return NONE if math.isnan(known) else f"{known:.2g}"


def p_words(p: float) -> str:
    """A p-value in two digits."""
    return f"p = {p:.2g}"


def tenths(place: Iterable[float]) -> str:
    """Coordinates in tenths of a mm, the same whether read from a table or computed."""
    return ", ".join(f"{rounded(10 * float(value)) / 10:.1f}" for value in place)


def rounded(value: float) -> int:
    """A whole number, halves upwards, also where tables keep fewer digits than the computer."""
    return math.floor(round(value, 3) + 0.5)


def whole(value: float) -> str:
    """A coordinate in whole mm, halves upwards as in the viewer."""
    return str(rounded(value)).replace("-", "−")


def place_words(place: Iterable[float]) -> str:
    """Coordinates in whole mm."""
    return " ".join(whole(float(value)) for value in place)


def peak_of_row(row: Mapping[str, str]) -> list[float]:
    """Where the peak of a row of a table is, x y z in mm."""
    return [number(row[f"peak_{axis}_mm"]) for axis in "xyz"]


def compared_with(tests: Iterable[Compared], of: str = "the labels") -> str:
    """What one or several tests compared with.

    >>> compared_with([(200, False)]), compared_with([(63, True)])
    ('200 permutations', 'all 63 other arrangements of the labels')
    >>> compared_with([(200, False), (63, True)])
    '200 permutations (all 63 other arrangements of the labels where no more exist)'
    """
    known = sorted(set(tests))
    drawn, whole = (
        " or ".join(f"{n:,}" for n, every in known if every is wanted) for wanted in (False, True)
    )
    every = f"all {whole} other arrangements of {of}"
    if not drawn:
        return every
    return f"{drawn} permutations" + (f" ({every} where no more exist)" if whole else "")


def compared(row: Mapping[str, str]) -> Compared:
    """What the test of a row of inference.tsv or cross.tsv compared with."""
    n = int(row["permutations"])
    return n, n == int(row["labellings"]) - 1


def compared_classes(test: Mapping[str, Any]) -> Compared:
    """The same of the test of all classes together, as summary.json has it."""
    return test["n"], test["exact"]


def known(value: str) -> bool:
    """Whether a cell of a table has a value."""
    return value != MISSING
