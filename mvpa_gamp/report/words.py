"""Numbers, notions and steps in print: the same on the terminal, on pages and in texts."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mvpa_gamp.imaging.names import PEOPLE, in_maps, in_vertices
from mvpa_gamp.results.files import MISSING, number
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.summary import Summary

ALPHA = 0.05
NONE = "–"  # in place of a number that does not exist
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
        text = in_maps(text, self.counted) if self.counted in PEOPLE else text
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


_NAMED = 6  # comparisons that are named one by one


def held_out_word(summary: Summary) -> str:
    """What the numbers of runs count: runs, sessions where these are held out, or participants."""
    return "session" if summary.held_out == "session" else summary.data.get("counted", "run")


def comparison_words(tasks: Sequence[Mapping[str, Any]]) -> str:
    """The comparisons by name; many that are all pairs of some categories by these."""
    names = list(dict.fromkeys(task[side] for side in ("positive", "negative") for task in tasks))
    if len(tasks) > _NAMED and 2 * len(tasks) == len(names) * (len(names) - 1):
        return f"all pairs of {', '.join(names[:-1])} and {names[-1]}"
    return ", ".join(task["label"] for task in tasks)


def rest_words(data: Mapping[str, Any]) -> str:
    """What became of volumes in no event; models and given maps have none."""
    whole = data.get("kind", "volume") in ("volume", "block")
    return "; all other volumes (rest, other categories) were left out" if whole else ""


def left_out_words(steps: Mapping[str, Any]) -> str:
    """The volumes that took no part in anything."""
    counts = {
        "before the steady state": "non_steady_state_volumes",
        "with too much motion": "scrubbed_volumes",
    }
    told = [f"{steps[name]} volumes {which}" for which, name in counts.items() if steps.get(name)]
    return f"{' and '.join(told)} were excluded from the analysis. " if told else ""


def trial_words(steps: Mapping[str, Any]) -> str:
    """The general linear model that single trials are the effects of."""
    each = {
        "lss": "each trial by its own model, in which the other trials of its condition share a "
        "regressor and each other condition has one (least squares separate; Mumford et al., 2012)",
        "lsa": "all trials by one model with a regressor for each (least squares all)",
    }[steps["trial_model"]]
    drifts = {
        "cosine": f"cosine drifts (periods above {1 / (steps.get('high_pass') or 0.01):.0f} s)",
        "polynomial": "a polynomial drift",
        "none": "no drifts",
    }[steps["drift_model"]]
    smooth = steps.get("smoothing_fwhm")
    before = f" after smoothing with a Gaussian kernel of {smooth:g} mm FWHM" if smooth else ""
    also = f" and {confound_words(steps)}" if steps.get("confound_columns") else ""
    done = "z-scored within each run" if steps.get("standardize") is True else steps.get("standardize")
    scaled = f"; effects were {done}" if done else ""
    return (
        f"Effects of single trials were estimated run by run{before}, {each}, by ordinary least squares in "
        f"nilearn's designs (response model {steps['hrf_model']}) with {drifts}{also}, in per cent of each "
        f"voxel's mean{scaled}."
    )


def confound_words(steps: Mapping[str, Any]) -> str:
    """Which confounds, and who chose them."""
    strategy = steps.get("confounds_strategy")
    chosen = f", chosen by nilearn's strategy {strategy}," if strategy else ""
    return f"confound time series{named(steps.get('confound_columns') or ())}{chosen}"


def named(columns: Sequence[str]) -> str:
    """The first few confounds in brackets, where their names are known."""
    more = f" and {len(columns) - 6} more" if len(columns) > 6 else ""
    return f" ({', '.join(columns[:6])}{more})" if columns else ""


_WHITENED = (
    "Before each fit, volumes were multiplied by the inverse square root of the noise covariance between "
    "voxels, estimated from the spread within blocks of that fold's training runs alone (all conditions; "
    "Ledoit-Wolf shrinkage); weights were mapped back to voxels."
)


def processing_words(steps: Mapping[str, Any], unit: str) -> str:
    """What was done to the time series; given maps have none."""
    if unit == "maps":
        return _maps_words(steps) + _in_folds(steps)
    if steps.get("trial_model"):
        return left_out_words(steps) + trial_words(steps) + _in_folds(steps)
    said = []
    where = "within each run" if steps.get("by_run", True) else "over all images"
    if steps.get("smoothing_fwhm"):
        said.append(f"volumes were smoothed with a Gaussian kernel of {steps['smoothing_fwhm']:g} mm FWHM")
    if steps.get("detrend"):
        said.append(f"voxel time series were linearly detrended {where}")
    if steps.get("high_pass"):
        said.append(f"frequencies below {steps['high_pass']:g} Hz were removed")
    if steps.get("confounds"):
        said.append(f"{confound_words(steps)} were regressed out")
    if steps.get("standardize"):
        over = "all volumes of each run" if steps.get("by_run", True) else "all images"
        said.append(
            f"time series were z-scored {where} (over {over}, those of other conditions and of rest included)"
        )
    if steps.get("lag_trs"):
        said.append(f"labels were shifted by {steps['lag_trs']} volumes to allow for the haemodynamic delay")
    elif "lag_trs" in steps or not said:
        said.append("labels were not shifted for the haemodynamic delay")
    text = "; ".join(said)
    return left_out_words(steps) + sentence(text[0].upper() + text[1:]) + _in_folds(steps)


def _maps_words(steps: Mapping[str, Any]) -> str:
    """What was done to given maps; those of many participants have a scaling."""
    if scaling := steps.get("scaling"):
        width = steps.get("smoothing_fwhm")
        smoothed = f" after smoothing with a Gaussian kernel of {width:g} mm FWHM" if width else ""
        told = {
            "none": "Maps were decoded as they were given",
            "centre": "From each map the mean of the participant's compared maps was subtracted",
            "zscore": "Each voxel was z-scored over the compared maps of each participant",
        }[scaling]
        return f"{told}{smoothed}."
    if not steps.get("standardize"):
        return "Maps were not z-scored within each run."
    return "Maps were z-scored within each run, over all its maps, those of other conditions included."


def _in_folds(steps: Mapping[str, Any]) -> str:
    """What was fitted on the training runs of each fold before the classifier."""
    out = ""
    if steps.get("fold_confounds"):
        out = (
            f" Covariates{named(steps['fold_confounds'])} were regressed out of every voxel with "
            "coefficients estimated, with an intercept, on the training data of each fold alone (Snoek et "
            "al., 2019)."
        )
    return out + (f" {_WHITENED}" if steps.get("whiten") else "")


def sentence(text: str) -> str:
    """``text`` with a full stop."""
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else text + "."
