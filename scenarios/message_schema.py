"""What a scenario file may say of messages: where they are stored, who sends and handles them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from scenarios import units
from scenarios.fields import Model, Word

Memory = Annotated[int, BeforeValidator(units.parse_memory)]
Pause = Annotated[int, BeforeValidator(units.parse_duration)]


class StorageModel(Model):
    """Brokers that store messages in logs, on machines with disks."""

    machine: Literal["page", "modern"] = Field(
        "page", description="which kind; `page` is that of the design page's time"
    )
    memory: Memory | None = Field(
        None, description="for the pagecache; as much as the machine has, unless given"
    )
    sendfile: bool = Field(True, description="whether fetches are answered without copying")
    config: dict[str, Any] = Field(
        default_factory=dict, description="settings of the logs by Kafka's names"
    )


class ProducerModel(Model):
    """Processes that send what the timeline tells them to."""

    cluster: str | None = Field(None, description="which, if there are several")
    number: int = Field(1, ge=1, le=1_000, description="how many")
    keys: int = Field(
        0, ge=0, le=1_000_000, description="of how many keys messages have one; 0: none has"
    )
    balanced: bool = Field(
        False,
        description="whether connections are dealt out to the brokers by a balancer, instead "
        "of brokers being found in ZooKeeper",
    )
    config: dict[str, Any] = Field(default_factory=dict, description="settings by Kafka's names")


class MirrorModel(Model):
    """Processes that read clusters and send what they are handed to another one."""

    from_: list[str] = Field(alias="from", min_length=1, description="the clusters to read")
    to: str = Field(description="the cluster to send to")
    topics: Word = Field(description="a regular expression of the topics to carry")
    consumers: int = Field(
        1, ge=1, le=1_000, description="how many processes read each of these clusters"
    )
    commits: Literal["after", "before"] = Field(
        "after",
        description="whether a place may be committed after its message has arrived, or "
        "before it was even sent",
    )
    starts: Pause = Field("1s", validate_default=True, description="when the first starts")
    variant: str | None = Field(None, description="of its consumers, if not the run's")
    config: dict[str, Any] = Field(
        default_factory=dict, description="of its consumers, by Kafka's names"
    )
    producer: dict[str, Any] = Field(
        default_factory=dict,
        description="settings of its producers by Kafka's names; they are told the brokers",
    )


class PromiseModel(Model):
    """What is promised of the messages to a group."""

    semantics: Literal["at most once", "at least once", "exactly once", "measured"] = Field(
        description="which of them may be lost, and which handed on again"
    )
    most_lost: int | None = Field(None, ge=0, description="so many may be lost all the same")
    most_repeated: int | None = Field(None, ge=0, description="so many may be handed on again")


class HandlingModel(Model):
    """What the application of each member does with its messages."""

    each: Pause = Field("0s", validate_default=True, description="how long it takes for one")
    commits: Literal["as configured", "before", "after", "with the result"] = Field(
        "as configured",
        description="when its place is stored: from time to time, before what was fetched is "
        "handled, after it, or together with the result, in one transaction",
    )
    store: Literal["database", "segments"] | None = Field(
        None,
        description="what results are stored in: a database, which all members may write to, or "
        "segments, of which each partition has a folder that one process has at a time; a "
        "database unless it is said",
    )


Promised = Literal["at most once", "at least once", "exactly once", "measured"] | PromiseModel
