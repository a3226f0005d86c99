"""The settings of a study, and config.toml, which carries them from one run to the next."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from mvpa_gamp.imaging.bids.betas import BetasSource
from mvpa_gamp.imaging.bids.source import BidsSource
from mvpa_gamp.imaging.maps import MapsSource
from mvpa_gamp.imaging.phantom.source import PhantomSource
from mvpa_gamp.imaging.source import HaxbySource, OwnFiles, Source, find_haxby
from mvpa_gamp.results.files import DamagedFile
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.reader import is_as_recorded
from mvpa_gamp.study.ending import StudyError
from mvpa_gamp.study.options import DEFAULT_METHODS

# Settings that name comparisons of their own, and that a source may need to know.
_INSTEAD_OF_PAIRS = ("classes", "cross")
_SHARED = ("pairs", "seed", *_INSTEAD_OF_PAIRS)

_LARGEST = 10_000_000  # characters of a config.toml
_MOST_DOTS = 100  # in a line, outside of texts: reading a key takes the square of its parts
_TEXT = re.compile(r"""'[^'\n]*'?|"(?:\\.|[^"\\\n])*"?|#[^\n]*""")  # and comments

KINDS: tuple[type[Source], ...] = (HaxbySource, OwnFiles, MapsSource, BidsSource, BetasSource, PhantomSource)

# The settings by which a source is named, as the command line calls them.
_NAMED_BY: dict[str, tuple[type[Source], tuple[str, ...]]] = {
    "--bold/--labels": (OwnFiles, ("bold", "labels")),
    "--maps": (MapsSource, ("maps",)),
    "--data-dir/--fetch": (HaxbySource, ("data_dir", "fetch")),
    "--phantom/--phantom-shape": (PhantomSource, ("phantom", "phantom_shape")),
}

# What a key of config.toml is about. Where results go and how busy the machine is does not belong there.
INFERENCE = ("permutations", "max_inclusion", "fdr", "learning_curve")
REGIONS = ("atlas", "atlas_labels", "by_region", "without_region")
SECTIONS = {
    "bids": (
        "bids_dir", "derivatives", "task", "session_label", "run_label", "bids_filter_file", "space",
        "samples", "trial_model", "hrf_model", "drift_model", "betas", "betas_glob", "cv",
    ),
    "data": (
        "data_dir", "fetch", "participant_label", "mask", "bold", "maps", "labels", "folds", "zero_voxels",
        "covariates",
        "surface_mesh", "phantom", "phantom_shape",
    ),
    "processing": (
        "lag_trs", "smoothing_fwhm", "high_pass", "t_r", "confounds", "confounds_strategy", "detrend",
        "standardize", "scaling",
    ),
    "study": (
        "pairs", "classes", "cross", "cross_session", "methods", "whiten", "fold_confounds", "class_weight",
        "seed", "fold_maps", "strict",
    ),
    "inference": INFERENCE,
    "regions": REGIONS,
}  # fmt: skip


