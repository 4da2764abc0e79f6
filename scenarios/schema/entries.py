"""The form of a timeline entry: its verb, its moment, its options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from watchkeeper.model.plan.faults import VERBS, Verb
from watchkeeper.scenarios.schema.schema import HOST, LONGEST_NAME, NAME, OPTION_FIELDS, Entry
from watchkeeper.scenarios.text.document import Document, Path
from watchkeeper.scenarios.text.errors import Problem, either, not_just_one, shown

NOT_A_NAME = (
    "is not a name; expected letters, digits, '.', '_' and '-', no sign at its beginning, at "
    f"most {LONGEST_NAME} characters"
)
NO_TIME_AT_ALL = {"abandon": ", or `crash` the process instead", "write_znode": ""}
"""Verbs with a `for` that may be left out, and what else may have been meant."""


def entry_problems(document: Document, at: int, entry: Any) -> Iterator[Problem]:
    """The problems with the form of one entry: its verb, its moment, its options."""
    path: Path = ("timeline", at)
    verbs = verbs_of(entry)
    if len(verbs) != 1:
        yield _one_verb(document, path, verbs)
        return
    verb = VERBS[verbs[0]]
    yield from _moment_problems(document, path, entry, verb)
    given = options_of(entry)
    for option in given:
        if option not in verb.options:
            yield document.problem((*path, option), _not_an_option(option, verb))
    for required in verb.required:
        if required not in given:
            message = f"`{verb.name}` needs `{required}`: {OPTION_FIELDS[required][2]}"
            yield document.problem(path, message)
        elif given[required] == 0:
            written = shown(document.data["timeline"][at][required])
            message = f"{written} is no time at all; expected more"
            yield document.problem((*path, required), message)
    yield from _own_problems(document, path, entry, verb)


def _own_problems(document: Document, path: Path, entry: Any, verb: Verb) -> Iterator[Problem]:
    """The problems with options that belong to one or two verbs only."""
    if "partitions" in verb.options:
        message = not_just_one(
            partitions=entry.partitions, partitions_per_broker=entry.partitions_per_broker
        )
        if message:
            yield document.problem(path, message)
    if verb.name in NO_TIME_AT_ALL and entry.for_ == 0:
        written = shown(document.data["timeline"][path[-1]]["for"])
        message = f"{written} is no time at all; leave it out{NO_TIME_AT_ALL[verb.name]}"
        yield document.problem((*path, "for"), message)
    if verb.name == "create_topic" and not is_name(entry.create_topic):
        message = f"{shown(entry.create_topic)} {NOT_A_NAME}"
        yield document.problem((*path, verb.name), message)
    if verb.name == "move" and entry.to is not None and not _is_address(entry.to):
        message = f"{shown(entry.to)} is not an address; expected a host, or host:port"
        yield document.problem((*path, "to"), message)


def is_name(text: str) -> bool:
    """Whether a text is a valid name."""
    return len(text) <= LONGEST_NAME and re.fullmatch(NAME, text) is not None


def _is_address(text: str) -> bool:
    found = re.fullmatch(rf"{HOST}(?::([0-9]{{1,5}}))?", text)
    return found is not None and 1 <= int(found[1] or 1) <= 65_535


def _one_verb(document: Document, path: Path, verbs: list[str]) -> Problem:
    if verbs:
        message = f"has {len(verbs)} verbs, {' and '.join(verbs)}; make an entry of each"
        return document.problem(path, message)
    written = document.data["timeline"][path[-1]]
    for name, verb in VERBS.items():
        if name in written:
            message = f"is empty; expected the name of a {either(verb.targets)}"
            return document.problem((*path, name), message)
    doable = ", ".join(name for name, verb in VERBS.items() if verb.worlds)
    return document.problem(path, f"has no verb; expected one of: {doable}")


def _moment_problems(document: Document, path: Path, entry: Any, verb: Verb) -> Iterator[Problem]:
    if entry.at is not None and entry.on is not None:
        yield document.problem(path, "has both `at` and `on`; expected only one of the two")
    elif verb.name == "lose" and entry.on is None:
        yield document.problem(path, "`lose` needs `on`: which request of which member")
    elif entry.at is None and entry.on is None:
        yield document.problem(path, "needs `at` (a time) or `on` (a step of a member)")
    elif entry.on is not None and verb.kind != "fault":
        yield document.problem(path, f"`{verb.name}` happens at a time; `on` is for faults")


def _not_an_option(option: str, verb: Verb) -> str:
    others = [f"`{other.name}`" for other in VERBS.values() if option in other.options]
    has = (
        f"has {', '.join(f'`{option}`' for option in verb.options)}"
        if verb.options
        else "has none"
    )
    return f"is an option of {', '.join(others)}, not of `{verb.name}`, which {has}"


def verbs_of(entry: Any) -> list[str]:
    """The verbs in an entry."""
    return [name for name in VERBS if getattr(entry, name) is not None]


def options_of(entry: Any) -> dict[str, Any]:
    """The options in an entry, by the name they are written with."""
    return {
        field.alias: getattr(entry, name)
        for name, field in Entry.model_fields.items()
        if field.alias is not None and getattr(entry, name) is not None
    }
