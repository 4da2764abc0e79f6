"""Sees to it that `model`, `sim` and the others are this project's and nobody else's."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

HOUSE = ("model", "sim", "real", "scenarios", "reports")


class Shadowed(ImportError):
    """Another package of the same name stands in the way of one of ours."""


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
