"""Offsets that groups keep in Kafka, and where members begin, a second time.

What the judge follows event by event is a join here: commits and fetches are spans, from the
event that sends to the one that answers. A commit has no answer if its member sends the next one,
or starts again, before. A commit to Kafka that is older than its retention need not be found.
"""

from __future__ import annotations

from watchkeeper.model.properties.group_offsets import (
    FOUND,
    GOES_ON,
    NO_OFFSET,
    NOT_MISSING,
    READS_OFFSETS,
    STAYS_EXPIRED,
)
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.engine.api import Column, DataFrame, Window, sql
from watchkeeper.pipeline.analysis.facts.intervals import CLAIM, NEVER, NUMBER, detail_field
from watchkeeper.pipeline.analysis.facts.tables import Tables
from watchkeeper.pipeline.analysis.properties.ownership import commits, found, no_verdicts

ROWS = "array<array<string>>"
COMMITS = (EventKind.OFFSET_COMMIT_SENT, EventKind.OFFSET_COMMIT_ANSWERED, EventKind.STARTED)
FETCHES = (EventKind.OFFSET_FETCH_SENT, EventKind.OFFSET_FETCH_ANSWERED, EventKind.STARTED)
SEEN = (*COMMITS, *FETCHES, EventKind.REQUEST, EventKind.FETCHING)
"""The kinds of all events that are looked at here: they are read once."""


def judged(
    runs: DataFrame,
    events: DataFrame,
    changes: DataFrame,
    retentions: DataFrame,
    tables: Tables,
) -> DataFrame:
    """The properties, each with a row a run of which a member keeps offsets in Kafka."""
    keeping = runs.where("keeps_offsets").select("run")
    if keeping.isEmpty():
        return no_verdicts(keeping)
    concerned = events.where(sql.col("kind").isin(*SEEN)).join(keeping, "run", "left_semi")
    seen = tables.keep("offset_events", concerned.withColumn("seq", sql.col("seq").cast("long")))
    sent = _commits(seen)
    every = tables.keep("offset_answers", _answers(seen, sent, retentions))
    answers = every.where(f"NOT (is_old AND offset = {NO_OFFSET})")
    begun = _begun(seen, changes.join(keeping, "run", "left_semi"), retentions)
    after = _after_expiry(every, sent)
    given = answers.where(f"offset <> {NO_OFFSET}")
    wrong = answers.where("NOT is_valid")
    return (
        found(keeping, FOUND.name, wrong.where(f"offset <> {NO_OFFSET}"), given)
        .unionByName(
            found(keeping, NOT_MISSING.name, wrong.where(f"offset = {NO_OFFSET}"), answers)
        )
        .unionByName(found(keeping, GOES_ON.name, begun.where("at < newest"), begun))
        .unionByName(found(keeping, STAYS_EXPIRED.name, after.where("NOT is_valid"), after))
    )


def _paired(seen: DataFrame, kinds: tuple[EventKind, ...]) -> DataFrame:
    """Each event of these kinds with the next one of its process."""
    of_process = Window.partitionBy("run", "node").orderBy("seq")
    following = {
        "answered": sql.when(
            sql.lead("kind").over(of_process) == kinds[1], sql.lead("seq").over(of_process)
        ),
        "answer": sql.lead("detail").over(of_process),
        "answered_us": sql.lead("t_us").over(of_process),
    }
    return (
        seen.where(sql.col("kind").isin(*kinds))
        .withColumns(following)
        .where(sql.col("kind") == kinds[0])
    )


def _rows(detail: str, name: str) -> Column:
    """The rows of a field of a detail, one by one: topic, partition, and perhaps an offset."""
    return sql.explode(sql.from_json(sql.get_json_object(detail, f"$.{name}"), ROWS))


