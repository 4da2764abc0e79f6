"""The house stays as it was drawn: who imports whom, how long things are, what is not used."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

import pytest

from watchkeeper.house import HOUSE

HOME = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((HOME / "pyproject.toml").read_text())
OURS = ("watchkeeper", *HOUSE)
LONGEST_FILE = 350
LONGEST_FUNCTION = 50


def modules(*folders: str) -> list[str]:
    """The modules of these packages, by their paths in the project."""
    found = [path for folder in folders for path in (HOME / folder).rglob("*.py")]
    return sorted(str(path.relative_to(HOME)) for path in found)


@cache
def tree_of(module: str) -> ast.Module:
    """What a module says."""
    return ast.parse((HOME / module).read_text(), module)


def imports_of(module: str) -> Iterator[tuple[int, str]]:
    """Line and full name of everything a module imports, wherever in it that stands."""
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno} imports relatively"
            yield node.lineno, node.module or ""


def packages_in(module: str) -> set[str]:
    """The packages from which a module imports."""
    return {name.partition(".")[0] for _, name in imports_of(module)}


# --- arrows ----------------------------------------------------------------------------

ARROWS = {
    "model": {"model"},
    "sim": {"sim", "model"},
    "real": {"real", "model"},
    "explore": {"explore", "model"},
    "scenarios": {"scenarios", "model"},
    "pipeline": {"pipeline", "model", "sim"},
    "reports": {"reports", "model"},
    "watchkeeper": set(OURS),
}
"""Package -> the packages of this project that it may import."""

AT_HOME = {
    "simpy": {"sim"},
    "matplotlib": {"reports"},
    "networkx": {"reports", "explore"},
    "pydantic": {"scenarios"},
    "kazoo": {"real"},
    "cramjam": {"model"},
    "numpy": {"explore", "pipeline", "model"},
    "pyspark": {"pipeline"},
    "py4j": {"pipeline"},
    "pyarrow": {"pipeline"},
}
"""Library -> the packages that may import it."""


def test_every_package_has_its_arrows() -> None:
    """A package that is added has to be drawn into the picture."""
    assert set(ARROWS) == set(OURS)


@pytest.mark.parametrize("module", modules(*OURS))
def test_arrows_point_where_they_may(module: str) -> None:
    """`model` imports no other package, the worlds import `model`, the door looks outward."""
    allowed = ARROWS[module.partition("/")[0]]

    assert packages_in(module) & set(OURS) <= allowed


@pytest.mark.parametrize("module", modules("pipeline"))
def test_only_what_runs_a_sweep_knows_the_simulation(module: str) -> None:
    """Jobs on traces and logs have no need of it."""
    assert "sim" not in packages_in(module) or module.startswith("pipeline/sweeps/")


@pytest.mark.parametrize("module", modules(*OURS))
def test_libraries_stay_where_they_belong(module: str) -> None:
    """One package knows each of them, so that it could be exchanged there."""
    package = module.partition("/")[0]

    strays = {name for name in packages_in(module) & set(AT_HOME) if package not in AT_HOME[name]}

    assert strays == set()


NOT_IN_MODEL = {
    *("asyncio", "concurrent", "ctypes", "datetime", "io", "multiprocessing", "os", "pathlib"),
    *("queue", "random", "secrets", "select", "shutil", "signal", "socket", "subprocess", "sys"),
    *("tempfile", "threading", "time", "uuid"),
}


@pytest.mark.parametrize("module", modules("model"))
def test_the_model_knows_no_clock_and_no_machine(module: str) -> None:
    """No I/O, no clock, no randomness: whatever it needs, it asks its world for."""
    assert packages_in(module) & NOT_IN_MODEL == set()


DIFFERS = {"id", "hash", "open", "print", "input", "eval", "exec", "globals"}


@pytest.mark.parametrize("module", modules("model"))
def test_the_model_calls_nothing_that_differs_between_runs(module: str) -> None:
    """`id` and `hash` change from process to process, `open` and `print` touch the world."""
    tree = tree_of(module)
    exempt = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "__hash__"
        for inner in ast.walk(node)
    }
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node not in exempt
    }

    assert called & DIFFERS == set()


def test_what_is_imported_is_declared() -> None:
    """Every library that the packages import is a dependency that is written down."""
    declared = {
        dependency.split(">")[0].split("[")[0].lower()
        for dependency in PROJECT["project"]["dependencies"]
    }
    extras = {"hypothesis", "pytest", "kazoo", "pyspark", "py4j", "pyarrow"}
    owners = packages_distributions()

    undeclared = {
        f"{module}: {name}"
        for module in modules(*OURS)
        for name in packages_in(module) - set(OURS) - set(sys.stdlib_module_names) - extras
        if not declared.intersection(owner.lower() for owner in owners.get(name, [name]))
    }

    assert undeclared == set()


HEAVY = (
    *("simpy", "matplotlib", "networkx", "pydantic", "pyspark", "pyarrow", "kazoo", "numpy"),
    "yaml",
)


@pytest.mark.skipif(find_spec("watchkeeper.cli") is None, reason="there is no command line yet")
@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        *([name, "--help"] for name in ("run", "audit", "sweep", "analyze", "activity")),
    ],
)
def test_help_is_there_at_once(arguments: list[str]) -> None:
    """Asking for help loads nothing heavy."""
    program = (
        "import json, sys\n"
        "from watchkeeper.cli import main\n"
        f"sys.argv = ['watchkeeper', *{arguments!r}]\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=HOME, capture_output=True, text=True, check=True
    )

    assert "Usage" in done.stdout
    assert set(json.loads(done.stderr.splitlines()[-1])) & set(HEAVY) == set()


# --- sizes -----------------------------------------------------------------------------


@pytest.mark.parametrize("module", modules(*OURS))
def test_files_are_short(module: str) -> None:
    """A file that cannot be read in one sitting is two files."""
    assert len((HOME / module).read_text().splitlines()) <= LONGEST_FILE


@pytest.mark.parametrize("module", modules(*OURS))
def test_functions_are_short(module: str) -> None:
    """Fifty lines at most, the docstring included."""
    long = {
        node.name: node.end_lineno - node.lineno + 1
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= LONGEST_FUNCTION
    }

    assert long == {}


# --- words -----------------------------------------------------------------------------


@pytest.mark.parametrize("module", modules(*OURS))
def test_every_module_says_what_it_is_for(module: str) -> None:
    """A module begins with a sentence, unless there is nothing in it."""
    tree = tree_of(module)

    assert ast.get_docstring(tree) or not tree.body


LEFT_OVER = ("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")
ELSEWHERE = ("../" + "shared", "/" + "work/", "/" + "root/", "/" + "home/")


def texts() -> list[str]:
    """Every file of the project that somebody reads."""
    kinds = {".py", ".md", ".toml", ".yaml", ".css", ".js", ".html", ".cfg"}
    folders = [HOME / name for name in (*OURS, "tests", "bench", "docs")]
    found = [*HOME.glob("*"), *(path for folder in folders for path in folder.rglob("*"))]
    return sorted(
        str(path.relative_to(HOME)) for path in found if path.suffix in kinds and path.is_file()
    )


@pytest.mark.parametrize("words", [LEFT_OVER, ELSEWHERE], ids=["left over", "elsewhere"])
def test_nothing_is_left_over(words: tuple[str, ...]) -> None:
    """What is not done is not in the files, and no file knows the machine it was written on."""
    found = [
        f"{name}: {word}"
        for name in texts()
        for word in words
        if word in (HOME / name).read_text(errors="replace")
    ]

    assert found == []


# --- globals ---------------------------------------------------------------------------

MUTABLE_CALLS = {
    "dict",
    "list",
    "set",
    "defaultdict",
    "deque",
    "Counter",
    "OrderedDict",
    "bytearray",
}
MUTABLE = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
MUTATORS = {
    *("append", "extend", "insert", "remove", "pop", "popitem", "clear", "update", "setdefault"),
    *("add", "discard", "sort", "reverse", "difference_update", "intersection_update"),
}


def is_mutable(value: ast.expr | None) -> bool:
    """Whether an expression makes something that can be changed."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id in MUTABLE_CALLS
    return isinstance(value, MUTABLE)


