"""When groups are at rest, a second time: from the activity of each process at each event.

A process is *restless* while it is busy, paused or not connected, while a notification is
pending, and while its session is dead or it has several. After its end, or when it has closed its
session on the command to leave, it is restless while a session of it is left. A process whose
program is over is quiet without a session, and as quiet as any other with one. A group is at rest
while none of its processes is restless and no fault is in force. A rest counts after so many
ticks without a disturbance, and is judged then, and again after anything in it that changed who
fetches or serves what.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from watchkeeper.model.actor.events import CommandKind
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.analysis.engine.api import Column, DataFrame, Window, WindowSpec, sql
from watchkeeper.pipeline.analysis.facts.intervals import Facts, detail_field, struck
from watchkeeper.pipeline.analysis.facts.plan_facts import Terms
from watchkeeper.pipeline.analysis.facts.tables import Tables

OWN = (
    *(
        EventKind.STARTED,
        EventKind.ENDED,
        EventKind.ABANDONED,
        EventKind.WAITING,
        EventKind.WOKEN,
        EventKind.WATCH_FIRED,
        EventKind.NOTIFIED,
    ),
    *(
        EventKind.CONNECTED,
        EventKind.SUSPENDED,
        EventKind.EXPIRED,
        EventKind.FAULT,
        EventKind.FAULT_ENDED,
    ),
)
OF_SESSIONS = (EventKind.SESSION_OPENED, EventKind.SESSION_EXPIRED, EventKind.SESSION_CLOSED)
DISTURBING = (EventKind.FETCHING, EventKind.HOSTING)
LOOKED_AT = (*OWN, *OF_SESSIONS, *DISTURBING)


class GroupTerms(Protocol):
    """What has to be known of groups of processes: any processes that rest together."""

    @property
    def groups(self) -> DataFrame:
        """A row a group: run, group, quiet_us."""

    @property
    def nodes(self) -> DataFrame:
        """A row a process of a group: run, group, node, role."""


class Rests(NamedTuple):
    """When groups rest."""

    restless: DataFrame
    """A row an event that concerns a process: whether it is restless from then on."""
    spans: DataFrame
    """A row a rest: run, group, begins_us, ends_us."""
    looks: DataFrame
    """A row a moment at which a rest is judged: run, group, seq of the event before."""


def resting(facts: Facts, runs: DataFrame, terms: Terms, tables: Tables) -> Rests:
    """The rests of all groups; `runs` has `end_us`, the moment of its last event."""
    restless = tables.keep("restless", restlessness(facts))
    return rests_of(facts, restless, runs, terms, tables)


def rests_of(
    facts: Facts, restless: DataFrame, runs: DataFrame, terms: GroupTerms, tables: Tables
) -> Rests:
    """The rests of groups of processes, from when each process is restless."""
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
        sql.when(
            (sql.col("has_leave_command") | sql.col("abandoned")) & (sql.col("open") == 0),
            sql.lit(False),
        )
        .when(sql.col("alive"), running)
        .otherwise(sql.col("open") > 0)
        .cast("int")
        .alias("restless"),
        (sql.col("alive") & ~sql.col("paused") & ~is_alive).alias("is_unaware"),
    )


def _points(events: DataFrame, known: DataFrame) -> DataFrame:
    """The events that concern each process; a session concerns the one it was given to."""
    columns = ("run", "node", "seq", "t_us", "kind", "session", "has_path", "verb", "what")
    own = struck(events.where(sql.col("kind").isin(*OWN))).withColumns(
        {
            "has_path": detail_field("path").isNotNull(),
            "verb": detail_field("verb"),
            "what": detail_field("what"),
        }
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
    """The latest value of a flag; False before the first event that sets it."""
    return _latest_of(*((sql.col("kind") == kind, value) for kind, value in values.items()))


def _latest_of(*cases: tuple[Column, bool]) -> Column:
    value = sql.lit(None).cast("boolean")
    for case, made in reversed(cases):
        value = sql.when(case, made).otherwise(value)
    return sql.coalesce(sql.last(value, ignorenulls=True).over(_so_far()), sql.lit(False))


def _states(points: DataFrame) -> DataFrame:
    kind = sql.col("kind")
    is_pause = sql.col("verb") == "pause"
    is_order = sql.col("what").eqNullSafe(CommandKind.COMMIT.value)  # its state stays as it is
    bound = sql.when(kind == EventKind.CONNECTED, sql.col("session")).when(
        kind == EventKind.STARTED, 0
    )
    opened = sql.when(kind == EventKind.SESSION_OPENED, 1).when(kind.isin(*OF_SESSIONS[1:]), -1)
    anew = kind.isin(
        *(EventKind.STARTED, EventKind.ABANDONED),
        *(EventKind.CONNECTED, EventKind.SUSPENDED, EventKind.EXPIRED),
    )
    return points.withColumns(
        {
            "alive": _latest(started=True, ended=False),
            "busy": _latest_of(
                (
                    kind.isin(EventKind.STARTED, EventKind.WOKEN)
                    | ((kind == EventKind.NOTIFIED) & ~is_order),
                    True,
                ),
                (kind.isin(EventKind.WAITING, EventKind.ABANDONED), False),
            ),
            "abandoned": _latest_of(
                (kind == EventKind.ABANDONED, True), (kind == EventKind.STARTED, False)
            ),
            "connected": _latest(connected=True, suspended=False, expired=False, started=False),
            "paused": _latest_of(
                ((kind == EventKind.FAULT) & is_pause, True),
                ((kind == EventKind.FAULT_ENDED) & is_pause, False),
                (kind.isin(EventKind.STARTED, EventKind.ENDED), False),
            ),
            "has_leave_command": _latest_of(
                (sql.col("what").eqNullSafe(CommandKind.LEAVE.value), True),
                (kind == EventKind.STARTED, False),
            ),
            "bound": sql.coalesce(sql.last(bound, ignorenulls=True).over(_so_far()), sql.lit(0)),
            "open": sql.sum(sql.coalesce(opened, sql.lit(0))).over(_so_far()),
            "epoch": sql.sum(anew.cast("int")).over(_so_far()),
        }
    )


def _note_counts(states: DataFrame) -> DataFrame:
    """The number of pending notifications.

    A lost or new connection has none, and a program that is over receives none.
    """
    kind = sql.col("kind")
    is_its_own = (sql.col("session") == sql.col("bound")) & ~sql.col("abandoned")
    step = sql.when((kind == EventKind.WATCH_FIRED) & is_its_own, 1).when(
        (kind == EventKind.NOTIFIED) & sql.col("has_path"), -1
    )
    so_far = Window.partitionBy("run", "node", "epoch").orderBy("seq")
    return states.withColumn("notes", sql.sum(sql.coalesce(step, sql.lit(0))).over(so_far))


# --- groups ----------------------------------------------------------------------------


def _group_points(events: DataFrame, restless: DataFrame, terms: GroupTerms) -> DataFrame:
    """Every event after which a group may start or stop to rest, or be disturbed in it."""
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
    """One up where a process becomes restless, one down where it stops."""
    before = sql.coalesce(sql.lag("restless").over(_so_far()), sql.lit(0))
    return (
        restless.withColumn("step", (sql.col("restless") - before).cast("long"))
        .where("step <> 0")
        .select("run", "node", "seq", "t_us", "step")
    )


def _steps_everywhere(events: DataFrame) -> DataFrame:
    """Events that concern every group of a run: faults in force, disturbances, and the first
    event."""
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
    """One up where a lasting fault starts, one down where it is undone."""
    of_it = Window.partitionBy("run", "number").orderBy("seq")
    is_on = (sql.col("kind") == EventKind.FAULT).cast("int")
    return (
        events.where(sql.col("kind").isin(EventKind.FAULT, EventKind.FAULT_ENDED))
        .withColumns(
            {"number": detail_field("number", "long"), "lasts": detail_field("lasts", "boolean")}
        )
        .where(f"kind = '{EventKind.FAULT_ENDED}' OR lasts")
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
