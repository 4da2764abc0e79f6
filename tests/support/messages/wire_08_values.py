"""Strategies for the requests and responses of 0.8."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from watchkeeper.model.log.format.frames import WireStruct
from watchkeeper.model.log.format.requests import Response
from watchkeeper.model.log.format.requests_08 import (
    OffsetsRequest,
    OffsetsResponse,
    PartitionOffsets,
    PartitionTime,
    TopicOffsets,
    TopicTimes,
)
from watchkeeper.model.wire_08.by_topic import OfTopic
from watchkeeper.model.wire_08.fetch import (
    FetchRequest,
    FetchResponse,
    PartitionFetch,
    PartitionFetched,
)
from watchkeeper.model.wire_08.group_offsets import (
    CommitRequest,
    CommitRequestV1,
    CommitResponse,
    CommittedRequest,
    CommittedRequestV1,
    CommittedResponse,
    ConsumerMetadataRequest,
    ConsumerMetadataResponse,
    PartitionCommit,
    PartitionCommitted,
    PartitionNumber,
    PartitionOutcome,
    TimedCommit,
)
from watchkeeper.model.wire_08.metadata import (
    BrokerEndpoint,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from watchkeeper.model.wire_08.produce import (
    PartitionAppended,
    PartitionMessages,
    ProduceRequest,
    ProduceResponse,
)

SHORTS = st.integers(-(2**15), 2**15 - 1)
INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(max_size=12)
NULLABLE_TEXTS = st.none() | TEXTS
DATA = st.binary(max_size=40)


def many(item: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    """A few of these."""
    return st.lists(item, max_size=3).map(tuple)


def by_topic(item: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[OfTopic[Any], ...]]:
    """A few of these, of a few topics."""
    return many(st.builds(OfTopic, TEXTS, many(item)))


BROKERS = st.builds(BrokerEndpoint, INTS, TEXTS, INTS)
PARTITIONS = st.builds(PartitionMetadata, SHORTS, INTS, INTS, many(INTS), many(INTS))
NUMBERS = by_topic(st.builds(PartitionNumber, INTS))
COMMITS = by_topic(st.builds(PartitionCommit, INTS, LONGS, NULLABLE_TEXTS))
TIMED = by_topic(st.builds(TimedCommit, INTS, LONGS, LONGS, NULLABLE_TEXTS))
TIMES = st.builds(TopicTimes, TEXTS, many(st.builds(PartitionTime, INTS, LONGS, INTS)))

REQUESTS: st.SearchStrategy[WireStruct] = st.one_of(
    st.builds(ProduceRequest, SHORTS, INTS, by_topic(st.builds(PartitionMessages, INTS, DATA))),
    st.builds(
        FetchRequest, INTS, INTS, by_topic(st.builds(PartitionFetch, INTS, LONGS, INTS)), INTS
    ),
    st.builds(OffsetsRequest, many(TIMES), INTS),
    st.builds(MetadataRequest, many(TEXTS)),
    st.builds(CommitRequest, TEXTS, COMMITS),
    st.builds(CommitRequestV1, TEXTS, TIMED, INTS, NULLABLE_TEXTS),
    st.builds(CommittedRequest, TEXTS, NUMBERS),
    st.builds(CommittedRequestV1, TEXTS, NUMBERS),
    st.builds(ConsumerMetadataRequest, TEXTS),
)
"""Any request."""

OUTCOMES = by_topic(st.builds(PartitionOutcome, INTS, SHORTS))
COMMITTED = by_topic(st.builds(PartitionCommitted, INTS, LONGS, NULLABLE_TEXTS, SHORTS))

RESPONSES: dict[type[Response], st.SearchStrategy[Response]] = {
    ProduceResponse: st.builds(
        ProduceResponse, INTS, by_topic(st.builds(PartitionAppended, INTS, SHORTS, LONGS))
    ),
    FetchResponse: st.builds(
        FetchResponse, INTS, by_topic(st.builds(PartitionFetched, INTS, SHORTS, LONGS, DATA))
    ),
    OffsetsResponse: st.builds(
        OffsetsResponse,
        INTS,
        many(
            st.builds(
                TopicOffsets, TEXTS, many(st.builds(PartitionOffsets, INTS, SHORTS, many(LONGS)))
            )
        ),
    ),
    MetadataResponse: st.builds(
        MetadataResponse,
        INTS,
        many(BROKERS),
        many(st.builds(TopicMetadata, SHORTS, TEXTS, many(PARTITIONS))),
    ),
    CommitResponse: st.builds(CommitResponse, INTS, OUTCOMES),
    CommittedResponse: st.builds(CommittedResponse, INTS, COMMITTED),
    ConsumerMetadataResponse: st.builds(
        ConsumerMetadataResponse, INTS, SHORTS, INTS, TEXTS, INTS
    ),
}
"""Class -> any response of it."""
