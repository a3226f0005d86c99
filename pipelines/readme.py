"""The picture of the README: two methods on the phantom, the same slices for both, with the table beside it.

The figure is the one that the command draws for its page; ``--quick`` takes a smaller phantom.
"""

import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from mvpa_gamp.haxby import main as haxby
from mvpa_gamp.results.files import read_tsv

from .command import parse
from .output import write_record, write_table

NAME = "readme"
PICTURE = "phantom_face_chair"
COMMAND = ("--phantom", "--pairs", "face:chair", "--methods", "gamp-sbg-lr", "l1-lr-cv", "--quiet")
_QUICK = ("--phantom-shape", "14", "18", "16")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    options, own = parse(__doc__ or "", argv, name=NAME)
    began = time.perf_counter()
    command = [*COMMAND, "--seed", str(options.seed), *(() if options.full else _QUICK)]
    with TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        if code := haxby([*command, "--out", str(out)]):
            return code
        rows = [row for row in read_tsv(out / "summary.tsv") if row["contrast"] != "average"]
        options.out.mkdir(parents=True, exist_ok=True)
        shutil.copy(next((out / "figures").glob("*faceMinusChair_maps.png")), options.out / f"{PICTURE}.png")
    write_table(options.out / f"{PICTURE}.csv", rows)
    record = {"phantom": True, "command": command, "rows": rows}
    seconds = time.perf_counter() - began
    write_record(
        options.out / f"{PICTURE}.json", record, pipeline=NAME, options=options, seconds=seconds, own=own
    )
    for row in rows:
        print(f"{row['method']}: accuracy {row['accuracy_percent']} %, shared {row['consistency_percent']} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
