"""The project as a whole: linters, types, import contracts, README, packaging."""

import contextlib
import doctest
import importlib
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

import mvpa_gamp
from mvpa_gamp.haxby import build_parser

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TEXT = {".py", ".md", ".toml", ".cff", ".css", ".html", ".txt", ".tsv", ".json", ".yml", ".yaml", ".sh"}
PLAIN = {"LICENSE", ".gitignore", "run"}  # text files without a suffix
FOLDERS = ("mvpa_gamp", "tests", "docs", "pipelines", "figures", ".ci")


def sources() -> list[Path]:
    """Every text file of the project, without caches and results."""
    found = [path for path in ROOT.iterdir() if path.is_file()]
    for folder in FOLDERS:
        found += [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    return [path for path in found if path.suffix in TEXT or path.name in PLAIN]


def tool(name: str) -> str:
    """The program beside this Python, or on the path."""
    program = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed: pip install 'mvpa-gamp[test]'")
    return program


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)


def marked(name: str) -> str:
    """The line after ``# name``, as .ci/run takes it."""
    lines = README.splitlines()
    return lines[lines.index(f"# {name}") + 1]


# --- tools


@pytest.mark.parametrize(
    "command",
    [
        "ruff check .",
        "ruff format --check .",
        "mypy",
        "lint-imports",
    ],
)
def test_tool_has_nothing_to_say(command):
    name, *options = command.split()
    found = subprocess.run(
        [tool(name), *options], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert found.returncode == 0, f"{command}\n{found.stdout}{found.stderr}"


def test_every_layer_is_under_contract():
    """A new module or subpackage must say where it stands."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    ordered = {name.strip() for layer in layers for name in re.split(r"[|:]", layer)}
    there = {module.name for module in pkgutil.iter_modules(mvpa_gamp.__path__)}
    assert there - {"_version"} == ordered


def test_docstring_examples_print_what_they_say():
    tried = 0
    for module in pkgutil.walk_packages(mvpa_gamp.__path__, "mvpa_gamp."):
        result = doctest.testmod(importlib.import_module(module.name))
        assert result.failed == 0, module.name
        tried += result.attempted
    assert tried > 0


# --- packaging


def test_the_version_is_in_one_place():
    held = [path.relative_to(ROOT).as_posix() for path in sources() if mvpa_gamp.__version__ in _text(path)]
    told = [name for name in held if name != "CHANGELOG.md" and not name.startswith("figures/")]
    assert told == ["mvpa_gamp/_version.py"]
    with contextlib.suppress(PackageNotFoundError):  # run from the source folder
        assert version("mvpa-gamp") == mvpa_gamp.__version__


def test_data_files_are_packaged():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = settings["tool"]["setuptools"]["package-data"]["mvpa_gamp"]
    package = ROOT / "mvpa_gamp"
    packaged = {path for pattern in patterns for path in package.glob(pattern)}
    others = {path for path in package.rglob("*") if path.is_file() and path.suffix != ".py"}
    others = {path for path in others if path.parent.name != "__pycache__"}
    assert others == packaged and package / "py.typed" in packaged


def test_importing_the_package_loads_nothing_heavy():
    script = "import sys, mvpa_gamp; print(mvpa_gamp.__version__, *sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    printed, *modules = found.stdout.split()
    assert printed == mvpa_gamp.__version__
    assert not {"sklearn", "nilearn", "nibabel", "matplotlib", "scipy", "numpy"} & set(modules)


def test_the_package_names_what_it_offers():
    assert mvpa_gamp.GAMPClassifier.__name__ == "GAMPClassifier"
    with pytest.raises(AttributeError, match="no attribute 'Gamp'"):
        _ = mvpa_gamp.Gamp


def test_no_path_of_one_machine():
    """Nothing may depend on where it was written."""
    pattern = re.compile(r"(?<![\w.$}])/(?:home|work|root|Users|mnt|media|tmp)/\w")
    at = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sources()
        for number, line in enumerate(_text(path).splitlines(), 1)
        if pattern.search(line)
    ]
    assert not at, "\n".join(at)


# --- README


def test_the_two_commands_start_from_nothing():
    assert README.count("\n# run\n") == README.count("\n# test\n") == 1
    for name, last in (("run", "-m mvpa_gamp.haxby --phantom"), ("test", "-m pytest")):
        command = marked(name)
        create, install, start = command.split(" && ")
        assert create == "python3 -m venv .venv"
        assert install.startswith(".venv/bin/pip install ")
        assert start.startswith(".venv/bin/python ") and last in start
    assert '".[test]"' in marked("test")


def test_continuous_integration_runs_the_test_command_to_the_letter(tmp_path):
    """.ci/run in a copy whose README has a harmless command in the same place."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "run").write_text(script.replace("! command -v chromium", "false"), encoding="utf-8")
    (tmp_path / "README.md").write_text(
        README.replace(marked("test"), "echo tested in $(pwd)"), encoding="utf-8"
    )
    (tmp_path / ".venv").mkdir()
    found = subprocess.run(
        [bash, ".ci/run"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert found.stdout.splitlines()[-1] == f"tested in {tmp_path}"
    assert not (tmp_path / ".venv").exists()


def test_every_haxby_command_of_the_readme_is_understood():
    commands = re.findall(r"-m mvpa_gamp\.haxby( .*)", "\n".join(blocks("bash")))
    assert len(commands) >= 3
    for command in commands:
        build_parser().parse_args(shlex.split(command, comments=True))


def test_the_python_example_prints_what_it_says(capsys):
    example = blocks("python")[0]
    promised = re.search(r"get_support\(\)\)\)\s+# (.*)", example)
    assert promised
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out.splitlines()[0] == promised.group(1)


def test_the_example_on_images_writes_its_map_and_its_report(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    _, example = blocks("python")
    exec(compile(example, "README.md", "exec"), {})
    assert {path.name for path in tmp_path.iterdir()} == {"inclusion.nii.gz", "report.html"}
    assert float(capsys.readouterr().out.splitlines()[-1]) < 0.05  # the permutation test


def test_links_lead_to_files():
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", README):
        assert (ROOT / target).exists(), target


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
