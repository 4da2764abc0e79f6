"""The configuration of replication in one broker."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from watchkeeper.model.replication.truncation import HIGH_WATERMARK
from watchkeeper.model.replication.variants import ReplicationVariant


class AutoCreation(NamedTuple):
    """How topics are created that a client wants and that do not exist."""

    partitions: int = 1
    """`num.partitions`."""
    replicas: int = 1
    """`default.replication.factor`."""


class FetchLayout(StrEnum):
    """How followers fetch."""

    WITH_EPOCHS = "with the epochs of records, in a layout of its own"
    KAFKA_08 = "as brokers of Kafka 0.8 do, so that they can be leaders and followers too"


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
    fetch_layout: FetchLayout = FetchLayout.WITH_EPOCHS
    """How this broker fetches from leaders; as a leader it answers both."""

    def __post_init__(self) -> None:
        """Raises ValueError for a layout without the epochs that the variant needs."""
        cuts_blindly = self.variant.truncation == HIGH_WATERMARK
        if self.fetch_layout is FetchLayout.KAFKA_08 and not cuts_blindly:
            raise ValueError(
                f"the variant {self.variant.name} cuts logs by the rule "
                f"{self.variant.truncation.name}, which needs epochs; fetches of Kafka 0.8 carry "
                f"none; expected a variant with the rule {HIGH_WATERMARK.name}"
            )