def _by_partition(frame: DataFrame, detail: str, name: str) -> DataFrame:
    """A row for each row of a field of a detail, with its topic and partition."""
    return frame.withColumn("row", _rows(detail, name)).withColumns(
        {"topic": sql.col("row")[0], "partition": sql.col("row")[1]}
    )


ANSWER = [*CLAIM, "offset", "asked", "seq", "t_us"]
"""An offset in an answer to a fetch."""


# --- commits and fetches ---------------------------------------------------------------


def _commits(seen: DataFrame) -> DataFrame:
    """A row an offset that was sent: when, and when it was acknowledged, if it was."""
    sent = _paired(seen, COMMITS).withColumn(
        "accepted",
        sql.from_json(sql.get_json_object("answer", "$.accepted"), ROWS),
    )
    row = sql.col("row")
    is_accepted = (
        sql.exists("accepted", lambda each: (each[0] == row[0]) & (each[1] == row[1]))
        & sql.col("answered").isNotNull()
    )
    return _by_partition(sent, "detail", "offsets").select(
        *CLAIM,
        sql.col("row")[2].cast("long").alias("committed"),
        sql.col("seq").alias("sent"),
        sql.col("t_us").alias("sent_us"),
        sql.when(is_accepted, sql.col("answered")).otherwise(NEVER).alias("acknowledged"),
    )


def _answers(seen: DataFrame, sent: DataFrame, retentions: DataFrame) -> DataFrame:
    """A row an answered offset of which one was acknowledged before: whether it may be given.

    `is_old`: the last commit that was acknowledged may have expired.
    """
    answered = _paired(seen, FETCHES).where("answered IS NOT NULL")
    answers = _by_partition(answered, "answer", "offsets").select(
        *CLAIM,
        sql.col("row")[2].cast("long").alias("offset"),
        sql.col("seq").alias("asked"),
        sql.col("answered").alias("seq"),
        sql.col("answered_us").alias("t_us"),
    )
    is_before = sql.col("acknowledged") < sql.col("asked")
    beside = answers.join(sent, CLAIM).where("sent < seq")
    last = (
        beside.groupBy(*ANSWER)
        .agg(
            sql.max(sql.when(is_before, sql.col("sent"))).alias("last"),
            sql.max(sql.when(is_before, sql.col("sent_us"))).alias("last_us"),
        )
        .where("last IS NOT NULL")
    )
    may_be_given = sql.coalesce(
        sql.max(sql.expr("committed = offset AND acknowledged >= last")), sql.lit(False)
    )
    judged_answers = (
        beside.join(last, ANSWER)
        .groupBy(*ANSWER, "last_us")
        .agg(may_be_given.alias("is_valid"))
        .join(retentions, ["run", "group"], "left")
    )
    is_old = sql.expr("coalesce(t_us - last_us >= retention_us, false)")
    return judged_answers.withColumn("is_old", is_old).drop("last_us", "retention_us")


def _after_expiry(answers: DataFrame, sent: DataFrame) -> DataFrame:
    """A row an answer after one that found the last commit expired: whether it may be given."""
    expired = answers.where(f"is_old AND offset = {NO_OFFSET}").select(
        *CLAIM, sql.col("asked").alias("expired"), sql.col("seq").alias("expired_seq")
    )
    after = (
        answers.join(expired, CLAIM)
        .where("expired_seq < seq")
        .groupBy(*ANSWER)
        .agg(sql.max_by("expired", "expired_seq").alias("expired"))
        .where("expired < asked")
    )
    is_new = sql.coalesce(
        sql.max(sql.expr("committed = offset AND acknowledged > expired")), sql.lit(False)
    )
    return (
        after.join(sent, CLAIM)
        .where("sent < seq")
        .groupBy(*ANSWER)
        .agg(is_new.alias("is_new"))
        .withColumn("is_valid", sql.expr(f"is_new OR offset = {NO_OFFSET}"))
    )


# --- where members begin ---------------------------------------------------------------


