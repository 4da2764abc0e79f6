"""The JSON that a 0.8 cluster keeps about itself: read as it was written, and written back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.scenarios.payload_samples import (
    CLUSTER_ID_JSON,
    CONTROLLER_JSON,
    DELETION_JSON,
    ELECTION_JSON,
    REASSIGNMENT_JSON,
    STATE_JSON,
    TOPIC_JSON,
    brokers,
    counts,
    json_objects,
    steady,
    texts,
    topics,
    value_or_refusal,
)
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.payloads import (
    ClusterId,
    ConfigChange,
    Controller,
    ControllerEpoch,
    IsrChange,
    PartitionState,
    PreferredReplicaElection,
    Reassignment,
    TopicAssignment,
    TopicConfig,
    TopicDeletion,
)

PATH = "/somewhere"
CLASSES: tuple[Any, ...] = (
    ClusterId,
    Controller,
    IsrChange,
    PartitionState,
    PreferredReplicaElection,
    Reassignment,
    TopicAssignment,
    TopicConfig,
    TopicDeletion,
)

GOLDEN = [
    (TopicAssignment(((0, (3, 0, 1)), (1, (0, 1, 2)), (2, (1, 2, 3)))), TOPIC_JSON),
    (PartitionState(3, (3, 0, 1), leader_epoch=0, controller_epoch=1), STATE_JSON),
    (Controller(0, "1525741822769"), CONTROLLER_JSON),
    (Reassignment((("Foo", 1, (0, 1, 3)),)), REASSIGNMENT_JSON),
    (PreferredReplicaElection((("Foo", 1), ("Bar", 0))), ELECTION_JSON),
    (TopicDeletion(("foo", "bar")), DELETION_JSON),
    (ClusterId("6wBnvVqXQPu4Zh-_5m3hBQ"), CLUSTER_ID_JSON),
    (ControllerEpoch(7), b"7"),
    (
        TopicConfig((("retention.ms", "1000000"),)),
        b'{"version":1,"config":{"retention.ms":"1000000"}}',
    ),
    (ConfigChange("t"), b'"t"'),
    (IsrChange((("t", 0),)), b'{"version":1,"partitions":[{"topic":"t","partition":0}]}'),
]


@pytest.mark.parametrize(("value", "data"), GOLDEN)
def test_golden_payloads_are_read(value: Any, data: bytes) -> None:
    """The pages' examples, corrected where they are not JSON, mean what the pages say."""
    assert type(value).decode(PATH, data) == value


@pytest.mark.parametrize(("value", "data"), GOLDEN)
def test_golden_payloads_are_written(value: Any, data: bytes) -> None:
    """What is written is the same JSON; the order of its fields is not fixed."""
    assert json.loads(value.encode()) == json.loads(data)


def test_partitions_of_a_topic_come_in_order_of_their_numbers() -> None:
    """Partition 10 comes after partition 2, however the JSON lists them."""
    read = TopicAssignment.decode(PATH, b'{"partitions":{"10":[1],"2":[2],"0":[]}}')

    assert read.replicas == ((0, ()), (2, (2,)), (10, (1,)))


def test_brokers_need_not_be_numbered_without_gaps() -> None:
    """Broker ids are names that happen to be numbers."""
    value = TopicAssignment(((0, (7, 200, 300)), (1, (300, 7, 200))))

    assert TopicAssignment.decode(PATH, value.encode()) == value


def test_the_controller_may_be_a_bare_number() -> None:
    """One of the pages shows the controller's id and nothing else."""
    assert Controller.decode(PATH, b"200") == Controller(200)


def test_the_notification_of_a_later_release_is_read_too() -> None:
    """0.9 names the kind of what has changed; other kinds than topics are refused."""
    data = b'{"version":1,"entity_type":"topics","entity_name":"t"}'
    assert ConfigChange.decode(PATH, data) == ConfigChange("t")

    with pytest.raises(BadPayload):
        ConfigChange.decode(PATH, data.replace(b"topics", b"clients"))


def test_a_partition_may_have_no_leader() -> None:
    """Kafka writes -1 where there is no leader, with an empty set of in-sync replicas."""
    data = b'{"controller_epoch":1,"leader":-1,"version":1,"leader_epoch":3,"isr":[]}'

    assert PartitionState.decode(PATH, data) == PartitionState(-1, (), leader_epoch=3)


# --- cluster ids -----------------------------------------------------------------------


@pytest.mark.parametrize("identity", ["a", "A-_9", "x" * 22])
def test_cluster_ids_of_the_allowed_form_are_taken(identity: str) -> None:
    """One to 22 letters, digits, dashes and underscores."""
    assert ClusterId.decode(PATH, ClusterId(identity).encode()).identity == identity


@pytest.mark.parametrize("identity", ["", "x" * 23, "a b", "a+b", "ä", "a\n"])
def test_other_cluster_ids_are_refused(identity: str) -> None:
    """The error says what was given and what is allowed."""
    with pytest.raises(ValueError, match="is not allowed; expected 1 to 22 of the characters"):
        ClusterId(identity)


# --- what does not parse ---------------------------------------------------------------

