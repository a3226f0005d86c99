"""From a phantom's settings to Samples, through the same processing as real volumes."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.labels import Labels
from mvpa_gamp.imaging.matrix import Volumes
from mvpa_gamp.imaging.phantom.head import HAXBY_SHAPE, Phantom
from mvpa_gamp.imaging.phantom.series import (
    Scene,
    build_scene,
    read_cached,
    run_conditions,
    simulate_run,
    ventral_temporal,
    write_cached,
)
from mvpa_gamp.imaging.processing import Processing
from mvpa_gamp.imaging.samples import PlantedTruth, Samples, samples_of
from mvpa_gamp.imaging.source import Source

MASKS = ("brain", "vt")


@dataclass(frozen=True, kw_only=True)
class PhantomSource(Source):
    """A simulated phantom; ``phantom_shape`` is its grid, Haxby's by default."""

    mask: str = "brain"
    phantom_shape: tuple[int, ...] = HAXBY_SHAPE
    seed: int = 0
    lag_trs: int = 0
    phantom: bool = True  # the mark of this source in config.toml

    name = "the phantom"
    paths = ()

    def load(self) -> Samples:
        """Samples of the phantom."""
        spec = Phantom(self.phantom_shape, seed=self.seed)  # type: ignore[arg-type]  # which checks it
        return phantom_samples(spec, self.processing(), mask=self.mask)


def phantom_samples(
    spec: Phantom | None = None, processing: Processing | None = None, cache: bool = True, mask: str = "brain"
) -> Samples:
    """Samples of a phantom, with the planted truth at their voxels; ``mask`` is "brain" or "vt".

    With ``cache`` the simulated volumes are kept in the user's cache folder and read from there next time.

    Parameters
    ----------
    spec
        The phantom; None: as large as Haxby's data.
    processing
        None: the defaults.
    cache
        Whether volumes are kept.
    mask
        "brain" or "vt".

    Returns
    -------
    Samples
        With ``truth``, the planted patterns.
    """
    spec, processing = spec or Phantom(), processing or Processing()
    if mask not in MASKS:
        raise DataError(f"mask of the phantom: expected {' or '.join(MASKS)}, got {mask!r}. Change it.")
    scene = build_scene(spec)
    anatomy = scene.anatomy
    values = phantom_values(spec, scene, cache)
    inside = anatomy.mask.copy()
    if mask == "vt":
        inside[anatomy.mask] = ventral_temporal(anatomy)
    steps = replace(processing, t_r=processing.t_r or spec.t_r)
    runs = [_grid_image(spec, _Unmasked(run, anatomy.mask)) for run in np.split(values, spec.n_runs)]
    mask_img, labels = _grid_image(spec, inside.astype(np.uint8)), phantom_labels(spec)
    samples = samples_of(Volumes(runs), mask_img, labels, steps, "phantom", is_phantom=True)
    usable = (np.asarray(samples.mask_img.dataobj) != 0)[anatomy.mask]
    samples = replace(samples, truth=PlantedTruth(spec.categories, scene.patterns).at(usable))
    return samples.from_source("phantom", _description(spec), phantom=spec.description(), mask=mask)


def phantom_labels(spec: Phantom) -> Labels:
    """Condition and run (from 0, as in the real label files) of every volume.

    Parameters
    ----------
    spec
        The phantom.

    Returns
    -------
    Labels
        Conditions and runs (T,).
    """
    conditions = np.concatenate([run_conditions(spec, run) for run in range(spec.n_runs)])
    return Labels(conditions, np.repeat(np.arange(spec.n_runs), spec.volumes_per_run))


def phantom_values(spec: Phantom, scene: Scene, cache: bool) -> NDArray:
    """The scanner's values inside the brain (M, N) int16, from the cache or simulated run by run."""
    cached = read_cached(spec) if cache else None
    if cached is not None:
        return cached
    workers = min(4, os.cpu_count() or 1)  # runs are independent; each needs about 80 MB on Haxby's grid
    with ThreadPoolExecutor(workers) as pool:
        runs = list(pool.map(lambda run: simulate_run(spec, scene, run), range(spec.n_runs)))
    values = np.concatenate(runs)
    if cache:
        write_cached(spec, values)
    return values


def phantom_images(spec: Phantom, cache: bool = False) -> tuple[Any, Any, Any, PlantedTruth]:
    """Volumes (4-D int16), brain and ventral-temporal mask as NIfTI images, and the truth in the brain.

    Parameters
    ----------
    spec
        The phantom.
    cache
        Whether volumes are kept.

    Returns
    -------
    tuple
        Volumes, brain mask, ventral-temporal mask, and the truth.
    """
    scene = build_scene(spec)
    anatomy = scene.anatomy
    values = phantom_values(spec, scene, cache)
    ventral = np.zeros(spec.shape, dtype=np.uint8)
    ventral[anatomy.mask] = ventral_temporal(anatomy)
    bold = _grid_image(spec, _Unmasked(values, anatomy.mask)[..., :])
    bold.header.set_zooms((*bold.header.get_zooms()[:3], spec.t_r))
    masks = _grid_image(spec, anatomy.mask.astype(np.uint8)), _grid_image(spec, ventral)
    return bold, *masks, PlantedTruth(spec.categories, scene.patterns)


class _Unmasked:
    """A 4-D array of which only voxels inside a mask are kept; whole volumes are made when they are read."""

    def __init__(self, values: NDArray, mask: NDArray) -> None:
        self.values, self.mask = values, mask
        self.shape, self.ndim, self.dtype = (*mask.shape, len(values)), 4, values.dtype

    def __getitem__(self, index: Any) -> NDArray:
        part = self.values[index[-1]]
        block = np.zeros((*self.mask.shape, len(part)), dtype=self.dtype)
        block[self.mask] = part.T
        return block


def _grid_image(spec: Phantom, values: Any) -> Any:
    """An image on the phantom's grid, in scanner coordinates."""
    import nibabel

    image = nibabel.Nifti1Image(values, spec.affine)
    image.set_sform(spec.affine, code="scanner")
    image.set_qform(spec.affine, code="scanner")
    image.header.set_xyzt_units("mm", "sec")
    return image


def _description(spec: Phantom) -> str:
    """A sentence about a phantom."""
    shape = " x ".join(map(str, spec.shape))
    return (
        f"A simulated phantom in the form of Haxby et al. (2001), seed {spec.seed}: {spec.n_runs} runs of "
        f"{spec.volumes_per_run} volumes on a {shape} grid. It is not a brain."
    )
