"""The message fields of a scenario file: storage, producers, mirrors, guarantees, handling."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from watchkeeper.scenarios.schema.fields import Model, Word
from watchkeeper.scenarios.text import units

Memory = Annotated[int, BeforeValidator(units.parse_memory)]
Pause = Annotated[int, BeforeValidator(units.parse_duration)]


class StorageModel(Model):
    """Brokers that store messages in logs, on machines with disks."""

    machine: Literal["page", "modern"] = Field(
        "page", description="the kind of machine; `page` is one of the design page's time"
    )
    memory: Memory | None = Field(
        None, description="the memory for the pagecache; default: that of the machine"
    )
    sendfile: bool = Field(True, description="whether fetches use sendfile, which copies nothing")
    config: dict[str, Any] = Field(
        default_factory=dict, description="settings of the logs, with Kafka's names"
    )


class ProducerModel(Model):
    """Processes that send messages at the rate that the timeline states."""

    cluster: str | None = Field(None, description="the cluster; needed if there are several")
    number: int = Field(1, ge=1, le=1_000, description="the number of processes")
    keys: int = Field(
        0, ge=0, le=1_000_000, description="the number of different keys; 0: messages have no key"
    )
    balanced: bool = Field(
        False,
        description="whether a balancer assigns connections to brokers; otherwise producers "
        "find the brokers in ZooKeeper",
    )
    config: dict[str, Any] = Field(
        default_factory=dict, description="settings, with Kafka's names"
    )


class MirrorModel(Model):
    """Processes that read clusters and send the messages to another cluster."""

    from_: list[str] = Field(alias="from", min_length=1, description="the clusters to read")
    to: str = Field(description="the cluster to send to")
    topics: Word = Field(description="a regular expression of the topics to carry")
    consumers: int = Field(
        1, ge=1, le=1_000, description="the number of processes for each of these clusters"
    )
    commits: Literal["after", "before"] = Field(
        "after",
        description="whether an offset is committed after its message has arrived, or "
        "before it was sent",
    )
    starts: Pause = Field(
        "1s", validate_default=True, description="the start of the first process"
    )
    variant: str | None = Field(
        None, description="the variant of its consumers; default: that of the run"
    )
    config: dict[str, Any] = Field(
        default_factory=dict, description="settings of its consumers, with Kafka's names"
    )
    producer: dict[str, Any] = Field(
        default_factory=dict,
        description="settings of its producers, with Kafka's names; the brokers are added",
    )


class DeliveryGuaranteeModel(Model):
    """The delivery guarantee of a group."""

    semantics: Literal["at most once", "at least once", "exactly once", "measured"] = Field(
        description="whether messages may be lost, and whether they may be repeated"
    )
    most_lost: int | None = Field(
        None, ge=0, description="the number that may be lost nevertheless"
    )
    most_repeated: int | None = Field(None, ge=0, description="the number that may be repeated")


class HandlingModel(Model):
    """How the application of each member handles its messages."""

    each: Pause = Field(
        "0s", validate_default=True, description="the time that it takes for one message"
    )
    commits: Literal["as configured", "before", "after", "with the result"] = Field(
        "as configured",
        description="when the offset is stored: by the timer, before the messages are "
        "handled, after it, or together with the result, in one transaction",
    )
    store: Literal["database", "segments"] | None = Field(
        None,
        description="the store of results: a database that all members write to, or segments: a "
        "folder for each partition, which one process has at a time; default: database",
    )


Guaranteed = (
    Literal["at most once", "at least once", "exactly once", "measured"] | DeliveryGuaranteeModel
)
