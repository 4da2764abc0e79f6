"""What is known of the registry: payloads as others have written them, and how to draw more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.registry.paths import BadPayload

steady = settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow],
)
"""Hypothesis without chance: the same examples every time."""

# --- payloads, as Kafka has written them -----------------------------------------------

TOPIC_JSON = b'{"version": 1, "partitions": {"2": [1, 2, 3], "1": [0, 1, 2], "0": [3, 0, 1]}}'
STATE_JSON = (
    b'{"controller_epoch": 1, "leader": 3, "version": 1, "leader_epoch": 0, "isr": [3, 0, 1]}'
)
BROKER_JSON = (
    b'{"jmx_port": -1, "timestamp": "1525741823119", "version": 1, "host": "hadoop1", '
    b'"port": 9092}'
)
BROKER_ENDPOINTS_JSON = (
    b'{"jmx_port": 9999, "timestamp": "1525741823119", "endpoints": '
    b'["PLAINTEXT://hadoop1:9092", "SSL://hadoop1:9093"], "host": "hadoop1", "version": 2, '
    b'"port": 9092}'
)
CONTROLLER_JSON = b'{"version": 1, "brokerid": 0, "timestamp": "1525741822769"}'
CONSUMER_JSON = (
    b'{"version": 1, "subscription": {"topic2": 1}, "pattern": "white_list", '
    b'"timestamp": "1525747915336"}'
)
CONSUMER_STATIC_JSON = (
    b'{ "pattern":"static", "subscription":{ "t1": 1, "t2": 2 }, '
    b'"timestamp":"1525747915336", "version":1 }'
)
REASSIGNMENT_JSON = (
    b'{"version": 1, "partitions": [{"topic": "Foo", "partition": 1, "replicas": [0, 1, 3]}]}'
)
ELECTION_JSON = (
    b'{"version": 1, "partitions": [{"topic": "Foo", "partition": 1}, '
    b'{"topic": "Bar", "partition": 0}]}'
)
DELETION_JSON = b'{"version": 1, "topics": ["foo", "bar"]}'
CLUSTER_ID_JSON = b'{"version": "1", "id": "6wBnvVqXQPu4Zh-_5m3hBQ"}'

# --- how to draw more ------------------------------------------------------------------

LETTERS = "abcXYZ019"
topics = st.text(LETTERS + "._-", min_size=1, max_size=20)
words = st.text(LETTERS + "-", min_size=1, max_size=12)
hosts = st.from_regex(r"[a-z][a-z0-9-]{0,10}(\.[a-z]{1,5}){0,2}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
brokers = st.integers(0, 2_147_483_647)
counts = st.integers(0, 1_000)
offsets = st.integers(-1, 2**63 - 1)
partitions_07 = st.builds(
    lambda topic, broker, index: Partition(topic, f"{broker}-{index}"), topics, brokers, counts
)
partitions_08 = st.builds(lambda topic, index: Partition(topic, str(index)), topics, counts)

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=True)
    | st.sampled_from(["static", "white_list", "0", "1", "-1", "07", "a", ""])
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)
"""Anything that JSON can say."""


def json_objects(*fields: str) -> st.SearchStrategy[dict[str, Any]]:
    """JSON objects that have some of these fields, with anything in them."""
    return st.fixed_dictionaries({}, optional=dict.fromkeys(fields, json_values))


def value_or_refusal(decode: Callable[[str, bytes], Any], path: str, data: bytes) -> Any:
    """What a reader makes of the data of a znode: a value, or the BadPayload that it raises."""
    try:
        return decode(path, data)
    except BadPayload as refusal:
        return refusal
