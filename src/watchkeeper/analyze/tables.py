"""The measures of an analysis as tables, each narrow enough for a page of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rich.console import Console

from watchkeeper.api.tables import plain_table, show_table
from watchkeeper.model.properties.verdicts import duration

MOST_ROWS = 20
Row = dict[str, Any]


def _number(value: int) -> str:
    return f"{value:,}"


def _rate(value: float) -> str:
    return f"{value:,.0f}"


def _percent(value: float) -> str:
    return f"{value:.1%}"


class Column(NamedTuple):
    """One measure."""

    head: str
    name: str
    tell: Callable[[Any], str] = _number


WORK = (
    Column("at rest after", "rest_after_us", duration),
    *(Column(name, name) for name in ("attempts", "reads", "changes", "moves")),
    Column("at least", "least_moves"),
)
OWNERSHIP = (
    Column("overlap", "overlap_us", duration),
    Column("gap", "gap_us", duration),
    Column("zombie", "zombie_window_us", duration),
    Column("messages/s", "a_second", _rate),
)
MESSAGES = tuple(
    Column(name, name) for name in ("accepted", "consumed", "lost", "repeated", "unread")
)
DATA = (
    Column("lag", "most_lag"),
    Column("last", "last_lag"),
    Column("uncommitted", "most_uncommitted"),
    Column("last", "last_uncommitted"),
    Column("cache hits", "cache_hits", _percent),
)


def measure_tables(rows: Sequence[Row], to: Console) -> None:
    """Print the measures; those of messages and lag if a run has any."""
    _show(rows, WORK, to)
    _show(rows, OWNERSHIP, to)
    _show([row for row in rows if row["accepted"] is not None], MESSAGES, to)
    _show([row for row in rows if row["most_lag"] is not None], DATA, to)


def _show(rows: Sequence[Row], columns: Sequence[Column], to: Console) -> None:
    if not rows:
        return
    table = plain_table("run", "group", *(column.head for column in columns))
    for column in table.columns:
        column.no_wrap = True
    for row in rows[:MOST_ROWS]:
        texts = (
            "-" if row[column.name] is None else column.tell(row[column.name])
            for column in columns
        )
        table.add_row(row["run"], row["group"], *texts)
    show_table(table, to)
    if len(rows) > MOST_ROWS:
        to.print(f"and {len(rows) - MOST_ROWS:,} more, in tables/measures", style="dim")
    to.print()