@dataclass(frozen=True)
class StudySettings:
    """Everything that decides what comes out: where data come from, and what is done with them.

    ``pairs`` are "a:b" texts or ("all",); None the paper's six, and of other conditions all; empty no others
    than ``classes`` (names of conditions, or ("all",)) and ``cross`` ("a:b>c:d") ask for. ``cross_session``
    are texts such as "1-6>7-12".
    ``fold_confounds`` is a table of covariates; "{participant}" in its name stands for the label.
    """

    source: Source = field(default_factory=HaxbySource)
    pairs: tuple[str, ...] | None = None
    classes: tuple[str, ...] = ()
    cross: tuple[str, ...] = ()
    cross_session: tuple[str, ...] = ()
    methods: tuple[str, ...] = DEFAULT_METHODS
    whiten: bool = False
    fold_confounds: str = ""
    class_weight: str | None = None
    seed: int = 0
    fold_maps: bool = False
    strict: bool = False  # findings of the leakage check are errors
    permutations: int = 0
    max_inclusion: bool = False
    fdr: float | None = None
    learning_curve: bool = False
    atlas: str = ""
    atlas_labels: str = ""
    by_region: bool = False
    without_region: bool = False

    @property
    def has_inference(self) -> bool:
        """Whether anything beyond the table is asked for."""
        return bool(self.permutations or self.fdr is not None or self.learning_curve)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "StudySettings":
        """Settings from their names in config.toml; what is not named is left to defaults."""
        if not values.get("pairs") and any(values.get(name) for name in _INSTEAD_OF_PAIRS):
            values = {**values, "pairs": ()}
        known = (*SECTIONS["study"], *INFERENCE, *REGIONS)
        own = {name: values[name] for name in known if name in values}
        own |= {name: _absolute(own[name]) for name in ("atlas", "atlas_labels") if own.get(name)}
        if own.get("fold_confounds"):
            own["fold_confounds"] = str(Path(own["fold_confounds"]).expanduser().absolute())
        return cls(source=choose_source(values), **own)

    def values(self) -> dict[str, Any]:
        """The settings by their names in config.toml, None what was not given."""
        own = {name: value for name, value in vars(self).items() if name != "source"}
        found = own | vars(self.source) | {name: value for name, value in own.items() if value is not None}
        return {name: None if value in ("", ()) else value for name, value in found.items()}

    def resolve(self, say: Callable[[str], None]) -> "StudySettings":
        """Nothing left open; the phantom, and ``say`` so, where no data were named and none found."""
        source = self.source
        if is_missing(source):
            say(
                "No Haxby data in nilearn's data folders: a simulated PHANTOM of the same shape is used "
                "instead. Real data: --fetch, --data-dir or --bold (see --help)."
            )
            source = choose_source(self.values() | {"phantom": True})
        shared = {name: getattr(self, name) for name in _SHARED if hasattr(source, name)}
        given = {name: value for name, value in shared.items() if value is not None}
        return self.with_source(replace(source, **given).resolve())

    def with_source(self, source: Source) -> "StudySettings":
        """The same study of another source, which may decide on the pairs."""
        return replace(self, source=source, pairs=getattr(source, "pairs", self.pairs))


def _absolute(text: str) -> str:
    """A path that means the same from every folder; what is no file, such as a name, stays."""
    path = Path(text).expanduser()
    return str(path.absolute()) if text and path.exists() else text


def choose_source(values: Mapping[str, Any]) -> Source:
    """The source that some settings mean; those that have no meaning for it are refused."""
    kind = _kind(values)
    known = {each.name for each in fields(kind)}
    every = {each.name for other in KINDS for each in fields(other)} - set(_SHARED)
    for name, value in values.items():
        if value and name in every and name not in known:
            option = "--" + name.replace("_", "-")
            raise StudyError(f"{option} does not apply to {kind.name}. Leave it out.")
    return kind(**{name: value for name, value in values.items() if name in known and value is not None})


def _kind(values: Mapping[str, Any]) -> type[Source]:
    """Without any data option Haxby's volumes."""
    if values.get("bids_dir"):
        return BetasSource if values.get("betas") or values.get("samples") == "betas" else BidsSource
    named = [option for option, (_, names) in _NAMED_BY.items() if any(values.get(name) for name in names)]
    if values.get("maps"):  # files of either may come with --labels
        named = [option for option in named if option != "--bold/--labels" or values.get("bold")]
    if len(named) > 1:
        raise StudyError(f"Data come from one source, got options of {' and '.join(named)}. Choose one.")
    return _NAMED_BY[named[0]][0] if named else HaxbySource


def is_missing(source: Source) -> bool:
    """Whether nobody asked for Haxby's data, and nilearn's data folders do not hold them."""
    if not isinstance(source, HaxbySource) or source.data_dir or source.fetch or source.participant_label:
        return False
    return find_haxby(1) is None


def settings_text(settings: StudySettings) -> str:
    """config.toml: every setting that has a value, in sections."""
    lines = [f"# Settings of a study. Repeat it with: {_repeat(settings)}"]
    given = settings.values()
    for section, names in SECTIONS.items():
        known = [f"{name} = {_toml(given[name])}" for name in names if given.get(name) is not None]
        lines += ["", f"[{section}]", *known] if known else []
    return "\n".join(lines) + "\n"


def _repeat(settings: StudySettings) -> str:
    """The command that runs these settings again."""
    given = settings.values()
    if not given.get("bids_dir"):
        return "python -m mvpa_gamp.haxby --config config.toml --out FOLDER"
    who = f" --participant-label {given['participant_label']}" if given["participant_label"] else ""
    return f"python -m mvpa_gamp {given['bids_dir']} OUT participant{who} --config config.toml"


def _toml(value: Any) -> str:
    """A TOML value; JSON's strings, numbers and lists are valid TOML."""
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=True).replace("\x7f", "\\u007f")


