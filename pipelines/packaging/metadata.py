"""Files about the project that other services read; all take the version from ``mvpa_gamp._version``."""

import json
import re
from pathlib import Path
from typing import Any

from mvpa_gamp import __version__
from pipelines.packaging.boutiques import descriptor
from pipelines.packaging.conda_recipe import ROOT, recipe

PAPER = "10.1109/TSP.2015.2407311"
_ABOUT = (
    "Decode fMRI and find the voxels that matter, with generalized approximate message passing (GAMP): "
    "cross-validated accuracies, brain maps, consistency, significance tests and a report page."
)
_KEYWORDS = ["fMRI", "MVPA", "decoding", "feature selection", "approximate message passing", "BIDS App"]
_AUTHORS = "The mvpa_gamp authors"


def codemeta() -> dict[str, Any]:
    """Software metadata in the vocabulary of CodeMeta 3."""
    return {
        "@context": "https://w3id.org/codemeta/3.0",
        "type": "SoftwareSourceCode",
        "name": "mvpa_gamp",
        "version": __version__,
        "description": _ABOUT,
        "license": "https://spdx.org/licenses/MIT",
        "programmingLanguage": "Python",
        "runtimePlatform": "Python 3.10 or later",
        "operatingSystem": ["Linux", "macOS", "Windows"],
        "developmentStatus": "active",
        "applicationCategory": "neuroimaging",
        "keywords": _KEYWORDS,
        "author": [{"type": "Organization", "name": _AUTHORS}],
        "referencePublication": {"type": "ScholarlyArticle", "id": f"https://doi.org/{PAPER}"},
    }


def zenodo() -> dict[str, Any]:
    """Metadata of the archive that Zenodo makes of a release."""
    return {
        "title": "mvpa_gamp",
        "version": __version__,
        "upload_type": "software",
        "description": _ABOUT,
        "license": "MIT",
        "creators": [{"name": _AUTHORS}],
        "keywords": _KEYWORDS,
        "related_identifiers": [{"identifier": PAPER, "relation": "isDocumentedBy", "scheme": "doi"}],
    }


def citation(text: str) -> str:
    """CITATION.cff with the version of the package."""
    return re.sub(r"^version: .*$", f'version: "{__version__}"', text, flags=re.M)


def files() -> dict[Path, str]:
    """Every generated file with its text."""
    cff = ROOT / "CITATION.cff"
    made = {"codemeta.json": codemeta(), ".zenodo.json": zenodo()}
    made["pipelines/packaging/boutiques.json"] = descriptor()
    texts = {ROOT / name: json.dumps(content, indent=2) + "\n" for name, content in made.items()}
    texts[ROOT / "pipelines/packaging/recipe.yaml"] = recipe()
    return {**texts, cff: citation(cff.read_text(encoding="utf-8"))}
