"""The answer to a metadata request, from the view of the broker that gets it.

Kafka 0.8.2.2: MetadataCache.getTopicMetadata.
"""

from __future__ import annotations

from collections.abc import Iterable

from watchkeeper.model.broker_08.cluster import ClusterView, PartitionView
from watchkeeper.model.log.format.requests_08 import PartitionError
from watchkeeper.model.wire_08.metadata import (
    NO_LEADER,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)


def answer_metadata(
    view: ClusterView, topics: Iterable[str], correlation_id: int, *, creates: bool
) -> MetadataResponse:
    """Describe topics; where brokers create topics, one that is not there has no leader yet."""
    missing = (
        PartitionError.LEADER_NOT_AVAILABLE
        if creates
        else PartitionError.UNKNOWN_TOPIC_OR_PARTITION
    )
    brokers = tuple(view.brokers[broker] for broker in sorted(view.brokers))
    found = tuple(_of_topic(view, topic, missing) for topic in topics)
    return MetadataResponse(correlation_id, brokers, found)


def _of_topic(view: ClusterView, topic: str, missing: PartitionError) -> TopicMetadata:
    if topic not in view.topics:
        return TopicMetadata(missing, topic)
    partitions = tuple(
        _of_partition(view, index, partition)
        for index, partition in sorted(view.topics[topic].items())
    )
    return TopicMetadata(PartitionError.NONE, topic, partitions)


def _of_partition(view: ClusterView, index: int, partition: PartitionView) -> PartitionMetadata:
    """Describe a partition: only brokers that are alive are named."""
    alive = view.brokers.keys()
    replicas = tuple(broker for broker in partition.replicas if broker in alive)
    isr = tuple(broker for broker in partition.isr if broker in alive)
    if partition.leader not in alive:
        error = PartitionError.LEADER_NOT_AVAILABLE
        return PartitionMetadata(error, index, NO_LEADER, replicas, isr)
    is_whole = (replicas, isr) == (partition.replicas, partition.isr)
    error = PartitionError.NONE if is_whole else PartitionError.REPLICA_NOT_AVAILABLE
    return PartitionMetadata(error, index, partition.leader, replicas, isr)
