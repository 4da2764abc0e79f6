"""Sees to it that `model`, `sim` and the others are this project's and nobody else's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

EXTRAS = {"kazoo": "live", "hypothesis": "test"}
"""Library -> the extra that installs it."""

HOUSE = ("model", "sim", "real", "scenarios", "reports")


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
