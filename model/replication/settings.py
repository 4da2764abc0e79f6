"""The configuration of replication in one broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from watchkeeper.model.replication.variants import ReplicationVariant


class AutoCreation(NamedTuple):
    """How topics are created that a client wants and that do not exist."""

    partitions: int = 1
    """`num.partitions`."""
    replicas: int = 1
    """`default.replication.factor`."""


@dataclass(frozen=True, slots=True)
class ReplicationSettings:
    """The configuration of replication in one broker, with Kafka's defaults."""

    broker_id: int
    variant: ReplicationVariant
    min_in_sync: int = 1
    """`min.insync.replicas`."""
    allows_unclean: bool = True
    """`unclean.leader.election.enable`, true by default in 0.8.2."""
    lag_time_ms: int = 10_000
    """`replica.lag.time.max.ms`."""
    lag_messages: int = 4_000
    """`replica.lag.max.messages`."""
    fetch_wait_ms: int = 500
    """`replica.fetch.wait.max.ms`."""
    checkpoint_ms: int = 5_000
    """`replica.high.watermark.checkpoint.interval.ms`."""
    auto_creation: AutoCreation | None = None
    """`auto.create.topics.enable`, with what it takes."""
