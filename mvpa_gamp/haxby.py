"""python -m mvpa_gamp.haxby: the paper's experiment, from volumes to table, maps, consistency and page."""

import argparse
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mvpa_gamp._version import __version__
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.settings import DEFAULT_METHODS, KNOWN_METHODS, StudySettings, read_settings

_DOORS = ("data_dir", "fetch", "participant_label", "bold", "labels", "mask", "phantom", "phantom_shape")
_OUT = "haxby-results"
_RUN = ("config", "out", "n_jobs", "resume", "overwrite", "reports_only", "quiet", "verbose")

_ABOUT = """\
Decode pairs of categories with GAMP and honest baselines. Out come the paper's table (error,
sparsity, consistency, run time), brain maps, a consistency report and one page to show.
"""

_EXAMPLES = """\
examples:
  python -m mvpa_gamp.haxby
      the paper's six comparisons and four methods on Haxby's data if nilearn's folders
      hold them, else on a simulated phantom of the same shape (no network needed)
  python -m mvpa_gamp.haxby --data-dir ~/nilearn_data --participant-label 2 --mask vt
      subject 2, ventral temporal mask
  python -m mvpa_gamp.haxby --bold run-*_bold.nii.gz --labels labels.txt --mask mask.nii.gz \\
      --pairs face:house --out my-results
      your own volumes; labels in nilearn's "labels chunks" form or as a TSV
  python -m mvpa_gamp.haxby --out my-results --resume
      go on after an interruption, with the settings of my-results/config.toml

exit codes: 0 all promised files are there; 1 something failed on the way; 2 the input cannot be run.
"""


def build_parser() -> argparse.ArgumentParser:
    """The command line; options that are not given leave no trace, so that --config can fill them."""
    parser = argparse.ArgumentParser(
        prog="python -m mvpa_gamp.haxby",
        usage="%(prog)s [options]",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
    )
    _add_data(parser.add_argument_group("data: Haxby's volumes, your own, or a phantom"))
    _add_processing(parser.add_argument_group("processing"))
    _add_study(parser.add_argument_group("comparisons and methods"))
    _add_run(parser.add_argument_group("running"))
    return parser


def _add_data(group: Any) -> None:
    """The three doors."""
    group.add_argument(
        "--data-dir", metavar="DIR", help="folder with nilearn's haxby2001/ (no network is touched)"
    )
    group.add_argument(
        "--fetch", action="store_true", help="let nilearn download Haxby's data if they are missing"
    )
    group.add_argument(
        "--participant-label", metavar="ID", help="Haxby's subject 1..6 (default 1), or a name for yours"
    )
    group.add_argument(
        "--mask", metavar="vt|brain|FILE", help="voxels to use (Haxby: default brain; own data: a file)"
    )
    group.add_argument(
        "--bold", nargs="+", metavar="FILE", help="your own 4-d NIfTI volumes, in the order of the labels"
    )
    group.add_argument(
        "--labels", metavar="FILE", help='their labels: "labels chunks" text or a TSV, a line per volume'
    )
    group.add_argument(
        "--phantom", action="store_true", help="the simulated phantom (default if no data are found)"
    )
    group.add_argument(
        "--phantom-shape", nargs=3, type=int, metavar=("I", "J", "K"), help="its grid (default 40 64 64)"
    )


def _add_processing(group: Any) -> None:
    """What is done to the time series before decoding."""
    on_off = argparse.BooleanOptionalAction
    group.add_argument("--lag-trs", type=int, metavar="N", help="shift labels by N volumes (default 0)")
    group.add_argument("--smoothing-fwhm", type=float, metavar="MM", help="smooth volumes (default: not)")
    group.add_argument(
        "--high-pass", type=float, metavar="HZ", help="remove slower frequencies (default: not)"
    )
    group.add_argument(
        "--t-r", type=float, metavar="S", help="seconds per volume (default: from the image header)"
    )
    group.add_argument("--confounds", nargs="+", metavar="FILE", help="TSV of confounds to regress out")
    group.add_argument("--detrend", action=on_off, help="detrend each run (default: yes)")
    group.add_argument("--standardize", action=on_off, help="z-score each run (default: yes)")


