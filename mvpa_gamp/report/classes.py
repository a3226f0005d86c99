"""The section of the page on all classes together: scores by fold, by contrast and by class, confusion."""

from collections.abc import Sequence

import numpy as np

from mvpa_gamp.imaging.atomic_files import write_atomic
from mvpa_gamp.report.class_plots import confusion_figure, mean_score, null_figure, score_figure
from mvpa_gamp.report.markup import cell, details, figure, headings, section, table, text
from mvpa_gamp.results.reader import Results

_DRAWN = {"scores": score_figure, "confusion": confusion_figure, "null": null_figure}


def draw_classes(results: Results) -> None:
    """Write the figures of the section into ``figures/``."""
    for name, draw in _DRAWN.items():
        if name != "null" or "permutation" in results.classes:
            write_atomic(results.folder.figure(f"classes_{name}.svg"), draw(results))


def classes_section(results: Results) -> str:
    """Scores of all classes together, how sure they are, and what is taken for what."""
    if not results.classes:
        return ""
    name, folder = results.classes["scoring"], results.folder
    said = text(
        f"{name[:1].upper()}{name[1:]} of each fold on held-out images, all classes together; the line is "
        "the mean, the dashed line chance for equally frequent classes. Folds share training images and are "
        "not independent."
    )
    parts = [figure(folder.figure("classes_scores.svg"), said, "Scores by fold")]
    if "permutation" in results.classes:
        test = results.classes["permutation"]
        words = (
            f"p = {test['pvalue']:.3g}: {test['n']:,} permutations of labels within groups "
            f"({test['exchange']}s exchanged), the whole cross-validation repeated. {test['caution']}"
        )
        parts.append(figure(folder.figure("classes_null.svg"), text(words), "Null of the score"))
    caption = text(
        "Held-out images, each predicted by a fold that did not train on it: counts, coloured by their share "
        "of the true class (row)."
    )
    parts.append(figure(folder.figure("classes_confusion.svg"), caption, "Confusion of classes"))
    beside = f'<div class="side-by-side">{"".join(parts)}</div>'
    return section("scores", _title(results), beside, _score_table(results))


def _title(results: Results) -> str:
    """What all classes come to, in a line."""
    classes, score = results.classes, mean_score(results)
    chance = "" if classes["chance"] is None else f" (chance {classes['chance']:.2g})"
    test = classes.get("permutation")
    sure = "" if not test else f", p = {test['pvalue']:.2g}"
    name, count = classes["scoring"], len(classes["names"])
    if name == "accuracy":
        return f"All {count} classes: {100 * score:.1f} % correct (chance {100 / count:.0f} %{sure})"
    return f"All {count} classes: {name.replace('_', ' ')} {score:.3f}{chance}{sure}"


def _score_table(results: Results) -> str:
    """Mean and spread of the score of every contrast and class."""
    classes = results.classes
    head = ("", f"mean {classes['scoring']}", "lowest fold", "highest fold")
    top = headings(head)
    scored = dict(classes["contrast_scores"])
    scored |= {f"{name} against all others": scores for name, scores in classes["class_scores"].items()}
    body = [_score_row(label, scores) for label, scores in scored.items()]
    caption = text(
        "Contrasts are scored on images of their two classes; with three or more classes, a class against "
        "all others is scored by the coupled probabilities, where guessing does well too: most images are "
        "others."
    )
    whole = table([top], body, caption)
    return details(f"Scores of all {len(body)} contrasts and classes", whole)


def _score_row(label: str, scores: Sequence[float | None]) -> str:
    values = np.array([value for value in scores if value is not None])
    said = (values.mean(), values.min(), values.max()) if values.size else ()
    return cell(label, "name") + "".join(cell(f"{value:.3f}") for value in said) or cell("–") * 3
