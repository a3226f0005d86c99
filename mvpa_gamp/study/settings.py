"""The settings of a study, and config.toml, which carries them from one run to the next."""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from mvpa_gamp.study.errors import StudyError

# Written out so that --help need not import the methods; a test compares it with METHODS.
KNOWN_METHODS = (
    "gamp-bg-lr", "gamp-sbg-lr", "gamp-bl-lr", "gamp-bg-pr", "gamp-bg-hl", "gamp-l1-lr",
    "l1-lr-cv", "onebit-cs", "cdn", "tron",
)  # fmt: skip
DEFAULT_METHODS = ("l1-lr-cv", "gamp-l1-lr", "gamp-bg-lr", "onebit-cs")

# What a key of config.toml is about. Where results go and how busy the machine is does not belong there.
INFERENCE = ("permutations", "max_inclusion", "fdr", "learning_curve")
_SECTIONS = {
    "bids": ("bids_dir", "derivatives", "task", "space", "samples", "betas", "betas_glob"),
    "data": ("data_dir", "fetch", "participant_label", "mask", "bold", "labels", "phantom", "phantom_shape"),
    "processing": ("lag_trs", "smoothing_fwhm", "high_pass", "t_r", "confounds", "detrend", "standardize"),
    "study": ("pairs", "methods", "seed", "fold_maps"),
    "inference": INFERENCE,
}


@dataclass(frozen=True)
class StudySettings:
    """Everything that decides what comes out; None means the default of the door or of nilearn.

    ``mask`` is "vt", "brain" or a file. ``pairs`` are "a:b" texts or ("all",); None the paper's six.
    ``phantom_shape`` shrinks the phantom (for tests); None is Haxby's grid. With ``bids_dir`` the data are a
    participant of a BIDS dataset, and ``confounds`` names columns or sets of them instead of files.
    """

    bids_dir: str | None = None
    derivatives: str | None = None
    task: str | None = None
    space: str | None = None
    samples: str | None = None
    betas: str | None = None
    betas_glob: str | None = None
    data_dir: str | None = None
    fetch: bool = False
    participant_label: str | None = None
    mask: str | None = None
    bold: tuple[str, ...] | None = None
    labels: str | None = None
    phantom: bool = False
    phantom_shape: tuple[int, ...] | None = None
    lag_trs: int | None = None
    smoothing_fwhm: float | None = None
    high_pass: float | None = None
    t_r: float | None = None
    confounds: tuple[str, ...] | None = None
    detrend: bool = True
    standardize: bool = True
    pairs: tuple[str, ...] | None = None
    methods: tuple[str, ...] = DEFAULT_METHODS
    seed: int = 0
    fold_maps: bool = False
    permutations: int = 0
    max_inclusion: bool = False
    fdr: float | None = None
    learning_curve: bool = False

    @property
    def has_inference(self) -> bool:
        """Whether anything beyond the table is asked for."""
        return bool(self.permutations or self.fdr is not None or self.learning_curve)


def settings_text(settings: StudySettings) -> str:
    """config.toml: every setting that has a value, in sections."""
    lines = [f"# Settings of a study. Repeat it with: {_repeat(settings)}"]
    for section, names in _SECTIONS.items():
        values = {name: getattr(settings, name) for name in names}
        known = [f"{name} = {_toml(value)}" for name, value in values.items() if value is not None]
        lines += ["", f"[{section}]", *known] if known else []
    return "\n".join(lines) + "\n"


def _repeat(settings: StudySettings) -> str:
    """The command that runs these settings again."""
    if settings.bids_dir is None:
        return "python -m mvpa_gamp.haxby --config config.toml --out FOLDER"
    who = f" --participant-label {settings.participant_label}" if settings.participant_label else ""
    return f"python -m mvpa_gamp {settings.bids_dir} OUT participant{who} --config config.toml"


def _toml(value: Any) -> str:
    """A TOML value; JSON's strings, numbers and lists are valid TOML."""
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=True).replace("\x7f", "\\u007f")


def read_settings(path: Path) -> dict[str, Any]:
    """The settings of a config.toml, as keyword arguments of :class:`StudySettings`."""
    try:
        content = _load_toml(path)
    except OSError as error:
        raise StudyError(f"--config {path} cannot be read: {error.strerror}. Give a config.toml.") from error
    except ValueError as error:
        raise StudyError(
            f"--config {path} is not valid TOML: {error}. Correct it or write a new one."
        ) from error
    out: dict[str, Any] = {}
    for section, values in content.items():
        if section not in _SECTIONS or not isinstance(values, dict):
            raise StudyError(
                f"--config {path}: expected sections {', '.join(_SECTIONS)}, got {section!r}. Remove it."
            )
        for name, value in values.items():
            if name not in _SECTIONS[section]:
                known = ", ".join(_SECTIONS[section])
                raise StudyError(f"--config {path}: [{section}] has no setting {name!r}. Known are: {known}.")
            out[name] = _checked(path, name, tuple(value) if isinstance(value, list) else value)
    return out


_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,), "bool": (bool,), "int": (int,), "float": (int, float), "tuple": (tuple,),
}  # fmt: skip


def _checked(path: Path, name: str, value: Any) -> Any:
    """A value of the kind its setting has, or a sentence."""
    hint = next(field.type for field in fields(StudySettings) if field.name == name)
    declared = hint.__name__ if isinstance(hint, type) else str(hint)
    kind = declared.split("[")[0].split(" ")[0]
    right = isinstance(value, _KINDS[kind]) and (kind == "bool" or not isinstance(value, bool))
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
    return tomllib.loads(path.read_text(encoding="utf-8"))


def differences(old: dict[str, Any], new: StudySettings) -> list[str]:
    """Settings of a started study that a resume would change.

    Pairs and methods may only be added to; inference touches no fit and may change freely.
    """
    defaults = StudySettings()
    growing = ("methods",) if new.bids_dir else ("pairs", "methods")  # BIDS: pairs decide on the events read
    out = []
    for field in fields(StudySettings):
        if field.name in INFERENCE:
            continue
        before, after = old.get(field.name, getattr(defaults, field.name)), getattr(new, field.name)
        grows = field.name in growing and before and after and set(before) <= set(after)
        if before != after and not grows:
            out.append(f"{field.name} was {before!r}, now {after!r}")
    return out
