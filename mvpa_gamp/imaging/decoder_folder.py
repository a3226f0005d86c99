"""A fitted decoder as a folder of BIDS-derivative maps and tables, under the names of the Haxby command."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp._version import __version__
from mvpa_gamp.decoding.tasks import Task, make_tasks
from mvpa_gamp.imaging.brainmaps import space_name, write_image, write_map
from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.imaging.samples import PHANTOM_BANNER
from mvpa_gamp.report.clusters import CLUSTER_COLUMNS, cluster_rows
from mvpa_gamp.report.consistency import CONSISTENCY_COLUMNS, consistency, overlap_rows
from mvpa_gamp.report.files import write_json, write_tsv
from mvpa_gamp.report.folder import ResultsFolder
from mvpa_gamp.report.methods_text import CITATION
from mvpa_gamp.report.tables import (
    SUMMARY_COLUMNS,
    TIMING_COLUMNS,
    average_rows,
    error_summary,
    timing_averages,
)

ALL = "all"  # the contrast name of tables about all classes together

_MEANING = {
    "weight": ("coef_img_", "Weight of each voxel; positive speaks for the first class. Not activation."),
    "weightsd": ("coef_std_img_", "Posterior standard deviation of each weight under the model."),
    "pip": ("inclusion_img_", "Posterior probability that a voxel's weight is not zero under the model."),
    "pattern": ("pattern_img_", "Activation pattern of the classifier (Haufe et al., 2014)."),
    "selfreq": ("selection_freq_img_", "Share of cross-validation folds in which a voxel was selected."),
}
_SHARES = ("pip", "selfreq")
_CONFUSION = ("contrast", "method", "true", "predicted", "count")


def write_folder(decoder: Any, root: Path, subject: str = "01") -> Path:
    """Write everything a fitted decoder found; files of the same names are replaced, others left alone.

    ``sub-<id>/`` holds maps of the refits and the selection frequency with JSON sidecars, per contrast the
    tables folds, predictions and jaccard, and consistency, confusion, clusters; predictions and confusion of
    all classes carry ``contrast-all``. summary.tsv, timings.tsv and summary.json stand beside it.
    """
    subject = entity(subject)
    folder = ResultsFolder(Path(root))
    tasks = decoder_tasks(decoder)
    units = [_write_unit(folder, decoder, subject, task, p) for p, task in enumerate(tasks)]
    if len(tasks) > 1:
        _write_all_classes(folder, decoder, subject)
    about = _marked(subject, {"GeneratedBy": f"mvpa_gamp {__version__}"})
    inside = np.ones(decoder.n_elements_, dtype=np.uint8)
    roi = {**about, "Description": "Voxels that entered the analysis.", "Type": "ROI"}
    write_map(folder.mask(subject), inside, decoder.mask_img_, roi)
    mean = {**about, "Description": "Mean volume, the background of the figures."}
    write_image(folder.background(subject), decoder._data.mean_img, mean)
    _write_tables(folder, decoder, subject, tasks, units)
    return folder.root


def banner(subject: str) -> str | None:
    """The sentence that must stand on everything made from a phantom, which is always called "phantom"."""
    return PHANTOM_BANNER if subject.lower() == "phantom" else None


def _marked(subject: str, about: dict[str, Any]) -> dict[str, Any]:
    said = banner(subject)
    return about if said is None else {"Phantom": said, **about}


def decoder_tasks(decoder: Any) -> list[Task]:
    """The pairs of classes as tasks, in the order of ``contrasts_``; names of files must differ."""
    names = [str(name) for name in decoder.classes_]
    pairs = [(names[i], names[j]) for i, j in decoder._data.fits.pairs]
    return make_tasks(np.array(names)[decoder._data.codes], pairs)


def _write_unit(folder: ResultsFolder, decoder: Any, subject: str, task: Task, pair: int) -> dict[str, Any]:
    """Maps and tables of one contrast; returns its rows for the tables of the subject and the study."""
    data, fits = decoder._data, decoder._data.fits
    key, method = decoder.contrasts_[pair], data.method
    stats = []
    for stat, (attribute, meaning) in _MEANING.items():
        maps = getattr(decoder, attribute)
        if maps is None:
            continue
        stats.append(stat)
        about = {
            "Description": meaning,
            "Estimate": f"over {fits.n_folds} folds" if stat == "selfreq" else "refit on all images",
            "Units": "1" if stat in _SHARES else "arbitrary",
            "Contrast": f"{task.positive} (positive) versus {task.negative} (negative)",
            "Method": method.name,
            "MethodDescription": method.description,
            "GeneratedBy": f"mvpa_gamp {__version__}",
        }
        path = folder.statmap(subject, task.name, entity(method.name), stat)
        write_map(path, maps.vector(key), decoder.mask_img_, _marked(subject, about))
    table = _pair_predictions(decoder, task, pair)
    predictions = folder.unit_table(subject, task.name, method.name, "predictions")
    write_tsv(predictions, list(table[0]), table)
    folds = _fold_rows(decoder, pair, table)
    write_tsv(folder.unit_table(subject, task.name, method.name, "folds"), list(folds[0]), folds)
    keys = {"subject": subject, "contrast": task.name, "comparison": task.label, "method": method.name}
    measures = _overlap(folder, decoder, keys, pair) if fits.n_folds > 1 else {"folds": fits.n_folds}
    wrong = np.array([not row["correct"] for row in table])
    fold = np.array([row["fold"] for row in table])
    labels = np.array([1 if row["true"] == task.positive else -1 for row in table])
    errors = error_summary(wrong, fold, labels)
    converged = int(fits.converged[pair, :-1].sum())
    return {
        "summary": {**keys, **measures, **errors, "folds_converged": converged, "status": "ok"},
        "timing": {**keys, "seconds": fits.seconds / len(fits.pairs)},
        "consistency": {**keys, **measures},
        "confusion": _confusion_rows(table, task.name, method.name, (task.positive, task.negative)),
        "clusters": _clusters(decoder, task, pair),
        "stats": stats,
    }


def _overlap(folder: ResultsFolder, decoder: Any, keys: Mapping[str, str], pair: int) -> dict[str, Any]:
    """jaccard.tsv of a contrast, and its measures of consistency."""
    data = decoder._data
    support = data.fits.support[:, pair]
    columns, rows = overlap_rows(support, data.splits.held_out)
    write_tsv(folder.unit_table(keys["subject"], keys["contrast"], keys["method"], "jaccard"), columns, rows)
    return consistency(support)


def _pair_predictions(decoder: Any, task: Task, pair: int) -> list[dict[str, Any]]:
    """A row per held-out image of the two classes, predicted by their own classifier."""
    data, fits = decoder._data, decoder._data.fits
    names = np.array([str(name) for name in decoder.classes_])[data.codes]
    return [
        {
            "sample": row,
            "volume": data.rows[row],
            "run": data.groups[row] if data.groups is not None else None,
            "fold": fits.fold[t] + 1,
            "true": names[row],
            "predicted": task.positive if fits.decision[t, pair] > 0 else task.negative,
            "correct": (fits.decision[t, pair] > 0) == (names[row] == task.positive),
            "probability_positive": fits.proba[t, pair],
            "decision": fits.decision[t, pair],
        }
        for t, row in enumerate(fits.rows)
        if names[row] in (task.positive, task.negative)
    ]


def _fold_rows(decoder: Any, pair: int, predictions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row per fold, then the refit."""
    mine = decoder.status_[decoder.status_["contrast"] == decoder.contrasts_[pair]]
    rows = []
    for fit in mine.drop(columns=["contrast", "held_out"]).to_dict("records"):
        right = [row["correct"] for row in predictions if row["fold"] == fit["fold"]]
        tested = {
            "fold": fit["fold"],
            "held_out_run": None
            if fit["fold"] == "refit"
            else decoder._data.splits.held_out[fit["fold"] - 1],
            "test_volumes": len(right),
            "wrong": len(right) - sum(right) if right else None,
            "error_percent": 100 * (1 - float(np.mean(right))) if right else None,
        }
        rows.append(tested | {name: fit[name] for name in fit if name != "fold"})
    return rows


