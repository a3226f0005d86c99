"""Whether every number in the tables of README and docs is that of a measured file.

A table is checked by a comment above it, which readers do not see:

    <!-- measured: figures/all_pairs/all_pairs_slice.csv
    where: noise=as measured
    cells: | 100 - error_percent | voxels | error_percent; error_se_percent
    row: method=svm
    row: method=lda => | 100 - error_percent | | error_percent@noise=whitened; 1.5
    -->

``cells`` has a place for each column of the table, and in it an expression for each number of the cell, with
``;`` between. An expression is arithmetic on columns of the file (``~`` in front: within 2 %); ``@`` chooses
another row for it, and ``file=`` in any choice another file. A number instead of a column is one that was not
measured, such as one of the paper. Each line ``row`` chooses the file's row for the table's next row, and may
have cells of its own behind ``=>``. A number agrees if it is the value rounded to the digits shown. Where the
file has no value, the cell must have no number. In a JSON record, columns are its own numbers.

    <!-- said: figures/x/x.csv
    8.4: error_percent@method=gamp-sbg-lr
    -->

checks numbers of the paragraph above it. ``<!-- not measured: reason -->`` stands above tables whose numbers
are no measurements. Directives ``{measured}`` copy their numbers; only the record of their file is checked.
"""

import ast
import csv
import json
import math
import operator
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
_CLOSE = 0.02  # of numbers shown with few digits
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
_UNIT = re.compile(r"\d\.\d|\d\s?%|\d (?:s|ms|seconds?|minutes?|hours?|MB|GB|points?)\b")
_COMMENT = re.compile(r"<!-- (measured|said|not measured): (.*?)-->", re.DOTALL)
_DIRECTIVE = re.compile(r"^```\{measured\} (\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^(```|~~~).*?^\1$", re.DOTALL | re.MULTILINE)
_TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
_OPERATORS: dict[type, Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
Row = Mapping[str, Any]


class Problem(NamedTuple):
    """Where a page says something that no file holds."""

    page: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.what}"


def problems(page: Path, root: Path = ROOT) -> list[Problem]:
    """Everything on a page that no measured file holds, in order."""
    text = page.read_text(encoding="utf-8")
    hidden = _FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    found = []
    for at, what in [*_of_tables(hidden, root), *_of_paragraphs(hidden, root), *_of_directives(text, root)]:
        found.append(Problem(page.name, 1 + text.count("\n", 0, at), what))
    return sorted(found, key=lambda problem: problem.line)


def _of_tables(text: str, root: Path) -> Iterator[tuple[int, str]]:
    for table in _TABLE.finditer(text):
        comment = _above(text, table.start())
        if comment is None:
            if _UNIT.search(_plain(table[0])):
                yield table.start(), "a table with numbers and no comment that names their file"
        elif comment[1] == "measured":
            for what in table_problems(table[0], comment[2], root):
                yield table.start(), what


def _of_paragraphs(text: str, root: Path) -> Iterator[tuple[int, str]]:
    for comment in _COMMENT.finditer(text):
        if comment[1] == "said":
            paragraph = text[: comment.start()].rstrip().rpartition("\n\n")[2]
            for what in said_problems(paragraph, comment[2], root):
                yield comment.start(), what


def _of_directives(text: str, root: Path) -> Iterator[tuple[int, str]]:
    for directive in _DIRECTIVE.finditer(text):
        for what in record_problems(root, directive[1]):
            yield directive.start(), what


def _above(text: str, at: int) -> re.Match[str] | None:
    """The comment that ends right above a place, if there is one."""
    before = text[:at].rstrip()
    last = before.rfind("<!-- ")
    found = _COMMENT.match(before, last) if last >= 0 else None
    return found if found and found.end() == len(before) else None


def table_problems(table: str, comment: str, root: Path) -> Iterator[str]:
    """What a table says that its files do not."""
    first, *lines = comment.strip().splitlines()
    told = [line.strip().partition(": ") for line in lines]
    shared = next((value for key, _, value in told if key == "where"), "")
    usual = next((value for key, _, value in told if key == "cells"), "")
    chosen = [value.partition("=>") for key, _, value in told if key == "row"]
    body = table.splitlines()[2:]
    if len(chosen) != len(body):
        yield f"{len(body)} rows, but the comment has {len(chosen)}"
        return
    for line, (where, _, own) in zip(body, chosen, strict=True):
        choice = {"file": first.strip(), **_choice(shared), **_choice(where)}
        cells, specs = _cells(line), _cells(own.strip() or usual)
        if len(cells) != len(specs):
            yield f"{cells[0]}: {len(cells)} cells, but the comment has {len(specs)}"
            continue
        for number, (cell, spec) in enumerate(zip(cells, specs, strict=True)):
            for what in cell_problems(cell, spec, choice, root, is_name=number == 0):
                yield f"{cells[0]} | {cell}: {what}"


def said_problems(paragraph: str, comment: str, root: Path) -> Iterator[str]:
    """Numbers that a paragraph does not say, or that its file does not hold."""
    first, *lines = comment.strip().splitlines()
    written = _numbers(paragraph)
    for line in lines:
        shown, _, expression = line.strip().partition(": ")
        if shown not in written:
            yield f"{shown} is not in the paragraph above"
        yield from cell_problems(shown, expression, {"file": first.strip()}, root, is_name=False)


