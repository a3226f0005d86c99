"""Maps of many participants, one of each condition, in files sorted as everyone sorts them: by label."""

from pathlib import Path
from typing import NamedTuple

import nibabel
import numpy as np

AFFINE = np.diag([-3.0, 3.0, 3.0, 1.0])
SHAPE = (6, 7, 4)
CONDITIONS = ("friend", "heat", "rejection", "warmth")


class People(NamedTuple):
    """Maps (M, N) of participants, conditions in the same order in each."""

    X: np.ndarray
    conditions: np.ndarray  # (M,)
    participants: np.ndarray  # (M,)

    def swapped(self, a: str, b: str, seed: int) -> "People":
        """The maps of two conditions exchanged in half of the participants; labels keep their places."""
        X, rng = self.X.copy(), np.random.default_rng(seed)
        for one in np.unique(self.participants)[rng.permutation(np.unique(self.participants).size)][::2]:
            mine = np.flatnonzero((self.participants == one) & np.isin(self.conditions, [a, b]))
            X[mine] = X[mine[::-1]]
        return self._replace(X=X)

    @property
    def images(self) -> list:
        """Each map as a 3-D image."""
        return [nibabel.Nifti1Image(row.reshape(SHAPE), AFFINE) for row in self.X]

    def write(self, folder: Path) -> list[str]:
        """A 4-D file, its table with participants as runs, a mask; returns the options that name them."""
        folder.mkdir(parents=True, exist_ok=True)
        nibabel.save(nibabel.funcs.concat_images(self.images), folder / "maps.nii.gz")
        nibabel.save(nibabel.Nifti1Image(np.ones(SHAPE, np.uint8), AFFINE), folder / "mask.nii.gz")
        rows = zip(self.conditions, self.participants, strict=True)
        table = ["labels\tchunks", *(f"{condition}\t{who}" for condition, who in rows)]
        (folder / "labels.tsv").write_text("\n".join(table) + "\n")
        names = {"--bold": "maps.nii.gz", "--labels": "labels.tsv", "--mask": "mask.nii.gz"}
        return [word for option, name in names.items() for word in (option, str(folder / name))]


def write_table(people: People, folder: Path, order=None, **columns: list[str]) -> Path:
    """Each map in a file of its own, and maps.tsv, whose lines may be in another order."""
    folder.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(np.ones(SHAPE, np.uint8), AFFINE), folder / "mask.nii.gz")
    lines = []
    for k, image in enumerate(people.images):
        name = f"con_{people.participants[k]:02d}_{people.conditions[k]}.nii"
        nibabel.save(image, folder / name)
        cells = [name, people.conditions[k], f"sub-{people.participants[k]:02d}"]
        lines.append("\t".join([*cells, *(values[k] for values in columns.values())]))
    head = "\t".join(["file", "condition", "participant_id", *columns])
    order = range(len(lines)) if order is None else order
    (folder / "maps.tsv").write_text("\n".join([head, *(lines[k] for k in order)]) + "\n")
    return folder / "maps.tsv"


def make_people(n: int = 16, effect: float = 0.0, seed: int = 0) -> People:
    """Maps of n participants: a pattern of each condition and participant, noise, and heat - warmth."""
    rng = np.random.default_rng(seed)
    size = int(np.prod(SHAPE))
    pattern = {name: rng.standard_normal(size) for name in CONDITIONS}
    pattern["warmth"] = pattern["heat"] + effect * rng.standard_normal(size)
    own = rng.standard_normal((n, size))
    rows = [own[k] + pattern[name] + rng.standard_normal(size) for k in range(n) for name in CONDITIONS]
    participants = np.repeat(np.arange(1, n + 1), len(CONDITIONS))
    return People(np.array(rows, dtype=np.float32), np.tile(CONDITIONS, n), participants)