def _confusion_rows(
    predictions: list[dict[str, Any]], contrast: str, method: str, names: tuple[str, ...]
) -> list[dict[str, Any]]:
    said = [(row["true"], row["predicted"]) for row in predictions]
    return [
        {"contrast": contrast, "method": method, "true": true, "predicted": other,
         "count": said.count((true, other))}
        for true in names
        for other in names
    ]  # fmt: skip


def _clusters(decoder: Any, task: Task, pair: int) -> list[dict[str, Any]]:
    refit = decoder._data.fits.refit
    mask = np.asarray(decoder.mask_img_.dataobj) != 0
    frequency: NDArray = decoder.selection_freq_img_.vector(decoder.contrasts_[pair])
    affine = np.asarray(decoder.mask_img_.affine)
    rows = cluster_rows(refit.support[:, pair], refit.coef[:, pair], frequency, mask, affine)
    return [{"contrast": task.name, "method": decoder._data.method.name, **row} for row in rows]


def _write_all_classes(folder: ResultsFolder, decoder: Any, subject: str) -> None:
    """Predictions of all classes by coupled probabilities."""
    path = folder.unit_table(subject, ALL, decoder._data.method.name, "predictions")
    table = decoder.cv_predictions_
    write_tsv(path, list(table.columns), table.to_dict("records"))


