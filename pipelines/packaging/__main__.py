"""python -m pipelines.packaging: write the files that a release needs; --check: say which are out of date."""

import argparse
import sys
from importlib.util import find_spec

from pipelines.packaging.conda_recipe import ROOT, lowest
from pipelines.packaging.metadata import files
from pipelines.packaging.notebooks import notebooks


def main() -> int:
    """Write or check; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.packaging", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit code 1 if a file is out of date"
    )
    parser.add_argument(
        "--lowest", action="store_true", help="only print the lowest versions that are declared"
    )
    given = parser.parse_args()
    if given.lowest:
        print(*lowest(), sep="\n")
        return 0
    check = given.check
    made = files()
    if find_spec("sphinx_gallery"):
        made |= notebooks()
    old = [path for path, text in made.items() if not path.exists() or path.read_text("utf-8") != text]
    for path in old:
        print(f"{'out of date' if check else 'wrote'}: {path.relative_to(ROOT)}")
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(made[path], encoding="utf-8")
    return int(check and bool(old))


if __name__ == "__main__":
    sys.exit(main())
