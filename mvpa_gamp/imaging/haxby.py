"""Haxby et al. (2001) in nilearn's layout: ``haxby2001/subjK/bold.nii.gz`` and its neighbours.

haxby2001/mask.nii.gz                 whole brain, of one grid
haxby2001/subjK/bold.nii.gz           1452 volumes, TR 2.5 s
haxby2001/subjK/labels.txt            `labels chunks`, a line per volume
haxby2001/subjK/mask4_vt.nii.gz       ventral temporal cortex
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.samples import Samples, load_samples
from mvpa_gamp.imaging.source import Source
from mvpa_gamp.imaging.volumes import is_same_grid, mean_volume, open_mask, open_series

DATASET = "haxby2001"
PARTICIPANTS = (1, 2, 3, 4, 5, 6)
T_R = 2.5  # s; the published headers do not all say so


@dataclass(frozen=True)
class HaxbyFiles:
    """Where one participant's files are; a mask is None where its file is missing."""

    participant: int
    bold: Path
    labels: Path
    vt_mask: Path | None
    brain_mask: Path | None


@dataclass(frozen=True, kw_only=True)
class HaxbySource(Source):
    """One participant, by default the first; ``mask`` is "brain", "vt" or a file.

    ``data_dir`` holds ``haxby2001`` or is that folder itself; without it nilearn's data folders are searched.
    The network is touched only with ``fetch`` and only for missing files.
    """

    participant_label: str = ""
    mask: str = "brain"
    data_dir: str = ""
    fetch: bool = False
    lag_trs: int = 0
    confounds: tuple[str, ...] = ()

    name = "Haxby's data"
    paths = ("mask", "data_dir", "confounds")
    words = ("brain", "vt")

    def resolve(self) -> "HaxbySource":
        """The same with the folder in which the files are."""
        self.processing(self.lag_trs)
        files = self.files()
        where = str(files.bold.parent.parent)
        return replace(self, participant_label=str(files.participant), data_dir=where).absolute()

    def load(self) -> Samples:
        """Samples of the participant."""
        files = self.files()
        steps = self.processing(self.lag_trs, confounds=self.confounds)
        steps = replace(steps, t_r=steps.t_r or T_R)
        bold = open_series(files.bold)
        mask_image, note = _choose_mask(files, self.mask, bold)
        samples = load_samples(bold, files.labels, mask_image, steps, str(files.participant))
        samples = samples if note is None else replace(samples, notes=(note, *samples.notes))
        told = f"Data of Haxby et al. (2001), participant {files.participant}, {_mask_words(self.mask)}."
        return samples.from_source("haxby", told)

    def files(self) -> HaxbyFiles:
        """The participant's files, downloaded where that is asked for and they are missing."""
        number = participant_number(self.participant_label or 1)
        files = find_haxby(number, self.data_dir)
        if files is None and self.fetch:
            files = _fetch(number, self.data_dir)
        if files is None:
            raise DataError(
                f"Haxby data of participant {number}: expected {DATASET}/subj{number}/bold.nii.gz and "
                f"labels.txt in {_looked_in(self.data_dir)}, found none. Give --data-dir, or --fetch to "
                "download them."
            )
        return files


def participant_number(participant: int | str) -> int:
    """1 to 6 from a number, "3", "subj3" or "sub-3"."""
    text = str(participant).strip().lower().removeprefix("subj").removeprefix("sub-").removeprefix("sub")
    if not text.isascii() or not text.isdigit() or int(text) not in PARTICIPANTS:
        raise DataError(
            f"participant: expected 1 to 6 for Haxby's data, got {participant!r}. Choose one of them."
        )
    return int(text)


def find_haxby(participant: int, data_dir: str | Path = "") -> HaxbyFiles | None:
    """The files of a participant if BOLD and labels are on disk, else None; never touches the network."""
    for folder in _candidate_folders(data_dir):
        own = folder / f"subj{participant}"
        bold, labels = own / "bold.nii.gz", own / "labels.txt"
        if bold.is_file() and labels.is_file():
            return HaxbyFiles(
                participant, bold, labels, _if_file(own / "mask4_vt.nii.gz"), _if_file(folder / "mask.nii.gz")
            )
    return None


def _candidate_folders(data_dir: str | Path) -> list[Path]:
    """Folders that may be ``haxby2001``."""
    roots = [Path(data_dir).expanduser()] if data_dir else _nilearn_folders()
    return [folder for root in roots for folder in (root / DATASET, root)]


def _nilearn_folders() -> list[Path]:
    from nilearn.datasets import get_data_dirs

    return [Path(folder) for folder in get_data_dirs()]


def _fetch(participant: int, data_dir: str | Path) -> HaxbyFiles | None:
    """Let nilearn download a participant's files, about 300 MB, then look again."""
    from nilearn import datasets

    try:
        datasets.fetch_haxby(data_dir=str(data_dir) if data_dir else None, subjects=[participant])
    except Exception as error:  # nilearn passes on whatever the network, the archive or the disk raise
        raise DataError(
            f"Haxby data of participant {participant} could not be downloaded: {error}. Check the network, "
            f"or put the files into {_looked_in(data_dir)}."
        ) from error
    return find_haxby(participant, data_dir)


def _choose_mask(files: HaxbyFiles, mask: str, bold: Any) -> tuple[Any, str | None]:
    """The mask image or file, and a note where it had to be computed."""
    if mask == "vt":
        if files.vt_mask is None:
            raise DataError(
                f"mask vt: expected {files.bold.parent / 'mask4_vt.nii.gz'}, found none. Use --mask brain, "
                "or a file."
            )
        return files.vt_mask, None
    if mask == "brain":
        return _brain_mask(files, bold)
    return mask, None


def _brain_mask(files: HaxbyFiles, bold: Any) -> tuple[Any, str | None]:
    """The published whole-brain mask where its grid is the participant's, else one from the mean volume."""
    reason = "haxby2001/mask.nii.gz is missing"
    if files.brain_mask is not None:
        if is_same_grid(open_mask(files.brain_mask)[0], bold):
            return files.brain_mask, None
        reason = "haxby2001/mask.nii.gz is on another participant's grid"
    from nilearn.masking import compute_epi_mask

    computed = compute_epi_mask(mean_volume([bold]))
    size = int(np.count_nonzero(np.asarray(computed.dataobj)))
    return computed, f"The brain mask was computed from the mean volume, because {reason}: {size:,} voxels."


def _mask_words(mask: str) -> str:
    return {"brain": "whole brain", "vt": "ventral temporal cortex"}.get(mask, f"mask {Path(mask).name}")


def _looked_in(data_dir: str | Path) -> str:
    return str(data_dir) if data_dir else " or ".join(map(str, _nilearn_folders()))


def _if_file(path: Path) -> Path | None:
    return path if path.is_file() else None
