"""Checks of the arguments of `simulate`: each mistake gives a sentence with the expectation."""

from __future__ import annotations

import os
from collections.abc import Mapping
from inspect import iscoroutinefunction
from typing import Any

import yaml

from watchkeeper.api.named_profile import NamedProfile
from watchkeeper.model.actor.program import Program
from watchkeeper.scenarios import Scenario, from_text, load
from watchkeeper.scenarios.text.document import Path, field_name
from watchkeeper.scenarios.text.errors import shown
from watchkeeper.scenarios.text.size_check import DEEPEST

Source = str | os.PathLike[str] | Mapping[str, Any] | Scenario

_SOURCES = (
    "the name of a shipped scenario, a file's path, a mapping of a scenario's fields, or a "
    "scenario that has been read"
)
_PLAIN = "text, a number, true or false, None, a list or a mapping"


def scenario_of(source: Source) -> Scenario:
    """Return a scenario from a scenario, a shipped name, a file's path, or its fields."""
    if isinstance(source, Scenario):
        return source
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
    if isinstance(source, str):
        return load(source)
    if not isinstance(source, Mapping):
        raise TypeError(f"the scenario is {_described(source)}; expected {_SOURCES}")
    fields = _plain(source, ())
    name = fields.get("name")
    text = yaml.safe_dump(fields, sort_keys=False)
    return from_text(f"{name if isinstance(name, str) else 'scenario'}.yaml", text, source="")


def _plain(value: Any, path: Path) -> Any:
    """Return a copy in types of YAML; raise TypeError for any other type."""
    if len(path) > 2 * DEEPEST:
        raise ValueError(f"{field_name(path[:1])} is nested more than {DEEPEST} deep")
    if isinstance(value, Mapping):
        return {_key(key, path): _plain(item, (*path, key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, (*path, at)) for at, item in enumerate(value)]
    match value:
        case None | True | False:
            return value
        case str():
            return str.__str__(value)
        case int():
            return int.__int__(value)
        case float():
            return float.__float__(value)
    raise TypeError(f"{field_name(path)} is {_described(value)}; expected {_PLAIN}")


def _key(key: Any, path: Path) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    where = field_name(path) or "the scenario"
    raise TypeError(f"{where} has the key {shown(key)}, {_described(key)}; expected text")


def _described(value: Any) -> str:
    return "None" if value is None else f"{shown(value)} of type {type(value).__name__}"


def checked_profile(profile: Any) -> NamedProfile | None:
    """The profile of that name, if one is given."""
    if profile is None or isinstance(profile, NamedProfile):
        return profile
    if not isinstance(profile, str | os.PathLike):
        raise TypeError(
            f"profile is {_described(profile)}; expected the path of a profile file or None"
        )
    from watchkeeper.api.profile import profile_of  # its schema; few runs name a profile

    return profile_of(os.fspath(profile))


def check_choices(seed: Any, variant: Any, consumer: Any) -> None:
    """Refuse an invalid seed, variant name or program."""
    if type(seed) is not int:
        raise TypeError(f"seed is {_described(seed)}; expected a whole number")
    if variant is not None and not isinstance(variant, str):
        raise TypeError(f"variant is {_described(variant)}; expected a variant's name or None")
    if consumer is None:
        return
    if not isinstance(consumer, Program):
        raise TypeError(
            f"consumer is {_described(consumer)}; expected a Program(turn, None, first_memory)"
        )
    turn = consumer.turn
    if not iscoroutinefunction(turn) and not iscoroutinefunction(type(turn).__call__):
        raise TypeError(
            f"the turn of the consumer is {_described(turn)}; expected an `async def "
            "turn(zk, me, memory)`"
        )
