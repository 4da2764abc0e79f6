"""The metrics of runs: costs and durations, one number or more a run and a group."""

from __future__ import annotations

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.engine.api import DataFrame, Window, sql
from watchkeeper.pipeline.analysis.facts.intervals import (
    CLAIM,
    Facts,
    detail_field,
    holding_at,
    overlap,
)
from watchkeeper.pipeline.analysis.properties.ownership import number_of
from watchkeeper.pipeline.analysis.properties.progress import GROUP, registry_changes

ON = ["run", "node"]


# --- ownership -------------------------------------------------------------------------


def timed(spans: DataFrame, events: DataFrame, runs: DataFrame) -> DataFrame:
    """Spans with their moments beside them, `from_us` and `to_us`."""
    moments = events.select("run", sql.col("seq").cast("long").alias("begins"), "t_us")
    ends = moments.withColumnsRenamed({"begins": "ends", "t_us": "ends_us"})
    return (
        spans.join(moments, ["run", "begins"])
        .join(ends, ["run", "ends"], "left")
        .join(runs.select("run", "end_us"), "run")
        .withColumnsRenamed({"t_us": "from_us"})
        .withColumn("to_us", sql.coalesce("ends_us", "end_us"))
        .drop("ends_us", "end_us")
    )


def intervals(facts: Facts, runs: DataFrame) -> DataFrame:
    """Who fetched which partition, and when."""
    return timed(facts.fetches, facts.events, runs).drop("begins", "ends")


def coverage_of_partitions(facts: Facts, runs: DataFrame) -> DataFrame:
    """A row an interval in which a partition was fetched by no member, or by several.

    The time before the first fetch of a partition is no gap.
    """
    odd = number_of(facts.fetches).where("number <> 1")
    spans = odd.select(
        *CLAIM, "number", sql.col("seq").alias("begins"), sql.col("until").alias("ends")
    )
    return timed(spans, facts.events, runs).drop("begins", "ends").where("from_us < to_us")


# --- moves -----------------------------------------------------------------------------


def moves(facts: Facts, looks: DataFrame) -> DataFrame:
    """How many partitions moved to another member, and how many had to.

    Ownership is compared from one rest of a group to the next. Given the final number of
    partitions of each member, those with more than before must have received the difference: no
    assignment with the same shares takes fewer moves. A partition without an owner at one of the
    two rests does not count.
    """
    keys = ["run", "group"]
    at_rest = holding_at(looks, facts.fetches.drop("session", "stream"), keys)
    owners = at_rest.groupBy(*CLAIM, "seq").agg(sql.min("node").alias("node"))
    order = Window.partitionBy(*keys).orderBy("seq")
    following = looks.select(*keys, "seq", sql.lag("seq").over(order).alias("seq_before"))
    before = owners.withColumnsRenamed({"seq": "seq_before", "node": "was"})
    both = owners.join(following, [*keys, "seq"]).join(before, [*CLAIM, "seq_before"])
    here = both.select(*keys, "seq", "node", sql.lit(1).alias("gain"))
    there = both.select(*keys, "seq", sql.col("was").alias("node"), sql.lit(-1).alias("gain"))
    gained = (
        here.unionByName(there).groupBy(*keys, "seq", "node").agg(sql.sum("gain").alias("gain"))
    )
    least = gained.groupBy(*keys).agg(
        sql.sum(sql.greatest("gain", sql.lit(0))).alias("least_moves")
    )
    made = both.groupBy(*keys).agg(
        sql.sum((sql.col("node") != sql.col("was")).cast("long")).alias("moves")
    )
    return made.join(least, keys)


# --- zombies ---------------------------------------------------------------------------


def zombies(facts: Facts, restless: DataFrame, runs: DataFrame) -> DataFrame:
    """A row an interval in which a process fetched with a dead session."""
    following = sql.lead("seq").over(Window.partitionBy(*ON).orderBy("seq"))
    unaware = restless.withColumn("next", following.cast("long")).where("is_unaware")
    spans = unaware.select(
        *ON,
        sql.col("seq").cast("long").alias("begins"),
        sql.coalesce("next", sql.lit(2**62)).alias("ends"),
    )
    fetching = overlap(facts.fetches.select(*CLAIM, "node", "begins", "ends"), spans, ON)
    stretches = _merged(fetching.select(*ON, "begins", "ends"))
    return timed(stretches, facts.events, runs).drop("begins", "ends")


def _merged(spans: DataFrame) -> DataFrame:
    """The intervals of a process, with overlapping and adjacent ones merged."""
    order = Window.partitionBy(*ON).orderBy("begins", "ends")
    reached = sql.max("ends").over(order.rowsBetween(Window.unboundedPreceding, -1))
    anew = sql.coalesce((sql.col("begins") > reached).cast("int"), sql.lit(1))
    return (
        spans.withColumn("anew", anew)
        .withColumn("number", sql.sum("anew").over(order))
        .groupBy(*ON, "number")
        .agg(sql.min("begins").alias("begins"), sql.max("ends").alias("ends"))
        .drop("number")
    )


# --- the herd --------------------------------------------------------------------------


