"""Metadata, key 3, version 0: the partitions of topics, their leaders, and the brokers.

A client sends it to any broker before anything else. A request without topics is one for all.
"""

from __future__ import annotations

from watchkeeper.model.log.format.fields import INT32, STRING, counted
from watchkeeper.model.log.format.frames import Field, WireStruct, struct_type
from watchkeeper.model.log.format.requests import ERROR, TOPIC, Response
from watchkeeper.model.log.format.requests_08 import PARTITION, PartitionError
from watchkeeper.model.wire_08.by_topic import CORRELATION_ID

NO_LEADER = -1
"""The leader of a partition that has none now."""


class BrokerEndpoint(WireStruct, frozen=True):
    """A broker, and where it listens."""

    broker: int
    host: str
    port: int
    layout = (
        Field("broker", INT32, "its id"),
        Field("host", STRING, "its host"),
        Field("port", INT32, "its port"),
    )


class MetadataRequest(WireStruct, frozen=True):
    """Request the metadata of topics; of all if none is named."""

    topics: tuple[str, ...] = ()
    layout = (Field("topics", counted(INT32, STRING), "the topics; none: all"),)


class PartitionMetadata(WireStruct, frozen=True):
    """Who leads a partition, and who replicates it."""

    error_code: int
    partition: int
    leader: int
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    layout = (
        ERROR,
        PARTITION,
        Field("leader", INT32, "the id of the leader; -1: it has none"),
        Field("replicas", counted(INT32, INT32), "the assigned replicas that are alive"),
        Field("isr", counted(INT32, INT32), "those in sync with the leader, and alive"),
    )


class TopicMetadata(WireStruct, frozen=True):
    """The partitions of a topic, or an error."""

    error_code: int
    topic: str
    partitions: tuple[PartitionMetadata, ...] = ()
    layout = (
        ERROR,
        TOPIC,
        Field("partitions", counted(INT32, struct_type(PartitionMetadata)), "its partitions"),
    )


class MetadataResponse(Response, frozen=True):
    """The brokers that are alive, and the topics."""

    correlation_id: int
    brokers: tuple[BrokerEndpoint, ...] = ()
    topics: tuple[TopicMetadata, ...] = ()
    layout = (
        CORRELATION_ID,
        Field("brokers", counted(INT32, struct_type(BrokerEndpoint)), "the brokers"),
        Field("topics", counted(INT32, struct_type(TopicMetadata)), "the topics"),
    )


HAS_A_LEADER = frozenset({PartitionError.NONE, PartitionError.REPLICA_NOT_AVAILABLE})
"""The codes of a partition whose leader is named."""


def leaders_in(found: MetadataResponse, topic: TopicMetadata) -> dict[int, str]:
    """Return the partitions of a topic with the addresses of their leaders; empty without one."""
    where = {each.broker: f"{each.host}:{each.port}" for each in found.brokers}
    return {
        one.partition: where.get(one.leader, "") if one.error_code in HAS_A_LEADER else ""
        for one in sorted(topic.partitions, key=lambda one: one.partition)
    }
