"""The source of watchkeeper as data: its modules, what each imports, and the folders between."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from tests import HOME

PACKAGES = ("model", "sim", "real", "virtual", "checker", "scenarios", "pipeline", "reports")
"""The folders at the top of the repository that `watchkeeper` holds as subpackages."""
COMMANDS = (
    "console",
    "testing",
    "api",
    "run",
    "suite",
    "check",
    "sweep",
    "operate",
    "experiment",
    "analyze",
    "logs",
    "cli",
)
"""The folders of `src/watchkeeper`: API and command line; each imports only those before it."""


def modules(*packages: str) -> list[str]:
    """The paths, from the repository's folder, of all modules of these packages."""
    folders = [
        HOME / package if package in PACKAGES else HOME / "src/watchkeeper" / package
        for package in packages
    ]
    return sorted(
        str(path.relative_to(HOME)) for folder in folders for path in folder.rglob("*.py")
    )


def all_modules() -> list[str]:
    """The paths of all modules of watchkeeper."""
    top = sorted((HOME / "src/watchkeeper").glob("*.py"))
    return [str(path.relative_to(HOME)) for path in top] + modules(*PACKAGES, *COMMANDS)


def name_of(module: str) -> str:
    """The dotted name by which a module is imported."""
    inner = module.removeprefix("src/watchkeeper/").removesuffix(".py")
    return ".".join(["watchkeeper", *inner.split("/")]).removesuffix(".__init__")


def folder_of(module: str) -> str:
    """The folder of a module, as a dotted name."""
    name = name_of(module)
    return name if module.endswith("__init__.py") else name.rpartition(".")[0]


@cache
def tree_of(module: str) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse((HOME / module).read_text(), module)


def imports_of(module: str) -> Iterator[tuple[int, str]]:
    """Line and full name of every import in a module, at any depth.

    `from a import b` is `a.b` where that is a module, and `a` otherwise.
    """
    names = _names()
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno} imports relatively"
            base = node.module or ""
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield node.lineno, full if full in names else base


@cache
def _names() -> frozenset[str]:
    return frozenset(map(name_of, all_modules()))


def packages_in(module: str) -> set[str]:
    """The packages from which a module imports; ours by the name of the subpackage."""
    found = set()
    for _, name in imports_of(module):
        top, _, inner = name.partition(".")
        found.add(inner.partition(".")[0] or top if top == "watchkeeper" else top)
    return found


def package_of(module: str) -> str:
    """The subpackage of `watchkeeper` that a module belongs to; `watchkeeper` for the top."""
    return name_of(module).partition(".")[2].partition(".")[0] or "watchkeeper"


def folder_arrows() -> dict[str, set[str]]:
    """Folder -> the folders it imports from."""
    arrows: dict[str, set[str]] = {}
    for module in all_modules():
        home = folder_of(module)
        for _, name in imports_of(module):
            if name.startswith("watchkeeper."):
                imported = name if name in _packages() else name.rpartition(".")[0]
                if imported != home:
                    arrows.setdefault(home, set()).add(imported)
    return arrows


@cache
def _packages() -> frozenset[str]:
    return frozenset(
        name_of(module) for module in all_modules() if module.endswith("__init__.py")
    )
