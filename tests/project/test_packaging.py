"""What is installed, and that it lives in any project and beside any other distribution.

The quick tests install nothing. The slow ones build a wheel, a source archive and an editable
install without network, but for the build tool itself, and install them into environments that
find the dependencies of this one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest

from tests import HOME, SOURCE
from tests.support.project_copy import NEEDED, PIP, copy_project, why_no_index
from tests.support.source_tree import PACKAGES

NAMES = ("model", "sim", "real", "reports", "scenarios", "pipeline", "checker", "tests")
"""Folders of this repository, which other projects have, too."""
SETUPTOOLS = tomllib.loads((HOME / "pyproject.toml").read_text())["tool"]["setuptools"]
LONGEST_S = 600
NAME_OF_REQUIREMENT = re.compile(r"[\w.-]*\w")
EXTRA_OF_REQUIREMENT = re.compile(r"extra == ['\"]([\w-]+)['\"]")
NOT_PACKED = ("tests/", "bench/", "docs/", "examples/", "watchkeeper/tests", "watchkeeper/bench")


def run_in(folder: Path, *command: str | Path, **more: str) -> str:
    """Run a command that has to succeed; return its output."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "PYTHON", "COV_", "HYPOTHESIS"))
    }
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**environment, **more},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    assert done.returncode == 0, f"{command} ends with {done.returncode}:\n{done.stdout}"
    return done.stdout


# --- what is packed, without an install ------------------------------------------------


def packaged_files() -> set[str]:
    """Return all files below `watchkeeper`, the folders behind its links included."""
    homes = [SOURCE, *(HOME / name for name in PACKAGES)]
    found = [
        path.relative_to(HOME)
        for home in homes
        for path in home.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and "egg-info" not in str(path)
    ]
    return {
        path.relative_to("src").as_posix() if path.parts[0] == "src" else f"watchkeeper/{path}"
        for path in found
    }


def test_setuptools_packs_every_file_below_watchkeeper() -> None:
    """All modules, *.yaml, *.js, *.css and py.typed, as pyproject.toml names them."""
    setuptools = pytest.importorskip("setuptools")
    packages = setuptools.find_packages(str(SOURCE))
    distribution = setuptools.Distribution(
        {
            "name": "watchkeeper",
            "packages": packages,
            "package_dir": {"": str(SOURCE)},
            "package_data": SETUPTOOLS["package-data"],
        }
    )
    distribution.script_name = "setup.py"  # as a build does
    command = distribution.get_command_obj("build_py")
    command.ensure_finalized()
    data = {
        f"{package.replace('.', '/')}/{name}"
        for package, _, _, names in command.data_files
        for name in names
    }
    found = [Path(path).relative_to(SOURCE) for _, _, path in command.find_all_modules()]

    assert SETUPTOOLS["packages"]["find"]["where"] == [SOURCE.name]
    assert {package.partition(".")[0] for package in packages} == {"watchkeeper"}
    assert {path.as_posix() for path in found} | data == packaged_files()


def test_the_links_lead_to_the_folders_of_the_repository() -> None:
    """Each package of the repository is one of `watchkeeper`, by a relative link."""
    links = {path.name: os.readlink(path) for path in SOURCE.rglob("*") if path.is_symlink()}

    assert links == {name: f"../../{name}" for name in PACKAGES}


# --- an import has no effects ----------------------------------------------------------

IMPORTS = """
import json, signal, sys, threading, atexit
sys.argv = {argv!r}
numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE]
before = [signal.getsignal(number) for number in numbers]
hooks = (sys.excepthook, sys.meta_path[:], threading.active_count(), atexit._ncallbacks())
import watchkeeper
{then}
after = [signal.getsignal(number) for number in numbers]
assert after == before, after
assert hooks == (sys.excepthook, sys.meta_path[:], threading.active_count(), atexit._ncallbacks())
print(json.dumps(sorted(sys.modules)))
"""
HEAVY = {
    *("simpy", "matplotlib", "networkx", "pydantic", "pyspark", "pyarrow", "kazoo", "numpy"),
    *("yaml", "click", "rich", "hypothesis", "asyncio"),
}


