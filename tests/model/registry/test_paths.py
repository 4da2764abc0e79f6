"""Paths and plain payloads of the registry, byte for byte where the format fixes bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.scenarios.payload_samples import (
    BROKER_ENDPOINTS_JSON,
    BROKER_JSON,
    CONSUMER_JSON,
    CONSUMER_STATIC_JSON,
    brokers,
    counts,
    hosts,
    json_objects,
    offsets,
    partitions_07,
    partitions_08,
    steady,
    texts,
    topics,
    value_or_refusal,
    words,
)
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.group.assignment import sort_partitions
from watchkeeper.model.group.settings import consumer_settings
from watchkeeper.model.group.state import (
    Consumer,
    generated_id,
    owner_value,
    stream_ids,
    stream_number,
)
from watchkeeper.model.group.variants import VARIANTS, Unit
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import (
    BadPayload,
    BrokerForm,
    BrokerInfo,
    Layout,
    decode_broker,
    decode_json,
    decode_number,
    decode_text,
    encode_broker,
    encode_json,
    encode_number,
)
from watchkeeper.model.registry.subscription import (
    Pattern,
    Subscription,
    decode_consumer,
    encode_consumer,
)

PATH = "/somewhere"
CLICKS_07 = Partition("clicks", "200-1")
CLICKS_08 = Partition("clicks", "3")

# --- paths -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "spelled"),
    [
        (paths.broker(200), "/brokers/ids/200"),
        (paths.topic("clicks"), "/brokers/topics/clicks"),
        (paths.topic_broker("clicks", 7), "/brokers/topics/clicks/7"),
        (paths.partitions("clicks"), "/brokers/topics/clicks/partitions"),
        (paths.partition_state(CLICKS_08), "/brokers/topics/clicks/partitions/3/state"),
        (paths.topic_config("clicks"), "/config/topics/clicks"),
        (paths.topic_deletion("clicks"), "/admin/delete_topics/clicks"),
        (paths.members("g"), "/consumers/g/ids"),
        (paths.member("g", "g_c0"), "/consumers/g/ids/g_c0"),
        (paths.owners("g"), "/consumers/g/owners"),
        (paths.topic_owners("g", "clicks"), "/consumers/g/owners/clicks"),
        (paths.owner("g", CLICKS_07), "/consumers/g/owners/clicks/200-1"),
        (paths.owner("g", CLICKS_08), "/consumers/g/owners/clicks/3"),
        (paths.offset("g", CLICKS_07), "/consumers/g/offsets/clicks/200-1"),
        (paths.offset("g", CLICKS_08), "/consumers/g/offsets/clicks/3"),
        (paths.BROKER_IDS, "/brokers/ids"),
        (paths.TOPICS, "/brokers/topics"),
        (paths.CONTROLLER, "/controller"),
        (paths.CONTROLLER_EPOCH, "/controller_epoch"),
        (paths.CLUSTER_ID, "/cluster/id"),
        (paths.DELETE_TOPICS, "/admin/delete_topics"),
        (paths.REASSIGN_PARTITIONS, "/admin/reassign_partitions"),
        (paths.PREFERRED_REPLICA_ELECTION, "/admin/preferred_replica_election"),
        (paths.parent_of("/consumers/g/ids/g_c0"), "/consumers/g/ids"),
    ],
)
def test_paths_are_those_of_the_pages(made: str, spelled: str) -> None:
    """Every path of the registry is spelled as the pages and the releases spell it."""
    assert made == spelled


@given(words, partitions_07 | partitions_08)
@steady
def test_the_path_of_a_claim_says_whose_and_what(group: str, partition: Partition) -> None:
    """Group and partition can be read back from the path of a claim."""
    path = paths.owner(group, partition)

    assert paths.parse_owner(path) == (group, partition)
    assert paths.parse_offset(path) is None
    assert paths.parse_member(path) is None


@given(words, partitions_07 | partitions_08)
@steady
def test_the_path_of_an_offset_says_whose_and_where(group: str, partition: Partition) -> None:
    """Group and partition can be read back from the path of an offset."""
    path = paths.offset(group, partition)

    assert paths.parse_offset(path) == (group, partition)
    assert paths.parse_owner(path) is None


@given(words, words)
@steady
def test_the_path_of_a_registration_says_whose(group: str, consumer: str) -> None:
    """Group and consumer can be read back from the path of a registration."""
    assert paths.parse_member(paths.member(group, consumer)) == (group, consumer)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/brokers/ids/7",
        "/consumers/g/ids",
        "/consumers/g/owners",
        "/consumers/g/owners/clicks",
        "/consumers/g/owners/clicks/0/x",
        "/consumers//owners/clicks/0",
    ],
)
def test_other_paths_are_no_claims(path: str) -> None:
    """A path that is not of the form is not taken for one that is."""
    assert paths.parse_owner(path) is None
    assert paths.parse_offset(path) is None
    assert paths.parse_member(path) is None


# --- partitions ------------------------------------------------------------------------


@pytest.mark.parametrize("broker", [0, 7, 200, 300])
def test_a_partition_of_07_names_its_broker(broker: int) -> None:
    """The name of a partition in the 0.7 layout is `broker-index`."""
    partition = paths.partition_07("clicks", broker, 12)

    assert partition.name == f"{broker}-12"
    assert paths.broker_of(partition) == broker


@pytest.mark.parametrize("name", ["3", "", "-1", "a-1", "1-", "1-a", "200", "-"])
def test_a_partition_without_a_broker_is_refused(name: str) -> None:
    """Asking a name of the 0.8 layout for its broker is an error that says so."""
    with pytest.raises(ValueError, match="has no broker in its name; expected broker-partition"):
        paths.broker_of(Partition("clicks", name))


def test_brokers_with_gaps_between_them_sort_as_strings_in_07() -> None:
    """Partitions of brokers 7, 200 and 300 come in the order of their names as strings."""
    listed = [paths.partition_07("t", broker, at) for broker in (7, 200, 300) for at in (0, 1)]

    ordered = sort_partitions(listed, "0.7")

    assert [item.name for item in ordered] == ["200-0", "200-1", "300-0", "300-1", "7-0", "7-1"]


def test_partitions_of_08_sort_as_numbers() -> None:
    """In the 0.8 layout partition 10 comes after partition 2."""
    listed = [Partition("t", str(index)) for index in (10, 2, 0, 1)]

    assert [sort_partition.name for sort_partition in sort_partitions(listed, "0.8")] == [
        "0",
        "1",
        "2",
        "10",
    ]


# --- numbers and names -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "written"),
    [(0, b"0"), (4, b"4"), (-1, b"-1"), (2**63 - 1, b"9223372036854775807")],
)
def test_counts_and_offsets_are_decimal(number: int, written: bytes) -> None:
    """A count of partitions and an offset are written in decimal and nothing else."""
    assert encode_number(number) == written
    assert decode_number(PATH, written) == number


@given(offsets)
@steady
def test_every_offset_can_be_read_back(number: int) -> None:
    """What is written as an offset is read as the same offset."""
    assert decode_number(PATH, encode_number(number)) == number


def test_the_owner_of_a_partition_is_text() -> None:
    """An owner znode holds an id and nothing around it."""
    assert decode_text(PATH, b"g_c0-11") == "g_c0-11"


# --- brokers ---------------------------------------------------------------------------

BROKER = BrokerInfo(
    "hadoop1", 9092, creator="hadoop1-1525741823119", timestamp="1525741823119", jmx_port=9999
)


@pytest.mark.parametrize(
    ("form", "written"),
    [
        ("host:port", b"hadoop1:9092"),
        ("creator:host:port", b"hadoop1-1525741823119:hadoop1:9092"),
    ],
)
def test_brokers_of_07_register_as_text(form: BrokerForm, written: bytes) -> None:
    """The pages' host:port, and the shipped creator:host:port, byte for byte."""
    assert encode_broker(BROKER, form) == written


