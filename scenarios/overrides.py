"""Overrides: a scenario with some of its values changed; `timeline.1.at` is the path of one.

Each part of a path is a field, a name, or an index into a list, from 0. Names and settings
may contain dots: the longest name that matches is taken.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import yaml

from watchkeeper.model.group.settings import KEYS
from watchkeeper.scenarios.schema.schema import ScenarioModel
from watchkeeper.scenarios.schema.validation import fields_at
from watchkeeper.scenarios.text.document import Document, Path, field_name, read_document
from watchkeeper.scenarios.text.errors import ScenarioError, expected, shown

SETTINGS = "config"
"""The field whose keys are Kafka's names of settings."""


class BadChange(ValueError):
    """An override that cannot be applied; its text gives the reason."""


@dataclass(frozen=True, slots=True)
class Change:
    """A path, and the values it is given in turn."""

    path: str
    values: tuple[Any, ...]


def parse_change(text: str) -> Change:
    """Read `PATH=VALUE,VALUE,...`; the values are written as in a scenario file."""
    path, equals, values = text.partition("=")
    if not equals or not path.strip():
        raise BadChange(f"{shown(text)} is not a change; expected PATH=VALUE,VALUE,...")
    try:
        found = read_document(path, f"values: [{values}]".encode()).data["values"]
    except ScenarioError as error:
        message = error.problems[0].message
        raise BadChange(f"{path}: {shown(values)} cannot be read: it {message}") from None
    if not found:
        raise BadChange(f"{path} is given no value; expected PATH=VALUE,VALUE,...")
    return Change(
        path.strip(), tuple({value_text(candidate): candidate for candidate in found}.values())
    )


def value_text(value: Any) -> str:
    """A value as it is shown."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def changed(document: Document, values: Iterable[tuple[str, Any]], name: str) -> str:
    """The text of a scenario with values changed, and with another name."""
    data = copy.deepcopy(document.data)
    for path, value in values:
        _set(data, resolved(document, path), value)
    data["name"] = name
    data.pop("sweep", None)
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
    return text


def resolved(document: Document, path: str) -> Path:
    """Where a path leads to in a document; BadChange where it leads nowhere."""
    parts = path.split(".")
    found: Path = ()
    value = document.data
    while parts:
        key, used = _next(path, found, value, parts)
        parts = parts[used:]
        found = (*found, key)
        value = value[key] if isinstance(key, int) else value.get(key, _nothing_yet(found))
    return found


def _nothing_yet(path: Path) -> Any:
    """The default of a field that is absent: a mapping if it has fields, else None."""
    return {} if path[-1] == SETTINGS or fields_at(ScenarioModel, path) else None


def _next(text: str, found: Path, value: Any, parts: list[str]) -> tuple[str | int, int]:
    """The next step of a path, and how many of its parts that takes."""
    where = field_name(found) or "the scenario"
    if isinstance(value, list):
        if parts[0].isdecimal() and int(parts[0]) < len(value):
            return int(parts[0]), 1
        there = f"0 to {len(value) - 1}" if value else "none"
        raise BadChange(f"{text}: {where} has no entry {parts[0]}; expected {there}")
    if not isinstance(value, dict):
        message = "is not given" if value is None else f"is {shown(value)}"
        raise BadChange(f"{text}: {where} {message}, and there is nothing inside")
    known = {**value, **dict.fromkeys(fields_at(ScenarioModel, found))}
    if found and found[-1] == SETTINGS:
        known |= dict.fromkeys(KEYS)
    for used in range(len(parts), 0, -1):
        if ".".join(parts[:used]) in known:
            return ".".join(parts[:used]), used
    wanted = ".".join(parts) if found and found[-1] == SETTINGS else parts[0]
    if not known:
        raise BadChange(f"{text}: {where} is empty, and {shown(wanted)} is nothing in it")
    raise BadChange(f"{text}: {expected(wanted, f'in {where}', sorted(known))}")


def _set(data: Any, path: Path, value: Any) -> None:
    for key in path[:-1]:
        data = data[key] if isinstance(key, int) else data.setdefault(key, {})
    data[path[-1]] = value


def without_lines(error: ScenarioError) -> str:
    """The problems of a generated scenario, without line numbers, which would mean nothing."""
    return "; ".join(map(str, error.problems))
