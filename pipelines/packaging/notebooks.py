"""Notebooks made from the examples of the documentation."""

import json
from pathlib import Path

from pipelines.packaging.conda_recipe import ROOT

EXAMPLES = {"tutorial": "plot_1_tutorial", "maps": "plot_2_maps", "inference": "plot_4_inference"}
FOLDER = ROOT / "docs" / "notebooks"
_FIRST = "# Needs the package: in a clone of its repository, pip install .\n%matplotlib inline"


def notebooks() -> dict[Path, str]:
    """Every notebook with its text; needs sphinx-gallery, which comes with the extra "docs"."""
    from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
    from sphinx_gallery.notebook import jupyter_notebook
    from sphinx_gallery.py_source_parser import split_code_and_text_blocks

    settings = {**DEFAULT_GALLERY_CONF, "first_notebook_cell": _FIRST, "notebook_images": False}
    texts = {}
    for name, example in EXAMPLES.items():
        source = ROOT / "docs" / "examples" / f"{example}.py"
        _, parts = split_code_and_text_blocks(str(source))
        made = jupyter_notebook(parts, settings, str(FOLDER))
        made["metadata"]["language_info"].pop("version", None)  # of the Python that made it
        texts[FOLDER / f"{name}.ipynb"] = json.dumps(made, indent=1, ensure_ascii=False) + "\n"
    return texts
