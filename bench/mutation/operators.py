"""The operators: small edits of a source that leave it a program.

Each operator is a function from a place in the syntax tree to the edits there. An edit replaces
the text of one node, so an edited source differs from the original in that node alone.

Left alone: docstrings, annotations, decorators, assertions, imports, the arguments of `raise`
(the texts of errors) and of `emit` (what only the trace shows), and `strict=True` of `zip`,
which is an assertion. A string is not edited either: the texts in these modules are paths,
which reader and writer share, and names of purposes for the trace.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass

MODULE = "<module>"
"""The function of an edit that stands outside of functions."""


@dataclass(frozen=True, slots=True)
class Place:
    """A node, and what an operator has to know of its surroundings."""

    node: ast.AST
    parent: ast.AST
    function: ast.FunctionDef | ast.AsyncFunctionDef | None
    is_left_alone: bool = False
    """Whether edits here count for the ordinals of others, and are not made."""


@dataclass(frozen=True, slots=True)
class Edit:
    """The replacement of one node by a text."""

    node: ast.AST
    text: str


@dataclass(frozen=True, slots=True)
class SourceEdit:
    """An edit of a source, with the name by which it stays known when lines move."""

    function: str
    """The qualified name of the function around it."""
    operator: str
    ordinal: int
    """The number of the edit among those of this operator in this function, from 1."""
    line: int
    """The first line that is edited."""
    last_line: int
    text: str
    """The first line, without indentation."""
    start: int
    """The first byte that is replaced."""
    end: int
    replacement: str

    @property
    def name(self) -> str:
        """Function, operator and ordinal."""
        return f"{self.function}:{self.operator}:{self.ordinal}"

    @property
    def is_at_import(self) -> bool:
        """Whether it takes effect at the import: outside of functions, or in a class's body."""
        is_class = self.function[:1].isupper() and "." not in self.function
        return self.function == MODULE or is_class

    def apply(self, source: str) -> str:
        """Return the edited source."""
        data = source.encode()
        return (data[: self.start] + self.replacement.encode() + data[self.end :]).decode()


# --- conditions ------------------------------------------------------------------------

ORDER: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


def comparisons(place: Place) -> Iterator[Edit]:
    """Move a bound by one, or turn a comparison into its opposite."""
    node = place.node
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        other = {**ORDER, **OPPOSITES}[type(node.ops[0])]
        yield _replaced(node, ops=[other()])


def negations(place: Place) -> Iterator[Edit]:
    """Negate a condition that is no comparison with an opposite."""
    node = place.node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield Edit(node, _text(node.operand))
        return
    for test in _tests(node):
        is_opposed = isinstance(test, ast.Compare) and type(test.ops[0]) in OPPOSITES
        is_not = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        if not (is_opposed or is_not or isinstance(test, ast.Constant)):
            yield Edit(test, f"(not {_text(test)})")


def _tests(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        return [node.test]
    return list(node.ifs) if isinstance(node, ast.comprehension) else []


def connectives(place: Place) -> Iterator[Edit]:
    """Swap `and` and `or`."""
    node = place.node
    if isinstance(node, ast.BoolOp):
        yield _replaced(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())


def filters(place: Place) -> Iterator[Edit]:
    """Drop the condition of a comprehension."""
    node = place.node
    if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp):
        for at, generator in enumerate(node.generators):
            if generator.ifs:
                other = deepcopy(node)
                other.generators[at].ifs = []
                yield Edit(node, ast.unparse(other))


# --- values ----------------------------------------------------------------------------


def numbers(place: Place) -> Iterator[Edit]:
    """Add one to a number."""
    node = place.node
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield Edit(node, str(node.value + 1))


def flags(place: Place) -> Iterator[Edit]:
    """Swap True and False."""
    node = place.node
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield Edit(node, str(not node.value))


ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


def arithmetic(place: Place) -> Iterator[Edit]:
    """Replace an arithmetic operator, or one of sets."""
    node = place.node
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        yield _replaced(node, op=ARITHMETIC[type(node.op)]())


EMPTY = {ast.ListComp: "[]", ast.GeneratorExp: "(())", ast.DictComp: "{}", ast.SetComp: "set()"}


def collections(place: Place) -> Iterator[Edit]:
    """Replace a comprehension by an empty collection."""
    node = place.node
    if type(node) in EMPTY:
        yield Edit(node, EMPTY[type(node)])


