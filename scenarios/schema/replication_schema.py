"""The replication fields of a cluster in a scenario file."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from watchkeeper.scenarios.schema.fields import Model
from watchkeeper.scenarios.text import units

PositivePause = Annotated[int, BeforeValidator(partial(units.parse_duration, least_us=1_000))]


class AutoCreationModel(Model):
    """How brokers create topics that a client wants and that do not exist."""

    partitions: int = Field(1, ge=1, le=1_000, description="num.partitions")
    replicas: int = Field(1, ge=1, le=10, description="default.replication.factor")


class OffsetsModel(Model):
    """The offsets topic, in which coordinators keep the offsets of groups."""

    partitions: int = Field(50, ge=1, le=1_000, description="offsets.topic.num.partitions")
    replicas: int = Field(3, ge=1, le=10, description="offsets.topic.replication.factor")
    required_acks: Literal["leader", "all"] = Field(
        "all",
        description="offsets.commit.required.acks: who has to have a commit before it is "
        "acknowledged: the coordinator, or every member of the ISR",
    )
    commit_timeout: PositivePause = Field(
        "5s", validate_default=True, description="offsets.commit.timeout.ms"
    )
    config: dict[str, Any] = Field(
        default_factory=dict,
        description="settings by Kafka's names: `offsets.retention.minutes`, "
        "`offsets.retention.check.interval.ms`, `offsets.load.buffer.size` and "
        "`log.cleaner.enable`; with a cleaner also `log.cleaner.backoff.ms`, "
        "`log.cleaner.min.cleanable.ratio`, `log.cleaner.delete.retention.ms` and "
        "`offsets.topic.segment.bytes`",
    )


class ReplicationModel(Model):
    """Brokers that replicate partitions, with the names and defaults of Kafka's settings."""

    min_insync_replicas: int = Field(
        1, ge=1, le=10, description="how many members an ISR needs for a message with `acks: all`"
    )
    leader_rebalance: PositivePause | Literal["never"] = Field(
        "300s",
        validate_default=True,
        description="leader.imbalance.check.interval.seconds: how often the controller lets "
        "preferred replicas lead again; the first time 5 s after its election; or never",
    )
    controlled_shutdown: bool = Field(
        True, description="whether a broker that leaves hands over what it leads first"
    )
    controlled_shutdown_backoff: PositivePause = Field(
        "5s",
        validate_default=True,
        description="controlled.shutdown.retry.backoff.ms: how long it waits before its second "
        "and its third try to hand over",
    )
    lag_time: PositivePause = Field(
        "10s",
        validate_default=True,
        description="replica.lag.time.max.ms: after how long a silent follower leaves the ISR",
    )
    lag_messages: int = Field(
        4_000,
        ge=1,
        description="replica.lag.max.messages: how many messages a follower of `kafka_08` may "
        "lack",
    )
    fetch_wait: PositivePause = Field(
        "500ms",
        validate_default=True,
        description="replica.fetch.wait.max.ms: how long a leader waits for something to come",
    )
    fetches: Literal["with epochs", "as in 0.8"] = Field(
        "with epochs",
        description="how followers fetch: `with epochs`, in a layout of this project, or `as in "
        "0.8`, as brokers of Kafka do, for variants that cut logs at high watermarks",
    )
    delete_topics: bool = Field(
        True,
        description="delete.topic.enable, which is false by default in 0.8.2: whether the "
        "controller carries out requests to delete topics",
    )
    isr_in_metadata: bool = Field(
        False,
        description="whether *ISRs are known* is judged; clients of 0.8 do not need the ISRs "
        "that brokers tell them",
    )
    auto_create_topics: AutoCreationModel | None = Field(
        None,
        description="auto.create.topics.enable: brokers create the topics that loads and groups "
        "want and that do not exist; without it they create none",
    )
    offsets_topic: OffsetsModel = Field(
        default_factory=lambda: OffsetsModel.model_validate({}),
        description="how offsets of groups with `offsets.storage: kafka` are kept",
    )
