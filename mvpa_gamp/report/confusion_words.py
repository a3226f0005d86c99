"""What is confused with what, in a line: of a participant, or of all of them together."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.report.answer_box import Fact

_QUESTION = "What is confused"


def confusion_fact(names: Sequence[str], counts: NDArray) -> Fact:
    """The pair of classes confused most, the classes recognised best and least; counts (true, predicted)."""
    totals = counts.sum(axis=1)
    recall = np.where(totals > 0, np.diagonal(counts) / np.maximum(totals, 1), np.nan)
    best, least = int(np.nanargmax(recall)), int(np.nanargmin(recall))
    said = (
        f"highest recall: {names[best]} ({100 * recall[best]:.0f} %), "
        f"lowest: {names[least]} ({100 * recall[least]:.0f} %)"
    )
    wrong = np.where(np.eye(len(names), dtype=bool), 0, counts)
    true, predicted = divmod(int(wrong.argmax()), len(names))
    if not wrong[true, predicted]:
        return Fact(_QUESTION, "nothing", said)
    most = f"{wrong[true, predicted]} of {totals[true]} {names[true]} samples predicted as {names[predicted]}"
    return Fact(_QUESTION, f"{names[true]} taken for {names[predicted]}", f"{most}; {said}")
