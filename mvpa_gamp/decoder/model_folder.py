"""A fitted model as a folder of NIfTI, JSON and a table: written whole, and read without running any code.

``model.json`` says what the images are: weights of every contrast (positive: the first class), their standard
deviations, the mean of the training images, and how cleaning scaled them; a score is the sum over voxels of
weight times scaled value, plus the intercept. Numbers are stored as they are, in single or double precision.
"""

import json
import math
import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoder.model import FittedModel, Link
from mvpa_gamp.gamp.likelihoods import LIKELIHOODS
from mvpa_gamp.gamp.parameters import parameters
from mvpa_gamp.imaging.brainmaps import write_image
from mvpa_gamp.imaging.disk import write_error
from mvpa_gamp.imaging.errors import DataError, reason
from mvpa_gamp.imaging.maskers import CLEANING, VolumeMasker
from mvpa_gamp.imaging.matrix import Scaling
from mvpa_gamp.imaging.names import entity
from mvpa_gamp.imaging.spaces import is_surface, space_of
from mvpa_gamp.imaging.volumes import like, open_image
from mvpa_gamp.results.files import write_json, write_tsv
from mvpa_gamp.results.summary import versions

MODEL, MASK, TABLE = "model.json", "mask.nii.gz", "held_out.tsv"
FORMAT, VERSION = "mvpa_gamp model", 1
_MOST_BYTES = 4_000_000  # of model.json: a hundred classes have 5,000 contrasts of about 300 bytes
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\.nii\.gz")
_GRID = ("target_affine", "target_shape", "mask_strategy", "mask_args")  # the mask has what they made
_KINDS: dict[str, Any] = {
    "text": str,
    "number": (int, float),
    "whole number": int,
    "list": list,
    "object": dict,
    "yes or no": bool,
}


def save_model(
    model: FittedModel, folder: str | Path, about: Mapping[str, Any], table: tuple[list[str], list[Any]]
) -> Path:
    """Write a model to a new or empty folder, whole or not at all.

    ``about`` is free text for readers, stored under "about"; ``table`` are the columns and rows of what the
    model said about held-out images.
    """
    folder = Path(folder).expanduser()
    _check_can_be_saved(model)
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise DataError(
            f"{folder}: expected a new or empty folder, found something there. Give another name, or move it "
            "away."
        )
    waiting = folder.with_name(f".writing-{uuid.uuid4().hex}")
    try:
        waiting.mkdir(parents=True)
        space = space_of(model.masker.mask_img_)
        write_image(waiting / MASK, space.image(np.ones(space.size, dtype=np.uint8)), {"Type": "ROI"})
        content = _content(model, waiting) | {"about": dict(about), "software": versions()}
        write_tsv(waiting / TABLE, *table)
        write_json(waiting / MODEL, content)
        if folder.exists():
            folder.rmdir()
        waiting.rename(folder)
    except OSError as error:
        raise write_error(folder, error) from error
    finally:
        rmtree(waiting, ignore_errors=True)
    return folder


def _check_can_be_saved(model: FittedModel) -> None:
    """Refuse what a folder of numbers cannot hold."""
    masker = model.masker
    if is_surface(masker.mask_img_):
        raise DataError(
            "save: expected a model of volumes, got one of surfaces, which has no NIfTI weights. Write its "
            "maps with to_bids."
        )
    if model.models is not None:
        raise DataError(
            f"save: {model.method} does not predict by weights, and a model folder holds nothing but "
            "numbers. Use a linear classifier, or a method such as 'svm'."
        )
    usual = VolumeMasker().get_params(deep=False)
    silent = (*CLEANING, *_GRID, "mask_img", "runs", "memory", "memory_level", "verbose", "reports", "cmap")
    other = [
        name
        for name, value in masker.get_params(deep=False).items()
        if name not in silent and value is not usual[name]
    ]
    if other:
        raise DataError(
            f"save: the masker given as mask has {', '.join(other)}, which a model folder cannot hold. Use a "
            "masker without it."
        )
    if model.link.likelihood is not None and type(model.link.likelihood) not in LIKELIHOODS.values():
        raise DataError(
            f"save: the likelihood {type(model.link.likelihood).__name__} has no name by which it could be "
            f"read again. Use a method with one of {', '.join(LIKELIHOODS)}."
        )


