"""The files of the scenarios that ship with watchkeeper."""

from __future__ import annotations

from importlib.resources import files

import yaml

_FILES = files("watchkeeper.scenarios") / "files"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml, where PyYAML is built with it: it reads all files in the time of six in Python."""
_END = yaml.MappingEndEvent, yaml.SequenceEndEvent
_BEGIN = yaml.MappingStartEvent, yaml.SequenceStartEvent


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

    Each file is read as YAML up to that key, which is one of the first, and is not validated:
    the schema takes longer to import than all of them take to read. Tests validate them, and
    compare what is returned here.
    """
    return {name: _about_of(shipped_text(name)) for name in shipped()}


def _about_of(text: bytes) -> str:
    depth, key = 0, ""
    for event in yaml.parse(text, _LOADER):
        if isinstance(event, _BEGIN):
            depth += 1
        elif isinstance(event, _END):
            depth -= 1
            key = ""  # what has ended was the value of a key, or is deeper
        elif isinstance(event, yaml.ScalarEvent) and depth == 1:
            if key == "about":
                return str(event.value)
            key = "" if key else event.value
    raise KeyError("about")
