"""A replica of a partition in one broker, and what a leader knows of its followers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.registry.payloads import NO_LEADER
from watchkeeper.model.replication.replica_log import NO_EPOCH, Record
from watchkeeper.model.replication.requests import LeaderState


@dataclass(slots=True)
class Follower:
    """What a leader knows of a follower."""

    heard_ms: int
    """When it fetched last; or when this leader began to lead."""
    caught_up_ms: int | None = None
    """When it was at the end of the log last; or when it was found in the ISR."""
    end: int | None = None
    """The end of its log; None until it has fetched."""
    leader_end: int = 0
    """The end of the leader's log when it fetched last."""
    fetched: int = 0
    """How often it has fetched."""

    def fetches(self, offset: int, leader_end: int, now_ms: int) -> None:
        """Note a fetch from an offset on.

        Under a steady load a follower is behind at each of its fetches. It was at the end at the
        fetch before, if it has by now what the leader had then (KAFKA-4485).
        """
        if offset >= leader_end:
            self.caught_up_ms = now_ms
        elif self.end is not None and offset >= self.leader_end:
            self.caught_up_ms = self.heard_ms
        self.end, self.leader_end, self.heard_ms = offset, leader_end, now_ms
        self.fetched += 1

    def was_caught_up(self, since_ms: int) -> bool:
        """Whether it was at the end of the log since then."""
        return self.caught_up_ms is not None and self.caught_up_ms >= since_ms


@dataclass(slots=True)
class Hooks:
    """What a broker does beside replication."""

    on_follow: Callable[[int], Awaitable[None]] | None = None
    """Starts a task that fetches from a leader."""
    on_missing_topic: Callable[[str], Awaitable[None]] | None = None
    """Creates a topic that a client wants and that this broker does not know."""
    tasks: dict[str, Callable[[], Coroutine[Any, Any, None]]] = field(default_factory=dict)
    """Name -> a task that runs as long as the process, once the replicas are open."""
    on_leaders: Callable[[], Awaitable[None]] | None = None
    """Called once a request of a controller has said who leads."""
    answers: dict[type[Any], Callable[[Any], Awaitable[Any]]] = field(default_factory=dict)
    """Request -> the function that answers it."""


class Arrival(NamedTuple):
    """What a fetch waits for."""

    partitions: frozenset[Partition]
    of_consumer: bool
    """Whether it waits for a higher high watermark, and not for a longer log."""


@dataclass(slots=True)
class WaitingAppend:
    """A producer that waits until the ISR, or some members of it, have what it sent."""

    end: int
    queue: str
    """Where the answer to it is put."""
    members: int = 0
    """How many members of the ISR, with the leader, it waits for; 0: all of them."""


@dataclass(slots=True)
class Replica:
    """A replica of a partition."""

    partition: Partition
    log: list[Record]
    high_watermark: int = 0
    leader: int = NO_LEADER
    leader_epoch: int = NO_EPOCH
    """NO_EPOCH until the controller has sent a state: epochs are in memory alone."""
    controller_epoch: int = NO_EPOCH
    """Of the request by which it leads; a leader signs the ISR with it."""
    version: int = NO_EPOCH
    """Of the znode of the state, as far as is known."""
    isr: tuple[int, ...] = ()
    """Of a leader."""
    replicas: tuple[int, ...] = ()
    followers: dict[int, Follower] = field(default_factory=dict)
    epoch_start: int = 0
    """The end of the log when this epoch of the leader began."""
    must_cut: bool = False
    """Whether it has to ask its leader where to cut before it fetches."""
    has_looked: bool = False
    """Whether this process has taken a request for it, after a look at the registry."""
    is_stopped: bool = False
    """Whether the controller has stopped it: it does not fetch, and remembers its leader."""
    is_changing: bool = False
    """Whether a write of the ISR or of the log is under way: nothing else may change then."""
    waiting: list[WaitingAppend] = field(default_factory=list)

    @property
    def end(self) -> int:
        """The offset of the next record."""
        return len(self.log)

    def note_members(self, own: int, now_ms: int) -> None:
        """Give each follower in the ISR its time, and wait for none that has left it."""
        for broker in self.replicas:
            if broker == own:
                continue
            follower = self.followers.setdefault(broker, Follower(now_ms, now_ms))
            if broker not in self.isr:
                follower.caught_up_ms = None

    def about_to_join(self, since_ms: int) -> list[int]:
        """Return the followers outside of the ISR that were at the end of the log since then."""
        return [
            broker
            for broker, follower in self.followers.items()
            if broker not in self.isr
            and broker in self.replicas
            and follower.was_caught_up(since_ms)
        ]

    def take(self, said: LeaderState) -> None:
        """Take over what the controller says."""
        self.leader = said.state.leader
        self.leader_epoch = said.state.leader_epoch
        self.controller_epoch = said.state.controller_epoch
        self.version = said.version
        self.replicas = said.replicas
