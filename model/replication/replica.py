"""A replica of a partition in one broker, and what a leader knows of its followers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.registry.payloads import NO_LEADER
from watchkeeper.model.replication.replica_log import NO_EPOCH, Record
from watchkeeper.model.replication.requests import LeaderState

WRITTEN_BACK_AFTER_MS = 30_000
"""After how long the kernel writes a dirty page to the disk, by its defaults."""


class ReplicaStore(Protocol):
    """The disk of a broker, as far as its replicas use it."""

    def logs(self) -> Mapping[Partition, Sequence[Record]]:
        """Return what is there of each partition when a broker starts."""

    def high_watermarks(self) -> Mapping[Partition, int]:
        """Return what the checkpoint file has."""

    def append(self, partition: Partition, start: int, records: Sequence[Record]) -> None:
        """Append records to a log; the first one is at the offset `start`."""

    def truncate(self, partition: Partition, end: int) -> None:
        """Cut a log."""

    def delete(self, partition: Partition) -> None:
        """Delete a log."""

    def write_checkpoint(self, marks: Mapping[Partition, int]) -> None:
        """Replace the checkpoint file."""


@dataclass(slots=True)
class Follower:
    """What a leader knows of a follower."""

    heard_ms: int
    """When it fetched last; or when this leader began to lead."""
    caught_up_ms: int
    """When it was at the end of the log last."""
    end: int | None = None
    """The end of its log; None until it has fetched."""


@dataclass(slots=True)
class WaitingAppend:
    """A producer that waits until the ISR has what it sent."""

    end: int
    queue: str
    """Where the answer to it is put."""


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
    """Whether a write of the ISR is under way: nothing else may change meanwhile."""
    waiting: list[WaitingAppend] = field(default_factory=list)

    @property
    def end(self) -> int:
        """The offset of the next record."""
        return len(self.log)

    def take(self, said: LeaderState) -> None:
        """Take over what the controller says."""
        self.leader = said.state.leader
        self.leader_epoch = said.state.leader_epoch
        self.controller_epoch = said.state.controller_epoch
        self.version = said.version
        self.replicas = said.replicas
