"""How long messages waited, a second time: in a log for a reader, in a queue for a log.

Both become a table of waits, `run, since_us, until_us`. A wait that lasts too long is a
violation from the moment at which it had lasted long enough, with or without an event at that
moment; so the result names a moment, `at_us`, and no event.
"""

from __future__ import annotations

from watchkeeper.model.properties.messages import STARVES_AFTER_US, STORED_WITHIN_US
from watchkeeper.model.properties.starvation import PUNCTUAL, STARVATION
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.engine.api import Column, DataFrame, Window, sql
from watchkeeper.pipeline.analysis.facts.intervals import CLAIM, OWNERS, partition_in
from watchkeeper.pipeline.analysis.facts.message_events import RANGE, pieces, ranges_of
from watchkeeper.pipeline.analysis.properties.ownership import HOLDS, UNKNOWN, VIOLATED

LINE = ["run", "topic", "producer"]


def punctual(
    runs: DataFrame, message_events: DataFrame, within_us: int = STORED_WITHIN_US
) -> DataFrame:
    """Whether accepted messages were stored in time, with a row a run."""
    return _bounded(runs, PUNCTUAL.name, _underway(message_events), within_us)


def no_starvation(
    runs: DataFrame,
    message_events: DataFrame,
    changes: DataFrame,
    brokers: DataFrame,
    within_us: int = STARVES_AFTER_US,
) -> DataFrame:
    """Whether each owner of a partition with messages received them, a row a run."""
    return _bounded(
        runs, STARVATION.name, _unread(runs, message_events, changes, brokers), within_us
    )


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


def _underway(message_events: DataFrame) -> DataFrame:
    """The interval in which an accepted message waited to be stored; a message that never was
    stored has no row. It ends with the first storing, even before the acknowledgement."""
    is_sent = sql.col("kind") == EventKind.SENT
    ranges = ranges_of(
        message_events.where(
            f"kind = '{EventKind.STORED}' OR (kind = '{EventKind.SENT}' AND outcome = 'accepted')"
        )
    )
    laid = pieces(ranges.select(*LINE, *RANGE, "t_us", "kind", "first", "end"), LINE)
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
    runs: DataFrame, message_events: DataFrame, changes: DataFrame, brokers: DataFrame
) -> DataFrame:
    """The interval in which an owner waited for a message of its partition.

    Whatever advances a partition starts another wait, if there is more to read: a message handed
    to the stream that fetches it, another stream, another claim.
    """
    at = Window.partitionBy(*CLAIM).orderBy("seq", "at")
    waiting = _standing(_observed_events(runs, message_events, changes, brokers)).withColumn(
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


def _observed_events(
    runs: DataFrame, message_events: DataFrame, changes: DataFrame, brokers: DataFrame
) -> DataFrame:
    """All events about a claimed partition in one table, each with its change."""
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
    plain = message_events.withColumn("at", sql.lit(0))
    of_brokers = plain.drop("group").join(brokers, ["run", "node"])
    place = [*CLAIM, "seq", "at", "t_us"]
    reader = sql.struct("node", "stream").alias("reader")
    parts = (
        of_brokers.where(f"kind IN ('{EventKind.STORED}', '{EventKind.LOG_OPENED}')").select(
            *place, sql.col("to").alias("log_end")
        ),
        _comings(of_brokers.where(f"kind = '{EventKind.HOSTING}'")).select(*place, "served"),
        plain.where(f"kind = '{EventKind.FETCHING}' AND does = 'begins'").select(
            *place, reader, sql.greatest("begun_at", sql.lit(0)).alias("begun_at")
        ),
        plain.where(f"kind = '{EventKind.CONSUMED}'").select(
            *place, reader.alias("handed_to"), sql.col("to").alias("handed_until")
        ),
        plain.where(f"kind = '{EventKind.OFFSET_RESET}'").select(
            *place, sql.col("to").alias("reset_to")
        ),
    )
    for part in parts:
        ours = part.join(known, CLAIM, "left_semi")
        claimed = claimed.unionByName(ours, allowMissingColumns=True)
    return claimed


def _comings(hosting: DataFrame) -> DataFrame:
    """The change in the number of brokers that serve a partition: one, minus one, or none."""
    of_broker = Window.partitionBy(*CLAIM, "node").orderBy("seq")
    serves = (sql.col("does") == "begins").cast("int")
    before = sql.lag(serves, 1, 0).over(of_broker)
    return hosting.withColumn("served", serves - before)


def _standing(happened: DataFrame) -> DataFrame:
    """The state of each partition after each of its events.

    A partition may be served before an event reports it; messages in it show that.
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
    """The latest value up to this event."""
    at = Window.partitionBy(*CLAIM).orderBy("seq", "at")
    return sql.coalesce(sql.last(name, ignorenulls=True).over(at), first).alias(name)
