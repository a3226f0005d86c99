"""What a phantom measures: which voxel answers to which category, the atlas of it, and the time series.

Overlapping patches and fine patterns in ventral-temporal cortex; the atlas has the patches, and parts of the
head in which nothing was planted. Series are haemodynamic blocks, drift, physiology and spatially smooth
AR(1) noise, kept on disk, so that a phantom is simulated once per machine.
"""

import hashlib
import json
import os
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.special import gamma as gamma_function

from mvpa_gamp.imaging.disk import write_atomic
from mvpa_gamp.imaging.phantom.head import (
    CATEGORIES,
    Anatomy,
    Phantom,
    build_anatomy,
    ellipsoid,
    mirrored,
    smooth_noise,
)

PATTERN, SHARED = 3, 4  # parts for Phantom.generator
Point = tuple[float, float, float]
VENTRAL: tuple[Point, Point] = ((34, -46, -20), (17, 30, 12))
LATERAL: tuple[Point, Point] = ((46, -64, 0), (13, 14, 14))
# Patches (centre and radii in mm, right hemisphere mirrored to the left) and the response of each category
# in per cent of the baseline; categories not named share the last value. A caricature of the literature:
# lateral fusiform for faces and animals, medial fusiform and parahippocampal for houses, lateral occipital
# for objects, early cortex for high-contrast patterns.
PATCHES: tuple[tuple[Point, Point, dict[str, float], float], ...] = (
    ((42, -46, -20), (9, 13, 9), {"face": 3.2, "cat": 2.4}, 0.4),
    ((24, -40, -14), (10, 15, 9), {"house": 3.2, "chair": 0.8}, 0.4),
    (
        (33, -54, -18),
        (7, 9, 7),
        {"chair": 1.7, "house": 1.2, "scissors": 0.9, "bottle": 0.9, "shoe": 0.9},
        0.1,
    ),
    ((46, -64, 0), (9, 10, 10), {"scissors": 0.9, "scrambledpix": 0.1, "face": 0.5, "cat": 0.7}, 0.6),
    ((8, -76, 4), (10, 12, 12), {"scrambledpix": 1.6, "house": 1.2}, 0.9),
)
# Peak of the fine pattern that only this category has, and of the one its kin share.
FINE = {
    "bottle": 1.6, "cat": 2.0, "chair": 2.0, "face": 2.4, "house": 2.4,
    "scissors": 1.7, "scrambledpix": 2.2, "shoe": 1.7,
}  # fmt: skip
KIN = {"face": 0, "cat": 0, "house": 1, "chair": 1, "bottle": 2, "shoe": 2, "scissors": 2, "scrambledpix": 3}
KIN_PEAK = 1.0
STRENGTH = 0.91  # set with the default seed: L1 logistic regression then errs about as in the paper's table
FINE_SIGMA = 5.0  # mm, patches of a few voxels
FINE_CUT = 1.2  # only the upper 12 % of the smooth field carry the fine pattern: compact, not everywhere
# The five planted regions are the patches, in their order.
PHANTOM_NAMES = {
    1: "lateral fusiform",
    2: "parahippocampal",
    3: "mid fusiform",
    4: "lateral occipital",
    5: "early visual",
    6: "cerebellum",
    7: "brain stem",
    8: "anterior temporal",
    9: "frontal",
    10: "central",
    11: "parietal",
    12: "other occipital",
}
PLANTED = (1, 2, 3, 4, 5)


def category_patterns(spec: Phantom, anatomy: Anatomy) -> NDArray:
    """Response of every voxel to every category in per cent of the baseline, (K, N), zero where none."""
    rows = [_category_pattern(spec, anatomy, category) for category in spec.categories]
    return np.stack(rows) * (STRENGTH * spec.signal)


def visual_cortex(anatomy: Anatomy) -> NDArray:
    """Ventral-temporal and lateral occipital voxels (N,) bool, where categories may differ finely."""
    points = anatomy.coordinates.T
    inside = (mirrored(points, *VENTRAL) > 0) | (mirrored(points, *LATERAL) > 0)
    if not inside.any():  # a very coarse grid: the nearest voxel stands for the region
        inside[np.argmax(mirrored(points, *VENTRAL))] = True
    return inside


