"""Turns what pydantic found into sentences, and finds what only the whole can show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ValidationError

from model.faults import VERBS
from model.operations import Purpose
from scenarios.problems import Problem, ScenarioError, expected, nearest, shown
from scenarios.reading import Document, Path, field_name
from scenarios.schema import Entry, ScenarioModel

PURPOSES: tuple[str, ...] = Purpose.__args__  # type: ignore[attr-defined]


def validated(document: Document) -> ScenarioModel:
    """The scenario a document holds; ScenarioError lists what is wrong with its form."""
    try:
        return ScenarioModel.model_validate(document.data)
    except ValidationError as error:
        problems = [_problem(document, one) for one in error.errors(include_url=False)]
        raise ScenarioError(document.name, _first_of_each_line(problems)) from None
    except RecursionError:
        said = "is nested too deep"
        raise ScenarioError(document.name, [Problem("", said, 1)]) from None


def _first_of_each_line(problems: list[Problem]) -> list[Problem]:
    """A union that does not fit fails once for each of its forms; the first will do."""
    kept: dict[tuple[int, str], Problem] = {}
    for problem in problems:
        kept.setdefault((problem.line, problem.field), problem)
    return list(kept.values())


def _problem(document: Document, error: Any) -> Problem:
    path = _path_in(document, error["loc"])
    kind = error["type"]
    value = error.get("input")
    if kind == "extra_forbidden":
        words = _fields_at(document, path[:-1])
        return document.problem(path, f"is not a field here{nearest(path[-1], words)}")
    if kind == "missing":
        missing = str(error["loc"][-1])
        inside = field_name(path) or "the scenario"
        return document.problem(path, f"{missing} is missing from {inside}")
    if kind == "literal_error":
        words = [
            word.strip(" '\"")
            for word in error["ctx"]["expected"].replace(" or ", ",").split(",")
        ]
        return document.problem(
            path, expected(value, "one of the words that may stand here", words)
        )
    if kind == "value_error":
        return document.problem(path, f"{shown(value)} {error['ctx']['error']!s}")
    return document.problem(path, f"{shown(value)}: {_sentence(error['msg'])}")


def _sentence(message: str) -> str:
    words = message[0].lower() + message[1:]
    return words.replace("input should be", "expected")


def _path_in(document: Document, location: tuple[str | int, ...]) -> Path:
    """The part of pydantic's location that exists in the document."""
    path: Path = ()
    value = document.data
    for part in location:
        if not _holds(value, part):
            continue
        value = value[part]
        path = (*path, part)
    return path


def _holds(value: Any, part: str | int) -> bool:
    if isinstance(part, int):
        return isinstance(value, list) and part < len(value)
    return isinstance(value, dict) and part in value


def _fields_at(document: Document, path: Path) -> list[str]:
    """The names of the fields that may stand at a path."""
    model: Any = ScenarioModel
    for part in path:
        if isinstance(part, int):
            continue
        field = _field(model, part)
        model = _model_in(field.annotation) if field is not None else model
        if model is None:
            return []
    if not isinstance(model, type) or not issubclass(model, BaseModel):
        return []
    return [field.alias or name for name, field in model.model_fields.items()]


def _field(model: Any, name: str) -> Any:
    if not isinstance(model, type) or not issubclass(model, BaseModel):
        return None
    for key, field in model.model_fields.items():
        if name in (key, field.alias):
            return field
    return None


def _model_in(annotation: Any) -> Any:
    """The model somewhere inside a type such as `dict[str, Model] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in getattr(annotation, "__args__", ()):
        found = _model_in(part)
        if found is not None:
            return found
    return None


# --- entries of the timeline -----------------------------------------------------------


def entry_problems(document: Document, at: int, entry: Any) -> Iterator[Problem]:
    """What is wrong with the form of one entry: its verb, its moment, its options."""
    path: Path = ("timeline", at)
    verbs = verbs_of(entry)
    if len(verbs) != 1:
        said = f"has {len(verbs)} verbs ({', '.join(verbs)})" if verbs else "has no verb"
        yield document.problem(path, f"{said}; expected one of: {', '.join(VERBS)}")
        return
    verb = VERBS[verbs[0]]
    if (entry.at is None) == (entry.on is None):
        yield document.problem(path, "needs either `at` (a time) or `on` (a step), not both")
    elif verb.name == "lose" and entry.on is None:
        yield document.problem(path, "`lose` needs `on`: which request of which member")
    if verb.name != "lose" and entry.on is not None and verb.kind != "fault":
        yield document.problem(path, f"`{verb.name}` happens at a time; `on` is for faults")
    given = options_of(entry)
    for option in given:
        if option not in verb.options:
            allowed = ", ".join(verb.options) or "none"
            said = f"is not an option of `{verb.name}`; its options: {allowed}"
            yield document.problem((*path, option), said)
    for option in verb.required:
        if option not in given:
            yield document.problem(path, f"`{verb.name}` needs `{option}`")


def verbs_of(entry: Any) -> list[str]:
    """The verbs that stand in an entry."""
    return [name for name in VERBS if getattr(entry, name) is not None]


def options_of(entry: Any) -> dict[str, Any]:
    """The options that stand in an entry, by the name they are written with."""
    return {
        field.alias: getattr(entry, name)
        for name, field in Entry.model_fields.items()
        if field.alias is not None and getattr(entry, name) is not None
    }