@pytest.mark.parametrize(
    ("form", "fields"),
    [
        ("json", {"version": 1}),
        ("json with endpoints", {"version": 2, "endpoints": ["PLAINTEXT://hadoop1:9092"]}),
    ],
)
def test_brokers_of_08_register_as_json(form: BrokerForm, fields: dict[str, Any]) -> None:
    """The fields of the pages, with the timestamp as text."""
    shared = {"host": "hadoop1", "port": 9092, "jmx_port": 9999, "timestamp": "1525741823119"}

    assert json.loads(encode_broker(BROKER, form)) == {**shared, **fields}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"hadoop1:9092", BrokerInfo("hadoop1", 9092)),
        (b"h-15:hadoop1:9092", BrokerInfo("hadoop1", 9092, creator="h-15")),
        (b"[::1]:9092", BrokerInfo("[::1]", 9092)),
        (b"h-15:[fe80::1]:9092", BrokerInfo("[fe80::1]", 9092, creator="h-15")),
        (BROKER_JSON, BrokerInfo("hadoop1", 9092, timestamp="1525741823119")),
        (
            BROKER_ENDPOINTS_JSON,
            BrokerInfo(
                "hadoop1",
                9092,
                timestamp="1525741823119",
                jmx_port=9999,
                endpoints=("PLAINTEXT://hadoop1:9092", "SSL://hadoop1:9093"),
            ),
        ),
        (b'{"host":"h","port":1}', BrokerInfo("h", 1)),
    ],
)
def test_brokers_of_every_form_are_read(data: bytes, expected: BrokerInfo) -> None:
    """A cluster is upgraded one process at a time: each form is understood."""
    assert decode_broker(PATH, data) == expected


