"""The facts of a plan that its trace does not show: membership, bounds and guarantees.

A trace shows what happened. The ticks until a group counts as at rest, the number of streams of
a member, and the event that a scenario is about are in the plan alone; here they become tables
for joins. A run without a plan has no rows in them, and is then not computed a second time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from watchkeeper.model.group.variants import Unit
from watchkeeper.model.plan.mirror_routes import Routes
from watchkeeper.model.plan.plan import ClusterPlan, ConsumerPlan, GroupPlan, Plan
from watchkeeper.model.properties.at_quiescence import streams_of
from watchkeeper.model.properties.group_offsets import retentions_us
from watchkeeper.pipeline.analysis.engine.api import DataFrame
from watchkeeper.pipeline.analysis.engine.engine import Engine, Schema
from watchkeeper.pipeline.analysis.facts.mirror_routes import (
    HOMES,
    ORIGINS,
    READERS,
    guaranteed_groups,
    homes,
    origins,
    readers,
)

QUIET_TICKS = 2
RECONNECT_US = 2_000_000
"""The longest pause of a client between two attempts to connect."""
READS_OF_A_ZNODE = 3


GROUPS = Schema(
    {
        "run": "string",
        "place": "int",
        "group": "string",
        "prefix": "string",
        "quiet_us": "long",
        "members": "int",
        "within_us": "long",
        "owed_us": "long",
        "most_trips": "long",
        "work_factor": "long",
        "znodes": "long",
        "counts_connections": "boolean",
    }
)
"""A row a group. `within_us` is the scenario's own bound, or -1; `owed_us` the time of a session,
its ticks and back-off; `most_trips` an upper bound of round trips."""

NODES = Schema({"run": "string", "group": "string", "node": "string", "role": "string"})
"""A row a process that has to be quiet for its group to rest: member, broker, administrator."""

STREAMS = Schema(
    {
        "run": "string",
        "group": "string",
        "node": "string",
        "topic": "string",
        "streams": "int",
        "deals_over_topics": "boolean",
    }
)
"""A row a member and a topic of which it takes streams."""

OBSERVED_EVENTS = Schema(
    {
        "run": "string",
        "name": "string",
        "event": "string",
        "node": "string",
        "partition": "string",
        "after": "string",
        "before": "string",
        "detail": "map<string,string>",
    }
)
"""A row a `sometimes` or `never` clause."""

GUARANTEES = Schema(
    {
        "run": "string",
        "group": "string",
        "topic": "string",
        "most_lost": "long",
        "most_repeated": "long",
        "most_refused": "long",
    }
)
"""A row a topic with a delivery guarantee for a group; -1: any number."""

MIRRORED = Schema({"run": "string", "group": "string", "topic": "string"})
"""A row a group and a topic of which mirrors bring it messages."""


RETENTIONS = Schema({"run": "string", "group": "string", "retention_us": "long"})
"""A row a group whose commits to Kafka expire after that time."""


class Terms(NamedTuple):
    """The tables of all plans."""

    groups: DataFrame
    nodes: DataFrame
    streams: DataFrame
    observed_events: DataFrame
    guarantees: DataFrame
    homes: DataFrame
    readers: DataFrame
    origins: DataFrame
    mirrored: DataFrame
    retentions: DataFrame


def terms(engine: Engine, plans: Mapping[str, Plan]) -> Terms:
    """The plans of runs, by the names of these, as tables."""

    def made(rows: Any, schema: Schema) -> DataFrame:
        found = [(run, *row) for run, plan in plans.items() for row in rows(plan)]
        return engine.made(found, schema)

    return Terms(
        made(_groups, GROUPS),
        made(_nodes, NODES),
        made(_streams, STREAMS),
        made(_observed_events, OBSERVED_EVENTS),
        made(_guarantees, GUARANTEES),
        made(homes, HOMES),
        made(readers, READERS),
        made(origins, ORIGINS),
        made(_mirrored, MIRRORED),
        made(lambda plan: retentions_us(plan).items(), RETENTIONS),
    )


Row = tuple[Any, ...]


def _groups(plan: Plan) -> Iterator[Row]:
    for place, group in enumerate(plan.groups):
        cluster = plan.cluster(group.cluster)
        members, partitions = len(group.consumers), _partitions(cluster)
        an_attempt = 20 + 4 * partitions + 2 * members
        yield (
            place,
            group.name,
            _prefix(plan, cluster),
            QUIET_TICKS * cluster.zookeeper.tick_us,
            members,
            -1 if plan.progress_within_us is None else plan.progress_within_us,
            _owed_us(cluster, group),
            plan.work_factor * members * an_attempt,
            plan.work_factor,
            members + len(cluster.brokers) + len(cluster.topics) + partitions + 1,
            cluster.layout == "0.7",
        )


def _prefix(plan: Plan, cluster: ClusterPlan) -> str:
    """The prefix of the names of a cluster's servers."""
    return f"{cluster.name}:" if len(plan.clusters) > 1 else ""


