"""Lists and comparisons as text."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from model.trace import Event
from watchkeeper.comparing import Parting, gist
from watchkeeper.printing import console, plain_table, show_table


def show_scenarios(rows: list[dict[str, Any]]) -> None:
    """List the scenarios."""
    table = plain_table("scenario", "what it shows")
    table.columns[0].no_wrap = True
    for row in rows:
        table.add_row(Text(row["name"], "bold"), row["about"])
    show_table(table, console())


def show_variants(rows: list[dict[str, Any]]) -> None:
    """List the variants, a column each, a row for each question."""
    table = plain_table("", *(row["name"] for row in rows))
    for field in rows[0]:
        if field != "name":
            table.add_row(field.replace("_", " "), *(_cell(row[field]) for row in rows))
    show_table(table, console())


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(
            ": ".join(map(str, part)) if isinstance(part, tuple) else str(part) for part in value
        )
    return "as configured" if value is None else str(value)


def show_parting(parting: Parting | None, runs: tuple[str, str]) -> None:
    """Show where two runs part; `runs` are their names."""
    out = console()
    if parting is None:
        out.print("the two runs are the same in everything that counts")
        return
    how = "event for event" if parting.exact else "each process for itself, without times"
    out.print(
        f"compared {how}; the first to do something else was {parting.node}", soft_wrap=True
    )
    _show_sides(parting, runs, out)
    member = parting.member
    if member is not None:
        out.print(f"the first member of a group to do something else was {member.node}")
        _show_sides(member, runs, out)
    for name, alone in zip(runs, parting.alone, strict=True):
        if alone:
            out.print(f"only in {name}: {', '.join(alone)}", soft_wrap=True)
    if len(parting.parted) > 1:
        out.print(f"then parted: {', '.join(parting.parted[1:])}", soft_wrap=True)


def _show_sides(parting: Parting, runs: tuple[str, str], out: Console) -> None:
    sides = ((parting.left, parting.left_after), (parting.right, parting.right_after))
    for name, (first, after) in zip(runs, sides, strict=True):
        out.print(Text(name, "bold"), soft_wrap=True)
        show_table(_side(first, after), out)


def _side(first: Event | None, after: tuple[Event, ...]) -> Table:
    table = plain_table("event", "at", "what happened")
    if first is None:
        table.add_row("", "", Text("nothing more", "yellow"))
    else:
        table.add_row(str(first.seq), _at(first), Text(f"{first.node} {gist(first)}", "bold red"))
    for event in after:
        table.add_row(str(event.seq), _at(event), f"{event.node} {gist(event)}")
    return table


def _at(event: Event) -> str:
    return f"{event.t_us / 1e6:.6f} s"
