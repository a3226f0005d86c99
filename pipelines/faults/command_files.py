"""Small files of a study of one's own, and what may be wrong with each of them."""

import gzip
from collections.abc import Callable
from pathlib import Path

import nibabel
import numpy as np
from numpy.typing import NDArray

Damage = Callable[[Path, np.random.Generator], None]

SHAPE, RUNS, BLOCK = (4, 5, 4), 4, 4
_AFFINE = np.array([[-3.0, 0.1, 0, 6], [0, 3.2, 0, -8], [0, 0, 4, 2], [0, 0, 0, 1]])
_FILES = {"bold": "bold.nii.gz", "mask": "mask.nii.gz", "labels": "labels.tsv", "confounds": "confounds.tsv"}
_FILES |= {"atlas": "atlas.nii.gz", "atlas-labels": "atlas.tsv", "fold-confounds": "covariates.tsv"}


def write_files(folder: Path) -> dict[str, Path]:
    """Volumes, mask, labels, confounds, an atlas and covariates that fit together."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(3)
    conditions = np.tile(np.repeat(["rest", "face", "rest", "house", "rest", "cat"], BLOCK), RUNS)
    runs = np.repeat(np.arange(RUNS), 6 * BLOCK)
    volumes = 100 + rng.normal(0, 1, (*SHAPE, len(runs)))
    for k, name in enumerate(("face", "house", "cat")):
        volumes[k, 1:3, 1:3, conditions == name] += 2
    inside, regions = np.zeros(SHAPE), np.ones(SHAPE)
    inside[:, 1:4, 1:3], regions[2:] = 1, 2
    paths = {name: folder / file for name, file in _FILES.items()}
    save(paths["bold"], volumes.astype(np.float32))
    save(paths["mask"], inside.astype(np.uint8))
    save(paths["atlas"], regions.astype(np.int16))
    rows = [f"{name}\t{run}" for name, run in zip(conditions, runs, strict=True)]
    paths["labels"].write_text("\n".join(["labels\tchunks", *rows]) + "\n")
    moved = ["\t".join(f"{value:.4f}" for value in row) for row in rng.normal(size=(len(runs), 2))]
    paths["confounds"].write_text("\n".join(["trans_x\trot_y", *moved]) + "\n")
    paths["atlas-labels"].write_text("index\tname\n1\tanterior\n2\tposterior\n")
    rows = [f"{value:.3f}\t{k % 7}" for k, value in enumerate(rng.normal(700, 90, len(runs)))]
    paths["fold-confounds"].write_text("\n".join(["reaction_time\tcontrast", *rows]) + "\n")
    return paths


def write_maps(folder: Path) -> dict[str, Path]:
    """Maps of eight participants, three each, in one file, and the table that names them."""
    folder.mkdir(parents=True, exist_ok=True)
    rng, conditions = np.random.default_rng(4), ("face", "house", "cat")
    values, rows = rng.normal(0, 1, (*SHAPE, 24)), []
    for k in range(24):
        rating = rng.normal()
        values[k % 3, 1:3, 1:3, k] += 2
        values[3, 1:3, 1:3, k] += 2 * rating
        rows.append(f"maps.nii.gz\t{conditions[k % 3]}\tp{k // 3}\t{rating:.3f}\t{k // 12}")
    paths = {"maps": folder / "maps.tsv", "map": folder / "maps.nii.gz"}
    save(paths["map"], values.astype(np.float32))
    paths["maps"].write_text("\n".join(["file\tcondition\tparticipant\trating\tsite", *rows]) + "\n")
    return paths


def save(path: Path, values: NDArray, affine: NDArray = _AFFINE) -> None:
    """An image with two seconds between volumes."""
    image = nibabel.Nifti1Image(values, affine)
    if values.ndim == 4:
        image.header.set_zooms((*image.header.get_zooms()[:3], 2.0))
    nibabel.save(image, path)


def _flip(path: Path, rng: np.random.Generator) -> None:
    content = bytearray(path.read_bytes())
    content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)


def _cut(path: Path, rng: np.random.Generator) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: rng.integers(len(content))])


def _replaced(content: bytes) -> Damage:
    return lambda path, rng: path.write_bytes(content) and None


def _folder(path: Path, rng: np.random.Generator) -> None:
    path.unlink()
    path.mkdir()


ANY: dict[str, Damage] = {
    "a bit flipped": _flip,
    "cut": _cut,
    "emptied": _replaced(b""),
    "a folder": _folder,
    "missing": lambda path, rng: path.unlink(),
    "other bytes": _replaced(b"PK\x03\x04 not what was promised \x00\xff"),
}


def _values(change: Callable[[NDArray, np.random.Generator], NDArray]) -> Damage:
    """Other values in the image."""

    def damage(path: Path, rng: np.random.Generator) -> None:
        save(path, np.asarray(change(np.asarray(nibabel.load(path).dataobj), rng)))

    return damage


def _header(path: Path, rng: np.random.Generator) -> None:
    """A bit of the header flipped, in a file whose checksum is right."""
    raw = bytearray(gzip.decompress(path.read_bytes()))
    raw[rng.integers(348)] ^= 1 << int(rng.integers(8))
    path.write_bytes(gzip.compress(bytes(raw)))


def _singular(path: Path, rng: np.random.Generator) -> None:
    image = nibabel.load(path)
    header = image.header.copy()
    header["srow_x"], header["qform_code"] = header["srow_y"], 0
    raw = header.binaryblock + bytes(4) + np.asarray(image.dataobj).tobytes(order="F")
    path.write_bytes(gzip.compress(raw))


def _some(value: float) -> Callable[[NDArray, np.random.Generator], NDArray]:
    def change(values: NDArray, rng: np.random.Generator) -> NDArray:
        values = values.astype(np.float32)
        values[tuple(int(rng.integers(side)) for side in values.shape[: rng.integers(1, 4)])] = value
        return values

    return change


IMAGE: dict[str, Damage] = {
    "header": _header,
    "singular affine": _singular,
    "some NaN": _values(_some(np.nan)),
    "some infinite": _values(_some(np.inf)),
    "all NaN": _values(lambda v, rng: np.full(v.shape, np.nan, dtype=np.float32)),
    "all zero": _values(lambda v, rng: np.zeros_like(v)),
    "constant": _values(lambda v, rng: np.full(v.shape, 7, dtype=np.float32)),
    "scaled": _values(lambda v, rng: (v * rng.choice([1e-30, 1e-12, 1e6, 1e20])).astype(np.float32)),
    "integers": _values(lambda v, rng: v.astype(np.int16)),
    "fewer axes": _values(lambda v, rng: v[..., 0]),
    "more axes": _values(lambda v, rng: v[..., None].repeat(2, axis=-1)),
    "another grid": _values(lambda v, rng: v[:-1]),
    "negative": _values(lambda v, rng: -v.astype(np.float32)),
}


def lines(change: Callable[[list[str], np.random.Generator], list[str]]) -> Damage:
    def damage(path: Path, rng: np.random.Generator) -> None:
        path.write_text("\n".join(change(path.read_text().splitlines(), rng)) + "\n")

    return damage


def _cell(text: str) -> Callable[[list[str], np.random.Generator], list[str]]:
    """One cell of the table holds something else."""

    def change(lines: list[str], rng: np.random.Generator) -> list[str]:
        row = int(rng.integers(len(lines)))
        cells = lines[row].split("\t")
        cells[rng.integers(len(cells))] = text
        return [*lines[:row], "\t".join(cells), *lines[row + 1 :]]

    return change


def _runs(of: Callable[[int, int], object]) -> Callable[[list[str], np.random.Generator], list[str]]:
    """Other runs in the second column, from the number of the volume and its run."""

    def change(lines: list[str], rng: np.random.Generator) -> list[str]:
        rows = [line.split("\t") for line in lines[1:]]
        return [lines[0], *(f"{a}\t{of(k, k // (6 * BLOCK))}" for k, (a, _) in enumerate(rows))]

    return change


TABLE: dict[str, Damage] = {
    "a line missing": lines(lambda x, rng: x[:3] + x[4:]),
    "no header": lines(lambda x, rng: x[1:]),
    "a second header": lines(lambda x, rng: x[:9] + x[:1] + x[10:]),
    "columns doubled": lines(lambda x, rng: [f"{line}\t{line}" for line in x]),
    "one column": lines(lambda x, rng: [line.split("\t")[0] for line in x]),
    "spaces": lines(lambda x, rng: [line.replace("\t", " ") for line in x]),
    "shuffled": lines(lambda x, rng: [x[0], *rng.permutation(x[1:]).tolist()]),
    "a long cell": lines(_cell("x" * 140_000)),
    "an empty cell": lines(_cell("")),
    "a word": lines(_cell("maybe")),
    "a number": lines(_cell("1e400")),
    "a quotation mark": lines(_cell('"')),
    "markup": lines(_cell("<script>../x</script>")),
    "Latin-1": lambda path, rng: path.write_bytes(path.read_bytes() + b"caf\xe9\t0\n") and None,
    "nothing but a header": lines(lambda x, rng: x[:1]),
}
_LABELS: dict[str, Damage] = {
    "huge run numbers": lines(_runs(lambda k, run: 2**70 + run)),
    "named runs": lines(_runs(lambda k, run: f"run-{run}")),
    "one run": lines(_runs(lambda k, run: 1)),
    "a run per volume": lines(_runs(lambda k, run: k)),
    "a short run": lines(_runs(lambda k, run: int(k > 1))),
    "a long run": lines(_runs(lambda k, run: int(k > 80))),
    "one condition": lines(lambda x, rng: [line.replace("house", "face") for line in x]),
    "conditions alike": lines(lambda x, rng: [line.replace("house", "f-ace") for line in x]),
    "rest only": lines(lambda x, rng: [x[0], *("rest\t" + line.split("\t")[1] for line in x[1:])]),
}

# What may be wrong with which file.
DAMAGES: dict[str, dict[str, Damage]] = {
    "bold": ANY | IMAGE,
    "mask": ANY | IMAGE,
    "atlas": ANY | IMAGE,
    "labels": ANY | TABLE | _LABELS,
    "confounds": ANY | TABLE,
    "fold-confounds": ANY | TABLE,
    "atlas-labels": ANY | TABLE,
    "maps": ANY | TABLE,
    "map": ANY | IMAGE,
}
