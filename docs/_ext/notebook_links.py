"""``{notebooks}``: the notebooks with links that download them and, on a published site, open them.

The site knows its repository when a workflow builds it (GITHUB_REPOSITORY); elsewhere only downloads.
"""

import json
import os
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"


def title(notebook: Path) -> str:
    """The first heading of a notebook."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    text = next("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return next(line.lstrip("# ") for line in text.splitlines() if line.startswith("#"))


def links(notebook: Path, repository: str | None) -> list[tuple[str, str]]:
    """Words and target of every way to open a notebook."""
    if not repository:
        return []
    at = f"{repository}/blob/main/docs/notebooks/{notebook.name}"
    return [
        ("Colab", f"https://colab.research.google.com/github/{at}"),
        ("nbviewer", f"https://nbviewer.org/github/{at}"),
        ("Binder", f"https://mybinder.org/v2/gh/{repository}/main?labpath=docs/notebooks/{notebook.name}"),
    ]


class Notebooks(SphinxDirective):
    """One line per notebook."""

    def run(self) -> list[nodes.Node]:
        """A list of titles, each with its links."""
        repository = os.environ.get("GITHUB_REPOSITORY")
        lines = [
            f"- {{download}}`{title(path)} <notebooks/{path.name}>`"
            + "".join(f", [open in {words}]({target})" for words, target in links(path, repository))
            for path in sorted(FOLDER.glob("*.ipynb"))
        ]
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("notebooks", Notebooks)
    return {"parallel_read_safe": True}
