"""Every number in a table of README and docs is that of a measured file.

A comment above a table names its files, and readers do not see it:

    <!-- numbers: figures/all_pairs/all_pairs_slice.csv [noise=as measured], figures/benchmarks/peers.csv -->

Each number of the table, rounded to the digits it shows, must be in one of these files: as it is, as a share
in per cent, or as what is missing to one or to 100 (an accuracy, where the file has an error). A name in code
in the first cell of a line (`gamp-bg-lr`), or in the head of a column, chooses the rows of the files that
have it. Cells of the first column, and of columns whose head says "paper", are not measured. The record
(JSON) beside a file states commit, processor and command. Directives {measured} copy nothing, so only their
records are looked at.
Above a table with other numbers, such as limits, stands <!-- no measurement: what they are -->.
"""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?(?!\w)")
BARE = re.compile(r"(?!.*1e)[\s\d.,/()±~%-]*\d[\s\d.,/()±~%-]*")
UNITS = re.compile(r".*(?:\d\.\d|\d\s?%|\d (?:s|seconds|minutes|MB)\b).*")
COMMENT = re.compile(r"<!-- (numbers|no measurement): ((?:(?!-->).)*) -->\s*$", re.DOTALL)
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
FENCE = re.compile(r"^(```|~~~).*?^\1$", re.DOTALL | re.MULTILINE)
DIRECTIVE = re.compile(r"^```\{measured\} (\S+)$", re.MULTILINE)


def problems(text: str, root: Path) -> Iterator[str]:
    """Everything in the tables of a page that no measured file holds."""
    for file in DIRECTIVE.findall(text):
        yield from record_problems(root, file)
    hidden = FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for table in TABLE.finditer(hidden):
        comment = COMMENT.search(hidden[: table.start()].rstrip())
        head, _, *lines = [cells(line) for line in table[0].splitlines()]
        numbers = [(line[0], *each) for line in lines for each in measured(head, line, comment is not None)]
        if comment is None and numbers:
            where = f"{numbers[0][0]} | {numbers[0][2]}"
            yield f"{where}: a table with numbers and no comment that names their file"
        elif comment is not None and comment[1] == "numbers":
            files = re.findall(r"(figures/[^\s,\[]+)(?: \[(.*?)\])?", comment[2])
            wrong = [each for file, _ in files for each in record_problems(root, file)]
            yield from wrong or table_problems(numbers, [(root / file, where) for file, where in files])


def measured(head: Sequence[str], line: Sequence[str], told: bool) -> Iterator[tuple[str, str]]:
    """Heads and cells of a line that hold measured numbers; if a file is named, also those among words."""
    for column, cell in list(zip(head, line, strict=True))[1:]:
        text = plain(cell)
        if "paper" not in column and (BARE.fullmatch(text) or (told and UNITS.fullmatch(text))):
            yield column, cell


def table_problems(numbers: Sequence[Any], files: Sequence[tuple[Path, str]]) -> Iterator[str]:
    rows = [row for path, where in files for row in chosen(path, where)]
    for first, column, cell in numbers:
        mine = named(named(rows, first), column)
        values = [value for row in mine for value in row.values()]
        for shown in NUMBER.findall(plain(cell)):
            if not any(agrees(shown.rstrip(","), value) for value in values):
                yield f"{first} | {cell}: {shown} is not in {', '.join(path.name for path, _ in files)}"


def named(rows: Sequence[Any], cell: str) -> Sequence[Any]:
    """The rows that hold the names in code of a cell; all of them without any."""
    for name in re.findall(r"`([^`]+)`", cell):
        rows = [row for row in rows if name in row.values()] or rows
    return rows


def chosen(path: Path, where: str) -> Sequence[Any]:
    wanted = dict(part.strip().split("=") for part in where.split(";") if part.strip())
    if path.suffix == ".json":
        return [flat(json.loads(path.read_text(encoding="utf-8")))]
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if all(row[k] == v for k, v in wanted.items())]
    assert rows, f"{path.name} has no row with {wanted}"
    return rows


