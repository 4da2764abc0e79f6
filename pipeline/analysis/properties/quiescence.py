"""When groups are at rest, a second time: from what each process is about at each event.

A process is *restless* while it is busy, paused or not connected, while a note is on its way
to it, while its session is dead or it has more than one, or, if it has ended, while a session
is left of it. A group rests while none of its processes is restless and no fault is in force.
A rest counts from so many ticks of silence on, and is looked at that long after it began, and
again after anything in it that changed who fetches or serves what.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql
from pyspark.sql.window import WindowSpec

from model.answers import Order
from pipeline.analysis.spans import Facts, told
from pipeline.analysis.tables import Tables
from pipeline.analysis.terms import Terms

OWN = (
    *("starts", "ends", "waits", "wakes", "fires", "hears"),
    *("connected", "suspended", "expired", "fault", "fault ends"),
)
OF_SESSIONS = ("session opened", "session expired", "session closed")
DISTURBING = ("fetching", "hosting")
LOOKED_AT = (*OWN, *OF_SESSIONS, *DISTURBING)


class Rests(NamedTuple):
    """When groups rest."""

    restless: DataFrame
    """A row an event that concerns a process: whether it is restless from then on."""
    spans: DataFrame
    """A row a rest: run, group, begins_us, ends_us."""
    looks: DataFrame
    """A row a moment at which a rest is looked at: run, group, seq of what came before."""


def resting(facts: Facts, runs: DataFrame, terms: Terms, tables: Tables) -> Rests:
    """The rests of all groups; `runs` has `end_us`, the moment of its last event."""
    restless = tables.keep("restless", restlessness(facts))
    points = tables.keep("points", _group_points(facts.events, restless, terms))
    quiet = terms.groups.select("run", "group", "quiet_us")
    marked = points.join(quiet, ["run", "group"]).join(runs.select("run", "end_us"), "run")
    return Rests(
        restless, tables.keep("rests", _spans(marked)), tables.keep("looks", _looks(marked))
    )


# --- processes -------------------------------------------------------------------------


def restlessness(facts: Facts) -> DataFrame:
    """A row an event that concerns a process: whether it is restless from then on, and whether
    it runs on without a session that is alive."""
    known = facts.sessions
    state = _note_counts(_states(_points(facts.events, known)))
    bound = known.select(
        "run",
        sql.col("session").alias("bound"),
        sql.col("begins").alias("opened"),
        sql.col("ends").alias("ended"),
    )
    is_within = (sql.col("opened") <= sql.col("seq")) & (sql.col("seq") < sql.col("ended"))
    is_alive = sql.coalesce(is_within, sql.lit(False))
    running = (
        sql.col("busy")
        | ~sql.col("connected")
        | sql.col("paused")
        | (sql.col("notes") > 0)
        | ~is_alive
        | (sql.col("open") > 1)
    )
    return state.join(bound, ["run", "bound"], "left").select(
        "run",
        "node",
        "seq",
        "t_us",
        sql.when(sql.col("alive"), running)
        .otherwise(sql.col("open") > 0)
        .cast("int")
        .alias("restless"),
        (sql.col("alive") & ~sql.col("paused") & ~is_alive).alias("is_unaware"),
    )


def _points(events: DataFrame, known: DataFrame) -> DataFrame:
    """What concerns a process, event by event; a session concerns the one it was given to."""
    columns = ("run", "node", "seq", "t_us", "kind", "session", "has_path", "verb", "what")
    own = events.where(sql.col("kind").isin(*OWN)).withColumns(
        {"has_path": told("path").isNotNull(), "verb": told("verb"), "what": told("what")}
    )
    of_sessions = (
        events.where(sql.col("kind").isin(*OF_SESSIONS))
        .drop("node")
        .join(known.select("run", "session", sql.col("holder").alias("node")), ["run", "session"])
        .withColumns({"has_path": sql.lit(False), "verb": sql.lit(None), "what": sql.lit(None)})
    )
    return own.select(*columns).unionByName(of_sessions.select(*columns))


def _so_far() -> WindowSpec:
    return Window.partitionBy("run", "node").orderBy("seq")


def _latest(**values: bool) -> Column:
    """What the latest event of certain kinds has made of a flag; False before the first."""
    return _latest_of(*((sql.col("kind") == kind, value) for kind, value in values.items()))


def _latest_of(*cases: tuple[Column, bool]) -> Column:
    value = sql.lit(None).cast("boolean")
    for case, made in reversed(cases):
        value = sql.when(case, made).otherwise(value)
    return sql.coalesce(sql.last(value, ignorenulls=True).over(_so_far()), sql.lit(False))


def _states(points: DataFrame) -> DataFrame:
    kind = sql.col("kind")
    is_pause = sql.col("verb") == "pause"
    is_order = sql.col("what").eqNullSafe(Order.COMMIT.value)  # its memory stays as it is
    bound = sql.when(kind == "connected", sql.col("session")).when(kind == "starts", 0)
    opened = sql.when(kind == "session opened", 1).when(kind.isin(*OF_SESSIONS[1:]), -1)
    anew = kind.isin("starts", "connected", "suspended", "expired")
    return points.withColumns(
        {
            "alive": _latest(starts=True, ends=False),
            "busy": _latest_of(
                (kind.isin("starts", "wakes") | ((kind == "hears") & ~is_order), True),
                (kind == "waits", False),
            ),
            "connected": _latest(connected=True, suspended=False, expired=False, starts=False),
            "paused": _latest_of(
                ((kind == "fault") & is_pause, True),
                ((kind == "fault ends") & is_pause, False),
                (kind.isin("starts", "ends"), False),
            ),
            "bound": sql.coalesce(sql.last(bound, ignorenulls=True).over(_so_far()), sql.lit(0)),
            "open": sql.sum(sql.coalesce(opened, sql.lit(0))).over(_so_far()),
            "epoch": sql.sum(anew.cast("int")).over(_so_far()),
        }
    )


def _note_counts(states: DataFrame) -> DataFrame:
    """How many notes are under way; a connection that is lost or made anew has none."""
    kind = sql.col("kind")
    step = sql.when((kind == "fires") & (sql.col("session") == sql.col("bound")), 1).when(
        (kind == "hears") & sql.col("has_path"), -1
    )
    so_far = Window.partitionBy("run", "node", "epoch").orderBy("seq")
    return states.withColumn("notes", sql.sum(sql.coalesce(step, sql.lit(0))).over(so_far))


# --- groups ----------------------------------------------------------------------------


def _group_points(events: DataFrame, restless: DataFrame, terms: Terms) -> DataFrame:
    """Every event after which a group may begin or cease to rest, or be disturbed in it."""
    changed = _restless_steps(restless).join(terms.nodes.drop("role"), ["run", "node"])
    everywhere = _steps_everywhere(events).join(terms.groups.select("run", "group"), "run")
    at = Window.partitionBy("run", "group").orderBy("seq")
    return (
        changed.select("run", "group", "seq", "t_us", "step", sql.lit(False).alias("disturbs"))
        .unionByName(everywhere.select("run", "group", "seq", "t_us", "step", "disturbs"))
        .groupBy("run", "group", "seq", "t_us")
        .agg(sql.sum("step").alias("step"), sql.max("disturbs").alias("disturbs"))
        .withColumn("rests", sql.sum("step").over(at) == 0)
        .withColumn("rested", sql.coalesce(sql.lag("rests").over(at), sql.lit(False)))
    )


def _restless_steps(restless: DataFrame) -> DataFrame:
    """One up where a process becomes restless, one down where it is no more."""
    before = sql.coalesce(sql.lag("restless").over(_so_far()), sql.lit(0))
    return (
        restless.withColumn("step", (sql.col("restless") - before).cast("long"))
        .where("step <> 0")
        .select("run", "node", "seq", "t_us", "step")
    )


def _steps_everywhere(events: DataFrame) -> DataFrame:
    """What concerns every group of a run: faults in force, what disturbs, and the first event."""
    kind = sql.col("kind")
    first = (
        events.where(kind.isin(*LOOKED_AT))
        .groupBy("run")
        .agg(sql.min(sql.struct("seq", "t_us")).alias("first"))
        .select("run", "first.*", sql.lit(0).alias("step"), sql.lit(False).alias("disturbs"))
    )
    disturbs = events.where(kind.isin(*DISTURBING)).select(
        "run", "seq", "t_us", sql.lit(0).alias("step"), sql.lit(True).alias("disturbs")
    )
    return faults_in_force(events).unionByName(disturbs).unionByName(first)


def faults_in_force(events: DataFrame) -> DataFrame:
    """One up where a fault that lasts begins, one down where it is undone."""
    of_it = Window.partitionBy("run", "number").orderBy("seq")
    is_on = (sql.col("kind") == "fault").cast("int")
    return (
        events.where(sql.col("kind").isin("fault", "fault ends"))
        .withColumns({"number": told("number", "long"), "lasts": told("lasts", "boolean")})
        .where("kind = 'fault ends' OR lasts")
        .withColumns(
            {"is_on": is_on, "was_on": sql.coalesce(sql.lag(is_on).over(of_it), sql.lit(0))}
        )
        .select(
            "run",
            "seq",
            "t_us",
            (sql.col("is_on") - sql.col("was_on")).alias("step"),
            sql.lit(False).alias("disturbs"),
        )
    )


# --- rests -----------------------------------------------------------------------------


def _spans(points: DataFrame) -> DataFrame:
    turning = points.where("rests <> rested")
    following = sql.lead("t_us").over(Window.partitionBy("run", "group").orderBy("seq"))
    return (
        turning.withColumn("ends_us", sql.coalesce(following, sql.col("end_us")))
        .where("rests AND ends_us - t_us >= quiet_us")
        .select("run", "group", sql.col("t_us").alias("begins_us"), "ends_us")
    )


def _looks(points: DataFrame) -> DataFrame:
    arms = sql.col("rests") & (~sql.col("rested") | sql.col("disturbs"))
    turns = points.withColumn("arms", arms).where(arms | (sql.col("rested") & ~sql.col("rests")))
    following = sql.lead("t_us").over(Window.partitionBy("run", "group").orderBy("seq"))
    return (
        turns.withColumn("until_us", sql.coalesce(following, sql.col("end_us")))
        .where("arms AND until_us - t_us >= quiet_us")
        .select("run", "group", sql.col("seq").cast("long").alias("seq"))
    )
