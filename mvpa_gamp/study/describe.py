"""What a study knows about its data and processing, in the form of summary.json."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from nibabel.affines import voxel_sizes

from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.bids.source import BidsSource
from mvpa_gamp.imaging.brainmaps import space_name
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.imaging.spaces import is_surface, space_of
from mvpa_gamp.results.summary import About, versions
from mvpa_gamp.study.comparisons import StudyPreparation, exchange_of
from mvpa_gamp.study.settings import StudySettings

LEFT_OUT = ("non_steady_state_volumes", "scrubbed_volumes")  # how many volumes were not used, and why


def about_study(
    settings: StudySettings, samples: Samples, prepared: StudyPreparation, tasks: Sequence[Task]
) -> About:
    """All that the page needs to know besides the tables."""
    return About(
        data=_data(samples, tasks),
        processing=_processing(settings, samples) | _in_folds(prepared),
        seed=settings.seed,
        fold_maps=settings.fold_maps,
        cross_validation=samples.provenance.get(
            "folds", f"Cross-validation leaves one {samples.held_out} out at a time."
        ),
        held_out=samples.held_out,
    )


def sidecar_facts(settings: StudySettings, samples: Samples, prepared: StudyPreparation) -> dict[str, Any]:
    """What the sidecars of all maps of a study say: sources, space, processing, software."""
    steps = _processing(settings, samples) | _in_folds(prepared)
    space = {"Space": samples.space} if samples.space else {}
    return {
        **samples.origin.sidecar(),
        **space,
        "Resolution": resolution(samples),
        "Processing": {name: value for name, value in steps.items() if value and name != "confound_columns"},
        "Software": {**samples.origin.software, **versions()},
    }


def resolution(samples: Samples) -> str:
    """The size of a grid's voxels in mm, behind the ``res-`` label that stands for it; or that of meshes."""
    if is_surface(samples.mask_img):
        return f"meshes of {space_of(samples.mask_img).kind()}"
    sizes = " x ".join(f"{size:.3g}" for size in voxel_sizes(samples.mask_img.affine))
    label = samples.entities.get("res")
    return (f"res-{label}, " if label else "") + f"voxels of {sizes} mm"


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
        "scaling",
        "confounds_strategy",
        "samples",
        "trial_model",
        "hrf_model",
        "drift_model",
    )
    given = settings.values()
    steps = {name: given.get(name) for name in names}
    if samples.source == "bids":
        columns = list(samples.confound_columns) or None
        steps |= {"confounds": columns, "confound_columns": columns}
        steps |= {name: samples.provenance.get(name) for name in LEFT_OUT}
    if samples.people is not None:
        steps |= dict.fromkeys(("detrend", "standardize", "lag_trs"))  # maps are no series
        steps |= {"scaling": samples.provenance["map_scaling"]}
    if samples.kind == "trial":
        steps |= _modelled(settings) | {"standardize": samples.provenance["trial_scaling"]}
    return steps


def _modelled(settings: StudySettings) -> dict[str, Any]:
    """Of trials: drifts and confounds are part of a model, time series are not cleaned."""
    source = settings.source
    assert isinstance(source, BidsSource)
    cut = source.model.high_pass if source.model.drift == "cosine" else None
    return {"detrend": None, "lag_trs": None, "high_pass": cut}


def _in_folds(prepared: StudyPreparation) -> dict[str, Any]:
    """The covariates regressed out inside folds, if any."""
    return {} if prepared.confounds is None else {"fold_confounds": list(prepared.confounds.names)}


def _data(samples: Samples, tasks: Sequence[Task]) -> dict[str, Any]:
    """Sizes and origin of the samples; those of conditions that no comparison names are not counted."""
    decoded = np.unique(np.concatenate([task.rows for task in tasks]))
    return {
        "source": samples.source,
        "description": samples.description,
        "n_samples": decoded.size,
        "n_voxels": samples.X.shape[1],
        "n_runs": len(np.unique(samples.runs if samples.people is None else samples.people)),
        **_of_people(samples, tasks),
        "kind": samples.kind,
        "unit": samples.plural,
        "bids_space": samples.space,
        "entities": dict(samples.entities),
        "resolution": resolution(samples),
        "prepared_with": samples.origin.software,
        "space": space_name(samples.mask_img),
        "categories": sorted(set(map(str, samples.conditions))),
        "notes": list(samples.notes),
        "provenance": dict(samples.provenance),
    }


def _of_people(samples: Samples, tasks: Sequence[Task]) -> dict[str, Any]:
    """What is counted instead of runs where maps are of many participants, and how labels are exchanged."""
    if samples.people is None:
        return {}
    moved = [(task, exchange_of(samples, task)[0]) for task in tasks]
    if all(np.array_equal(within, samples.people[task.rows]) for task, within in moved):
        return {"counted": "participant", "exchanged": "within participants"}
    folds = any(np.unique(within).size > 1 for _, within in moved)
    return {
        "counted": "participant",
        "exchanged": "as whole participants" + (" within folds" if folds else ""),
    }
