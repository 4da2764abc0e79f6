"""The properties of messages but for delivery, a second time: order, commits, and two waits."""

from __future__ import annotations

from pyspark.sql import DataFrame

from pipeline.analysis.handing import order, sane_commits
from pipeline.analysis.tables import Tables
from pipeline.analysis.telling import told_of_messages
from pipeline.analysis.terms import Terms
from pipeline.analysis.waiting import no_starvation, punctual


def of_messages(
    runs: DataFrame, events: DataFrame, changes: DataFrame, terms: Terms, tables: Tables
) -> DataFrame:
    """A row a property and a run whose logs hold messages; of groups only if it has any.

    Which topics come over mirrors, and whose broker is whose, stands in plans; so of a run
    without a plan nothing is computed.
    """
    storing = runs.where("has_messages")
    grouped = storing.where("has_groups")
    told = tables.keep("told_of_messages", told_of_messages(events, storing))
    brokers = terms.nodes.where("role = 'broker'").drop("role")
    handed = order(grouped, told, terms.mirrored).unionByName(
        sane_commits(grouped, told, changes, brokers)
    )
    waits = no_starvation(grouped, told, changes, brokers).unionByName(punctual(storing, told))
    return tables.keep("handing", handed).unionByName(
        tables.keep("waiting", waits), allowMissingColumns=True
    )
