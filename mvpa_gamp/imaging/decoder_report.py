"""The page of a fitted decoder: written from the folder that ``to_bids`` writes, in nilearn's HTMLReport."""

import difflib
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from nilearn.reporting import HTMLReport

from mvpa_gamp._version import __version__
from mvpa_gamp.decoding.permutation import PermutationTest
from mvpa_gamp.decoding.scoring import mean_score
from mvpa_gamp.imaging.atomic_files import write_atomic
from mvpa_gamp.imaging.contrast_maps import contrast_key
from mvpa_gamp.imaging.decoder_figures import confusion_figure, null_figure, score_figure
from mvpa_gamp.imaging.decoder_folder import write_folder
from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.report import brain_figures, plots
from mvpa_gamp.report.convergence import convergence_section
from mvpa_gamp.report.files import number, read_json, read_tsv, write_text
from mvpa_gamp.report.folder import ResultsFolder
from mvpa_gamp.report.markup import cell, details, figure, paragraph, section, table, text
from mvpa_gamp.report.methods_text import CITATION, SELECTED
from mvpa_gamp.report.results import Results
from mvpa_gamp.report.sections import comparisons_section, consistency_section
from mvpa_gamp.report.tables import join_timings

_HEAD = Template(
    '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">\n"
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>$title</title>\n'
    '<link rel="icon" href="data:,">\n<style>\n$css</style>\n</head>\n<body>\n$body\n</body>\n</html>\n'
)
_TEXT = ("subject", "contrast", "comparison", "method", "status")
_OFFERED = 10  # contrasts listed in a message
_LONG = 12  # rows of a table that opens on a click
_CHANCE = ("accuracy", "balanced_accuracy", "roc_auc", "roc_auc_ovr", "roc_auc_ovo")


class DecoderReport(HTMLReport):
    """The page, with nilearn's ``save_as_html`` and ``open_in_browser``; a notebook shows it in a frame."""

    def save_as_html(self, file_name: str | Path) -> None:
        """Write the page as it is: one file that opens offline."""
        write_text(Path(file_name), self.html)

    def _repr_html_(self) -> str:
        return str(self.get_iframe(width=1180, height=900))


def chosen_contrasts(decoder: Any, names: Sequence[str] | None, count: int) -> list[int]:
    """Numbers of the contrasts to draw: those named, either way round, or the first ``count``."""
    known = list(decoder.contrasts_)
    if names is None:
        return list(range(min(max(1, count), len(known))))
    turned = [contrast_key(decoder.classes_[j], decoder.classes_[i]) for i, j in decoder._data.fits.pairs]
    places = dict(zip([*known, *turned], [*range(len(known))] * 2, strict=True))
    wanted = [names] if isinstance(names, str) else list(names)
    unknown = [name for name in wanted if name not in places]
    if unknown or not wanted:
        close = difflib.get_close_matches(str(unknown[0]), places, n=3) if unknown else []
        near = list(dict.fromkeys(known[places[name]] for name in close))
        others = [name for name in known if name not in near]
        listed = ", ".join(map(repr, [*near, *others][:_OFFERED]))
        more = " ..." if len(near + others) > _OFFERED else ""
        raise ValueError(
            f"contrasts: expected names among contrasts_ ({listed}{more}), got "
            f"{', '.join(map(repr, unknown)) or 'none'}. Choose among them, or leave it out for the first "
            f"{min(count, len(known))}."
        )
    return list(dict.fromkeys(places[name] for name in wanted))


def decoder_report(
    decoder: Any, title: str | None, subject: str, drawn: list[int], permutation: PermutationTest | None
) -> DecoderReport:
    """Write the decoder's folder to a temporary place, draw the figures there, and put all on one page."""
    with TemporaryDirectory(prefix="mvpa_gamp-") as place:
        results = _read(write_folder(decoder, Path(place), subject))
        shown = _fewer(results, drawn)
        name = entity(subject)
        _draw(shown, name, decoder._data.fits.n_folds)
        title = title or f"mvpa_gamp: {', '.join(map(str, decoder.classes_[:8]))}"
        body = "\n".join(
            [
                _header(decoder, results, title),
                _score_section(decoder, results, permutation),
                _confusion_section(decoder, results),
                _maps(results, shown),
                *([consistency_section(shown)] if decoder._data.fits.n_folds > 1 else []),
                convergence_section(results),
                _methods(decoder),
                f"<footer>Written by mvpa_gamp {text(__version__)}.</footer>",
            ]
        )
    css = resources.files("mvpa_gamp.report").joinpath("page.css").read_text(encoding="utf-8")
    return DecoderReport(_HEAD, body, {"css": css, "title": text(title)})