def cell_problems(cell: str, spec: str, choice: Row, root: Path, is_name: bool) -> Iterator[str]:
    """Numbers of a cell that differ from what the expressions of ``spec`` give."""
    shown, expressions = _numbers(cell), [part.strip() for part in spec.split(";") if part.strip()]
    if not expressions:
        if shown and not is_name:
            yield "no expression says where this is from"
        return
    try:
        values = [_value(expression, choice, root) for expression in expressions]
    except (ValueError, KeyError, OSError, SyntaxError) as error:
        yield " ".join(map(str, error.args))
        return
    if all(value is None for _, value in values):
        if shown:
            yield "the file has no value"
    elif len(shown) != len(values):
        yield f"{len(shown)} numbers, {len(values)} expressions"
    else:
        for number, (roughly, value) in zip(shown, values, strict=True):
            if value is None or not agrees(number, value, roughly):
                yield f"the file has {value}"


def agrees(shown: str, value: float, roughly: bool = False) -> bool:
    """Whether ``shown`` is ``value``, rounded to as many digits."""
    number = float(shown.replace(",", ""))
    mantissa, _, exponent = shown.partition("e")
    digits = len(mantissa.partition(".")[2]) - int(exponent or 0)
    unit = 0.5 * 10.0**-digits
    return abs(number - value) <= (max(unit, _CLOSE * abs(value)) if roughly else unit * (1 + 1e-6))


def record_problems(root: Path, file: str) -> list[str]:
    """What is missing of the record beside a file: commit, processor and command."""
    path = root / file
    if not path.is_file():
        return [f"{file} does not exist"]
    stems = [each for each in path.parent.glob("*.json") if path.stem.startswith(each.stem)]
    if not stems:
        return [f"{file} has no record (JSON) beside it"]
    record = json.loads(max(stems, key=lambda each: len(each.stem)).read_text(encoding="utf-8"))
    about = {**record.get("machine", {}), **record.get("provenance", {})}
    missing = [name for name in ("commit", "cpu", "command") if not about.get(name)]
    if missing:
        return [f"the record of {file} has no {', '.join(missing)}"]
    known = re.fullmatch(r"[0-9a-f]{40}", about["commit"])
    return [] if known else [f"{file} is not of a commit but of {about['commit']}"]


def _value(expression: str, choice: Row, root: Path) -> tuple[bool, float | None]:
    """Whether it is rough, and the value, None where a file has none."""
    text, _, other = expression.partition("@")
    roughly, text = text.strip().startswith("~"), text.strip().lstrip("~")
    tree = ast.parse(text.strip(), mode="eval").body
    if not any(isinstance(node, ast.Name) for node in ast.walk(tree)):
        return roughly, float(_computed(tree, {}))
    chosen = {**choice, **_choice(other)}
    file = chosen.pop("file")
    if wrong := record_problems(root, file):
        raise ValueError(wrong[0])
    return roughly, _computed(tree, _row(root / file, chosen))


def _computed(node: Any, row: Row) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.Name):
        return _number(row[node.id]) if node.id in row else _unknown(node.id, row)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _computed(node.operand, row)
        return None if value is None else -value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _computed(node.left, row), _computed(node.right, row)
        return None if left is None or right is None else _OPERATORS[type(node.op)](left, right)
    raise ValueError(f"{ast.unparse(node)} is no arithmetic on columns")


def _unknown(name: str, row: Row) -> Any:
    raise KeyError(f"no column {name} among {', '.join(row)}")


def _number(value: Any) -> float | None:
    number = float(value) if value not in ("", None) else math.nan
    return None if math.isnan(number) else number


def _row(path: Path, choice: Row) -> Row:
    """The one row of a table that fits; of a record, its own entries."""
    if path.suffix == ".json":
        return json.loads(path.read_text(encoding="utf-8"))
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    unknown = [key for key in choice if key not in rows[0]]
    found = [row for row in rows if all(_same(row.get(key, ""), value) for key, value in choice.items())]
    if unknown or len(found) != 1:
        raise ValueError(f"{path.name} has {len(found)} rows with {choice}{' (unknown)' * bool(unknown)}")
    return found[0]


def _same(cell: str, wanted: str) -> bool:
    """Equal as text or as numbers."""
    try:
        return cell == wanted or float(cell) == float(wanted)
    except ValueError:
        return False


def _choice(text: str) -> dict[str, str]:
    parts: Any = (part.strip().split("=", 1) for part in text.split(",") if part.strip())
    return dict(parts)


def _cells(line: str) -> list[str]:
    text = line.strip()
    text = text[1:] if text.startswith("|") else text
    return [cell.strip() for cell in text.removesuffix("|").split("|")]


def _plain(text: str) -> str:
    """Without code, targets of links and emphasis."""
    text = re.sub(r"`[^`]*`", "", text)
    return re.sub(r"\]\([^)]*\)", "]", text).replace("*", "").replace("−", "-")


def _numbers(text: str) -> list[str]:
    return [match.rstrip(",") for match in _NUMBER.findall(_plain(text))]