@pytest.mark.parametrize("argv", [["program"], ["watchkeeper"], ["-m"], ["watchkeeper", "run"]])
def test_an_import_has_no_effects(argv: list[str], tmp_path: Path) -> None:
    """It installs no signal handler, loads nothing heavy and does not end the process."""
    program = IMPORTS.format(argv=argv, then="")

    output = run_in(tmp_path, sys.executable, "-c", program, PYTHONPATH=str(SOURCE))

    assert HEAVY.isdisjoint(json.loads(output.splitlines()[-1]))


def test_the_use_of_the_api_installs_no_signal_handler(tmp_path: Path) -> None:
    """A simulation leaves the signals of its process alone."""
    program = IMPORTS.format(argv=["watchkeeper"], then="from watchkeeper.api import simulate")

    output = run_in(tmp_path, sys.executable, "-c", program, PYTHONPATH=str(SOURCE))

    assert "watchkeeper.api.simulate" in json.loads(output.splitlines()[-1])


@pytest.mark.parametrize("name", PACKAGES)
def test_a_foreign_package_does_not_disturb_an_import(name: str, tmp_path: Path) -> None:
    """Neither in the folder of the process nor among its imported modules."""
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("MINE = 1\n")
    program = f"import {name}, watchkeeper.{name} as ours; print({name}.MINE, ours.__file__)"

    output = run_in(tmp_path, sys.executable, "-c", program, PYTHONPATH=str(SOURCE))

    assert output.strip() == f"1 {SOURCE / 'watchkeeper' / name / '__init__.py'}"


# --- the pytest plugin -----------------------------------------------------------------

BROKEN = """
import sys


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("watchkeeper.") and name not in {kept}:
            raise ImportError(name + " is broken")


sys.meta_path.insert(0, Finder())
"""
KEPT = (
    *("watchkeeper.api", "watchkeeper.api.pytest_plugin"),
    *("watchkeeper.console", "watchkeeper.console.extras"),
    *("watchkeeper.suite", "watchkeeper.suite.plugin"),
    *("watchkeeper.suite.github", "watchkeeper.suite.scenario_file"),
)
"""The modules that the start of pytest imports."""
OWN = """
import sys


def test_own():
    assert "watchkeeper.api.pytest_plugin" in sys.modules
"""


def test_the_plugin_aborts_no_run_that_does_not_use_it(tmp_path: Path) -> None:
    """Even if all other modules are broken, a test that uses nothing of it passes."""
    (tmp_path / "sitecustomize.py").write_text(BROKEN.format(kept=KEPT))
    (tmp_path / "test_own.py").write_text(OWN)
    paths = os.pathsep.join([str(tmp_path), str(SOURCE)])

    output = run_in(
        tmp_path, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", PYTHONPATH=paths
    )

    assert "1 passed" in output


def test_a_failed_test_without_runs_is_reported_as_usual(pytester: pytest.Pytester) -> None:
    """The plugin adds nothing to failures of tests that do not use it."""
    pytester.makepyfile("def test_own():\n    assert False\n")

    result = pytester.runpytest_subprocess()

    result.assert_outcomes(failed=1)
    assert "watchkeeper" not in "\n".join(
        line for line in result.outlines if not line.startswith(("plugins:", "rootdir:"))
    )


# --- built and installed ---------------------------------------------------------------


@dataclass(frozen=True)
class Builder:
    """The build tool, and a copy of the project."""

    tools: Path
    project: Path
    folder: Path

    def pip(self, *words: str | Path) -> str:
        """Run pip without network, with the build tool."""
        return run_in(
            self.folder,
            *(*PIP, *words),
            PYTHONPATH=str(self.tools),
            PIP_NO_INDEX="1",
            PIP_DISABLE_PIP_VERSION_CHECK="1",
        )

    def wheel(self, source: Path, name: str) -> Path:
        """Build the wheel of a project, in a folder of this name."""
        out = self.folder / name
        self.pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", out, source)
        (found,) = out.glob("*.whl")
        return found

    def source_archive(self, name: str) -> Path:
        """Build the source archive of the project."""
        out = self.folder / name
        program = f"from setuptools import build_meta; build_meta.build_sdist({str(out)!r})"
        run_in(self.project, sys.executable, "-c", program, PYTHONPATH=str(self.tools))
        (found,) = out.glob("*.tar.gz")
        return found


