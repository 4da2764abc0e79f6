"""The configuration of a consumer, its state, and the names it writes.

Three values with three lifetimes: `Consumer` is fixed for the life of a process,
`ConsumerState` passes from turn to turn, `Attempt` lives within one turn.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from immutables import Map
from msgspec import Struct
from msgspec.structs import replace

from watchkeeper.model.actor.effects import Fetch, Partition, forget
from watchkeeper.model.actor.retry import Requests
from watchkeeper.model.group.assignment import Assignor, View
from watchkeeper.model.group.settings import ConsumerSettings
from watchkeeper.model.group.variants import ConsumerIdForm, OwnerValue, Unit, Variant
from watchkeeper.model.registry.paths import Layout, broker_of, member, owner
from watchkeeper.model.registry.subscription import Subscription, encode_consumer


@dataclass(frozen=True, slots=True)
class Consumer:
    """The configuration with which a consumer starts."""

    node: str
    group: str
    host: str
    subscription: Subscription
    layout: Layout
    variant: Variant
    settings: ConsumerSettings
    configured_id: str = ""
    """`consumer.id`; empty if the id is drawn at random."""

    @property
    def assignor(self) -> Assignor:
        """The assignment strategy.

        Kafka 0.8.2 falls back to `range` for every value it does not know.
        """
        if self.variant.assignor is not None:
            return self.variant.assignor
        if self.settings.assignor == "roundrobin":
            return "roundrobin"
        if self.settings.assignor == "roundrobin_11":
            return "roundrobin_11"
        return "range"


class ConsumerState(Struct, frozen=True):
    """What a consumer knows from one turn to the next.

    A turn can end at any request, so a field holds only what stays true then. `owned` is an
    upper bound: it contains every partition that may be claimed. `fence_version` is the
    version of the own registration that every fenced write checks; None means that it has
    to be raised before the next write.
    """

    consumer_id: str = ""
    has_session: bool = False
    is_connected: bool = True
    is_registered: bool = False
    is_watching: bool = False
    is_blocked: bool = False
    """The own id is in use: nothing to do until an event arrives."""
    is_dirty: bool = False
    """Something changed after the last rebalance had begun."""
    is_leaving: bool = False
    sees_no_brokers: bool = False
    """Kafka 0.8 watches the brokers only once it has seen none."""
    fence_version: int | None = None
    attempt: int = 0
    owned: tuple[Partition, ...] = ()
    plan: tuple[tuple[Partition, int, str], ...] = ()
    """The last assignment: partition, number of the stream, address of the broker."""
    freed: tuple[Partition, ...] = ()
    """Partitions of `plan` that their previous owners have released since."""
    topics: tuple[str, ...] | None = None
    """The topics that the filter allowed when they were last read."""
    coordinator: str = ""
    """The address of the group's coordinator, where offsets are kept in Kafka and it is known."""
    checkpointed: Map[Partition, int] = Map()
    """As shipped, with dual commit: the offset last written to ZooKeeper, or begun at."""
    known: Map[str, Any] = Map()
    """Path -> what was read there under a watch that has not fired since: names, or data."""


class PartitionList(Struct, frozen=True, cache_hash=True):
    """The partitions of a topic as they were read. The hash of thousands is computed once."""

    partitions: tuple[Partition, ...] = ()


