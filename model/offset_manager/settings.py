"""The settings of an offset manager, with the defaults of Kafka 0.8.2."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from watchkeeper.model.configuration.settings import INT32_MAX, Setting
from watchkeeper.model.log.settings import MINUTE_MS
from watchkeeper.model.log_08.cleaner_settings import CleanerSettings
from watchkeeper.model.log_08.settings import DEFAULTS, LARGEST_SEGMENT_BYTES, KeyedLogSettings
from watchkeeper.model.replication.requests import ALL
from watchkeeper.model.replication.settings import AutoCreation

OFFSETS_TOPIC = "__consumer_offsets"

OFFSETS_SETTINGS = (
    Setting(
        "offset.metadata.max.bytes",
        "largest_metadata",
        0,
        INT32_MAX,
        "the longest text that a commit of an offset may have beside it, in characters",
    ),
    Setting(
        "offsets.topic.num.partitions",
        "partitions",
        1,
        INT32_MAX,
        "the partitions of the topic of offsets, over which groups are spread; it must not "
        "change later",
    ),
    Setting(
        "offsets.topic.replication.factor",
        "replicas",
        1,
        INT32_MAX,
        "the replicas of the topic of offsets; Kafka's default is 3, but this broker does not "
        "replicate",
    ),
    Setting(
        "offsets.topic.segment.bytes",
        "segment_bytes",
        1,
        LARGEST_SEGMENT_BYTES,
        "the size that no segment of the topic of offsets exceeds",
    ),
    Setting(
        "offsets.retention.minutes",
        "retention_ms",
        1,
        INT32_MAX,
        "the age of a commit at which it expires",
        MINUTE_MS,
    ),
    Setting(
        "offsets.retention.check.interval.ms",
        "expiry_check_ms",
        1,
        INT32_MAX,
        "the interval of the check for it",
    ),
    Setting(
        "offsets.load.buffer.size",
        "load_buffer_bytes",
        1,
        INT32_MAX,
        "how much of the topic of offsets is read at once by a coordinator that begins; Kafka's "
        "default is 5242880, and it reads in a thread of its own",
    ),
)


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
    load_buffer_bytes: int = 64 * 1024
    """`offsets.load.buffer.size`, which is 5 MiB in Kafka: it reads in a thread of its own."""

    @property
    def creation(self) -> AutoCreation:
        """How the topic is created."""
        return AutoCreation(self.partitions, self.replicas)

    def log_settings(self, default: KeyedLogSettings) -> KeyedLogSettings:
        """Return the settings of the logs of the topic, from those of other topics."""
        return replace(
            default,
            segment_bytes=self.segment_bytes,
            partitions=self.partitions,
            is_compacted=True,
        )


@dataclass(frozen=True, slots=True)
class ReplicatedOffsetSettings(OffsetSettings):
    """How offsets of groups are kept by brokers that replicate."""

    replicas: int = 3
    """`offsets.topic.replication.factor`."""
    required_acks: int = ALL
    """`offsets.commit.required.acks`: -1 waits for every member of the ISR."""
    commit_timeout_ms: int = 5_000
    """`offsets.commit.timeout.ms`."""
    load_buffer_bytes: int = 5 * 1024 * 1024
    """`offsets.load.buffer.size`."""
    cleaner: CleanerSettings = field(default_factory=CleanerSettings)
    """How the logs of the topic are compacted, if they are."""

    @property
    def compacted_logs(self) -> dict[str, KeyedLogSettings]:
        """The settings of the logs that have segments, by topic; without a cleaner, none."""
        default = DEFAULTS.default
        assert isinstance(default, KeyedLogSettings), "the logs of 0.8 have their own class"
        return {OFFSETS_TOPIC: self.log_settings(default)} if self.cleaner.is_enabled else {}
