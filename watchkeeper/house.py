"""Sees to it that `model`, `sim` and the others are this project's and nobody else's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

EXTRAS = {"kazoo": "live", "pyspark": "spark", "pyarrow": "spark", "hypothesis": "test"}
"""Library -> the extra that installs it."""

HOUSE = ("model", "sim", "real", "explore", "scenarios", "pipeline", "reports")


class Shadowed(ImportError):
    """Another package of the same name stands in the way of one of ours."""


class MissingExtra(ImportError):
    """A library is not installed that only a part of the project needs."""


@contextmanager
def needing(what: str) -> Iterator[None]:
    """Say which extra to install if what is being imported needs a library that is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRAS:
            raise
        raise MissingExtra(
            f"{what} needs {library}, which is not installed; install the extra "
            f"{EXTRAS[library]!r}, for example with pip install 'watchkeeper[{EXTRAS[library]}]'",
            name=library,
        ) from None


def enter() -> None:
    """What is done first of all: look who is at home; the command listens for Ctrl-C too."""
    if not _is_command():
        check_house()
        return
    from watchkeeper.interrupts import INTERRUPTS

    INTERRUPTS.listen()
    try:
        check_house()
    except Shadowed as error:
        from watchkeeper.endings import USAGE, Stop, tell

        sys.exit(tell(Stop(USAGE, str(error)), as_json="--json" in sys.argv))


def _is_command() -> bool:
    """Whether this process is the command, and not a program that imports the library.

    While Python still looks for the module of `python -m`, the first argument is `-m`.
    """
    name = sys.argv[0] if getattr(sys, "argv", None) else ""
    return name == "-m" or Path(name).name == "watchkeeper"


def check_house() -> None:
    """Check that the packages beside this one are those it was installed with.

    Their names are short and common; a folder `model` in the working directory, or
    another distribution, would otherwise be imported in place of ours and fail far away.
    """
    home = Path(__file__).resolve().parent.parent
    for name in HOUSE:
        spec = find_spec(name)
        origin = None if spec is None else spec.origin
        if origin is None or Path(origin).resolve().parent.parent != home:
            found = origin or (
                "nothing" if spec is None else f"a folder without __init__.py, {_where(spec)}"
            )
            raise Shadowed(
                f"watchkeeper needs its own package {name!r}, which stands in {home / name}, "
                f"but Python finds {found}; rename or remove what is in the way, or run from "
                "another folder"
            )


def _where(spec: object) -> str:
    return ", ".join(getattr(spec, "submodule_search_locations", None) or [])
