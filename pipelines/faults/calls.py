"""A call into the package with odd input: does it end in a sentence of the package, or in results?"""

import linecache
import re
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np

from .outcomes import ELSE, LONGEST, NAMED, RIGHT

# Whose sentences a user may meet: the package's, and those of the two whose estimators ours stand for.
_OURS = re.compile(r"/(mvpa_gamp|sklearn|nilearn)/")
_SECONDS = 40


class TooLong(BaseException):
    """The call took longer than any of these small fits may."""


def judged(call: Callable[[], Any], wrong: Callable[[Any], str]) -> tuple[str, str]:
    """Call, and say how it ended; ``wrong`` says what is not right of a result, "" if nothing is."""
    with warnings.catch_warnings(record=True) as caught, limited(_SECONDS):
        warnings.simplefilter("always")
        try:
            said = wrong(call())
        except (ValueError, TypeError) as error:
            named = _is_a_sentence(error) and len(str(error).splitlines()[0]) < LONGEST
            return (NAMED, str(error)) if named else (ELSE, _raw(error))
        except (Exception, TooLong) as error:
            return ELSE, _raw(error)
    raw = [f"{each.category.__name__}: {each.message}" for each in caught if _is_raw(each)]
    said = said or "; ".join(raw[:2])
    return (ELSE, said) if said else (RIGHT, "")


def not_finite(parts: dict[str, Any]) -> str:
    """Which of some arrays holds NaN or infinity."""
    names = [name for name, values in parts.items() if values is not None and not np.isfinite(values).all()]
    return f"not finite: {', '.join(names)}" if names else ""


def not_between(name: str, values: Any, low: float = 0.0, high: float = 1.0) -> str:
    """Whether some values leave a range."""
    return "" if np.all((values >= low) & (values <= high)) else f"{name} is not in [{low:g}, {high:g}]"


def _is_a_sentence(error: Exception) -> bool:
    """Whether somebody wrote the words for this case: a ``raise``, in a package whose words users know."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    if frame is None:
        return False
    path = frame.tb_frame.f_code.co_filename
    line = linecache.getline(path, frame.tb_lineno).strip()
    return bool(_OURS.search(path)) and line.startswith("raise") and len(str(error).split()) > 3


def _is_raw(caught: Any) -> bool:
    """Whether a warning speaks of arithmetic instead of data."""
    return issubclass(caught.category, (RuntimeWarning, DeprecationWarning, FutureWarning))


def _raw(error: BaseException) -> str:
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    place = "" if frame is None else f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}"
    return f"{type(error).__name__}: {str(error)[:200]} ({place})"


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """End what needs more than some seconds of the processor."""

    def end(number: int, frame: FrameType | None) -> None:
        raise TooLong(f"more than {seconds} s of the processor")

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