def _content(model: FittedModel, folder: Path) -> dict[str, Any]:
    """Write the images of a model; what model.json says of it."""
    space, method = space_of(model.masker.mask_img_), entity(model.method)

    def image(values: NDArray, name: str, what: str) -> str:
        write_image(folder / name, space.image(values), {"Description": what})
        return name

    contrasts = []
    for place, name in enumerate(model.contrasts):
        first, second = model.pairs[place] if model.pairs else (None, None)
        stem = f"contrast-{place + 1:02d}{entity(str(name))}_desc-{method}_stat"
        contrasts.append({
            "name": str(name),
            "positive": first,
            "negative": second,
            "intercept": float(model.intercept[place]),
            "slope": None if model.link.slope is None else float(model.link.slope[place]),
            "weights": image(model.coef[:, place], f"{stem}-weight_statmap.nii.gz", f"Weights of {name}."),
            "deviations": None if model.coef_std is None else image(
                model.coef_std[:, place], f"{stem}-weightsd_statmap.nii.gz", f"Deviations of {name}."
            ),
        })  # fmt: skip
    scaling = model.scaling and {
        name: image(getattr(model.scaling, name), f"desc-{name}_scaling.nii.gz", f"{name} of the scaling.")
        for name in Scaling._fields
    }
    likelihood = model.link.likelihood
    names = {kind: name for name, kind in LIKELIHOODS.items()}
    return {
        "format": FORMAT,
        "version": VERSION,
        "method": model.method,
        "classes": None if model.classes is None else model.classes.tolist(),
        "target": model.target,
        "mask": MASK,
        "contrasts": contrasts,
        "center": image(model.center, "desc-center_mean.nii.gz", "Mean of the training images, scaled."),
        "likelihood": None if likelihood is None else {
            "name": names[type(likelihood)],
            "parameters": {name: float(value) for name, value in parameters(likelihood).items()},
        },
        "cleaning": {name: getattr(model.masker, name) for name in CLEANING},
        "scaling": scaling,
        "cleaned_by_group": model.cleaned_by_group,
        "shortest_run": model.shortest_run,
        "size": model.size,
        "formula": "score = sum over voxels of weights * (level + (value - center) / spread) + intercept; "
        "without scaling, of weights * value",
    }  # fmt: skip


