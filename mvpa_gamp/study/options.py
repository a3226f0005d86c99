"""Command-line options that the commands share, and how a command ends: sentences and exit codes."""

import argparse
import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from mvpa_gamp._version import __version__
from mvpa_gamp.parallel import Workers
from mvpa_gamp.study.ending import StudyError

_LONGEST_NAME, _LONGEST_PATH = 255, 3500  # bytes; of paths systems allow 4,096, files need the rest
RUN_OPTIONS = (
    "config", "out", "work_dir", "keep_fits", "n_jobs", "dask", "resume", "overwrite", "reports_only",
    "quiet", "verbose",
)  # fmt: skip


class _Parser(argparse.ArgumentParser):
    """A parser with a short help beside the full one, which offers a similar name for an unknown option.

    ``common`` has what most users need: an option with its value, and a few words about it.
    """

    common: Mapping[str, str] = {}

    def format_short(self) -> str:
        """What ``--help`` prints: usage, the common options, and where to find the others."""
        width = max(len(option) for option in self.common)
        rows = [f"  {option:{width}}  {words}" for option, words in self.common.items()]
        about, *_ = (self.description or "").split("\n\n")
        usage = self.format_usage().rstrip()
        return "\n".join(
            [usage, "", about.rstrip(), "", *rows, "", "--help-all: all options, with examples.", ""]
        )

    def error(self, message: str) -> NoReturn:
        known = [name for action in self._actions for name in action.option_strings]
        unknown = [word.split("=")[0] for word in message.split() if word.startswith("--")]
        near = [name for word in unknown for name in difflib.get_close_matches(word, known, n=1)]
        if message.startswith("unrecognized arguments") and near:
            message += f". Did you mean {' '.join(near)}?"
        super().error(message)


