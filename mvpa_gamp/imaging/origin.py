"""Where results come from, in the words of BIDS: sources, spatial reference, and who prepared the volumes."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DESCRIPTION = "dataset_description.json"


@dataclass(frozen=True)
class Origin:
    """What sidecars say of where a map comes from.

    ``sources`` are URIs: ``bids:<name>:<path in that dataset>`` where ``links`` say which dataset a name
    means, else ``file:``. ``made_by`` are the programs that prepared the volumes (``Name``, ``Version``).
    """

    sources: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    spatial_reference: str = ""
    made_by: tuple[Mapping[str, str], ...] = ()

    def sidecar(self) -> dict[str, Any]:
        """The part of a sidecar that is known."""
        known = {"Sources": list(self.sources), "SpatialReference": self.spatial_reference}
        return {name: value for name, value in known.items() if value}

    @property
    def software(self) -> dict[str, str]:
        """Version by name of the programs that prepared the volumes."""
        return {each["Name"]: each.get("Version", "unknown") for each in self.made_by}


def origin_of_files(files: Iterable[Any]) -> Origin:
    """The origin of volumes that are no BIDS dataset: their files, where they are files."""
    paths = [Path(str(file)) for file in files]
    return Origin(tuple(path.absolute().as_uri() for path in paths if path.is_file()))


def bids_uri(path: Path, datasets: Mapping[str, Path]) -> str:
    """``bids:<name>:<path>`` in the innermost of some datasets that holds a file, else its ``file:`` URI."""
    holding = {name: root for name, root in datasets.items() if path.is_relative_to(root)}
    if not holding:
        return path.absolute().as_uri()
    name = max(holding, key=lambda name: len(holding[name].parts))
    return f"bids:{name}:{path.relative_to(holding[name]).as_posix()}"


def generated_by(dataset: Path) -> tuple[dict[str, str], ...]:
    """The programs that a derivative dataset names, with versions; nothing where it does not say.

    Datasets of BIDS before 1.4 name one as ``PipelineDescription``.
    """
    try:
        about = json.loads((dataset / DESCRIPTION).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return ()
    if not isinstance(about, dict):
        return ()
    named = about.get("GeneratedBy") or about.get("PipelineDescription") or ()
    each = named if isinstance(named, list) else [named]
    return tuple(
        {key: str(one[key]) for key in ("Name", "Version") if one.get(key)}
        for one in each
        if isinstance(one, dict) and one.get("Name")
    )
