"""Lines of numbered messages, cut where an interval on them starts or ends."""

from __future__ import annotations

from watchkeeper.pipeline.analysis.engine.api import Column, DataFrame, Window, sql

LINE = ["run", "group", "topic", "producer"]
LAYERS = ("accepted", "refused", "stored", "consumed", "had", "past", "later", "coming")
_SEEN = "(consumed > 0 OR had > 0)"


def pieces(ranges: DataFrame) -> DataFrame:
    """A row a cut of a line: from `at` on, its `size`, and the number of ranges of each layer on
    it."""
    ends = sql.array(
        sql.struct(sql.col("first").alias("at"), sql.lit(1).alias("step")),
        sql.struct(sql.col("end").alias("at"), sql.lit(-1).alias("step")),
    )
    cuts = ranges.select(*LINE, "layer", sql.explode(ends).alias("cut")).select(
        *LINE, "layer", "cut.*"
    )
    steps = [
        sql.sum(sql.when(sql.col("layer") == layer, sql.col("step")).otherwise(0)).alias(layer)
        for layer in LAYERS
    ]
    order = Window.partitionBy(*LINE).orderBy("at")
    return (
        cuts.groupBy(*LINE, "at")
        .agg(*steps)
        .withColumns({layer: sql.sum(layer).over(order) for layer in LAYERS})
        .withColumn("size", sql.lead("at").over(order) - sql.col("at"))
        .where("size IS NOT NULL")
    )


# --- by partition ----------------------------------------------------------------------


def shares(cut: DataFrame, ranges: DataFrame) -> DataFrame:
    """A row a line and a partition: how many messages were skipped, repeated, and unread there.

    A message in two partitions is not lost while it can still be read in one of them.
    """
    asked = cut.where(f"(NOT {_SEEN} AND (past > 0 OR later > 0)) OR consumed + had > 1")
    covering = _covering(asked, ranges.where("layer IN ('past', 'later', 'consumed', 'had')"))
    in_turn = Window.partitionBy(*LINE, "at").orderBy(
        sql.col("seq").asc_nulls_last(), sql.col("nth")
    )
    handed = sql.sum(sql.col("is_handed").cast("int")).over(
        in_turn.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    counts = {
        "skipped": (sql.col("layer") == "past") & ~sql.col("is_seen") & (sql.col("later") == 0),
        "repeated": (sql.col("layer") == "consumed") & (sql.col("handed") > 1),
        "unread": (sql.col("layer") == "later") & ~sql.col("is_seen"),
    }
    return (
        covering.withColumn("is_handed", sql.col("layer").isin("consumed", "had"))
        .withColumns({"handed": handed, "is_seen": sql.expr(_SEEN)})
        .groupBy(*LINE, "partition")
        .agg(
            *(
                _sum(sql.when(condition, sql.col("size"))).alias(name)
                for name, condition in counts.items()
            )
        )
    )


def _covering(asked: DataFrame, ranges: DataFrame) -> DataFrame:
    """The ranges that cover each cut.

    A line is divided into sections about as long as its ranges, and only ranges and cuts of one
    section are compared: otherwise everything on a line would be compared with everything else.
    """
    widths = ranges.groupBy(*LINE).agg(
        sql.greatest(sql.expr("(max(end) - min(first)) DIV count(*)"), sql.lit(1)).alias("width")
    )
    stretches = sql.explode(sql.expr("sequence(first DIV width, (end - 1) DIV width)"))
    spread = ranges.join(widths, LINE).withColumn("stretch", stretches).drop("width")
    placed = asked.join(widths, LINE).withColumn("stretch", sql.expr("at DIV width"))
    return placed.drop("width").join(spread, [*LINE, "stretch"]).where("first <= at AND at < end")


# --- by source -------------------------------------------------------------------------


def sources(cut: DataFrame, shared: DataFrame) -> DataFrame:
    """A row a line: how many of a producer's messages were accepted, consumed, lost, repeated."""
    absent = f"accepted > 0 AND stored = 0 AND NOT {_SEEN}"
    numbers = {
        "accepted": "accepted > 0",
        "consumed": _SEEN,
        "refused": "refused > 0 AND accepted = 0",
        "never_stored": f"{absent} AND coming = 0",
        "coming": f"{absent} AND coming > 0",
    }
    twice = sql.greatest(sql.col("stored") - 1, sql.lit(0)) * sql.col("size")
    counted = cut.groupBy(*LINE).agg(
        *(
            _sum(sql.when(sql.expr(condition), sql.col("size"))).alias(name)
            for name, condition in numbers.items()
        ),
        _sum(twice).alias("stored_twice"),
    )
    sums = shared.groupBy(*LINE).agg(
        *(sql.sum(column).alias(column) for column in ("skipped", "repeated", "unread"))
    )
    known = counted.join(sums, LINE, "left").na.fill(0)
    return known.withColumn("lost", sql.col("never_stored") + sql.col("skipped"))


def _sum(number: Column) -> Column:
    return sql.coalesce(sql.sum(number), sql.lit(0))
