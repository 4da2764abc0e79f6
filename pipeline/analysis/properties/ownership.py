"""What must hold always, a second time: who fetches, whose claims stand, who deletes what.

Each property comes to a table `run, property, verdict, seq`: the event that was the first to
violate it, if one did.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from model.ownership import MONOTONE, OWN_NODES, SINGLE, STRICT, TRUTHFUL
from pipeline.analysis.spans import (
    CLAIM,
    NEVER,
    NUMBER,
    OFFSETS,
    Facts,
    claims,
    overlap,
    partition_in,
    pauses,
)

HOLDS, VIOLATED, UNKNOWN = "holds", "violated", "unknown"


def found(
    runs: DataFrame, name: str, wrong: DataFrame, seen: DataFrame | None = None
) -> DataFrame:
    """A verdict for each run: violated where something is wrong, else unknown where nothing
    was seen that could have been. `wrong` has `run, seq`, `seen` has `run`."""
    first = wrong.groupBy("run").agg(sql.min("seq").cast("long").alias("seq"))
    known = runs.select("run").join(first, "run", "left")
    if seen is None:
        return known.select(
            "run", sql.lit(name).alias("property"), _verdict(sql.lit(True)), "seq"
        )
    marked = seen.select("run").distinct().withColumn("seen", sql.lit(True))
    return known.join(marked, "run", "left").select(
        "run", sql.lit(name).alias("property"), _verdict(sql.col("seen").isNotNull()), "seq"
    )


def _verdict(is_seen: Column) -> Column:
    return (
        sql.when(sql.col("seq").isNotNull(), VIOLATED)
        .when(is_seen, HOLDS)
        .otherwise(UNKNOWN)
        .alias("verdict")
    )


def owning(runs: DataFrame, facts: Facts) -> DataFrame:
    """The properties of ownership, each with a row a run."""
    fetched, written = facts.fetches, facts.changes
    lawful = overlap(fetched.drop("session"), facts.live, ["run", "node"])
    single = together(number_of(lawful)).select("run", "seq")
    standing = overlap(fetched, pauses(facts.events), ["run", "node"])
    running = together(number_of(fetched, standing)).select("run", "seq")
    parts = (
        found(runs, SINGLE.name, single, fetched),
        found(runs, STRICT.name, running.unionByName(single), fetched),
        found(runs, TRUTHFUL.name, untruthful(lawful, claims(written)), fetched),
        found(runs, OWN_NODES.name, foreign_deletions(written, facts.sessions)),
        found(runs, MONOTONE.name, *steps_back(written)),
    )
    first, *others = parts
    for one in others:
        first = first.unionByName(one)
    return first


# --- how many at once ------------------------------------------------------------------


def number_of(spans: DataFrame, less: DataFrame | None = None) -> DataFrame:
    """How many spans of a partition there are at once, from event to event, less others.

    A row a stretch with one number: `seq` is where it begins, `until` where it ends.
    """
    steps = _steps(spans, 1)
    if less is not None:
        steps = steps.unionByName(_steps(less, -1))
    at = Window.partitionBy(*CLAIM).orderBy("seq")
    return (
        steps.groupBy(*CLAIM, "seq")
        .agg(sql.sum("step").alias("step"))
        .select(
            *CLAIM,
            "seq",
            sql.sum("step").over(at).alias("number"),
            sql.coalesce(sql.lead("seq").over(at), sql.lit(NEVER)).alias("until"),
        )
    )


def _steps(spans: DataFrame, step: int) -> DataFrame:
    """One up where a span begins, one down where it ends."""
    ends = sql.array(
        sql.struct(sql.col("begins").alias("seq"), sql.lit(step).alias("step")),
        sql.struct(sql.col("ends").alias("seq"), sql.lit(-step).alias("step")),
    )
    return (
        spans.select(*CLAIM, sql.explode(ends).alias("one"))
        .select(*CLAIM, "one.*")
        .where(sql.col("seq") < NEVER)
    )


def together(numbers: DataFrame) -> DataFrame:
    """The stretches in which more than one has a partition."""
    return numbers.where("number > 1")


# --- claims ----------------------------------------------------------------------------


def untruthful(lawful: DataFrame, claimed: DataFrame) -> DataFrame:
    """Where a member whose session is alive fetches without that session's claim.

    What is claimed of a fetch is laid side by side in order; wherever that leaves a gap there
    was no claim of the session, or that of another.
    """
    known = lawful.withColumnsRenamed({"begins": "from", "ends": "to"})
    spans = claimed.withColumnRenamed("owner", "session")
    owned = (
        known.join(spans, [*CLAIM, "session"], "left")
        .withColumns({"a": sql.greatest("from", "begins"), "b": sql.least("to", "ends")})
        .withColumn("is_owned", sql.col("begins").isNotNull() & (sql.col("a") < sql.col("b")))
        .withColumns({one: sql.when(sql.col("is_owned"), sql.col(one)) for one in ("a", "b")})
    )
    order = Window.partitionBy(*CLAIM, "node", "from").orderBy(sql.col("a").asc_nulls_first())
    reached = sql.coalesce(
        sql.max("b").over(order.rowsBetween(Window.unboundedPreceding, -1)), sql.col("from")
    )
    is_last = sql.lead("from").over(order).isNull()
    gaps = owned.withColumns({"reached": reached, "last": is_last})
    before = sql.when(sql.col("a") > sql.col("reached"), sql.col("reached"))
    ended = sql.coalesce("b", "reached")
    behind = sql.when(sql.col("last") & (ended < sql.col("to")), ended)
    return gaps.select("run", sql.coalesce(before, behind).alias("seq")).where("seq IS NOT NULL")


def foreign_deletions(written: DataFrame, known: DataFrame) -> DataFrame:
    """Deletions of a znode of another session that was alive."""
    owners = known.select("run", sql.col("session").alias("owner"), "begins", "ends")
    return (
        written.where("kind = 'applied' AND what = 'deleted'")
        .where("owner <> 0 AND owner <> session")
        .join(owners, ["run", "owner"])
        .where("begins < seq AND seq <= ends")
        .select("run", "seq")
    )


def commits(written: DataFrame) -> DataFrame:
    """Every offset that was committed."""
    return written.where(
        (sql.col("kind") == "applied")
        & (sql.col("what") != "deleted")
        & sql.col("data").isNotNull()
        & sql.col("path").rlike(OFFSETS)
    ).withColumns(partition_in(OFFSETS))


def steps_back(written: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Commits of less than what had been committed; and all commits, for they may be none."""
    committed = commits(written)
    numbers = committed.where(sql.col("data").rlike(NUMBER)).withColumn(
        "offset", sql.col("data").try_cast("long")
    )
    before = sql.lag("offset").over(Window.partitionBy(*CLAIM).orderBy("seq", "at"))
    wrong = numbers.withColumn("before", before).where("offset < before")
    return wrong.select("run", "seq"), committed