def _add_study(group: Any) -> None:
    """What is compared with what, by which methods."""
    group.add_argument(
        "--pairs",
        nargs="+",
        metavar="A:B",
        help='comparisons such as face:house, or "all" (default: the paper\'s six)',
    )
    group.add_argument(
        "--methods",
        nargs="+",
        metavar="NAME",
        help=f"any of {', '.join(KNOWN_METHODS)} (default: {' '.join(DEFAULT_METHODS)})",
    )
    group.add_argument("--seed", type=int, metavar="N", help="seed of everything random (default 0)")
    group.add_argument("--fold-maps", action="store_true", help="also write the maps of every fold")


def _add_run(group: Any) -> None:
    """Where results go and how the run behaves."""
    group.add_argument("--out", metavar="FOLDER", help="results folder (default haxby-results)")
    group.add_argument(
        "--config", metavar="FILE", help="settings of an earlier run (its config.toml); options win over it"
    )
    group.add_argument(
        "--n-jobs",
        type=int,
        metavar="N",
        help="processes (default 1, with all cores for its products); changing N may change last digits",
    )
    group.add_argument("--resume", action="store_true", help="go on with an interrupted run in --out")
    group.add_argument("--overwrite", action="store_true", help="replace the results in --out")
    group.add_argument(
        "--reports-only", action="store_true", help="rebuild figures and page of --out, compute nothing"
    )
    loud = group.add_mutually_exclusive_group()
    loud.add_argument("--quiet", action="store_true", help="only the final table")
    loud.add_argument("--verbose", action="store_true", help="more notes, and tracebacks of errors")
    group.add_argument("--version", action="version", version=f"mvpa_gamp {__version__}")


def study_settings(given: dict[str, Any]) -> StudySettings:
    """Settings from the options given, over those of --config, over the defaults.

    A door named on the command line closes the door that the config file opened. A resumed run starts from
    the settings in its folder.
    """
    own = {k: tuple(v) if isinstance(v, list) else v for k, v in given.items() if k not in _RUN}
    config = _config(given)
    base = {} if config is None else read_settings(config)
    if any(own.get(door) for door in ("data_dir", "bold", "phantom")):
        base = {k: v for k, v in base.items() if k not in _DOORS}
    return StudySettings(**{**base, **own})


def _config(given: dict[str, Any]) -> Path | None:
    """The config file named, or that of the run to be resumed."""
    if "config" in given:
        return Path(given["config"])
    earlier = Path(given.get("out", _OUT)) / "config.toml"
    return earlier if given.get("resume") and earlier.is_file() else None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    given = vars(build_parser().parse_args(argv))
    try:
        return _run(given)
    except StudyError as error:
        return _failed(given, str(error), 2)
    except KeyboardInterrupt:
        return _failed({}, "interrupted. Go on with the same command and --resume.", 130)
    except Exception as error:  # a run must end with a sentence, whatever broke
        return _failed(given, f"{type(error).__name__}: {error} (--verbose shows where)", 1)


def _failed(given: dict[str, Any], message: str, code: int) -> int:
    """Say what went wrong, on stderr."""
    if given.get("verbose"):
        traceback.print_exc()
    print(f"mvpa_gamp.haxby: error: {message}", file=sys.stderr)
    return code


def _run(given: dict[str, Any]) -> int:
    """Rebuild the page, or run the study."""
    from mvpa_gamp.study.console import Console
    from mvpa_gamp.study.run import Output, rebuild_report, run_study

    out = Path(given.get("out", _OUT))
    level = 0 if given.get("quiet") else 2 if given.get("verbose") else 1
    with Console(level) as console:
        if given.get("reports_only"):
            return rebuild_report(out, console)
        output = Output(out, resume=given.get("resume", False), overwrite=given.get("overwrite", False))
        return run_study(study_settings(given), output, given.get("n_jobs", 1), console)


if __name__ == "__main__":
    sys.exit(main())