def test_the_address_of_a_broker_is_one_word() -> None:
    """Host and port, as clients get them."""
    assert BROKER.address == "hadoop1:9092"


@given(hosts, st.integers(0, 65_535), words, counts)
@steady
def test_brokers_can_be_read_back(host: str, port: int, creator: str, time: int) -> None:
    """Whatever form a broker registers in, host and port are read from it again."""
    info = BrokerInfo(host, port, creator=creator, timestamp=str(time), jmx_port=time)

    read = {
        form: decode_broker(PATH, encode_broker(info, form))
        for form in ("host:port", "creator:host:port", "json", "json with endpoints")
    }

    assert {(broker.host, broker.port) for broker in read.values()} == {(host, port)}
    assert read["creator:host:port"].creator == creator
    assert (read["json"].timestamp, read["json"].jmx_port) == (str(time), time)


# --- consumers -------------------------------------------------------------------------

STATIC = Subscription(streams=(("t1", 1), ("t2", 2)))
WHITE = Subscription(pattern="white_list", expression="clicks.*", filter_streams=2)
BLACK = Subscription(pattern="black_list", expression="a|b", filter_streams=1)
THREE_BUT_A = Subscription(pattern="black_list", expression="a", filter_streams=3)


@pytest.mark.parametrize(
    ("subscription", "written"),
    [
        (STATIC, b'{ "t1": 1,"t2": 2 }'),
        (Subscription(streams=(("t1", 1),)), b'{ "t1": 1 }'),
        (Subscription(), b"{  }"),
        (WHITE, b"*2*clicks.*"),
        (BLACK, b"!1!a|b"),
    ],
)
def test_consumers_of_07_register_as_text(subscription: Subscription, written: bytes) -> None:
    """A map with its own spacing, or stars and exclamation marks around a number."""
    assert encode_consumer(subscription, "0.7", timestamp_ms=5) == written
    assert decode_consumer(PATH, written) == subscription