def read_settings(path: Path) -> dict[str, Any]:
    """The settings of a config.toml, for :meth:`StudySettings.of`."""
    try:
        content = _load_toml(path)
    except OSError as error:
        raise StudyError(f"--config {path} cannot be read: {error.strerror}. Give a config.toml.") from error
    except RecursionError as error:
        raise StudyError(f"--config {path} is nested too deeply. Correct it or write a new one.") from error
    except ValueError as error:
        raise StudyError(
            f"--config {path} is not valid TOML: {error}. Correct it or write a new one."
        ) from error
    out: dict[str, Any] = {}
    for section, values in content.items():
        if section not in SECTIONS or not isinstance(values, dict):
            raise StudyError(
                f"--config {path}: expected sections {', '.join(SECTIONS)}, got {section!r}. Remove it."
            )
        for name, value in values.items():
            if name not in SECTIONS[section]:
                known = ", ".join(SECTIONS[section])
                raise StudyError(f"--config {path}: [{section}] has no setting {name!r}. Known are: {known}.")
            out[name] = _checked(path, name, tuple(value) if isinstance(value, list) else value)
    return out


def read_earlier(folder: ResultsFolder) -> dict[str, Any] | None:
    """The settings of the run in a folder; None where its config.toml is damaged or not what it wrote."""
    try:
        return read_settings(folder.config) if is_as_recorded(folder.config, folder) else None
    except (StudyError, DamagedFile):
        return None


def resumed_settings(out: Path, given_again: bool) -> dict[str, Any]:
    """What a resumed run starts from: the settings in its folder, or none where they are given again."""
    folder = ResultsFolder(out)
    if not folder.config.exists():
        return {}
    found = read_earlier(folder)
    if found is None and not given_again:
        raise StudyError(
            f"--resume: {folder.config} is damaged, or was edited since its run ended. Give the options of "
            "that run again with --resume to use what is stored; if the file is correct, add --config "
            f"{folder.config}."
        )
    return found or {}


_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,), "bool": (bool,), "int": (int,), "float": (int, float), "tuple": (tuple,),
}  # fmt: skip


def _checked(path: Path, name: str, value: Any) -> Any:
    """A value of the kind its setting has, or a sentence."""
    kinds: tuple[Any, ...] = (StudySettings, *KINDS)
    hint = {each.name: each.type for kind in kinds for each in fields(kind)}[name]
    declared = hint.__name__ if isinstance(hint, type) else str(hint)
    kind = declared.split("[")[0].split(" ")[0]
    if kind == "tuple" and isinstance(value, str):
        value = (value,)  # one value need not be a list
    right = isinstance(value, _TYPES[kind]) and (kind == "bool" or not isinstance(value, bool))
    if right and kind == "tuple":
        item = int if "int" in declared else str
        right = all(isinstance(entry, item) for entry in value)
    if not right:
        raise StudyError(f"--config {path}: {name} should be a {kind}, got {value!r}. Correct it.")
    return value


def _load_toml(path: Path) -> dict[str, Any]:
    """Parse TOML with the standard library, or tomli before Python 3.11."""
    try:
        import tomllib
    except ModuleNotFoundError:
        import tomli as tomllib  # type: ignore[no-redef]
    with path.open(encoding="utf-8") as stream:
        text = stream.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise ValueError(f"it has more than {_LARGEST:,} characters")
    if any(line.count(".") > _MOST_DOTS for line in _TEXT.sub("", text).splitlines()):
        raise ValueError(f"a key has more than {_MOST_DOTS} parts")
    return tomllib.loads(text)


def differences(old: Mapping[str, Any], new: StudySettings) -> list[str]:
    """Settings of a started study that a resume would change.

    Pairs, classes, crosses and methods may only be added to (where they decide on the events read, methods
    alone); inference, regions and other parts of runs touch no fit and may change freely, as may ``strict``.
    """
    started = StudySettings.of(old)
    was, now = replace(started, source=started.source.absolute()).values(), new.values()
    growing = ("methods",) if hasattr(new.source, "pairs") else ("pairs", "classes", "cross", "methods")
    out = []
    free = ("inference", "regions")
    for name in (name for section, names in SECTIONS.items() if section not in free for name in names):
        before, after = was.get(name), now.get(name)
        grows = name in growing and after and set(before or ()) <= set(after)
        grows = grows and (bool(before) or name in _INSTEAD_OF_PAIRS)
        if before != after and not grows and name not in ("cross_session", "strict"):
            out.append(f"{name} was {_plain(before)}, now {_plain(after)}")
    return out


def _plain(value: Any) -> str:
    """A setting as a reader would write it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value)) or "not given"
    return "not given" if value is None else str(value)
