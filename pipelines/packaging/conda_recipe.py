"""The conda recipe (rattler-build, schema 1), made from pyproject.toml."""

import re
import sys
from pathlib import Path
from typing import Any

from mvpa_gamp import __version__

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
CONDA_NAMES = {"matplotlib": "matplotlib-base"}  # the others are called the same on conda-forge

_RECIPE = """\
# Made by python -m pipelines.packaging. For conda-forge, source has url and sha256 of the released archive.
schema_version: 1

context:
  version: "{version}"

package:
  name: mvpa-gamp
  version: ${{{{ version }}}}

source:
  path: ../..

build:
  number: 0
  noarch: python
  script: python -m pip install . --no-deps --no-build-isolation -vv
  python:
    entry_points:
{scripts}

requirements:
  host:
    - python {python}.*
    - pip
{host}
  run:
    - python >={python}
{run}

tests:
  - python:
      imports:
        - mvpa_gamp
        - mvpa_gamp.gamp
        - mvpa_gamp.methods
      python_version: {python}.*
  - script:
      - mvpa-gamp --version
      - mvpa-gamp decode --phantom --phantom-shape 9 11 9 --pairs face:house --methods svm --out results

about:
  license: MIT
  license_file: LICENSE
  summary: {summary}
"""


def recipe() -> str:
    """The recipe; requirements of old Pythons are in it for all, because noarch packages have no markers."""
    settings = pyproject()
    project = settings["project"]
    return _RECIPE.format(
        version=__version__,
        python=project["requires-python"].removeprefix(">="),
        scripts=_lines(f"{name} = {target}" for name, target in project["scripts"].items()),
        host=_lines(map(conda_name, settings["build-system"]["requires"])),
        run=_lines(map(conda_name, project["dependencies"])),
        summary=project["description"],
    )


def pyproject() -> dict[str, Any]:
    """What is declared there."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def lowest() -> list[str]:
    """The dependencies at their lower bounds, as pip takes them: numpy==1.26.*, scipy==1.11.1."""
    bounds = [_split(requirement) for requirement in pyproject()["project"]["dependencies"]]
    return [f"{name}=={bound}" + ".*" * (bound.count(".") < 2) for name, bound in bounds]


def conda_name(requirement: str) -> str:
    """``numpy>=1.26`` as conda writes it."""
    name, bound = _split(requirement)
    return f"{CONDA_NAMES.get(name, name)} >={bound}"


def _split(requirement: str) -> tuple[str, str]:
    """Name and lower bound of a requirement."""
    parts = re.match(r"([\w.-]+)>=([\w.]+)", requirement)
    if parts is None:
        raise ValueError(f"{requirement}: expected a lower bound, name>=version.")
    return parts[1], parts[2]


def _lines(items: Any) -> str:
    """A YAML list."""
    return "\n".join(f"    - {item}" for item in items)
