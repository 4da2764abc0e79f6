"""The page of the settings of consumers and producers, from their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from docs.log_formats import Table

from watchkeeper.model.clients.producer.settings import PRODUCER_SETTINGS, Setting
from watchkeeper.model.clients_08.settings import PRODUCER_SETTINGS_08
from watchkeeper.model.group.settings import SETTINGS

Cell = Callable[[Any], str]
PRODUCER_HEAD = ["name", "default", "meaning"]


def client_settings_page(page: Callable[..., str], table: Table, cell: Cell) -> str:
    """The settings of consumers and producers."""
    rows = (
        [
            f"`{row.key_07}`",
            f"`{row.key_08}`",
            cell(row.default_07 if row.default_07 is not None else "the sync time"),
            cell(row.default_08 if row.default_08 is not None else "the sync time"),
            row.about + (f" ({', '.join(row.choices)})" if row.choices else ""),
        ]
        for row in SETTINGS
    )
    return page(
        "The settings of consumers and producers",
        "The settings have Kafka's own names.",
        "## Of a consumer\n\nEvery variant accepts the names of both releases; "
        "its defaults are those of its release. `hardened` has those of 0.8.2. "
        "[Keep offsets in Kafka](../how-to/keep-offsets-in-kafka.md) shows the settings of "
        "offsets at work.",
        table(
            ["name in 0.7.2", "name in 0.8.2", "default in 0.7.2", "default in 0.8.2", "meaning"],
            rows,
        ),
        "## Of a producer of 0.7",
        table(PRODUCER_HEAD, producer_rows(PRODUCER_SETTINGS, cell)),
        "## Of a producer of 0.8",
        table(PRODUCER_HEAD, producer_rows(PRODUCER_SETTINGS_08, cell)),
    )


def producer_rows(rows: Iterable[Setting], cell: Cell) -> Iterator[list[str]]:
    """The settings of a producer: name, default, meaning."""
    for row in rows:
        default = "-" if row.default in ("", ()) else cell(row.default)
        yield [f"`{row.key}`", default, row.about]
