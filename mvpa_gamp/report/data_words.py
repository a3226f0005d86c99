"""What is said about the data of a study: what its runs count, volumes left out, models of single trials."""

from collections.abc import Mapping, Sequence
from typing import Any

from mvpa_gamp.results.summary import Summary

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