@pytest.mark.parametrize(
    ("subscription", "fields"),
    [
        (STATIC, {"pattern": "static", "subscription": {"t1": 1, "t2": 2}}),
        (WHITE, {"pattern": "white_list", "subscription": {"clicks.*": 2}}),
        (BLACK, {"pattern": "black_list", "subscription": {"a|b": 1}}),
    ],
)
def test_consumers_of_08_register_as_json(
    subscription: Subscription, fields: dict[str, Any]
) -> None:
    """Version, timestamp as text, pattern, and streams by topic or by expression."""
    written = json.loads(encode_consumer(subscription, "0.8", timestamp_ms=1525747915336))

    assert written == {"version": 1, "timestamp": "1525747915336", **fields}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (CONSUMER_JSON, Subscription((), "white_list", "topic2", 1)),
        (CONSUMER_STATIC_JSON, STATIC),
        (
            b'{"pattern":"black_list","subscription":{"a":3}}',
            Subscription((), "black_list", "a", 3),
        ),
        (b'{"pattern":"white_list","subscription":{}}', Subscription()),
        (b'{"subscription": 2}', Subscription((("subscription", 2),))),
        (b"{}", Subscription()),
        (b'{"t1":1, "t2":2}', STATIC),
        (b"*12*.*", Subscription((), "white_list", ".*", 12)),
        (b"!1!", Subscription((), "black_list", "", 1)),
        (b"*1*a*b*", Subscription((), "white_list", "a*b*", 1)),
        (b"*1*a\nb", Subscription((), "white_list", "a\nb", 1)),
    ],
)
def test_consumers_of_either_release_are_read(data: bytes, expected: Subscription) -> None:
    """A group is upgraded one member at a time: each form is understood by all."""
    assert decode_consumer(PATH, data) == expected


@given(st.dictionaries(topics, counts, max_size=4), st.sampled_from(["0.7", "0.8"]))
@steady
def test_static_subscriptions_can_be_read_back(wanted: dict[str, int], layout: Layout) -> None:
    """What a consumer says it wants is what the others understand."""
    subscription = Subscription(streams=tuple(wanted.items()))

    written = encode_consumer(subscription, layout, timestamp_ms=1)

    assert decode_consumer(PATH, written) == subscription


@given(
    texts,
    st.integers(0, 999_999),
    st.sampled_from(["white_list", "black_list"]),
    st.sampled_from(["0.7", "0.8"]),
)
@steady
def test_filters_can_be_read_back(
    expression: str, streams: int, pattern: Pattern, layout: Layout
) -> None:
    """Whatever characters a filter is made of, its peers read the same ones."""
    subscription = Subscription((), pattern, expression, streams)

    written = encode_consumer(subscription, layout, timestamp_ms=1)

    assert decode_consumer(PATH, written) == subscription


@pytest.mark.parametrize(
    ("expression", "stored"),
    [
        ('-"-', r"-\"-"),
        ("-\\-", r"-\\-"),
        ("-/-", r"-\/-"),
        (r"-\b-", r"-\\b-"),
        (r"-\f-", r"-\\f-"),
        (r"-\n-", r"-\\n-"),
        (r"-\r-", r"-\\r-"),
        (r"-\t-", r"-\\t-"),
        (r"-\u0000-", r"-\\u0000-"),
        (r"-\u001f-", r"-\\u001f-"),
        (r"-\u007f-", r"-\\u007f-"),
        (r"-\u009f-", r"-\\u009f-"),
    ],
)
def test_filters_are_escaped_as_kafka_does(expression: str, stored: str) -> None:
    """The key under which 0.8.2 keeps a filter, character for character."""
    subscription = Subscription((), "white_list", expression, 1)

    written = encode_consumer(subscription, "0.8", timestamp_ms=1)

    assert f'{{"{stored}":1}}'.encode() in written
    assert decode_consumer(PATH, written) == subscription


# --- ids and claims --------------------------------------------------------------------


def consumer(variant: str, configured_id: str = "") -> Consumer:
    """A consumer of this variant, on host `hadoop2`."""
    row = VARIANTS[variant]
    return Consumer(
        node="g/0",
        group="console-consumer-2304",
        host="hadoop2",
        subscription=STATIC,
        layout=row.layout,
        variant=row,
        settings=consumer_settings(row.release),
        configured_id=configured_id,
    )


DRAWN = "6b48ff32" + "0" * 24


