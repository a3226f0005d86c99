"""What tests compared the observed labels with, in words: permutations, or all other arrangements."""

from collections.abc import Iterable, Mapping
from typing import Any

Compared = tuple[int, bool]  # how many label vectors, and whether these are all others


def compared_with(tests: Iterable[Compared], of: str = "the labels") -> str:
    """What one or several tests compared with.

    >>> compared_with([(200, False)]), compared_with([(63, True)])
    ('200 permutations', 'all 63 other arrangements of the labels')
    >>> compared_with([(200, False), (63, True)])
    '200 permutations (all 63 other arrangements of the labels where no more exist)'
    """
    known = sorted(set(tests))
    drawn, whole = (
        " or ".join(f"{n:,}" for n, every in known if every is wanted) for wanted in (False, True)
    )
    every = f"all {whole} other arrangements of {of}"
    if not drawn:
        return every
    return f"{drawn} permutations" + (f" ({every} where no more exist)" if whole else "")


def compared(row: Mapping[str, str]) -> Compared:
    """The same of a row of inference.tsv or cross.tsv."""
    n = int(row["permutations"])
    return n, n == int(row.get("labellings", "0")) - 1  # not in folders of earlier versions


def compared_classes(test: Mapping[str, Any]) -> Compared:
    """The same of the test of all classes together, as summary.json has it."""
    return test["n"], test.get("exact", False)