class _ShortHelp(argparse.Action):
    """--help: print the short form and end."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        assert isinstance(parser, _Parser)
        parser.exit(message=parser.format_short())


def command_parser(
    command: str, usage: str, about: str, examples: str, common: Mapping[str, str]
) -> argparse.ArgumentParser:
    """A parser whose options leave no trace when they are not given, so that --config can fill them."""
    parser = _Parser(
        prog=f"python -m {command}",
        usage=f"%(prog)s {usage}",
        description=about,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
        add_help=False,
    )
    parser.common = common
    parser.add_argument("-h", "--help", action=_ShortHelp, nargs=0, help="the options that most users need")
    parser.add_argument("--help-all", action="help", help="all options")
    return parser


def add_cleaning(group: Any) -> None:
    """What is done to the time series before decoding."""
    on_off = argparse.BooleanOptionalAction
    group.add_argument(
        "--smoothing-fwhm",
        "--smoothing",
        type=float,
        metavar="MM",
        help="smooth volumes (default: no smoothing)",
    )
    group.add_argument(
        "--high-pass", type=float, metavar="HZ", help="remove slower frequencies (default: no filter)"
    )
    group.add_argument("--detrend", action=on_off, help="detrend each run (default: yes)")
    group.add_argument("--standardize", action=on_off, help="z-score each run (default: yes)")


def add_study(group: Any, default_pairs: str) -> None:
    """What is compared with what, by which methods."""
    group.add_argument(
        "--pairs",
        "--contrasts",
        nargs="+",
        metavar="A:B",
        help=f'comparisons such as face:house, or "all"; a side can be several conditions, a1+a2:b, or a '
        f"pattern, 'a*:b*' (default: {default_pairs})",
    )
    add_designs(group)
    group.add_argument(
        "--methods",
        nargs="+",
        metavar="NAME",
        help=f"any of {', '.join(KNOWN_METHODS)} (default: {' '.join(DEFAULT_METHODS)})",
    )
    group.add_argument(
        "--whiten",
        action="store_true",
        help="whiten noise shared by voxels, estimated on each fold's training runs (not with --fdr)",
    )
    group.add_argument(
        "--fold-confounds",
        metavar="FILE",
        help="TSV of covariates such as reaction times, one line per sample or volume, regressed out with "
        "coefficients from each fold's training runs ({participant} in the name is replaced by the label)",
    )
    group.add_argument(
        "--class-weight",
        metavar="balanced",
        help="give both categories the same total weight in training if their numbers of samples differ "
        "(default: every sample counts the same)",
    )
    group.add_argument("--seed", type=int, metavar="N", help="seed for all random numbers (default 0)")
    group.add_argument("--fold-maps", action="store_true", help="also write the maps of each fold")
    group.add_argument(
        "--strict",
        action="store_true",
        help="stop if the check before the first fit finds a leak, or a covariate that decodes by itself "
        "(default: warn and continue)",
    )


def add_maps(group: Any) -> None:
    """Maps of many participants, and how they are held out and scaled."""
    group.add_argument(
        "--maps",
        nargs="+",
        metavar="TABLE|FILE",
        help="maps of many participants: a TSV with the columns file, condition and participant, a folder of "
        "BIDS statistical maps, or image files with --labels TABLE; never detrended",
    )
    group.add_argument(
        "--target",
        metavar="COLUMN",
        help="of --maps: predict the numbers in this column of the table instead of conditions",
    )
    group.add_argument(
        "--folds",
        metavar="participant|N|COLUMN",
        help="of --maps: what is held out, a participant (default), each of N folds of participants, or the "
        "maps of one value of a column, such as stimulus",
    )
    group.add_argument(
        "--scaling",
        metavar="none|centre|zscore",
        help="of --maps, each participant separately: centre takes away the mean of their compared maps "
        "(default where everyone has several conditions, else none)",
    )
    group.add_argument(
        "--zero-voxels",
        metavar="drop|keep",
        help="of --maps: voxels that are 0 or missing in some participant (default drop)",
    )
    group.add_argument(
        "--covariates",
        nargs="+",
        metavar="COLUMN",
        help="of --maps: columns of numbers, such as age, regressed out with coefficients of each fold's "
        "training maps",
    )


def add_surface_mesh(group: Any) -> None:
    """Where vertices are."""
    group.add_argument(
        "--surface-mesh",
        nargs=2,
        metavar=("LEFT", "RIGHT"),
        help="meshes of runs on a surface, such as *_midthickness.surf.gii (fsaverage5: not needed)",
    )


def add_designs(group: Any) -> None:
    """Comparisons of more than two conditions at a time."""
    together = group.add_mutually_exclusive_group()
    together.add_argument(
        "--multiclass",
        dest="classes",
        action="store_const",
        const=("all",),
        help="also decode all conditions at once: accuracy, confusion matrix, recall, maps for each class",
    )
    together.add_argument(
        "--classes",
        nargs="+",
        metavar="A",
        help="the same for these conditions only (or groups: a1+a2, 'a*')",
    )
    group.add_argument(
        "--cross",
        nargs="+",
        action="extend",
        metavar="A:B>C:D",
        help="train on one comparison and test on the other, on held-out runs; in quotation marks: "
        "'face:house>cat:chair' in both directions, '>>' only as written",
    )
    group.add_argument(
        "--cross-session",
        nargs="+",
        action="extend",
        metavar="R>S",
        help="train every comparison on some runs and test on others: '1-6>7-12', 'ses-1>>ses-2'",
    )


def add_inference(group: Any) -> None:
    """What reviewers ask for, of methods that need no nested search in every one of the many fits."""
    group.add_argument(
        "--permutations",
        type=int,
        metavar="N",
        help="permutation test: exchange labels in blocks within runs, N times; also writes maps of the "
        "voxels that carry information about the labels (default: none)",
    )
    group.add_argument(
        "--max-inclusion",
        action="store_true",
        help="with --permutations: also map family-wise p-values of the inclusion probabilities",
    )
    group.add_argument(
        "--fdr",
        type=float,
        metavar="RATE",
        help="select voxels at this false-discovery rate, calibrated with permuted labels, and check the "
        "rate with planted effects",
    )
    group.add_argument(
        "--learning-curve",
        action="store_true",
        help="accuracy as a function of the number of training runs, measured and predicted by theory",
    )


def add_regions(group: Any) -> None:
    """Where in the brain, by the names of an atlas."""
    group.add_argument(
        "--atlas",
        metavar="FILE|NAME",
        help="regions: a labelled 3-D NIfTI in the space of the data, with its table (such as _dseg.tsv) "
        "next to it; or harvard_oxford, juelich, aal, schaefer_2018[:N], destrieux_2009 if nilearn has "
        "downloaded them; or phantom (default: no regions)",
    )
    group.add_argument(
        "--atlas-labels",
        metavar="FILE",
        help="the atlas's table: columns index and name, or a number and a name per line, or a name per line",
    )
    group.add_argument(
        "--by-region",
        action="store_true",
        help="also decode from each region alone (GAMP methods); with --permutations, tested and corrected "
        "for all regions",
    )
    group.add_argument(
        "--without-region",
        action="store_true",
        help="with --by-region: also decode from all voxels but those of each region (a virtual lesion)",
    )


def add_run(group: Any, out: str) -> None:
    """How the run behaves; ``out`` is how the command calls its results folder."""
    group.add_argument(
        "--config",
        metavar="FILE",
        help="settings of an earlier run (its config.toml); options given here take precedence",
    )
    group.add_argument(
        "--n-jobs",
        type=int,
        metavar="N",
        help="number of processes (default 1, which already uses all cores for matrix products)",
    )
    group.add_argument(
        "--dask",
        metavar="WHERE",
        help="local:N for N Dask workers on this machine, or the address of a scheduler, tcp://HOST:PORT",
    )
    group.add_argument(
        "--work-dir",
        metavar="DIR",
        help=f"where fits are stored for --resume, such as a fast scratch disk (default: in {out})",
    )
    group.add_argument(
        "--keep-fits",
        action="store_true",
        help="keep the stored fits of a finished run even where they are large (default: up to 50 MB)",
    )
    group.add_argument("--resume", action="store_true", help=f"continue an interrupted run in {out}")
    group.add_argument("--overwrite", action="store_true", help=f"replace the results in {out}")
    group.add_argument(
        "--reports-only",
        action="store_true",
        help=f"redraw the figures and the page in {out}; compute nothing",
    )
    loud = group.add_mutually_exclusive_group()
    loud.add_argument("--quiet", action="store_true", help="print only the final table")
    loud.add_argument(
        "--verbose", action="store_true", help="print more notes, and tracebacks of unexpected errors"
    )
    group.add_argument("--version", action="version", version=f"mvpa_gamp {__version__}")


def check_name(out: Path, option: str) -> None:
    """Refuse a name of a folder that files below it could not have, or that settings could not hold."""
    try:
        place = out.absolute()
    except FileNotFoundError as error:  # of the current folder, which was removed
        raise StudyError(f"{option} {out}: the folder you are in was removed. Change to another.") from error
    name, longest = os.fsencode(place), max(map(len, map(os.fsencode, out.parts)), default=0)
    if longest > _LONGEST_NAME or len(name) > _LONGEST_PATH:
        raise StudyError(
            f"{option}: expected a path of at most {_LONGEST_PATH} letters and names of at most "
            f"{_LONGEST_NAME}, got {len(name)} and {longest}. Give a shorter one."
        )
    shown = str(place).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    if shown != str(place) or "\0" in shown:
        raise StudyError(
            f"{option} {shown.encode('unicode_escape').decode()}: expected a name in UTF-8, in which "
            "settings and tables are written. Rename it, or give another."
        )


def check_earlier_run(given: dict[str, Any], out: Path, option: str) -> None:
    """Refuse a name that no folder can have, and to resume a run that never began.

    A mistyped folder must not become a new study.
    """
    check_name(out, option)
    if given.get("resume") and not given.get("overwrite") and not out.exists():
        raise StudyError(
            f"--resume: {option} {out} does not exist, so there is no run to continue. Check the name, or "
            "leave out --resume to start a new one."
        )


def workers(given: dict[str, Any]) -> Workers:
    """Who does the fits: a number of processes, or where to find a Dask cluster."""
    if "dask" in given and "n_jobs" in given:
        raise StudyError("--n-jobs and --dask cannot be used together. Give one of them.")
    return given.get("dask", given.get("n_jobs", 1))


def work_dir(given: dict[str, Any]) -> Path | None:
    """Where fits are stored, if it was said."""
    return Path(given["work_dir"]).expanduser().absolute() if given.get("work_dir") else None


def console_level(given: dict[str, Any]) -> int:
    """0 quiet, 1 normal, 2 verbose."""
    return 0 if given.get("quiet") else 2 if given.get("verbose") else 1


def own_options(given: dict[str, Any], *others: str) -> dict[str, Any]:
    """The options given that are settings of the study, lists as tuples."""
    left_out = (*RUN_OPTIONS, *others)
    return {k: tuple(v) if isinstance(v, list) else v for k, v in given.items() if k not in left_out}


KNOWN_METHODS = (
    "gamp-bg-lr", "gamp-sbg-lr", "gamp-bl-lr", "gamp-bg-pr", "gamp-bg-hl", "gamp-l1-lr", "gamp-l1-lr-cv",
    "vamp-bg", "vamp-sbg", "l1-lr-cv", "onebit-cs", "cdn", "tron", "svm", "lda",
)  # fmt: skip
# The paper's four, and the recommended one.
DEFAULT_METHODS = ("l1-lr-cv", "gamp-l1-lr", "gamp-bg-lr", "onebit-cs", "vamp-sbg")
