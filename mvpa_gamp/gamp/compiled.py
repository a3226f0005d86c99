"""Numba, where it is installed, loaded when a large problem first asks for it.

A loop is compiled at its first call, which takes two or three seconds, and kept in the user's cache folder
(``compiled_cache.py``). Every compiled loop has a NumPy twin that gives the same answers to rounding.
"""

import logging
import os
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

_log = logging.getLogger("mvpa_gamp")


def is_available() -> bool:
    """Whether loops can be compiled; does not load the compiler, which takes half a second.

    Where NUMBA_DISABLE_JIT forbids it, their NumPy twins are used: as Python loops they would take hours.
    """
    return os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0") and find_spec("numba") is not None


# Entries of X times columns from which compiled loops pay for loading the compiler, half a second: a few fits
# of one column to 216 volumes of 20,000 voxels.
_WORTH_COMPILING = 1 << 22


def is_worth_it(n_products: int) -> bool:
    """Whether a problem of so many products per pass over X (M times N times B) should be compiled."""
    return n_products >= _WORTH_COMPILING and is_available()


@cache
def compiler(*fast_math: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """What turns a loop into machine code; divisions by zero give infinity, as in NumPy.

    ``fast_math`` names the liberties that it may take, such as "reassoc" for sums in another order.
    """
    from numba import njit

    from mvpa_gamp.gamp.compiled_cache import keep_on_disk

    _log.info("Compiling inner loops: a few seconds at their first use, then kept on disk.")
    options: dict[str, Any] = {"fastmath": set(fast_math)} if fast_math else {}
    build = njit(nogil=True, error_model="numpy", **options)
    return lambda loop: keep_on_disk(build(loop))