def _read(root: Path) -> Results:
    """The folder's tables; unlike a command's folder it has no settings file."""
    folder = ResultsFolder(root)
    texts = read_tsv(folder.summary)
    summary, timings = (
        [{k: v if k in _TEXT else number(v) for k, v in row.items()} for row in rows]
        for rows in (texts, read_tsv(folder.timings))
    )
    return Results(folder, read_json(folder.study), join_timings(summary, timings), texts)


def _fewer(results: Results, drawn: Sequence[int]) -> Results:
    """The same results with figures for some contrasts only."""
    return replace(results, study={**results.study, "tasks": [results.tasks[place] for place in drawn]})


def _draw(results: Results, subject: str, n_folds: int) -> None:
    folder = results.folder
    if n_folds > 1:
        write_atomic(folder.figure(f"sub-{subject}_overlap.svg"), plots.overlap_matrices(results, subject))
        write_atomic(
            folder.figure(f"sub-{subject}_selection.svg"), plots.selection_frequency(results, subject)
        )
    for task in results.tasks:
        image = brain_figures.comparison_maps(results, subject, task["contrast"])
        write_atomic(folder.figure(f"sub-{subject}_contrast-{task['contrast']}_maps.png"), image)


def _header(decoder: Any, results: Results, title: str) -> str:
    data = decoder._data
    scores = decoder.fold_scores_
    facts = {
        "images": f"{len(data.X):,}",
        "classes": decoder.n_classes_,
        "voxels": f"{decoder.n_elements_:,}",
        "groups": "none" if data.groups is None else len(np.unique(data.groups)),
        "folds": len(scores),
        _score_name(decoder): f"{mean_score(scores):.3f}",
        "method": data.method.label,
    }
    entries = "".join(f"<div><dt>{text(k)}</dt><dd>{text(v)}</dd></div>" for k, v in facts.items())
    anchors = {"scores": "Scores", "confusion": "Confusion", "maps": "Brain maps"}
    anchors |= {"consistency": "Consistency"} if len(scores) > 1 else {}
    anchors |= {"convergence": "Convergence", "methods": "Methods text"}
    links = "".join(f'<a href="#{anchor}">{text(name)}</a>' for anchor, name in anchors.items())
    return (
        f"<header>\n<h1>{text(title)}</h1>\n"
        f'<p class="lead">{text(data.splits.sentence)}</p>\n{_banners(decoder, results)}'
        f'<dl class="facts">{entries}</dl>\n<nav>{links}</nav>\n</header>'
    )


def _banners(decoder: Any, results: Results) -> str:
    """What a reader must not miss."""
    said = [] if results.banner is None else [results.banner + "."]
    said += decoder.notes_
    failed = int((~decoder.status_["converged"]).sum())
    if failed:
        said.append(f"{failed} of {len(decoder.status_)} fits did not converge, see below.")
    if decoder._data.groups is None:
        said.append(
            "No groups were given. If images are volumes of a scan, neighbours of test images were trained "
            "on and scores are too good. Where this page says run, read fold."
        )
    return "".join(f'<p class="banner"><strong>Caution.</strong> {text(one)}</p>\n' for one in said)


