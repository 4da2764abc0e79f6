"""What a new controller does first: it reads the cluster and repairs it.

Kafka 0.8.2.2: KafkaController.onControllerFailover. Every request can be the last one of the
reign, so nothing is kept before all of it is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from immutables import Map

from watchkeeper.model.actor.effects import emit
from watchkeeper.model.actor.events import ZnodeView
from watchkeeper.model.actor.operations import Exists
from watchkeeper.model.controller.changed_isrs import isrs_changed
from watchkeeper.model.controller.deletion import read_deletions, resume_deletions
from watchkeeper.model.controller.preferred import preferred_at_failover
from watchkeeper.model.controller.reassignment import reassignment_at_failover
from watchkeeper.model.controller.state_machines import partitions, replicas
from watchkeeper.model.controller.state_machines.channel import (
    Registration,
    close_channel,
    open_channel,
)
from watchkeeper.model.controller.state_machines.reign import Reign, assignment_in, children_of
from watchkeeper.model.controller.state_machines.variants import (
    AssignmentWatch,
    FirstRequest,
    LiveBrokers,
)
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.payloads import TopicAssignment
from watchkeeper.model.replication.registry import leadership_in
from watchkeeper.model.trace.kinds import EventKind


async def fail_over(reign: Reign) -> None:
    """Read brokers, topics, assignments and states; then start both state machines."""
    seen = await brokers_of(reign)
    live = seen.live
    topics = await children_of(reign.requests, paths.TOPICS)
    reign.context = replace(reign.context, live=live, topics=topics)
    await read_assignments(reign, topics)
    await _read_states(reign)
    if reign.me.sends:
        await read_deletions(reign)
    await connect(reign, seen.registrations)
    if reign.me.variant.first_request is FirstRequest.METADATA:
        reign.tell_all(live)
        await reign.send()
    await replicas.start(reign)
    await partitions.start(reign)
    await replicas.end_dead(reign)
    await watch_assignments(reign, topics)
    if reign.me.sends:
        await _take_requests(reign)
    await emit(EventKind.FAILOVER_COMPLETED, epoch=reign.context.epoch, live=list(live))


async def _take_requests(reign: Reign) -> None:
    """Go on with what administrators have requested, and tell every broker who leads."""
    reign.context = replace(reign.context, takes_requests=True)
    await reassignment_at_failover(reign)
    await preferred_at_failover(reign)
    reign.tell_all(reign.context.live)
    reign.drop_strays(reign.context.live)
    await reign.send()
    await isrs_changed(reign)
    await resume_deletions(reign)


class Brokers(NamedTuple):
    """The brokers of a cluster, as they were read."""

    listed: tuple[int, ...]
    """Those in the list of ids."""
    live: tuple[int, ...]
    """Those that count as alive."""
    registrations: Map[int, Registration]
    """Those whose registration could be read."""


async def brokers_of(reign: Reign) -> Brokers:
    """List the brokers, and read what they have registered."""
    names = await children_of(reign.requests, paths.BROKER_IDS)
    listed = tuple(sorted(int(name) for name in names if name.isdigit()))
    lists_alone = reign.me.variant.live_brokers is LiveBrokers.LISTED
    if lists_alone and not reign.me.sends:
        return Brokers(listed, listed, Map())
    seen = await reign.read_all([paths.broker(broker) for broker in listed], watch=False)
    there = {
        broker: _registration(broker, znode)
        for broker, znode in zip(listed, seen, strict=True)
        if znode is not None
    }
    live = listed if lists_alone else tuple(there)
    found = {broker: one for broker, one in there.items() if one is not None}
    return Brokers(listed, live, Map(found) if reign.me.sends else Map())


def _registration(broker: int, znode: ZnodeView) -> Registration | None:
    path = paths.broker(broker)
    try:
        info = paths.decode_broker(path, znode.data)
    except BadPayload:
        return None
    return Registration(info.address, info.timestamp)


async def connect(reign: Reign, registrations: Map[int, Registration]) -> None:
    """Open a channel to each broker that has none, and close those of brokers that are gone."""
    before = reign.context.channels()
    reign.context = replace(reign.context, registrations=registrations)
    after = reign.context.channels()
    for channel in before:
        if channel not in after:
            await close_channel(channel)
    for channel in after:
        if channel not in before:
            await open_channel(channel)


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
