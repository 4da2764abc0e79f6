"""What clients of Kafka 0.8 send to a broker that replicates: produce, metadata, offsets.

Fetches of theirs are answered like those of followers (`model.replication.kafka_fetch`). The
broker answers from what the controller has told it.

Kafka 0.8.2.2: KafkaApis.handleProducerRequest, handleTopicMetadataRequest, handleOffsetRequest.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.broker_08.cluster import ClusterView, PartitionView
from watchkeeper.model.broker_08.error_codes import code_of, raise_first
from watchkeeper.model.broker_08.metadata import answer_metadata
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.format.requests import EARLIEST
from watchkeeper.model.log.format.requests_08 import (
    CONSUMER,
    OffsetsRequest,
    OffsetsResponse,
    PartitionError,
    PartitionOffsets,
    PartitionTime,
    TopicOffsets,
)
from watchkeeper.model.log_08.checks import ENTRY_HEAD_BYTES, check_set
from watchkeeper.model.registry.payloads import TopicConfig
from watchkeeper.model.replication.leader import append_records
from watchkeeper.model.replication.messages import decoded
from watchkeeper.model.replication.replica_log import Record
from watchkeeper.model.replication.replicas import Replicas
from watchkeeper.model.wire_08.by_topic import flat, grouped
from watchkeeper.model.wire_08.metadata import BrokerEndpoint, MetadataRequest, MetadataResponse
from watchkeeper.model.wire_08.produce import (
    ALL_IN_SYNC,
    NO_RESPONSE,
    PartitionAppended,
    PartitionMessages,
    ProduceRequest,
    ProduceResponse,
)

LARGEST_MESSAGE_BYTES = 1_000_000
"""`message.max.bytes`; a topic may have `max.message.bytes` of its own."""
BEGIN = 0
"""Of every log; a fetch of what is not there any more gets what comes after it."""


def serve_clients(replicas: Replicas) -> None:
    """Let a broker answer clients of Kafka 0.8."""
    replicas.hooks.answers |= {
        ProduceRequest: partial(_produce, replicas),
        MetadataRequest: partial(_metadata, replicas),
        OffsetsRequest: partial(_offsets, replicas),
    }


# --- appending -------------------------------------------------------------------------


async def _produce(all_of: Replicas, request: ProduceRequest) -> ProduceResponse | None:
    """Append; without a response to send, an error closes the connection instead."""
    parts = [
        (topic, await _append(all_of, request, topic, one)) for topic, one in flat(request.topics)
    ]
    if request.acks == NO_RESPONSE:
        raise_first(parts)
        return None
    return ProduceResponse(0, grouped(parts))


async def _append(
    all_of: Replicas, request: ProduceRequest, topic: str, one: PartitionMessages
) -> PartitionAppended:
    if request.acks < ALL_IN_SYNC:
        return PartitionAppended(one.partition, PartitionError.INVALID_REQUIRED_ACKS)
    try:
        largest_bytes = ENTRY_HEAD_BYTES + _largest_message_bytes(all_of, topic)
        checked = check_set(one.messages, largest_entry_bytes=largest_bytes)
    except LogError as refused:
        return PartitionAppended(one.partition, code_of(refused))

    def numbered(offset: int, epoch: int) -> list[Record]:
        return [*decoded(checked.numbered(offset).data, offset, taken_in=epoch)]

    place = Partition(topic, str(one.partition))
    done = await append_records(
        all_of, place, numbered, acks=request.acks, timeout_ms=request.timeout_ms
    )
    return PartitionAppended(one.partition, int(done.error), done.offset)


def _largest_message_bytes(all_of: Replicas, topic: str) -> int:
    config = all_of.settings.get(topic, TopicConfig())
    return config.number("max.message.bytes", LARGEST_MESSAGE_BYTES)


# --- metadata --------------------------------------------------------------------------


async def _metadata(all_of: Replicas, request: MetadataRequest) -> MetadataResponse:
    """Describe topics as the controller has last described them; create what is missing."""
    view = view_of(all_of)
    creates = all_of.hooks.on_missing_topic
    for topic in dict.fromkeys(request.topics):
        if topic not in view.topics and creates is not None:
            await creates(topic)
    topics = request.topics or tuple(sorted(view.topics))
    return answer_metadata(view, topics, 0, creates=creates is not None)


def view_of(all_of: Replicas) -> ClusterView:
    """Return what a broker has been told of the cluster."""
    topics: dict[str, dict[int, PartitionView]] = {}
    for partition, said in all_of.states.items():
        view = PartitionView(said.replicas, said.state.leader, said.state.isr)
        topics.setdefault(partition.topic, {})[int(partition.name)] = view
    return ClusterView(dict(_endpoints(all_of)), topics)


def _endpoints(all_of: Replicas) -> Iterator[tuple[int, BrokerEndpoint]]:
    for broker, address in all_of.alive:
        host, _, port = address.rpartition(":")
        yield broker, BrokerEndpoint(broker, host, int(port))


# --- offsets ---------------------------------------------------------------------------


async def _offsets(all_of: Replicas, request: OffsetsRequest) -> OffsetsResponse:
    """Return where logs begin or end; for a client they end at the high watermark."""
    of_client = request.replica_id <= CONSUMER
    topics = (
        TopicOffsets(
            each.topic,
            tuple(
                _offsets_of(all_of, each.topic, one, of_client=of_client)
                for one in each.partitions
            ),
        )
        for each in request.topics
    )
    return OffsetsResponse(0, tuple(topics))


def _offsets_of(
    all_of: Replicas, topic: str, one: PartitionTime, *, of_client: bool
) -> PartitionOffsets:
    replica = all_of.by_partition.get(Partition(topic, str(one.partition)))
    if replica is None:
        return PartitionOffsets(one.partition, PartitionError.UNKNOWN_TOPIC_OR_PARTITION)
    if not all_of.leads(replica):
        return PartitionOffsets(one.partition, PartitionError.NOT_LEADER_FOR_PARTITION)
    # A log has one segment, so no time is within it.
    end = replica.high_watermark if of_client else replica.end
    found = (BEGIN,) if one.time_ms == EARLIEST else (end, BEGIN) if end else (end,)
    return PartitionOffsets(one.partition, offsets=found[: max(one.max_offsets, 0)])