@dataclass(frozen=True)
class Environment:
    """An environment with the dependencies of this one, but without watchkeeper."""

    folder: Path
    builder: Builder

    @property
    def python(self) -> Path:
        """Its Python."""
        return self.folder / "bin" / "python"

    @property
    def site(self) -> Path:
        """Its own site-packages."""
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    def pip(self, *words: str | Path) -> str:
        """Run pip for this environment."""
        return self.builder.pip("--python", self.python, *words)

    def install(self, wheel: Path) -> None:
        """Install a wheel, without its dependencies."""
        self.pip("install", "--no-deps", wheel)

    def top_level(self) -> set[str]:
        """Return what stands in site-packages, but for metadata and the dependencies."""
        return {
            path.name
            for path in self.site.iterdir()
            if path.suffix not in (".dist-info", ".pth") and path.name != "__pycache__"
        }


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    """Return the build tool; skip where pip reaches no index."""
    if why_no_index():
        pytest.skip(why_no_index())
    folder = tmp_path_factory.mktemp("packaging")
    tools = folder / "tools"
    run_in(folder, *PIP, "install", "--quiet", "--no-deps", "--target", tools, NEEDED)
    return Builder(tools, copy_project(folder / "project"), folder)


@pytest.fixture(scope="module")
def new_environment(
    builder: Builder, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Environment]:
    """Make environments, each in a folder of its own; with one extra or with everything."""

    def make(name: str, extra: str = "") -> Environment:
        dependencies = tmp_path_factory.mktemp("dependencies")
        for path in installed_with(extra) if extra else installed_here():
            link = dependencies / path.name
            link.exists() or link.symlink_to(path)
        folder = tmp_path_factory.mktemp(name)
        run_in(folder, sys.executable, "-m", "venv", "--without-pip", folder)
        found = Environment(folder, builder)
        (found.site / "dependencies.pth").write_text(f"{dependencies}\n")
        return found

    return make


def installed_here() -> Iterator[Path]:
    """Yield everything that is installed, but for watchkeeper."""
    for kind in ("purelib", "platlib"):
        for path in Path(sysconfig.get_path(kind)).iterdir():
            is_ours = path.name.startswith(("watchkeeper", "__editable__"))
            if not is_ours and path.suffix != ".pth":
                yield path


def installed_with(extra: str) -> Iterator[Path]:
    """Yield what an install of watchkeeper with this extra brings, but for watchkeeper."""
    for name in needed_by("watchkeeper", extra) - {"watchkeeper"}:
        files = metadata.distribution(name).files or []
        for part in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            yield Path(str(metadata.distribution(name).locate_file(part)))


def needed_by(name: str, extra: str = "") -> set[str]:
    """Return a distribution and all that it needs, over any number of others."""
    found: set[str] = set()
    waiting = [(name, extra)]
    while waiting:
        distribution, its_extra = waiting.pop()
        found.add(distribution)
        for requirement in metadata.requires(distribution) or []:
            needed = NAME_OF_REQUIREMENT.match(requirement)
            assert needed is not None, requirement
            of_extra = EXTRA_OF_REQUIREMENT.search(requirement)
            is_needed = of_extra is None or of_extra[1] == its_extra
            if is_needed and needed[0] not in found and is_installed(needed[0]):
                waiting.append((needed[0], ""))
    return found


def is_installed(name: str) -> bool:
    """Whether a distribution is there; what only other systems need is not."""
    return any(True for _ in metadata.distributions(name=name))


@pytest.fixture(scope="module")
def wheel(builder: Builder) -> Path:
    """Return the wheel of the project."""
    return builder.wheel(builder.project, "wheel")


@pytest.fixture(scope="module", params=["wheel", "editable"])
def installed(
    request: pytest.FixtureRequest,
    builder: Builder,
    new_environment: Callable[..., Environment],
) -> Environment:
    """Return an environment in which the project is installed, in both ways."""
    environment = new_environment(request.param)
    if request.param == "wheel":
        environment.install(request.getfixturevalue("wheel"))
    else:
        environment.pip(
            *("install", "--no-deps", "--no-build-isolation", "--editable", builder.project)
        )
    return environment


