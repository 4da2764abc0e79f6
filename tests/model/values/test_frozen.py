"""Frozen dataclasses without generated code: they are what the standard library makes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields, replace
from typing import Any

import pytest

from watchkeeper.model.values.frozen import dataclass

Make = Callable[..., Any]


class _Made:
    """A class as it is written, for two decorators."""

    first: int
    second: str = "two"
    third: list[int] = field(default_factory=list)
    unseen: int = field(default=4, compare=False, repr=False)
    counted: int = field(default=5, init=False)
    named: tuple[int, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        if self.first < 0:
            raise ValueError("first is negative")


def _class(decorate: Make, form: type = _Made) -> Any:
    body = {name: value for name, value in vars(form).items() if name not in _OF_ANY_CLASS}
    return decorate(frozen=True, slots=True)(type("Value", (), {**body, "__doc__": "A value."}))


_OF_ANY_CLASS = ("__dict__", "__weakref__", "__doc__")
USUAL = _class(dataclasses.dataclass)
OURS = _class(dataclass)
globals()["Value"] = OURS  # where pickle looks for it


@pytest.mark.parametrize("arguments", [(1,), (1, "x"), (2, "x", [3]), (1, "two", [], 9)])
@pytest.mark.parametrize("other", [(1,), (2, "x", [3]), (1, "two", [], 10)])
def test_instances_compare_and_print_as_usual(
    arguments: tuple[Any, ...], other: tuple[Any, ...]
) -> None:
    """Equal where the compared fields are, and with the same text."""
    usual, ours = USUAL(*arguments), OURS(*arguments)

    assert repr(ours) == repr(usual)
    assert (ours == OURS(*other)) == (usual == USUAL(*other))
    assert (ours != OURS(*other)) == (usual != USUAL(*other))
    assert ours != usual
    assert dataclasses.asdict(ours) == dataclasses.asdict(usual)


def test_hashes_are_those_of_the_compared_fields() -> None:
    """The hash is the usual one, so sets have the order that they would have."""
    hashed = {"third": (), "named": (7,)}

    assert hash(OURS(1, "x", **hashed)) == hash(USUAL(1, "x", **hashed))
    assert hash(OURS(1, "x", unseen=1, **hashed)) == hash(OURS(1, "x", unseen=2, **hashed))
    with pytest.raises(TypeError, match="unhashable"):
        hash(OURS(1))


def test_parameters_are_those_of_the_fields() -> None:
    """Names, order, kinds; defaults are made anew for each instance."""
    usual, ours = (inspect.signature(each).parameters for each in (USUAL, OURS))

    assert [(each.name, each.kind) for each in ours.values()] == [
        (each.name, each.kind) for each in usual.values()
    ]
    assert OURS.__match_args__ == USUAL.__match_args__
    assert OURS(1).third is not OURS(1).third
    assert OURS(1).counted == 5
    with pytest.raises(TypeError, match="first"):
        OURS()
    with pytest.raises(TypeError, match="unexpected keyword argument 'fourth'"):
        OURS(1, fourth=4)
    with pytest.raises(ValueError, match="negative"):
        OURS(-1)


def test_an_instance_cannot_change() -> None:
    """Neither a field nor anything else is assigned or deleted; a copy takes changes."""
    value = OURS(1)

    for name in ("first", "other"):
        with pytest.raises(FrozenInstanceError, match=f"assign to field '{name}'"):
            setattr(value, name, 2)
        with pytest.raises(FrozenInstanceError, match=f"delete field '{name}'"):
            delattr(value, name)
    assert replace(value, first=2) == OURS(2)
    assert [each.name for each in fields(value)] == [each.name for each in fields(USUAL)]
    assert not hasattr(value, "__dict__")


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))]
)
def test_copies_are_equal(again: Callable[[Any], Any]) -> None:
    """Copies, deep ones, and what comes back from another process."""
    value = OURS(1, "x", [2], 6, named=(7,))

    other = again(value)

    assert (other, other.unseen, other.counted) == (value, 6, 5)
    assert other is not value


class _Own:
    """A class with methods of its own."""

    first: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.first % 2 == other.first % 2

    def __repr__(self) -> str:
        return f"<{self.first}>"


class _OwnHash(_Own):
    first: int
    __eq__ = _Own.__eq__
    __repr__ = _Own.__repr__

    def __hash__(self) -> int:
        return 7


@pytest.mark.parametrize("form", [_Own, _OwnHash])
def test_methods_of_the_class_stay(form: type) -> None:
    """What a class defines is not replaced; a hash is added where there is only an `__eq__`."""
    usual, ours = _class(dataclasses.dataclass, form), _class(dataclass, form)

    assert ours(1) == ours(3) != ours(2)
    assert (repr(ours(1)), hash(ours(1))) == (repr(usual(1)), hash(usual(1)))


@dataclass(frozen=True, slots=True)
class Base:
    """A class to inherit from."""

    first: int


@dataclass(frozen=True, slots=True)
class Derived(Base):
    """One that inherits is left to the standard library, and is frozen as well."""

    second: int = 2


@dataclass(slots=True)
class Open:
    """One that may change."""

    first: int = 1


def test_what_inherits_or_may_change_is_the_usual() -> None:
    """Those classes have the fields of both, and an open one can change."""
    assert Derived(1) == Derived(1, 2) != Base(1)
    assert repr(Derived(1)) == "Derived(first=1, second=2)"
    with pytest.raises(FrozenInstanceError):
        Derived(1).first = 2  # type: ignore[misc]
    value = Open()
    value.first = 3
    assert value == Open(3)
    with pytest.raises(TypeError, match="non-frozen"):
        dataclass(slots=True)(type("Wrong", (Base,), {"__annotations__": {"third": "int"}}))