def _begun(seen: DataFrame, changes: DataFrame, retentions: DataFrame) -> DataFrame:
    """A row a partition with which a member begins: where, and the newest commit at its look.

    There is none if the newest commit had expired then.
    """
    looks = seen.where(
        (sql.col("kind") == EventKind.OFFSET_FETCH_SENT)
        | (
            (sql.col("kind") == EventKind.REQUEST)
            & (detail_field("purpose") == READS_OFFSETS)
            & (sql.col("group") != "")
        )
    )
    of_process = Window.partitionBy("run", "node").orderBy("seq")
    in_life = Window.partitionBy("run", "node", "life").orderBy("seq")
    moments = looks.select(
        *("run", "node", "seq"),
        sql.col("seq").alias("look"),
        sql.col("t_us").alias("look_us"),
        sql.lit(0).alias("starts"),
    )
    starts = seen.where(sql.col("kind") == EventKind.STARTED).select(
        *("run", "node", "seq"),
        sql.lit(None).cast("long").alias("look"),
        sql.lit(None).cast("long").alias("look_us"),
        sql.lit(1).alias("starts"),
    )
    begins = seen.where(
        (sql.col("kind") == EventKind.FETCHING) & (detail_field("does") == "begins")
    ).select(
        *CLAIM,
        "node",
        "seq",
        detail_field("at", "long").alias("at"),
        sql.lit(None).cast("long").alias("look"),
        sql.lit(None).cast("long").alias("look_us"),
        sql.lit(0).alias("starts"),
    )
    looked = (
        begins.unionByName(moments, allowMissingColumns=True)
        .unionByName(starts, allowMissingColumns=True)
        .withColumn("life", sql.sum("starts").over(of_process))
        .withColumn("look", sql.last("look", ignorenulls=True).over(in_life))
        .withColumn("look_us", sql.last("look_us", ignorenulls=True).over(in_life))
        .where("topic IS NOT NULL AND look IS NOT NULL")
    )
    return _newest_at(looked, _all_commits(seen, changes), retentions)


def _newest_at(looked: DataFrame, commits_so_far: DataFrame, retentions: DataFrame) -> DataFrame:
    """Rows of a look, with the newest commit then; none if that had expired."""
    each = [*CLAIM, "node", "seq", "at", "look_us"]
    order = sql.struct("moment", "place")
    newest = (
        looked.join(commits_so_far, CLAIM)
        .where("moment < look")
        .groupBy(*each)
        .agg(
            sql.max_by("committed", order).alias("newest"),
            sql.max_by("sent_us", order).alias("sent_us"),
        )
    )
    is_old = "coalesce(look_us - sent_us >= retention_us, false)"
    with_retention = newest.join(retentions, ["run", "group"], "left")
    return with_retention.where(f"NOT {is_old}").drop("look_us", "sent_us", "retention_us")


def _all_commits(seen: DataFrame, changes: DataFrame) -> DataFrame:
    """A row an offset that was committed, to Kafka or to ZooKeeper, and the moment.

    `sent_us`: when the commit was sent to Kafka; one to ZooKeeper does not expire.
    """
    answered = _paired(seen, COMMITS).where("answered IS NOT NULL")
    to_kafka = _by_partition(answered, "answer", "accepted").select(
        *CLAIM,
        sql.col("row")[2].cast("long").alias("committed"),
        sql.col("answered").alias("moment"),
        sql.lit(0).alias("place"),
        sql.col("t_us").alias("sent_us"),
    )
    to_zookeeper = (
        commits(changes)
        .where(sql.col("data").rlike(NUMBER))
        .select(
            *CLAIM,
            sql.col("data").try_cast("long").alias("committed"),
            sql.col("seq").cast("long").alias("moment"),
            sql.col("at").alias("place"),
            sql.lit(NEVER).alias("sent_us"),
        )
    )
    return to_kafka.unionByName(to_zookeeper).where("committed IS NOT NULL")
