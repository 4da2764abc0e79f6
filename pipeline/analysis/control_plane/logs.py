"""The logs of replicas at each event: entries, what leaders have committed, what is confirmed.

An entry is in the log of a broker from the event that appends it up to the event that cuts it
off: a truncation, what a process finds when it starts, a deletion, or an append below it.

When the state of a partition is deleted, the partition begins anew: what was committed and
confirmed before does not count. `life` numbers these lives.
"""

from __future__ import annotations

from typing import NamedTuple

from watchkeeper.model.replication.replica_log import NO_NUMBER
from watchkeeper.model.replication.requests import ALL
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.control_plane.plans import Plans
from watchkeeper.pipeline.analysis.control_plane.registry import CLUSTER, PARTITION, Registry
from watchkeeper.pipeline.analysis.engine.api import Column, DataFrame, Window, sql
from watchkeeper.pipeline.analysis.facts.intervals import NEVER, Facts, detail_field
from watchkeeper.pipeline.analysis.facts.tables import Tables

LIFE = [*PARTITION, "life"]


class Logs(NamedTuple):
    """What became of replicas."""

    events: DataFrame
    """A row an event about a replica, with its cluster, partition and life."""
    entries: DataFrame
    """A row an entry of a log: node, offset, epoch, number, begins, ends."""
    committed: DataFrame
    """A row an offset of a life: the entry that was committed first, and by which event."""
    confirmed: DataFrame
    """A row a confirmation of one message by the whole ISR: offset, number, seq."""


def logs(facts: Facts, registry: Registry, plans: Plans, tables: Tables) -> Logs:
    """The logs of all clusters that replicate."""
    events = tables.keep("replica_events", _events(facts, registry, plans))
    entries = tables.keep("entries", _entries(events))
    committed = tables.keep("committed", _committed(events, entries))
    return Logs(events, entries, committed, tables.keep("confirmed", _confirmed(events)))


KINDS = (
    EventKind.APPENDED,
    EventKind.TRUNCATED,
    EventKind.REPLICA_OPENED,
    EventKind.REPLICA_DELETED,
    EventKind.COMMITTED,
    EventKind.BECAME_LEADER,
    EventKind.UNCLEAN_ELECTION,
    EventKind.ACKNOWLEDGED,
)


def _events(facts: Facts, registry: Registry, plans: Plans) -> DataFrame:
    replicated = plans.processes.join(
        plans.clusters.where("replicates").select(*CLUSTER), CLUSTER
    ).select(*CLUSTER, "node")
    ours = (
        facts.events.where(sql.col("kind").isin(*KINDS))
        .withColumns({"partition": detail_field("partition"), "seq": sql.col("seq").cast("long")})
        .join(replicated, ["run", "node"])
    )
    return with_life(ours.select(*PARTITION, "seq", "t_us", "node", "kind", "detail"), registry)


def with_life(rows: DataFrame, registry: Registry) -> DataFrame:
    """Rows with the number of their partition's lives before; of a deletion the next one."""
    ends = registry.states.where("gone AND is_request").select(
        *PARTITION, "seq", sql.lit(1).alias("ended")
    )
    order = (
        Window.partitionBy(*PARTITION)
        .orderBy("seq")
        .rangeBetween(Window.unboundedPreceding, Window.currentRow)
    )
    both = rows.withColumn("is_row", sql.lit(True)).unionByName(ends, allowMissingColumns=True)
    lives = sql.sum(sql.coalesce("ended", sql.lit(0))).over(order)
    return both.withColumn("life", lives).where("is_row").drop("ended", "is_row")


REPLICA = [*PARTITION, "node"]


def _entries(events: DataFrame) -> DataFrame:
    start = detail_field("start", "long")
    appended = events.where(sql.col("kind") == EventKind.APPENDED).withColumns(
        {
            "start": start,
            "records": sql.from_json(
                sql.get_json_object("detail", "$.records"), "array<array<long>>"
            ),
        }
    )
    each = appended.select(
        *REPLICA, "seq", "start", sql.posexplode("records").alias("at", "record")
    ).select(
        *REPLICA,
        sql.col("seq").alias("begins"),
        (sql.col("start") + sql.col("at")).alias("offset"),
        sql.col("record")[0].alias("epoch"),
        sql.col("record")[1].alias("number"),
    )
    each = _with_compacted(each)
    ended = (
        each.join(_cuts(events, appended), REPLICA)
        .where("cut_seq > begins AND cut_from <= offset")
        .groupBy(*REPLICA, "begins", "offset")
        .agg(sql.min("cut_seq").alias("ends"))
    )
    return each.join(ended, [*REPLICA, "begins", "offset"], "left").withColumn(
        "ends", sql.coalesce("ends", sql.lit(NEVER))
    )


