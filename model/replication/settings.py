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

    WITH_EPOCHS = "with epochs"
    """With those of records, in a layout of this project."""
    KAFKA_08 = "as in 0.8"
    """As brokers of Kafka do, so that they can be leaders and followers too."""


def layout_problem(layout: FetchLayout, variant: ReplicationVariant) -> str:
    """Return why brokers of a variant cannot fetch in a layout; empty if they can."""
    if layout is FetchLayout.WITH_EPOCHS or variant.truncation == HIGH_WATERMARK:
        return ""
    return (
        f"fetches of 0.8 carry no epochs, and the variant {variant.name} needs them to cut logs "
        f"by the rule {variant.truncation.name}; expected a variant with the rule "
        f"{HIGH_WATERMARK.name}, such as kafka_08"
    )


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
        if problem := layout_problem(self.fetch_layout, self.variant):
            raise ValueError(problem)
