"""python -m mvpa_gamp BIDS_DIR OUT participant|group: decode a BIDS dataset, as a BIDS App.

``python -m mvpa_gamp decode --bold ...`` is the other command, ``mvpa_gamp.haxby``, for files not in BIDS.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mvpa_gamp import haxby
from mvpa_gamp.study import ending, options

if TYPE_CHECKING:
    from mvpa_gamp.study.settings import StudySettings

LEVELS = ("participant", "group")
BETWEEN = "between"  # the third level: maps of all participants, decoded as decode --maps does
DECODE = "decode"  # the first argument that means the command for own files
PREDICT = "predict"  # that means a saved model and new images
DEMO, COMPLETION = "demo", "completion"
_SHELLS = ("bash", "zsh", "tcsh")
_OF_SAMPLES = ("trial_model", "hrf_model", "drift_model", "lag_trs")  # of one kind of samples
_GROUP = ("bids_dir", "out", "level", "participant_label", "alpha", "quiet", "verbose")

_ABOUT = """\
Decode pairs of conditions in every participant of a BIDS dataset, with GAMP and with baselines that
are tuned on the training runs only (participant level), then combine the participants (group level).

"python -m mvpa_gamp DERIVATIVES OUT between --contrasts heat:warmth" decodes the maps of first-level models
(*_statmap.nii.gz) between participants; it is "decode --maps DERIVATIVES --out OUT", whose options it has.

For volumes that are not in a BIDS dataset, use: python -m mvpa_gamp decode --bold ... (see "decode --help").
If the folder of your dataset is called decode, write "decode OUT participant" or "./decode".
"""

_EXAMPLES = """\
examples:
  python -m mvpa_gamp ds000105 out participant --contrasts face:house cat:chair
      all participants; volumes in ds000105/derivatives/fmriprep if it exists, otherwise raw volumes
  python -m mvpa_gamp ds000105 out participant --participant-label 01 02 \\
      --derivatives /data/fmriprep --space MNI152NLin2009cAsym --confounds motion24 --samples block
      two participants, one sample per event, 24 motion parameters regressed out
  python -m mvpa_gamp ds000105 out group
      accuracies, prevalence and mean maps over the participants in out
  python -m mvpa_gamp ds000105/derivatives/glm out-between between --contrasts face:house
      a person's maps of both conditions, told apart by what was learnt from other people
  python -m mvpa_gamp ds000105 out participant --resume
      continue an interrupted run, with the settings in out/config.toml

exit codes: 0 all files were written; 1 a participant was skipped or something failed (the
others are complete); 2 the input cannot be used; 130 (Ctrl-C), 143
(SIGTERM) and 129 (SIGHUP): interrupted, --resume continues.
"""

_COMMON = {
    "--contrasts A:B ...": "comparisons such as face:house (default: all pairs of trial types)",
    "--participant-label ID ...": "some participants (default: all)",
    "--derivatives DIR|none": "fMRIPrep's output (default: BIDS_DIR/derivatives/fmriprep)",
    "--space NAME": "space of the preprocessed volumes, or of surfaces (default: the only one)",
    "--task NAME ...": "one task, or several (default: the only one)",
    "--samples tr|block|trial|betas": "what is decoded: volumes, means or effects of events, your maps",
    "--confounds SET|COLUMN ...": "motion6, motion24, columns of the confounds file, none",
    "--methods NAME ...": "such as vamp-sbg svm lda (default: five methods)",
    "--permutations N": "permutation tests, and maps of the voxels that carry information",
    "--n-jobs N": "participants in parallel",
    "--resume": "continue an interrupted run; --overwrite replaces it",
}

WELCOME = """\
mvpa_gamp decodes fMRI and finds the voxels that matter. Three commands to try:

  mvpa-gamp demo
      a simulated participant, no data needed: about a minute, then a page to look at
  mvpa-gamp decode --bold run-*.nii.gz --labels labels.txt --mask mask.nii.gz --pairs face:house
      your own volumes
  mvpa-gamp BIDS_DIR OUT participant --contrasts face:house
      every participant of a BIDS dataset; then "mvpa-gamp BIDS_DIR OUT group"

