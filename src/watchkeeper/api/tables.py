"""The tables that reports print, and the console they are printed on."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from io import StringIO
from typing import Any, NamedTuple, TextIO

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from watchkeeper.console.progress import is_quiet
from watchkeeper.model.properties.verdicts import KNOWN_LIMIT, Finding, Verdict, verdict_word

STYLES = {Verdict.HOLDS: "green", Verdict.VIOLATED: "bold red", Verdict.UNKNOWN: "yellow"}
PLAIN_WIDTH = 110
NARROW = 60


def console(*, width: int | None = None) -> Console:
    """Return a console on standard output: as wide as the terminal, or wide enough for a file.

    With `--quiet` it prints the first line of what is printed on it.
    """
    if is_quiet():
        return plain_console(width=width or PLAIN_WIDTH, file=_FirstLine(sys.stdout))
    made = plain_console(width=width)
    if width is None and not made.is_terminal:
        return plain_console(width=PLAIN_WIDTH)
    return made


class _FirstLine(StringIO):
    """A file that passes on what is written up to the end of the first line."""

    def __init__(self, file: TextIO) -> None:
        super().__init__()
        self._file = file
        self._is_over = False

    def isatty(self) -> bool:
        """Return whether the line is printed on a terminal."""
        return self._file.isatty()

    def write(self, text: str) -> int:
        """Pass on the text, unless a line is over already."""
        if not self._is_over:
            line, end, _ = text.partition("\n")
            self._file.write(f"{line}{end}")
            self._is_over = bool(end)
        return len(text)


def plain_console(**settings: Any) -> Console:
    """Return a console that prints names as they are, without any markup."""
    return Console(highlight=False, markup=False, emoji=False, **settings)


def show_table(table: Table, to: Console) -> None:
    """Print a table without the spaces that fill its last column.

    On a terminal too narrow for columns it is a list.
    """
    with to.capture() as printed:
        if to.is_terminal and to.width < NARROW:
            _print_list(table, to)
        else:
            to.print(table)
    to.file.write(TRAILING.sub(r"\1", printed.get()))


def _print_list(table: Table, to: Console) -> None:
    """Print each row of a table as lines: what it is about, then its fields by their names."""
    heads = [str(column.header) for column in table.columns]
    for first, *others in zip(*(column.cells for column in table.columns), strict=True):
        to.print(Text.assemble(first))
        for head, cell in zip(heads[1:], others, strict=True):
            if cell:
                label = f"{head}: " if head else ""
                to.print(Padding(Text.assemble((label, "dim"), cell), (0, 0, 0, 2)))


TRAILING = re.compile(r" +((?:\x1b\[[0-9;]*m)*)$", re.MULTILINE)
"""Spaces before the end of a line, and what ends their colour."""


def plain_table(*columns: str) -> Table:
    """Return a table without lines, whose cells fold."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


LIMIT_STYLE = "cyan"
"""Of a violation that no client can avoid."""


def verdict_text(verdict: Verdict, limit: str | bool = "") -> Text:
    """Return the word for a verdict in its style; `limit` makes a violation a known limit."""
    word = verdict_word(verdict, limit)
    return Text(word, LIMIT_STYLE if word == KNOWN_LIMIT else STYLES[verdict])


class Folded(NamedTuple):
    """Findings, of which those that need no look are named alone."""

    shown: tuple[Finding, ...]
    """Those that are violated, open although they count, or notable."""
    held: tuple[Finding, ...]
    unexercised: tuple[Finding, ...]
    """Those that the run says nothing of, and that do not count then."""


def folded(findings: Iterable[Finding]) -> Folded:
    """Separate the findings that need a look from the others."""
    shown, held, unexercised = [], [], []
    for finding in findings:
        if finding.verdict is Verdict.HOLDS and not finding.is_notable:
            held.append(finding)
        elif finding.verdict is Verdict.UNKNOWN and not finding.counts:
            unexercised.append(finding)
        else:
            shown.append(finding)
    return Folded(tuple(shown), tuple(held), tuple(unexercised))


def names_table(rows: Iterable[tuple[str, Iterable[Finding]]]) -> Table:
    """Return a row a group of findings: what they have in common, and their names."""
    table = plain_table("", "")
    table.show_header = False
    table.columns[0].no_wrap = True
    for what, findings in rows:
        names = [finding.claim.name for finding in findings]
        if names:
            table.add_row(Text(f"{len(names)} {what}", "dim"), ", ".join(names))
    return table


def property_table(findings: tuple[Finding, ...], *, is_limit: bool = False) -> Table:
    """Return the table of properties: kind, verdict and evidence of each.

    With `is_limit` the violations are a known limit.
    """
    table = plain_table("property", "kind", "verdict", "evidence")
    for at in (1, 2):
        table.columns[at].no_wrap = True
    for finding in findings:
        shown = verdict_text(finding.verdict, is_limit)
        verdict = shown if finding.counts else Text(f"({finding.verdict.value})", "dim")
        table.add_row(finding.claim.name, finding.claim.kind, verdict, finding.evidence)
    return table
