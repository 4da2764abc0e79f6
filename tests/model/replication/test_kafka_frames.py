"""What Kafka 0.8.2.2 and this project said to each other in one cluster, byte for byte.

Taken from a run of `bench/interop.py --only mixed-cluster`: broker 1 is Kafka's, broker 2 ours.
"""

from __future__ import annotations

import pytest

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.registry.payloads import PartitionState
from watchkeeper.model.replication import wire
from watchkeeper.model.replication.requests import (
    BrokerAddress,
    BrokerRequest,
    ControlledShutdown,
    ErrorCode,
    LeaderAndIsr,
    LeaderState,
    Outcome,
    StillLed,
    StopReplica,
    UpdateMetadata,
)
from watchkeeper.model.wire_08 import table
from watchkeeper.model.wire_08.by_topic import OfTopic
from watchkeeper.model.wire_08.fetch import (
    FetchRequest,
    FetchResponse,
    PartitionFetch,
    PartitionFetched,
)

FIRST, SECOND = Partition("t", "0"), Partition("t", "1")
STATES = (
    LeaderState(FIRST, PartitionState(1, (1, 2), 0, 1), 0, (1, 2)),
    LeaderState(SECOND, PartitionState(2, (2, 1), 0, 1), 0, (2, 1)),
)
KAFKAS = BrokerAddress(1, "127.0.0.1:37943")
OURS = BrokerAddress(2, "127.0.0.1:43097")

CONTROLLER = "001e 69645f312d686f73745f3132372e302e302e312d706f72745f3337393433"
"""The client id of Kafka's controller: `id_1-host_127.0.0.1-port_37943`."""
TOLD = """
    00000001 00000001 00000002
    0001 74 00000000 00000001 00000001 00000000 00000002 00000001 00000002
    00000000 00000002 00000001 00000002
    0001 74 00000001 00000001 00000002 00000000 00000002 00000002 00000001
    00000000 00000002 00000002 00000001
    00000002 00000001 0009 3132372e302e302e31 00009437
    00000002 0009 3132372e302e302e31 0000a859
"""


def frame(text: str) -> bytes:
    """Return a frame without its size."""
    return bytes.fromhex(text)


@pytest.mark.parametrize(
    ("data", "number", "request_"),
    [
        (
            f"0004 0000 00000009 {CONTROLLER} {TOLD}",
            9,
            LeaderAndIsr(1, 1, STATES, (KAFKAS, OURS)),
        ),
        (
            f"0006 0000 00000009 {CONTROLLER} {TOLD}",
            9,
            UpdateMetadata(1, 1, STATES, (KAFKAS, OURS)),
        ),
        (
            "0005 0000 0000000b 0000 00000001 00000001 00 00000001 0001 74 00000000",
            11,
            StopReplica(1, 1, False, (FIRST,)),
        ),
        ("0007 0000 00000000 00000001", 0, ControlledShutdown(1)),
    ],
)
def test_requests_of_a_controller_and_a_broker_of_kafka(
    data: str, number: int, request_: BrokerRequest
) -> None:
    """Its StopReplica names no client, and its ControlledShutdown has no field for one."""
    assert wire.decode_request(frame(data)) == (number, request_)


@pytest.mark.parametrize(
    ("request_", "data", "response"),
    [
        (
            LeaderAndIsr(2, 2, STATES, (OURS,)),
            "00000001 0000 00000002 0001 74 00000000 000d 0001 74 00000001 000d",
            Outcome(
                partitions=(
                    (FIRST, ErrorCode.STALE_LEADER_EPOCH),
                    (SECOND, ErrorCode.STALE_LEADER_EPOCH),
                )
            ),
        ),
        (UpdateMetadata(2, 2, STATES, (OURS,)), "00000001 0000", Outcome()),
        (
            StopReplica(2, 1, False, (FIRST,)),
            "00000001 0000 00000001 0001 74 00000000 0000",
            Outcome(partitions=((FIRST, ErrorCode.NONE),)),
        ),
        (ControlledShutdown(2), "00000001 0000 00000000", StillLed(ErrorCode.NONE)),
    ],
)
def test_answers_of_kafka(request_: BrokerRequest, data: str, response: object) -> None:
    """A broker to our controller, and a controller to a broker of ours that leaves."""
    assert wire.decode_response(request_, frame(data), 1) == response


def test_a_code_without_a_name_is_an_unknown_error() -> None:
    """Kafka has more codes than brokers send to each other."""
    found = wire.decode_response(UpdateMetadata(2, 2, (), ()), frame("00000001 000e"), 1)
    assert found == Outcome(ErrorCode.UNKNOWN)


WANTED = (OfTopic("t", (PartitionFetch(1, 0, 1 << 20),)),)


def test_a_fetch_of_kafkas_follower() -> None:
    """Its thread and its leader name it."""
    data = """
        0001 0000 00000000 0018 5265706c696361466574636865725468726561642d302d32
        00000001 000001f4 00000001 00000001 0001 74 00000001
        00000001 0000000000000000 00100000
    """
    header, found = table.decode_request(frame(data))
    assert header.client_id == "ReplicaFetcherThread-0-2"
    assert found == FetchRequest(500, 1, WANTED, replica_id=1)


@pytest.mark.parametrize(("code", "error"), [("ffff", -1), ("0003", 3)])
def test_a_leader_of_kafka_that_does_not_know_its_follower(code: str, error: int) -> None:
    """The controller has told the follower first; the leader answers later."""
    data = f"00000001 00000001 0001 74 00000001 00000001 {code} ffffffffffffffff 00000000"
    found = table.decode_response(FetchRequest(500, 1, WANTED, 2), frame(data), 1)
    part = PartitionFetched(1, error, -1)
    assert found == FetchResponse(1, (OfTopic("t", (part,)),))
