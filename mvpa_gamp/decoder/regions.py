"""Regions of an atlas for a fitted decoder: what of its maps lies in each, how well each decodes alone."""

from typing import Any

import numpy as np
import pandas as pd

from mvpa_gamp.decoder.contrast_maps import contrast_key
from mvpa_gamp.decoder.decoded import Decoded
from mvpa_gamp.decoding.exchange import blocks_of_volumes
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.multiclass import class_pairs
from mvpa_gamp.decoding.preparation import in_sequence
from mvpa_gamp.decoding.regions import FEWEST_VOXELS, decode_regions
from mvpa_gamp.imaging.atlas import open_atlas
from mvpa_gamp.imaging.regions import Regions
from mvpa_gamp.results.region_rows import (
    ACCURACY_COLUMNS,
    REGION_COLUMNS,
    TEST_COLUMNS,
    add_accuracies,
    ranked,
    region_rows,
)


def region_table(
    data: Decoded, mask_img: Any, atlas: Any, labels: Any, by_region: bool, permutations: int, seed: int
) -> pd.DataFrame:
    """The rows of all contrasts, one below the other, in the columns of the commands' regions.tsv."""
    regions = atlas if isinstance(atlas, Regions) else open_atlas(atlas, labels).regions(mask_img)
    if len(regions.of_voxel) != data.X.shape[1]:
        raise ValueError(
            f"atlas: its regions cover {len(regions.of_voxel)} voxels, but the mask of the decoder has "
            f"{data.X.shape[1]}. Create them with mask_img_ of the decoder."
        )
    tables = []
    for pair, (a, b) in enumerate(data.pairs):
        refit = data.fits[pair].refit
        inclusion = None if refit.inclusion is None else refit.inclusion[:, 0]
        rows = region_rows(regions, refit.coef[:, 0], inclusion, refit.support[:, 0])
        if by_region or permutations:
            _decode(data, regions, pair, rows, permutations, seed)
        tables += [{"contrast": contrast_key(a, b), **row} for row in ranked(rows)]
    known = ("contrast", *REGION_COLUMNS, *ACCURACY_COLUMNS, *TEST_COLUMNS)
    columns = [name for name in known if any(name in row for row in tables)]
    return pd.DataFrame(tables, columns=columns).astype({"index": "Int64"})


def _decode(
    data: Decoded, regions: Regions, pair: int, rows: list[dict[str, Any]], n: int, seed: int
) -> None:
    """Add the accuracies of one pair of classes, on its own images and in the decoder's folds."""
    first, second = class_pairs(len(data.classes))[pair]
    mine = np.isin(data.codes, (first, second))
    groups = np.zeros(len(data.codes)) if data.groups is None else data.groups
    blocks = blocks_of_volumes(data.codes, groups, data.rows)[mine]
    tested = np.flatnonzero(regions.sizes >= FEWEST_VOXELS).tolist()
    if not tested:
        raise ValueError(
            f"atlas: expected a region with at least {FEWEST_VOXELS} voxels in the mask, got none. Give an "
            "atlas with larger regions."
        )
    y = np.where(data.codes[mine] == first, 1, -1)
    scheme = Scheme(
        data.splits.folds, np.flatnonzero(mine), in_sequence([data.confounds]), data.connectivity,
        blocks=blocks, seed=seed,
    )  # fmt: skip
    voxels = [regions.voxels(place) for place in tested]
    found = decode_regions(data.method, data.X, y, groups, voxels, n, scheme)
    add_accuracies(rows, found, tested)
