"""A counterexample of the replicas of one partition: the steps, and every replica after each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["leads", "follows", "waits for a leader", "knows no leader"]
"""What a replica takes itself for. One that knows no leader has taken no request yet."""


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """A replica, as its process has it."""

    role: Role
    follows: int | None
    """The replica that it follows."""
    epoch: int | None
    """The leader epoch that it knows; None before its first request."""
    isr: tuple[int, ...]
    """The ISR that it presumes; empty where it does not lead."""
    log: tuple[tuple[int, int], ...]
    """The number and the epoch of each record, from offset 0."""
    high_watermark: int
    awaits_reply: bool = False
    """Whether it waits for ZooKeeper's reply to a write of the ISR."""

    @property
    def end(self) -> int:
        """The offset behind its last record."""
        return len(self.log)


@dataclass(frozen=True, slots=True)
class LeaderRequest:
    """A request of a controller: who leads, with which ISR, in which epoch."""

    epoch: int
    leader: int | None
    """None: there is no leader."""
    isr: tuple[int, ...]
    open_to: tuple[int, ...] = ()
    """The replicas that may still take it."""


@dataclass(frozen=True, slots=True)
class ReplicasState:
    """All of it at one moment."""

    replicas: tuple[ReplicaState, ...]
    registry: LeaderRequest
    """What ZooKeeper has; its epoch is -1 before the first controller."""
    requests: tuple[LeaderRequest, ...]
    """Every request that was sent, by their epochs; requests are never lost for good."""
    faults: tuple[str, ...]
    """The faults that may still strike."""


@dataclass(frozen=True, slots=True)
class ReplicasStep:
    """A step, and the state after it."""

    number: int
    text: str
    fault: str
    """The fault that it is; empty for none."""
    after: ReplicasState


@dataclass(frozen=True, slots=True)
class Breach:
    """Where a state violates a property."""

    leader: int
    """The replica that believes that it leads, or that ZooKeeper names."""
    member: int | None = None
    """The member of the ISR that lacks a record; None where the leader is outside of the ISR."""
    offset: int = 0
    """The first committed record that it does not have."""


@dataclass(frozen=True, slots=True)
class ReplicasCounterexample:
    """A shortest path to a violation."""

    variant: str
    rule: str
    """How a follower cuts its log."""
    violates: str
    proof: str
    """One sentence that says why."""
    bound: str
    first: ReplicasState
    steps: tuple[ReplicasStep, ...]
    breaches: tuple[Breach, ...]
    """Where the state after the last step violates the property."""
