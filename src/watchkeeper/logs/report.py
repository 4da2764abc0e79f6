"""The result of a load and the progress of a table, as text and as JSON."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from watchkeeper.api.tables import plain_table, show_table
from watchkeeper.logs.load import Done
from watchkeeper.logs.offsets import Row
from watchkeeper.pipeline.loading.commits import LogKey
from watchkeeper.pipeline.loading.load import LogSum

MOST_ROWS = 40


def report(done: Done, to: Console) -> None:
    """Print the result of a load."""
    found = done.sum
    changed = {key: log for key, log in found.logs.items() if _is_reported(log)}
    table = plain_table("log", "from", "to", "messages", "left out")
    for key, log in list(changed.items())[:MOST_ROWS]:
        cells = (f"{log.begin}", f"{log.reached}", f"{log.messages:,}", _left_out(log))
        table.add_row(Text(str(key), "bold"), *cells)
    if changed:
        show_table(table, to)
    if len(changed) > MOST_ROWS:
        to.print(f"and {len(changed) - MOST_ROWS} more")
    rate = found.counted("messages") / max(done.seconds, 0.001)
    to.print(
        f"{found.counted('messages'):,} messages of {len(found.logs)} "
        f"log{'' if len(found.logs) == 1 else 's'}, in {found.files} new "
        f"file{'' if found.files == 1 else 's'} in {done.out} ({rate:,.0f} a second)",
        soft_wrap=True,
    )


def _is_reported(log: LogSum) -> bool:
    return bool(log.messages or log.skipped or log.quarantined or log.torn_bytes)


def _left_out(log: LogSum) -> str:
    """Return what the table lacks, and why."""
    parts = {
        f"{log.skipped} skipped": log.skipped,
        f"{log.quarantined} in quarantine": log.quarantined,
        f"{log.torn_bytes} bytes at the end, not whole yet": log.torn_bytes,
    }
    return ", ".join(message for message, number in parts.items() if number)


def to_json(done: Done) -> dict[str, Any]:
    """The same as JSON."""
    found = done.sum
    return {
        "out": str(done.out),
        "messages": found.counted("messages"),
        "skipped": found.counted("skipped"),
        "quarantined": found.counted("quarantined"),
        "files": found.files,
        "bytes": found.size_bytes,
        "seconds": round(done.seconds, 3),
        "logs": [_log(key, log) for key, log in found.logs.items()],
        "problems": found.problems,
    }


def _log(key: LogKey, log: LogSum) -> dict[str, Any]:
    return {
        "topic": key.topic,
        "broker": key.broker,
        "partition": key.partition,
        "from": log.begin,
        "to": log.reached,
        "messages": log.messages,
        "skipped": log.skipped,
        "quarantined": log.quarantined,
        "torn_bytes": log.torn_bytes,
    }


def show_offsets(rows: list[Row], group: str | None, to: Console) -> None:
    """Print the progress of a table, and that of the group if one is named."""
    headings = (
        ("partition", "reached") if group is None else ("partition", "reached", group, "ahead")
    )
    table = plain_table(*headings)
    for row in rows:
        numbers = (row.reached,) if group is None else (row.reached, row.committed, row.ahead)
        table.add_row(
            str(row.partition), *("-" if number is None else str(number) for number in numbers)
        )
    show_table(table, to)


def rows_json(rows: list[Row]) -> list[dict[str, Any]]:
    """The comparison as JSON."""
    return [
        {
            "partition": str(row.partition),
            "reached": row.reached,
            "committed": row.committed,
            "ahead": row.ahead,
        }
        for row in rows
    ]
