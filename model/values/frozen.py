"""Frozen dataclasses that cost little when their module is imported.

`dataclasses.dataclass` writes six methods of a frozen class as source text and compiles them one
by one. A run of a small scenario imports about 130 such classes, and that was a fifth of its
instructions. Here the three methods that have to be fast are compiled in one piece, and the rest
are closures over the names of the fields. Instances compare, hash, print, copy and pickle as
those of `dataclasses.dataclass(frozen=True, slots=True)` do.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, Field, FrozenInstanceError
from typing import TYPE_CHECKING, Any, cast

__all__ = ["dataclass"]

Methods = dict[str, Callable[..., Any]]
FROZEN = {"frozen": True, "slots": True}

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        """Make a dataclass; one that is frozen and has slots costs a third of the usual.

        Every other one, and one that inherits from a dataclass, is left to the standard library.
        """
        if cls is None:
            return lambda kind: dataclass(kind, **options)
        if options != FROZEN or any(map(dataclasses.is_dataclass, cls.__mro__)):
            return dataclasses.dataclass(**options)(cls)
        return _frozen(cls)


def _frozen(cls: type) -> type:
    own = {name for name, value in vars(cls).items() if value is not None}
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    made.__dataclass_params__.frozen = True  # read when a class inherits from this one
    fields = dataclasses.fields(made)
    for name, method in {**_compiled(made, fields), **_closures(made, fields)}.items():
        if name not in own:
            method.__name__ = name
            method.__qualname__ = f"{made.__qualname__}.{name}"
            method.__module__ = made.__module__
            setattr(made, name, method)
    return cast(type, made)


# --- compiled methods ------------------------------------------------------------------


def _compiled(cls: type, fields: tuple[Field[Any], ...]) -> Methods:
    compared = [field.name for field in fields if field.compare]
    hashed = [each.name for each in fields if (each.compare if each.hash is None else each.hash)]
    text = "\n".join(
        (
            *_init(cls, fields),
            "def __eq__(self, other):",
            " if other.__class__ is not self.__class__:",
            "  return NotImplemented",
            f" return {_tuple_of('self', compared)} == {_tuple_of('other', compared)}",
            "def __hash__(self):",
            f" return hash({_tuple_of('self', hashed)})",
        )
    )
    made: dict[str, Any] = {"_set": object.__setattr__, "_missing": MISSING}
    for field in fields:
        made[f"_default_{field.name}"] = field.default
        made[f"_make_{field.name}"] = field.default_factory
    exec(text, made)
    types = {field.name: field.type for field in fields if field.init}
    made["__init__"].__annotations__ = {**types, "return": None}
    return {name: made[name] for name in ("__init__", "__eq__", "__hash__")}


def _tuple_of(instance: str, names: Iterable[str]) -> str:
    return f"({''.join(f'{instance}.{name},' for name in names)})"


def _init(cls: type, fields: tuple[Field[Any], ...]) -> Iterator[str]:
    """The lines of `__init__`: parameters in the order of the fields, those by keyword last."""
    taken = [field for field in fields if field.init]
    by_keyword = [_parameter(field) for field in taken if field.kw_only]
    parameters = ["self", *(_parameter(field) for field in taken if not field.kw_only)]
    parameters += ["*", *by_keyword] if by_keyword else []
    yield f"def __init__({', '.join(parameters)}):"
    yield from map(_assignment, fields)
    yield " self.__post_init__()" if hasattr(cls, "__post_init__") else " return"


def _parameter(field: Field[Any]) -> str:
    if field.default is not MISSING:
        return f"{field.name}=_default_{field.name}"
    return field.name if field.default_factory is MISSING else f"{field.name}=_missing"


def _assignment(field: Field[Any]) -> str:
    value = name = field.name
    if field.default_factory is not MISSING:
        made = f"_make_{name}()"
        value = f"{made} if {name} is _missing else {name}" if field.init else made
    elif not field.init:
        if field.default is MISSING:
            return " pass"  # `__post_init__` sets it
        value = f"_default_{name}"
    return f" _set(self, {name!r}, {value})"


# --- methods that need not be fast -----------------------------------------------------


def _closures(cls: type, fields: tuple[Field[Any], ...]) -> Methods:
    names = [field.name for field in fields]
    shown = [field.name for field in fields if field.repr]

    def text(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{self.__class__.__qualname__}({values})"

    def assign(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        object.__setattr__(self, name, value)

    def delete(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        object.__delattr__(self, name)

    def state(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def restore(self: Any, values: list[Any]) -> None:
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)

    return {
        "__repr__": text,
        "__setattr__": assign,
        "__delattr__": delete,
        "__getstate__": state,
        "__setstate__": restore,
    }