def ventral_temporal(anatomy: Anatomy) -> NDArray:
    """The ventral-temporal region (N,) bool, as the real data's mask4_vt."""
    closeness = mirrored(anatomy.coordinates.T, *VENTRAL)
    return closeness > min(0.0, closeness.max() - 1e-9)


def _category_pattern(spec: Phantom, anatomy: Anatomy, category: str) -> NDArray:
    points = anatomy.coordinates.T
    pattern = np.zeros(len(anatomy.coordinates))
    for centre, radii, peaks, otherwise in PATCHES:
        pattern += peaks.get(category, otherwise) * _bump(mirrored(points, centre, radii))
    cortex = visual_cortex(anatomy)
    fine = spec.generator(PATTERN, CATEGORIES.index(category))
    kin = spec.generator(SHARED, KIN[category])
    pattern += FINE[category] * _islands(spec, anatomy, cortex, fine)
    pattern += KIN_PEAK * _islands(spec, anatomy, cortex, kin)
    return pattern


def _bump(closeness: NDArray) -> NDArray:
    """Closeness to a centre (1 there, 0 on the border) as a patch; at least one voxel."""
    bump = np.clip(closeness, 0, 1)
    if not bump.any():
        bump[np.argmax(closeness)] = 1.0
    return bump


def _islands(spec: Phantom, anatomy: Anatomy, cortex: NDArray, rng: np.random.Generator) -> NDArray:
    """Tops of a smooth random field inside the cortex, scaled to a peak of 1: compact islands."""
    field = np.where(cortex, smooth_noise(spec, rng, FINE_SIGMA)[anatomy.mask], -np.inf)
    tops = np.clip(field - min(FINE_CUT, field.max() - 0.1), 0, None)
    return tops / tops.max()


def phantom_regions(points: NDArray) -> NDArray:
    """The region (N,) of positions (N, 3) in mm, 0 in the deep white matter, which the atlas leaves out.

    Voxels of patches and of the cortex with fine patterns belong to the nearest patch.
    """
    axes = points.T
    _, y, z = axes
    region = np.select(
        [
            mirrored(axes, (25, -52, -38), (33, 31, 26)) > 0,
            ellipsoid(axes, (0, -22, -52), (14, 15, 38)) > 0,
            (z < -8) & (y > -20),
            y > 30,
            y > -10,
            z > 10,
        ],
        [6, 7, 8, 9, 10, 11],
        12,
    )
    region[mirrored(axes, (22, -5, 18), (12, 40, 12)) > 0] = 0
    closeness = np.stack([mirrored(axes, centre, radii) for centre, radii, *_ in PATCHES])
    planted = (closeness.max(axis=0) > 0) | (mirrored(axes, *VENTRAL) > 0) | (mirrored(axes, *LATERAL) > 0)
    region[planted] = 1 + closeness[:, planted].argmax(axis=0)
    for patch, place in enumerate(closeness.argmax(axis=1)):  # a patch has a voxel on the coarsest grid
        if closeness[patch, place] <= 0:
            region[place] = 1 + patch
    return region


ORDER, NOISE, SLOW, MAPS, GAIN = 5, 6, 7, 8, 9  # parts for Phantom.generator
BLOCK_SECONDS = 24.0 / 9  # a block of 9 labelled volumes shows pictures for 24 s
ONSET_LEAD = 6.5  # s; the labels of the real data follow the pictures, so that a lag of 0 works
FINE_STEP = 0.1  # s, for the convolution
# All deviations in per cent of the baseline. The shares were set so that the processed series has the
# real slice's lag-1 autocorrelation (0.35) and neighbour correlation (0.2 to 0.3, 0.05 far away).
AR1 = 0.37
SMOOTH_NOISE, WHITE_NOISE = 0.65, 0.75
SMOOTH_VOXELS = 0.9  # standard deviation of the spatial kernel, in voxels
PHYSIOLOGY = 0.2
DRIFT = 0.6
BLOCK_GAIN = 0.25  # log-deviation of a block's response around its category's
BLOCK_PATTERN = 0.25  # deviation of a random pattern in visual cortex that lasts one block


