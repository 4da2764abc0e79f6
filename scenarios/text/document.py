"""Reads YAML and keeps the line of every value.

YAML is read as version 1.2 defines it: `on` and `no` are words, not truth values, and a key
may stand once. Constructs that make a small file large or endless are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from watchkeeper.scenarios.text.errors import Problem, ScenarioError, shown
from watchkeeper.scenarios.text.size_check import DEEPEST, MOST_VALUES, glance

Path = tuple[str | int, ...]

LARGEST_FILE = 1 << 20

_INTEGER = re.compile(r"[-+]?[0-9]{1,15}")
_FLOAT = re.compile(r"[-+]?([0-9]{1,15}\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,2})?")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "~": None, "": None}


@dataclass(frozen=True, slots=True)
class Kind:
    """The kind of a file, for error sentences."""

    what: str
    fields: str
    """The first fields of such a file."""
    such_as: str


SCENARIO = Kind("scenario", "name, about, clusters, groups, timeline", "name and groups")


@dataclass(slots=True)
class Document:
    """The content of a file, with the line of each value."""

    name: str
    data: Any
    lines: dict[Path, int] = field(default_factory=dict)
    kind: Kind = SCENARIO

    def line_of(self, path: Path) -> int:
        """The line of a value, or of the nearest enclosing value that has one."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def problem(self, path: Path, message: str) -> Problem:
        """A problem at a place of this file."""
        return Problem(field_name(path), message, self.line_of(path))


def field_name(path: Path) -> str:
    """A path as it is written: `timeline[2].at`."""
    name = ""
    for part in path:
        name += f"[{part}]" if isinstance(part, int) else (f".{part}" if name else part)
    return name


def read_document(name: str, raw: bytes, kind: Kind = SCENARIO) -> Document:
    """Read the bytes of a file; ScenarioError names what cannot be read, and where."""
    if len(raw) > LARGEST_FILE:
        raise ScenarioError(name, [Problem("", f"is larger than 1 MiB; no {kind.what} is")])
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        message = f"byte {error.start} is not UTF-8 text; expected a {kind.what} in YAML"
        raise ScenarioError(name, [Problem("", message, line)]) from None
    glance(name, text)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise ScenarioError(name, [_yaml_problem(error, text)]) from None
    except (ValueError, OverflowError):  # an escape such as "\UFFFFFFFF"
        message = "is not YAML: an escape in double quotes names no character"
        raise ScenarioError(name, [Problem("", message, 1)]) from None
    except RecursionError:
        message = f"is nested more than {DEEPEST} deep"
        raise ScenarioError(name, [Problem("", message, 1)]) from None
    if node is None:
        message = f"is empty; expected a {kind.what}: {kind.fields}"
        raise ScenarioError(name, [Problem("", message, 1)])
    document = Document(name, None, kind=kind)
    document.data = _Builder(document).build(node, (), ())
    if not isinstance(document.data, dict):
        message = f"holds {shown(document.data)}; expected fields such as {kind.such_as}"
        raise ScenarioError(name, [Problem("", message, 1)])
    return document


_SENTENCES = (
    ("found character '\\t'", "a tab stands where only spaces may", "problem_mark"),
    ("found undefined alias", "an alias (*name) has no anchor (&name) before it", "problem_mark"),
    ("but found another document", "a second document begins after ---", "problem_mark"),
    ("found unknown escape", "a backslash in double quotes; use single ones", "problem_mark"),
    ("while scanning a quoted", "a quote is not closed", "context_mark"),
    ("while parsing a flow", "a bracket is not closed, or a comma is missing", "context_mark"),
    ("mapping values are not", "a colon too many, or a line indented too far", "problem_mark"),
    ("sequence entries are not", "a dash stands where no list can begin", "problem_mark"),
    ("expected <block end>", "a line is indented unlike those around it", "problem_mark"),
    ("expected '<document", "a line is indented unlike those around it", "problem_mark"),
    ("expected ':'", "a line has no colon after its key", "context_mark"),
    ("cannot start any token", "a word begins with a sign that needs quotes", "problem_mark"),
)
"""The YAML reader's message, ours, and which of its positions is meant."""


def _yaml_problem(error: yaml.YAMLError, text: str) -> Problem:
    if isinstance(error, yaml.reader.ReaderError):
        line = text[: error.position].count("\n") + 1
        message = f"holds the character U+{ord(text[error.position]):04X}; expected plain text"
        return Problem("", message, line)
    heard = " ".join(str(getattr(error, part, None) or "") for part in ("problem", "context"))
    message, place = heard.strip(), "problem_mark"
    for words, sentence, mark in _SENTENCES:
        if words in heard:
            message, place = sentence, mark
            break
    where = getattr(error, place, None)
    return Problem("", f"is not YAML: {message}", where.line + 1 if where is not None else 1)


class _Builder:
    """Builds plain values from YAML nodes and records their lines."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.values = 0

    def build(self, node: yaml.Node, path: Path, above: tuple[int, ...]) -> Any:
        """The value of a node."""
        line = node.start_mark.line + 1
        self.document.lines.setdefault(path, line)
        self.values += 1
        if id(node) in above:
            self.refuse(
                path, line, f"refers to itself; a {self.document.kind.what} cannot be cyclic"
            )
        if len(above) > DEEPEST:
            self.refuse(path[:1], line, f"is nested more than {DEEPEST} deep")
        if self.values > MOST_VALUES:
            message = f"holds more than {MOST_VALUES} values, counting what aliases repeat"
            self.refuse((), line, message)
        if node.tag not in _TAGS:
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            self.refuse(path, line, f"has the tag {shown(tag)}; expected a plain value")
        inside = (*above, id(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, inside)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, at), inside) for at, item in enumerate(node.value)]
        assert isinstance(node, yaml.ScalarNode), node
        self._check_text(node, path)
        return _scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: Path, above: tuple[int, ...]) -> Any:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self.refuse(path, line, "has a key that is not a word")
            self._check_text(key_node, path)
            key = key_node.value
            if key in values:
                first = self.document.lines[(*path, key)]
                self.refuse((*path, key), line, f"stands twice; the first is in line {first}")
            self.document.lines[(*path, key)] = line
            values[key] = self.build(value_node, (*path, key), above)
        return values

    def _check_text(self, node: yaml.Node, path: Path) -> None:
        """Refuse an escape of one surrogate alone: half a character, which no file can hold."""
        if any("\ud800" <= character <= "\udfff" for character in node.value):
            message = "holds half a character; expected plain text"
            self.refuse(path, node.start_mark.line + 1, message)

    def refuse(self, path: Path, line: int, message: str) -> None:
        """Give up on the file."""
        raise ScenarioError(self.document.name, [Problem(field_name(path), message, line)])


def _scalar(node: yaml.ScalarNode) -> Any:
    text = str(node.value)
    if node.style is not None:  # quoted, or a block
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("str", "int", "float", "bool", "null", "timestamp", "merge", "map", "seq")
)
"""The tags that YAML itself gives to plain values."""
