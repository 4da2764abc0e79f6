"""Shows the parameters of a docstring as a list.

A docstring of this project names them in an aligned column:

    seed      the random seed; one seed gives one trace
    variant   the version of the protocol
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import griffe

ENTRY = re.compile(r"(\w[\w, *]*?)\s{2,}(\S.*)")
"""A name in the left column, and the begin of what it is."""


class Parameters(griffe.Extension):
    """Turns aligned columns of docstrings into lists of Markdown."""

    def on_instance(self, *, obj: griffe.Object, **more: Any) -> None:
        """Rewrite the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = "\n\n".join(_blocks(obj.docstring.value))


def _blocks(text: str) -> Iterator[str]:
    """Yield the paragraphs of a docstring; a block of entries becomes a list."""
    for block in re.split(r"\n\s*\n", text):
        lines = block.splitlines()
        yield as_list(lines) if ENTRY.match(lines[0].strip()) else block


def as_list(lines: list[str]) -> str:
    """Return entries as a list; a line that is indented further goes on with its entry."""
    left = min(len(line) - len(line.lstrip()) for line in lines)
    found: list[str] = []
    for line in lines:
        entry = ENTRY.match(line.strip())
        if entry and len(line) - len(line.lstrip()) == left:
            found.append(f"- `{entry[1]}`: {entry[2]}")
        elif found:
            found[-1] += f" {line.strip()}"
    return "\n".join(found)
