"""How soon groups come to rest, and at what cost, a second time."""

from __future__ import annotations

from watchkeeper.model.properties.progress import PROGRESS, WORK
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.engine.api import Column, DataFrame, Window, sql
from watchkeeper.pipeline.analysis.facts.intervals import MEMBERS, Facts, detail_field
from watchkeeper.pipeline.analysis.facts.plan_facts import READS_OF_A_ZNODE, RECONNECT_US
from watchkeeper.pipeline.analysis.properties.ownership import HOLDS, UNKNOWN, VIOLATED

GROUP = ["run", "group"]
READS = ("get", "children", "exists", "ephemerals")
LEAST_TRIP_US = 1000
SHARED_PATHS = r"^/brokers/(ids|topics)/"


def calm_us(events: DataFrame, runs: DataFrame) -> DataFrame:
    """When the last action was over, every process had started, and the service was available: a
    column `calm_us` beside those of the runs."""
    kind = sql.col("kind")
    over = sql.when(
        kind.isin(EventKind.FAULT, EventKind.CHANGE, EventKind.LOAD),
        sql.col("t_us") + sql.coalesce(detail_field("for_us", "long"), sql.lit(0)),
    ).when(
        kind.isin(
            EventKind.FAULT_ENDED,
            EventKind.LOAD_ENDED,
            EventKind.STARTED,
            EventKind.LEADER_ELECTED,
            EventKind.SERVER_STATE,
        )
        | ((kind == EventKind.SUSPENDED) & (sql.col("world") == "live")),
        sql.col("t_us"),
    )
    known = events.join(runs.select("run", "world"), "run").groupBy("run")
    calm = known.agg(sql.coalesce(sql.max(over), sql.lit(0)).alias("calm_us"))
    return runs.join(calm, "run")


def work(facts: Facts, runs: DataFrame, groups: DataFrame) -> DataFrame:
    """A row a group, with its work; `runs` has `calm_us`."""
    events = facts.events
    known = groups.join(runs.select("run", "world", "calm_us", "end_us"), "run")
    counted = (
        known.join(_counts(events, runs), GROUP, "left")
        .join(_trips(events, runs), GROUP, "left")
        .join(_changes(facts, groups), GROUP, "left")
        .join(_cut_off(events, runs), "run", "left")
        .join(_leaderless(events), ["run", "prefix"], "left")
    )
    return counted.na.fill(
        0, ["attempts", "reads", "disturbances", "trips", "slowest_us", "changes"]
    ).na.fill(value=False, subset=["was_cut_off", "is_leaderless"])


def _is_request() -> Column:
    return (sql.col("kind") == EventKind.REQUEST) & (detail_field("purpose") != "commit")


def _counts(events: DataFrame, runs: DataFrame) -> DataFrame:
    op = detail_field("op")
    is_batch = op == "pipelined"
    number = sql.when(is_batch, detail_field("number", "long")).otherwise(1)
    first = sql.get_json_object("detail", "$.parts[0][0]")
    is_read = op.isin(*READS) | (is_batch & first.isin(*READS))
    is_request = _is_request()
    return (
        events.where(
            sql.col("kind").isin(
                EventKind.REQUEST,
                EventKind.REBALANCE_STARTED,
                EventKind.SUSPENDED,
                EventKind.EXPIRED,
            )
        )
        .where("group <> ''")
        .join(runs.select("run", "calm_us"), "run")
        .groupBy(*GROUP)
        .agg(
            sql.sum((sql.col("kind") == EventKind.REBALANCE_STARTED).cast("long")).alias(
                "attempts"
            ),
            sql.sum(sql.when(is_request & is_read, number)).alias("reads"),
            sql.sum(sql.when(is_request, number)).alias("operations"),
            sql.sum((is_request & (sql.col("t_us") >= sql.col("calm_us"))).cast("long")).alias(
                "trips"
            ),
            sql.sum(
                sql.col("kind").isin(EventKind.SUSPENDED, EventKind.EXPIRED).cast("long")
            ).alias("disturbances"),
        )
    )


def _trips(events: DataFrame, runs: DataFrame) -> DataFrame:
    """How long the longest round trip took in the calm."""
    of_node = Window.partitionBy("run", "node").orderBy("seq")
    previous = {"was": sql.lag("kind").over(of_node), "was_us": sql.lag("t_us").over(of_node)}
    return (
        events.where("group <> ''")
        .where(_is_request() | (sql.col("kind") == EventKind.RESPONSE))
        .select("run", "group", "node", "seq", "t_us", "kind")
        .withColumns(previous)
        .join(runs.select("run", "calm_us"), "run")
        .where(
            f"kind = '{EventKind.RESPONSE}' AND was = '{EventKind.REQUEST}' AND t_us >= calm_us"
        )
        .groupBy(*GROUP)
        .agg(sql.max(sql.col("t_us") - sql.col("was_us")).alias("slowest_us"))
    )


