"""Results as text: the property table first, then faults, changes, command and files."""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from model.faults import Effect
from model.progress import ChangeSeen
from model.verdicts import Finding, Verdict, counted, duration, seconds
from reports.headings import WORLDS
from reports.message_path import follows_messages, message_path, numbers
from scenarios.units import duration_text

if TYPE_CHECKING:
    from watchkeeper.result import Result

STYLES = {Verdict.HOLDS: "green", Verdict.VIOLATED: "bold red", Verdict.UNKNOWN: "yellow"}
PLAIN_WIDTH = 110
NARROW = 60
MOST_CHANGES = 12


def console(*, width: int | None = None) -> Console:
    """A console on standard output: as wide as the terminal, or wide enough for a file."""
    made = _console(width=width)
    if width is None and not made.is_terminal:
        return _console(width=PLAIN_WIDTH)
    return made


def _console(**settings: Any) -> Console:
    """A console that prints names as they are, whatever signs are in them."""
    return Console(highlight=False, markup=False, emoji=False, **settings)


def plain_report(result: Result) -> str:
    """The report of a run as plain text."""
    out = StringIO()
    report(result, _console(file=out, width=PLAIN_WIDTH, color_system=None))
    return out.getvalue().rstrip()


def report(result: Result, to: Console, files: list[str] | None = None) -> None:
    """Print the report of a run."""
    to.print(_headline(result), soft_wrap=True)
    show_table(property_table(result.findings), to)
    if not all(one.counts for one in result.findings):
        to.print(Text("in parentheses: shown, but no part of the verdict", "dim"))
    to.print()
    if result.effects:
        show_table(_fault_table(result.effects), to)
        for said in _emulated(result):
            to.print(Text.assemble(("emulated ", "dim"), said), soft_wrap=True)
        to.print()
    members = [one for one in result.judgement.changes if one.what.endswith(("joined", "left"))]
    if members:
        show_table(_change_table(members), to)
        to.print()
    figures = numbers(message_path(result.trace)) if follows_messages(result.trace) else []
    if figures:
        show_table(_figures_table(figures), to)
        to.print()
    for failing in _failing(result):
        to.print(Text.assemble(("failing ", "dim"), failing), soft_wrap=True)
    to.print(Text.assemble(("again   ", "dim"), result.command), soft_wrap=True)
    if result.profile is not None:
        said = f"{result.profile.source}, digest {result.profile.digest}"
        to.print(Text.assemble(("profile ", "dim"), said), soft_wrap=True)
    twice = ", the same when run twice" if result.is_repeated else ""
    said = f"sha256 {result.fingerprint}{twice}"
    to.print(Text.assemble(("trace   ", "dim"), said), soft_wrap=True)
    if files:
        to.print(Text.assemble(("files   ", "dim"), files[0]), soft_wrap=True)
        for name in files[1:]:
            to.print(f"        {name}", soft_wrap=True)


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
                to.print(Padding(Text.assemble((f"{head}: ", "dim"), cell), (0, 0, 0, 2)))


TRAILING = re.compile(r" +((?:\x1b\[[0-9;]*m)*)$", re.MULTILINE)
"""Spaces before the end of a line, and what ends their colour."""


def _failing(result: Result) -> list[str]:
    """Who had turns that ended in an error that its program did not handle."""
    return [
        f"{counted(number, 'turn')} of {node}, the last at {seconds(at_us)}: {why}"
        for node, (number, at_us, why) in sorted(result.judgement.failed_turns.items())
    ]


def _emulated(result: Result) -> list[str]:
    """What was done in place of something that a live run cannot do to this machine."""
    return [
        f"the loss of the host of {event.node} at {seconds(event.t_us)}: its process was killed "
        f"and its files were cut back to their last fsync, by {event.detail['bytes']:,} bytes"
        for event in result.trace.of_kind("host emulated")
    ]


def _headline(result: Result) -> Text:
    who = "a program of your own" if result.plan.has_own_program else result.plan.variant
    line = Text.assemble(
        (result.scenario.name, "bold"),
        f", {who}, {WORLDS[result.trace.header.world]}, seed {result.seed}: ",
        (result.verdict.value, STYLES[result.verdict]),
    )
    wanted = result.expectation
    if wanted is not None:
        said = wanted if isinstance(wanted, str) else f"violated: {', '.join(wanted.violated)}"
        how = {True: "as expected", False: f"expected {said}", None: f"open (expected {said})"}
        style = {True: "green", False: "bold red", None: "yellow"}[result.met]
        line.append(f", {how[result.met]}", style)
    return line


def plain_table(*columns: str) -> Table:
    """A table without lines, whose cells fold."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def property_table(findings: tuple[Finding, ...]) -> Table:
    """Each property with its verdict and what speaks for it."""
    table = plain_table("property", "kind", "verdict", "evidence")
    for at in (1, 2):
        table.columns[at].no_wrap = True
    for one in findings:
        said = one.verdict.value if one.counts else f"({one.verdict.value})"
        style = STYLES[one.verdict] if one.counts else "dim"
        table.add_row(one.claim.name, one.claim.kind, Text(said, style), one.evidence)
    return table


def _figures_table(figures: list[tuple[str, str]]) -> Table:
    """What is measured of messages."""
    table = plain_table("messages", "seen")
    table.columns[0].no_wrap = True
    for what, figure in figures:
        table.add_row(what, figure)
    return table


def _fault_table(effects: tuple[Effect, ...]) -> Table:
    table = plain_table("timeline", "at", "effect")
    for effect in effects:
        at = "never" if effect.at_us is None else f"{effect.at_us / 1e6:.3f} s"
        counts = [f"{what} {number}" for what, number in effect.counts.items() if number]
        counted = ", ".join(counts)
        lasts = f" for {duration_text(effect.action.for_us)}" if effect.action.for_us else ""
        style = "" if counted else "yellow"
        table.add_row(f"{effect.action.label}{lasts}", at, Text(counted or "none", style))
    return table


def _change_table(members: list[ChangeSeen]) -> Table:
    table = plain_table("change", "group", "at", "time to rest", "trigger skew")
    table.columns[0].max_width = 60
    if len(members) > MOST_CHANGES:
        table.add_row(f"({len(members) - MOST_CHANGES} earlier ones)", "", "", "", "")
    for one in members[-MOST_CHANGES:]:
        rest = "not reached" if one.rest_after_us is None else duration(one.rest_after_us)
        skew = "-" if one.skew_us is None else duration(one.skew_us)
        table.add_row(one.what, one.group, f"{one.at_us / 1e6:.3f} s", rest, skew)
    return table
