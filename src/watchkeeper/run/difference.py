"""The first difference between two recorded runs: its JSON and its text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from watchkeeper.api import folder
from watchkeeper.api.tables import console, plain_table, show_table
from watchkeeper.model.trace.diff import Parting, compare, gist
from watchkeeper.model.trace.trace import Event


def diff(one: Path, other: Path) -> Parting | None:
    """Return the first difference between two runs."""
    return compare(folder.read_trace(one), folder.read_trace(other))


def parting_json(parting: Parting | None) -> dict[str, Any]:
    """Return the value that `diff --json` prints."""
    if parting is None:
        return {"same": True}
    return {
        "same": False,
        "exact": parting.exact,
        **_sides_json(parting),
        "member": None if parting.member is None else _sides_json(parting.member),
        "parted": list(parting.parted),
        "only_in_one": list(parting.alone[0]),
        "only_in_other": list(parting.alone[1]),
    }


def _sides_json(parting: Parting) -> dict[str, Any]:
    return {
        "node": parting.node,
        "one": _event_json(parting.left),
        "other": _event_json(parting.right),
        "one_after": [_event_json(event) for event in parting.left_after],
        "other_after": [_event_json(event) for event in parting.right_after],
    }


def _event_json(event: Event | None) -> dict[str, Any] | None:
    if event is None:
        return None
    return {**event._asdict(), "detail": dict(event.detail)}


def show_parting(parting: Parting | None, runs: tuple[str, str]) -> None:
    """Print the first difference of two runs; `runs` are their names."""
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
