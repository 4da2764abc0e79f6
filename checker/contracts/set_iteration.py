"""A lint that finds iteration over sets, whose order differs from one process to the next.

Running a turn twice does not reveal it, since the order is stable within one process. So the
source of the turn, and of the functions that it uses, is searched for loops and the like over
what is plainly a set: by its syntax, by the last assignment to its name, by its annotation,
or by a value of the program. Uses without an order are fine: `sorted`, `len`, `min`, `in`, a
set made of a set. A program whose source cannot be read is not checked.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache, partial
from types import FunctionType, ModuleType
from typing import Any

from watchkeeper.checker.contracts.contracts import IteratesOverSet
from watchkeeper.checker.contracts.set_syntax import SetIterationVisitor, SourceLine
from watchkeeper.checker.contracts.source_lines import is_library, package_of
from watchkeeper.model.actor.program import Program


def refuse_set_iteration(name: str, program: Program) -> None:
    """Raise IteratesOverSet where a program iterates over a set."""
    for where in set_iterations(program):
        raise IteratesOverSet(
            f"{name} iterates over a set at {where.file}:{where.line}, `{where.text}`; its order "
            "differs from one process to the next: sort it first"
        )


def set_iterations(program: Program) -> Iterator[SourceLine]:
    """Yield every place at which a program iterates over a set."""
    values = {type(program.me), type(program.initial_state)}
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
        known_values = _known_parameters(function, program) if function is turn else {}
        yield from SetIterationVisitor(function, tree, known_values).places()
        waiting += _used_by(function)


def _inner(turn: Any) -> Any:
    """The function that a turn is, under what it was wrapped in."""
    while isinstance(turn, partial):
        turn = turn.func
    if not isinstance(turn, FunctionType) and not inspect.ismethod(turn):
        turn = turn.__call__
    return getattr(turn, "__func__", turn)


def _known_parameters(function: FunctionType, program: Program) -> dict[str, Any]:
    """The values that a turn's parameters have in the beginning, from the last one backwards."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return dict(zip(reversed(names), (program.initial_state, program.me), strict=False))


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
            for referent in inner:
                if isinstance(referent, FunctionType):
                    yield referent
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
        first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
        if first == code.co_firstlineno and getattr(node, "name", "<lambda>") == code.co_name:
            return node
    return None
