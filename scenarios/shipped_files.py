"""The files of the scenarios that ship with watchkeeper."""

from __future__ import annotations

from importlib.resources import files

import yaml

_FILES = files("watchkeeper.scenarios") / "files"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml, where PyYAML is built with it: it reads all files in the time of six in Python."""


def shipped() -> list[str]:
    """The names of the scenarios that ship with watchkeeper."""
    return sorted(
        entry.name.removesuffix(".yaml")
        for entry in _FILES.iterdir()
        if entry.name.endswith(".yaml")
    )


def shipped_text(name: str) -> bytes:
    """The content of the file of a shipped scenario."""
    return (_FILES / f"{name}.yaml").read_bytes()


def abouts() -> dict[str, str]:
    """What each shipped scenario shows, by its name.

    The files are read as YAML and not validated, since the schema takes longer to import than
    all of them take to read. Tests validate them, and compare what is returned here.
    """
    return {name: yaml.load(shipped_text(name), _LOADER)["about"] for name in shipped()}