@dataclass(slots=True)
class Attempt:
    """What one attempt at a rebalance has found out so far. Its steps fill it in.

    It lives within one turn; `state` is what outlives it.
    """

    me: Consumer
    state: ConsumerState
    requests: Requests
    only_topic: str | None = None
    """The topic of this attempt, where topics are rebalanced one by one."""
    addresses: dict[int, str] = field(default_factory=dict)
    """Broker id -> host:port."""
    subscription: Subscription | None = None
    """The subscription in the own registration, where a variant reads it."""
    all_topics: tuple[str, ...] | None = None
    """Every topic of the cluster; read only if a member has a filter."""
    topics: tuple[str, ...] = ()
    """The topics of this member, sorted."""
    members: tuple[tuple[str, Subscription], ...] = ()
    partitions: dict[str, PartitionList] = field(default_factory=dict)
    view: View = ()
    assigned: tuple[tuple[Partition, int], ...] = ()
    """The partitions assigned to this member, each with the number of its stream."""
    claimed: tuple[Partition, ...] = ()
    """The claims of this member, from the registry or, as shipped, from its state."""
    offsets: dict[Partition, int] = field(default_factory=dict)
    stopped: str = ""
    """Why the attempt ended before its last step; empty while it goes on."""
    succeeded: bool = False
    is_final: bool = False
    """Whether no further attempt follows this failed one."""
    lacks_coordinator: bool = False
    """Whether it failed because the coordinator of the group does not serve now."""

    def update(self, **changes: Any) -> None:
        """Change fields of the state that outlives the attempt."""
        self.state = replace(self.state, **changes)

    def take_plan(self) -> None:
        """Take over the last assignment and the addresses of its brokers."""
        plan = self.state.plan
        self.assigned = tuple([(partition, stream) for partition, stream, _ in plan])
        if self.me.layout == "0.7":
            self.addresses = {broker_of(partition): address for partition, _, address in plan}

    def lose_registration(self) -> None:
        """End the attempt because the own registration is gone."""
        self.update(is_registered=False, fence_version=None)
        self.stopped = "the own registration is gone"

    def assigned_partitions(self) -> frozenset[Partition]:
        """Return the partitions that are assigned to this member."""
        return frozenset([partition for partition, _ in self.assigned])

    def lost(self) -> tuple[Partition, ...]:
        """Return the claims on partitions that are assigned to other members now."""
        assigned = self.assigned_partitions()
        return tuple([partition for partition in self.claimed if partition not in assigned])

    async def forget_positions(self, partitions: Sequence[Partition]) -> None:
        """Forget the positions in partitions that another member owns, or may have owned.

        A position that is kept would be used when the partition comes back, after another
        member has read on.
        """
        await forget(partitions)

    def owner_path(self, partition: Partition) -> str:
        """Return the path of the claim on a partition."""
        return owner(self.me.group, partition)

    def fetches(self, partitions: Collection[Partition]) -> tuple[Fetch, ...]:
        """Return the fetch requests for these partitions, in the order of the assignment."""
        offsets = self.offsets
        return tuple(
            [
                Fetch(partition, offsets.get(partition, 0), stream, address)
                for partition, stream, address in self.addressed()
                if partition in partitions
            ]
        )

    def addressed(self) -> list[tuple[Partition, int, str]]:
        """Return the assignment with the address of each partition's broker."""
        if self.me.layout == "0.8":
            return [(partition, stream, "") for partition, stream in self.assigned]
        addresses, number_of = self.addresses, _broker_number
        return [
            (partition, stream, addresses.get(number_of(partition.name), ""))
            for partition, stream in self.assigned
        ]

    def address_of(self, partition: Partition) -> str:
        """Return host:port of a partition's broker; empty where the fetcher has to find it."""
        if self.me.layout == "0.8":
            return ""
        return self.addresses.get(_broker_number(partition.name), "")


@lru_cache(maxsize=65_536)
def _broker_number(name: str) -> int:
    """Return the broker id in the name of a 0.7 partition."""
    return int(name.partition("-")[0])


def generated_id(me: Consumer, now_ms: int, drawn: str) -> str:
    """Return the id of a consumer in the form of its variant.

    0.7 pages: `host:uuid`. Shipped: `group_host-millis-uuid8`, or `group_` and the
    configured id. `drawn` is 32 hexadecimal digits; the shipped form takes the first 8.
    """
    if me.configured_id:
        return configured_name(me.variant, me.group, me.host, me.configured_id)
    if me.variant.consumer_id is ConsumerIdForm.HOST_UUID:
        return f"{me.host}:{drawn}"
    return f"{me.group}_{me.host}-{now_ms}-{drawn[:8]}"


def configured_name(variant: Variant, group: str, host: str, configured_id: str) -> str:
    """Return the id of a consumer whose `consumer.id` is configured."""
    if variant.consumer_id is ConsumerIdForm.HOST_UUID:
        return f"{host}:{configured_id}"
    return f"{group}_{configured_id}"


@lru_cache(maxsize=65_536)
def stream_ids(unit: Unit, consumer_id: str, streams: int) -> tuple[str, ...]:
    """Return the ids of a consumer's streams as the assignment counts them."""
    if unit is Unit.CONSUMER:
        return (consumer_id,) if streams > 0 else ()
    return tuple(f"{consumer_id}-{index}" for index in range(streams))


def stream_number(unit: Unit, consumer_id: str, stream: str) -> int:
    """Return the number of the consumer's stream with this id."""
    return 0 if unit is Unit.CONSUMER else int(stream[len(consumer_id) + 1 :])


def owner_value(me: Consumer, consumer_id: str, stream: int) -> bytes:
    """Return the data of a claim."""
    if me.variant.owner_value is OwnerValue.CONSUMER:
        return consumer_id.encode()
    return f"{consumer_id}-{stream}".encode()


def id_path(me: Consumer, state: ConsumerState) -> str:
    """Return the path of this consumer's registration."""
    return member(me.group, state.consumer_id)


def registration(me: Consumer, now_ms: int) -> bytes:
    """Return the data of this consumer's registration."""
    return encode_consumer(me.subscription, me.layout, timestamp_ms=now_ms)
