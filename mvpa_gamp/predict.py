"""python -m mvpa_gamp predict MODEL: what a saved model, or a weight map, says about new images."""

import argparse
import re
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mvpa_gamp.study import ending, options
from mvpa_gamp.study.ending import StudyError

if TYPE_CHECKING:
    from mvpa_gamp.decoder.model import FittedModel

_TABLES = (".tsv", ".csv", ".txt")
_ABOUT = """\
Apply a model to new images: a folder that GAMPDecoder.save or GAMPRegressor.save wrote, or a published
signature, a weight map with an intercept. Writes a line per image: predicted class or number, decision and
probabilities; for a weight map the sum of weight times value, cosine and correlation.
"""
_EXAMPLES = """\
examples:
  python -m mvpa_gamp predict heat-model --maps maps.tsv --out predictions.tsv
      3-D or 4-D files named in the column file of a table; its other columns are kept
  python -m mvpa_gamp predict signature_weights.nii.gz --intercept -0.53 --maps 'sub-*_heat.nii.gz'
      a published weight map
  python -m mvpa_gamp predict face-house-model --bold run-1_bold.nii.gz run-2_bold.nii.gz --scaling own
      whole runs, each cleaned by itself as the training runs were

exit codes: 0 predictions were written; 1 something failed; 2 the input cannot be used (nothing is written)
"""


def build_parser(command: str) -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {command}",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("model", metavar="MODEL", help="folder of a saved model, or a weight map (NIfTI)")
    images = parser.add_mutually_exclusive_group(required=True)
    images.add_argument(
        "--maps", nargs="+", metavar="TABLE|FILE", help="maps: a table with a column file, or image files"
    )
    images.add_argument("--bold", nargs="+", metavar="FILE", help="series of volumes, one file per run")
    parser.add_argument(
        "--scaling",
        choices=("stored", "own"),
        help="as the training images were scaled (stored, default), or by themselves (own): each run of "
        "--bold, maps with the others of their participant, a column of the table",
    )
    parser.add_argument("--intercept", type=float, metavar="B", help="of a weight map (default: 0)")
    parser.add_argument("--mask", metavar="FILE", help="voxels of a weight map (default: not zero)")
    parser.add_argument("--out", metavar="FILE", help="table to write (default: the terminal)")
    parser.add_argument("--overwrite", action="store_true", help="replace that table if it is there")
    return parser


def main(argv: Sequence[str] | None = None, command: str = "mvpa_gamp predict") -> int:
    """Run the command; returns the exit code."""
    given = vars(build_parser(command).parse_args(sys.argv[1:] if argv is None else argv))
    return ending.ended(command, given, _run)


def _check_out(out: Path, given: dict[str, Any]) -> None:
    """Refuse to replace what is no table, or what is read."""
    options.check_name(out, "--out")
    if not out.exists():
        return
    if not given.get("overwrite"):
        raise StudyError(f"--out {out}: it is there already. Give another name, or --overwrite.")
    place, read = out.resolve(), [given["model"], *given.get("maps", ()), *given.get("bold", ())]
    known = [Path(name).expanduser().resolve() for name in (*read, given.get("mask")) if name]
    if not out.is_file() or out.suffix not in _TABLES or any(place.is_relative_to(path) for path in known):
        raise StudyError(
            f"--out {out}: --overwrite replaces a table ({', '.join(_TABLES)}) of predictions, and this is "
            "another file, or one that is read. Give another name."
        )


def _run(given: dict[str, Any]) -> int:
    """Read the model and the images, and write the table; what cannot be used writes nothing."""
    from mvpa_gamp.results.files import cell, write_tsv

    out = Path(given["out"]).expanduser() if "out" in given else None
    if out is not None:
        _check_out(out, given)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            model = _model(given)
            files, lines = _images(given)
            rows = _predicted(model, given, files, lines)
    except ValueError as error:
        raise StudyError(str(error)) from error
    for told in dict.fromkeys(str(each.message) for each in caught if each.category is UserWarning):
        print(f"note: {told}", file=sys.stderr)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    if out is None:
        print("\t".join(columns))
        for row in rows:
            print("\t".join(cell(row.get(name)) for name in columns))
    else:
        write_tsv(out, columns, rows)
        print(f"{len(rows)} images: {out}")
    if sentence := _agreement(model, rows):
        print(sentence, file=sys.stderr)
    return 0


def _model(given: dict[str, Any]) -> "FittedModel":
    """The model of a folder or weight map."""
    from mvpa_gamp.decoder.model import FEWEST
    from mvpa_gamp.decoder.model_folder import load_model, signature_model

    path = Path(given["model"]).expanduser()
    if path.is_file():
        return signature_model(path, given.get("intercept", 0.0), given.get("mask"))
    if extra := [name for name in ("intercept", "mask") if name in given]:
        raise StudyError(f"--{extra[0]} is for a weight map; a model folder has its own. Leave it out.")
    model, said = load_model(path)
    within = said.get("about", {}).get("image_scaling", "none")
    return replace(model, within=within if within in FEWEST else "")


