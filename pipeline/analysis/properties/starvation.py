"""How long messages waited, a second time: in a log for a reader, in a queue for a log.

Both come to a table of waits, `run, since_us, until_us`. One that lasts too long is a
violation from the moment on at which it had lasted long enough, whether or not there was an
event then; so it is a moment that is named here, `at_us`, and no event.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from model.messages import STARVES_AFTER_US, STORED_WITHIN_US
from model.waiting import PUNCTUAL, STARVATION
from pipeline.analysis.owning import HOLDS, UNKNOWN, VIOLATED
from pipeline.analysis.spans import CLAIM, OWNERS, partition_in
from pipeline.analysis.telling import LOT, lots_of, pieces

LINE = ["run", "topic", "producer"]


def punctual(runs: DataFrame, told: DataFrame, within_us: int = STORED_WITHIN_US) -> DataFrame:
    """Whether what was accepted was stored in time, with a row a run."""
    return _bounded(runs, PUNCTUAL.name, _underway(told), within_us)


def no_starvation(
    runs: DataFrame,
    told: DataFrame,
    changes: DataFrame,
    brokers: DataFrame,
    within_us: int = STARVES_AFTER_US,
) -> DataFrame:
    """Whether whoever owned a partition with something to read was handed it, a row a run."""
    return _bounded(runs, STARVATION.name, _unread(runs, told, changes, brokers), within_us)


def _bounded(runs: DataFrame, name: str, waits: DataFrame, within_us: int) -> DataFrame:
    is_long = sql.col("until_us") - sql.col("since_us") > within_us
    of_run = waits.groupBy("run").agg(
        sql.min(sql.when(is_long, sql.col("since_us") + within_us)).alias("at_us"),
        sql.lit(True).alias("any"),
    )
    verdict = (
        sql.when(sql.col("at_us").isNotNull(), VIOLATED)
        .when(sql.col("any"), HOLDS)
        .otherwise(UNKNOWN)
    )
    return (
        runs.select("run")
        .join(of_run, "run", "left")
        .select(
            "run",
            sql.lit(name).alias("property"),
            verdict.alias("verdict"),
            sql.lit(None).cast("long").alias("seq"),
            "at_us",
        )
    )


# --- on their way to a log -------------------------------------------------------------


def _underway(told: DataFrame) -> DataFrame:
    """From when on what was accepted waited to be stored, and until when; what never was has
    no row. It waits no longer than until it is stored first, be that before anybody hears
    that it was accepted."""
    is_sent = sql.col("kind") == "sent"
    lots = lots_of(told.where("kind = 'stored' OR (kind = 'sent' AND outcome = 'accepted')"))
    laid = pieces(lots.select(*LINE, *LOT, "t_us", "kind", "first", "end"), LINE)
    return (
        laid.groupBy(*LINE, "piece")
        .agg(
            sql.min(sql.when(is_sent, sql.col("t_us"))).alias("since_us"),
            sql.min(sql.when(~is_sent, sql.col("t_us"))).alias("until_us"),
        )
        .where("since_us IS NOT NULL AND until_us IS NOT NULL")
        .select("run", "since_us", "until_us")
    )


# --- in a log --------------------------------------------------------------------------


def _unread(
    runs: DataFrame, told: DataFrame, changes: DataFrame, brokers: DataFrame
) -> DataFrame:
    """From when on an owner waited for something in its partition, and until when.

    Whatever moves a partition on begins another wait, if there is more to read: a message that
    is handed to the stream that fetches it, another stream, another claim.
    """
    at = Window.partitionBy(*CLAIM).orderBy("seq", "at")
    waiting = _standing(_happenings(runs, told, changes, brokers)).withColumn(
        "is_waiting", sql.expr("is_claimed AND is_served AND reached < log_end")
    )
    was = sql.lag("is_waiting", 1, False).over(at)
    turns = waiting.withColumn("was", was).where("is_moved OR is_waiting <> was")
    return (
        turns.withColumn("until_us", sql.lead("t_us").over(at))
        .where("is_waiting")
        .join(runs.select("run", "end_us"), "run")
        .select(
            "run",
            sql.col("t_us").alias("since_us"),
            sql.coalesce("until_us", "end_us").alias("until_us"),
        )
    )


def _happenings(
    runs: DataFrame, told: DataFrame, changes: DataFrame, brokers: DataFrame
) -> DataFrame:
    """All that concerns a claimed partition, in one table, each with what it changes there."""
    claimed = (
        changes.where(sql.col("path").rlike(OWNERS))
        .join(runs.select("run"), "run", "left_semi")
        .withColumns(partition_in(OWNERS))
        .select(
            *CLAIM,
            sql.col("seq").cast("long").alias("seq"),
            "at",
            "t_us",
            (sql.col("what") != "deleted").alias("is_claimed"),
        )
    )
    known = claimed.select(*CLAIM).distinct()
    plain = told.withColumn("at", sql.lit(0))
    of_brokers = plain.drop("group").join(brokers, ["run", "node"])
    place = [*CLAIM, "seq", "at", "t_us"]
    reader = sql.struct("node", "stream").alias("reader")
    parts = (
        of_brokers.where("kind IN ('stored', 'opened')").select(
            *place, sql.col("to").alias("log_end")
        ),
        _comings(of_brokers.where("kind = 'hosting'")).select(*place, "served"),
        plain.where("kind = 'fetching' AND does = 'begins'").select(
            *place, reader, sql.greatest("begun_at", sql.lit(0)).alias("begun_at")
        ),
        plain.where("kind = 'consumed'").select(
            *place, reader.alias("handed_to"), sql.col("to").alias("handed_until")
        ),
        plain.where("kind = 'offset reset'").select(*place, sql.col("to").alias("reset_to")),
    )
    for one in parts:
        ours = one.join(known, CLAIM, "left_semi")
        claimed = claimed.unionByName(ours, allowMissingColumns=True)
    return claimed


def _comings(hosting: DataFrame) -> DataFrame:
    """How many more brokers serve a partition from there on: one, or one less, or none."""
    of_broker = Window.partitionBy(*CLAIM, "node").orderBy("seq")
    serves = (sql.col("does") == "begins").cast("int")
    before = sql.lag(serves, 1, 0).over(of_broker)
    return hosting.withColumn("served", serves - before)


def _standing(happened: DataFrame) -> DataFrame:
    """How each partition stands after all that happens to it.

    Nobody may have said yet who serves a partition; somebody does if there is something in it.
    """
    at = Window.partitionBy(*CLAIM).orderBy("seq", "at")
    reader = sql.last("reader", ignorenulls=True).over(at)
    is_handed = sql.coalesce(sql.col("handed_to") == reader, sql.lit(False))
    since_reset = Window.partitionBy(*CLAIM, "resets").orderBy("seq", "at")
    reached = sql.coalesce(
        "begun_at", "reset_to", sql.when(sql.col("is_handed"), sql.col("handed_until"))
    )
    moved = sql.col("is_claimed").isNotNull() | sql.col("reader").isNotNull()
    return (
        happened.withColumn("is_handed", is_handed)
        .withColumn("resets", sql.count("reset_to").over(at))
        .select(
            *CLAIM,
            "seq",
            "at",
            "t_us",
            (moved | sql.col("is_handed")).alias("is_moved"),
            _latest("is_claimed", sql.lit(False)),
            (sql.coalesce(sql.sum("served").over(at), sql.lit(1)) > 0).alias("is_served"),
            _latest("log_end", sql.lit(0)),
            sql.coalesce(sql.max(reached).over(since_reset), sql.lit(0)).alias("reached"),
        )
    )


def _latest(name: str, first: Column) -> Column:
    """What was said last until there."""
    at = Window.partitionBy(*CLAIM).orderBy("seq", "at")
    return sql.coalesce(sql.last(name, ignorenulls=True).over(at), first).alias(name)
