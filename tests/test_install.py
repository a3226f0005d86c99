"""Installed, used, installed again in the same environment, and imported from another folder."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.whole

ROOT = Path(__file__).resolve().parents[1]
COMPILED_FIT = """
import numpy as np
from mvpa_gamp.methods import METHODS
X = np.random.default_rng(0).standard_normal((20, 70_000)).astype(np.float32)
y = np.tile([1.0, -1.0], 10)
METHODS["gamp-bg-lr"].fit_folds(X, y, np.ones((20, 4), dtype=bool), np.arange(20) // 5)
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Runs Python in an environment of its own, which borrows this one's packages but for our own."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False)
    program = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    own = subprocess.run(
        [program, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    (Path(own) / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    variables |= {"XDG_CACHE_HOME": str(home / "cache"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    variables.pop("NUMBA_CACHE_DIR", None)

    def run(*options, cwd):
        done = subprocess.run([program, *options], env=variables, cwd=cwd, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    run.packages = Path(own)
    run.cache = home / "cache"
    return run


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy of what an installation needs: building leaves files beside the source."""
    copy = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "mvpa_gamp", copy / "mvpa_gamp", ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="borrows the packages of a virtual environment")
def test_an_editable_install_is_found_after_a_plain_one_was_used(python, source, tmp_path):
    pip = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index")
    python(*pip, str(source), cwd=tmp_path)
    python("-c", COMPILED_FIT, cwd=tmp_path)
    assert not list((python.packages / "mvpa_gamp").rglob("*.nb?"))
    assert list(python.cache.rglob("*.nbi"))  # kept for the next run, in the user's folder
    python(*pip, "--editable", str(source), cwd=tmp_path)
    where = python(
        "-c", "import mvpa_gamp; from mvpa_gamp import GAMPDecoder; print(mvpa_gamp.__file__)", cwd=tmp_path
    )
    assert Path(where).is_relative_to(source)
    assert not (python.packages / "mvpa_gamp").exists()
