"""The cross-check: every property a second time, beside the verdict of the run.

The judges follow a run event by event; here the same verdict comes from joins and windows over
its table of events. If the two differ, one of them is wrong, or one of the files has changed:
that is a difference, and the analysis fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from watchkeeper.model.properties.ownership import OWN_NODES
from watchkeeper.pipeline.analysis.control_plane.judged import of_control_planes
from watchkeeper.pipeline.analysis.control_plane.plans import Plans
from watchkeeper.pipeline.analysis.engine.api import Column, DataFrame, sql
from watchkeeper.pipeline.analysis.facts.intervals import Facts
from watchkeeper.pipeline.analysis.facts.plan_facts import Terms
from watchkeeper.pipeline.analysis.facts.tables import Tables
from watchkeeper.pipeline.analysis.properties import group_offsets
from watchkeeper.pipeline.analysis.properties.at_quiescence import calm
from watchkeeper.pipeline.analysis.properties.delivery import accounts, delivery
from watchkeeper.pipeline.analysis.properties.messages import of_messages
from watchkeeper.pipeline.analysis.properties.ownership import UNKNOWN, owning
from watchkeeper.pipeline.analysis.properties.progress import calm_us, progress, with_rests, work
from watchkeeper.pipeline.analysis.properties.quiescence import Rests, resting
from watchkeeper.pipeline.analysis.properties.sometimes import observed_events

TRACE = "the trace"
"""The name of the difference if a trace is not the one that was judged."""
SLACK_US = 1000
"""Evidence states a moment to the millisecond."""
_MOMENT = r"^at ([0-9]+)\.([0-9]{3}) s"


class Second(NamedTuple):
    """The second computation of every property."""

    properties: DataFrame
    """A row a run and a property: run, property, verdict, seq; and `at_us`, the moment, where
    it is no event that violates it."""
    rests: Rests
    work: DataFrame
    """A row a group, with its work and its rest."""
    messages: DataFrame
    """A row a group with a delivery guarantee, with its counts."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a run was judged otherwise than it is here."""

    run: str
    property: str
    recorded: str
    """The verdict of the run; for a trace, the fingerprint of the judged one."""
    computed: str
    event: int | None
    """The first event that violates the property, by the second computation."""
    at_us: int | None
    evidence: str
    """The evidence of the run."""


def second(runs: DataFrame, facts: Facts, terms: Terms, plans: Plans, tables: Tables) -> Second:
    """Compute every property for which a trace suffices."""
    known = tables.keep("runs", calm_us(facts.events, runs))
    planned = known.where("has_plan AND has_groups")
    rests = resting(facts, planned, terms, tables)
    done = with_rests(work(facts, planned, terms.groups), rests.spans)
    worked = tables.keep("work", done)
    messages = accounts(facts, terms, tables).groups
    found = (
        tables.keep("always", owning(runs, facts))
        .unionByName(tables.keep("at_rest", calm(planned, facts, rests.looks, terms, tables)))
        .unionByName(progress(planned, worked))
        .unionByName(delivery(messages))
        .unionByName(_without_groups(runs))
        .unionByName(observed_events(facts.events, terms.observed_events))
        .unionByName(_partial(runs))
    )
    every = _nothing_without_groups(found, runs).unionByName(
        of_messages(runs, facts.events, facts.changes, terms, tables), allowMissingColumns=True
    )
    offsets = tables.keep(
        "group_offsets",
        group_offsets.judged(runs, facts.events, facts.changes, terms.retentions, tables),
    )
    every = every.unionByName(offsets, allowMissingColumns=True)
    control = of_control_planes(known, facts, rests.restless, plans, tables)
    every = every.unionByName(control, allowMissingColumns=True)
    properties = tables.keep("computed", every)
    return Second(properties, rests, worked, messages)


GROUPED = ("full cover", "consensus", "agreed view", "balance", "progress", "work bound")
"""Properties that are computed only for runs with groups and a plan that names them."""


def _without_groups(runs: DataFrame) -> DataFrame:
    alone = runs.where("has_plan AND NOT has_groups")
    return alone.select(
        "run",
        sql.explode(sql.array(*map(sql.lit, GROUPED))).alias("property"),
        sql.lit(UNKNOWN).alias("verdict"),
        sql.lit(None).cast("long").alias("seq"),
    )


def _nothing_without_groups(found: DataFrame, runs: DataFrame) -> DataFrame:
    """Without groups, properties of groups are unknown.

    Brokers that elect a controller delete ephemerals too, so *own nodes only* is about them.
    """
    is_other = sql.col("property").startswith("sometimes: ") | sql.col("property").startswith(
        "never: "
    )
    is_of_brokers = sql.col("has_controller") & (sql.col("property") == OWN_NODES.name)
    is_complete = sql.col("property") == "complete"
    is_known = sql.col("has_groups") | is_other | is_complete | is_of_brokers
    return found.join(runs.select("run", "has_groups", "has_controller"), "run").select(
        "run",
        "property",
        sql.when(is_known, sql.col("verdict")).otherwise(UNKNOWN).alias("verdict"),
        sql.when(is_known, sql.col("seq")).alias("seq"),
    )


def _partial(runs: DataFrame) -> DataFrame:
    return runs.where("partial").select(
        "run",
        sql.lit("complete").alias("property"),
        sql.lit(UNKNOWN).alias("verdict"),
        sql.lit(None).cast("long").alias("seq"),
    )


# --- beside the verdicts ---------------------------------------------------------------


def compared(found: DataFrame, recorded: DataFrame, events: DataFrame) -> DataFrame:
    """Both verdicts side by side: `agrees` is null if only one of them exists."""
    moments = events.select("run", sql.col("seq").cast("long").alias("seq"), "t_us")
    timed = found.join(moments, ["run", "seq"], "left")
    both = timed.join(recorded, ["run", "property"], "full")
    return both.select(
        "run",
        "property",
        sql.col("verdict").alias("computed"),
        "recorded",
        "counts",
        "seq",
        sql.coalesce("at_us", "t_us").alias("at_us"),
        "evidence",
        _agrees().alias("agrees"),
    )


def _agrees() -> Column:
    """Whether the verdicts are equal, and the moments if both state one."""
    told_us = sql.regexp_extract("evidence", _MOMENT, 1).cast("long") * 1_000_000 + (
        sql.regexp_extract("evidence", _MOMENT, 2).cast("long") * 1000
    )
    moment = sql.coalesce("recorded_at_us", sql.when(sql.col("evidence").rlike(_MOMENT), told_us))
    computed = sql.coalesce("at_us", "t_us")
    same_moment = sql.coalesce(sql.abs(moment - computed) <= SLACK_US, sql.lit(True))
    return (sql.col("verdict") == sql.col("recorded")) & same_moment


def differences(both: DataFrame, runs: DataFrame, most: int) -> list[Difference]:
    """The first differences; those of whole traces come first."""
    other = runs.where("judged_fingerprint <> fingerprint").orderBy("run").limit(most)
    traces = [
        Difference(row.run, TRACE, row.judged_fingerprint, row.fingerprint, None, None, "")
        for row in other.collect()
    ]
    wrong = both.where("agrees = false").orderBy("run", "property").limit(most)
    return traces + [
        Difference(
            *(row.run, row.property, row.recorded, row.computed),
            *(row.seq, row.at_us, row.evidence),
        )
        for row in wrong.collect()
    ]
