"""Golden runs: small studies of every kind, whose numbers a renovation must not change.

    python tests/golden.py write DIR       results folders of small studies
    python tests/golden.py compare A B     names what differs; exit code 1 if anything does

Pages, figures, logs, stored fits and run times are not compared.
"""

import argparse
import csv
import gzip
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from bids_tree import write_tree
from surface_tree import write_surface_tree

from mvpa_gamp import GAMPDecoder
from mvpa_gamp.__main__ import main as bids_main
from mvpa_gamp.haxby import main
from mvpa_gamp.imaging.phantom import Phantom, phantom_images, phantom_labels

SMALL = ("--phantom", "--phantom-shape", "9", "11", "9", "--quiet")
LEFT_OUT = ("logs", "figures", "work", "inputs")  # folders
MACHINE = ("seconds", "seconds_per_contrast", "versions", "date", "machine", "finished")  # keys and columns


def phantom_with_everything(out: Path) -> None:
    """Comparisons, several classes, crosses, regions, permutations, a false-discovery rate, a curve."""
    tests = ["--permutations", "19", "--max-inclusion", "--fdr", "0.1", "--learning-curve"]
    designs = ["--pairs", "face:house", "--classes", "face", "house", "cat"]
    more = ["--cross", "face:house>cat:chair", "--atlas", "phantom", "--by-region", "--fold-maps"]
    methods = ["--methods", "gamp-sbg-lr", "onebit-cs"]
    _ok(main([*SMALL, *designs, *more, *tests, *methods, "--out", str(out / "everything")]))


def all_methods(out: Path) -> None:
    """Two comparisons by every method that needs no graph, without tests."""
    methods = ["--methods", "gamp-bg-lr", "svm", "lda", "l1-lr-cv", "cdn", "tron"]
    _ok(main([*SMALL, "--pairs", "face:house", "face:cat", *methods, "--out", str(out / "all_methods")]))


def phantom_whitened(out: Path) -> None:
    """The same doors where every fold prepares its X."""
    options = ["--whiten", "--pairs", "face:house", "face:cat", "--permutations", "19", "--learning-curve"]
    more = [
        "--cross",
        "face:house>cat:chair",
        "--methods",
        "gamp-sbg-lr",
        "lda",
        "--classes",
        "face",
        "house",
        "cat",
    ]
    _ok(main([*SMALL, *options, *more, "--out", str(out / "whitened")]))


def gamp_only(out: Path) -> None:
    """Tables of all methods with a posterior, nothing else."""
    methods = ["gamp-bg-lr", "gamp-bl-lr", "gamp-bg-pr", "gamp-bg-hl", "gamp-l1-lr", "gamp-sbg-lr"]
    _ok(main([*SMALL, "--pairs", "face:house", "--methods", *methods, "--out", str(out / "gamp_only")]))


def bids_and_group(out: Path) -> None:
    """Two participants and their group, with permutations, classes and a cross."""
    tree = write_tree(out / "inputs" / "bids", participants=("01", "02"))
    asked = ["--contrasts", "face:house", "--multiclass", "--cross", "face:house>cat:house"]
    run = ["--permutations", "19", "--methods", "gamp-sbg-lr", "svm", "--quiet"]
    _ok(bids_main([str(tree.root), str(out / "bids"), "participant", *asked, *run]))
    _ok(bids_main([str(tree.root), str(out / "bids"), "group", "--quiet"]))


def surface(out: Path) -> None:
    """A surface, both levels."""
    tree = write_surface_tree(out / "inputs" / "surface")
    mesh = ["--surface-mesh", *map(str, tree.meshes)]
    run = ["--task", "faces", "houses", "--lag-trs", "0", "--permutations", "19", "--quiet", *mesh]
    command = [str(tree.root), str(out / "surface")]
    _ok(bids_main([*command, "participant", "--space", "fsLR", "--methods", "gamp-sbg-lr", *run]))
    _ok(bids_main([*command, "group", "--quiet"]))


