"""The properties of messages but for delivery, a second time: order, commits, and two waits."""

from __future__ import annotations

from watchkeeper.pipeline.analysis.engine.api import DataFrame
from watchkeeper.pipeline.analysis.facts.message_events import message_events_of
from watchkeeper.pipeline.analysis.facts.plan_facts import Terms
from watchkeeper.pipeline.analysis.facts.tables import Tables
from watchkeeper.pipeline.analysis.properties.order_and_commits import order, sane_commits
from watchkeeper.pipeline.analysis.properties.starvation import no_starvation, punctual


def of_messages(
    runs: DataFrame, events: DataFrame, changes: DataFrame, terms: Terms, tables: Tables
) -> DataFrame:
    """A row a property and a run whose logs hold messages; of groups only if it has any.

    Plans alone state which topics are mirrored, and which broker belongs to which cluster; so a
    run without a plan has no rows.
    """
    storing = runs.where("has_messages")
    grouped = storing.where("has_groups")
    message_events = tables.keep("message_events", message_events_of(events, storing))
    brokers = terms.nodes.where("role = 'broker'").drop("role")
    handed = order(grouped, message_events, terms.mirrored).unionByName(
        sane_commits(grouped, message_events, changes, brokers)
    )
    waits = no_starvation(grouped, message_events, changes, brokers).unionByName(
        punctual(storing, message_events)
    )
    return tables.keep("handing", handed).unionByName(
        tables.keep("waiting", waits), allowMissingColumns=True
    )