def names_in(wheel: Path) -> set[str]:
    """Return the files of a wheel, without its metadata."""
    with zipfile.ZipFile(wheel) as file:
        names = {name for name in file.namelist() if not name.endswith("/")}
    return {name for name in names if ".dist-info/" not in name}


@pytest.mark.slow
def test_a_wheel_holds_watchkeeper_alone(wheel: Path) -> None:
    """It holds every file of the packages, and nothing of tests, bench and docs."""
    assert names_in(wheel) == packaged_files()
    assert {name.partition("/")[0] for name in names_in(wheel)} == {"watchkeeper"}


@pytest.mark.slow
def test_a_source_archive_builds_the_same_wheel(builder: Builder, wheel: Path) -> None:
    """It holds the packages as files, since an archive need not keep links."""
    archive = builder.source_archive("archive")
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
        links = [
            archived.name
            for archived in file.getmembers()
            if archived.issym() or archived.islnk()
        ]

    assert links == []
    assert [name for name in names if name.startswith(NOT_PACKED)] == []
    assert names_in(builder.wheel(archive, "from-archive")) == names_in(wheel)


@pytest.mark.slow
def test_site_packages_gets_watchkeeper_alone(installed: Environment) -> None:
    """An install adds one package; an editable one adds a path with one package."""
    is_editable = "watchkeeper" not in installed.top_level()
    program = "import watchkeeper, importlib.util as u; print(watchkeeper.__file__)\n" + "".join(
        f"assert u.find_spec({name!r}) is None\n" for name in NAMES
    )

    output = run_in(installed.folder, installed.python, "-c", program)

    # an editable install may add its own finder beside the path
    assert {name for name in installed.top_level() if "editable" not in name} <= {"watchkeeper"}
    home = installed.builder.project / "src" if is_editable else installed.site
    assert Path(output.strip()) == home / "watchkeeper" / "__init__.py"
    assert "watchkeeper" in run_in(
        installed.folder, installed.folder / "bin/watchkeeper", "--help"
    )


@pytest.mark.slow
def test_a_live_run_needs_the_extra_live_alone(
    wheel: Path, new_environment: Callable[..., Environment], tmp_path: Path
) -> None:
    """Without Java and Spark it runs on the ZooKeeper in Python, and names it."""
    environment = new_environment("live", "live")
    environment.install(wheel)
    program = "import importlib.util as u; print(*map(u.find_spec, ('pyspark', 'pytest')))"
    assert run_in(tmp_path, environment.python, "-c", program).split() == ["None", "None"]
    command = environment.folder / "bin/watchkeeper"
    nothing = tmp_path / "nothing"
    nothing.mkdir()

    output = run_in(
        tmp_path,
        *(command, "run", "consumer-crash", "--world", "live", "--no-pictures"),
        PATH=str(nothing),
        JAVA_HOME="",
    )

    assert output.startswith("consumer-crash, hardened, live, seed 0: holds")
    assert "\nzookeeper watchkeeper's own, in Python\n" in output


# --- in another project ----------------------------------------------------------------


def as_packages(folder: Path) -> None:
    """Write a package for each name; `tests` holds packages of these names, too."""
    for name in NAMES:
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "__init__.py").write_text(f"MINE = {name!r}\n")
        inner = folder / "tests" / name
        inner.mkdir(parents=True)
        (inner / "__init__.py").touch()
        (inner / f"test_{name}.py").write_text(
            f"import {name}\n\n\ndef test_it():\n    assert {name}.MINE == {name!r}\n"
        )


def as_modules(folder: Path) -> None:
    """Write a module for each name."""
    for name in NAMES:
        (folder / f"{name}.py").write_text(f"MINE = {name!r}\n")
    lines = "".join(f"    import {name}\n    assert {name}.MINE == {name!r}\n" for name in NAMES)
    (folder / "test_own.py").write_text(f"def test_it():\n{lines}")


def as_folders(folder: Path) -> None:
    """Write a folder without `__init__` for each name, with a module and data in it."""
    for name in NAMES:
        (folder / name).mkdir()
        (folder / name / "own.py").write_text(f"MINE = {name!r}\n")
        (folder / name / "data.yaml").write_text("a: 1\n")
    lines = "".join(
        f"    from {name}.own import MINE\n    assert MINE == {name!r}\n" for name in NAMES
    )
    (folder / "tests" / "test_own.py").write_text(f"def test_it():\n{lines}")


