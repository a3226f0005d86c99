"""Fitted decoders and regressors as results folders, by the writer of the commands, with their pages."""

import difflib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import numpy as np
from nilearn.reporting import HTMLReport

from mvpa_gamp.decoder.fitted import FoundVoxels
from mvpa_gamp.decoder.maps import contrast_key
from mvpa_gamp.decoder.model import SCALINGS
from mvpa_gamp.decoder.model_folder import save_model
from mvpa_gamp.decoder.regressor import GAMPRegressor
from mvpa_gamp.decoding.permutation import PermutationTest
from mvpa_gamp.decoding.regression import NumberCurve, RegressionTest
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.brainmaps import from_image, space_name, write_map
from mvpa_gamp.imaging.disk import begin, irregular, read_record, write_error
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.maps import open_map, read_map_table
from mvpa_gamp.imaging.maskers import CLEANING
from mvpa_gamp.imaging.names import entity
from mvpa_gamp.imaging.samples import PHANTOM_BANNER
from mvpa_gamp.methods.fold_fits import FoldFits
from mvpa_gamp.methods.regression import REGRESSIONS
from mvpa_gamp.report.page import draw_figures, render
from mvpa_gamp.report.regression import IMAGES, Counted, NumberResult, regression_page
from mvpa_gamp.results.cells import write_cell
from mvpa_gamp.results.designs import AllClasses, maps_by_class, write_class_table, write_classes
from mvpa_gamp.results.files import write_json, write_text, write_tsv
from mvpa_gamp.results.inference import CellInference, write_inference, write_information
from mvpa_gamp.results.ledger import Cell, Subject
from mvpa_gamp.results.names import ResultsFolder, is_own_name
from mvpa_gamp.results.reader import read_results, write_manifest
from mvpa_gamp.results.summary import About, versions, write_start, write_tables


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
    _begin(folder.root)
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


def _begin(root: Path) -> None:
    """Make the folder one of a decoder; one of a command, or with links in it, is refused."""
    record = read_record(root)
    if record is not None and record.kind != _KIND:
        raise DataError(
            f"{root} holds results of a command, expected a new folder or one of a decoder. Give another."
        )
    for path, what in irregular(root, is_own_name):
        raise DataError(f"{path} is {what}, expected a file or a folder. Give another folder.")
    try:
        begin(root, _KIND, uuid4().hex)
    except OSError as error:
        raise write_error(root, error) from error


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
    unit = "images" if data.groups is None else "maps" if data.are_maps else "volumes"
    return About(
        data={
            "source": "images",
            "description": f"{len(data.X)} {unit} of {decoder.n_classes_} classes.",
            "n_samples": len(data.X),
            "n_voxels": decoder.n_elements_,
            "n_runs": None if data.groups is None else len(np.unique(data.groups)),
            "unit": unit,
            **({"counted": "group", "kind": "beta"} if unit == "maps" else {}),
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
            "scaling": data.within or None,
            "fold_confounds": data.covariate_names,
        },
        seed=None,
        cross_validation=data.splits.sentence,
        held_out=("group" if unit == "maps" else "run") if data.splits.leave_one_group_out else "fold",
        settings={name: str(value) for name, value in settings.items()},
    )


_KIND = "decoder"  # of a results folder
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


_MAPS = {
    "weight": "coef_img_",
    "pattern": "pattern_img_",
    "pip": "inclusion_img_",
    "selfreq": "selection_freq_img_",
}
_SCALED = {
    "none": "Images were not scaled.",
    "centre": "The mean of each group's images was taken away from them.",
    "zscore": "Each group's images were z-scored by themselves.",
}
# Options of decode that a number has a use for.
_KNOWN = (
    "maps", "target", "mask", "methods", "folds", "scaling", "permutations", "learning_curve", "seed", "out",
    "overwrite", "quiet", "verbose", "smoothing_fwhm", "labels",
)  # fmt: skip


@dataclass(frozen=True)
class Fitted:
    """A fitted regressor, and what was asked of it besides."""

    model: GAMPRegressor
    test: RegressionTest | None = None
    curve: NumberCurve | None = None

    def result(self) -> NumberResult:
        """What the page shows of it."""
        model, table = self.model, self.model.cv_predictions_
        return NumberResult(
            model._method, model.scores_, table["true"].to_numpy(), table["predicted"].to_numpy(),
            table["group"].to_numpy(), model.status_, model.coef_img_, self.test, self.curve,
        )  # fmt: skip


