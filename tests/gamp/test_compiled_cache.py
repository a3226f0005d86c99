"""Compiled loops live in the user's cache folder; where there is none, they are compiled without a word."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mvpa_gamp

pytestmark = pytest.mark.whole

PACKAGE = Path(mvpa_gamp.__file__).parent
FIT = """
import sys, warnings
import numpy as np
warnings.simplefilter("error")
from mvpa_gamp.gamp.likelihoods import logistic_integral
loop = logistic_integral.compiled_kernels().prox
out = np.empty(3)
loop(np.zeros(3), np.ones(3), out)
assert np.allclose(out, 1 / (1 + np.exp(out))), out
from numba import config
assert config.CACHE_DIR == ""  # other packages keep their loops where they did
print(sum(loop.stats.cache_hits.values()), sum(loop.stats.cache_misses.values()))
"""


def compiled_files(folder):
    return sorted(path for ending in ("*.nbi", "*.nbc") for path in Path(folder).rglob(ending))


def run(**changes):
    """(cache hits, misses) of a new process that compiles one loop, with warnings as errors."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    environment = {**kept, "PYTHONPATH": str(PACKAGE.parent), **changes}
    done = subprocess.run([sys.executable, "-c", FIT], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return tuple(int(number) for number in done.stdout.split())


@pytest.fixture(autouse=True)
def _numba():
    pytest.importorskip("numba")


def test_loops_are_kept_in_the_users_cache_folder_and_found_again(tmp_path):
    before = compiled_files(PACKAGE)
    hits, misses = run(XDG_CACHE_HOME=str(tmp_path))
    assert (hits, misses) == (0, 1)
    files = compiled_files(tmp_path)
    assert {path.suffix for path in files} == {".nbi", ".nbc"}
    assert {path.parent for path in files} == {tmp_path / "mvpa_gamp" / "numba" / mvpa_gamp.__version__}
    assert compiled_files(PACKAGE) == before
    assert run(XDG_CACHE_HOME=str(tmp_path)) == (1, 0)


def test_without_the_variable_it_is_the_home_folder(tmp_path):
    run(XDG_CACHE_HOME="", HOME=str(tmp_path))
    assert compiled_files(tmp_path / ".cache" / "mvpa_gamp" / "numba")


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    before = compiled_files(PACKAGE)
    (tmp_path / "file").write_text("no folder")
    assert run(XDG_CACHE_HOME=str(tmp_path / "file"))[0] == 0
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)  # root may write all the same, others may not
    assert run(XDG_CACHE_HOME=str(locked))[0] == 0
    assert compiled_files(PACKAGE) == before


def test_a_damaged_file_is_compiled_again(tmp_path):
    run(XDG_CACHE_HOME=str(tmp_path))
    for path in compiled_files(tmp_path):
        path.write_bytes(b"damaged")
    assert run(XDG_CACHE_HOME=str(tmp_path)) == (0, 1)
    assert run(XDG_CACHE_HOME=str(tmp_path)) == (1, 0)