def _partitions(cluster: ClusterPlan) -> int:
    by_broker = sum(count for topic in cluster.topics for _, count in topic.by_broker)
    return max(by_broker, sum(len(topic.replicas) for topic in cluster.topics))


def _owed_us(cluster: ClusterPlan, group: GroupPlan) -> int:
    timeouts_ms = [consumer.settings.session_timeout_ms for consumer in group.consumers]
    pauses_ms = [
        consumer.settings.rebalance_backoff_ms * consumer.settings.rebalance_retries
        for consumer in group.consumers
        if consumer.variant.backs_off
    ]
    longest_ms = max([cluster.session_timeout_ms, *timeouts_ms]) + max(pauses_ms, default=0)
    return 1000 * longest_ms + 2 * cluster.zookeeper.tick_us


def _nodes(plan: Plan) -> Iterator[Row]:
    for group in plan.groups:
        cluster = plan.cluster(group.cluster)
        yield group.name, f"{_prefix(plan, cluster)}administrator", "administrator"
        yield from ((group.name, broker.node, "broker") for broker in cluster.brokers)
        yield from ((group.name, member.node, "member") for member in group.consumers)


def _streams(plan: Plan) -> Iterator[Row]:
    made = {entry.target for entry in plan.timeline if entry.verb.name == "create_topic"}
    for group in plan.groups:
        named = {topic.name for topic in plan.cluster(group.cluster).topics}
        for member in group.consumers:
            for topic in sorted(named | made):
                number = streams_of(member, topic)
                if number:
                    counted = 1 if member.variant.unit is Unit.CONSUMER else number
                    yield group.name, member.node, topic, counted, _deals(member)


def _deals(member: ConsumerPlan) -> bool:
    """Whether partitions are dealt out over all topics together."""
    return member.settings.assignor.startswith("roundrobin") and member.variant.assignor is None


def _observed_events(plan: Plan) -> Iterator[Row]:
    for kind, wanted in (("sometimes", plan.sometimes), ("never", plan.never)):
        for event in wanted:
            detail = {key: value_text(value) for key, value in event.detail}
            where = event.node, event.partition, event.after, event.before
            yield f"{kind}: {event}", event.event, *where, detail


def value_text(value: Any) -> str:
    """A value of an event as the table of details has it."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _guarantees(plan: Plan) -> Iterator[Row]:
    """The delivery guarantees, topic by topic."""
    for group, topic in guaranteed_groups(plan):
        assert group.guarantee is not None, "only such groups are promised something"
        limits: Iterable[int | None] = group.guarantee.limits
        yield group.name, topic, *(-1 if limit is None else limit for limit in limits)


def _mirrored(plan: Plan) -> Iterator[Row]:
    routes = Routes(plan)
    topics = {topic.name for cluster in plan.clusters for topic in cluster.topics}
    topics |= {
        entry.target for entry in plan.timeline if entry.verb.name in ("create_topic", "produce")
    }
    for group in plan.groups:
        for topic in sorted(topics):
            if routes.ways_to(group.cluster, topic):
                yield group.name, topic
