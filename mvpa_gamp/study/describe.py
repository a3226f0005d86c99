"""What a study knows about its data and processing, in the form of summary.json."""

from typing import Any

import numpy as np

from mvpa_gamp.imaging.brainmaps import space_name
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.results.study_files import About
from mvpa_gamp.study.preparing import StudyPreparation
from mvpa_gamp.study.settings import StudySettings


def about_study(settings: StudySettings, samples: Samples, prepared: StudyPreparation) -> About:
    """All that the page needs to know besides the tables."""
    return About(
        data=_data(samples),
        processing=_processing(settings, samples) | _in_folds(prepared),
        seed=settings.seed,
        fold_maps=settings.fold_maps,
        held_out=samples.held_out,
    )


def _processing(settings: StudySettings, samples: Samples) -> dict[str, Any]:
    """What was done to the time series; of a BIDS dataset the confound columns, not the names of sets."""
    names = (
        "whiten",
        "class_weight",
        "lag_trs",
        "smoothing_fwhm",
        "high_pass",
        "confounds",
        "detrend",
        "standardize",
    )
    given = settings.values()
    steps = {name: given.get(name) for name in names}
    if samples.source == "bids":
        columns = list(samples.confound_columns) or None
        steps |= {"confounds": columns, "confound_columns": columns}
    return steps


def _in_folds(prepared: StudyPreparation) -> dict[str, Any]:
    """The covariates regressed out inside folds, if any."""
    return {} if prepared.confounds is None else {"fold_confounds": list(prepared.confounds.names)}


def _data(samples: Samples) -> dict[str, Any]:
    """Sizes and origin of the samples."""
    return {
        "source": samples.source,
        "description": samples.description,
        "n_samples": samples.X.shape[0],
        "n_voxels": samples.X.shape[1],
        "n_runs": len(np.unique(samples.runs)),
        "kind": samples.kind,
        "unit": samples.plural,
        "bids_space": samples.space,
        "entities": dict(samples.entities),
        "space": space_name(samples.mask_img),
        "categories": sorted(set(map(str, samples.conditions))),
        "notes": list(samples.notes),
        "provenance": dict(samples.provenance),
    }
