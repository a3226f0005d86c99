"""The project as a whole: linters, types, import contracts, public names, packaging, README, workflow."""

import contextlib
import doctest
import importlib
import inspect
import pkgutil
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import mvpa_gamp
from pipelines.packaging.metadata import files
from pipelines.packaging.notebooks import notebooks

pytestmark = pytest.mark.whole

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TOOLS = ("ruff check", "ruff format", "mypy", "lint-imports")
TEXT = {".py", ".md", ".toml", ".cff", ".css", ".js", ".html", ".txt", ".tsv", ".json", ".yml", ".yaml"}
TEXT.add(".sh")
PLAIN = {"LICENSE", "MANIFEST.in", ".gitignore", "run"}  # text files without a suffix
FOLDERS = ("mvpa_gamp", "tests", "docs", "pipelines", "figures", ".ci", ".github")
GENERATED = {"__pycache__", "_build", "gallery"}


def sources() -> list[Path]:
    """Every text file of the project, without caches and results."""
    found = [path for path in ROOT.iterdir() if path.is_file()]
    for folder in FOLDERS:
        found += [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    found = [path for path in found if not GENERATED & set(path.relative_to(ROOT).parts)]
    return [path for path in found if path.suffix in TEXT or path.name in PLAIN]


def tool(name: str) -> str:
    """The program beside this Python, or on the path."""
    program = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed: pip install '.[test]' in the clone")
    return program


def marked(name: str) -> str:
    """The line after ``# name``, as .ci/run takes it."""
    lines = README.splitlines()
    return lines[lines.index(f"# {name}") + 1]


# --- tools


@pytest.mark.parametrize(
    "command", [pytest.param(name, marks=[pytest.mark.slow] * (name == "mypy")) for name in TOOLS]
)
def test_tool_has_nothing_to_say(command):
    if command == "mypy" and sys.version_info < (3, 11):
        pytest.skip("types are checked against the newest stubs of NumPy, which need Python 3.11")
    name, *options = command.split()
    options += ["--check"] if command == "ruff format" else []
    found = subprocess.run(
        [tool(name), *options], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert found.returncode == 0, f"{command}\n{found.stdout}{found.stderr}"


def test_a_commit_is_checked_by_the_same_tools():
    """The hooks of pre-commit are programs of the active environment, and fetch nothing."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: pip install '.[test]' in the clone")
    repos = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert [repo["repo"] for repo in repos] == ["local"]
    hooks = repos[0]["hooks"]
    assert [hook["entry"].removesuffix(" --force-exclude") for hook in hooks] == list(TOOLS)
    assert {hook["language"] for hook in hooks} == {"system"}


def test_every_layer_is_under_contract():
    """A new module or subpackage must say where it stands."""
    contracts = SETTINGS["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    ordered = {name.strip() for layer in layers for name in re.split(r"[|:]", layer)}
    there = {module.name for module in pkgutil.iter_modules(mvpa_gamp.__path__)}
    assert there - {"_version"} == ordered


# --- public names


def modules() -> list[Any]:
    found = pkgutil.walk_packages(mvpa_gamp.__path__, "mvpa_gamp.")
    return [mvpa_gamp, *(importlib.import_module(module.name) for module in found)]


def public() -> dict[str, Any]:
    """Functions and classes that a package offers in ``__all__``, and those of the modules without one."""
    found = {}
    for module in modules():
        names = getattr(module, "__all__", ())
        if module.__name__ in ("mvpa_gamp.stability", "mvpa_gamp.parallel"):
            own = (name for name, value in vars(module).items() if inspect.getmodule(value) is module)
            names = [name for name in own if not name.startswith("_")]
        found.update({name: getattr(module, name) for name in names})
    return {
        name: value for name, value in found.items() if inspect.isfunction(value) or inspect.isclass(value)
    }


def signature(value: Any) -> str:
    """The types that a function, or a class in its fields and methods, takes and returns."""
    if not inspect.isclass(value):
        return str(inspect.signature(value))
    own = [base for base in value.__mro__ if base.__module__.startswith("mvpa_gamp")]
    parts = [part for base in own for part in vars(base).values() if inspect.isfunction(part)]
    methods = [str(inspect.signature(part)) for part in parts]
    return " ".join([*methods, str(getattr(value, "__annotations__", ""))])


def examples() -> str:
    """All code in docstrings, README and documentation; other tests run it."""
    pages = [README, *(_text(path) for path in (ROOT / "docs").glob("*.md"))]
    fenced = [block for page in pages for block in re.findall(r"^```python\n(.*?)^```$", page, re.S | re.M)]
    scripts = [_text(path) for path in (ROOT / "docs" / "examples").glob("*.py")]
    lines = [line for module in modules() for line in re.findall(r">>> .*", inspect.getsource(module))]
    return "\n".join([*fenced, *scripts, *lines])


def test_docstring_examples_print_what_they_say():
    results = {module.__name__: doctest.testmod(module) for module in modules()}
    assert not {name for name, result in results.items() if result.failed}
    assert sum(result.attempted for result in results.values()) > 50


def test_every_public_name_is_explained():
    assert len(public()) > 40
    assert not [name for name, value in public().items() if not (value.__doc__ or "").strip()]


def test_every_public_name_has_an_example():
    """A call of it, or, for the records and protocols of other names, a place in their signatures."""
    shown = set(re.findall(r"\b(\w+)\(", examples()))
    signatures = " ".join(map(signature, public().values()))
    named = set(re.findall(r"\b[A-Z]\w+", signatures))
    classes = {name for name, value in public().items() if inspect.isclass(value)}
    missing = public().keys() - shown - (classes & named)
    assert not missing, f"add an example to the docstring: {sorted(missing)}"


# --- packaging


def test_the_version_is_in_one_place():
    held = [path.relative_to(ROOT).as_posix() for path in sources() if mvpa_gamp.__version__ in _text(path)]
    told = [name for name in held if name != "CHANGELOG.md" and not name.startswith("figures/")]
    by_hand = "mvpa_gamp/_version.py"
    assert by_hand in told
    made = {path.relative_to(ROOT).as_posix(): text for path, text in files().items()}
    assert set(told) - {by_hand} <= set(made)
    old = [name for name, text in made.items() if _text(ROOT / name) != text]
    assert not old, f"python -m pipelines.packaging writes {', '.join(old)} again"
    with contextlib.suppress(PackageNotFoundError):  # run from the source folder
        assert version("mvpa-gamp") == mvpa_gamp.__version__


def test_notebooks_are_those_of_the_examples():
    pytest.importorskip("sphinx_gallery", reason="sphinx-gallery is not installed: pip install '.[docs]'")
    old = [path.name for path, text in notebooks().items() if _text(path) != text]
    assert not old, f"python -m pipelines.packaging writes {', '.join(old)} again"


def test_data_files_are_packaged():
    patterns = SETTINGS["tool"]["setuptools"]["package-data"]["mvpa_gamp"]
    package = ROOT / "mvpa_gamp"
    packaged = {path for pattern in patterns for path in package.glob(pattern)}
    others = {path for path in package.rglob("*") if path.is_file() and path.suffix != ".py"}
    others = {path for path in others if path.parent.name != "__pycache__"}
    assert others == packaged and package / "py.typed" in packaged


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[set[str], set[str]]:
    """Names of the files in the wheel and in the source distribution, built from a copy without a network."""
    absent = [name for name in ("build", "setuptools") if find_spec(name) is None]
    wanted = int(re.findall(r"\d+", SETTINGS["build-system"]["requires"][0])[0])
    if absent or int(version("setuptools").split(".")[0]) < wanted:
        pytest.skip(f"build and setuptools {wanted} are not installed: pip install '.[test]' in the clone")
    copy, out = tmp_path_factory.mktemp("copy") / "project", tmp_path_factory.mktemp("dist")
    for path in sources():
        target = copy / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    shutil.copyfile(ROOT / "mvpa_gamp" / "py.typed", copy / "mvpa_gamp" / "py.typed")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(copy)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert found.returncode == 0, found.stdout[-3000:] + found.stderr[-3000:]
    (wheel,), (archive,) = out.glob("*.whl"), out.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as packed, tarfile.open(archive) as tar:
        members = (name.partition("/")[2] for name in tar.getnames())
        return set(packed.namelist()), set(members)


def test_the_wheel_holds_the_package_and_nothing_else(built):
    wheel, _ = built
    package = ROOT / "mvpa_gamp"
    files = {path for path in package.rglob("*") if path.is_file() and path.parent.name != "__pycache__"}
    about = {name for name in wheel if ".dist-info/" in name}
    assert wheel - about == {path.relative_to(ROOT).as_posix() for path in files}
    assert {name.rpartition("/")[2] for name in about} >= {"METADATA", "LICENSE", "entry_points.txt"}


def test_the_source_distribution_holds_what_its_tests_read(built):
    _, archive = built
    assert {path.relative_to(ROOT).as_posix() for path in sources()} <= archive


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


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", _text(ROOT / page)):
        assert (ROOT / target).exists(), target


def test_the_workflow_runs_what_is_run_here():
    """GitHub starts .ci/run, the core tests on every system, builds the site and checks the packages."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: pip install '.[test]' in the clone")
    folder = ROOT / ".github" / "workflows"
    jobs = yaml.safe_load(_text(folder / "tests.yml"))["jobs"]
    jobs |= yaml.safe_load(_text(folder / "package.yml"))["jobs"]
    steps = {name: job.get("steps", []) for name, job in jobs.items()}
    commands = {name: [step["run"] for step in own if "run" in step] for name, own in steps.items()}
    assert commands["tests"] == [".ci/run"]
    oldest = SETTINGS["project"]["requires-python"].removeprefix(">=")
    systems = jobs["core"]["strategy"]["matrix"]
    assert systems["python"][0] == oldest and len(systems["system"]) == 3
    declared = {name.rpartition(" ")[2] for name in SETTINGS["project"]["classifiers"] if ":: 3." in name}
    assert set(systems["python"]) <= declared
    built = (ROOT / "docs" / "conf.py").read_text(encoding="utf-8").splitlines()[2]
    assert commands["docs"][-1] == built  # the command that the settings of the site name
    assert commands["build"][1:3] == ["python -m build", "python -m twine check --strict dist/*"]


def test_the_contributors_page_names_the_contracts_and_the_commands():
    page = _text(ROOT / "CONTRIBUTING.md")
    order = SETTINGS["tool"]["importlinter"]["contracts"][0]["layers"]
    layers = " > ".join(layer.replace(" | ", ", ") for layer in order)
    assert layers in re.sub(r"\s+", " ", page)
    assert marked("test").split(" && ")[0] in page
    for pipeline in re.findall(r"-m (pipelines\.\w+)", page):
        assert find_spec(pipeline), pipeline


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