def about_numbers(
    model: GAMPRegressor, cautions: Sequence[str] = (), counted: Counted = IMAGES
) -> dict[str, Any]:
    """What was done, in words and numbers."""
    groups = 0 if model._groups is None else len(np.unique(model._groups))
    said = f"{len(model._y)} images of {groups} groups" if groups else f"{len(model._y)} independent images"
    span = f"{model._y.min():.4g} to {model._y.max():.4g}"
    return {
        "target": model.target,
        "description": f"{counted.said(said)}; {model.target} from {span}.",
        "images": len(model._y),
        "voxels": f"{model.n_elements_:,}",
        "groups": groups or "none",
        "folds": counted.said(model.cv_sentence_),
        "scaling": model.scaling,
        "scaled": counted.said(_SCALED[model.scaling]),
        "cautions": list(cautions),
    }


def page(
    fitted: Sequence[Fitted],
    title: str = "",
    cautions: Sequence[str] = (),
    counted: Counted = IMAGES,
) -> str:
    """The page of regressors that were fitted to the same images."""
    first = fitted[0].model
    background = getattr(first, "_mean_img", None)
    results = [each.result() for each in fitted]
    return regression_page(results, about_numbers(first, cautions, counted), background, title, counted)


def write_numbers(
    fitted: Sequence[Fitted], root: Path, cautions: Sequence[str] = (), counted: Counted = IMAGES
) -> Path:
    """Write maps, tables, a saved model per method, regression.json and index.html."""
    first, records = fitted[0].model, []
    name = entity(first.target)
    for each in fitted:
        model, stem = each.model, f"target-{name}_desc-{entity(each.model._method.name)}"
        for stat, attribute in _MAPS.items():
            if (image := getattr(model, attribute)) is not None:
                refit = f"refit on all {counted.image}s"
                about = {"Description": f"{stat} of {model.target}, {model._method.label}, {refit}."}
                write_map(root / f"{stem}_stat-{stat}_statmap.nii.gz", from_image(image, model.mask_img_),
                          model.mask_img_, about)  # fmt: skip
        table, status = model.cv_predictions_, model.status_
        write_tsv(root / f"{stem}_predictions.tsv", list(table.columns), table.to_dict("records"))
        write_tsv(root / f"{stem}_folds.tsv", list(status.columns), status.to_dict("records"))
        if each.test is not None:
            drawn = zip(each.test.null_correlation, each.test.null_r2, strict=True)
            rows = [{"correlation": r, "r2": r2} for r, r2 in drawn]
            write_tsv(root / f"{stem}_permutations.tsv", ["correlation", "r2"], rows)
        record: dict[str, Any] = {"method": model._method.name, **model.scores_._asdict()}
        if each.test is not None:
            record |= {"pvalue": each.test.pvalue, "pvalue_r2": each.test.pvalue_r2}
            record |= {"permutations": each.test.null_r2.size, "exchange": each.test.exchange}
        if each.curve is not None:
            record["learning_curve"] = {key: list(getattr(each.curve, key)) for key in (
                "n_train_groups", "correlation", "r2", "standard_error", "n_splits"
            )}  # fmt: skip
        records.append(record)
        if model.masker_ is not None and model._model.models is None:
            save_model(model._model, root / f"model-{entity(model._method.name)}", {}, (
                list(table.columns), table.to_dict("records")
            ))  # fmt: skip
    columns = ["method", "correlation", "within", "r2", "error", "pvalue", "pvalue_r2", "permutations"]
    write_tsv(root / "summary.tsv", columns, records)
    about = about_numbers(first, cautions, counted)
    write_json(root / "regression.json", {**about, "methods": records, "software": versions()})
    write_text(root / "index.html", page(fitted, cautions=cautions, counted=counted))
    return root


