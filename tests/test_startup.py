"""Importing the package and asking for help must not wait for heavy libraries."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAVY = {"numpy", "scipy", "sklearn", "nibabel", "nilearn", "pandas", "matplotlib", "numba", "joblib", "tqdm"}
_TELL = "import sys, json; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"


def loaded(code: str) -> set[str]:
    """Top-level names of the modules in a fresh process after running ``code``."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{_TELL}"],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_package_loads_nothing_heavy():
    assert not loaded("import mvpa_gamp") & HEAVY


@pytest.mark.parametrize("command", ["mvpa_gamp.haxby", "mvpa_gamp.__main__"])
@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_loads_nothing_heavy(option, command):
    ask = f"""
import contextlib, io
from {command} import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main([{option!r}])
"""
    assert not loaded(ask) & HEAVY


def test_the_methods_need_numpy_and_scipy_only():
    """Neither the methods nor the engine load what only images, figures or compiled code need."""
    assert loaded("from mvpa_gamp.methods import METHODS") & HEAVY <= {"numpy", "scipy"}


def test_the_estimator_comes_on_first_use():
    code = "from mvpa_gamp import GAMPClassifier; assert GAMPClassifier().prior"
    assert loaded(code) & {"nilearn", "nibabel", "matplotlib"} == set()


def test_an_unknown_name_is_an_attribute_error():
    import mvpa_gamp

    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = mvpa_gamp.Nothing
