"""A fitted decoder as a results folder, by the writer of the commands, and as a page made from it."""

import difflib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import numpy as np
from nilearn.reporting import HTMLReport

from mvpa_gamp.decoder.maps import contrast_key
from mvpa_gamp.decoder.voxels import FoundVoxels
from mvpa_gamp.decoding.permutation import PermutationTest
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.brainmaps import space_name
from mvpa_gamp.imaging.disk import begin
from mvpa_gamp.imaging.maskers import CLEANING
from mvpa_gamp.imaging.names import entity
from mvpa_gamp.imaging.samples import PHANTOM_BANNER
from mvpa_gamp.methods.fold_fits import FoldFits
from mvpa_gamp.report.page import draw_figures, render
from mvpa_gamp.results.cells import write_cell
from mvpa_gamp.results.designs import AllClasses, maps_by_class, write_class_table, write_classes
from mvpa_gamp.results.files import write_text
from mvpa_gamp.results.inference import CellInference, write_inference, write_information
from mvpa_gamp.results.ledger import Cell, Subject
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.reader import read_results, write_manifest
from mvpa_gamp.results.study_files import versions, write_start, write_tables
from mvpa_gamp.results.summary import About


def write_folder(
    decoder: Any,
    root: Path,
    subject: str = "01",
    permutation: PermutationTest | None = None,
    voxels: FoundVoxels | None = None,
) -> Path:
    """Write everything a fitted decoder found; files of the same names are replaced, others left alone.

    A comparison of two classes is a cell, with the files that the commands write; predictions and confusion
    of all classes carry ``contrast-all``. ``permutation`` is a test of all classes together.
    """
    folder, data, tasks = ResultsFolder(Path(root)), decoder._data, list(decoder._tasks().values())
    about = _about(decoder)
    steps = {name: value for name, value in about.processing.items() if value}
    who = Subject(
        entity(subject), decoder.mask_img_, _banner(subject), data.groups, data.rows, whitened=decoder.whiten,
        about={"Processing": steps, "Software": versions()},
    )  # fmt: skip
    begin(folder.root, "decoder", uuid4().hex)
    write_start(folder, who, data.mean_img)
    cells = [
        (Cell(folder, who, task, data.method), fits.at(task.rows))
        for task, fits in zip(tasks, data.fits, strict=True)
    ]
    records = [write_cell(*each) for each in cells]
    classes = write_classes(folder, who, data.method, _all_classes(decoder, permutation))
    write_class_table(folder, who, [classes])
    extra = {"classes": classes, "leakage": data.leakage.as_json()}
    extra |= _write_voxels(folder, who, tasks, cells, voxels or FoundVoxels())
    write_tables(folder, who, tasks, [data.method], records, about, extra)
    write_manifest(read_results(folder.root))
    return folder.root


def _write_voxels(
    folder: ResultsFolder, who: Subject, tasks: list[Task], cells: list[tuple[Cell, FoldFits]],
    voxels: FoundVoxels,
) -> dict[str, Any]:  # fmt: skip
    """Information maps and selections at a rate, by the writers of the commands; parts of summary.json."""
    if voxels == FoundVoxels():
        return {}
    extra: dict[str, Any] = {}
    information, selection = voxels
    if information is not None:
        found = list(zip(tasks, information.records.values(), strict=True))
        extra["information"] = write_information(folder, who, found)
    each = [CellInference() for _ in cells]
    if selection is not None:
        each = [
            CellInference(selection=chosen, planted=selection.checks.get(key))
            for key, chosen in selection.records.items()
        ]
    fdr = None if selection is None else selection.fdr
    asked = {"permutations": 0, "max_inclusion": False, "fdr": fdr, "learning_curve": False}
    cells_found = [(*cell, what) for cell, what in zip(cells, each, strict=True)]
    return extra | {"inference": write_inference(folder, asked, cells_found)}


def _banner(subject: str) -> str | None:
    """The sentence on everything made from a phantom, which is always called "phantom"."""
    return PHANTOM_BANNER if subject.lower() == "phantom" else None


def _all_classes(decoder: Any, permutation: PermutationTest | None) -> AllClasses:
    scoring = decoder._data.scoring
    return AllClasses(
        names=tuple(str(name) for name in decoder.classes_),
        scoring=scoring if isinstance(scoring, str) else "score",
        held_out=decoder._data.splits.folds.held_out,
        fold_scores=decoder.fold_scores_,
        contrast_scores={key: each.tolist() for key, each in decoder.contrast_scores_.items()},
        class_scores=decoder.cv_scores_ if decoder.n_classes_ > 2 else {},
        confusion=decoder.confusion_.to_numpy(),
        predictions=decoder.cv_predictions_.to_dict("records"),
        permutation=permutation,
        maps=maps_by_class(decoder._data.fits, decoder.n_classes_),
    )


def _about(decoder: Any) -> About:
    """What was done, as in summary.json of the commands."""
    data = decoder._data
    counts = np.bincount(data.codes)
    settings = {name: value for name, value in decoder.get_params(deep=False).items() if name != "mask"}
    cleaning = {name: getattr(decoder.masker_, name) for name in CLEANING if name != "t_r"}
    unit = "images" if data.groups is None else "volumes"
    return About(
        data={
            "source": "images",
            "description": f"{len(data.X)} {unit} of {decoder.n_classes_} classes.",
            "n_samples": len(data.X),
            "n_voxels": decoder.n_elements_,
            "n_runs": None if data.groups is None else len(np.unique(data.groups)),
            "unit": unit,
            "space": space_name(decoder.mask_img_),
            "categories": {str(name): int(counts[k]) for k, name in enumerate(decoder.classes_)},
            "notes": list(decoder.notes_),
            "provenance": {},
        },
        processing={
            **{name: settings[name] for name in ("whiten", "class_weight")},
            **cleaning,
            "confounds": data.n_confounds,
            "by_run": data.cleaned_by_group,
            "fold_confounds": data.covariate_names,
        },
        seed=None,
        cross_validation=data.splits.sentence,
        held_out="run" if data.splits.leave_one_group_out else "fold",
        settings={name: str(value) for name, value in settings.items()},
    )


_OFFERED = 10  # contrasts listed in a message


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
    turned = [contrast_key(b, a) for a, b in decoder._data.pairs]
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
    decoder: Any, title: str | None, subject: str, drawn: list[int], permutation: PermutationTest | None,
    voxels: FoundVoxels,
) -> DecoderReport:  # fmt: skip
    """Write the decoder's folder to a temporary place and make its page, with figures of some contrasts."""
    with TemporaryDirectory(prefix="mvpa_gamp-") as place:
        results = read_results(write_folder(decoder, Path(place), subject, permutation, voxels))
        contrasts = tuple(results.tasks[place]["contrast"] for place in drawn)
        results = replace(results, drawn=contrasts, linked=False)
        draw_figures(results)
        name = title or f"mvpa_gamp: {', '.join(map(str, decoder.classes_[:8]))}"
        page = render(results, name)
    return DecoderReport(Template("$page"), "", {"page": page})
