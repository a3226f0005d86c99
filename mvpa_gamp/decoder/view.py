"""A map of a fitted decoder in nilearn's interactive viewers, of volumes or of surfaces."""

import warnings
from typing import Any

import numpy as np
from nilearn.plotting import view_img

from mvpa_gamp.imaging.brainmaps import coordinates
from mvpa_gamp.imaging.spaces import is_surface

_MAPS = {
    "weight": "coef_img_",
    "weightsd": "coef_std_img_",
    "pip": "inclusion_img_",
    "pattern": "pattern_img_",
    "selfreq": "selection_freq_img_",
}  # by the names of the maps' files
_SIGNED = ("weight", "pattern")


def view_map(decoder: Any, contrast: Any, stat: str, threshold: Any) -> Any:
    """nilearn's ``view_img`` of a map on the mean of the images."""
    if stat not in _MAPS or getattr(decoder, _MAPS[stat]) is None:
        known = [name for name, attribute in _MAPS.items() if getattr(decoder, attribute) is not None]
        raise ValueError(f"stat: expected one of {', '.join(known)}, got {stat!r}. Change it.")
    maps = getattr(decoder, _MAPS[stat])
    key = decoder.contrasts_[0] if contrast is None else contrast
    if key not in maps:
        raise ValueError(
            f"contrast: expected one of {', '.join(map(repr, decoder.contrasts_[:10]))}, got {key!r}. "
            "Change it."
        )
    signed = stat in _SIGNED
    if is_surface(decoder.mask_img_):
        return _view_surface(maps[key], f"{key}: {stat}", threshold, signed)
    peak = coordinates(decoder.mask_img_)[np.argmax(np.abs(maps.vector(key)))]
    with warnings.catch_warnings():
        # nilearn takes the median of a masked background, which NumPy remarks upon; nothing is masked.
        warnings.filterwarnings("ignore", message=".*'partition' will ignore the 'mask'")
        return view_img(
            maps[key],
            bg_img=decoder._data.mean_img,
            cut_coords=tuple(peak.tolist()),  # the voxel of the largest value
            threshold=threshold,
            title=f"{key}: {stat}",
            symmetric_cmap=signed,
            vmin=None if signed else 0,
            cmap="RdBu_r" if signed else "viridis",
        )


def _view_surface(image: Any, title: str, threshold: Any, signed: bool) -> Any:
    """nilearn's ``view_surf`` of a map, both hemispheres, on inflated meshes where they are known."""
    from nilearn.plotting import view_surf

    from mvpa_gamp.imaging.cortex import cortex_of

    cortex = cortex_of(image)
    sulci = None if cortex.sulci is None else cortex.image(np.concatenate(list(cortex.sulci.values())))
    return view_surf(
        cortex.drawn or cortex.mesh,
        image,
        bg_map=sulci,
        hemi="both" if len(cortex.parts) == 2 else cortex.parts[0],
        threshold=threshold,
        title=title,
        symmetric_cmap=signed,
        vmin=None if signed else 0,
        cmap="RdBu_r" if signed else "viridis",
    )
