"""The news feed: each action of a member goes to all its followers.

The design page's "dynamic digest": each action is fanned out to the member's network. It goes
to those that follow the member at that time, not to later followers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from watchkeeper.pipeline.activity.settings import Rules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from watchkeeper.pipeline.activity.log_input import Events

FEED = "reader int, at timestamp, member int, what string"


def feed(events: Events, rules: Rules) -> DataFrame:
    """A row for each reader of each news item."""
    return (
        events.of("votes")
        .transform(told_votes)
        .unionByName(events.of("follows").transform(told_follows))
        .transform(lambda news: fanned_out(news, network(events.so_far("follows"))))
    )


def told_votes(votes: DataFrame) -> DataFrame:
    """Votes, as news items."""
    what = sql.format_string("gave page %d %d of 5 stars", "page", "stars")
    return votes.select("at", "member", what.alias("what"))


def told_follows(follows: DataFrame) -> DataFrame:
    """Follows, as news items."""
    return follows.select(
        "at", "member", sql.format_string("follows member %d", "followed").alias("what")
    )


def network(follows: DataFrame) -> DataFrame:
    """Who follows whom, and since when."""
    return follows.groupBy(
        sql.col("member").alias("reader"), sql.col("followed").alias("member")
    ).agg(sql.min("at").alias("since"))


def fanned_out(news: DataFrame, network: DataFrame) -> DataFrame:
    """News items, for each follower of their author."""
    return (
        news.join(network, "member")
        .where(sql.col("since") <= sql.col("at"))
        .select("reader", "at", "member", "what")
    )