def mutable_globals(module: str) -> Iterator[str]:
    """The names of a module, and of its classes, that are bound to something mutable."""
    tree = tree_of(module)
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    for statement in (one for body in bodies for one in body):
        if isinstance(statement, ast.Assign) and is_mutable(statement.value):
            yield from (ast.unparse(target) for target in statement.targets)
        elif isinstance(statement, ast.AnnAssign) and is_mutable(statement.value):
            yield ast.unparse(statement.target)


@pytest.mark.parametrize("module", modules("model"))
def test_the_model_keeps_nothing_between_runs(module: str) -> None:
    """No mutable globals: what is a table is written in capitals, and `__all__` is a list."""
    names = [name for name in mutable_globals(module) if name != "__all__"]

    assert [name for name in names if name != name.upper()] == []
    assert not [one for one in ast.walk(tree_of(module)) if isinstance(one, ast.Global)]


def changed_names(module: str) -> Iterator[tuple[int, str]]:
    """Line and name of whatever is changed in place: by a method, an item, or `+=`."""
    for node in ast.walk(tree_of(module)):
        changed: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            changed = [node.func.value] if node.func.attr in MUTATORS else []
        elif isinstance(node, ast.Assign | ast.Delete):
            changed = [one.value for one in node.targets if isinstance(one, ast.Subscript)]
        elif isinstance(node, ast.AugAssign):
            changed = [node.target]
        for one in changed:
            inner = one.value if isinstance(one, ast.Subscript) else one
            if isinstance(inner, ast.Name | ast.Attribute):
                yield node.lineno, inner.id if isinstance(inner, ast.Name) else inner.attr


@pytest.mark.parametrize("module", modules(*OURS))
def test_tables_stay_as_they_are_written(module: str) -> None:
    """What is written in capitals is never changed, here or from elsewhere."""
    changed = [
        name for _, name in changed_names(module) if name == name.upper() and len(name) > 1
    ]

    assert changed == []


# --- packing ---------------------------------------------------------------------------


def test_every_package_is_packed() -> None:
    """What is imported from the folder can be imported once it is installed."""
    folders = {str(Path(module).parent).replace("/", ".") for module in modules(*OURS)}

    assert folders == set(PROJECT["tool"]["setuptools"]["packages"])


def test_every_file_of_a_package_is_packed() -> None:
    """A scenario, a style sheet or a script that is not packed is missed on other machines."""
    packed = PROJECT["tool"]["setuptools"]["package-data"]

    forgotten = [
        str(path.relative_to(HOME))
        for package in OURS
        for path in (HOME / package).rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
        if not any(fnmatch(path.name, pattern) for pattern in packed.get(package, []))
    ]

    assert forgotten == []


def test_no_folder_beside_the_packages_bears_their_names() -> None:
    """Tests and benchmarks stand in no folder that could be taken for a package."""
    inner = {
        path.name
        for folder in ("tests", "bench", "docs")
        for path in (HOME / folder).rglob("*")
        if path.is_dir()
    }

    assert inner & set(OURS) == set()
