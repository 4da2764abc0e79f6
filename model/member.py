"""A consumer: what it was started with, what it remembers, and what it is called."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from model.asks import Fetch, Partition
from model.assignment import Assignor, View
from model.registry import Layout, member, owner
from model.requests import Requests
from model.settings import ConsumerSettings
from model.subscriptions import Subscription, encode_consumer
from model.variants import Variant


@dataclass(frozen=True, slots=True)
class Consumer:
    """What a consumer is told when it starts."""

    node: str
    group: str
    host: str
    subscription: Subscription
    layout: Layout
    variant: Variant
    settings: ConsumerSettings
    configured_id: str = ""
    """`consumer.id`; empty for one that is drawn."""

    @property
    def assignor(self) -> Assignor:
        """How it deals out partitions; 0.8.2 takes any word it does not know for range."""
        if self.variant.assignor is not None:
            return self.variant.assignor
        if self.settings.assignor == "roundrobin":
            return "roundrobin"
        if self.settings.assignor == "roundrobin_11":
            return "roundrobin_11"
        return "range"


class Memory(Struct, frozen=True):
    """What a consumer knows from one turn to the next.

    Nothing here says what the world *is*, only what has been asked of it: `owned` holds
    at least everything that may be claimed, and `guard` is the version of the own id that
    every fenced write will check, or None when it has to be raised first.
    """

    consumer_id: str = ""
    has_session: bool = False
    is_connected: bool = True
    is_registered: bool = False
    is_watching: bool = False
    is_blocked: bool = False
    """The own id is in use: nothing to do until a note comes."""
    is_dirty: bool = False
    """Something has changed since the last rebalance began."""
    is_leaving: bool = False
    sees_no_brokers: bool = False
    """Kafka 0.8 watches the brokers only once it has seen none."""
    guard: int | None = None
    attempt: int = 0
    owned: tuple[Partition, ...] = ()
    plan: tuple[tuple[Partition, int, str], ...] = ()
    """What fell to me when I last looked: partition, stream, address of its broker."""
    freed: tuple[Partition, ...] = ()
    """What of it others have let go of since."""
    topics: tuple[str, ...] | None = None
    """What a filter allowed when the topics were last looked at."""
    cache: tuple[tuple[str, tuple[Partition, ...]], ...] = ()
    """Topic -> its partitions when they were first read; only a flawed variant keeps that."""


@dataclass(slots=True)
class Attempt:
    """What one attempt at a rebalance has found out so far. Its steps fill it in.

    It lives within one turn; what is to outlive it goes into `memory`.
    """

    me: Consumer
    memory: Memory
    requests: Requests
    only_topic: str | None = None
    """Set where topics are rebalanced one by one."""
    addresses: dict[int, str] = field(default_factory=dict)
    """Broker -> where it listens."""
    subscription: Subscription | None = None
    """What the own registration says I want, where a variant reads it."""
    all_topics: tuple[str, ...] | None = None
    """Every topic there is, if somebody has a filter."""
    topics: tuple[str, ...] = ()
    """The topics I want, in order."""
    members: list[tuple[str, Subscription]] = field(default_factory=list)
    partitions: dict[str, list[Partition]] = field(default_factory=dict)
    view: View = ()
    wanted: tuple[tuple[Partition, int], ...] = ()
    """What falls to me, with the number of the stream that gets it."""
    held: tuple[Partition, ...] = ()
    """What I have claimed: by the registry, or by memory where a variant trusts it."""
    places: dict[Partition, Partition] = field(default_factory=dict)
    """Under what other name a partition is claimed; only a flawed variant has any."""
    offsets: dict[Partition, int] = field(default_factory=dict)
    stopped: str = ""
    """Why it ended before its last step; empty while it goes on."""
    succeeded: bool = False
    is_final: bool = False
    """Whether, having failed, it is also the last one."""

    @property
    def is_over(self) -> bool:
        """Whether no further step is to be taken."""
        return bool(self.stopped) or self.succeeded

    def remember(self, **changes: Any) -> None:
        """Change what is remembered afterwards."""
        self.memory = replace(self.memory, **changes)

    def lose_registration(self) -> None:
        """The own registration is not there any more."""
        self.remember(is_registered=False, guard=None)
        self.stopped = "the own registration is gone"

    def wants(self) -> frozenset[Partition]:
        """The partitions that fall to me."""
        return frozenset(partition for partition, _ in self.wanted)

    def lost(self) -> tuple[Partition, ...]:
        """What I have claimed and is to be another's."""
        wants = self.wants()
        return tuple(partition for partition in self.held if partition not in wants)

    def owner_path(self, partition: Partition) -> str:
        """Where a partition is claimed."""
        return owner(self.me.group, self.places.get(partition, partition))

    def fetches(self, partitions: Collection[Partition]) -> tuple[Fetch, ...]:
        """How to fetch these of my partitions, in the order they were assigned."""
        return tuple(
            Fetch(partition, self.offsets.get(partition, 0), stream, self.address_of(partition))
            for partition, stream in self.wanted
            if partition in partitions
        )

    def address_of(self, partition: Partition) -> str:
        """Where the broker of a partition listens; empty where the fetcher must find it."""
        if self.me.layout == "0.8":
            return ""
        return self.addresses.get(_broker_number(partition.name), "")


@lru_cache(maxsize=65_536)
def _broker_number(name: str) -> int:
    """0.7: the broker in the name of a partition."""
    return int(name.partition("-")[0])


def generated_id(me: Consumer, now_ms: int, drawn: str) -> str:
    """The id of a consumer, in the form its variant has.

    0.7 pages: `host:uuid`. Shipped: `group_host-millis-uuid8`, or `group_` and the
    configured id.
    """
    if me.variant.consumer_id == "host:uuid":
        return f"{me.host}:{me.configured_id or drawn}"
    if me.configured_id:
        return f"{me.group}_{me.configured_id}"
    return f"{me.group}_{me.host}-{now_ms}-{drawn[:8]}"


@lru_cache(maxsize=65_536)
def stream_ids(unit: str, consumer_id: str, streams: int) -> tuple[str, ...]:
    """The ids of a consumer's streams, as the assignment counts them."""
    if unit == "consumer":
        return (consumer_id,) if streams > 0 else ()
    return tuple(f"{consumer_id}-{index}" for index in range(streams))


def stream_number(unit: str, consumer_id: str, stream: str) -> int:
    """Which of a consumer's streams this id means."""
    return 0 if unit == "consumer" else int(stream[len(consumer_id) + 1 :])


def owner_value(me: Consumer, consumer_id: str, stream: int) -> bytes:
    """What a claim's znode holds."""
    if me.variant.owner_value == "consumer":
        return consumer_id.encode()
    return f"{consumer_id}-{stream}".encode()


def id_path(me: Consumer, memory: Memory) -> str:
    """The path of this consumer's registration."""
    return member(me.group, memory.consumer_id)


def registration(me: Consumer, now_ms: int) -> bytes:
    """What this consumer writes into its registration."""
    return encode_consumer(me.subscription, me.layout, timestamp_ms=now_ms)
