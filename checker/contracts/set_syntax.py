"""Finds the places at which one function iterates over a set, in its syntax tree."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Set
from types import FunctionType
from typing import Any, NamedTuple

ORDERED_BY = ("list", "tuple", "enumerate", "iter", "zip", "map", "filter", "deque")
"""Functions whose answer has the order of what they are given."""
WITHOUT_ORDER = ("sorted", "set", "frozenset", "any", "all", "sum", "min", "max", "len")
"""Functions to whose answer the order does not matter."""
MAKERS = ("set", "frozenset")
SET_WORDS = ("set", "frozenset", "Set", "FrozenSet", "AbstractSet", "MutableSet")
SET_METHODS = ("union", "intersection", "difference", "symmetric_difference")
VIEWS = ("keys", "items")
OPERATORS = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)


class SourceLine(NamedTuple):
    """A place in a file."""

    file: str
    line: int
    text: str


class SetIterationVisitor(ast.NodeVisitor):
    """Visits one function from its first line to its last."""

    def __init__(self, function: FunctionType, tree: Any, known_values: dict[str, Any]) -> None:
        self.file = function.__code__.co_filename
        self.owner = function.__qualname__.rpartition(".")[0]
        """The class whose method it is, if it is one."""
        self.globals = function.__globals__
        self.tree = tree
        self.known_values = known_values
        """Parameter -> a value that it may have."""
        self.sets: dict[str, bool] = {}
        """Name -> whether it was last given a set."""
        self.types: dict[str, str] = {}
        """Name -> the class it is annotated with."""
        self.found: list[SourceLine] = []
        self.harmless: set[ast.AST] = set()
        """Comprehensions whose order does not matter."""

    def places(self) -> Iterator[SourceLine]:
        """Yield every place at which the function iterates over a set."""
        self._parameters(self.tree.args)
        body = self.tree.body
        for statement in body if isinstance(body, list) else [body]:
            self.visit(statement)
        yield from self.found

    def _parameters(self, arguments: ast.arguments) -> None:
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        for parameter in every:
            self._annotated(parameter.arg, parameter.annotation)
        if every and every[0].annotation is None:
            self.types[every[0].arg] = self.owner

    def _annotated(self, name: str, annotation: ast.expr | None) -> None:
        self.sets.pop(name, None)
        if annotation is not None:
            text = ast.unparse(annotation).strip("'\"")
            self.types[name] = text
            self.sets[name] = _is_set_word(text)

    # --- what is a set -----------------------------------------------------------------

    def is_set(self, node: ast.expr) -> bool:
        """Whether an expression is plainly a set."""
        if isinstance(node, ast.Set | ast.SetComp):
            return True
        if isinstance(node, ast.Name):
            return self._name_is_set(node.id)
        if isinstance(node, ast.NamedExpr | ast.Await | ast.Starred):
            return self.is_set(node.value)
        if isinstance(node, ast.IfExp):
            return self.is_set(node.body) or self.is_set(node.orelse)
        if isinstance(node, ast.BoolOp):
            return any(self.is_set(value) for value in node.values)
        if isinstance(node, ast.BinOp) and isinstance(node.op, OPERATORS):
            return any(
                self.is_set(operand) or _is_view(operand) for operand in (node.left, node.right)
            )
        if isinstance(node, ast.Call):
            return self._call_makes_set(node)
        if isinstance(node, ast.Attribute):
            return self._attribute_is_set(node)
        return False

    def _name_is_set(self, name: str) -> bool:
        if name in self.sets:
            return self.sets[name]
        value = self.known_values.get(name, self.globals.get(name))
        return isinstance(value, Set) and not hasattr(value, "mapping")

    def _call_makes_set(self, node: ast.Call) -> bool:
        function = node.func
        if isinstance(function, ast.Name):
            if function.id in MAKERS and function.id not in self.globals:
                return True
            returns = getattr(self.globals.get(function.id), "__annotations__", {})
            return _is_set_word(str(returns.get("return", "")))
        is_method = isinstance(function, ast.Attribute) and function.attr in (
            *SET_METHODS,
            "copy",
        )
        return is_method and self.is_set(function.value)  # type: ignore[attr-defined]

    def _attribute_is_set(self, node: ast.Attribute) -> bool:
        """By the value that a parameter has, or by the annotation in its class."""
        if not isinstance(node.value, ast.Name):
            return False
        name = node.value.id
        if name in self.known_values and isinstance(
            getattr(self.known_values[name], node.attr, None), Set
        ):
            return True
        kind = self.globals.get(self.types.get(name, ""))
        kinds = kind.__mro__ if isinstance(kind, type) else ()
        fields = (vars(class_).get("__annotations__", {}) for class_ in kinds)
        return any(_is_set_word(str(_word(field.get(node.attr, "")))) for field in fields)

    # --- iteration ---------------------------------------------------------------------

    def _check_iteration(self, node: ast.expr, at: ast.AST) -> None:
        if self.is_set(node):
            text = ast.unparse(at).partition("\n")[0]
            self.found.append(SourceLine(self.file, node.lineno, text))

    def visit_For(self, node: ast.For) -> None:
        """A loop."""
        self._loop(node)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> None:
        """A loop."""
        self._loop(node)

    def _loop(self, node: ast.For | ast.AsyncFor) -> None:
        self._check_iteration(node.iter, node)
        self._assign(node.target, None)
        self.generic_visit(node)

    def _comprehension(self, node: Any) -> None:
        is_harmless = node in self.harmless and not any(
            isinstance(child, ast.Await) for child in ast.walk(node)
        )
        before = dict(self.sets)
        for generator in node.generators:
            if not is_harmless:
                self._check_iteration(generator.iter, node)
            self._assign(generator.target, None)
        self.generic_visit(node)
        self.sets = before

    def visit_ListComp(self, node: ast.ListComp) -> None:
        """A list has the order of what it is made of."""
        self._comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        """So has a dict."""
        self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        """So has a generator, unless what takes it does not care."""
        self._comprehension(node)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        """A set made of another has no order either."""
        self.harmless.add(node)
        self._comprehension(node)

    def visit_Call(self, node: ast.Call) -> None:
        """What keeps the order of what it is given, or throws it away, or takes anything."""
        function = node.func
        name = function.id if isinstance(function, ast.Name) else ""
        if name in WITHOUT_ORDER and hasattr(builtins, name) and name not in self.globals:
            self.harmless.update(node.args)
        else:
            keeps = name in ORDERED_BY
            if isinstance(function, ast.Attribute):
                keeps = function.attr in ("join", "fromkeys", "extend", "from_iterable")
                if function.attr == "pop" and not node.args:
                    self._check_iteration(function.value, node)
            for argument in node.args:
                if keeps or isinstance(argument, ast.Starred):
                    self._check_iteration(argument, node)
        self.generic_visit(node)

    def visit_List(self, node: ast.List) -> None:
        """A list that a set is unpacked into."""
        self._unpacked(node)

    def visit_Tuple(self, node: ast.Tuple) -> None:
        """A tuple that a set is unpacked into."""
        self._unpacked(node)

    def _unpacked(self, node: ast.List | ast.Tuple) -> None:
        for element in node.elts:
            if isinstance(element, ast.Starred) and isinstance(element.ctx, ast.Load):
                self._check_iteration(element, node)
        self.generic_visit(node)

    # --- what names are given ----------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> None:
        """A name gets a value; what is unpacked into several goes through it."""
        self.visit(node.value)
        for target in node.targets:
            if isinstance(target, ast.Tuple | ast.List):
                self._check_iteration(node.value, node)
            self._assign(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """A name gets a type, and perhaps a value."""
        if node.value is not None:
            self.visit(node.value)
        if isinstance(node.target, ast.Name):
            self._annotated(node.target.id, node.annotation)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        """A name gets a value in passing."""
        self.visit(node.value)
        self._assign(node.target, node.value)

    def _assign(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self.sets[target.id] = value is not None and self.is_set(value)
            self.types.pop(target.id, None)
        elif isinstance(target, ast.Tuple | ast.List):
            for element in target.elts:
                self._assign(element, None)


def _word(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")


def _is_set_word(text: str) -> bool:
    """Whether an annotation says set: `set[str]`, `frozenset[int] | None`."""
    first = text.partition("[")[0].partition("|")[0].strip().rpartition(".")[2]
    return first in SET_WORDS


def _is_view(node: ast.expr) -> bool:
    """Whether an expression is `something.keys()` or `something.items()`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in VIEWS
        and not node.args
    )