def _write_tables(
    folder: ResultsFolder, decoder: Any, subject: str, tasks: list[Task], units: list[dict[str, Any]]
) -> None:
    """Tables of the subject and of the study; summary.json last, because it says that all is there."""
    method = decoder._data.method
    write_json(folder.description, {
        "Name": f"{'PHANTOM (simulated): ' if banner(subject) else ''}mvpa_gamp decoding results",
        "BIDSVersion": "1.9.0",
        "DatasetType": "derivative",
        "GeneratedBy": [{"Name": "mvpa_gamp", "Version": __version__}],
        "HowToAcknowledge": CITATION,
    })  # fmt: skip
    confusion = [row for unit in units for row in unit["confusion"]]
    if len(tasks) > 1:
        counts = decoder.confusion_.stack()
        confusion += [
            {"contrast": ALL, "method": method.name, "true": true, "predicted": said, "count": count}
            for (true, said), count in counts.items()
        ]
    write_tsv(folder.subject_table(subject, "confusion"), _CONFUSION, confusion)
    clusters = [row for unit in units for row in unit["clusters"]]
    write_tsv(folder.subject_table(subject, "clusters"), CLUSTER_COLUMNS, clusters)
    consistent = [unit["consistency"] for unit in units]
    write_tsv(folder.subject_table(subject, "consistency"), CONSISTENCY_COLUMNS, consistent)
    rows = [unit["summary"] for unit in units]
    rows += average_rows(rows)
    columns = [name for name in SUMMARY_COLUMNS if "average_precision" not in name]
    write_tsv(folder.summary, columns, rows)
    timings = [unit["timing"] for unit in units]
    write_tsv(folder.timings, TIMING_COLUMNS, timings + timing_averages(timings))
    study = study_record(decoder, subject, tasks)
    study["maps"] = {f"sub-{subject}/{u['summary']['contrast']}/{method.name}": u["stats"] for u in units}
    study["summary"] = [{name: row.get(name) for name in columns} for row in rows]
    write_json(folder.study, study)


def study_record(decoder: Any, subject: str, tasks: list[Task]) -> dict[str, Any]:
    """What was done, as in summary.json of the Haxby command."""
    data = decoder._data
    counts = np.bincount(data.codes)
    settings = {name: value for name, value in decoder.get_params(deep=False).items() if name != "mask"}
    return {
        "package": "mvpa_gamp",
        "version": __version__,
        "phantom": banner(subject) is not None,
        "banner": banner(subject),
        "subjects": [subject],
        "data": {
            "description": f"{len(data.X)} images of {decoder.n_classes_} classes.",
            "n_samples": len(data.X),
            "n_voxels": decoder.n_elements_,
            "n_runs": None if data.groups is None else len(np.unique(data.groups)),
            "space": space_name(decoder.mask_img_),
            "categories": {str(name): int(counts[k]) for k, name in enumerate(decoder.classes_)},
            "notes": list(decoder.notes_),
        },
        "cross_validation": data.splits.sentence,
        "fold_scores": decoder.fold_scores_,
        "settings": {name: str(value) for name, value in settings.items()},
        "tasks": [
            {
                "contrast": task.name,
                "label": task.label,
                "positive": task.positive,
                "negative": task.negative,
                "volumes": len(task.y),
                "positive_volumes": int((task.y > 0).sum()),
                "negative_volumes": int((task.y < 0).sum()),
            }
            for task in tasks
        ],
        "methods": [
            {
                "name": data.method.name,
                "label": data.method.label,
                "description": data.method.description,
                "settings": repr(data.method),
            }
        ],
    }
