"""Defence against callers with too many requests, crawlers, and spammers.

All of it is counted in windows of time. A caller is a member, or the address of a visitor who
is no member: many members may share an address, and each has its own limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from watchkeeper.pipeline.activity.settings import Rules
from watchkeeper.pipeline.activity.windows import different, per_window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from watchkeeper.pipeline.activity.log_input import Events

LIMITED = "begins timestamp, ends timestamp, caller string, requests bigint"
CRAWLERS = "begins timestamp, ends timestamp, caller string, requests bigint, pages int"
SPAM = "begins timestamp, ends timestamp, member int, shape string, mails bigint, receivers int"


def limited(events: Events, rules: Rules) -> DataFrame:
    """Callers that have read more pages in a window than they may."""
    rule, counts = rules.limit, {"requests": sql.count("*")}
    return (
        events.of("views")
        .transform(by_caller)
        .transform(per_window(["caller"], counts, window_s=rule.window_s, late_s=rules.late_s))
        .where(sql.col("requests") > rule.most)
        .transform(events.closed("views", rules.late_s))
    )


def crawlers(events: Events, rules: Rules) -> DataFrame:
    """Callers that read many pages, and hardly any of them twice."""
    rule = rules.crawler
    counts = {"requests": sql.count("*"), "pages": different("page")}
    return (
        events.of("views")
        .transform(by_caller)
        .transform(per_window(["caller"], counts, window_s=rule.window_s, late_s=rules.late_s))
        .where(sql.col("pages") >= rule.pages)
        .where(sql.col("pages") * 100 >= sql.col("requests") * rule.different_per_cent)
        .transform(events.closed("views", rules.late_s))
    )


def spam(events: Events, rules: Rules) -> DataFrame:
    """Members that send one text to many others; digits are ignored."""
    rule, counts = rules.spam, {"mails": sql.count("*"), "receivers": different("to")}
    return (
        events.of("mails")
        .transform(by_shape)
        .transform(
            per_window(["member", "shape"], counts, window_s=rule.window_s, late_s=rules.late_s)
        )
        .where(sql.col("receivers") >= rule.receivers)
        .transform(events.closed("mails", rules.late_s))
    )


def by_caller(views: DataFrame) -> DataFrame:
    """Views, with their caller."""
    member = sql.format_string("member %d", "member")
    caller = sql.when(sql.col("member").isNull(), sql.col("address")).otherwise(member)
    return views.withColumn("caller", caller)


def by_shape(mails: DataFrame) -> DataFrame:
    """Mails, with the shape of their text."""
    return mails.withColumn("shape", sql.regexp_replace(sql.lower("text"), "[0-9]+", "#"))
