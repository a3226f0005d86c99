"""The command line that all pipelines share."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

FIGURES = Path("figures")
Size = TypeVar("Size", bound=Any)


@dataclass(frozen=True)
class Options:
    """What every pipeline is told: the paper's size or a quick look, the seed, and where results go."""

    full: bool
    seed: int
    out: Path
    own: tuple[tuple[str, Any], ...] = ()  # the pipeline's own arguments that differ from their defaults

    @property
    def size(self) -> str:
        """``"full"`` or ``"quick"``."""
        return "full" if self.full else "quick"


def parse(
    description: str,
    argv: Sequence[str] | None = None,
    extra: Callable[[argparse.ArgumentParser], None] | None = None,
    *,
    name: str,
) -> tuple[Options, argparse.Namespace]:
    """The shared options, and the values of the pipeline's own arguments.

    ``name`` is the pipeline's (``pipelines/NAME.py``); results go to ``figures/NAME`` unless ``--out`` says
    otherwise. ``extra`` adds the pipeline's own arguments to the parser; only these are in the namespace,
    which is empty without ``extra``. ``argv`` is None for the command line of the process.

        options, own = parse(__doc__, argv, add_arguments, name="phase_plane")
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m pipelines.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a smaller run of the same experiment (default)")
    size.add_argument("--full", action="store_true", help="the size of the paper")
    parser.add_argument("--seed", type=_seed, default=0, help="of all random numbers (default: %(default)s)")
    parser.add_argument(
        "--out",
        type=Path,
        default=FIGURES / name,
        metavar="DIR",
        help="folder of the results (default: %(default)s)",
    )
    if extra is not None:
        extra(parser)
    values = vars(parser.parse_args(argv))
    values.pop("quick")
    shared = {field: values.pop(field) for field in ("full", "seed", "out")}
    own = tuple((name, value) for name, value in values.items() if value != parser.get_default(name))
    return Options(**shared, own=own), argparse.Namespace(**values)


def parse_trials(
    description: str, argv: Sequence[str] | None, name: str, quick: Size, full: Size, per: str
) -> tuple[Options, Size]:
    """The shared options and the size of an experiment of several trials, whose number ``--trials`` sets.

    ``quick`` and ``full`` are dataclasses with a field ``n_trials``; ``per`` says what a trial is.
    """

    def add_trials(parser: argparse.ArgumentParser) -> None:
        said = f"{per} (default: quick {quick.n_trials}, full {full.n_trials})"
        parser.add_argument("--trials", type=int, metavar="N", help=said)

    options, own = parse(description, argv, add_trials, name=name)
    size = full if options.full else quick
    return options, replace(size, n_trials=own.trials or size.n_trials)


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 0, got {text!r}")
    return int(text)