def block_order(spec: Phantom, run: int) -> list[str]:
    """The categories of a run in their shuffled order."""
    return list(spec.generator(ORDER, run).permutation(spec.categories))


def run_conditions(spec: Phantom, run: int) -> NDArray:
    """Label of each volume of a run (T,): rest, or the category on the screen."""
    labels = np.full(spec.volumes_per_run, "rest", dtype="U16")
    for start, category in zip(spec.block_starts, block_order(spec, run), strict=True):
        labels[start : start + spec.block_volumes] = category
    return labels


def haemodynamic_response(seconds: NDArray) -> NDArray:
    """Double gamma: h(t) = t^5 e^-t / 5! - t^15 e^-t / (6 * 15!), the usual peak at 5 s and dip at 15 s."""
    t = np.asarray(seconds, dtype=float)
    return t**5 * np.exp(-t) / gamma_function(6) - t**15 * np.exp(-t) / (6 * gamma_function(16))


def block_responses(spec: Phantom) -> NDArray:
    """Time course of each block position within a run, (T, K), peak 1."""
    n_fine = round(spec.volumes_per_run * spec.t_r / FINE_STEP)
    time = np.arange(n_fine) * FINE_STEP
    kernel = haemodynamic_response(np.arange(0, 32, FINE_STEP))
    moments = np.round(np.arange(spec.volumes_per_run) * spec.t_r / FINE_STEP)
    sample = np.minimum(moments, n_fine - 1).astype(int)
    courses = []
    for start in spec.block_starts:
        onset = start * spec.t_r - ONSET_LEAD
        boxcar = (time >= onset) & (time < onset + BLOCK_SECONDS * spec.block_volumes)
        response = np.convolve(boxcar, kernel)[:n_fine]
        courses.append(response[sample] / response.max())
    return np.stack(courses, axis=1)


@dataclass(frozen=True)
class Scene:
    """What all runs share: the head, category patterns (K, N), the visual cortex (N,), slow maps (5, N)."""

    anatomy: Anatomy
    patterns: NDArray
    cortex: NDArray
    slow_maps: NDArray


def build_scene(spec: Phantom) -> Scene:
    """Everything spatial about a phantom."""
    anatomy = build_anatomy(spec)
    maps = [smooth_noise(spec, spec.generator(MAPS, k), 25.0)[anatomy.mask] for k in range(5)]
    everywhere = np.array([0.0, 0.0, 0.7, 0.7, 1.0])  # drifts differ in sign, physiology is seen everywhere
    slow_maps = (np.stack(maps) + everywhere[:, None]).astype(np.float32)
    return Scene(anatomy, category_patterns(spec, anatomy), visual_cortex(anatomy), slow_maps)


def simulate_run(spec: Phantom, scene: Scene, run: int) -> NDArray:
    """The volumes of one run inside the mask, (T, N) int16 like a scanner's."""
    change = _noise(spec, scene.anatomy.mask, run)
    change += block_responses(spec).astype(np.float32) @ _block_patterns(spec, scene, run)
    change += _slow_courses(spec, run).astype(np.float32) @ scene.slow_maps
    change /= 100
    change += 1
    change *= scene.anatomy.baseline.astype(np.float32)
    return np.clip(np.rint(change), 0, np.iinfo(np.int16).max).astype(np.int16)


def _block_patterns(spec: Phantom, scene: Scene, run: int) -> NDArray:
    """Spatial pattern of each block of a run, (K, N): its category's, with gain and pattern noise."""
    rng = spec.generator(GAIN, run)
    rows = []
    for category in block_order(spec, run):
        gain = np.exp(BLOCK_GAIN * rng.standard_normal() - BLOCK_GAIN**2 / 2)
        wander = BLOCK_PATTERN * smooth_noise(spec, rng, FINE_SIGMA)[scene.anatomy.mask] * scene.cortex
        rows.append(gain * scene.patterns[spec.categories.index(category)] + wander)
    return np.stack(rows).astype(np.float32)


