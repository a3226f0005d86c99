"""What a study knows about its data and processing, in the form of summary.json."""

from pathlib import Path
from typing import Any

import numpy as np

from mvpa_gamp.imaging.brainmaps import space_name
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.results.study_files import About
from mvpa_gamp.study.settings import StudySettings


def about_study(settings: StudySettings, samples: Samples) -> About:
    """All that the page needs to know besides the tables."""
    return About(
        data=_data(samples),
        processing=_processing(settings, samples),
        seed=settings.seed,
        fold_maps=settings.fold_maps,
    )


def _processing(settings: StudySettings, samples: Samples) -> dict[str, Any]:
    """What was done to the time series; of a BIDS dataset the confound columns, not the names of sets."""
    names = ("lag_trs", "smoothing_fwhm", "high_pass", "confounds", "detrend", "standardize")
    steps = {name: getattr(settings, name) for name in names}
    if settings.bids_dir is not None:
        columns = samples.provenance.get("confound_columns") or None
        steps |= {"confounds": columns, "confound_columns": columns}
    return steps


def _data(samples: Samples) -> dict[str, Any]:
    """Sizes and origin of the samples."""
    return {
        "source": samples.provenance.get("source"),
        "description": samples.provenance.get("description") or _own_description(samples),
        "n_samples": samples.X.shape[0],
        "n_voxels": samples.X.shape[1],
        "n_runs": len(np.unique(samples.runs)),
        "unit": samples.unit,
        "space": space_name(samples.mask_img),
        "categories": sorted(set(map(str, samples.conditions))),
        "notes": list(samples.notes),
        "provenance": dict(samples.provenance),
    }


def _own_description(samples: Samples) -> str:
    """A sentence about a user's own files."""
    names = [Path(str(name)).name for name in samples.provenance.get("bold", [])]
    files = f"{len(names)} files" if len(names) > 1 else "".join(names)
    return f"fMRI volumes of sub-{samples.subject}" + (f" ({files})." if files else ".")
