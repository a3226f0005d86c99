"""A likelihood and a prior of a contributor: their file, their lines in the registry, and nothing else.

The models of tests/gamp/new_models are added to a copy of the package as docs/extending.md says, beside
mutants with a fault each. The checks of the registry must pass for the models and fail for every mutant.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.whole

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MODELS = HERE / "new_models"
MUTANTS = ("NeverLearns", "FirstColumn", "FirstColumnLearns", "UnitSlopes", "HalfWay", "FirstScale")

SHAPE = """

def _cauchit(scale: Any) -> Shape:
    def at(g: Any) -> tuple:
        c = g / scale
        tail = mp.atan2(1, abs(c)) / mp.pi
        p, q = (tail, 1 - tail) if c < 0 else (1 - tail, tail)
        m = 1 / (mp.pi * (1 + c**2)) / p
        return p, q, m / scale, m * (m + 2 * c / (1 + c**2)) / scale**2

    return Shape(at, 0, scale)


from mvpa_gamp.gamp import Cauchit

SHAPES[Cauchit] = lambda likelihood: _cauchit(mp.mpf(likelihood.scale))
"""
REFERENCE = """

from mvpa_gamp.gamp.priors.two_scales import SHARES, VARIANCES, TwoScales

REFERENCES[TwoScales] = gaussians(
    lambda slab: [(share, 0.0, slab.scale**2 * v) for share, v in zip(SHARES, VARIANCES, strict=True)]
)
"""


def register(registry: Path, kind: str, imports: str, entries: str) -> None:
    """The lines of a new model in the file of its registry."""
    text = registry.read_text(encoding="utf-8")
    first = text.index("from mvpa_gamp")
    text = text[:first] + imports + text[first:]
    end = text.index("}\n", text.index(f"{kind}: dict"))
    registry.write_text(text[:end] + entries + text[end:], encoding="utf-8")


@pytest.fixture(scope="module")
def extended(tmp_path_factory) -> Path:
    """A copy of package and tests with the new models in it."""
    root = tmp_path_factory.mktemp("extended")
    ignored = shutil.ignore_patterns("__pycache__", "*.nii.gz")
    shutil.copytree(ROOT / "mvpa_gamp", root / "mvpa_gamp", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", root)
    for part in ("likelihoods", "priors"):
        shutil.copytree(HERE / part, root / "tests" / part, ignore=ignored)
    shutil.copy(MODELS / "fits.py", root / "tests" / "test_fits.py")
    engine = root / "mvpa_gamp" / "gamp"
    for file, folder in (("cauchit", "likelihoods"), ("mutants", "likelihoods"), ("two_scales", "priors")):
        shutil.copy(MODELS / f"{file}.py", engine / folder)
    shutil.copy(MODELS / "prior_mutants.py", engine / "priors")
    package = "from mvpa_gamp.gamp."
    register(
        engine / "likelihoods" / "registry.py",
        "LIKELIHOODS",
        f"{package}likelihoods.cauchit import Cauchit\n"
        f"{package}likelihoods.mutants import LIKELIHOOD_MUTANTS\n",
        '    "cauchit": Cauchit,\n    **{mutant.__name__: mutant for mutant in LIKELIHOOD_MUTANTS},\n',
    )
    register(
        engine / "priors" / "registry.py",
        "PRIORS",
        f"{package}priors.prior_mutants import PRIOR_MUTANTS\n{package}priors.two_scales import TwoScales\n",
        '    "two-scales": TwoScales,\n'
        '    "bernoulli-two-scales": lambda: Bernoulli(0.1, TwoScales()),\n'
        "    **{mutant.__name__: mutant for mutant in PRIOR_MUTANTS},\n",
    )
    for part, lines in (("likelihoods", SHAPE), ("priors", REFERENCE)):
        with (root / "tests" / part / "conftest.py").open("a", encoding="utf-8") as file:
            file.write(lines)
    return root


@pytest.fixture(scope="module")
def outcome(extended) -> dict[str, list[str]]:
    """Identifiers of the tests that passed and failed; of mutants only the tests that are quick."""
    chosen = (
        f"cauchit or scales or fits or (({' or '.join(MUTANTS)}) and not (quadrature or extremes or robust))"
    )
    command = [sys.executable, "-m", "pytest", "-n", "0", "-rA", "--tb=no", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-k", chosen, "tests"],
        cwd=extended,
        env={**os.environ, "PYTHONPATH": str(extended), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    found = {
        word: re.findall(rf"^{word} (\S.*)$", done.stdout, re.M) for word in ("PASSED", "FAILED", "ERROR")
    }
    assert found["PASSED"] and not found["ERROR"], done.stdout + done.stderr
    return found


def test_a_file_and_its_lines_in_the_registry_are_enough(outcome):
    failed = [name for name in outcome["FAILED"] if not any(mutant in name for mutant in MUTANTS)]
    assert not failed
    passed = "\n".join(outcome["PASSED"])
    for name in ("test_agrees_with_quadrature[cauchit]", "test_moments_match_quadrature[two-scales]"):
        assert name in passed
    assert passed.count("cauchit") > 40 and passed.count("scales") > 25 and passed.count("test_fits") == 5


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_checks_of_the_registry_find_a_fault(mutant, outcome):
    assert any(re.search(rf"\b{mutant}\b", name) for name in outcome["FAILED"])