ON_SPARK = """
from pathlib import Path
from watchkeeper.pipeline.session import Wanted, session


def place(_):
    import sys
    import watchkeeper.model, watchkeeper.pipeline, watchkeeper.sim

    return [sys.modules[f"watchkeeper.{name}"].__file__ for name in ("model", "pipeline", "sim")]


if __name__ == "__main__":
    with session(Wanted("local[1]", "packaging", Path("scratch"), "python")) as spark:
        print("|".join(spark.sparkContext.parallelize([0], 1).map(place).first()))
"""


@pytest.fixture(params=[as_packages, as_modules, as_folders])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a project whose parts have the names of this repository's folders."""
    folder = tmp_path / "project"
    folder.mkdir()
    request.param(folder)
    return folder


@pytest.mark.slow
def test_the_tests_of_a_project_pass(project: Path, installed: Environment) -> None:
    """With the plugin loaded, from the folder of the project and by the command alone."""
    runs = [
        run_in(project, installed.python, "-m", "pytest", "-p", "no:cacheprovider"),
        run_in(
            project,
            *(installed.python, "-P", "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", "."),
            *("-o", "pythonpath=."),
        ),
    ]

    for output in runs:
        assert "passed" in output
        assert "failed" not in output
        assert "watchkeeper" in output.partition("plugins:")[2].partition("\n")[0]


@pytest.mark.slow
def test_the_commands_work_in_a_project(project: Path, installed: Environment) -> None:
    """`python -m watchkeeper` finds its own packages and files."""
    output = run_in(
        project, installed.python, "-m", "watchkeeper", "run", "consumer-crash", "--no-pictures"
    )

    assert "consumer-crash" in output


@pytest.mark.slow
@pytest.mark.usefixtures("needs_java")
def test_workers_of_spark_import_what_is_shipped(project: Path, installed: Environment) -> None:
    """They import the packages of the archive that the driver ships."""
    (project / "on_spark.py").write_text(ON_SPARK)

    output = run_in(project, installed.python, "on_spark.py")

    places = output.splitlines()[-1].split("|")
    assert len(places) == 3
    assert all("/watchkeeper-" in place and ".zip/watchkeeper/" in place for place in places), (
        output
    )


@pytest.mark.slow
def test_a_live_member_imports_its_own_packages(project: Path, installed: Environment) -> None:
    """A process of a live run reports that its imports are done."""
    done = subprocess.run(
        [installed.python, "-P", "-m", "watchkeeper.real.member.main"],
        cwd=project,
        env={"PATH": "/usr/bin:/bin"},
        input="\n",
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )

    assert '"ready"' in done.stdout.partition("\n")[0], done.stdout + done.stderr


# --- beside another distribution -------------------------------------------------------


@pytest.fixture
def other_wheel(builder: Builder, tmp_path: Path) -> Path:
    """Return the wheel of another distribution with packages of these names."""
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "other"\nversion = "1"\n'
        f"[tool.setuptools]\npackages = {json.dumps(NAMES)}\n"
    )
    for name in NAMES:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(f"MINE = {name!r}\n")
    return builder.wheel(folder, "other-wheel")


@pytest.mark.slow
@pytest.mark.parametrize("comes_first", ["other", "watchkeeper"])
def test_another_distribution_stays_intact(
    other_wheel: Path,
    wheel: Path,
    comes_first: str,
    new_environment: Callable[[str], Environment],
) -> None:
    """Whichever is installed first, both work; uninstalling this one leaves the other."""
    environment = new_environment("both")
    for archive in (other_wheel, wheel) if comes_first == "other" else (wheel, other_wheel):
        environment.install(archive)
    theirs = "\n".join(f"import {name}; assert {name}.MINE == {name!r}" for name in NAMES)
    ours = "\n".join(f"import watchkeeper.{name}" for name in PACKAGES)

    run_in(environment.folder, environment.python, "-c", f"{theirs}\n{ours}")
    environment.pip("uninstall", "--yes", "watchkeeper")

    run_in(environment.folder, environment.python, "-c", theirs)
    assert environment.top_level() == set(NAMES)
    assert list(environment.site.glob("watchkeeper*")) == []