def load_model(folder: str | Path) -> tuple[FittedModel, dict[str, Any]]:
    """The model of a folder, and all of model.json; DataError in one sentence where it cannot be used."""
    folder = Path(folder).expanduser()
    if not (folder / MODEL).exists() and not (folder / MODEL).is_symlink():
        found = "no such folder" if not folder.exists() else f"no {MODEL} there"
        raise DataError(
            f"model {folder}: expected a folder that GAMPDecoder.save wrote, found {found}. Check the path; "
            "a single weight map is given as a NIfTI file."
        )
    said = _Said(_json(_own_file(folder, MODEL)), folder / MODEL)
    if said.get("format", "text") != FORMAT or said.get("version", "whole number") != VERSION:
        raise said.wrong("version", f"{FORMAT!r} of version {VERSION}")
    mask_img = _volume(_own_file(folder, said.file("mask")))
    inside = np.asanyarray(mask_img.dataobj) != 0
    if not inside.any():
        raise DataError(f"model {folder}: its mask contains no voxels. Write the model again.")
    mask_img = like(mask_img, inside.astype(np.uint8))

    def values(name: str, positive: bool = False) -> NDArray:
        path = _own_file(folder, name)
        image = _volume(path)
        space_of(mask_img).check(image, f"model {path.name}")
        found = _numbers(image, path)[inside]
        wrong = np.isnan(found) | (found <= 0) if positive else ~np.isfinite(found)
        if wrong.any():
            what = "positive" if positive else "finite"
            raise DataError(
                f"model {path}: expected {what} numbers, got {int(wrong.sum())} that are not. Write it again."
            )
        return found

    classes = said.classes()
    contrasts = [_Said(each, said.path) for each in said.get("contrasts", "list")]
    expected = 1 if classes is None else len(classes) * (len(classes) - 1) // 2
    if len(contrasts) != expected:
        raise said.wrong("contrasts", f"{expected} of them")
    slopes = [each.optional("slope", "number") for each in contrasts]
    deviations = [each.optional("deviations", "text") for each in contrasts]
    scaling = said.optional("scaling", "object")
    model = FittedModel(
        method=said.get("method", "text"),
        classes=classes,
        coef=_stack([values(each.file("weights")) for each in contrasts]),
        intercept=np.array([float(each.get("intercept", "number")) for each in contrasts]),
        coef_std=None if None in deviations else _stack([
            values(each.file("deviations")) for each in contrasts
        ]),
        center=values(said.file("center")),
        link=Link(_likelihood(said), None if None in slopes else np.array(slopes, dtype=float)),
        masker=_masker(mask_img, _Said(said.get("cleaning", "object"), said.path)),
        scaling=None if scaling is None else Scaling(
            *(values(_Said(scaling, said.path).file(name), name == "spread") for name in Scaling._fields)
        ),
        cleaned_by_group=said.get("cleaned_by_group", "yes or no"),
        shortest_run=said.get("shortest_run", "whole number"),
        size=float(said.get("size", "number")),
        target=said.get("target", "text"),
    )  # fmt: skip
    if classes is not None:
        pairs = [(each.content.get("positive"), each.content.get("negative")) for each in contrasts]
        if pairs != model.pairs:
            raise said.wrong("contrasts", "the pairs of classes in their order")
    return model, said.content


def signature_model(weights: Any, intercept: float = 0.0, mask: Any = None) -> FittedModel:
    """A published signature as a model of a number: a weight map (image or file), and its intercept.

    Its voxels are those of ``mask``, or those whose weight is not zero; images are not scaled.
    """
    opened = open_image(weights, "weight map")
    path = Path(getattr(opened, "get_filename", lambda: None)() or "in memory")
    if len(opened.shape) != 3:
        raise DataError(f"weight map {path}: expected a 3-D image, got shape {opened.shape}. Give one map.")
    if not math.isfinite(intercept):
        raise DataError(f"--intercept: expected a finite number, got {intercept}. Change it.")
    whole = _numbers(opened, path)
    inside = np.isfinite(whole) & (whole != 0)
    if mask is not None:
        chosen = open_image(mask, "mask")
        space_of(like(opened, np.ones(opened.shape, np.uint8))).check(chosen, "mask")
        inside = np.asarray(chosen.dataobj) != 0
    if not inside.any() or not np.isfinite(whole[inside]).all():
        raise DataError(
            f"weight map {path}: expected finite weights, at least one of them not zero, got none. Give the "
            "map of weights itself."
        )
    coef = whole[inside].astype(float)
    return FittedModel(
        method="signature",
        classes=None,
        coef=coef[:, None],
        intercept=np.array([float(intercept)]),
        coef_std=None,
        center=np.zeros(coef.size),
        link=Link(),
        masker=_masker(like(opened, inside.astype(np.uint8)), None),
        scaling=None,
        cleaned_by_group=False,
        shortest_run=0,
        size=0.0,
        target=re.sub(r"\.nii(\.gz)?$", "", path.name),
    )


def _masker(mask_img: Any, cleaning: "_Said | None") -> VolumeMasker:
    settings: dict[str, Any] = {"standardize": None, "detrend": False}
    if cleaning is not None:
        numbers = ("smoothing_fwhm", "high_pass", "low_pass", "t_r")
        settings = {name: cleaning.optional(name, "number") for name in numbers}
        settings["detrend"] = cleaning.get("detrend", "yes or no")
        settings["standardize"] = cleaning.optional("standardize", "text")
        if settings["standardize"] not in (None, "zscore_sample", "zscore", "psc"):
            raise cleaning.wrong("standardize", "zscore_sample, psc or null")
        if any(value is not None and value <= 0 for name, value in settings.items() if name in numbers):
            raise cleaning.wrong("cleaning", "numbers above 0")
    return VolumeMasker(mask_img=mask_img, reports=False, **settings).fit()


