"""All figures and tables in one go, each into its own folder of --out.

Every pipeline runs on its own; one that fails does not stop the others. The exit code is 0 when all
succeeded and 1 when some failed, which are then named. Real data are used where the folder in MVPA_GAMP_DATA
holds them.
"""

import argparse
import contextlib
import importlib
import io
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .command import FIGURES, Options, parse

NAME = "reproduce"
PIPELINES = (
    "state_evolution_phase_plane",
    "sparsity_vs_error",
    "text_classification",
    "robust_labels",
    "haxby_table",
    "expression",
    "all_pairs",
    "eight_classes",
    "dense_effects",
    "neighbours",
    "voxels",
    "calibration",
    "null_pvalues",
    "swapped_labels",
    "shared_signal",
    "people_null",
    "people",
)
Command = Callable[[Sequence[str]], int]


@dataclass(frozen=True)
class Outcome:
    """How one pipeline ended: what it printed last, or why it failed."""

    name: str
    seconds: float
    headline: str
    failed: bool

    @property
    def line(self) -> str:
        """One line for the reader."""
        return f"{self.name:<28} {self.seconds:7.1f} s  {'FAILED: ' * self.failed}{self.headline}"


def command_of(name: str) -> Command:
    """The ``main`` of a pipeline, imported when it is due."""

    def main(argv: Sequence[str]) -> int:
        return importlib.import_module(f"pipelines.{name}").main(argv)

    return main


def run_one(name: str, command: Command, options: Options) -> Outcome:
    """Run a pipeline; its last printed line is its headline, and any failure is an answer."""
    argv = [f"--{options.size}", "--seed", str(options.seed), "--out", str(options.out / name)]
    printed = io.StringIO()
    began = time.perf_counter()
    try:
        with contextlib.redirect_stdout(printed):
            code = command(argv)
        lines = [line for line in printed.getvalue().splitlines() if line.strip()]
        headline, failed = (lines[-1] if lines else "no headline"), code != 0
    except SystemExit as error:  # such as an option that a pipeline does not know
        headline, failed = f"ended with exit code {error.code}", True
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        headline, failed = f"{type(error).__name__}: {' '.join(str(error).split())}", True
    return Outcome(name, time.perf_counter() - began, headline, failed)


def run(options: Options, commands: Mapping[str, Command]) -> list[Outcome]:
    """Run pipelines in order and print a line as each one ends."""
    outcomes = []
    for name, command in commands.items():
        outcomes.append(run_one(name, command, options))
        print(outcomes[-1].line, flush=True)
    return outcomes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(out=FIGURES)
    parser.add_argument(
        "--only", nargs="+", choices=PIPELINES, default=PIPELINES, metavar="NAME",
        help=f"some of {', '.join(PIPELINES)} (default: all)",
    )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    options, own = parse(__doc__ or "", argv, add_arguments, name=NAME)
    outcomes = run(options, {name: command_of(name) for name in own.only})
    failed = [outcome.name for outcome in outcomes if outcome.failed]
    total = sum(outcome.seconds for outcome in outcomes)
    print(f"{len(outcomes) - len(failed)} of {len(outcomes)} pipelines succeeded in {total:.0f} s")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
