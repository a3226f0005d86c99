"""The section of the page on all classes together: scores by fold, by contrast and by class, confusion."""

from collections.abc import Sequence

import numpy as np

from mvpa_gamp.imaging.atomic_files import write_atomic
from mvpa_gamp.report.class_methods import class_method_parts
from mvpa_gamp.report.class_plots import (
    chance_words,
    confusion_figure,
    in_words,
    null_figure,
    score_figure,
    score_words,
)
from mvpa_gamp.report.markup import cell, details, figure, folded, headings, table, text
from mvpa_gamp.report.words import compared_classes, compared_with
from mvpa_gamp.results.reader import Results

_PAIRS = 10  # comparisons of a page whose figures of all classes are open
_DRAWN = {"scores": score_figure, "confusion": confusion_figure, "null": null_figure}


def draw_classes(results: Results) -> None:
    """Write the figures of the section into ``figures/``."""
    for name, draw in _DRAWN.items():
        if name != "null" or "permutation" in results.classes:
            write_atomic(results.folder.figure(f"classes_{name}.svg"), draw(results))


def classes_section(results: Results) -> str:
    """Many classes: scores by fold, what is taken for what, recall by class and method."""
    if len(results.classes.get("names", ())) < 3:
        return ""
    parts = [_figures(results), *class_method_parts(results), _score_table(results)]
    unfolded = len(results.tasks) <= _PAIRS
    return folded("scores", "Scores, confusion and recall", _said(results), *parts, unfolded=unfolded)


def fold_scores_section(results: Results) -> str:
    """Two classes, of a decoder: the score of every fold, below the answer of their comparison."""
    if len(results.classes.get("names", ())) != 2:
        return ""
    return folded("scores", "Scores by fold", _said(results), _figures(results), _score_table(results))


def _figures(results: Results) -> str:
    """Scores by fold, the null of the score, confusion."""
    name, folder = results.classes["scoring"].replace("_", " "), results.folder
    said = text(
        f"{name[:1].upper()}{name[1:]} of each fold on held-out images, all classes together; the line is "
        "the mean, the dashed line the score of always predicting the most frequent class. Folds share "
        "training images and are not independent."
    )
    parts = [figure(folder.figure("classes_scores.svg"), said, "Scores by fold")]
    if "permutation" in results.classes:
        test = results.classes["permutation"]
        words = (
            f"p = {test['pvalue']:.2g}: {compared_with([compared_classes(test)])} within groups "
            f"({test['exchange']}s exchanged), the whole cross-validation repeated. {test['caution']}"
        )
        parts.append(figure(folder.figure("classes_null.svg"), text(words), "Scores with permuted labels"))
    caption = text(
        "Held-out images, each predicted by a fold that did not train on it: counts, coloured by their share "
        "of the true class (row)."
    )
    confusion = figure(folder.figure("classes_confusion.svg"), caption, "Confusion of classes")
    return f'<div class="side-by-side"><div>{"".join(parts)}</div>{confusion}</div>'


def _said(results: Results) -> str:
    """What all classes come to, in a line."""
    test = results.classes.get("permutation")
    sure = "" if not test else f", p = {test['pvalue']:.2g}"
    return f"{score_words(results)} (chance {chance_words(results)}{sure})."


def _score_table(results: Results) -> str:
    """Mean and spread of the score of every contrast and class."""
    classes = results.classes
    name = classes["scoring"].replace("_", " ")
    head = ("", f"mean {name}", "lowest fold", "highest fold")
    top = headings(head)
    scored = dict(classes["contrast_scores"])
    scored |= {f"{name} against all others": scores for name, scores in classes["class_scores"].items()}
    body = [_score_row(results, label, scores) for label, scores in scored.items()]
    caption = text(
        "Contrasts are scored on images of their two classes; with three or more classes, a class against "
        "all others is scored by the coupled probabilities, where guessing does well too, because most "
        "images are of other classes."
    )
    whole = table([top], body, caption)
    title = f"Scores of all {len(body)} contrasts and classes" if len(body) > 1 else "Score of the contrast"
    return details(title, whole)


def _score_row(results: Results, label: str, scores: Sequence[float | None]) -> str:
    values = np.array([value for value in scores if value is not None])
    said = (values.mean(), values.min(), values.max()) if values.size else ()
    return cell(label, "name") + "".join(cell(in_words(results, value)) for value in said) or cell("–") * 3
