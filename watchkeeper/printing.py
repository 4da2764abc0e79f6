"""Results as text: the property table first, then faults, changes, command and files."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from model.faults import Effect
from model.verdicts import Finding, Verdict, duration
from scenarios.units import duration_text

if TYPE_CHECKING:
    from watchkeeper.result import Result

STYLES = {Verdict.HOLDS: "green", Verdict.VIOLATED: "bold red", Verdict.UNKNOWN: "yellow"}
PLAIN_WIDTH = 110
MOST_CHANGES = 12


def console(*, width: int | None = None) -> Console:
    """A console on standard output: as wide as the terminal, or wide enough for a file."""
    made = Console(width=width, highlight=False, soft_wrap=False)
    if width is None and not made.is_terminal:
        return Console(width=PLAIN_WIDTH, highlight=False)
    return made


def plain_report(result: Result) -> str:
    """The report of a run as plain text."""
    out = StringIO()
    report(result, Console(file=out, width=PLAIN_WIDTH, highlight=False, color_system=None))
    return out.getvalue().rstrip()


def report(result: Result, to: Console, files: list[str] | None = None) -> None:
    """Print the report of a run."""
    to.print(_headline(result))
    to.print(_property_table(result.findings))
    if not all(one.counts for one in result.findings):
        to.print(Text("in parentheses: shown, but no part of the verdict", "dim"))
    to.print()
    if result.effects:
        to.print(_fault_table(result.effects))
        to.print()
    if result.judgement.changes:
        to.print(_change_table(result))
        to.print()
    to.print(Text.assemble(("again   ", "dim"), result.command), soft_wrap=True)
    to.print(Text.assemble(("trace   ", "dim"), f"sha256 {result.fingerprint}"), soft_wrap=True)
    if files:
        to.print(Text.assemble(("files   ", "dim"), files[0]), soft_wrap=True)
        for name in files[1:]:
            to.print(f"        {name}", soft_wrap=True)


def _headline(result: Result) -> Text:
    line = Text.assemble(
        (result.scenario.name, "bold"),
        f", {result.plan.variant}, simulated, seed {result.seed}: ",
        (result.verdict.value, STYLES[result.verdict]),
    )
    wanted = result.expectation
    if wanted is not None:
        said = wanted if isinstance(wanted, str) else f"violated: {', '.join(wanted.violated)}"
        how = {True: "as expected", False: f"expected {said}", None: f"open (expected {said})"}
        style = {True: "green", False: "bold red", None: "yellow"}[result.met]
        line.append(f", {how[result.met]}", style)
    return line


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _property_table(findings: tuple[Finding, ...]) -> Table:
    table = _table("property", "kind", "verdict", "evidence")
    for at in (1, 2):
        table.columns[at].no_wrap = True
    for one in findings:
        said = one.verdict.value if one.counts else f"({one.verdict.value})"
        style = STYLES[one.verdict] if one.counts else "dim"
        table.add_row(one.claim.name, one.claim.kind, Text(said, style), one.evidence)
    return table


def _fault_table(effects: tuple[Effect, ...]) -> Table:
    table = _table("timeline", "at", "effect")
    for effect in effects:
        at = "never" if effect.at_us is None else f"{effect.at_us / 1e6:.3f} s"
        counts = [f"{what} {number}" for what, number in effect.counts.items() if number]
        counted = ", ".join(counts)
        lasts = f" for {duration_text(effect.action.for_us)}" if effect.action.for_us else ""
        style = "" if counted else "yellow"
        table.add_row(f"{effect.action.label}{lasts}", at, Text(counted or "none", style))
    return table


def _change_table(result: Result) -> Table:
    table = _table("change", "group", "at", "time to rest", "trigger skew")
    table.columns[0].max_width = 60
    members = [one for one in result.judgement.changes if one.what.endswith(("joined", "left"))]
    for one in members[-MOST_CHANGES:]:
        rest = "not reached" if one.rest_after_us is None else duration(one.rest_after_us)
        skew = "-" if one.skew_us is None else duration(one.skew_us)
        table.add_row(one.what, one.group, f"{one.at_us / 1e6:.3f} s", rest, skew)
    if len(members) > MOST_CHANGES:
        table.add_row(f"and {len(members) - MOST_CHANGES} earlier ones", "", "", "", "")
    return table
