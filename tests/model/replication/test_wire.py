"""The encoding of the requests between brokers."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.log.format.errors import LogError, MalformedRequest, MalformedResponse
from watchkeeper.model.registry.payloads import PartitionState
from watchkeeper.model.replication import wire
from watchkeeper.model.replication.messages import ENTRY_BYTES, decoded, encoded
from watchkeeper.model.replication.replica_log import Record
from watchkeeper.model.replication.requests import (
    Appended,
    AppendRecords,
    BrokerAddress,
    BrokerRequest,
    ControlledShutdown,
    DescribeTopic,
    EndOfEpoch,
    EpochEnd,
    ErrorCode,
    FetchedPart,
    FetchedRecords,
    FetchRecords,
    LeaderAndIsr,
    LeaderState,
    Outcome,
    StillLed,
    StopReplica,
    TopicMetadata,
    UpdateMetadata,
    Wanted,
)

INT32S = st.integers(-(2**31), 2**31 - 1)
INT64S = st.integers(-(2**63), 2**63 - 1)
TOPICS = st.text("abc-._é", min_size=1, max_size=8)
PARTITIONS = st.builds(lambda topic, at: Partition(topic, str(at)), TOPICS, st.integers(0, 999))
ADDRESSES = st.builds(
    lambda broker, host, port: BrokerAddress(broker, f"{host}:{port}"),
    INT32S,
    st.text("ab.:", max_size=9),
    st.integers(0, 65_535),
)
BROKERS = st.lists(st.integers(-1, 99), max_size=4).map(tuple)
STATES = st.builds(
    LeaderState,
    PARTITIONS,
    st.builds(PartitionState, INT32S, BROKERS, INT32S, INT32S),
    INT32S,
    BROKERS,
)
ERRORS = st.sampled_from(ErrorCode)
RECORDS = st.lists(st.builds(Record, INT32S, st.integers(0, 2**63 - 1)), max_size=4).map(tuple)


def several(items: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    """Return the strategy of up to three of something."""
    return st.lists(items, max_size=3).map(tuple)


REQUESTS: st.SearchStrategy[BrokerRequest] = st.one_of(
    st.builds(LeaderAndIsr, INT32S, INT32S, several(STATES), several(ADDRESSES)),
    st.builds(StopReplica, INT32S, INT32S, st.booleans(), several(PARTITIONS)),
    st.builds(UpdateMetadata, INT32S, INT32S, several(STATES), several(ADDRESSES)),
    st.builds(ControlledShutdown, INT32S),
    st.builds(AppendRecords, PARTITIONS, several(INT64S), st.integers(-1, 9), INT32S),
    st.builds(
        FetchRecords, INT32S, several(st.builds(Wanted, PARTITIONS, INT64S, INT32S)), INT32S
    ),
    st.builds(DescribeTopic, TOPICS),
    st.builds(EndOfEpoch, INT32S, PARTITIONS, INT32S, INT32S),
)
OUTCOMES = st.builds(Outcome, ERRORS, several(st.tuples(PARTITIONS, ERRORS)))
RESPONSES: dict[type[BrokerRequest], st.SearchStrategy[Any]] = {
    LeaderAndIsr: OUTCOMES,
    StopReplica: OUTCOMES,
    UpdateMetadata: st.builds(Outcome, ERRORS),
    ControlledShutdown: st.builds(StillLed, ERRORS, several(PARTITIONS)),
    AppendRecords: st.builds(Appended, ERRORS, INT64S),
    FetchRecords: st.builds(
        FetchedRecords,
        several(
            st.builds(
                FetchedPart,
                PARTITIONS,
                st.integers(0, 2**40),
                ERRORS,
                RECORDS,
                INT64S,
                INT64S,
            )
        ),
    ),
    DescribeTopic: st.builds(
        TopicMetadata, several(st.tuples(PARTITIONS, INT32S)), several(ADDRESSES)
    ),
    EndOfEpoch: st.builds(EpochEnd, ERRORS, INT32S, INT64S),
}


def frame_of(text: str) -> bytes:
    """Return the bytes of a frame in hexadecimal digits."""
    return bytes.fromhex(text.replace(" ", ""))


STATE = LeaderState(Partition("t", "0"), PartitionState(1, (1, 2), 5, 3), 9, (1, 2))


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(
            LeaderAndIsr(0, 3, (STATE,), (BrokerAddress(1, "h:9092"),)),
            "0000005f 0004 0000 00000001 000b 7761746368 6b6565706572 00000000 00000003"
            "00000001 000174 00000000 00000003 00000001 00000005 00000002 00000001 00000002"
            "00000009 00000002 00000001 00000002 00000001 00000001 000168 00002384",
            id="LeaderAndIsr",
        ),
        pytest.param(
            StopReplica(0, 3, True, (Partition("t", "0"),)),
            "00000029 0005 0000 00000001 000b 7761746368 6b6565706572 00000000 00000003"
            "01 00000001 000174 00000000",
            id="StopReplica",
        ),
        pytest.param(
            ControlledShutdown(2), "0000000c 0007 0000 00000001 00000002", id="ControlledShutdown"
        ),
    ],
)
def test_requests_of_a_controller_are_those_of_kafka(
    request_: BrokerRequest, expected: str
) -> None:
    """By vectors computed from the layouts of 0.8.2, with our name of the client."""
    assert wire.encode_request(request_, 1) == frame_of(expected)


@given(REQUESTS, INT32S)
def test_what_is_read_is_what_was_written(request: BrokerRequest, number: int) -> None:
    """A request is the same at the broker, with its correlation id."""
    frame = wire.encode_request(request, number)
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    assert wire.decode_request(frame[4:]) == (number, request)


@given(st.data(), REQUESTS, INT32S)
def test_what_is_answered_is_what_is_read(
    data: st.DataObject, request: BrokerRequest, number: int
) -> None:
    """A response is the same at the sender; that to another request is refused."""
    response = data.draw(RESPONSES[type(request)])
    frame = wire.encode_response(request, response, number)
    assert wire.decode_response(request, frame[4:], number) == response
    with pytest.raises(MalformedResponse, match="is waiting"):
        wire.decode_response(request, frame[4:], number - 1 if number else 7)


@given(REQUESTS, st.data())
def test_a_request_that_is_cut_is_refused(request: BrokerRequest, data: st.DataObject) -> None:
    """Whatever is missing, the reader raises a LogError and nothing else."""
    frame = wire.encode_request(request, 1)[4:]
    cut = frame[: data.draw(st.integers(8, len(frame) - 1))]
    with pytest.raises(LogError):
        wire.decode_request(cut)


@given(st.binary(max_size=60))
def test_bytes_of_any_kind_are_read_or_refused(data: bytes) -> None:
    """A peer that is no broker does no harm."""
    with suppress(LogError):
        wire.decode_request(data)


def test_an_unknown_request_is_named() -> None:
    """A request that brokers do not answer each other."""
    with pytest.raises(MalformedRequest, match="request 9 in version 1 is not known here"):
        wire.decode_request(frame_of("0009 0001 00000001 0000"))


@given(RECORDS, st.integers(0, 2**40))
def test_records_are_messages_of_a_known_size(records: tuple[Record, ...], first: int) -> None:
    """So the place of a record in a file follows from the records before it."""
    data = encoded(records, first)
    assert len(data) == sum(ENTRY_BYTES + len(record.message) for record in records)
    assert tuple(decoded(data)) == records
