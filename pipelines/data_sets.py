"""The data on which methods are compared: half a slice, ventral temporal cortex, whole brains, a phantom.

Real data are looked for in the folder of MVPA_GAMP_DATA, under these names:

haxby_slice, haxby_vt : bold.nii.gz, labels.txt and mask.nii.gz. Instead of haxby_vt nilearn's haxby2001 will
    do: python -c "from nilearn.datasets import fetch_haxby; fetch_haxby('DIR', subjects=[1])".
pain_rejection : Woo et al. (2014). contrasts_2mm.nii.gz or trials_4mm.nii.gz, a map per line of the table of
    the same name (.tsv: condition, participant), and mask_2mm.nii.gz or mask_4mm.nii.gz.
"""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import nibabel
import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.tasks import PAPER_PAIRS, Task, make_tasks
from mvpa_gamp.imaging.phantom.head import HAXBY_SHAPE
from mvpa_gamp.imaging.phantom.source import PhantomSource
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.imaging.source import HaxbySource, OwnFiles, find_haxby

from .data_folder import find_data
from .haxby_table import PHANTOM_LABEL

PAIN_PAIRS = (("heat", "warmth"), ("rejection", "friend"), ("heat", "rejection"))


@dataclass(frozen=True)
class DataSet:
    """Samples, the comparisons among them, and what a mean is taken over.

    ``by_fold``: every comparison stands for itself and its standard error is over held-out groups
    (participants); otherwise a row is the mean over comparisons, with its standard error over them.
    """

    word: str
    label: str
    samples: Samples
    tasks: Sequence[Task]
    by_fold: bool = False

    def rows(self, task: Task) -> NDArray:
        """X of a comparison; maps of participants are centred within each participant."""
        X = self.samples.X[task.rows]
        if self.by_fold:
            groups = self.samples.runs[task.rows]
            X = X.copy()
            for group in np.unique(groups):
                X[groups == group] -= X[groups == group].mean(axis=0)
        return X


def half_slice() -> DataSet | None:
    """Half a slice of participant 1 of Haxby et al., all 28 pairs of categories."""
    return _own_files("slice", "real volumes, a part of the brain", "haxby_slice")


def ventral_temporal() -> DataSet | None:
    """Ventral temporal cortex of the same participant, all 28 pairs."""
    label = "Haxby et al. (2001), participant 1, ventral temporal cortex"
    found = _own_files("vt", label, "haxby_vt")
    folder = None if found else find_data(None, "haxby2001")
    if folder is None or find_haxby(1, folder) is None:
        return found
    samples = HaxbySource(data_dir=str(folder), participant_label="1", mask="vt").load()
    return DataSet("vt", label, samples, _all_pairs(samples))


def contrasts() -> DataSet | None:
    """A contrast map per condition and participant."""
    return _pain("contrasts", "2mm", "Woo et al. (2014), one contrast map per condition and participant")


def trials() -> DataSet | None:
    """Maps of single trials."""
    return _pain("trials", "4mm", "Woo et al. (2014), single trials")


def phantom(shape: tuple[int, ...] = HAXBY_SHAPE, seed: int = 1) -> DataSet:
    """The phantom, the six pairs of the paper."""
    samples = PhantomSource(phantom_shape=shape, seed=seed).load()
    return DataSet("phantom", PHANTOM_LABEL, samples, make_tasks(samples.conditions, PAPER_PAIRS))


SETS: dict[str, Callable[[], DataSet | None]] = {
    "slice": half_slice,
    "vt": ventral_temporal,
    "contrasts": contrasts,
    "trials": trials,
    "phantom": phantom,
}


def _own_files(word: str, label: str, name: str) -> DataSet | None:
    folder = find_data(None, name)
    if folder is None:
        return None
    bold, labels, mask = (str(folder / file) for file in ("bold.nii.gz", "labels.txt", "mask.nii.gz"))
    samples = OwnFiles(bold=(bold,), labels=labels, mask=mask).load()
    return DataSet(word, label, samples, _all_pairs(samples))


def _all_pairs(samples: Samples) -> Sequence[Task]:
    names = sorted(set(samples.conditions))
    return make_tasks(samples.conditions, [(a, b) for k, a in enumerate(names) for b in names[k + 1 :]])


def _pain(word: str, grid: str, label: str) -> DataSet | None:
    folder = find_data(None, "pain_rejection")
    if folder is None or not (folder / f"{word}_{grid}.nii.gz").is_file():
        return None
    mask = nibabel.load(folder / f"mask_{grid}.nii.gz")
    inside = np.asarray(mask.dataobj) > 0
    X = np.ascontiguousarray(np.asarray(nibabel.load(folder / f"{word}_{grid}.nii.gz").dataobj)[inside].T)
    conditions, participants = _table(folder / f"{word}_{grid}.tsv", len(X))
    samples = Samples(X.astype(np.float32), conditions, participants, mask, None, "group", kind="beta")
    return DataSet(word, label, samples, make_tasks(conditions, PAIN_PAIRS), by_fold=True)


def _table(path: Path, n_maps: int) -> tuple[NDArray, NDArray]:
    with path.open(newline="", encoding="utf-8") as stream:
        lines = list(csv.DictReader(stream, delimiter="\t"))
    if len(lines) != n_maps:
        raise ValueError(f"{path.name}: expected a line per map ({n_maps}), got {len(lines)}. Correct it.")
    return (
        np.array([line["condition"] for line in lines]),
        np.array([int(line["participant"]) for line in lines]),
    )
