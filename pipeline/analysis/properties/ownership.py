"""The properties that hold always, a second time: who fetches, which claims exist, who deletes.

Each property becomes a table `run, property, verdict, seq`: the first event that violates it, if
any.
"""

from __future__ import annotations

from watchkeeper.model.nemesis.world import OPERATOR
from watchkeeper.model.properties.ownership import (
    MONOTONE,
    OUT_OF_RANGE,
    OWN_NODES,
    SINGLE,
    STRICT,
    TRUTHFUL,
)
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.engine.api import Column, DataFrame, Window, sql
from watchkeeper.pipeline.analysis.facts.intervals import (
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
IS_BY_HAND = f"by <=> '{OPERATOR}'"
"""Whether an operator has written this, and no process."""


def found(runs: DataFrame, name: str, wrong: DataFrame, seen: DataFrame) -> DataFrame:
    """A verdict for each run: violated if a row of `wrong` exists, else unknown if `seen` has no
    row: the run does not exercise the property. `wrong` has `run, seq`, `seen` has `run`."""
    first = wrong.groupBy("run").agg(sql.min("seq").cast("long").alias("seq"))
    exercised = seen.select("run").distinct().withColumn("seen", sql.lit(True))
    return (
        runs.select("run")
        .join(first, "run", "left")
        .join(exercised, "run", "left")
        .select(
            "run",
            sql.lit(name).alias("property"),
            _verdict(sql.col("seen").isNotNull()),
            "seq",
        )
    )


def no_verdicts(runs: DataFrame) -> DataFrame:
    """The columns of `found` without a row, where no run is concerned."""
    return runs.where("false").select(
        "run",
        *(sql.lit(None).cast("string").alias(name) for name in ("property", "verdict")),
        sql.lit(None).cast("long").alias("seq"),
    )


def _verdict(is_exercised: Column) -> Column:
    return (
        sql.when(sql.col("seq").isNotNull(), VIOLATED)
        .when(is_exercised, HOLDS)
        .otherwise(UNKNOWN)
        .alias("verdict")
    )


def owning(runs: DataFrame, facts: Facts) -> DataFrame:
    """The properties of ownership, each with a row a run."""
    fetched, written = facts.fetches, facts.changes
    foreign = foreign_deletions(written, facts.sessions)
    lawful = overlap(fetched.drop("session"), facts.live, ["run", "node"])
    single = together(number_of(lawful)).select("run", "seq")
    standing = overlap(fetched, pauses(facts.events), ["run", "node"])
    running = together(number_of(fetched, standing)).select("run", "seq")
    parts = (
        found(runs, SINGLE.name, single, fetched),
        found(runs, STRICT.name, running.unionByName(single), fetched),
        found(runs, TRUTHFUL.name, untruthful(lawful, claims(written)), fetched),
        found(runs, OWN_NODES.name, foreign, deletions(written)),
        found(runs, MONOTONE.name, *steps_back(written, facts.events)),
    )
    first, *others = parts
    for frame in others:
        first = first.unionByName(frame)
    return first


# --- how many at once ------------------------------------------------------------------


def number_of(spans: DataFrame, less: DataFrame | None = None) -> DataFrame:
    """The number of intervals of a partition at each event, less others.

    A row an interval with one number: from `seq` to `until`.
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
    """One up where an interval starts, one down where it ends."""
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
    """The intervals in which several members have a partition."""
    return numbers.where("number > 1")


# --- claims ----------------------------------------------------------------------------


def untruthful(lawful: DataFrame, claimed: DataFrame) -> DataFrame:
    """Where a member with a live session fetches without a claim of that session.

    The claims during a fetch are laid side by side in order; a gap between them is an interval
    without a claim of the session.
    """
    known = lawful.withColumnsRenamed({"begins": "from", "ends": "to"})
    spans = claimed.withColumnRenamed("owner", "session")
    owned = (
        known.join(spans, [*CLAIM, "session"], "left")
        .withColumns({"a": sql.greatest("from", "begins"), "b": sql.least("to", "ends")})
        .withColumn("is_owned", sql.col("begins").isNotNull() & (sql.col("a") < sql.col("b")))
        .withColumns(
            {column: sql.when(sql.col("is_owned"), sql.col(column)) for column in ("a", "b")}
        )
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


def deletions(written: DataFrame) -> DataFrame:
    """Every deletion of an ephemeral znode by a request of a process."""
    is_deletion = f"kind = '{EventKind.APPLIED}' AND what = 'deleted' AND owner <> 0"
    return written.where(is_deletion).where(f"NOT ({IS_BY_HAND})")


def foreign_deletions(written: DataFrame, known: DataFrame) -> DataFrame:
    """Deletions of a znode of another session that was alive."""
    owners = known.select("run", sql.col("session").alias("owner"), "begins", "ends")
    return (
        deletions(written)
        .where("owner <> session")
        .join(owners, ["run", "owner"])
        .where("begins < seq AND seq <= ends")
        .select("run", "seq")
    )


def commits(written: DataFrame) -> DataFrame:
    """Every offset that was committed."""
    return written.where(
        (sql.col("kind") == EventKind.APPLIED)
        & (sql.col("what") != "deleted")
        & sql.col("data").isNotNull()
        & sql.col("path").rlike(OFFSETS)
    ).withColumns(partition_in(OFFSETS))


def resets(events: DataFrame) -> DataFrame:
    """Where a member begins anew, since its log had become shorter, and at which offset."""
    why, to = (sql.get_json_object("detail", f"$.{name}") for name in ("why", "to"))
    return (
        events.where(sql.col("kind") == EventKind.OFFSET_RESET)
        .where(why == OUT_OF_RANGE)
        .withColumns({"seq": sql.col("seq").cast("long"), "at": sql.lit(0)})
        .withColumns({"offset": sql.lit(None).cast("long"), "to": to.cast("long")})
        .select(*CLAIM, "seq", "at", "offset", "to")
    )


def steps_back(written: DataFrame, events: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Commits of less than was committed before; and all commits over an earlier offset.

    After a reset to less than was committed, one lower commit is no step back: commits that were
    under way then may come before it. What an operator writes is no commit.
    """
    committed = commits(written)
    numbers = (
        committed.where(sql.col("data").rlike(NUMBER))
        .withColumn("by_hand", sql.expr(IS_BY_HAND))
        .select(*CLAIM, "seq", "at", sql.col("data").try_cast("long").alias("offset"), "by_hand")
        .withColumn("to", sql.lit(None).cast("long"))
        .unionByName(resets(events), allowMissingColumns=True)
    )
    in_order = Window.partitionBy(*CLAIM).orderBy("seq", "at")
    earlier = in_order.rowsBetween(Window.unboundedPreceding, -1)
    before = sql.last("offset", ignorenulls=True).over(earlier)
    known = numbers.withColumn("before", before).withColumn(
        "resets", sql.count(sql.when(sql.col("to") < sql.col("before"), 1)).over(in_order)
    )
    over = known.where("before IS NOT NULL AND offset IS NOT NULL AND NOT by_hand")
    number = sql.row_number().over(Window.partitionBy(*CLAIM, "resets").orderBy("seq", "at"))
    lower = over.where("offset < before").withColumn("number", number)
    return lower.where("resets = 0 OR number > 1").select("run", "seq"), over
