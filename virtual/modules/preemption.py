"""A switch point before each statement of a module, by rewriting its syntax tree.

Threads of Python may be switched between any two instructions; in virtual time they are switched
at locks, sends and waits alone. That misses the races of plain variables: a counter that is read
and written in two lines. The modules that a test names get a call before each statement within
their functions, at which the policy may let another thread run.

`sys.settrace` would not do: a switch within a trace function leaves the other greenlets without
theirs. Line numbers stay those of the source, so tracebacks show what they always do.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from types import CodeType

from watchkeeper.virtual.threads.current import current_scheduler

SWITCH_POINT = "__switch_point__"
"""The name by which the rewritten code finds `switch_point`."""
BLOCKS = ("body", "orelse", "finalbody")
DECLARATIONS = (ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom)


def switch_point() -> None:
    """Let the policy run other threads here, if a thread of a world runs."""
    scheduler = current_scheduler()
    if scheduler is not None and scheduler.running is not None:
        scheduler.switch_point()


@lru_cache(maxsize=256)
def preempted_code(source: str, file: str) -> CodeType:
    """Compile a module with its switch points; raises SyntaxError as `compile` does."""
    tree = ast.parse(source, file)
    _Rewriting().visit(tree)
    ast.fix_missing_locations(tree)
    return compile(tree, file, "exec", dont_inherit=True)


class _Rewriting(ast.NodeTransformer):
    """Adds the calls within functions; what a module or a class does once stays as it is."""

    def __init__(self) -> None:
        self._depth = 0

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        begins = _length_of_head(node.body)
        node.body = [*node.body[:begins], *_with_points(node.body[begins:])]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A function."""
        return self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """A coroutine."""
        return self._visit_function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """A class: its methods are functions, its body is not."""
        depth, self._depth = self._depth, 0
        self.generic_visit(node)
        self._depth = depth
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Add points to the blocks of every other statement within functions."""
        super().generic_visit(node)
        is_statement = isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case)
        is_definition = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if self._depth and is_statement and not is_definition:
            for name in BLOCKS:
                block = getattr(node, name, None)
                if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                    setattr(node, name, _with_points(block))
        return node


def _length_of_head(body: list[ast.stmt]) -> int:
    """How many statements stand first whatever happens: the docstring."""
    first = body[0]
    is_docstring = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    return int(is_docstring)


def _with_points(block: list[ast.stmt]) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for statement in block:
        if not isinstance(statement, DECLARATIONS):
            found.append(_point_at(statement))
        found.append(statement)
    return found


def _point_at(statement: ast.stmt) -> ast.stmt:
    call = ast.Call(ast.Name(SWITCH_POINT, ast.Load()), [], [])
    point = ast.Expr(call)
    for node in (point, call, call.func):
        ast.copy_location(node, statement)
        node.end_lineno, node.end_col_offset = statement.lineno, statement.col_offset
    return point
