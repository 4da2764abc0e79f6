"""What a new controller does first: it reads the cluster and repairs it.

Kafka 0.8.2.2: KafkaController.onControllerFailover. Every request can be the last one of the
reign, so nothing is kept before all of it is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from watchkeeper.model.actor.effects import emit
from watchkeeper.model.actor.operations import Exists
from watchkeeper.model.controller import partitions, replicas
from watchkeeper.model.controller.reign import Reign, assignment_in, children_of, leadership_in
from watchkeeper.model.controller.variants import AssignmentWatch, LiveBrokers
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import TopicAssignment
from watchkeeper.model.trace.kinds import EventKind


async def fail_over(reign: Reign) -> None:
    """Read brokers, topics, assignments and states; then start both state machines."""
    _, live = await brokers_of(reign)
    topics = await children_of(reign.requests, paths.TOPICS)
    reign.context = replace(reign.context, live=live, topics=topics)
    await read_assignments(reign, topics)
    await _read_states(reign)
    replicas.start(reign)
    await partitions.start(reign)
    await replicas.end_dead(reign)
    await watch_assignments(reign, topics)
    await emit(EventKind.FAILOVER_COMPLETED, epoch=reign.context.epoch, live=list(live))


async def brokers_of(reign: Reign) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the brokers in the list of ids, and those that count as alive."""
    names = await children_of(reign.requests, paths.BROKER_IDS)
    listed = tuple(sorted(int(name) for name in names if name.isdigit()))
    if reign.me.variant.live_brokers is LiveBrokers.LISTED:
        return listed, listed
    seen = await reign.read_all([paths.broker(broker) for broker in listed], watch=False)
    live = [broker for broker, znode in zip(listed, seen, strict=True) if znode is not None]
    return listed, tuple(live)


async def read_assignments(reign: Reign, topics: Sequence[str]) -> None:
    """Read the assignments of topics; a topic without a valid one has no partitions."""
    watch = reign.me.variant.assignment_watch is AssignmentWatch.WITH_READ
    names = [paths.topic(topic) for topic in topics]
    seen = await reign.read_all(names, watch=watch)
    for topic, path, znode in zip(topics, names, seen, strict=True):
        found = assignment_in(path, znode) or TopicAssignment(())
        reign.context = reign.context.with_assignment(topic, found)


async def watch_assignments(reign: Reign, topics: Sequence[str]) -> None:
    """Set the watches on assignments, where the variant does so without reading them."""
    if reign.me.variant.assignment_watch is AssignmentWatch.AFTER_FAILOVER:
        for topic in topics:
            await reign.requests(Exists(paths.topic(topic), True, "read cluster"))


async def _read_states(reign: Reign) -> None:
    known = reign.context.assigned()
    names = [paths.partition_state(partition) for partition in known]
    seen = await reign.read_all(names, watch=False)
    for partition, path, znode in zip(known, names, seen, strict=True):
        found = leadership_in(path, znode)
        if found is not None:
            reign.keep(partition, *found)
