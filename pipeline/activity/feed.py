"""The news feed: what members do is told to all who follow them.

The design page's "dynamic digest": each thing that a member does is fanned out to its
network. Who has followed somebody by then is told; whoever follows later is not told what
was before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from pipeline.activity.settings import Rules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pipeline.activity.reading import Events

FEED = "reader int, at timestamp, member int, what string"


def feed(events: Events, rules: Rules) -> DataFrame:
    """A row for each reader of each thing that is told."""
    return (
        events.of("votes")
        .transform(told_votes)
        .unionByName(events.of("follows").transform(told_follows))
        .transform(lambda told: fanned_out(told, network(events.so_far("follows"))))
    )


def told_votes(votes: DataFrame) -> DataFrame:
    """Votes, as they are told."""
    what = sql.format_string("gave page %d %d of 5 stars", "page", "stars")
    return votes.select("at", "member", what.alias("what"))


def told_follows(follows: DataFrame) -> DataFrame:
    """Who follows whom now, as it is told."""
    return follows.select(
        "at", "member", sql.format_string("follows member %d", "followed").alias("what")
    )


def network(follows: DataFrame) -> DataFrame:
    """Who follows whom, and since when."""
    return follows.groupBy(
        sql.col("member").alias("reader"), sql.col("followed").alias("member")
    ).agg(sql.min("at").alias("since"))


def fanned_out(told: DataFrame, network: DataFrame) -> DataFrame:
    """What is told, for each who follows whoever did it."""
    return (
        told.join(network, "member")
        .where(sql.col("since") <= sql.col("at"))
        .select("reader", "at", "member", "what")
    )