Each of them has --help and --help-all.
"""


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = options.command_parser(
        "mvpa_gamp", "BIDS_DIR OUT {participant,group} [options]", _ABOUT, _EXAMPLES, _COMMON
    )
    parser.add_argument("bids_dir", metavar="BIDS_DIR", help="the dataset, with an events.tsv for every run")
    parser.add_argument("out", metavar="OUT", help="results folder for all participants")
    parser.add_argument("level", choices=LEVELS, metavar="participant|group", help="level of the analysis")
    _add_data(parser.add_argument_group("data"))
    _add_processing(parser.add_argument_group("samples and processing (each run separately)"))
    options.add_study(parser.add_argument_group("comparisons and methods"), "all pairs of trial types")
    options.add_inference(parser.add_argument_group("inference (GAMP methods, svm, lda)"))
    options.add_regions(parser.add_argument_group("regions"))
    running = parser.add_argument_group("running")
    running.add_argument(
        "--alpha",
        type=float,
        metavar="A",
        help="group: significance level of each participant's test (default 0.05)",
    )
    options.add_run(running, "OUT")
    return parser


def _add_data(group: Any) -> None:
    """Which files of the dataset."""
    group.add_argument(
        "--participant-label",
        "--participant_label",
        nargs="+",
        metavar="ID",
        help="participants (default: all)",
    )
    group.add_argument(
        "--task", nargs="+", action="extend", metavar="NAME", help="task, or several (default: the only one)"
    )
    group.add_argument(
        "--session-label",
        nargs="+",
        action="extend",
        metavar="LABEL",
        help="sessions to use (default: all; see --cv)",
    )
    group.add_argument(
        "--run-label", nargs="+", action="extend", metavar="INDEX", help="runs to use (default: all)"
    )
    group.add_argument(
        "--bids-filter-file",
        metavar="FILE",
        help='only the series selected by fMRIPrep\'s JSON, {"bold": {"session": "01", ...}}',
    )
    group.add_argument(
        "--space",
        metavar="NAME[:res-R]",
        help="space of the preprocessed volumes (default: the only one), or of surfaces: fsaverage5, fsLR",
    )
    options.add_surface_mesh(group)
    group.add_argument(
        "--derivatives",
        metavar="DIR|none",
        help="fMRIPrep's output (default: BIDS_DIR/derivatives/fmriprep if it exists; none: raw volumes)",
    )
    group.add_argument(
        "--mask",
        metavar="FILE",
        help="voxels to use (default: voxels in the brain masks of all runs); on surfaces vertices, as CIFTI "
        "or one file of a GIFTI pair (default: all that vary)",
    )


def _add_processing(group: Any) -> None:
    """How volumes become samples."""
    group.add_argument(
        "--samples",
        choices=("tr", "block", "trial", "betas"),
        help="what a sample is: a volume (tr), the mean of an event's volumes (block), an event's effect in "
        "a model of its run (trial), or your own map (betas) (default: tr)",
    )
    group.add_argument(
        "--trial-model",
        choices=("lss", "lsa"),
        help="for --samples trial: one model per event, or one for all events (default: lss)",
    )
    group.add_argument(
        "--hrf-model", metavar="NAME", help="for --samples trial: nilearn's response model (default: glover)"
    )
    group.add_argument(
        "--drift-model",
        choices=("cosine", "polynomial", "none"),
        help="for --samples trial: slow drifts (default: cosine, for periods above 1 / --high-pass or 100 s)",
    )
    group.add_argument(
        "--cv", choices=("run", "session"), help="what cross-validation leaves out (default: run)"
    )
    group.add_argument(
        "--lag-trs",
        type=int,
        metavar="N",
        help="haemodynamic delay: an event's volumes are those in [onset + N TR, onset + duration + N TR) "
        "(default: the number nearest to 5 s, at least 1)",
    )
    group.add_argument(
        "--confounds",
        nargs="+",
        metavar="SET|COLUMN",
        help="motion6, motion24, columns of fMRIPrep's confounds with wildcards allowed (motion_outlier* "
        "drops those volumes), or none (default: motion6; none for raw volumes)",
    )
    group.add_argument(
        "--confounds-strategy",
        choices=("simple", "scrubbing", "compcor", "ica_aroma"),
        help="let nilearn choose the columns and the volumes to drop, instead of --confounds",
    )
    options.add_cleaning(group)
    group.add_argument(
        "--t-r",
        type=float,
        metavar="S",
        help="seconds per volume (default: RepetitionTime in the JSON sidecars)",
    )
    group.add_argument(
        "--betas",
        metavar="DIR",
        help="for --samples betas: 3-D maps sub-*_run-*_contrast-<condition>_*, or 4-D maps with a table",
    )
    group.add_argument(
        "--betas-glob",
        metavar="PATTERN",
        help="file names of those maps (default *_stat-effect_statmap.nii.gz)",
    )


def study_settings(given: dict[str, Any]) -> "StudySettings":
    """Settings from the options given, over those of --config or of a run to be resumed, over defaults."""
    from mvpa_gamp.study.settings import StudySettings, read_settings, resumed_settings

    own = options.own_options(given, "level", "participant_label", "alpha")
    base: dict[str, Any] = {}
    if "config" in given:
        base = read_settings(Path(given["config"]))
    elif given.get("resume"):
        base = resumed_settings(Path(given["out"]), given_again=len(own) > 1)  # more than the dataset
    if own.get("samples", base.get("samples")) != base.get("samples"):
        base = {name: value for name, value in base.items() if name not in _OF_SAMPLES}
    return StudySettings.of({**base, "participant_label": "", **own})


def asks_for_own_files(arguments: Sequence[str]) -> bool:
    """Whether ``decode`` is the command, and not the BIDS_DIR of ``decode OUT participant|group``."""
    return list(arguments[:1]) == [DECODE] and not _is_level(arguments)


def between_people(arguments: Sequence[str]) -> list[str] | None:
    """The options of ``decode`` that ``DERIVATIVES OUT between`` stands for, also written --level between."""
    words = list(arguments)
    if "--level" in words and words[words.index("--level") + 1 :][:1] == [BETWEEN]:
        at = words.index("--level")
        del words[at : at + 2]
        words.insert(2, BETWEEN)
    if len(words) < 3 or words[2] != BETWEEN or any(word.startswith("-") for word in words[:2]):
        return None
    return ["--maps", words[0], "--out", words[1], *words[3:]]


def _is_level(arguments: Sequence[str]) -> bool:
    """Whether these are ``BIDS_DIR OUT participant|group``, whatever the folder of the dataset is called."""
    return len(arguments) > 2 and not arguments[1].startswith("-") and arguments[2] in LEVELS


def _demo(options_given: list[str]) -> int:
    """The phantom, decoded with the recommended method and a baseline; its page is opened in a browser."""
    parser = argparse.ArgumentParser(prog="mvpa-gamp demo", description=_demo.__doc__)
    parser.add_argument(
        "--out", default="mvpa-gamp-demo", metavar="FOLDER", help="results folder (default %(default)s)"
    )
    parser.add_argument("--no-browser", action="store_true", help="only print where the page is")
    given, more = parser.parse_known_args(options_given)
    study = ["--phantom", "--pairs", "face:house", "face:chair", "--methods", "vamp-sbg", "svm"]
    code = haxby.main([*study, *more, "--out", given.out], f"mvpa_gamp {DECODE}")
    page = Path(given.out, "index.html").absolute()
    if code == 0 and sys.stdout.isatty() and not given.no_browser:
        import webbrowser

        webbrowser.open(page.as_uri())
    return code


def _completion(given: list[str]) -> int:
    """Print the completion script of a shell, for eval or a file."""
    if len(given) != 1 or given[0] not in _SHELLS:
        print(f"mvpa-gamp completion: error: expected one of {', '.join(_SHELLS)}.", file=sys.stderr)
        return 2
    try:
        import shtab
    except ImportError:
        print("mvpa-gamp completion: error: needs shtab: pip install shtab", file=sys.stderr)
        return 2
    parser = argparse.ArgumentParser("mvpa-gamp", add_help=False)
    commands = parser.add_subparsers()
    for name in (DECODE, DEMO):
        commands.add_parser(name, parents=[haxby.build_parser()], conflict_handler="resolve", add_help=False)
    for action in build_parser()._actions:
        if action.option_strings:
            parser._add_action(action)
    print(shtab.complete(parser, given[0]))
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if not argv:
        print(WELCOME, end="")
        return 0
    if argv[0] == DEMO and not _is_level(argv):
        return _demo(argv[1:])
    if argv[0] == COMPLETION and not _is_level(argv):
        return _completion(argv[1:])
    if list(argv[:1]) == [PREDICT] and not (len(argv) > 2 and argv[2] in LEVELS):
        from mvpa_gamp import predict

        return predict.main(argv[1:], f"mvpa_gamp {PREDICT}")
    if (options_given := between_people(argv)) is not None:
        return haxby.main(options_given, "mvpa_gamp")
    if asks_for_own_files(argv):
        return haxby.main(argv[1:], f"mvpa_gamp {DECODE}")
    given = vars(build_parser().parse_args(argv))
    return ending.ended("mvpa_gamp", given, _run)


def _run(given: dict[str, Any]) -> int:
    """One of the two levels."""
    from mvpa_gamp.study.console import Console
    from mvpa_gamp.study.group import run_group
    from mvpa_gamp.study.output import Output, check_plain
    from mvpa_gamp.study.participants import rebuild_participants, run_participants

    out, labels = Path(given["out"]), given.get("participant_label")
    options.check_earlier_run(given, out, "OUT")
    if given.get("resume"):  # before its settings are read
        check_plain(out, "OUT")
    with Console(options.console_level(given)) as console:
        if given["level"] == "group":
            if ignored := [name for name in given if name not in _GROUP]:
                names = ", ".join("--" + name.replace("_", "-") for name in ignored)
                console.note(f"The group level only reads finished participants: {names} is not used.")
            return run_group(out, labels, given.get("alpha", 0.05), console)
        if given.get("reports_only"):
            return rebuild_participants(out, labels, console)
        start = {name: given.get(name, False) for name in ("resume", "overwrite", "keep_fits")}
        output = Output(out, **start, option="OUT", work_dir=options.work_dir(given))
        return run_participants(study_settings(given), labels, output, options.workers(given), console)


if __name__ == "__main__":
    sys.exit(main())
