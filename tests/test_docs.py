"""The documentation: examples run, commands are understood, API pages are complete, the site builds."""

import importlib
import inspect
import json
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mvpa_gamp
from mvpa_gamp import __main__ as bids_command
from mvpa_gamp import haxby as haxby_command
from mvpa_gamp import predict
from mvpa_gamp.gamp import Probit
from mvpa_gamp.methods import METHODS

pytestmark = pytest.mark.whole

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", *sorted(DOCS.glob("*.md")))
PARSERS = {"mvpa_gamp": bids_command.build_parser, "mvpa_gamp.haxby": haxby_command.build_parser}
COMPLETE = ("mvpa_gamp.stability", "mvpa_gamp.parallel")  # without __all__: all of their functions are public
GENERATED = ("_build", "gallery", "__pycache__")


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a page, in order."""
    found = re.findall(
        rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    return [str(block) for block in found]


def load(path: Path) -> Any:
    """A Python file outside of any package."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- examples


SLOW_PAGES = ("inference.md",)  # permutations


def pages_with_code() -> list[Any]:
    shown = [page for page in PAGES if blocks(page, "python")]
    return [pytest.param(p, marks=[pytest.mark.slow] * (p.name in SLOW_PAGES), id=p.name) for p in shown]


@pytest.mark.parametrize("page", pages_with_code())
def test_python_blocks_run(page, monkeypatch, tmp_path, capsys):
    """All blocks of a page, in order, in one namespace; a warning is an error."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for number, block in enumerate(blocks(page, "python"), 1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)
    if page.name == "README.md":
        printed = capsys.readouterr().out.splitlines()
        promised = re.search(r"get_support\(\)\)\)\s+# (.*)", page.read_text(encoding="utf-8"))
        assert promised is not None and printed[0] == promised.group(1)
        assert {path.name for path in tmp_path.iterdir()} == {"inclusion.nii.gz", "report.html"}
        assert float(printed[-1]) < 0.05  # the permutation test
    if page.name == "not_a_brain.md":
        printed = capsys.readouterr().out.splitlines()
        assert printed[:2] == ["0.88 8", "0.92 18"] and printed[3] == "18 18"
        assert "# 0.88 8, with the network 0.92 18" in page.read_text(encoding="utf-8")
        assert "genes at an estimated false-discovery rate" in printed[4]
        assert printed[5].startswith("The false-discovery rate") and "selected a gene" in printed[5]


def test_every_measured_table_is_linked_where_it_is_not_drawn():
    """Outside of the site a directive shows the name of its file: the line below it is a link."""
    shown = 0
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for file, below in re.findall(
            r"^```\{measured\} (\S+)\n.*?^```\n\n(.*?)$", text, re.DOTALL | re.MULTILINE
        ):
            shown += 1
            assert below.startswith(f"[The table as a file](../{file})") and (ROOT / file).is_file()
    assert shown > 10


def test_methods_and_what_to_write_for_the_classifier_give_the_same_weights():
    text = (DOCS / "choosing.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(gamp-\S+)` \|.*\| `(GAMPClassifier\(.*\))` \|$", text, re.MULTILINE))
    assert set(rows) == {name for name in METHODS if name.startswith("gamp-")} - {"gamp-l1-lr-cv"}
    rng = np.random.default_rng(0)
    X, graph = rng.standard_normal((60, 20)), np.eye(20, k=1)
    y = np.where(X[:, 0] + rng.standard_normal(60) > 0, 1, -1)
    names = {"GAMPClassifier": mvpa_gamp.GAMPClassifier, "Probit": Probit, "graph": graph}
    for name, code in rows.items():
        whole = np.ones((60, 1), dtype=bool)
        wanted = METHODS[name].fit_folds(X, y, whole, np.arange(60) % 3, connectivity=graph)
        np.testing.assert_allclose(eval(code, names).fit(X, y).coef_.T, wanted.coef, atol=1e-6, err_msg=name)


# --- commands


def commands() -> list[tuple[str, str, list[str]]]:
    """Page, module and arguments of every command of this package that a page shows."""
    out = []
    for page in PAGES:
        for block in blocks(page, "bash"):
            for line in block.replace("\\\n", " ").splitlines():
                found = re.search(r"-m (mvpa_gamp[\w.]*)(?: (.*))?$", line)
                if found:
                    out.append((page.name, found[1], shlex.split(found[2] or "", comments=True)))
    return out


def is_decode(module: str, arguments: list[str]) -> bool:
    """Whether a command is ``mvpa_gamp decode``, the second name of ``mvpa_gamp.haxby``."""
    return module == "mvpa_gamp" and bids_command.asks_for_own_files(arguments)


def test_no_line_of_prose_is_a_comment():
    """MyST leaves out a line that begins with a percent sign, such as the end of "in 22 %"."""
    lines = [line for page in PAGES for line in page.read_text(encoding="utf-8").splitlines()]
    assert not [line for line in lines if line.lstrip().startswith("%")]


def test_pages_show_commands():
    shown = commands()
    assert "mvpa_gamp" in {module for _, module, _ in shown} <= set(PARSERS)
    assert len(shown) > 10 and any("--phantom" in arguments for _, _, arguments in shown)
    assert "own_data.md" in {page for page, *command in shown if is_decode(*command)}


@pytest.mark.parametrize(("page", "module", "arguments"), commands(), ids=lambda part: str(part)[:60])
def test_commands_are_understood(page, module, arguments):
    if is_decode(module, arguments):
        module, arguments = "mvpa_gamp.haxby", arguments[1:]
    elif arguments[:1] == [bids_command.PREDICT]:
        predict.build_parser(bids_command.PREDICT).parse_args(arguments[1:])
        return
    elif (between := bids_command.between_people(arguments)) is not None:
        module, arguments = "mvpa_gamp.haxby", between
    PARSERS[module]().parse_args(arguments)


def pipeline_commands() -> list[tuple[str, str, list[str]]]:
    """Page, pipeline and options of every command of a pipeline that a page names, in blocks or sentences."""
    out = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for name, rest in re.findall(r"python -m pipelines\.([\w.]+)([^`\n]*)", text):
            out.append((page.name, name, re.findall(r"--[\w-]+", rest)))
    return out


def test_pipelines_that_pages_name_have_the_options_they_show(capsys):
    shown = pipeline_commands()
    assert len({name for _, name, _ in shown} - {"NAME"}) > 8
    for page, name, options in shown:
        if name == "NAME":
            continue
        package = (ROOT / "pipelines" / name.replace(".", "/")).is_dir()
        program = importlib.import_module(f"pipelines.{name}{'.__main__' * package}")
        if not inspect.signature(program.main).parameters:
            assert not options
            continue
        with pytest.raises(SystemExit, match="0"):
            program.main(["--help"])
        told = capsys.readouterr().out
        assert not [option for option in options if option not in told], (page, name, options)


def phantom_commands() -> list[Any]:
    """Each command on the phantom once; permutations and learning curves take their time."""
    commands_shown = [arguments for _, _, arguments in commands() if "--phantom" in arguments]
    own = [arguments[arguments[0] == bids_command.DECODE :] for arguments in commands_shown]
    shown = {tuple(arguments): arguments for arguments in own}
    slow = {"--permutations", "--learning-curve"}
    return [pytest.param(a, marks=[pytest.mark.slow] if slow & set(a) else []) for a in shown.values()]


@pytest.mark.parametrize("arguments", phantom_commands(), ids=lambda arguments: " ".join(arguments)[:60])
def test_commands_on_the_phantom_run(arguments, monkeypatch, tmp_path):
    """As shown, but on a small grid, with one comparison and a few permutations."""
    monkeypatch.chdir(tmp_path)
    small = list(arguments)
    if "--permutations" in small:
        small[small.index("--permutations") + 1] = "20"
    pairs = [] if "--pairs" in small else ["--pairs", "face:house"]
    code = haxby_command.main([*small, *pairs, "--phantom-shape", "9", "11", "9", "--quiet"])
    assert code == 0
    assert (tmp_path / small[small.index("--out") + 1] / "index.html").is_file()


def file_commands() -> list[Any]:
    """Commands of the pages about designs on files of your own, as they are written there."""
    shown = [(page, a) for page, module, a in commands() if is_decode(module, a) and "--bold" in a]
    return [a[1:] for page, a in shown if page in ("designs.md", "fold_confounds.md")]


@pytest.mark.parametrize("arguments", file_commands(), ids=lambda arguments: " ".join(arguments)[-60:])
def test_commands_on_files_run(arguments, make_tiny, monkeypatch, tmp_path):
    """On twelve small runs, numbered from 1 on, and with few permutations."""
    tiny = make_tiny(tmp_path, n_runs=12)
    head, *lines = tiny.labels.read_text().splitlines()
    numbered = [f"{name}\t{int(run) + 1}" for name, run in (line.split("\t") for line in lines)]
    tiny.labels.write_text("\n".join([head, *numbered]) + "\n")
    seconds = np.random.default_rng(0).normal(0.7, 0.1, len(lines))
    (tmp_path / "reaction_times.tsv").write_text("\n".join(["rt", *map(str, seconds)]) + "\n")
    monkeypatch.chdir(tmp_path)
    small = [
        "9" if before == "--permutations" else a
        for before, a in zip(["", *arguments], arguments, strict=False)
    ]
    chosen = [] if "--methods" in small else ["--methods", "gamp-bg-lr"]
    assert haxby_command.main([*small, *chosen, "--quiet"]) == 0


def test_the_slurm_script_gives_a_command_that_is_understood():
    script = load(DOCS / "slurm_example.py")
    bids_command.build_parser().parse_args([*script.COMMAND, "--dask", "tcp://node:8786"])


# --- API pages


def api_names(module: str, name: str) -> list[str]:
    """What a line of an API page documents: a name, or every class of a registry."""
    if name != "*":
        return [name] if name else []
    return [
        key
        for key, value in vars(importlib.import_module(module)).items()
        if inspect.isclass(value) and key[0] != "_"
    ]


def documented() -> dict[tuple[str, str], Path]:
    """(module, name) of everything that an API page documents."""
    found = {}
    for page in sorted((DOCS / "api").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for module, names in re.findall(r"^```\{api\} (\S+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            for line in names.split("\n"):
                for name in api_names(module, line.partition(":")[0].strip()):
                    found[module, name] = page
    return found


def test_what_the_api_pages_document_exists():
    missing = [
        f"{page.name}: {module}.{name}"
        for (module, name), page in documented().items()
        if not hasattr(importlib.import_module(module), name)
    ]
    assert not missing, missing


def test_every_public_name_stands_in_the_api_pages():
    shown = documented()
    objects = {id(getattr(importlib.import_module(module), name)) for module, name in shown}
    missing = []
    for info in [None, *pkgutil.walk_packages(mvpa_gamp.__path__, "mvpa_gamp.")]:
        module = mvpa_gamp if info is None else importlib.import_module(info.name)
        public = list(getattr(module, "__all__", ()))
        if module.__name__ in COMPLETE:
            public = [
                name
                for name, value in vars(module).items()
                if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
            ]
            assert public
        missing += [
            f"{module.__name__}.{name}"
            for name in public
            if (module.__name__, name) not in shown and id(getattr(module, name)) not in objects
        ]
    assert not missing, f"add to docs/api: {missing}"


def test_functions_of_the_api_say_what_they_take_and_return():
    found = {}
    for (module, name), page in documented().items():
        value = getattr(importlib.import_module(module), name)
        if inspect.isfunction(value) and page.name != "engine.md":  # which is not meant to be imported
            given = ["Parameters"] * bool(inspect.signature(value).parameters)
            found[name] = [
                part for part in [*given, "Returns"] if f"{part}\n---" not in inspect.getdoc(value)
            ]
    assert len(found) > 80
    assert not {name: missing for name, missing in found.items() if missing}


def test_nothing_is_documented_twice():
    shown = documented()
    constants = (str, tuple, dict)
    seen: dict[int, str] = {}
    for module, name in shown:
        value = getattr(importlib.import_module(module), name)
        if not isinstance(value, constants) and (inspect.isclass(value) or inspect.isfunction(value)):
            assert seen.setdefault(id(value), f"{module}.{name}") == f"{module}.{name}"


def test_every_method_stands_in_the_table_of_names():
    page = (DOCS / "choosing.md").read_text(encoding="utf-8")
    names = page.split("## Names")[1].split("\n## ")[0]
    missing = [name for name in METHODS if f"`{name}`" not in names]
    assert not missing, f'Add a row for {missing} to the table "Names" of docs/choosing.md.'


def test_the_map_of_the_package_names_files_that_exist():
    page = (DOCS / "design.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/*]+\.(?:py|js))`", page))
    assert len(named) > 50
    assert not [name for name in named if not list((ROOT / "mvpa_gamp").rglob(name))]


# --- links to source lines


@pytest.fixture
def source_lines(monkeypatch):
    pytest.importorskip("sphinx", reason="Sphinx is not installed: pip install '.[docs]' in the clone")
    return load(DOCS / "_ext" / "source_lines.py")


def test_cited_source_lines_are_there(source_lines):
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    lines = re.findall(r"\{line\}`([^`]+?): ([^`]+)`", text)
    cited, equations = re.findall(r"\{cited\}`([\d:]+)`", text), re.findall(r"\{equation\}`(\w+)`", text)
    assert len(lines) > 20 and len(cited) >= 10 and len(equations) >= 10
    for file, part in lines:
        assert source_lines.find_line(file, part).line > 0
    for number in cited:
        *algorithm, line = map(int, number.split(":"))
        assert source_lines.find_cited(line, *algorithm)
    for name in equations:
        assert source_lines.find_equation(name)


def test_a_source_line_that_is_gone_is_refused(source_lines):
    with pytest.raises(LookupError, match="0 lines with 'no such thing', expected one"):
        source_lines.find_line("gamp/iteration.py", "no such thing")
    with pytest.raises(LookupError, match="cites line 99 of Algorithm 1"):
        source_lines.find_cited(99)
    with pytest.raises(LookupError, match=r"eq\. nothing"):
        source_lines.find_equation("nothing")


# --- the site


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site, built from a copy so that nothing is written into the project."""
    wanted = ("sphinx", "furo", "myst_parser", "sphinx_gallery", "sphinx_copybutton")
    absent = [name for name in wanted if find_spec(name) is None]
    if absent:
        pytest.skip(f"{', '.join(absent)} not installed: pip install '.[docs]' in the clone")
    home = tmp_path_factory.mktemp("project")
    shutil.copytree(DOCS, home / "docs", ignore=shutil.ignore_patterns(*GENERATED))
    for name in ("mvpa_gamp", "tests", "figures"):
        os.symlink(ROOT / name, home / name)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-b", "html", "docs", "site"]
    found = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=900, check=False)
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-8000:]
    return home / "site"


@pytest.mark.slow
def test_the_site_builds_without_warnings(site):
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert {f"{page.stem}.html" for page in PAGES[1:]} <= pages
    assert {f"gallery/{path.stem}.html" for path in (DOCS / "examples").glob("plot_*.py")} <= pages
    assert {f"api/{path.stem}.html" for path in (DOCS / "api").glob("*.md")} <= pages


@pytest.mark.slow
def test_the_search_finds_words_and_names(site):
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    places = [index[kind].get("inclus", []) for kind in ("terms", "titleterms")]  # words are stemmed
    numbers = {at for found in places for at in (found if isinstance(found, list) else [found])}
    pages = {index["docnames"][at] for at in numbers}
    assert {"maps", "inference"} <= pages
    assert any(entry[4] == "GAMPDecoder" for entry in index["objects"]["mvpa_gamp"])


@pytest.mark.slow
def test_links_to_source_lines_lead_to_anchors(site):
    page = (site / "mathematics.html").read_text(encoding="utf-8")
    links = re.findall(r'href="(_modules/[^"#]+)#(line-\d+)"', page)
    assert len(links) > 30
    for target, anchor in links:
        assert f'id="{anchor}"' in (site / target).read_text(encoding="utf-8"), (target, anchor)
