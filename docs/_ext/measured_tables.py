"""A directive that shows columns of a measured table, so that no page copies a number.

```{measured} figures/benchmarks/memory.csv
:columns: name=Who, peak_mb=Peak above the data (MB)
:where: comparison=average
```
"""

import csv
import json
import re
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]


class MeasuredTable(SphinxDirective):
    """A CSV file of ``figures/`` as a table with two or three digits, and where it comes from."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {
        "columns": directives.unchanged_required,
        "where": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        """Read the file and build the table."""
        path = ROOT / self.arguments[0]
        self.env.note_dependency(str(path))
        columns = _pairs(self.options["columns"])
        wanted = _pairs(self.options.get("where", ""))
        with path.open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.DictReader(file) if all(row[k] == v for k, v in wanted.items())]
        if not rows:
            raise self.error(f"{self.arguments[0]} has no row with {wanted}")
        table = _table([list(columns.values()), *([shown(row[name]) for name in columns] for row in rows)])
        source = nodes.paragraph("", "", classes=["source"])
        source += [nodes.Text("Measured: "), nodes.literal("", self.arguments[0]), nodes.Text(_origin(path))]
        return [table, source]


def shown(cell: str) -> str:
    """A number with three significant digits at most, a whole one with all; other cells as they are."""
    if cell.isdecimal():
        return f"{int(cell):,}"
    try:
        value = float(cell)
    except ValueError:
        return cell or "–"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"


def _pairs(text: str) -> dict[str, str]:
    parts = re.split(r",(?=\s*\w+=)", text.strip())  # a value may hold commas
    return dict(part.strip().split("=", 1) for part in parts if part.strip())


def _origin(path: Path) -> str:
    """Where the record beside the table says that it comes from."""
    record = path.with_suffix(".json")
    about = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
    made = {**about.get("machine", {}), **about.get("provenance", {})}
    told = [made["command"]] if "command" in made else []
    if made.get("commit"):
        told += [f"commit {made['commit'][:7]}, {made['cores']} cores, {made['cpu']}"]
    return f" ({'; '.join(told)})." if told else "."


def _table(rows: list[list[str]]) -> nodes.table:
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in rows[0]), cols=len(rows[0]))
    head, body = nodes.thead(), nodes.tbody()
    for number, row in enumerate(rows):
        line = nodes.row("", *(_cell(cell) for cell in row))
        (body if number else head).append(line)
    group += [head, body]
    return nodes.table("", group, classes=["measured"])


def _cell(text: str) -> nodes.entry:
    is_number = text == "–" or text.replace(",", "").replace(".", "").lstrip("-").isdigit()
    return nodes.entry("", nodes.paragraph("", text), classes=["number"] if is_number else [])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("measured", MeasuredTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
