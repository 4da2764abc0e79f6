"""The settings of an offset manager, with the defaults of Kafka 0.8.2."""

from __future__ import annotations

from dataclasses import dataclass

from watchkeeper.model.log.settings import MINUTE_MS
from watchkeeper.model.replication.requests import ALL
from watchkeeper.model.replication.settings import AutoCreation

OFFSETS_TOPIC = "__consumer_offsets"


@dataclass(frozen=True, slots=True)
class OffsetSettings:
    """How offsets of groups are kept."""

    partitions: int = 50
    """`offsets.topic.num.partitions`: of the topic; groups are spread over them."""
    replicas: int = 1
    """`offsets.topic.replication.factor`, which is 3 in Kafka."""
    segment_bytes: int = 100 * 1024 * 1024
    """`offsets.topic.segment.bytes`."""
    retention_ms: int = 1440 * MINUTE_MS
    """`offsets.retention.minutes`: the age of a commit at which it expires."""
    expiry_check_ms: int = 10 * MINUTE_MS
    """`offsets.retention.check.interval.ms`."""
    largest_metadata: int = 4096
    """`offset.metadata.max.bytes`, in characters."""

    @property
    def creation(self) -> AutoCreation:
        """How the topic is created."""
        return AutoCreation(self.partitions, self.replicas)


@dataclass(frozen=True, slots=True)
class ReplicatedOffsetSettings(OffsetSettings):
    """How offsets of groups are kept by brokers that replicate."""

    replicas: int = 3
    """`offsets.topic.replication.factor`."""
    required_acks: int = ALL
    """`offsets.commit.required.acks`: -1 waits for every member of the ISR."""
    commit_timeout_ms: int = 5_000
    """`offsets.commit.timeout.ms`."""