@pytest.mark.parametrize(
    ("variant", "configured", "expected"),
    [
        ("documented", "", f"hadoop2:{DRAWN}"),
        ("documented", "c0", "hadoop2:c0"),
        ("documented_ceil", "", f"hadoop2:{DRAWN}"),
        ("kafka_07", "", "console-consumer-2304_hadoop2-1525747915241-6b48ff32"),
        ("kafka_07", "c0", "console-consumer-2304_c0"),
        ("kafka_08", "", "console-consumer-2304_hadoop2-1525747915241-6b48ff32"),
        ("kafka_08", "c0", "console-consumer-2304_c0"),
        ("hardened", "", "console-consumer-2304_hadoop2-1525747915241-6b48ff32"),
    ],
)
def test_consumers_are_called_as_their_variant_calls_them(
    variant: str, configured: str, expected: str
) -> None:
    """`host:uuid`, `group_host-millis-uuid8`, or `group_` and the configured id."""
    assert generated_id(consumer(variant, configured), 1525747915241, DRAWN) == expected


def test_the_threads_of_a_consumer_are_numbered() -> None:
    """A thread's id is the consumer's id, a dash and a number from 0."""
    assert stream_ids(Unit.STREAM, "g_c0", 3) == ("g_c0-0", "g_c0-1", "g_c0-2")


def test_where_consumers_count_the_consumer_is_its_only_stream() -> None:
    """The pages of 0.7 deal to consumers: one id, however many streams, and none for none."""
    assert stream_ids(Unit.CONSUMER, "g_c0", 3) == ("g_c0",)
    assert stream_ids(Unit.CONSUMER, "g_c0", 0) == ()


@given(words, st.integers(1, 30))
@steady
def test_the_number_of_a_thread_can_be_read_from_its_id(consumer_id: str, streams: int) -> None:
    """Dashes in the consumer's id do not confuse it."""
    ids = stream_ids(Unit.STREAM, consumer_id, streams)

    assert [stream_number(Unit.STREAM, consumer_id, number) for number in ids] == list(
        range(streams)
    )


@pytest.mark.parametrize(
    ("variant", "value"),
    [
        ("documented", b"g_c0"),
        ("documented_ceil", b"g_c0"),
        ("kafka_07", b"g_c0-11"),
        ("kafka_08", b"g_c0-11"),
        ("hardened", b"g_c0-11"),
    ],
)
def test_claims_hold_what_their_variant_writes(variant: str, value: bytes) -> None:
    """The pages write the consumer's id into an owner znode, the releases the thread's."""
    assert owner_value(consumer(variant), "g_c0", 11) == value


# --- what does not parse ---------------------------------------------------------------

BAD_NUMBERS = [None, b"", b"x", b"1.5", b" 1", b"1\n", b"0x10", b"1e3", b"--1", b"+1", b"9" * 20]
BAD_NAMES = [None, b"", b"\xff\xfe"]
BAD_BROKERS = [None, b"", b"hadoop1", b"hadoop1:", b":9092", b"a:b:c:9", b"h:123456", b"h:-1"]
BAD_BROKERS_JSON = [b"{", b"{}", b'{"host":"h"}', b'{"port":1}', b'{"host":"h","port":"1"}']
BAD_BROKERS_JSON += [
    b'{"host":5,"port":1}',
    b'{"host":"h","port":true}',
    b'{"host":"h","port":1.5}',
]
BAD_CONSUMERS = [None, b"", b"{", b"[]", b"5", b"null", b'"x"', b"*x*a", b"*1!a", b"*1", b"**a"]
BAD_CONSUMERS += [b"*1234567*a", b'{"t":"1"}', b'{"t":-1}', b'{"t":1.5}', b'{"t":true}']
BAD_CONSUMERS_08 = [
    b'{"subscription":{"t":1}}',
    b'{"subscription":{"t":1},"pattern":"regex"}',
    b'{"subscription":{"t":1},"pattern":null}',
    b'{"subscription":{"t":"1"},"pattern":"static"}',
    b'{"subscription":{"a":1,"b":1},"pattern":"white_list"}',
    b'{"subscription":[],"pattern":"static"}',
    b'{"version":1,"pattern":"static","timestamp":"1"}',
]
BAD = [
    *((decode_number, data) for data in BAD_NUMBERS),
    *((decode_text, data) for data in BAD_NAMES),
    *((decode_broker, data) for data in BAD_BROKERS + BAD_BROKERS_JSON),
    *((decode_consumer, data) for data in BAD_CONSUMERS + BAD_CONSUMERS_08),
]