def herd(facts: Facts, rests: DataFrame, groups: DataFrame) -> DataFrame:
    """A row a change of members, brokers or topics: the time until the group was at rest, and its
    work until the next change: attempts, reads, and members woken."""
    changed = (
        registry_changes(facts, groups)
        .groupBy(*GROUP, "seq", "t_us")
        .agg(
            sql.concat_ws(
                ", ", sql.array_sort(sql.collect_set(sql.concat_ws(" ", "path", "what")))
            ).alias("what")
        )
    )
    order = Window.partitionBy(*GROUP).orderBy("seq")
    spans = changed.withColumn(
        "until", sql.coalesce(sql.lead("seq").over(order), sql.lit(2**31 - 1))
    )
    counted = _work_events(facts.events).join(spans, GROUP).where("seq < done AND done < until")
    sums = counted.groupBy(*GROUP, "seq").agg(
        sql.sum("attempt").alias("attempts"),
        sql.sum("read").alias("reads"),
        sql.countDistinct("woken").alias("woken"),
    )
    later = rests.join(changed, GROUP).where("begins_us >= t_us")
    rest = later.groupBy(*GROUP, "seq").agg(sql.min("begins_us").alias("rest_us"))
    known = spans.join(sums, [*GROUP, "seq"], "left").join(rest, [*GROUP, "seq"], "left")
    return known.na.fill(0, ["attempts", "reads", "woken"]).select(
        *GROUP,
        "t_us",
        "what",
        "attempts",
        "reads",
        "woken",
        (sql.col("rest_us") - sql.col("t_us")).alias("rest_after_us"),
    )


def _work_events(events: DataFrame) -> DataFrame:
    """The work of members: attempts, reads, and wake-ups by the registry."""
    op, kind = detail_field("op"), sql.col("kind")
    reads = ("get", "children", "exists", "ephemerals")
    first = sql.get_json_object("detail", "$.parts[0][0]")
    number = (
        sql.when(op.isin(*reads), 1)
        .when((op == "pipelined") & first.isin(*reads), detail_field("number", "long"))
        .otherwise(0)
    )
    is_read = (kind == EventKind.REQUEST) & (detail_field("purpose") != "commit")
    return (
        events.where(
            kind.isin(EventKind.REQUEST, EventKind.REBALANCE_STARTED, EventKind.NOTIFIED)
        )
        .where("group <> ''")
        .select(
            *GROUP,
            sql.col("seq").alias("done"),
            (kind == EventKind.REBALANCE_STARTED).cast("long").alias("attempt"),
            sql.when(is_read, number).otherwise(0).alias("read"),
            sql.when(
                (kind == EventKind.NOTIFIED) & detail_field("path").isNotNull(), sql.col("node")
            ).alias("woken"),
        )
    )


# --- data ------------------------------------------------------------------------------


def throughput(events: DataFrame, runs: DataFrame) -> DataFrame:
    """A row a run: how many messages members received, and how many a second.

    If logs hold no messages, the advance of offsets counts.
    """
    moved = sql.from_json(detail_field("moved"), "map<string,array<bigint>>")
    fetched = events.where(f"kind = '{EventKind.FETCHED}'").select(
        "run", sql.explode(moved).alias("at", "span")
    )
    ranges = sql.from_json(detail_field("ranges"), "array<array<string>>")
    consumed = events.where(f"kind = '{EventKind.CONSUMED}'").select(
        "run", sql.explode(ranges).alias("message_range")
    )
    number = fetched.select("run", (sql.col("span")[1] - sql.col("span")[0]).alias("number"))
    handed = consumed.select(
        "run",
        (
            sql.col("message_range")[2].cast("long") - sql.col("message_range")[1].cast("long")
        ).alias("number"),
    )
    summed = number.unionByName(handed).groupBy("run").agg(sql.sum("number").alias("messages"))
    rate = sql.col("messages") * 1_000_000 / sql.nullif(sql.col("end_us"), sql.lit(0))
    return runs.join(summed, "run").select("run", "messages", rate.alias("a_second"))


def cache_hits(events: DataFrame) -> DataFrame:
    """A row a run: the share of reads by brokers that hit the pagecache.

    A broker's host counts from its start; after a crash of the host it starts again.
    """
    hit, missed = detail_field("hit", "long"), detail_field("missed", "long")
    order = Window.partitionBy(*ON).orderBy("seq")
    read = events.where(f"kind = '{EventKind.HOST_METRICS}'").select(
        *(*ON, "seq"), hit.alias("hit"), missed.alias("missed")
    )
    more = {
        name: sql.col(name) - sql.coalesce(sql.lag(name).over(order), sql.lit(0))
        for name in ("hit", "missed")
    }
    anew = (more["hit"] < 0) | (more["missed"] < 0)
    grown = read.withColumns(
        {f"{name}_more": sql.when(anew, sql.col(name)).otherwise(more[name]) for name in more}
    )
    sums = grown.groupBy("run").agg(
        sql.sum("hit_more").alias("hit"), sql.sum("missed_more").alias("missed")
    )
    every = sql.nullif(sql.col("hit") + sql.col("missed"), sql.lit(0))
    return sums.select("run", (sql.col("hit") / every).alias("cache_hits"))