def _score_section(decoder: Any, results: Results, permutation: PermutationTest | None) -> str:
    """Scores by fold, by contrast, and the permutation test."""
    name, folder = _score_name(decoder), results.folder
    chance = 1 / decoder.n_classes_ if name.startswith(("accuracy", "balanced")) else 0.5
    chance = chance if name in _CHANCE else float("nan")
    held_out = decoder._data.splits.held_out
    drawn = score_figure(decoder.fold_scores_, held_out, name, chance, results.banner)
    path = write_atomic(folder.figure("scores.svg"), drawn)
    caption = text(
        f"{name[:1].upper()}{name[1:]} of each fold on held-out images, all classes together; the line is "
        "the mean, the dashed line chance for equally frequent classes. Folds share training images and are "
        "not independent."
    )
    parts = [figure(path, caption, "Scores by fold", "medium"), _score_table(decoder)]
    if permutation is not None:
        path = write_atomic(folder.figure("null.svg"), null_figure(permutation, name, results.banner))
        words = (
            f"p = {permutation.pvalue:.3g}: {permutation.null.size} permutations of labels within groups "
            f"({permutation.unit}s exchanged), the whole cross-validation repeated. {permutation.caution}"
        )
        parts.append(figure(path, text(words), "Null distribution of the score", "medium"))
    return section("scores", "Scores on held-out images", *parts)


def _score_table(decoder: Any) -> str:
    """Mean and spread of the score of every contrast and class."""
    head = ("", f"mean {_score_name(decoder)}", "lowest fold", "highest fold")
    top = "".join(cell(name, "name" if i == 0 else "", header=True) for i, name in enumerate(head))
    scored = dict(decoder.contrast_scores_)
    if decoder.n_classes_ > 2:  # with two classes they are the contrast's
        scored |= {f"{name} against all others": scores for name, scores in decoder.cv_scores_.items()}
    body = []
    for label, scores in scored.items():
        values = np.array(scores)
        said = "–" if np.isnan(values).all() else f"{np.nanmean(values):.3f}"
        low, high = ("–", "–") if said == "–" else (f"{np.nanmin(values):.3f}", f"{np.nanmax(values):.3f}")
        body.append(cell(label, "name") + cell(said) + cell(low) + cell(high))
    caption = text(
        "Contrasts are scored on images of their two classes; with three or more classes, a class against "
        "all others is scored by the coupled probabilities, where guessing does well too: most images are "
        "others."
    )
    whole = table([top], body, caption)
    return details(f"Scores of all {len(body)} contrasts and classes", whole) if len(body) > _LONG else whole


def _confusion_section(decoder: Any, results: Results) -> str:
    names = [str(name) for name in decoder.classes_]
    drawn = confusion_figure(decoder.confusion_.to_numpy(), names, results.banner)
    path = write_atomic(results.folder.figure("confusion.svg"), drawn)
    caption = text(
        "Held-out images, each predicted by a fold that did not train on it: counts, coloured by their share "
        "of the true class (row)."
    )
    return section("confusion", "Confusion", figure(path, caption, "Confusion of classes", "medium"))


def _maps(results: Results, shown: Results) -> str:
    page = comparisons_section(shown)
    left_out = len(results.tasks) - len(shown.tasks)
    if not left_out:
        return page
    note = paragraph(
        f"Figures show {len(shown.tasks)} of {len(results.tasks)} contrasts, here and in the section on "
        "consistency; generate_report(contrasts=[...]) draws those named, max_contrasts=... more; "
        "to_bids writes all maps."
    )
    return page.replace("</h2>", "</h2>\n" + note, 1)


def _methods(decoder: Any) -> str:
    """A paragraph for a paper, and the settings."""
    data = decoder._data
    coupling = (
        " Probabilities of all pairs of classes were coupled (Hastie and Tibshirani, 1998) and the most "
        "probable class was predicted." if decoder.n_classes_ > 2 else ""
    )  # fmt: skip
    cleaned = ", cleaned within each group," if data.cleaned_by_group else ""
    prose = (
        f"{len(data.X)} images of {decoder.n_classes_} classes were decoded from {decoder.n_elements_:,} "
        f"voxels{cleaned} by {data.method.label}. {data.method.description} {data.splits.sentence} "
        f"{SELECTED}{coupling} Maps are refits on all images. Analyses used mvpa_gamp {__version__}."
    )
    settings = "\n".join(f"{k}: {v}" for k, v in decoder.get_params(deep=False).items())
    return section(
        "methods",
        "Methods text and settings",
        f'<div class="prose"><p>{text(prose)}</p></div>',
        f'<ol class="references"><li>{text(CITATION)}</li></ol>',
        f"<pre>{text(settings)}</pre>",
    )


def _score_name(decoder: Any) -> str:
    scoring = decoder._data.scoring
    return scoring if isinstance(scoring, str) else "score"
