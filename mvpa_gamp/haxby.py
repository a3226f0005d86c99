"""python -m mvpa_gamp.haxby: the paper's experiment, from volumes to table, maps, consistency and page."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mvpa_gamp.study import options

if TYPE_CHECKING:
    from mvpa_gamp.study.settings import StudySettings

_OUT = "haxby-results"

_ABOUT = """\
Decode pairs of categories with GAMP and honest baselines. Out come the paper's table (error,
sparsity, consistency, run time), brain maps, a consistency report and one page to show.
"""

_EXAMPLES = """\
examples:
  python -m mvpa_gamp.haxby
      the paper's six comparisons and five methods on Haxby's data if nilearn's folders
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
    """The command line."""
    parser = options.command_parser("mvpa_gamp.haxby", "[options]", _ABOUT, _EXAMPLES)
    _add_data(parser.add_argument_group("data: Haxby's volumes, your own, or a phantom"))
    _add_processing(parser.add_argument_group("processing"))
    pairs = "the paper's six; of other conditions all; rest is left out"
    options.add_study(parser.add_argument_group("comparisons and methods"), pairs)
    options.add_inference(parser.add_argument_group("inference (GAMP methods, svm, lda)"))
    options.add_regions(parser.add_argument_group("regions"))
    running = parser.add_argument_group("running")
    running.add_argument("--out", metavar="FOLDER", help="results folder (default haxby-results)")
    options.add_run(running, "--out")
    return parser


def _add_data(group: Any) -> None:
    """Where the data come from."""
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
    group.add_argument("--lag-trs", type=int, metavar="N", help="shift labels by N volumes (default 0)")
    options.add_cleaning(group)
    group.add_argument(
        "--t-r", type=float, metavar="S", help="seconds per volume (default: from the image header)"
    )
    group.add_argument("--confounds", nargs="+", metavar="FILE", help="TSV of confounds to regress out")


def study_settings(given: dict[str, Any]) -> "StudySettings":
    """Settings from the options given, over those of --config, over the defaults.

    Data named on the command line take the place of those that the config file names. A resumed run starts
    from the settings in its folder.
    """
    from mvpa_gamp.study.settings import SECTIONS, StudySettings, read_settings

    own = options.own_options(given)
    config = _config(given)
    base = {} if config is None else read_settings(config)
    if any(own.get(name) for name in ("data_dir", "bold", "phantom")):
        base = {k: v for k, v in base.items() if k not in (*SECTIONS["bids"], *SECTIONS["data"])}
    return StudySettings.of({**base, **own})


def _config(given: dict[str, Any]) -> Path | None:
    """The config file named, or that of the run to be resumed."""
    if "config" in given:
        return Path(given["config"])
    earlier = Path(given.get("out", _OUT)) / "config.toml"
    return earlier if given.get("resume") and earlier.is_file() else None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    given = vars(build_parser().parse_args(argv))
    return options.ended("mvpa_gamp.haxby", given, _run)


def _run(given: dict[str, Any]) -> int:
    """Rebuild the page, or run the study."""
    from mvpa_gamp.study.console import Console
    from mvpa_gamp.study.run import Output, rebuild_report, run_study

    out = Path(given.get("out", _OUT))
    options.check_earlier_run(given, out, "--out")
    with Console(options.console_level(given)) as console:
        if given.get("reports_only"):
            return rebuild_report(out, console)
        output = Output(out, resume=given.get("resume", False), overwrite=given.get("overwrite", False))
        return run_study(study_settings(given), output, options.workers(given), console)


if __name__ == "__main__":
    sys.exit(main())
