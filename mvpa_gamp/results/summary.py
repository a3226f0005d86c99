"""summary.json: what a study was, did and found besides its tables; written and read as one record."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from mvpa_gamp._version import __version__
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.results.damaged import ResultsError, reading
from mvpa_gamp.results.files import read_json

Part = Mapping[str, Any]
_FACTS = ("name", "label", "description", "reference", "short_reference", "intercept", "is_batched")
# Parts that the file has only where they were asked for.
_BEYOND = (
    "pattern_clusters", "inference", "information", "regions", "classes", "cross", "members",
    "fold_confounds", "people",
)  # fmt: skip


@dataclass(frozen=True)
class About:
    """What a study says about itself in summary.json, besides its cells.

    ``data`` has source, description, n_samples, n_voxels, n_runs, unit, space, categories, notes and
    provenance; ``processing`` the steps from volumes to samples.
    """

    data: Part
    processing: Part
    seed: int | None
    fold_maps: bool = False
    cross_validation: str = "Cross-validation leaves one run out at a time."
    held_out: str = "run"  # what a fold holds out: a run, a group, or just a fold
    settings: Mapping[str, str] = field(default_factory=dict)  # where there is no config.toml


@dataclass(frozen=True, kw_only=True)
class Summary(About):
    """All of summary.json; what was not asked for is empty.

    ``tasks`` are the comparisons, ``methods`` the facts of each method, ``maps`` the kinds of map by cell
    (``sub-<id>/<contrast>/<method>``), ``rows`` the headline table once more.
    """

    phantom: bool
    banner: str | None
    subjects: Sequence[str]
    tasks: Sequence[Part]
    methods: Sequence[Part]
    maps: Mapping[str, Sequence[str]]
    rows: Sequence[Part]
    pattern_clusters: int = 0
    inference: Part = field(default_factory=dict)
    information: Part = field(default_factory=dict)
    regions: Part = field(default_factory=dict)
    classes: Part = field(default_factory=dict)
    cross: Part = field(default_factory=dict)
    members: Sequence[Part] = ()
    fold_confounds: Part = field(default_factory=dict)
    people: Sequence[Part] = ()
    leakage: Part = field(default_factory=dict)
    version: str = __version__

    @cached_property
    def labels(self) -> dict[str, str]:
        """Method name to the label of tables."""
        return {method["name"]: method["label"] for method in self.methods}

    def as_json(self) -> dict[str, Any]:
        """The content of the file."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        kept = {name: value for name, value in own.items() if value or name not in _BEYOND}
        return {"package": "mvpa_gamp", "selected_maps": True, **kept, "summary": kept.pop("rows")}


def method_facts(method: Method) -> dict[str, Any]:
    """What summary.json says about a method."""
    return {**{name: getattr(method, name) for name in _FACTS}, "settings": repr(method)}


def read_summary(path: Path) -> Summary:
    """The record of a finished folder; one of another version is refused."""
    content = read_json(path)
    with reading(path, "the summary of a study"):
        version = content["version"]
    if version != __version__:
        raise ResultsError(
            f"{path.parent} was written by mvpa_gamp {version}, this is {__version__}. Read it with that "
            "version, or write it again: the command of its run with --overwrite."
        )
    with reading(path, "the summary of a study"):
        known = {**content, "rows": content["summary"]}
        needed = [each.name for each in fields(Summary) if each.default is each.default_factory is MISSING]
        lost = [name for name in needed if name not in known]
        if lost:
            raise KeyError(lost[0])
        return Summary(**{each.name: known[each.name] for each in fields(Summary) if each.name in known})
