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


@dataclass(frozen=True)
class Files:
    """The maps to use, by their words, the first one first; ``linked``: the page stands in their folder."""

    paths: Mapping[str, Path]
    root: Path
    linked: bool = True


def answer_box(facts: Iterable[Fact], files: Files) -> str:
    """The facts side by side, and the maps to use."""
    items = "".join(
        f"<div><dt>{text(fact.question)}</dt><dd>{text(fact.said)}<small>{text(fact.note)}</small></dd></div>"
        for fact in facts
    )
    return f'<dl class="answer">{items}{_file_entry(files)}</dl>'


def _file_entry(files: Files) -> str:
    """Links, or, where the page stands alone, the names that the files would have."""
    if not files.paths:
        return ""
    if files.linked:
        links = "".join(file_link(path, files.root, words=words) for words, path in files.paths.items())
        return f"<div><dt>{FILES}</dt><dd>{links}</dd></div>"
    names = "".join(
        f"<small>{text(words)}: {file_link(path, files.root, linked=False)}</small>"
        for words, path in files.paths.items()
    )
    return f'<div class="names"><dt>{FILES} to_bids(folder) writes</dt><dd>{names}</dd></div>'


def p_words(p: float) -> str:
    """A p-value in two digits."""
    return f"p = {p:.2g}"


def tested_words(p: float, permutations: int, smallest: float, exchanged: str = "of the labels") -> Fact:
    """How sure, by permutations: p, their number and the smallest p-value that they allow."""
    note = f"{permutations:,} permutations {exchanged}; the smallest possible is {smallest:.2g}"
    return Fact("How sure", p_words(p), note)
