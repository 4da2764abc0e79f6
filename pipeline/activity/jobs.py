"""Every job: the tables that it makes, and how a stream keeps each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

from watchkeeper.pipeline.activity import abuse, alerts, feed, relevance, warehouse
from watchkeeper.pipeline.activity.settings import Rules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from watchkeeper.pipeline.activity.log_input import Events

Keeps = Literal["append", "complete"]


class Table(NamedTuple):
    """A table: its name, its columns, the job that makes it, and how a stream writes it."""

    name: str
    columns: str
    make: Callable[[Events, Rules], DataFrame]
    keeps: Keeps = "append"
    """append: rows stay; complete: all rows are written again."""
    parted_by: str = ""
    """The column that has a folder for each of its values."""
    rules: tuple[str, ...] = ()
    """The rules by which its rows are made, for good."""


class Job(NamedTuple):
    """A job: the topics that it reads, and the tables that it makes."""

    reads: tuple[str, ...]
    tables: tuple[Table, ...]


JOBS = {
    "feed": Job(("votes", "follows"), (Table("feed", feed.FEED, feed.feed),)),
    "relevance": Job(
        ("searches", "clicks", "votes"),
        (
            Table("click_through", relevance.CLICK_THROUGH, relevance.click_through, "complete"),
            Table("ratings", relevance.RATINGS, relevance.ratings, "complete"),
        ),
    ),
    "abuse": Job(
        ("views", "mails"),
        (
            Table("limited", abuse.LIMITED, abuse.limited, rules=("late_s", "limit")),
            Table("crawlers", abuse.CRAWLERS, abuse.crawlers, rules=("late_s", "crawler")),
            Table("spam", abuse.SPAM, abuse.spam, rules=("late_s", "spam")),
        ),
    ),
    "alerts": Job(
        ("metrics",),
        (
            Table("alerts", alerts.ALERTS, alerts.alerts, rules=("late_s", "alert")),
            Table("too_late", alerts.TOO_LATE, alerts.too_late, rules=("late_s",)),
        ),
    ),
    "warehouse": Job(
        warehouse.STORED,
        tuple(
            Table(
                topic,
                warehouse.columns_of(topic),
                warehouse.stored(topic),
                parted_by=warehouse.DAY,
            )
            for topic in warehouse.STORED
        ),
    ),
}
