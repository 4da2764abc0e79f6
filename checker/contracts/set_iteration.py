"""Finds where a program goes through a set, whose order differs from one process to the next.

Running a turn twice does not show it, since within one process the order stays. So this looks
at the text of the turn, and of the functions that it uses, for loops and the like over what
is plainly a set: by how it is written, by what its name was last given, by its annotation,
or by what stands in the program's own values. What has no order is let pass: `sorted`, `len`,
`min`, `in`, a set made of a set. A program whose text cannot be read is not looked at.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache, partial
from types import FunctionType, ModuleType
from typing import Any

from explore.own_lines import is_library, package_of
from explore.promises import OrderOfSet
from explore.set_reading import Reading, Where
from model.program import Program


def refuse_orders_of_sets(name: str, program: Program) -> None:
    """Raise where a program goes through a set."""
    for where in orders_of_sets(program):
        raise OrderOfSet(
            f"{name} goes through a set at {where.file}:{where.line}, `{where.text}`; its order "
            "differs from one process to the next: sort it first"
        )


def orders_of_sets(program: Program) -> Iterator[Where]:
    """Every place at which a program goes through a set."""
    values = {type(program.me), type(program.first_memory)}
    waiting = [*_functions_of(program.turn), *_methods_of(values)]
    seen: set[Any] = set()
    turn = _inner(program.turn)
    home = package_of(turn.__code__.co_filename) if isinstance(turn, FunctionType) else ""
    while waiting:
        function = waiting.pop()
        file = function.__code__.co_filename
        if function.__code__ in seen or is_library(file) or package_of(file) not in ("", home):
            continue
        seen.add(function.__code__)
        tree = _text_of(function)
        if tree is None:
            continue
        given = _given(function, program) if function is turn else {}
        yield from Reading(function, tree, given).places()
        waiting += _used_by(function)


def _inner(turn: Any) -> Any:
    """The function that a turn is, under what it was wrapped in."""
    while isinstance(turn, partial):
        turn = turn.func
    if not isinstance(turn, FunctionType) and not inspect.ismethod(turn):
        turn = turn.__call__
    return getattr(turn, "__func__", turn)


def _given(function: FunctionType, program: Program) -> dict[str, Any]:
    """The values that a turn's parameters have in the beginning, from the last one backwards."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return dict(zip(reversed(names), (program.first_memory, program.me), strict=False))


# --- what a function uses --------------------------------------------------------------


def _functions_of(value: Any) -> Iterator[FunctionType]:
    """The functions that a value stands for."""
    if isinstance(value, partial):
        yield from _functions_of(value.func)
    elif inspect.ismethod(value):
        yield from _functions_of(value.__func__)
        yield from _methods_of({type(value.__self__)})
    elif isinstance(value, FunctionType):
        yield inspect.unwrap(value)
    elif isinstance(value, type):
        yield from _methods_of({value})
    elif callable(value):
        yield from _methods_of({type(value)})


def _methods_of(kinds: set[type]) -> Iterator[FunctionType]:
    for kind in kinds:
        for value in vars(kind).values():
            function = getattr(value, "fget", None) or getattr(value, "__func__", value)
            if isinstance(function, FunctionType):
                yield function


def _used_by(function: FunctionType) -> Iterator[FunctionType]:
    """The functions whose names stand in a function, or that it has closed over."""
    names = _names_in(function.__code__)
    cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    for value in [*(function.__globals__.get(name) for name in names), *cells]:
        if isinstance(value, ModuleType):
            inner = (getattr(value, name, None) for name in names)
            for one in inner:
                if isinstance(one, FunctionType):
                    yield one
        elif isinstance(value, FunctionType | partial | type) or inspect.ismethod(value):
            yield from _functions_of(value)


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _names_in(code: Any) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if inspect.iscode(constant):
            names |= _names_in(constant)
    return names


# --- its text --------------------------------------------------------------------------

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@cache
def _module_text(file: str) -> ast.Module | None:
    try:
        with open(file, encoding="utf-8") as text:
            return ast.parse(text.read(), file)
    except (OSError, SyntaxError, ValueError):
        return None


def _text_of(function: FunctionType) -> Function | None:
    """The text of a function; None where it cannot be read."""
    code = function.__code__
    module = _module_text(code.co_filename)
    if module is None:
        return None
    for node in ast.walk(module):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(one.lineno for one in decorators)])
        if first == code.co_firstlineno and getattr(node, "name", "<lambda>") == code.co_name:
            return node
    return None
