"""Relevance: the most clicked page for a phrase, and the ratings of pages.

Both count all events so far, so their tables are written again as the counts grow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from watchkeeper.pipeline.activity.settings import Rules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from watchkeeper.pipeline.activity.log_input import Events

CLICK_THROUGH = "phrase int, page int, shown bigint, clicked bigint, rate double"
RATINGS = "page int, votes bigint, stars bigint, mean double, rating double"
MIDDLE = 3
"""The rating of a page without votes."""


def click_through(events: Events, rules: Rules) -> DataFrame:
    """How often a page was chosen of the times that it was shown for a phrase."""
    return (
        events.of("searches")
        .transform(shown)
        .unionByName(events.of("clicks").transform(clicked))
        .groupBy("phrase", "page")
        .agg(sql.sum("shown").alias("shown"), sql.sum("clicked").alias("clicked"))
        .withColumn("rate", sql.when(sql.col("shown") > 0, sql.col("clicked") / sql.col("shown")))
    )


def shown(searches: DataFrame) -> DataFrame:
    """A row for each page that was shown."""
    page = sql.explode("pages").alias("page")
    return searches.select("phrase", page, sql.lit(1).alias("shown"), sql.lit(0).alias("clicked"))


def clicked(clicks: DataFrame) -> DataFrame:
    """A row for each page that was chosen."""
    return clicks.select("phrase", "page", sql.lit(0).alias("shown"), sql.lit(1).alias("clicked"))


def ratings(events: Events, rules: Rules) -> DataFrame:
    """The mean of a page's stars, and a rating that a few votes do not carry far."""
    known = rules.votes_known
    stars, votes = sql.col("stars"), sql.col("votes")
    return (
        events.of("votes")
        .groupBy("page")
        .agg(sql.count("*").alias("votes"), sql.sum("stars").alias("stars"))
        .withColumn("mean", stars / votes)
        .withColumn("rating", (stars + known * MIDDLE) / (votes + known))
    )
