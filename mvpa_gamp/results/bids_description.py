"""What makes a results folder a BIDS derivative: description, README, and what BIDS has no names for."""

import hashlib
from collections.abc import Mapping
from typing import Any

from mvpa_gamp._version import __version__
from mvpa_gamp.imaging.disk import edited, note
from mvpa_gamp.methods.references import ZINIEL_2015
from mvpa_gamp.results.files import json_text, write_json, write_text
from mvpa_gamp.results.names import ResultsFolder

_NAME = "mvpa_gamp decoding results"
# BIDS has masks, segmentations and mean images, but none of a contrast, of a classifier, or of a group. The
# folders of participants are derivatives of their own.
_UNNAMED = """\
# Files that BIDS has no names for yet: maps of classifiers, their tables, figures and pages.
*.html
*.toml
figures
logs
work
group*
cobidas_multivariate.tsv
summary.*
timings.tsv
sub-*
"""
_README = """\
# {name}

Written by mvpa_gamp {version}. Start with index.html. Maps and tables of a participant begin with sub-; JSON
files beside maps say how they were made. config.toml has the settings, logs/ the versions of all software.
"""


def write_description(
    folder: ResultsFolder, banner: str | None, links: Mapping[str, str] | None = None
) -> None:
    """Write dataset_description.json unless it was edited, .bidsignore, and a README where there is none."""
    if not edited(folder.root, folder.description.name):
        write_json(folder.description, description(banner, links))
    else:  # the manifest has what a run writes, so that the difference can be told
        text = json_text(description(banner, links))
        note(folder.description, hashlib.sha256(text.encode()).hexdigest())
    write_text(folder.ignored, f"# {banner}\n{_UNNAMED}" if banner else _UNNAMED)
    if not folder.readme.exists():
        name = description(banner)["Name"]
        write_text(folder.readme, _README.format(name=name, version=__version__))


def description(banner: str | None, links: Mapping[str, str] | None = None) -> dict[str, Any]:
    """BIDS's dataset_description.json of a derivative; ``banner`` is the phantom's.

    ``links`` say which datasets the BIDS URIs of sidecars name.
    """
    out: dict[str, Any] = {
        "Name": f"PHANTOM (simulated): {_NAME}" if banner else _NAME,
        "BIDSVersion": "1.9.0",
        "DatasetType": "derivative",
        "GeneratedBy": [{"Name": "mvpa_gamp", "Version": __version__}],
        "HowToAcknowledge": ZINIEL_2015,
    }
    if links:
        out |= {"DatasetLinks": dict(links), "SourceDatasets": [{"URL": url} for url in links.values()]}
    return {"Phantom": banner, **out} if banner else out
