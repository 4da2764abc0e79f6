"""Reads YAML and keeps the line of every value.

YAML is read as its version 1.2 has it: `on` and `no` are words, not truth values, and a
key stands once. What could make a small file large, or endless, is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from scenarios.problems import Problem, ScenarioError, shown

Path = tuple[str | int, ...]

LARGEST_FILE = 1 << 20
MOST_VALUES = 200_000
DEEPEST = 30

_INTEGER = re.compile(r"[-+]?\d{1,15}")
_FLOAT = re.compile(r"[-+]?(\d{1,15}\.\d*|\.\d+)([eE][-+]?\d{1,3})?")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "~": None, "": None}


@dataclass(slots=True)
class Document:
    """What a file holds, and where."""

    name: str
    data: Any
    lines: dict[Path, int] = field(default_factory=dict)

    def line_of(self, path: Path) -> int:
        """The line of a value, or of the nearest thing around it that has one."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def problem(self, path: Path, said: str) -> Problem:
        """A problem at a place of this file."""
        return Problem(field_name(path), said, self.line_of(path))


def field_name(path: Path) -> str:
    """A path as one writes it: `timeline[2].at`."""
    name = ""
    for part in path:
        name += f"[{part}]" if isinstance(part, int) else (f".{part}" if name else part)
    return name


def read_document(name: str, raw: bytes) -> Document:
    """Read a file's bytes; ScenarioError says what cannot be read, and where."""
    if len(raw) > LARGEST_FILE:
        raise ScenarioError(name, [Problem("", "is larger than 1 MiB; no scenario is")])
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        said = f"byte {error.start} is not UTF-8 text; expected a scenario in YAML"
        raise ScenarioError(name, [Problem("", said, line)]) from None
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise ScenarioError(name, [_yaml_problem(error)]) from None
    except RecursionError:
        said = f"is nested more than {DEEPEST} deep"
        raise ScenarioError(name, [Problem("", said, 1)]) from None
    if node is None:
        said = "is empty; expected a scenario: name, about, clusters, groups, timeline"
        raise ScenarioError(name, [Problem("", said, 1)])
    document = Document(name, None)
    document.data = _Builder(document).build(node, (), ())
    if not isinstance(document.data, dict):
        said = f"holds {shown(document.data)}; expected fields such as name and groups"
        raise ScenarioError(name, [Problem("", said, 1)])
    return document


def _yaml_problem(error: yaml.YAMLError) -> Problem:
    mark = getattr(error, "problem_mark", None)
    said = getattr(error, "problem", None) or str(error).split("\n")[0]
    context = getattr(error, "context", None)
    words = f"{said} ({context})" if context else said
    return Problem("", f"is not YAML: {words}", mark.line + 1 if mark is not None else 1)


class _Builder:
    """Makes plain values of YAML's nodes, and notes their lines."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.values = 0

    def build(self, node: yaml.Node, path: Path, above: tuple[int, ...]) -> Any:
        """The value of a node."""
        line = node.start_mark.line + 1
        self.document.lines.setdefault(path, line)
        self.values += 1
        if id(node) in above:
            self.refuse(path, line, "refers to itself; a scenario cannot be cyclic")
        if len(above) > DEEPEST:
            self.refuse(path, line, f"is nested more than {DEEPEST} deep")
        if self.values > MOST_VALUES:
            self.refuse(path, line, f"has more than {MOST_VALUES} values")
        inside = (*above, id(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, inside)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(one, (*path, at), inside) for at, one in enumerate(node.value)]
        return _scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: Path, above: tuple[int, ...]) -> Any:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self.refuse(path, line, "has a key that is not a word")
            key = key_node.value
            if key in values:
                first = self.document.lines[(*path, key)]
                self.refuse((*path, key), line, f"stands twice; the first is in line {first}")
            self.document.lines[(*path, key)] = line
            values[key] = self.build(value_node, (*path, key), above)
        return values

    def refuse(self, path: Path, line: int, said: str) -> None:
        """Give up on the file."""
        raise ScenarioError(self.document.name, [Problem(field_name(path), said, line)])


def _scalar(node: yaml.Node) -> Any:
    text = str(node.value)
    if getattr(node, "style", None) is not None or node.tag not in _PLAIN_TAGS:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


_PLAIN_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("str", "int", "float", "bool", "null", "timestamp", "merge", "value")
)
