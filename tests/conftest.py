"""A tiny study that runs through the whole command in a few seconds."""

import sys
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import nibabel
import numpy as np
import pytest

from mvpa_gamp.haxby import main

_spec = spec_from_file_location("bids_tree", Path(__file__).parent / "bids_tree.py")
_bids_tree = sys.modules.setdefault("bids_tree", module_from_spec(_spec))
_spec.loader.exec_module(_bids_tree)

AFFINE = np.array(
    [[-3.0, 0.2, 0, 12], [0, 3.5, 0.1, -20], [0, 0, 4.0, 5], [0, 0, 0, 1]]
)  # flipped and sheared
SHAPE = (6, 7, 4)


@dataclass(frozen=True)
class TinyData:
    """NIfTI volumes, labels and mask of three categories in four runs, with signal in a few voxels."""

    bold: Path
    labels: Path
    mask: Path

    def options(self, out: Path, *more: str) -> list[str]:
        """Command line for these files; onebit-cs is the cheapest method."""
        files = ["--bold", str(self.bold), "--labels", str(self.labels), "--mask", str(self.mask)]
        chosen = [] if "--methods" in more else ["--methods", "onebit-cs"]
        return [*files, "--out", str(out), "--participant-label", "tiny", *chosen, *more]


def write_tiny(
    folder: Path, categories: tuple[str, ...] = ("face", "house", "cat"), n_runs: int = 4
) -> TinyData:
    rng = np.random.default_rng(5)
    labels, runs = [], []
    for run in range(n_runs):
        for k in rng.permutation(len(categories)):
            labels += ["rest"] * 3 + [categories[k]] * 5
            runs += [run] * 8
    volumes = 100 + rng.normal(0, 1, (*SHAPE, len(labels)))
    for k, category in enumerate(categories):
        volumes[1 + k, 2:4, 1:3, np.array(labels) == category] += 2.0
    mask = np.zeros(SHAPE, dtype=np.uint8)
    mask[1:5, 1:6, :3] = 1
    folder.mkdir(parents=True, exist_ok=True)
    image = nibabel.Nifti1Image(volumes.astype(np.float32), AFFINE)
    image.header.set_zooms((*image.header.get_zooms()[:3], 2.0))
    nibabel.save(image, folder / "bold.nii.gz")
    nibabel.save(nibabel.Nifti1Image(mask, AFFINE), folder / "mask.nii.gz")
    lines = ["\t".join(("labels", "chunks"))] + [f"{a}\t{b}" for a, b in zip(labels, runs, strict=True)]
    (folder / "labels.tsv").write_text("\n".join(lines) + "\n")
    return TinyData(folder / "bold.nii.gz", folder / "labels.tsv", folder / "mask.nii.gz")


@pytest.fixture(autouse=True)
def _no_outside_data(monkeypatch, tmp_path_factory):
    """No test finds real data, a cache or settings of the machine it runs on."""
    empty = tmp_path_factory.getbasetemp() / "home"
    for name in ("HOME", "NILEARN_DATA", "NILEARN_SHARED_DATA", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(empty / name.lower()))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> TinyData:
    return write_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def make_tiny():
    return write_tiny


@pytest.fixture(scope="session")
def finished(tiny, tmp_path_factory) -> Path:
    """The results folder of a run over two methods and three comparisons, with fold maps."""
    out = tmp_path_factory.mktemp("finished") / "results"
    code = main(
        tiny.options(out, "--methods", "onebit-cs", "cdn", "--pairs", "all", "--fold-maps", "--quiet")
    )
    assert code == 0
    return out


@pytest.fixture(scope="session")
def phantom_results(tmp_path_factory) -> Path:
    """The results folder of a small phantom, with a method that has a posterior and one that has none."""
    out = tmp_path_factory.mktemp("phantom") / "results"
    options = ["--phantom", "--phantom-shape", "9", "11", "9", "--pairs", "face:house"]
    methods = ["--methods", "onebit-cs", "gamp-bg-lr"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        assert main([*options, *methods, "--out", str(out), "--quiet"]) == 0
    return out


@pytest.fixture(scope="session")
def make_bids_tree():
    return _bids_tree.write_tree


@pytest.fixture(scope="session")
def bids_tree(tmp_path_factory):
    """Three participants of a small BIDS dataset, the second one in two sessions."""
    return _bids_tree.write_tree(tmp_path_factory.mktemp("bids"))