def _images(given: dict[str, Any]) -> tuple[list[Path], list[dict[str, str]]]:
    """The files in order, and what the table says of each image, which is nothing without one."""
    from mvpa_gamp.results.files import read_tsv

    names = given.get("maps") or given["bold"]
    if "bold" not in given and len(names) == 1 and Path(names[0]).suffix.lower() in _TABLES:
        table = Path(names[0]).expanduser()
        if not table.is_file():
            raise StudyError(f"--maps {table}: expected a table, found no file there. Check the path.")
        lines = read_tsv(table)
        column = next(
            (name for name in ("file", "filename", "path", "map") if lines and name in lines[0]), None
        )
        if column is None:
            raise StudyError(f"--maps {table}: expected a header with a column file, and a line per image.")
        files = [table.parent / line[column] for line in lines]
        return files, lines
    files = []
    for name in names:
        path = Path(name).expanduser()
        found = sorted(path.parent.glob(path.name), key=_natural) if "*" in path.name else [path]
        if not found:
            raise StudyError(f"{name}: expected image files, found none. Check the pattern.")
        files += found
    return files, []


def _natural(path: Path) -> list[Any]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", str(path))]


def _predicted(
    model: "FittedModel", given: dict[str, Any], files: list[Path], lines: list[dict[str, str]]
) -> list[dict[str, Any]]:
    """A row per image."""
    import numpy as np

    from mvpa_gamp.imaging.volumes import n_volumes, open_image

    distinct = list(dict.fromkeys(files))
    counts = [n_volumes(open_image(file, "image", unpack=False)) for file in distinct]
    volumes = [(file, k) for file, count in zip(distinct, counts, strict=True) for k in range(count)]
    own = given.get("scaling") == "own"
    told: list[dict[str, Any]] = [{"file": file.name, "volume": k + 1} for file, k in volumes]
    order = range(len(volumes))
    if lines:
        order, told = _by_line(files, volumes, lines)
    runs = np.repeat(np.arange(len(distinct)), counts) if own else None
    if own and "bold" not in given:
        runs = np.empty(len(volumes), dtype=object)
        runs[list(order)] = _participants(model, lines)
    rows = model.rows([str(file) for file in distinct], runs, scaling="own" if own else "training")
    answers = _answers(model, rows[list(order)])
    return [{**before, **after} for before, after in zip(told, answers, strict=True)]


def _participants(model: "FittedModel", lines: list[dict[str, str]]) -> list[str]:
    """Whose map each line of a table is, for a model of maps that were scaled within participants."""
    from mvpa_gamp.imaging.maps import COLUMNS

    if not model.within:
        raise StudyError(
            "--scaling own: this model's training images were not scaled within participants, and maps are "
            "no runs. Leave it out."
        )
    name = next((name for name in COLUMNS["participant"] if lines and name in lines[0]), None)
    if name is None:
        raise StudyError(
            "--scaling own: expected --maps TABLE with a column participant, whose maps are scaled together. "
            "Add it, or leave --scaling out."
        )
    return [line[name] for line in lines]


def _by_line(
    files: list[Path], volumes: list[tuple[Path, int]], lines: list[dict[str, str]]
) -> tuple[Any, list[dict[str, Any]]]:
    """The volume of each line of a table: the next one of its file."""
    if len(lines) != len(volumes):
        raise StudyError(
            f"--maps: the files have {len(volumes)} images, but the table has {len(lines)} lines. Give a "
            "line for each image, in their order."
        )
    waiting: dict[Path, list[int]] = {}
    for place, (file, _) in enumerate(volumes):
        waiting.setdefault(file, []).append(place)
    try:
        return [waiting[file].pop(0) for file in files], [dict(line) for line in lines]
    except IndexError as error:
        raise StudyError("--maps: a file is in more lines than it has images. Correct the table.") from error


def _answers(model: "FittedModel", rows: Any) -> list[dict[str, Any]]:
    """What the model says about every row."""
    import numpy as np

    if model.classes is None:
        score = model.scores(rows)[:, 0]
        found: dict[str, Any] = {"predicted" if model.method != "signature" else "score": score}
        if model.method == "signature":
            weights = model.coef[:, 0]
            with np.errstate(invalid="ignore", divide="ignore"):
                found["cosine"] = rows @ weights / np.linalg.norm(weights) / np.linalg.norm(rows, axis=1)
                found["correlation"] = [np.corrcoef(row, weights)[0, 1] for row in rows]
        return [{name: values[k] for name, values in found.items()} for k in range(len(rows))]
    said = model.answers(rows)
    told = []
    for k, number in enumerate(said.predicted):
        row: dict[str, Any] = {"predicted": model.classes[number]}
        if said.decision.ndim == 1:
            row["decision"] = said.decision[k]
        if not np.isnan(said.proba[k]).any():
            row |= {f"probability_{name}": said.proba[k, c] for c, name in enumerate(model.classes)}
        told.append(row)
    return told


def _agreement(model: "FittedModel", rows: list[dict[str, Any]]) -> str:
    """How many predictions are those of the table, where it has the classes."""
    if model.classes is None:
        return ""
    names = set(map(str, model.classes))
    for column in ("condition", "label", "trial_type", "target"):
        known = [row for row in rows if str(row.get(column)) in names]
        if known:
            right = sum(str(row[column]) == str(row["predicted"]) for row in known)
            share = f"{right} of {len(known)} images ({right / len(known):.1%})"
            return f"{share} predicted as in the column {column}."
    return ""


if __name__ == "__main__":
    sys.exit(main())