def _likelihood(said: "_Said") -> Any:
    given = said.optional("likelihood", "object")
    if given is None:
        return None
    inner = _Said(given, said.path)
    if (name := inner.get("name", "text")) not in LIKELIHOODS:
        raise said.wrong("likelihood", f"one of {', '.join(LIKELIHOODS)}")
    values = _Said(inner.get("parameters", "object"), said.path)
    known = parameters(LIKELIHOODS[name]())
    try:
        return LIKELIHOODS[name](**{key: float(values.get(key, "number")) for key in known})
    except ValueError as error:
        raise said.wrong("likelihood", "parameters within their range") from error


def _stack(columns: list[NDArray]) -> NDArray:
    return np.ascontiguousarray(np.stack(columns, axis=1))


class _Said:
    """What model.json says, every value checked for its kind before it is used."""

    def __init__(self, content: Any, path: Path) -> None:
        self.content, self.path = content, path
        if not isinstance(content, dict):
            raise DataError(
                f"{path}: expected names and values, got {type(content).__name__}. Write it again."
            )

    def wrong(self, name: str, expected: str) -> DataError:
        got = repr(self.content.get(name, "nothing"))
        shown = got if len(got) <= 60 else f"{got[:60]} ..."
        return DataError(f"{self.path}: {name}: expected {expected}, got {shown}. Write the model again.")

    def get(self, name: str, kind: str) -> Any:
        value = self.content.get(name)
        fits = isinstance(value, _KINDS[kind]) and not (isinstance(value, bool) and kind != "yes or no")
        if not fits:
            raise self.wrong(name, f"{'an' if kind == 'object' else 'a'} {kind}")
        return value

    def optional(self, name: str, kind: str) -> Any:
        return None if self.content.get(name) is None else self.get(name, kind)

    def file(self, name: str) -> str:
        value = self.get(name, "text")
        if not _FILE.fullmatch(value):
            raise self.wrong(name, "the name of a .nii.gz file in the same folder")
        return str(value)

    def classes(self) -> NDArray | None:
        """The sorted names of the classes, all of one kind; None for a model of a number."""
        given = self.optional("classes", "list")
        if given is None:
            return None
        kinds = {type(each) for each in given}
        plain = len(kinds) == 1 and kinds <= {str, int, float, bool}
        if not plain or len(given) < 2 or sorted(set(given)) != given:
            raise self.wrong("classes", "two or more different names in their order")
        return np.array(given)


def _own_file(folder: Path, name: str) -> Path:
    """A file of the folder; a link may lead anywhere."""
    path = folder / name
    if path.is_symlink() or not path.is_file():
        found = "a link" if path.is_symlink() else "nothing there"
        raise DataError(f"model {path}: expected a file, found {found}. Copy the folder with all its files.")
    return path


def _json(path: Path) -> Any:
    if (size := path.stat().st_size) > _MOST_BYTES:
        raise DataError(f"{path}: expected at most {_MOST_BYTES:,} bytes, got {size:,}. This is no model.")

    def refuse(word: str) -> Any:
        raise ValueError(f"it contains {word}")

    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read as JSON ({reason(error)}). Write the model again.") from error


def _volume(path: Path) -> Any:
    image = open_image(path, "model")
    if len(image.shape) != 3:
        raise DataError(f"model {path}: expected a 3-D image, got shape {image.shape}. Write it again.")
    return image


def _numbers(image: Any, path: Path) -> NDArray:
    """All values of an image, in the precision in which they are stored."""
    try:
        return np.asarray(image.dataobj)
    except (OSError, ValueError, EOFError, MemoryError) as error:
        raise DataError(f"{path} cannot be read ({reason(error)}). Copy it again.") from error
