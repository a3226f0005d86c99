"""What folders of tests share: a tiny study for the commands, a toy matrix, real data where they are."""

import os
import sys
from base64 import b64decode
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import NamedTuple

import nibabel
import numpy as np
import pytest
import threadpoolctl

from mvpa_gamp.haxby import main
from mvpa_gamp.report import figures
from mvpa_gamp.report.style import Drawn


def _beside(name: str):
    """A module of this folder, which tests can import by its name."""
    spec = spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    module = sys.modules.setdefault(name, module_from_spec(spec))
    spec.loader.exec_module(module)
    return module


_bids_tree, _chromium, _ = _beside("bids_tree"), _beside("chromium"), _beside("fmriprep_tree")
for _name in ("block_noise", "people_maps", "surface_data", "surface_tree"):
    _beside(_name)

AFFINE = np.array(
    [[-3.0, 0.2, 0, 12], [0, 3.5, 0.1, -20], [0, 0, 4.0, 5], [0, 0, 0, 1]]
)  # flipped and sheared
SHAPE = (6, 7, 4)

_SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'
_PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
_BLANK = {bytes: _SVG, Drawn: Drawn(_PNG, _SVG)}


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


class Study(NamedTuple):
    X: np.ndarray  # (M, N)
    conditions: np.ndarray  # (M,)
    runs: np.ndarray  # (M,)


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


def pytest_configure(config):
    """Compiled loops are kept between test processes, beside what pytest keeps of its last run."""
    if hasattr(config, "cache"):
        os.environ.setdefault("NUMBA_CACHE_DIR", str(config.cache.mkdir("numba")))
    if hasattr(config, "workerinput"):  # test processes share the cores: one thread each
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        threadpoolctl.threadpool_limits(1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Core: no file calls it whole, it is no pipeline and not slow. What needs the site comes first.

    Building the documentation is the longest piece of work, in one process.
    """
    for item in items:
        if "pipelines" in item.path.parts:
            item.add_marker("whole")
        if not any(item.get_closest_marker(name) for name in ("slow", "whole")):
            item.add_marker("core")
    items.sort(key=lambda item: "site" not in getattr(item, "fixturenames", ()))


@pytest.fixture(autouse=True)
def _no_outside_data(monkeypatch, tmp_path_factory):
    """No test finds real data, a cache or settings of the machine it runs on."""
    empty = tmp_path_factory.getbasetemp() / "home"
    for name in ("HOME", "NILEARN_DATA", "NILEARN_SHARED_DATA", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(empty / name.lower()))


@pytest.fixture(autouse=True)
def _blank_figures(request, monkeypatch):
    """Figures of short-lived results folders are blank: drawing them is most of a tiny run.

    Those of shared folders are drawn, and those of tests of the report or marked ``figures``.
    """
    if "report" in request.path.parts or request.node.get_closest_marker("figures"):
        return
    for name, draw in vars(figures).items():
        kind = getattr(draw, "__annotations__", {}).get("return")
        if kind in (bytes, Drawn):
            monkeypatch.setattr(figures, name, lambda *_, blank=_BLANK[kind]: blank)


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
def browser(tmp_path_factory):
    """A Chromium without a window; skips where there is none."""
    if _chromium.PROGRAM is None:
        pytest.skip("no Chromium here (Debian: apt install chromium)")
    started = _chromium.Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@pytest.fixture(scope="session")
def make_bids_tree():
    return _bids_tree.write_tree


@pytest.fixture(scope="session")
def bids_tree(tmp_path_factory):
    """Three participants of a small BIDS dataset, the second one in two sessions."""
    return _bids_tree.write_tree(tmp_path_factory.mktemp("bids"))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder named by MVPA_GAMP_DATA, or shared/data beside the repository; skips without it."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("MVPA_GAMP_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"real data not found: {folder} is no folder (set MVPA_GAMP_DATA)")
    return folder


@pytest.fixture(scope="session")
def haxby_slice(real_data) -> Study:
    """The real slice, detrended and z-scored per run, rest dropped: X (864, 530) float32."""
    folder = real_data / "haxby_slice"
    if not folder.is_dir():
        pytest.skip(f"real data not found: {folder} is no folder (set MVPA_GAMP_DATA)")
    from nilearn.signal import clean

    inside = np.asarray(nibabel.load(folder / "mask.nii.gz").dataobj) > 0
    series = np.asarray(nibabel.load(folder / "bold.nii.gz").dataobj)[inside].T.astype(float)
    lines = (folder / "labels.txt").read_text().split("\n")[1:]
    conditions, runs = np.array([line.split() for line in lines if line.strip()]).T
    cleaned = clean(series, runs=runs.astype(int), detrend=True, standardize="zscore_sample")
    kept = conditions != "rest"
    X = np.ascontiguousarray(cleaned[kept], dtype=np.float32)
    return Study(X, conditions[kept], runs[kept].astype(int))


@pytest.fixture(scope="session")
def toy_study() -> Study:
    """Six runs of 3 categories x 4 rows, 60 correlated features of which a few tell the categories apart."""
    rng = np.random.default_rng(7)
    runs = np.repeat(np.arange(6), 12)
    conditions = np.tile(np.repeat(["cat", "scissors", "shoe"], 4), 6)
    noise = rng.standard_normal((72, 60))
    X = noise + 0.7 * np.roll(noise, 1, axis=1)
    for i, category in enumerate(["cat", "scissors", "shoe"]):
        X[conditions == category, 10 * i : 10 * i + 3] += 2.2
    X -= X.mean(axis=0)
    return Study(X / X.std(axis=0), conditions, runs)
