"""The box that every answer is shown in: a fact beside the other, each with what to compare it with."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mvpa_gamp.report.markup import file_link, text

FILES = "Which files"


@dataclass(frozen=True)
class Fact:
    """A question, its answer in a few words, and a line below it."""

    question: str
    said: str
    note: str = ""


def answer_box(facts: Iterable[Fact], files: str = "") -> str:
    """The facts side by side; ``files`` (HTML) are the maps to use."""
    items = "".join(
        f"<div><dt>{text(fact.question)}</dt><dd>{text(fact.said)}<small>{text(fact.note)}</small></dd></div>"
        for fact in facts
    )
    items += f"<div><dt>{FILES}</dt><dd>{files}</dd></div>" if files else ""
    return f'<dl class="answer">{items}</dl>'


def links(files: Mapping[str, Path], root: Path, linked: bool = True) -> str:
    """Files by their words, the one to use first; where the page stands alone, their names in the folder."""
    if linked:
        return "".join(file_link(path, root, words=words) for words, path in files.items())
    names = "".join(
        f"<small>{text(words)}: <code>{text(p.name)}</code></small>" for words, p in files.items()
    )
    return f"<small>to_bids(folder) writes them:</small>{names}"


def p_words(p: float) -> str:
    """A p-value in two digits."""
    return f"p = {p:.2g}"


def tested_words(p: float, permutations: int, smallest: float, exchanged: str = "of the labels") -> Fact:
    """How sure, by permutations: p, their number and the smallest p-value that they allow."""
    note = f"{permutations:,} permutations {exchanged}; the smallest possible is {smallest:.2g}"
    return Fact("How sure", p_words(p), note)
