"""Validates a file with pydantic and turns its errors into sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from watchkeeper.model.plan.faults import VERBS
from watchkeeper.scenarios.schema.schema import ScenarioModel
from watchkeeper.scenarios.text.document import Document, Path
from watchkeeper.scenarios.text.errors import (
    Problem,
    ScenarioError,
    did_you_mean,
    either,
    nearest,
    shown,
)

Form = TypeVar("Form", bound=BaseModel)

MOST_ERRORS = 200
MOST_SPELLED = 6


def validated(document: Document) -> ScenarioModel:
    """The scenario in a document; ScenarioError lists the mistakes of its form."""
    return checked(document, ScenarioModel)


def checked(document: Document, form: type[Form]) -> Form:
    """The content of a document in this form; ScenarioError lists the mistakes."""
    try:
        return form.model_validate(document.data)
    except ValidationError as error:
        found = error.errors(include_url=False)[:MOST_ERRORS]
        raise ScenarioError(document.name, _problems(document, form, found)) from None
    except RecursionError:
        message = "is nested too deep"
        raise ScenarioError(document.name, [Problem("", message, 1)]) from None


def _problems(
    document: Document, form: type[BaseModel], errors: Sequence[Any]
) -> Iterator[Problem]:
    """One sentence an error; one sentence for all the forms that a value may have.

    If a value may have several forms, pydantic reports an error for each that does not fit. If
    one form fits up to an error *inside* it, only that error is of interest.
    """
    misfits: dict[tuple[Path, bool], list[Any]] = {}
    inside: set[Path] = set()
    for error in errors:
        path = _path_in(document, error["loc"])
        inside.update(path[:length] for length in range(len(path)))
        if error["type"] in ("missing", "extra_forbidden"):
            yield document.problem(path, _about_field(document, form, path, error))
            inside.update([path] if error["type"] == "missing" else [])
        else:
            is_key = error["loc"][-1] == "[key]"
            misfits.setdefault((path, is_key), []).append(error)
    for (path, _), found in misfits.items():
        if path not in inside:
            yield document.problem(path, _about_value(form, path, found))


def _about_field(document: Document, form: type[BaseModel], path: Path, error: Any) -> str:
    if error["type"] == "extra_forbidden":
        fields = _fields_of_entry(document, path[:-1]) or fields_at(form, path[:-1])
        return f"is not a field here{nearest(path[-1], fields)}"
    return f"{'' if path else f'a {document.kind.what} '}needs `{error['loc'][-1]}`"


def _fields_of_entry(document: Document, path: Path) -> list[str]:
    """The fields that a timeline entry may have, if its verb is clear."""
    if len(path) != 2 or path[0] != "timeline":
        return []
    entry = document.data["timeline"][path[1]]
    verbs = [verb for verb in VERBS if verb in entry]
    return ["at", "on", verbs[0], *VERBS[verbs[0]].options] if len(verbs) == 1 else []


def _about_value(form: type[BaseModel], path: Path, errors: Sequence[Any]) -> str:
    """The problems of a value in each of the forms that it may have."""
    value = errors[0]["input"]
    misfits = [_misfit(form, path, error) for error in errors]
    for misfit in misfits:
        if not misfit.startswith("is not "):
            return f"{shown(value)} {misfit}"
    if value is None:
        return f"is empty; expected {either(_form(misfit)[0] for misfit in misfits)}"
    words = [word for error in errors for word in _words(error)]
    if not isinstance(value, str) and str(value) in words:
        return f"{shown(value)} is a number; put it in quotes: {str(value)!r}"
    hints = [hint for _, hint in map(_form, misfits) if len(misfits) == 1 or "expected" in hint]
    hint = "".join(hints)
    if words:
        hint = (nearest if len(words) > MOST_SPELLED else did_you_mean)(value, words) or hint
    return f"{shown(value)} is not {either(form for form, _ in map(_form, misfits))}{hint}"


def _form(message: str) -> tuple[str, str]:
    """Split a sentence into what the value is not and the rest."""
    form, semicolon, hint = message.removeprefix("is not ").partition(";")
    return form, semicolon + hint


def _misfit(form: type[BaseModel], path: Path, error: Any) -> str:
    """The mismatch between a value and its form, as a sentence."""
    kind, limits = error["type"], error.get("ctx", {})
    match kind:
        case "value_error":
            return str(limits["error"])
        case "literal_error":
            words = _words(error)
            few = len(words) <= MOST_SPELLED
            return f"is not {either(map(repr, words)) if few else 'a word that may stand here'}"
        case "greater_than_equal":
            return f"is too small; expected at least {limits['ge']}"
        case "less_than_equal":
            return f"is too large; expected at most {limits['le']}"
        case "string_too_long":
            return f"is too long; expected at most {limits['max_length']} characters"
        case "string_too_short":
            return "is empty; expected text"
        case "string_pattern_mismatch":
            signs = "'.', '_' and '-'" if "_" in limits["pattern"] else "'.' and '-'"
            return f"is not a name; expected letters, digits, {signs}, no sign at its beginning"
        case "string_type":
            is_scalar = isinstance(error["input"], bool | int | float)
            return "is not text; put it in quotes" if is_scalar else "is not text"
        case "int_type":
            is_long = str(error["input"]).isdigit()
            return f"is not a whole number{'; expected at most 15 digits' if is_long else ''}"
        case "model_type":
            return f"is not a mapping; expected fields such as {_such_as(form, path)}"
    return f"is not {_NOUNS[kind]}" if kind in _NOUNS else f"is not right: {error['msg']}"


_NOUNS = {
    "bool_type": "true or false",
    "list_type": "a list; put a dash before each entry",
    "dict_type": "a mapping; expected names with their values",
}
"""pydantic's type of error -> what was expected."""


def _words(error: Any) -> list[str]:
    """The words that are allowed in place of a wrong one."""
    if error["type"] != "literal_error":
        return []
    listed = error["ctx"]["expected"].replace(" or ", ",").split(",")
    return [word.strip(" '\"") for word in listed]


def _such_as(form: type[BaseModel], path: Path) -> str:
    return ", ".join(fields_at(form, path)[:3])


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


def fields_at(form: type[BaseModel], path: Path) -> list[str]:
    """The names of the fields that may stand at a path."""
    kinds: list[Any] = [form]
    for part in path:
        kinds = [inner for kind in kinds for inner in _inside(kind, part)]
    return [
        field.alias or name
        for kind in kinds
        if _is_model(kind)
        for name, field in kind.model_fields.items()
    ]


def _inside(kind: Any, part: str | int) -> list[Any]:
    """The types that a part of a value of this type may have."""
    if _is_model(kind):
        named = {field.alias or name: field for name, field in kind.model_fields.items()}
        return _forms(named[part].annotation) if part in named else []
    inner = get_args(kind)
    return _forms(inner[-1]) if get_origin(kind) in (list, dict) else []


def _forms(annotation: Any) -> list[Any]:
    """The types of a union, or the one type there is."""
    if get_origin(annotation) in (Union, UnionType):
        return [form for part in get_args(annotation) for form in _forms(part)]
    return [annotation]


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