def decoder(out: Path) -> None:
    """A decoder of images: its scores, maps and page."""
    phantom = Phantom(shape=(9, 11, 9), n_runs=6, categories=("face", "house", "cat"))
    bold, mask, _, _ = phantom_images(phantom)
    labels = phantom_labels(phantom)
    fitted = GAMPDecoder(mask=mask, ignore="rest").fit(bold, labels.conditions, groups=labels.runs)
    place = out / "decoder"
    place.mkdir()
    for name, image in fitted.inclusion_img_.items():
        image.to_filename(place / f"inclusion_{name}.nii.gz")
    found = {
        "fold_scores": np.asarray(fitted.fold_scores_).tolist(),
        "confusion": np.asarray(fitted.confusion_).tolist(),
        "stability": repr(fitted.stability_),
        "permutation": fitted.permutation_test(19).pvalue,
        "prediction": [str(label) for label in fitted.predict(bold)],
    }
    (place / "found.json").write_text(json.dumps(found, indent=1))


STUDIES: tuple[Callable[[Path], None], ...] = (
    phantom_with_everything,
    all_methods,
    phantom_whitened,
    gamp_only,
    bids_and_group,
    surface,
    decoder,
)


def _ok(code: int) -> None:
    if code:
        raise SystemExit(f"a golden run ended with {code}")


def write(out: Path, names: list[str]) -> None:
    """All studies, or those named."""
    out.mkdir(parents=True, exist_ok=True)
    for study in STUDIES:
        if not names or study.__name__ in names:
            print(study.__name__, flush=True)
            began = time.perf_counter()
            study(out)
            print(f"    {time.perf_counter() - began:.0f} s", flush=True)


def compared_files(root: Path) -> Iterator[Path]:
    """Tables, maps and summaries, relative to the folder."""
    for path in sorted(root.rglob("*")):
        place = path.relative_to(root)
        is_result = path.suffix in (".tsv", ".json", ".gz", ".gii", ".nii", ".toml")
        if path.is_file() and is_result and not set(place.parts) & set(LEFT_OUT):
            yield place


def content(path: Path) -> Any:
    """What is compared: bytes, without run times and what names this machine."""
    if path.suffix == ".json":
        return _without_machine(json.loads(path.read_text()))
    if path.suffix == ".tsv":
        with path.open(newline="") as stream:
            return [
                {name: value for name, value in row.items() if name not in MACHINE}
                for row in csv.DictReader(stream, delimiter="\t")
                if not {"sha256"} & set(row)
            ]
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix == ".toml":
        return [line for line in path.read_text().split("\n") if "/" not in line]
    return path.read_bytes()


def _without_machine(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: _without_machine(value) for name, value in found.items() if name not in MACHINE}
    if isinstance(found, list):
        return [_without_machine(value) for value in found]
    if isinstance(found, str) and found.startswith(("/", "file:")):
        return "a path"
    return found


def differences(one: Path, other: Path) -> list[str]:
    """A line per file that is missing, new or different."""
    before, after = set(compared_files(one)), set(compared_files(other))
    lines = [f"missing    {path}" for path in sorted(before - after)]
    lines += [f"new        {path}" for path in sorted(after - before)]
    for path in sorted(before & after):
        if content(one / path) != content(other / path):
            lines.append(f"different  {path}")
    return lines


def run(argv: list[str] | None = None) -> int:
    """Write the studies, or compare two folders of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    writer = commands.add_parser("write")
    writer.add_argument("out", type=Path)
    writer.add_argument("--only", nargs="+", default=[], choices=[study.__name__ for study in STUDIES])
    comparer = commands.add_parser("compare")
    comparer.add_argument("one", type=Path)
    comparer.add_argument("other", type=Path)
    given = parser.parse_args(argv)
    if given.command == "write":
        shutil.rmtree(given.out, ignore_errors=True) if not given.only else None
        write(given.out, given.only)
        return 0
    lines = differences(given.one, given.other)
    print("\n".join(lines) or "no differences")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(run())
