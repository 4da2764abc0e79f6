"""The layout of the code: which package imports which, sizes, words, what is packed."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import networkx
import pytest

from tests import HOME
from tests.support.source_tree import (
    COMMANDS,
    PACKAGES,
    all_modules,
    folder_arrows,
    folder_of,
    imports_of,
    modules,
    package_of,
    packages_in,
    tree_of,
)

PROJECT = tomllib.loads((HOME / "pyproject.toml").read_text())
LONGEST_FILE = 500
LONGEST_FUNCTION = 50
LARGEST_FOLDER = 15
"""Modules in one folder, `__init__` not counted."""

# --- arrows ----------------------------------------------------------------------------

ARROWS = {
    "model": {"model"},
    "sim": {"sim", "model"},
    "real": {"real", "model"},
    "virtual": {"virtual", "model", "reports"},  # a failing run writes its page
    "checker": {"checker", "model"},
    "scenarios": {"scenarios", "model"},
    "pipeline": {"pipeline", "model", "sim"},
    "reports": {"reports", "model"},
}
"""Package -> the packages of watchkeeper that it may import; the API and commands import all."""

AT_HOME = {
    "simpy": {"sim"},
    "matplotlib": {"reports"},
    "networkx": {"reports", "checker"},
    "pydantic": {"scenarios"},
    "kazoo": {"real", "virtual"},
    "greenlet": {"virtual"},
    "cramjam": {"model"},
    "numpy": {"checker", "pipeline", "model"},
    "pyspark": {"pipeline"},
    "py4j": {"pipeline"},
    "pyarrow": {"pipeline"},
    "duckdb": {"pipeline"},
}
"""Library -> the packages that may import it."""


def test_packages_import_only_what_their_arrows_allow() -> None:
    """`model` imports no other package, the worlds import `model`."""
    strays = [
        f"{module} imports {sorted(wrong)}"
        for module in modules(*PACKAGES)
        for wrong in [packages_in(module) & {*PACKAGES, *COMMANDS} - ARROWS[package_of(module)]]
        if wrong
    ]

    assert strays == []


def test_commands_import_in_one_direction() -> None:
    """The parts of the command line form a line, from the console to the commands."""
    strays = [
        f"{module} imports {imported}"
        for module in modules(*COMMANDS)
        for imported in packages_in(module) & set(COMMANDS)
        if COMMANDS.index(imported) > COMMANDS.index(package_of(module))
    ]

    source = HOME / "src/watchkeeper"
    folders = {path.parent.name for path in source.glob("*/__init__.py")}
    assert folders == {*COMMANDS, *PACKAGES}
    assert strays == []


def test_folders_form_no_cycle() -> None:
    """No folder imports, over any number of others, a folder that imports it."""
    graph = networkx.DiGraph(
        (importer, imported) for importer, all_ in folder_arrows().items() for imported in all_
    )

    cycles = [
        sorted(part) for part in networkx.strongly_connected_components(graph) if len(part) > 1
    ]

    assert cycles == []


def test_nothing_is_imported_from_the_top_of_the_repository() -> None:
    """`model`, `sim` and the others are imported as parts of `watchkeeper`.

    A program that starts in this folder would find them without it, and nowhere else.
    """
    everywhere = [str(python_file.relative_to(HOME)) for python_file in _python_files()]
    strays = [
        f"{module}:{line} imports {name}"
        for module in everywhere
        for line, name in imports_of(module)
        if name.partition(".")[0] in PACKAGES
    ]

    assert strays == []


def _python_files() -> Iterator[Path]:
    for folder in ("src", "tests", "bench", "docs", "examples"):
        yield from (HOME / folder).rglob("*.py")


def test_only_sweeps_import_the_simulation() -> None:
    """Jobs on traces and logs do not need it."""
    strays = [
        module
        for module in modules("pipeline")
        if "sim" in packages_in(module) and not module.startswith("pipeline/sweeps/")
    ]

    assert strays == []


def test_each_library_is_imported_in_its_own_package() -> None:
    """A library that one package imports can be replaced there."""
    strays = [
        f"{module} imports {name}"
        for module in modules(*PACKAGES)
        for name in packages_in(module) & set(AT_HOME)
        if package_of(module) not in AT_HOME[name]
    ]

    assert strays == []


NOT_IN_MODEL = {
    *("asyncio", "concurrent", "ctypes", "datetime", "io", "multiprocessing", "os", "pathlib"),
    *("queue", "random", "secrets", "select", "shutil", "signal", "socket", "subprocess", "sys"),
    *("tempfile", "threading", "time", "uuid"),
}


def test_the_model_has_no_clock_and_no_io() -> None:
    """No I/O, no clock, no randomness: the world supplies them."""
    strays = {module: packages_in(module) & NOT_IN_MODEL for module in modules("model")}

    assert {module: wrong for module, wrong in strays.items() if wrong} == {}


DIFFERS = {"id", "hash", "open", "print", "input", "eval", "exec", "globals"}


def called_in(module: str) -> set[str]:
    """The builtin functions that a module calls outside of `__hash__`."""
    tree = tree_of(module)
    exempt = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "__hash__"
        for inner in ast.walk(node)
    }
    return {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node not in exempt
    }


def test_the_model_calls_nothing_that_differs_between_runs() -> None:
    """`id` and `hash` change from process to process, `open` and `print` do I/O."""
    strays = {module: called_in(module) & DIFFERS for module in modules("model")}

    assert {module: wrong for module, wrong in strays.items() if wrong} == {}


def test_every_imported_library_is_a_declared_dependency() -> None:
    """Every library that the packages import stands in pyproject.toml."""
    declared = {
        dependency.split(">")[0].split("[")[0].lower()
        for dependency in PROJECT["project"]["dependencies"]
    }
    extras = {"hypothesis", "pytest", "kazoo", "greenlet", "pyspark", "py4j", "pyarrow", "duckdb"}
    ours = {*PACKAGES, *COMMANDS, "watchkeeper"}
    owners = packages_distributions()

    undeclared = {
        f"{module}: {name}"
        for module in all_modules()
        for name in packages_in(module) - ours - set(sys.stdlib_module_names) - extras
        if not declared.intersection(owner.lower() for owner in owners.get(name, [name]))
    }

    assert undeclared == set()


HEAVY = (
    *("simpy", "matplotlib", "networkx", "pydantic", "pyspark", "pyarrow", "kazoo", "numpy"),
    "yaml",
)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        *([name, "--help"] for name in ("run", "audit", "sweep", "analyze", "activity")),
    ],
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    """Help is printed at once."""
    program = (
        "import json, sys\n"
        "from watchkeeper.cli.main import main\n"
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


def test_files_are_short() -> None:
    """A file is as long as the one thing it defines, up to about 500 lines."""
    lengths = {module: len((HOME / module).read_text().splitlines()) for module in all_modules()}

    assert {module: n for module, n in lengths.items() if n > LONGEST_FILE} == {}


def test_functions_are_short() -> None:
    """Fifty lines at most, the docstring included."""
    long = [
        f"{module}:{node.lineno} {node.name}"
        for module in all_modules()
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= LONGEST_FUNCTION
    ]

    assert long == []


def test_folders_are_small() -> None:
    """A folder holds at most about fifteen modules."""
    sizes = Counter(
        folder_of(module) for module in all_modules() if not module.endswith("__init__.py")
    )

    assert {folder: n for folder, n in sizes.items() if n > LARGEST_FOLDER} == {}


# --- words -----------------------------------------------------------------------------


def test_every_module_has_a_docstring() -> None:
    """A module begins with a sentence, unless there is nothing in it."""
    assert [
        module
        for module in all_modules()
        if tree_of(module).body and not ast.get_docstring(tree_of(module))
    ] == []


DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def test_docstrings_can_be_encoded() -> None:
    """Python 3.13 encodes them when it compiles a module: half a character ends the import."""
    for module in all_modules():
        for node in ast.walk(tree_of(module)):
            if isinstance(node, DOCUMENTED):
                (ast.get_docstring(node) or "").encode()


def test_every_package_opens_with_a_guided_tour() -> None:
    """The `__init__` of each folder says what is in it and where to begin reading."""
    bare = [
        module
        for module in all_modules()
        if module.endswith("__init__.py") and not ast.get_docstring(tree_of(module))
    ]

    assert bare == []


LEFT_OVER = ("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")
ELSEWHERE = ("../" + "shared", "/" + "work/", "/" + "root/", "/" + "home/")


def texts() -> list[str]:
    """Every text file of the project."""
    kinds = {".py", ".md", ".toml", ".yaml", ".css", ".js", ".html", ".cfg"}
    folders = [HOME / name for name in (*PACKAGES, "src", "tests", "bench", "docs", "examples")]
    found = [*HOME.glob("*"), *(path for folder in folders for path in folder.rglob("*"))]
    return sorted(
        str(path.relative_to(HOME)) for path in found if path.suffix in kinds and path.is_file()
    )


@pytest.mark.parametrize("words", [LEFT_OVER, ELSEWHERE], ids=["left over", "elsewhere"])
def test_nothing_is_left_over(words: tuple[str, ...]) -> None:
    """No note of unfinished work, and no path of the machine that a file was written on."""
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
    for statement in (statement for body in bodies for statement in body):
        if isinstance(statement, ast.Assign) and is_mutable(statement.value):
            yield from (ast.unparse(target) for target in statement.targets)
        elif isinstance(statement, ast.AnnAssign) and is_mutable(statement.value):
            yield ast.unparse(statement.target)


def test_the_model_keeps_nothing_between_runs() -> None:
    """No mutable globals: a table has a name in capitals, and `__all__` is a list."""
    mutable = [
        f"{module}: {name}"
        for module in modules("model")
        for name in mutable_globals(module)
        if name != "__all__" and name != name.upper()
    ]
    declared = [
        module
        for module in modules("model")
        if any(isinstance(node, ast.Global) for node in ast.walk(tree_of(module)))
    ]

    assert (mutable, declared) == ([], [])


def changed_names(module: str) -> Iterator[tuple[int, str]]:
    """Line and name of whatever is changed in place: by a method, an item, or `+=`."""
    for node in ast.walk(tree_of(module)):
        changed: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            changed = [node.func.value] if node.func.attr in MUTATORS else []
        elif isinstance(node, ast.Assign | ast.Delete):
            changed = [
                target.value for target in node.targets if isinstance(target, ast.Subscript)
            ]
        elif isinstance(node, ast.AugAssign):
            changed = [node.target]
        for target in changed:
            inner = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(inner, ast.Name | ast.Attribute):
                yield node.lineno, inner.id if isinstance(inner, ast.Name) else inner.attr


def test_tables_stay_as_they_are_written() -> None:
    """A name in capitals is never changed in place."""
    changed = [
        f"{module}:{line} {name}"
        for module in all_modules()
        for line, name in changed_names(module)
        if name == name.upper() and len(name) > 1
    ]

    assert changed == []