def run_target(given: dict[str, Any], say: Any = print) -> Path:
    """``decode --maps TABLE --target COLUMN``: fit every method, and write the results folder.

    DataError in one sentence, with nothing written, where the input cannot be used.
    """
    unknown = [name for name in given if name not in _KNOWN]
    if unknown:
        raise DataError(f"--{unknown[0].replace('_', '-')} has no meaning for a --target. Leave it out.")
    out = Path(given.get("out", f"{entity(given['target'])}-results")).expanduser()
    if (out.is_symlink() or out.exists()) and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"--out {out}: expected a new or empty folder, found files there. Give another name.")
    if len(given.get("maps", ())) != 1 or "labels" in given:
        raise DataError(
            "--target needs --maps TABLE, one table with a column file. Write file names into it."
        )
    files, y, people, notes = _table(given)
    count = given.get("folds", "")
    if count and not (count.isdigit() or count == "participant"):
        raise DataError(f"--folds: expected participant or a number of folds, got {count!r}. Change it.")
    scaling = given.get("scaling", "none")
    if scaling not in SCALINGS:
        raise DataError(f"--scaling: expected {', '.join(SCALINGS)}, got {scaling!r}. Choose one of them.")
    methods = list(given.get("methods") or ["vamp-bg-reg", "ridge"])
    if wrong := [name for name in methods if name not in REGRESSIONS]:
        raise DataError(
            f"--methods: expected methods for a number ({', '.join(REGRESSIONS)}), got {wrong[0]!r}. Choose "
            "among them."
        )
    fitted = []
    for name in methods:
        model = GAMPRegressor(
            name, mask=given.get("mask"), cv=int(count) if count.isdigit() else None, scaling=scaling,
            smoothing_fwhm=given.get("smoothing_fwhm"), target=given["target"],
            random_state=int(given.get("seed", 0)),
        )  # fmt: skip
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            fitted.append(_fitted(model, (files, y, people), given))
        test = fitted[-1].test
        for text in dict.fromkeys(str(each.message) for each in warned):
            if text not in notes:
                notes.append(text)
                say(f"Note: {text}")
        r, r2 = model.scores_.correlation, model.scores_.r2
        sure = "" if test is None else f", p = {test.pvalue:.3g}"
        say(f"{model._method.label}: held-out correlation {r:.3f}, R2 {r2:.3f}{sure}")
    write_numbers(fitted, out, notes, Counted("map", "participant"))
    say(f"{out / 'index.html'}")
    return out


def _fitted(model: GAMPRegressor, data: tuple[Any, Any, Any], given: dict[str, Any]) -> Fitted:
    """One method fitted, with what is asked for besides."""
    people, n = data[2], int(given.get("permutations", 0))
    try:
        model.fit(*data)
        test = model.permutation_test(n) if n else None
    except ValueError as error:
        raise DataError(str(error)) from error
    try:
        curve = model.learning_curve() if given.get("learning_curve") and people is not None else None
    except ValueError as error:  # few participants may all have one number
        raise DataError(f"--learning-curve: {error}") from error
    return Fitted(model, test, curve)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _table(given: dict[str, Any]) -> tuple[list[str], Any, Any, list[str]]:
    """Files, numbers and participants of the lines that have all three, in the order of the table."""
    table = read_map_table(given["maps"][0], needs_condition=False)
    column = given["target"].lower()
    if column not in table.columns:
        raise DataError(
            f"--target {given['target']}: expected a column of {table.path.name} "
            f"({', '.join(table.columns)}). Change it."
        )
    texts, people = table.columns[column], table.columns["participant"]
    known = (texts != "") & (people != "") & (table.columns["file"] != "")
    try:
        y = texts[known].astype(float)
    except ValueError as error:
        odd = next(text for text in texts[known] if not _is_number(text))
        raise DataError(
            f"--target {given['target']}: expected numbers, got {odd[:40]!r}. Correct the column."
        ) from error
    if len(y) < 4 or not np.isfinite(y).all() or np.ptp(y) == 0:
        raise DataError(
            f"--target {given['target']}: expected at least four finite numbers that differ, got {len(y)}. "
            "Correct the column."
        )
    files = [table.path.parent / name for name in table.columns["file"][known]]
    if missing := [file for file in files if not file.is_file()]:
        raise DataError(f"table {table.path}: {missing[0]} is not there. Check the name.")
    notes = (
        []
        if known.all()
        else [f"{int((~known).sum())} lines without a number, file or participant were left out."]
    )
    volumes = _volumes(files)
    owners = people[known]
    single = len(set(owners)) == len(owners)
    return volumes, y, None if single else owners, notes


def _volumes(files: list[Path]) -> list[Any]:
    """The image of each line: a 3-D file, or the next volume of a 4-D file."""
    from nilearn.image import index_img

    opened = {file: open_map(file) for file in dict.fromkeys(files)}
    used = dict.fromkeys(opened, 0)
    images = []
    for file in files:
        image = opened[file]
        count = image.shape[3] if len(image.shape) > 3 else 1
        if used[file] >= count:
            raise DataError(
                f"{file.name} has {count} image{'s' * (count != 1)}, but is in more lines than that. "
                "Correct the table."
            )
        images.append(index_img(image, used[file]) if len(image.shape) > 3 else image)
        used[file] += 1
    if short := [file for file in opened if opened[file].ndim > 3 and used[file] < opened[file].shape[3]]:
        raise DataError(f"{short[0].name} has more images than lines in the table. Give a line for each.")
    return images