def elements(place: Place) -> Iterator[Edit]:
    """Drop an element of a collection that is put together with a star."""
    node = place.node
    if not isinstance(node, ast.Tuple | ast.List) or not isinstance(node.ctx, ast.Load):
        return
    if any(isinstance(element, ast.Starred) for element in node.elts):
        for at in range(len(node.elts)):
            yield _replaced(node, elts=[*node.elts[:at], *node.elts[at + 1 :]])


def orders(place: Place) -> Iterator[Edit]:
    """Leave a collection in the order in which it comes."""
    node = place.node
    if _calls(node, "sorted"):
        assert isinstance(node, ast.Call), "it is a call"
        yield Edit(node, f"list({_text(node.args[0])})")


# --- statements ------------------------------------------------------------------------


def statements(place: Place) -> Iterator[Edit]:
    """Remove a statement that names no local variable."""
    node = place.node
    if isinstance(node, ast.Break | ast.Continue) or (
        isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)
    ):
        yield Edit(node, "pass")
    elif isinstance(node, ast.Assign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if all(isinstance(target, ast.Attribute | ast.Subscript) for target in targets):
            yield Edit(node, "pass")


def early_returns(place: Place) -> Iterator[Edit]:
    """End a function before its first statement: with nothing, or with the state unchanged."""
    node = place.node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    body = [statement for statement in node.body if not _is_docstring(statement)]
    returned = [found.value for found in ast.walk(node) if isinstance(found, ast.Return)]
    names = [argument.arg for argument in node.args.args]
    if _yields(node) or not body:
        return
    if any(returned):
        if "state" in names and "State" in ast.unparse(node.returns or ast.Constant(None)):
            yield Edit(body[0], _before(body[0], "return state"))
    elif len(body) > 1:
        yield Edit(body[0], _before(body[0], "return"))


def late_returns(place: Place) -> Iterator[Edit]:
    """Go on where a branch returns."""
    node = place.node
    if isinstance(node, ast.Return) and isinstance(place.parent, ast.If | ast.ExceptHandler):
        yield Edit(node, "pass")


def handlers(place: Place) -> Iterator[Edit]:
    """Raise an error that is handled; handle one that is raised again."""
    node = place.node
    if not isinstance(node, ast.ExceptHandler):
        return
    body = node.body
    if len(body) == 1 and isinstance(body[0], ast.Raise) and body[0].exc is None:
        yield Edit(body[0], "pass")
    else:
        yield Edit(body[0], _before(body[0], "raise"))


def loops(place: Place) -> Iterator[Edit]:
    """End a loop after its first round."""
    node = place.node
    if isinstance(node, ast.For):
        yield Edit(node.iter, f"list({_text(node.iter)})[:1]")


# --- calls -----------------------------------------------------------------------------


def keywords(place: Place) -> Iterator[Edit]:
    """Leave a field of a state, or of an attempt, as it is."""
    node = place.node
    if _calls(node, "replace", "update"):
        assert isinstance(node, ast.Call), "it is a call"
        for at in range(len(node.keywords)):
            yield _replaced(node, keywords=[*node.keywords[:at], *node.keywords[at + 1 :]])


def arguments(place: Place) -> Iterator[Edit]:
    """Swap two neighbouring arguments of the same kind."""
    node = place.node
    if not isinstance(node, ast.Call):
        return
    kinds = _kinds(place.function)
    for at in range(len(node.args) - 1):
        first, second = node.args[at], node.args[at + 1]
        kind = _kind(first, kinds)
        if kind and kind == _kind(second, kinds) and _text(first) != _text(second):
            swapped = [*node.args[:at], second, first, *node.args[at + 2 :]]
            yield _replaced(node, args=swapped)


def _kinds(function: ast.FunctionDef | ast.AsyncFunctionDef | None) -> dict[str, str]:
    if function is None:
        return {}
    given = (*function.args.args, *function.args.kwonlyargs)
    return {item.arg: ast.unparse(item.annotation) for item in given if item.annotation}


def _kind(argument: ast.expr, kinds: dict[str, str]) -> str:
    if isinstance(argument, ast.Name):
        return kinds.get(argument.id, "")
    if isinstance(argument, ast.Constant):
        return type(argument.value).__name__
    return "attribute" if isinstance(argument, ast.Attribute) else ""


def steps(place: Place) -> Iterator[Edit]:
    """Leave out a step of a rebalance, or take it before the one that precedes it."""
    node = place.node
    if not isinstance(place.parent, ast.keyword) or not isinstance(node, ast.Tuple):
        return
    if not (place.parent.arg or "").startswith("steps"):
        return
    for at in range(len(node.elts)):
        yield _replaced(node, elts=[*node.elts[:at], *node.elts[at + 1 :]])
    for at in range(len(node.elts) - 1):
        pair = [node.elts[at + 1], node.elts[at]]
        yield _replaced(node, elts=[*node.elts[:at], *pair, *node.elts[at + 2 :]])


OPERATORS: dict[str, Callable[[Place], Iterator[Edit]]] = {
    "comparison": comparisons,
    "negation": negations,
    "connective": connectives,
    "filter": filters,
    "number": numbers,
    "flag": flags,
    "arithmetic": arithmetic,
    "collection": collections,
    "element": elements,
    "order": orders,
    "statement": statements,
    "early return": early_returns,
    "late return": late_returns,
    "handler": handlers,
    "loop": loops,
    "keyword": keywords,
    "arguments": arguments,
    "step": steps,
}
"""Every operator, by its name."""


# --- a whole source --------------------------------------------------------------------


def edits_of(source: str, operators: tuple[str, ...] = tuple(OPERATORS)) -> list[SourceEdit]:
    """Return the edits of a source, in the order of its text."""
    lines = _Lines(source)
    found: Counter[tuple[str, str]] = Counter()
    edits: list[SourceEdit] = []
    for name, place in _places(ast.parse(source)):
        for operator in operators:
            for edit in OPERATORS[operator](place):
                found[name, operator] += 1
                if not place.is_left_alone:
                    ordinal = found[name, operator]
                    edits.append(lines.edit(name, operator, ordinal, edit))
    return edits


def _places(tree: ast.Module) -> Iterator[tuple[str, Place]]:
    """Yield each place that operators may edit, with the name of its function."""
    waiting: list[tuple[str, Place]] = [
        (MODULE, Place(node, tree, None)) for node in reversed(tree.body)
    ]
    while waiting:
        name, place = waiting.pop()
        node, function = place.node, place.function
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = node.name if name == MODULE else f"{name}.{node.name}"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node
        yield name, place
        is_left_alone = place.is_left_alone or _is_left_alone(node)
        waiting += [
            (name, Place(child, node, function, is_left_alone))
            for child in reversed(list(_children(node)))
        ]


def _is_left_alone(node: ast.AST) -> bool:
    """Whether a node is a call of `emit`, or the keyword `strict`."""
    return _calls(node, "emit") or (isinstance(node, ast.keyword) and node.arg == "strict")


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node that may be edited."""
    if isinstance(node, ast.Assert | ast.Import | ast.ImportFrom | ast.Raise | ast.JoinedStr):
        return
    left_alone = {"annotation", "returns", "decorator_list", "bases", "slice", "args"}
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        left_alone = {"annotation"}
    for field, value in ast.iter_fields(node):
        if field not in left_alone:
            items = value if isinstance(value, list) else [value]
            yield from (item for item in items if isinstance(item, ast.AST))


class _Lines:
    """The offsets of a source's lines, in bytes."""

    def __init__(self, source: str) -> None:
        self.lines = source.splitlines()
        self.begins = [0]
        for line in source.encode().splitlines(keepends=True):
            self.begins.append(self.begins[-1] + len(line))

    def edit(self, function: str, operator: str, ordinal: int, edit: Edit) -> SourceEdit:
        """Return an edit with its place in the source."""
        node = edit.node
        assert isinstance(node, ast.expr | ast.stmt), "only these have a place"
        assert node.end_lineno is not None, "a parsed node has an end"
        assert node.end_col_offset is not None, "a parsed node has an end"
        return SourceEdit(
            function,
            operator,
            ordinal,
            node.lineno,
            node.end_lineno,
            self.lines[node.lineno - 1].strip(),
            self.begins[node.lineno - 1] + node.col_offset,
            self.begins[node.end_lineno - 1] + node.end_col_offset,
            edit.text,
        )


def _replaced(node: ast.expr, **fields: object) -> Edit:
    """Return the edit that replaces a node by one with other fields."""
    other = deepcopy(node)
    for field, value in fields.items():
        setattr(other, field, value)
    return Edit(node, f"({ast.unparse(other)})")


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


def _before(statement: ast.stmt, text: str) -> str:
    """Return a statement with a simple one before it, at the same indentation."""
    indent = "\n" + " " * statement.col_offset
    return f"{text}{indent}{indent.join(ast.unparse(statement).splitlines())}"


def _calls(node: ast.AST, *names: str) -> bool:
    """Whether a node is a call of a function or a method with one of these names."""
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
    return name in names


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _yields(node: ast.AST) -> bool:
    return any(isinstance(found, ast.Yield | ast.YieldFrom) for found in ast.walk(node))
