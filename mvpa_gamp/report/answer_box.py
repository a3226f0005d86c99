"""The box that every answer is shown in: a fact beside the other, each with what to compare it with."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mvpa_gamp.report.markup import file_link, text
from mvpa_gamp.report.words import Compared, compared_with

FILE = "Which file has the map"


@dataclass(frozen=True)
class Fact:
    """A question, its answer in a few words, and what is below it: a line for each part of the note.

    ``counts`` are further numbers, each with its meaning.
    """

    question: str
    said: str
    note: str = ""  # parts end with a semicolon
    counts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Files:
    """The maps to use, by what they show: the one to start with, then others.

    ``linked``: the page is in their folder; otherwise ``to_bids`` would write them.
    """

    paths: Mapping[str, Path]
    root: Path
    linked: bool = True


def answer_box(facts: Iterable[Fact], files: Files) -> str:
    """The facts side by side, and the maps to use."""
    return f'<dl class="answer">{"".join(map(_fact_entry, facts))}{_file_entry(files)}</dl>'


def _fact_entry(fact: Fact) -> str:
    """The question, its answer, and a line for everything below it."""
    notes = f"<small>{text(fact.note).replace('; ', ';<br>')}</small>" if fact.note else ""
    counts = "".join(f"<small><b>{text(n)}</b> {text(meaning)}</small>" for n, meaning in fact.counts)
    kind = ' class="counts"' if counts else ""
    return f"<div{kind}><dt>{text(fact.question)}</dt><dd>{text(fact.said)}{notes}{counts}</dd></div>"


def _file_entry(files: Files) -> str:
    """The name of the first file with what it shows; below it links to the others, or their names."""
    if not files.paths:
        return ""
    (meaning, path), *others = files.paths.items()
    named = [(words.split(":")[0], each) for words, each in others]
    if files.linked:
        links = ", ".join(file_link(each, files.root, words=words) for words, each in named)
        below = f"<small>Other maps: {links}</small>" if links else ""
    else:
        names = ((text(words), file_link(each, files.root, linked=False)) for words, each in named)
        below = "".join(f"<small>{words}: {name}</small>" for words, name in names)
    below = f"<small>{text(meaning)}</small>{below}"
    question = FILE if files.linked else f"{FILE} (to_bids(folder) writes it)"
    return f'<div class="names"><dt>{question}</dt><dd>{map_name(path, files)}{below}</dd></div>'


def map_name(path: Path, files: Files, lead: str = "") -> str:
    """The name of a map as text that can be read and clicked."""
    return f'<span class="map">{text(lead)}{file_link(path, files.root, files.linked)}</span>'


def map_line(files: Files) -> str:
    """The line of a closed block that names the map to use; nothing where there is none."""
    path = next(iter(files.paths.values()), None)
    return "" if path is None else map_name(path, files, "Map: ")


def p_words(p: float) -> str:
    """A p-value in two digits."""
    return f"p = {p:.2g}"


def tested_words(p: float, compared: Compared, smallest: float, exchanged: str = "the labels") -> Fact:
    """How sure, by permutations: p, their number and the smallest p-value that they allow."""
    said = compared_with([compared], exchanged) + ("" if compared[1] else f" of {exchanged}")
    note = f"{said}; smallest possible p: {smallest:.2g}"
    return Fact("How sure", p_words(p), note)
