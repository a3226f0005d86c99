"""What was done to volumes before they were decoded, in sentences for the methods of a paper."""

from collections.abc import Mapping
from typing import Any

from mvpa_gamp.report.data_words import confound_words, left_out_words, named, trial_words

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