AS_PRINTED = [
    (TopicAssignment, b'{"version": 1, "partitions": {"1": [0, 1, 2], "0": [3, 0, 1], } }'),
    (Controller, b'{ "version": 1, "brokerid": 0 "timestamp": "1525741822769" }'),
]
BAD: list[tuple[Any, bytes | None]] = [
    *(
        (kind, data)
        for kind in CLASSES
        for data in (None, b"", b"{", b"[]", b"null", b"{}", b"\xff")
    ),
    *AS_PRINTED,
    (TopicAssignment, b'{"partitions":[]}'),
    (TopicAssignment, b'{"partitions":{"x":[1]}}'),
    (TopicAssignment, b'{"partitions":{"-1":[1]}}'),
    (TopicAssignment, b'{"partitions":{"00":[1]}}'),
    (TopicAssignment, b'{"partitions":{"0":1}}'),
    (TopicAssignment, b'{"partitions":{"0":["1"]}}'),
    (TopicAssignment, b'{"partitions":{"0":[true]}}'),
    (TopicAssignment, '{"partitions":{"²":[1]}}'.encode()),
    (TopicAssignment, b'{"partitions":{"' + b"9" * 5000 + b'":[1]}}'),
    (PartitionState, b'{"leader":1}'),
    (PartitionState, b'{"leader":"1","isr":[1],"leader_epoch":0,"controller_epoch":1}'),
    (PartitionState, b'{"leader":1,"isr":1,"leader_epoch":0,"controller_epoch":1}'),
    (PartitionState, b'{"leader":1,"isr":[1],"leader_epoch":null,"controller_epoch":1}'),
    (Controller, b"-1"),
    (Controller, b"12345678901"),
    (Controller, b'{"brokerid":"0"}'),
    (Reassignment, b'{"partitions":[5]}'),
    (Reassignment, b'{"partitions":[{"topic":"a","partition":1}]}'),
    (Reassignment, b'{"partitions":[{"topic":1,"partition":1,"replicas":[1]}]}'),
    (Reassignment, b'{"partitions":{"topic":"a"}}'),
    (PreferredReplicaElection, b'{"partitions":[{"topic":"a","partition":"1"}]}'),
    (PreferredReplicaElection, b'{"partitions":[{"partition":1}]}'),
    (TopicDeletion, b'{"topics":"a"}'),
    (TopicDeletion, b'{"topics":[1]}'),
    (TopicConfig, b'{"config":[]}'),
    (TopicConfig, b'{"config":{"retention.ms":5}}'),
    (ConfigChange, b""),
    (ConfigChange, b'""'),
    (ConfigChange, b'"t'),
    (ConfigChange, b"5"),
    (ControllerEpoch, None),
    (ControllerEpoch, b"-1"),
    (ControllerEpoch, b"seven"),
    (ClusterId, b'{"id":5}'),
    (ClusterId, b'{"id":"a b"}'),
]


@pytest.mark.parametrize(("kind", "data"), BAD)
def test_what_does_not_parse_is_refused(kind: Any, data: bytes | None) -> None:
    """The error names the path, shows the payload and says what was expected."""
    with pytest.raises(BadPayload, match=r"^/somewhere holds .+; expected ") as refused:
        kind.decode(PATH, data)

    assert (refused.value.path, refused.value.data) == (PATH, data)


def check_read_or_refused(kind: Any, data: bytes) -> None:
    """Data is refused with its znode named, or read as a value that is read again as written."""
    found = value_or_refusal(kind.decode, PATH, data)
    if isinstance(found, BadPayload):
        assert (found.path, found.data) == (PATH, data)
    else:
        assert type(found) is kind
        assert kind.decode(PATH, found.encode()) == found


@pytest.mark.parametrize("kind", CLASSES)
@given(data=st.binary(max_size=60))
@steady
def test_random_bytes_are_read_or_refused(kind: Any, data: bytes) -> None:
    """Whatever a znode holds, reading it ends in a value or in BadPayload."""
    check_read_or_refused(kind, data)


@pytest.mark.parametrize("kind", CLASSES)
@given(
    value=json_objects(
        "version", "partitions", "leader", "isr", "leader_epoch", "brokerid", "topics", "id"
    )
)
@steady
def test_random_json_is_read_or_refused(kind: Any, value: dict[str, Any]) -> None:
    """Whatever JSON a znode holds, reading it ends in a value or in BadPayload."""
    check_read_or_refused(kind, json.dumps(value).encode())


ids = st.lists(brokers, max_size=4).map(tuple)
values = st.one_of(
    st.dictionaries(counts, ids, max_size=5).map(
        lambda rows: TopicAssignment(tuple(sorted(rows.items())))
    ),
    st.builds(PartitionState, st.integers(-1, 10**9), ids, counts, counts),
    st.builds(Controller, brokers, texts),
    st.lists(st.tuples(topics, counts, ids), max_size=4).map(
        lambda rows: Reassignment(tuple(rows))
    ),
    st.lists(st.tuples(topics, counts), max_size=4).map(
        lambda rows: PreferredReplicaElection(tuple(rows))
    ),
    st.lists(topics, max_size=4).map(lambda names: TopicDeletion(tuple(names))),
    st.from_regex(r"[a-zA-Z0-9_-]{1,22}", fullmatch=True).map(ClusterId),
)


@given(values)
@steady
def test_every_value_can_be_read_back(value: Any) -> None:
    """What is written is read as the same value."""
    assert type(value).decode(PATH, value.encode()) == value
