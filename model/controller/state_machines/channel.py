"""The channels from a controller to the brokers, and the batches that go out over them.

A channel is a queue and a task for each live broker: one request is under way, and it is sent
again and again until the broker answers, the broker is gone, or the reign ends. So a broker may
receive a request twice, and never out of order; requests to other brokers do not wait for it.

A transition collects what it has to send in a `Batch`, which goes out when all of them are done:
to each broker first LeaderAndIsr, then UpdateMetadata, then StopReplica.

Kafka 0.8.2.2: ControllerChannelManager, ControllerBrokerRequestBatch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from watchkeeper.model.actor.effects import Partition, emit, sleep
from watchkeeper.model.actor.orders import hand_in
from watchkeeper.model.actor.rpc import Call, CallError
from watchkeeper.model.actor.tasks import UNBOUNDED, Drain, Post, Posted, Start, put, take
from watchkeeper.model.replication.requests import (
    BrokerAddress,
    BrokerRequest,
    ErrorCode,
    LeaderAndIsr,
    LeaderState,
    Outcome,
    StopReplica,
    UpdateMetadata,
)
from watchkeeper.model.trace.kinds import EventKind

RETRY_MS = 300
"""The pause before a request is sent again."""
SOCKET_TIMEOUT_MS = 30_000
"""`controller.socket.timeout.ms`."""
FIRST_REBALANCE_MS = 5_000
"""When a controller first looks at which brokers lead."""
REIGN = "reign"
"""Where the epoch of the present reign is posted."""


class Closed:
    """The last item of a channel's queue."""


CLOSED = Closed()


class Registration(NamedTuple):
    """What a broker has registered."""

    address: str
    born: str
    """When its process started: another one is another process."""


class Channel(NamedTuple):
    """The channel of a reign to a broker's process."""

    epoch: int
    broker: int
    registration: Registration

    @property
    def queue(self) -> str:
        """The queue of what it has to send."""
        return f"channel/{self.epoch}/{self.broker}/{self.registration.born}"

    @property
    def post(self) -> str:
        """Where the channel to this broker is posted that is open now."""
        return f"channel to {self.broker}"


class RebalanceDue(Struct, frozen=True):
    """It is time to look at which brokers lead."""


class ReplicasStopped(Struct, frozen=True):
    """A broker has answered a request to delete replicas."""

    broker: int
    partitions: tuple[Partition, ...]
    is_done: bool


async def begin_reign(epoch: int, rebalance_ms: int | None) -> None:
    """Let the channels of earlier reigns send nothing more, and start the timer of this one."""
    await Post(REIGN, epoch)
    if rebalance_ms is not None:
        await Start("rebalance leaders", lambda: _remind_regularly(epoch, rebalance_ms))


async def _remind_regularly(epoch: int, every_ms: int) -> None:
    await sleep(FIRST_REBALANCE_MS)
    while await Posted(REIGN) == epoch:
        await hand_in(RebalanceDue())
        await sleep(every_ms)


async def open_channel(channel: Channel) -> None:
    """Open a channel."""
    await Post(channel.post, channel)
    await Start(channel.post, lambda: _send_all(channel))


async def close_channel(channel: Channel) -> None:
    """Close a channel; what it has not sent is dropped."""
    await Post(channel.post, None)
    await Drain(channel.queue)
    await put(channel.queue, CLOSED, UNBOUNDED)


async def _is_open(channel: Channel) -> bool:
    reign, opened = await Posted(REIGN), await Posted(channel.post)
    return (reign, opened) == (channel.epoch, channel)


async def _send_all(channel: Channel) -> None:
    while True:
        request = await take(channel.queue)
        if request is CLOSED:
            return
        outcome = await _send(channel, request)
        if outcome is None:
            return
        await _note_errors(channel.broker, request, outcome)
        if isinstance(request, StopReplica) and request.deletes:
            is_done = outcome.error is ErrorCode.NONE
            await hand_in(ReplicasStopped(channel.broker, request.partitions, is_done))


async def _send(channel: Channel, request: BrokerRequest) -> Outcome | None:
    """Send a request until it is answered; None if the channel is closed first."""
    while await _is_open(channel):
        try:
            outcome: Outcome = await Call(
                channel.registration.address, request, SOCKET_TIMEOUT_MS
            )
        except CallError:
            await sleep(RETRY_MS)
        else:
            return outcome
    return None


async def _note_errors(to: int, request: BrokerRequest, outcome: Outcome) -> None:
    """Write into the trace what a broker refuses. As shipped, a controller does no more."""
    refused = {
        str(partition): int(code)
        for partition, code in outcome.partitions
        if code is not ErrorCode.NONE
    }
    if outcome.error is not ErrorCode.NONE or refused:
        await emit(
            EventKind.CONTROL_REFUSED,
            to=to,
            request=type(request).__name__,
            error=int(outcome.error),
            partitions=refused,
        )


class Sender(StrEnum):
    """The parts of the shipped controller that send requests, each with a batch of its own."""

    PARTITIONS = "the partition state machine"
    REPLICAS = "the replica state machine"
    CONTROLLER = "the controller"


@dataclass(slots=True)
class Batch:
    """What is to be sent to each broker."""

    states: dict[int, dict[Partition, LeaderState]] = field(default_factory=dict)
    """Broker -> what it has to lead or to follow."""
    metadata: dict[int, dict[Partition, LeaderState]] = field(default_factory=dict)
    stops: dict[int, dict[tuple[Partition, bool], None]] = field(default_factory=dict)
    """Broker -> partitions to stop, and whether to delete them."""
    strays: dict[int, tuple[Partition, ...]] = field(default_factory=dict)
    """Broker -> partitions that are not assigned to it, to delete in one request."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be sent."""
        return not (self.states or self.metadata or self.stops or self.strays)

    def lead(self, brokers: Iterable[int], said: LeaderState) -> None:
        """Let brokers lead or follow."""
        for broker in brokers:
            self.states.setdefault(broker, {})[said.partition] = said

    def tell(self, brokers: Iterable[int], states: Iterable[LeaderState]) -> None:
        """Let brokers know who leads."""
        told = {said.partition: said for said in states}
        for broker in brokers:
            self.metadata.setdefault(broker, {}).update(told)

    def stop(self, broker: int, partition: Partition, *, deletes: bool) -> None:
        """Let a broker stop a replica."""
        self.stops.setdefault(broker, {})[partition, deletes] = None

    def requests(
        self, controller: int, epoch: int, alive: tuple[BrokerAddress, ...]
    ) -> Iterator[tuple[int, BrokerRequest]]:
        """Yield each broker with a request, in the order in which they go out."""
        for broker, states in self.states.items():
            said = tuple(states.values())
            leaders = {one.state.leader for one in said}
            known = tuple(one for one in alive if one.broker in leaders)
            yield broker, LeaderAndIsr(controller, epoch, said, known)
        for broker, states in self.metadata.items():
            yield broker, UpdateMetadata(controller, epoch, tuple(states.values()), alive)
        for broker, stops in self.stops.items():
            for partition, deletes in stops:
                yield broker, StopReplica(controller, epoch, deletes, (partition,))
        for broker, strays in self.strays.items():
            yield broker, StopReplica(controller, epoch, True, strays)