def _with_compacted(entries: DataFrame) -> DataFrame:
    """Entries, where one that was compacted elsewhere is what was there before.

    Its epoch is that of the next message, so what was there may have an earlier one.
    """
    one, there = [*REPLICA, "begins", "offset"], [*PARTITION, "offset"]
    is_hidden = sql.col("number") == NO_NUMBER
    whole = (
        entries.where(~is_hidden)
        .groupBy(*there, "epoch", "number")
        .agg(sql.min("begins").alias("since"))
        .withColumnsRenamed({"epoch": "was_epoch", "number": "was_number"})
    )
    found = (
        entries.where(is_hidden)
        .select(*one, "epoch")
        .join(whole, there)
        .where("since < begins AND was_epoch <= epoch")
        .groupBy(*one)
        .agg(sql.max(sql.struct("was_epoch", "was_number")).alias("was"))
    )
    return (
        entries.join(found, one, "left")
        .withColumns(
            {
                "epoch": sql.coalesce(sql.col("was.was_epoch"), sql.col("epoch")),
                "number": sql.coalesce(sql.col("was.was_number"), sql.col("number")),
            }
        )
        .drop("was")
    )


def _cuts(events: DataFrame, appended: DataFrame) -> DataFrame:
    """What removes the entries of a log from an offset on."""
    kind = sql.col("kind")
    from_end = events.where(kind.isin(EventKind.TRUNCATED, EventKind.REPLICA_OPENED)).select(
        *REPLICA, sql.col("seq").alias("cut_seq"), detail_field("end", "long").alias("cut_from")
    )
    deleted = events.where(kind == EventKind.REPLICA_DELETED).select(
        *REPLICA, sql.col("seq").alias("cut_seq"), sql.lit(0).cast("long").alias("cut_from")
    )
    reached = (
        Window.partitionBy(*REPLICA).orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    )
    end = sql.col("start") + sql.size("records")
    over = (
        appended.withColumn("reached", sql.max(end).over(reached))
        .where("start < reached")
        .select(*REPLICA, sql.col("seq").alias("cut_seq"), sql.col("start").alias("cut_from"))
    )
    return from_end.unionByName(deleted).unionByName(over)


def is_there(at: str = "seq") -> Column:
    """Whether an entry is in the log after an event."""
    return (sql.col("begins") <= sql.col(at)) & (sql.col(at) < sql.col("ends"))


def _committed(events: DataFrame, entries: DataFrame) -> DataFrame:
    """The entries below a high watermark that is higher than each one before."""
    before = Window.partitionBy(*LIFE).orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    marks = (
        events.where(sql.col("kind") == EventKind.COMMITTED)
        .withColumn("mark", detail_field("high_watermark", "long"))
        .withColumn("from", sql.coalesce(sql.max("mark").over(before), sql.lit(0)))
        .where("mark > from")
    )
    return (
        marks.join(entries, REPLICA)
        .where(is_there() & sql.expr("`from` <= offset AND offset < mark"))
        .select(*LIFE, "seq", "offset", "epoch", "number")
    )


def _confirmed(events: DataFrame) -> DataFrame:
    """The messages that the whole ISR has confirmed, one by one."""
    numbers = sql.from_json(sql.get_json_object("detail", "$.numbers"), "array<long>")
    return (
        events.where(sql.col("kind") == EventKind.ACKNOWLEDGED)
        .where(detail_field("acks", "int") == int(ALL))
        .withColumn("start", detail_field("start", "long"))
        .select(*LIFE, "seq", "start", sql.posexplode(numbers).alias("at", "number"))
        .select(*LIFE, "seq", (sql.col("start") + sql.col("at")).alias("offset"), "number")
    )