def registry_changes(facts: Facts, groups: DataFrame) -> DataFrame:
    """A row a change that concerns a group: of its members, of brokers, of topics."""
    written = facts.changes
    columns = ("run", "group", "seq", "t_us", "zxid", "what", "path")
    of_members = (
        written.where(sql.col("path").rlike(MEMBERS) & (sql.col("what") != "changed"))
        .withColumn("group", sql.regexp_extract("path", MEMBERS, 1))
        .join(groups.select(*GROUP), GROUP, "left_semi")
    )
    prefix = sql.regexp_extract("node", "^(.*)zookeeper", 1)
    of_all = (
        written.where(sql.col("path").rlike(SHARED_PATHS))
        .withColumn("prefix", prefix)
        .join(groups.select("run", "prefix", "group"), ["run", "prefix"])
    )
    return of_members.select(*columns).unionByName(of_all.select(*columns))


def _changes(facts: Facts, groups: DataFrame) -> DataFrame:
    counted = registry_changes(facts, groups).groupBy(*GROUP)
    return counted.agg(sql.count("*").alias("changes"))


def _cut_off(events: DataFrame, runs: DataFrame) -> DataFrame:
    """Runs in which a connection was lost, and made again in the calm."""
    before = sql.lag("kind").over(Window.partitionBy("run", "node").orderBy("seq"))
    return (
        events.where(
            sql.col("kind").isin(EventKind.CONNECTED, EventKind.SUSPENDED, EventKind.EXPIRED)
        )
        .withColumn("was", before)
        .join(runs.select("run", "calm_us"), "run")
        .where(f"kind = '{EventKind.CONNECTED}' AND was <> kind AND t_us > calm_us")
        .select("run", sql.lit(True).alias("was_cut_off"))
        .distinct()
    )


def _leaderless(events: DataFrame) -> DataFrame:
    """Ensembles that have no leader in the end."""
    return (
        events.where(sql.col("kind").isin(EventKind.LEADER_ELECTED, EventKind.LEADER_LOST))
        .withColumn("prefix", sql.regexp_extract("node", "^(.*)zookeeper", 1))
        .groupBy("run", "prefix")
        .agg((sql.max_by("kind", "seq") == EventKind.LEADER_LOST).alias("is_leaderless"))
    )


# --- verdicts --------------------------------------------------------------------------


def with_rests(worked: DataFrame, rests: DataFrame) -> DataFrame:
    """The work of groups, with the rest that lasted: `rest_after_us`, null if none did."""
    lasting = (
        rests.join(worked.select(*GROUP, "calm_us", "end_us"), GROUP)
        .where("ends_us > calm_us AND ends_us >= end_us")
        .groupBy(*GROUP)
        .agg(sql.max("begins_us").alias("rest_us"))
    )
    after = sql.greatest(sql.col("rest_us") - sql.col("calm_us"), sql.lit(0))
    return worked.join(lasting, GROUP, "left").withColumn("rest_after_us", after_or_null(after))


def after_or_null(after: Column) -> Column:
    """`greatest` skips nulls; here null stays null."""
    return sql.when(sql.col("rest_us").isNotNull(), after)


def progress(runs: DataFrame, rested: DataFrame) -> DataFrame:
    """Progress and the work bound, each with a row a run."""
    trips = sql.least("trips", "most_trips") * sql.greatest("slowest_us", sql.lit(LEAST_TRIP_US))
    reconnecting = sql.when(sql.col("was_cut_off"), RECONNECT_US).otherwise(0)
    bound = sql.when(sql.col("within_us") >= 0, sql.col("within_us")).otherwise(
        sql.col("owed_us") + reconnecting + trips
    )
    soon = (
        sql.when(sql.col("rest_after_us").isNull() & sql.col("is_leaderless"), UNKNOWN)
        .when(
            sql.col("rest_after_us").isNull() & (sql.col("end_us") - sql.col("calm_us") < bound),
            UNKNOWN,
        )
        .when(sql.col("rest_after_us").isNull() | (sql.col("rest_after_us") > bound), VIOLATED)
        .otherwise(HOLDS)
    )
    reasons = sql.greatest(
        sql.col("changes") + sql.col("disturbances") + sql.col("members"), sql.lit(1)
    )
    allowed = sql.col("work_factor") * sql.col("members") * reasons
    too_much = (sql.col("attempts") > allowed) | (
        sql.col("reads") > allowed * READS_OF_A_ZNODE * sql.col("znodes")
    )
    cost = sql.when(too_much, VIOLATED).otherwise(HOLDS)
    return _of_first(runs, rested, PROGRESS.name, soon).unionByName(
        _of_first(runs, rested, WORK.name, cost)
    )


def _of_first(runs: DataFrame, rested: DataFrame, name: str, verdict: Column) -> DataFrame:
    """The verdict on the first group that is not as it should be, in the order of the plan."""
    told_of = rested.withColumn("verdict", verdict)
    amiss = sql.when(sql.col("verdict") != HOLDS, sql.struct("place", "verdict"))
    first = told_of.groupBy("run").agg(sql.min(amiss).alias("first"))
    return runs.join(first, "run").select(
        "run",
        sql.lit(name).alias("property"),
        sql.coalesce("first.verdict", sql.lit(HOLDS)).alias("verdict"),
        sql.lit(None).cast("long").alias("seq"),
    )
