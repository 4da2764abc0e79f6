"""Every property a second time, beside what the run was judged to be.

The judges follow a run event by event; here the same comes from joins and windows over its
table of events. Where the two differ, one of them is wrong, or one of the files is not what
it was: that is a difference, and the analysis fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from pipeline.analysis.calm import calm
from pipeline.analysis.delivery import accounts, delivery
from pipeline.analysis.happenings import happenings
from pipeline.analysis.messaging import of_messages
from pipeline.analysis.owning import UNKNOWN, owning
from pipeline.analysis.progress import calm_us, progress, with_rests, work
from pipeline.analysis.resting import Rests, resting
from pipeline.analysis.spans import Facts
from pipeline.analysis.tables import Tables
from pipeline.analysis.terms import Terms

TRACE = "the trace"
"""What differs where a trace is not the one that was judged."""
SLACK_US = 1000
"""Evidence tells a moment to the millisecond."""
_MOMENT = r"^at ([0-9]+)\.([0-9]{3}) s"


class Second(NamedTuple):
    """What was computed a second time."""

    properties: DataFrame
    """A row a run and a property: run, property, verdict, seq; and `at_us`, the moment, where
    it is no event that violates it."""
    rests: Rests
    work: DataFrame
    """A row a group, with what it did and when it came to rest."""
    messages: DataFrame
    """A row a group to which something is promised of messages, with what became of them."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a run was judged otherwise than it is here."""

    run: str
    property: str
    said: str
    """The verdict of the run; of a trace, the fingerprint of the one that was judged."""
    computed: str
    event: int | None
    """The first event that violates the property by what was computed here."""
    at_us: int | None
    evidence: str
    """What was said of it."""


def second(runs: DataFrame, facts: Facts, terms: Terms, tables: Tables) -> Second:
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
        .unionByName(happenings(facts.events, terms.happenings))
        .unionByName(_partial(runs))
    )
    every = _nothing_without_groups(found, runs).unionByName(
        of_messages(runs, facts.events, facts.changes, terms, tables), allowMissingColumns=True
    )
    properties = tables.keep("computed", every)
    return Second(properties, rests, worked, messages)


GROUPED = ("full cover", "consensus", "balance", "progress", "work bound")
"""What is computed only for runs that have groups, and a plan that names them."""


def _without_groups(runs: DataFrame) -> DataFrame:
    alone = runs.where("has_plan AND NOT has_groups")
    return alone.select(
        "run",
        sql.explode(sql.array(*map(sql.lit, GROUPED))).alias("property"),
        sql.lit(UNKNOWN).alias("verdict"),
        sql.lit(None).cast("long").alias("seq"),
    )


def _nothing_without_groups(found: DataFrame, runs: DataFrame) -> DataFrame:
    """Where there is no group nothing is known of what groups do."""
    is_other = sql.col("property").startswith("sometimes: ") | sql.col("property").startswith(
        "never: "
    )
    is_known = sql.col("has_groups") | is_other | (sql.col("property") == "complete")
    return found.join(runs.select("run", "has_groups"), "run").select(
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


def compared(found: DataFrame, said: DataFrame, events: DataFrame) -> DataFrame:
    """Both, side by side: `agrees` is null where only one of them says anything."""
    moments = events.select("run", sql.col("seq").cast("long").alias("seq"), "t_us")
    timed = found.join(moments, ["run", "seq"], "left")
    both = timed.join(said, ["run", "property"], "full")
    return both.select(
        "run",
        "property",
        sql.col("verdict").alias("computed"),
        "said",
        "counts",
        "seq",
        sql.coalesce("at_us", "t_us").alias("at_us"),
        "evidence",
        _agrees().alias("agrees"),
    )


def _agrees() -> Column:
    """Whether verdicts are the same, and the moments where both name one."""
    told = sql.regexp_extract("evidence", _MOMENT, 1).cast("long") * 1_000_000 + (
        sql.regexp_extract("evidence", _MOMENT, 2).cast("long") * 1000
    )
    moment = sql.coalesce("said_at_us", sql.when(sql.col("evidence").rlike(_MOMENT), told))
    computed = sql.coalesce("at_us", "t_us")
    same_moment = sql.coalesce(sql.abs(moment - computed) <= SLACK_US, sql.lit(True))
    return (sql.col("verdict") == sql.col("said")) & same_moment


def differences(both: DataFrame, runs: DataFrame, most: int) -> list[Difference]:
    """The first differences; those of whole traces come first."""
    other = runs.where("judged_fingerprint <> fingerprint").orderBy("run").limit(most)
    traces = [
        Difference(one.run, TRACE, one.judged_fingerprint, one.fingerprint, None, None, "")
        for one in other.collect()
    ]
    wrong = both.where("agrees = false").orderBy("run", "property").limit(most)
    return traces + [
        Difference(
            *(one.run, one.property, one.said, one.computed),
            *(one.seq, one.at_us, one.evidence),
        )
        for one in wrong.collect()
    ]
