"""python -m mvpa_gamp.haxby, or python -m mvpa_gamp decode: from volumes to table, maps and page."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mvpa_gamp.study import ending, options

if TYPE_CHECKING:
    from mvpa_gamp.study.settings import StudySettings

_OUT = "haxby-results"
_COMMAND = "mvpa_gamp.haxby"

_ABOUT = """\
Decode pairs of conditions from your own volumes, from Haxby's, or from a simulated phantom, with GAMP
and with baselines that are tuned on the training runs only. You get a table (accuracy, sparsity,
consistency, run time), brain maps, a consistency report and one page with all results.
"python -m mvpa_gamp decode" and "python -m mvpa_gamp.haxby" are two names for this command.
"""

_EXAMPLES = """\
examples:
  python -m {command} --bold run-*_bold.nii.gz --labels labels.txt --mask mask.nii.gz \\
      --pairs face:house --out my-results
      your own volumes; labels in nilearn's "labels chunks" format or as a TSV
  python -m {command}
      the paper's six comparisons and five methods on Haxby's data if they are in nilearn's data
      folders, otherwise on a simulated phantom of the same size (no network needed)
  python -m {command} --data-dir ~/nilearn_data --participant-label 2 --mask vt
      Haxby's subject 2, ventral temporal mask
  python -m {command} --out my-results --resume
      continue an interrupted run, with the settings in my-results/config.toml

