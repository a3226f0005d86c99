"""Settings of the documentation.

python -m sphinx -W --keep-going -n -b html docs docs/_build/html
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "_ext"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import mvpa_gamp

project = "mvpa_gamp"
author = copyright = "the mvpa_gamp authors"
release = mvpa_gamp.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "api_pages",
    "measured_tables",
    "notebook_links",
    "plain_docstrings",
    "source_lines",
]
exclude_patterns = ["_build", "examples", "notebooks"]

myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3

# Docstrings give shapes; most hints are Any or arrays.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = False
python_maximum_signature_line_length = 90
viewcode_line_numbers = True
# Types of other packages have no page here, and a build needs no network.
nitpick_ignore_regex = [(r"py:.*", r"(?!mvpa_gamp).*")]

html_theme = "furo"
html_title = f"mvpa_gamp {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
linkcheck_timeout = 20

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "capture_repr": (),
    "reset_modules": ("matplotlib",),
    "doc_module": ("mvpa_gamp",),
    "reference_url": {"mvpa_gamp": None},
    "remove_config_comments": True,
    "show_signature": False,
    "min_reported_time": 1e6,
    "write_computation_times": False,
    "download_all_examples": False,
}
