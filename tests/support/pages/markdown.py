"""The pages for readers, taken apart: blocks, console steps, headings, links.

A block may have a name, given by a comment on the line above its fence:

    <!-- file: mine.yaml -->        it is written to that file before what follows runs
    <!-- file: mine.yaml, wrong --> and it is a scenario that must be refused
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests import HOME

FENCE = re.compile(r"^(\s*)```(\w*)\s*$")
NAMED = re.compile(r"^<!-- file: ([\w./-]+)(, wrong)? -->$")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$")
PROMPT = "$ "
CONTINUED = "> "


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    line: int
    """Where its first line stands in the page, counted from 1."""
    language: str
    lines: tuple[str, ...]
    file: str = ""
    is_wrong: bool = False

    @property
    def text(self) -> str:
        """What it says."""
        return "\n".join(self.lines) + "\n"


@dataclass(frozen=True)
class Step:
    """A command of a console block, and what is shown of its output."""

    command: str
    line: int
    """Where the shown output begins in the page, counted from 1."""
    shown: tuple[str, ...]


def pages() -> list[str]:
    """Every page, by its path in the project."""
    found = [HOME / "README.md", HOME / "CHANGELOG.md", HOME / "examples" / "README.md"]
    found += (HOME / "docs").rglob("*.md")
    return sorted(str(path.relative_to(HOME)) for path in found)


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page; ValueError where one is not closed."""
    found: list[Block] = []
    opened: tuple[int, str] | None = None
    inside: list[str] = []
    above = ""
    named: re.Match[str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if opened is None:
            if fence is not None:
                opened, inside, named = (number + 1, fence[2]), [], NAMED.match(above)
        elif fence is not None and not fence[2]:
            file = named[1] if named is not None else ""
            wrong = named is not None and named[2] is not None
            found.append(Block(*opened, tuple(inside), file, wrong))
            opened = None
        else:
            inside.append(line)
        above = line
    if opened is not None:
        raise ValueError(f"the block that begins at line {opened[0]} has no end")
    return found


def steps(block: Block) -> list[Step]:
    """The commands of a console block, with what is shown below each."""
    found: list[Step] = []
    command: list[str] = []
    shown: list[str] = []
    begins = block.line
    for number, line in enumerate((*block.lines, PROMPT), block.line):
        if line.startswith(PROMPT):
            if command:
                found.append(Step("\n".join(command), begins, tuple(shown)))
            command, shown, begins = [line.removeprefix(PROMPT)], [], number + 1
        elif command and not shown and line.startswith(CONTINUED):
            command.append(line.removeprefix(CONTINUED))
            begins = number + 1
        elif not command:
            raise ValueError(f"line {number} of a console block stands below no command")
        else:
            shown.append(line)
    return found


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines outside of blocks, with their numbers."""
    is_inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            is_inside = not is_inside
        elif not is_inside:
            yield number, line


def anchors(text: str) -> set[str]:
    """What a link to a part of this page may name."""
    found: dict[str, int] = {}
    names = set()
    for _, line in prose(text):
        heading = HEADING.match(line)
        if heading is None:
            continue
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        times = found[slug] = found.get(slug, -1) + 1
        names.add(f"{slug}-{times}" if times else slug)
    return names


def links(text: str) -> Iterator[tuple[int, str]]:
    """The links of a page, with the numbers of their lines."""
    for number, line in prose(text):
        visible = re.sub(r"`[^`]*`", "", line)
        for link in LINK.finditer(visible):
            yield number, link[1]


def broken_links(page: Path, text: str) -> list[str]:
    """The relative links of a page that lead nowhere."""
    found = []
    for number, link in links(text):
        if re.match(r"^[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            found.append(f"{page.name}:{number} leads to {link}, which is not there")
        elif anchor and anchor not in anchors(text if target == page else target.read_text()):
            found.append(f"{page.name}:{number} leads to {link}, which has no such heading")
    return found