exit codes: 0 all files were written; 1 something failed; 2 the input cannot be used;
130 (Ctrl-C), 143
(SIGTERM) and 129 (SIGHUP): interrupted, --resume continues.
"""

_COMMON = {
    "--bold FILE ...": "your 4-D NIfTI files, in the order of the labels",
    "--labels FILE": 'condition and run of each volume: "labels chunks" text, or a TSV',
    "--mask FILE": "the voxels to use",
    "--maps TABLE": "instead, a table of contrast or beta maps of participants: file, condition, participant",
    "--phantom": "a simulated participant instead, to try it",
    "--pairs A:B ...": "comparisons such as face:house (default: all pairs; rest is left out)",
    "--lag-trs N": "haemodynamic delay in volumes, if labels come from stimulus onsets (default 0)",
    "--methods NAME ...": "such as vamp-sbg svm lda (default: five methods)",
    "--permutations N": "permutation test, and maps of the voxels that carry information",
    "--fdr RATE": "select voxels at a false-discovery rate",
    "--multiclass": "decode all conditions at once",
    "--atlas FILE|NAME": "name the regions in every map; --by-region decodes from each alone",
    "--out FOLDER": "results folder (default haxby-results); index.html in it is the page",
    "--resume": "continue an interrupted run; --overwrite replaces it",
}


def build_parser(command: str = _COMMAND) -> argparse.ArgumentParser:
    """The command line; ``command`` is the name by which it was called, and the one its help shows."""
    examples = _EXAMPLES.format(command=command)
    parser = options.command_parser(command, "[options]", _ABOUT, examples, _COMMON)
    _add_data(parser.add_argument_group("data: your own volumes, Haxby's, or a phantom"))
    _add_processing(parser.add_argument_group("processing"))
    pairs = "the paper's six, or all pairs of other conditions; rest is left out"
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
        "--data-dir", metavar="DIR", help="folder that contains nilearn's haxby2001/ (nothing is downloaded)"
    )
    group.add_argument(
        "--fetch", action="store_true", help="let nilearn download Haxby's data if they are missing"
    )
    group.add_argument(
        "--participant-label",
        metavar="ID",
        help="Haxby's subject 1..6 (default 1), or a label for your own participant",
    )
    group.add_argument(
        "--mask",
        metavar="vt|brain|FILE",
        help="voxels to use (your own data: a file, on surfaces not needed; Haxby: brain by default)",
    )
    group.add_argument(
        "--bold",
        nargs="+",
        metavar="FILE",
        help="your own 4-D NIfTI files, in the order of the labels; or series on the surface: CIFTI "
        "(.dtseries.nii), or GIFTI pairs by either file",
    )
    options.add_surface_mesh(group)
    options.add_maps(group)
    group.add_argument(
        "--labels",
        metavar="FILE",
        help='condition and run of each volume: "labels chunks" text or a TSV, one line per volume',
    )
    group.add_argument(
        "--phantom", action="store_true", help="the simulated phantom (default if no data are found)"
    )
    group.add_argument(
        "--phantom-shape",
        nargs=3,
        type=int,
        metavar=("I", "J", "K"),
        help="grid of the phantom (default 40 64 64)",
    )


def _add_processing(group: Any) -> None:
    """What is done to the time series before decoding."""
    group.add_argument(
        "--lag-trs",
        type=_lag,
        metavar="N|A..B",
        help="shift labels by N volumes (default 0); by each of A to B: a curve of accuracy over lags",
    )
    options.add_cleaning(group)
    group.add_argument(
        "--t-r", type=float, metavar="S", help="seconds per volume (default: from the image header)"
    )
    group.add_argument(
        "--confounds", nargs="+", metavar="FILE", help="TSV files of confounds to regress out of each run"
    )


def _lag(text: str) -> int | str:
    """A number of volumes, or the text of a range."""
    return text if ".." in text else int(text)


def study_settings(given: dict[str, Any]) -> "StudySettings":
    """Settings from the options given, over those of --config, over the defaults.

    Data named on the command line take the place of those that the config file names. A resumed run starts
    from the settings in its folder.
    """
    from mvpa_gamp.study.settings import SECTIONS, StudySettings, read_settings, resumed_settings

    own = options.own_options(given)
    names_data = any(own.get(name) for name in ("data_dir", "bold", "maps", "phantom"))
    base: dict[str, Any] = {}
    if "config" in given:
        base = read_settings(Path(given["config"]))
    elif given.get("resume"):
        base = resumed_settings(Path(given.get("out", _OUT)), given_again=names_data)
    if names_data:
        base = {k: v for k, v in base.items() if k not in (*SECTIONS["bids"], *SECTIONS["data"])}
    return StudySettings.of({**base, **own})


def main(argv: Sequence[str] | None = None, command: str = _COMMAND) -> int:
    """Run the command under one of its two names; returns the exit code."""
    given = vars(build_parser(command).parse_args(argv))
    return ending.ended(command, given, _run)


def _run(given: dict[str, Any]) -> int:
    """Rebuild the page, or run the study."""
    if "target" in given:
        if "out" in given:
            options.check_name(Path(given["out"]), "--out")
        return _predict_number(given)
    if isinstance(given.get("lag_trs"), str):
        from mvpa_gamp.study.lag_curve import run_lags

        if "out" in given:
            options.check_name(Path(given["out"]), "--out")
        return run_lags(given, (lambda sentence: None) if given.get("quiet") else print)
    from mvpa_gamp.study.console import Console
    from mvpa_gamp.study.output import Output, check_plain
    from mvpa_gamp.study.run import rebuild_report, run_study

    out = Path(given.get("out", _OUT))
    options.check_earlier_run(given, out, "--out")
    if given.get("resume"):  # before its settings are read
        check_plain(out, "--out")
    with Console(options.console_level(given)) as console:
        if given.get("reports_only"):
            return rebuild_report(out, console)
        start = {name: given.get(name, False) for name in ("resume", "overwrite", "keep_fits")}
        output = Output(out, **start, work_dir=options.work_dir(given))
        return run_study(study_settings(given), output, options.workers(given), console)


def _predict_number(given: dict[str, Any]) -> int:
    """The numbers of a column instead of conditions."""
    from mvpa_gamp.decoder.folder import run_target
    from mvpa_gamp.imaging.errors import DataError
    from mvpa_gamp.study.ending import StudyError

    try:
        run_target(given, (lambda sentence: None) if given.get("quiet") else print)
    except DataError as error:
        raise StudyError(str(error)) from error
    return 0


if __name__ == "__main__":
    sys.exit(main())