def flat(record: Any) -> dict[str, Any]:
    """The numbers of a record itself, without its tables."""
    return {name: value for name, value in record.items() if isinstance(value, int | float)}


def agrees(shown: str, value: Any) -> bool:
    """Whether ``shown`` is a value, its share in per cent, or what is missing to one or to 100, rounded."""
    try:
        number = float(value)
    except ValueError:
        return False
    mantissa, _, exponent = shown.replace(",", "").partition("e")
    unit = 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2])) * (1 + 1e-6)
    ways = (number, 100 * number, 100 - number, 1 - number, 100 - 100 * number)
    return any(abs(float(shown.replace(",", "")) - each) <= unit for each in ways)


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
    if not missing and not re.fullmatch(r"[0-9a-f]{40}", about["commit"]):
        return [f"{file} is not of a commit but of {about['commit']}"]
    return [f"the record of {file} has no {', '.join(missing)}"] if missing else []


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def plain(text: str) -> str:
    """Without code, targets of links and emphasis."""
    text = re.sub(r"`[^`]*`", "", text)
    return re.sub(r"\]\([^)]*\)", "]", text).replace("*", "").replace("−", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_numbers_in_tables_are_those_of_measured_files(page):
    found = list(problems(page.read_text(encoding="utf-8"), ROOT))
    assert not found, "\n".join(found)


WANTED = {"commit": "0" * 40, "cpu": "x", "command": "python"}
TABLE_OF_A_PAGE = "<!-- numbers: figures/a.csv -->\n| | error (%) | voxels | paper |\n|---|---|---|---|\n"


@pytest.fixture
def figures(tmp_path):
    folder = tmp_path / "figures"
    folder.mkdir()
    (folder / "a.csv").write_text("method,error,voxels\nsvm,0.1304,\nlda,0.22,24.1\n")
    (folder / "a.json").write_text(json.dumps({"provenance": WANTED}))
    return tmp_path


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("| `svm` | 13.0 | – | 9.9 |", 0),
        ("| `svm` | 86.96 | all | |", 0),  # an accuracy
        ("| `svm` | 13.1 | – | |", 1),
        ("| `svm` | 22 | 24 | |", 2),  # of another row
        ("| linear | 22 | 24 | |", 0),
        ("| `lda` | 22.0 ± 0.22 | 24.2 | |", 1),
    ],
)
def test_a_wrong_number_is_found(figures, line, wrong):
    assert len(list(problems(TABLE_OF_A_PAGE + line + "\n", figures))) == wrong


def test_a_table_without_a_file_is_found(figures):
    table = TABLE_OF_A_PAGE.partition("\n")[2] + "| `svm` | 13.0 | | |\n"
    both = TABLE_OF_A_PAGE + "| `svm` | 13.0 | | |\n\ntext\n\n" + table
    assert "no comment" in next(problems("text\n\n" + table, figures))
    assert "no comment" in next(problems(both, figures))
    assert not list(problems("<!-- no measurement: limits -->\n" + table, figures))
    assert not list(problems("```\n" + table + "```\n", figures))


@pytest.mark.parametrize("name", WANTED)
def test_a_record_without_commit_processor_or_command_is_found(figures, name):
    (figures / "figures" / "a.json").write_text(json.dumps({"provenance": {**WANTED, name: None}}))
    assert list(problems(TABLE_OF_A_PAGE + "| `svm` | 13.0 | | |\n", figures)) == [
        f"the record of figures/a.csv has no {name}"
    ]
    shown = "```{measured} figures/a.csv\n:columns: method=method\n```\n"
    assert f"no {name}" in next(problems(shown, figures))
    (figures / "figures" / "a.json").write_text(
        json.dumps({"provenance": {**WANTED, "commit": "1 with changes"}})
    )
    assert "not of a commit" in next(problems(shown, figures))
