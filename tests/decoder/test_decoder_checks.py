"""nilearn's own estimator checks, as far as they apply."""

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nibabel
import numpy as np
import pytest

from mvpa_gamp import GAMPDecoder

pytestmark = pytest.mark.whole

ROOT = Path(__file__).resolve().parents[2]

# Checks of nilearn that GAMPDecoder does not have to meet, and why.
NOT_OURS = {
    "check_tags": "compares with tags of scikit-learn before 1.6",
    "check_doc_link": "asks for a page on nilearn's site",
    "check_img_estimator_standardization": "wants predictions to depend on standardization; nilearn excuses "
    "its own Decoder, and on these separable images they do not",
    "check_decoder_estimator_args": "there is no embedded scikit-learn estimator",
    "check_decoder_screening_n_features": "voxels are not screened, which a warning says",
}

# In a process of its own: the module imports nilearn's tests, whose markers this project does not know, and
# two packages that only checks of other estimators (polars) and of docstrings (numpydoc) need.
RUN = """
import json, sys, warnings
from types import ModuleType
missing = []
for name in ("polars", "numpydoc", "numpydoc.docscrape"):
    try:
        __import__(name)
    except ImportError:
        missing.append(name)
        sys.modules[name] = ModuleType(name)
if "numpydoc" in missing:
    sys.modules["numpydoc.docscrape"].NumpyDocString = None
from nilearn._utils.estimator_checks import nilearn_check_generator
from mvpa_gamp import GAMPDecoder
for name in missing:
    del sys.modules[name]  # scikit-learn looks there for data frames
outcome = {}
for estimator, check in nilearn_check_generator(GAMPDecoder(cv=2)):
    if check.__name__ == "check_doc_attributes" and "numpydoc" in missing:
        continue
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check(estimator)
        outcome[check.__name__] = ""
    except BaseException as error:
        outcome[check.__name__] = f"{type(error).__name__}: {error}"
print("OUTCOME" + json.dumps(outcome))
"""


@pytest.mark.slow
def test_nilearns_checks(tmp_path):
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    alone = {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # tiny images
    done = subprocess.run(
        [sys.executable, "-c", RUN], env=os.environ | alone, cwd=tmp_path,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if "ModuleNotFoundError" in done.stderr and "nilearn" in done.stderr.splitlines()[-1]:
        pytest.skip("nilearn has moved its checks")  # they are private
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout.split("OUTCOME")[-1])
    failed = {name: error for name, error in outcome.items() if error and name not in NOT_OURS}
    assert not failed, json.dumps(failed, indent=1)
    assert sum(not error for error in outcome.values()) >= 25


def test_an_empty_image_is_called_empty():
    with pytest.raises(ValueError, match="empty"):
        GAMPDecoder().fit(nibabel.Nifti1Image(np.zeros((64, 64, 0)), np.eye(4)), [0, 1])


def test_parameters_and_attributes_are_documented_in_order():
    """What nilearn's check_doc_attributes asks for, without numpydoc."""
    doc = inspect.getdoc(GAMPDecoder)
    parameters, attributes = re.split(r"\nAttributes\n-+\n", doc.split("Parameters\n----------\n")[1])
    named = re.findall(r"^(\w+) : ", parameters, flags=re.MULTILINE)
    assert named == list(inspect.signature(GAMPDecoder).parameters)
    fitted = re.findall(r"^(\w+_) : ", attributes, flags=re.MULTILINE)
    image = nibabel.Nifti1Image(np.random.default_rng(0).standard_normal((3, 3, 3, 12)), np.eye(4))
    mask = nibabel.Nifti1Image(np.ones((3, 3, 3), dtype=np.uint8), np.eye(4))
    decoder = GAMPDecoder(mask=mask, cv=3).fit(image, [0, 1] * 6)
    there = [name for name in vars(decoder) if name.endswith("_") and not name.startswith("_")]
    assert fitted == sorted(there)