@pytest.mark.parametrize(("decode", "data"), BAD)
def test_what_does_not_parse_is_refused(decode: Any, data: bytes | None) -> None:
    """The error names the path, shows the payload and says what was expected."""
    with pytest.raises(BadPayload) as refused:
        decode("/consumers/g/ids/x", data)

    shown = "nothing" if data is None else repr(data.decode("utf-8", "replace"))
    assert str(refused.value).startswith(f"/consumers/g/ids/x holds {shown}; expected ")
    assert (refused.value.path, refused.value.data) == ("/consumers/g/ids/x", data)


def test_a_long_payload_is_cut_short_in_the_error() -> None:
    """An error stays readable, however much there is."""
    with pytest.raises(BadPayload) as refused:
        decode_number(PATH, b"x" * 100_000)

    assert len(str(refused.value)) < 300


def test_json_nested_without_end_is_refused() -> None:
    """Nesting that exhausts the parser is a bad payload and no crash."""
    with pytest.raises(BadPayload):
        decode_json(PATH, b'{"a":' * 100_000, "an object")


READERS = [
    (decode_number, int),
    (decode_text, str),
    (decode_broker, BrokerInfo),
    (decode_consumer, Subscription),
]
"""A reader of payloads, and the type of what it reads."""


@pytest.mark.parametrize(("decode", "kind"), READERS)
@given(data=st.binary(max_size=60) | texts.map(str.encode))
@steady
def test_random_bytes_are_read_or_refused(decode: Any, kind: type, data: bytes) -> None:
    """Whatever a znode holds, reading it ends in a value or in BadPayload."""
    assert isinstance(value_or_refusal(decode, PATH, data), (kind, BadPayload))


@given(json_objects("subscription", "pattern", "timestamp", "version", "t1"))
@steady
def test_random_json_is_a_consumer_or_refused(value: dict[str, Any]) -> None:
    """Whatever JSON a registration holds, reading it ends in a value or in BadPayload."""
    found = value_or_refusal(decode_consumer, PATH, json.dumps(value).encode())

    assert isinstance(found, (Subscription, BadPayload))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"host":"h","port":1,"jmx_port":"none"}', "a jmx_port that is a number"),
        (b'{"host":"h","port":1,"jmx_port":null}', "a jmx_port that is a number"),
        (b'{"host":"h","port":1,"jmx_port":1e999}', "a jmx_port that is a number"),
        (b'{"host":"h","port":1,"endpoints":5}', "endpoints in a list"),
        (b'{"host":"h","port":1,"endpoints":null}', "endpoints in a list"),
    ],
)
def test_a_broker_with_odd_extras_is_refused(data: bytes, expected: str) -> None:
    """A wrong optional field is a bad payload and no crash; the sentence names the field."""
    with pytest.raises(BadPayload, match=f"expected JSON with host .* and {expected}$"):
        decode_broker(PATH, data)


def test_a_filter_that_is_not_text_is_refused() -> None:
    """No reader may make up an expression that no writer wrote."""
    with pytest.raises(BadPayload):
        decode_consumer(PATH, b"*1*\xff")


@given(st.dictionaries(texts, st.integers() | texts | st.lists(brokers), max_size=5))
@steady
def test_equal_json_is_equal_bytes(value: dict[str, Any]) -> None:
    """Keys are written in order, so that comparing bytes compares values."""
    backwards = dict(reversed(value.items()))

    assert encode_json(backwards) == encode_json(value)
    assert decode_json(PATH, encode_json(value), "an object") == value