def _noise(spec: Phantom, mask: NDArray, run: int) -> NDArray:
    """Noise (T, N) with AR(1) in time, of a spatially smooth and a white part."""
    rng = spec.generator(NOISE, run)
    inside = mask[ndimage.find_objects(mask.astype(np.uint8))[0]]
    smooth = rng.standard_normal((spec.volumes_per_run, *inside.shape), dtype=np.float32)
    for axis in (1, 2, 3):
        ndimage.gaussian_filter1d(smooth, SMOOTH_VOXELS, axis=axis, mode="wrap", truncate=2.5, output=smooth)
    noise = smooth[:, inside]
    noise *= np.float32(SMOOTH_NOISE / _kernel_deviation())
    noise += np.float32(WHITE_NOISE) * rng.standard_normal(noise.shape, dtype=np.float32)
    noise[1:] *= np.float32(np.sqrt(1 - AR1**2))
    for t in range(1, len(noise)):
        noise[t] += np.float32(AR1) * noise[t - 1]
    return noise


def _kernel_deviation() -> float:
    """Deviation of white noise after the spatial kernel: the norm of the kernel, once per axis."""
    impulse = np.zeros(9)
    impulse[4] = 1.0
    return float(np.linalg.norm(ndimage.gaussian_filter1d(impulse, SMOOTH_VOXELS, truncate=2.5)) ** 3)


def _slow_courses(spec: Phantom, run: int) -> NDArray:
    """Time courses (T, 5) of two drifts, breathing, heart beat (both aliased) and a common random walk."""
    rng = spec.generator(SLOW, run)
    time = np.linspace(0, 1, spec.volumes_per_run)
    seconds = np.arange(spec.volumes_per_run) * spec.t_r
    breathing = np.sin(2 * np.pi * (0.28 * seconds + np.cumsum(rng.normal(0, 0.05, len(time)))))
    heart = np.sin(2 * np.pi * (1.1 * seconds + np.cumsum(rng.normal(0, 0.08, len(time)))))
    walk = np.cumsum(rng.normal(0, 0.12, len(time)))
    drifts = [DRIFT * 3 * (time - 0.5), DRIFT * np.cos(2 * np.pi * time + rng.uniform(0, 6))]
    physiology = [PHYSIOLOGY * course for course in (breathing, heart, walk - walk.mean())]
    return np.stack([*drifts, *physiology], axis=1)


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/mvpa_gamp``, or ``~/.cache/mvpa_gamp``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "mvpa_gamp"


def cache_key(spec: Phantom) -> str:
    """Digest of the settings."""
    return hashlib.sha256(json.dumps(spec.description(), sort_keys=True).encode()).hexdigest()[:16]


def source_digest() -> str:
    """Digest of the simulation's source: changed code replaces old volumes and never reads them."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def read_cached(spec: Phantom) -> NDArray | None:
    """The series (M, N) int16 of a phantom, or None when it is absent, cut, changed or of other code."""
    shape = (spec.n_runs * spec.volumes_per_run, spec.voxels)
    try:
        data, sidecar = _files(spec)
        about = json.loads(sidecar.read_text(encoding="utf-8"))
        if about["source"] != source_digest():
            return None
        series = np.fromfile(data, dtype="<i2")
        whole = series.size == shape[0] * shape[1] and zlib.crc32(series.data) == about["crc32"]
        return series.reshape(shape) if whole else None
    except (OSError, RuntimeError, ValueError, KeyError, TypeError):
        return None


def write_cached(spec: Phantom, series: NDArray) -> bool:
    """Keep a series; False, with a warning, where the folder cannot be written."""
    content = np.ascontiguousarray(series, dtype="<i2").data
    about = {"crc32": zlib.crc32(content), "source": source_digest(), "phantom": spec.description()}
    try:
        data, sidecar = _files(spec)
        write_atomic(data, content.cast("B"))
        write_atomic(sidecar, json.dumps(about, indent=2).encode())
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
        warnings.warn(
            f"The phantom cannot be stored for the next run because its folder is not writable ({error}). "
            "Set XDG_CACHE_HOME to a writable folder.",
            stacklevel=2,
        )
        return False
    return True


def _files(spec: Phantom) -> tuple[Path, Path]:
    """Where the series and its checksum are kept."""
    stem = cache_folder() / f"phantom-{cache_key(spec)}"
    return stem.with_suffix(".int16"), stem.with_suffix(".json")
