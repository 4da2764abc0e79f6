"""Each setting of brokers, producers and consumers has an effect in a run, or is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import pytest

from watchkeeper.model.clients.producer.settings import PRODUCER_SETTINGS
from watchkeeper.model.group.settings import SETTINGS as CONSUMER_SETTINGS
from watchkeeper.model.log.settings import SETTINGS as BROKER_SETTINGS
from watchkeeper.scenarios import ScenarioError, from_text
from watchkeeper.sim.world import simulate

Fields = dict[str, Any]

PRODUCE = {"at": "2s", "produce": "clicks", "rate": "400/s", "size": "300B", "for": "20s"}
BUSY = {"at": "2s", "produce": "clicks", "rate": "20000/s", "size": "1kB", "for": "3s"}
ASYNC = {"producer.type": "async", "queue.time": 300}


class Case(NamedTuple):
    """A value of a setting that is not its default, and a run in which that matters."""

    value: Any
    timeline: tuple[Fields, ...] = (PRODUCE,)
    producer: Mapping[str, Any] = {}
    broker: Mapping[str, Any] = {}
    consumer: Mapping[str, Any] = {}
    group: Mapping[str, Any] = {}
    topics: Mapping[str, Any] = {}
    settle: str = "5s"
    variant: str = "hardened"
    replicates: bool = False
    """Whether brokers replicate, and coordinate groups."""


class Refused(NamedTuple):
    """A value that a scenario cannot have, and what the error says."""

    value: Any
    why: str


# --- brokers ---------------------------------------------------------------------------

LATE = ({**PRODUCE, "for": "4s"}, {"at": "4s", "skew": "broker/0", "by": "2h"})
"""The clock of a broker jumps: what it has stored is two hours old."""
CLEANING = (
    *LATE,
    {"at": "8s", "produce": "clicks", "rate": "10/s", "size": "300B", "for": "130s"},
)
SMALL = {"log.file.size": 20_000}
KEEPING = {**SMALL, "log.retention.size": 30_000}
TOPIC = {"clicks": 5_000}
ANEW = (PRODUCE, {"at": "6s", "delete_topic": "clicks"})
GZIP = {"compression.codec": 1}

BROKERS: dict[str, Case | Refused] = {
    "log.file.size": Case(5_000, broker={"log.retention.size": 30_000}, settle="60s"),
    "log.roll.hours": Case(
        1, (*LATE, {**PRODUCE, "at": "8s"}), settle="60s", broker={"log.retention.size": 30_000}
    ),
    "log.flush.interval": Case(20),
    "log.default.flush.interval.ms": Case(
        10, broker={"log.default.flush.scheduler.interval.ms": 100}
    ),
    "log.default.flush.scheduler.interval.ms": Case(50),
    "log.retention.hours": Case(1, CLEANING, broker=SMALL),
    "log.retention.size": Case(30_000, broker=SMALL, settle="60s"),
    "log.cleanup.interval.mins": Case(
        1, CLEANING, broker={**SMALL, "log.retention.size": 30_000}
    ),
    "num.partitions": Case(3, ANEW),
    "max.message.size": Case(100),
    "log.check.compressed": Case(False, producer=GZIP),
    "topic.log.file.size": Case(TOPIC, broker={"log.retention.size": 30_000}, settle="60s"),
    "topic.log.roll.hours": Case(
        {"clicks": 1},
        (*LATE, {**PRODUCE, "at": "8s"}),
        settle="60s",
        broker={"log.retention.size": 30_000},
    ),
    "topic.flush.intervals.ms": Case(
        {"clicks": 10}, broker={"log.default.flush.scheduler.interval.ms": 100}
    ),
    "topic.log.retention.hours": Case({"clicks": 1}, CLEANING, broker=SMALL),
    "topic.log.retention.size": Case({"clicks": 30_000}, broker=SMALL, settle="60s"),
    "topic.partition.count.map": Refused({"clicks": 5}, "partitions_per_broker"),
}

# --- producers -------------------------------------------------------------------------

BOTH_DOWN = (
    PRODUCE,
    {"at": "6s", "crash": "broker/0"},
    {"at": "6s", "crash": "broker/1"},
)
DOWN = (PRODUCE, {"at": "6s", "crash": "broker/0"}, {"at": "20s", "restart": "broker/0"})
BUSY_DOWN = (BUSY, {"at": "3s", "crash": "broker/0"}, {"at": "4s", "restart": "broker/0"})
PAUSED = (BUSY, {"at": "3s", "pause": "broker/0", "for": "1500ms"})

SLOW = {**PRODUCE, "rate": "2000/s", "size": "100B", "for": "6s"}
FILLED = (SLOW, {"at": "3s", "pause": "broker/0", "for": "3s"})
"""Small requests fill the buffers of a connection whose broker is paused."""
VIEWS = {"views": {"partitions_per_broker": 1}}

PRODUCERS: dict[str, Case | Refused] = {
    "broker.list": Case("0:main-b0.example:9092"),
    "zk.connect": Refused("elsewhere:2181", "`cluster`"),
    "partitioner.class": Case("murmur2"),
    "producer.type": Case("async"),
    "serializer.class": Refused("string", "are bytes"),
    "compression.codec": Case(1),
    "compressed.topics": Case(
        "views", producer=GZIP, topics={"views": {"partitions_per_broker": 1}}
    ),
    "zk.read.num.retries": Case(0, BOTH_DOWN, settle="20s"),
    "num.retries": Case(3, BUSY_DOWN, producer={**ASYNC, "batch.size": 20}),
    "buffer.size": Case(1_000, FILLED),
    "connect.timeout.ms": Case(10, DOWN),
    "socket.timeout.ms": Case(100, PAUSED),
    "reconnect.interval": Case(50),
    "reconnect.time.interval.ms": Case(500),
    "max.message.size": Case(100),
    "queue.time": Case(100, producer={"producer.type": "async"}),
    "queue.size": Case(50, DOWN, producer=ASYNC),
    "queue.enqueueTimeout.ms": Case(100, DOWN, producer={**ASYNC, "queue.size": 50}),
    "batch.size": Case(10, producer=ASYNC),
}

# --- consumers -------------------------------------------------------------------------

CONFLICT = (
    PRODUCE,
    {"at": "6s", "crash": "billing/0"},
    {"at": "6500ms", "restart": "billing/0"},
)
"""A member finds the registration that its dead process has left."""

AS_IN_08 = {"fetches": "as in 0.8"}
IN_KAFKA = {"offsets.storage": "kafka", "auto.commit.interval.ms": 500}
REPLICATED = {"at": "2s", "produce": "clicks", "rate": "50/s", "acks": "all", "for": "4s"}
COORDINATOR_PAUSED = (
    REPLICATED,
    {"at": "4s", "pause": "leader of __consumer_offsets/0", "for": "1s"},
)
COORDINATOR_DOWN = (
    REPLICATED,
    {"at": "5s", "crash": "leader of __consumer_offsets/0"},
    {"at": "5100ms", "leave": "billing/0"},
)

CONSUMERS: dict[str, Case | Refused] = {
    "session_timeout_ms": Case(2_000, (PRODUCE, {"at": "6s", "crash": "billing/1"})),
    "sync_time_ms": Case(100, CONFLICT, variant="kafka_07"),
    "rebalance_retries": Case(1, CONFLICT, variant="kafka_07"),
    "rebalance_backoff_ms": Case(100, CONFLICT, variant="kafka_07"),
    "auto_commit": Case(False, consumer={"auto.commit.interval.ms": 500}),
    "auto_commit_interval_ms": Case(500),
    "auto_offset_reset": Case("smallest", group={"starts": "8s"}),
    "exclude_internal_topics": Refused(False, "internal"),
    "assignor": Case(
        "roundrobin",
        topics={"views": {"partitions_per_broker": 3}},
        group={"streams": {"clicks": 1, "views": 1}},
    ),
    "fetch_bytes": Case(2_000),
    "fetch_min_bytes": Case(50_000, replicates=True, group=AS_IN_08),
    "fetch_wait_ms": Case(
        400, replicates=True, group=AS_IN_08, consumer={"fetch.min.bytes": 50_000}
    ),
    "fetch_backoff_ms": Case(50),
    "queued_chunks": Case(
        1, group={"handling": {"each": "10ms"}}, consumer={"fetch.message.max.bytes": 1_000}
    ),
    "socket_timeout_ms": Case(50, (PRODUCE, {"at": "6s", "pause": "broker/0", "for": "2s"})),
    "consumer_timeout_ms": Case(50),
    "offsets_storage": Case("kafka", replicates=True),
    "dual_commit": Case(False, consumer=IN_KAFKA, replicates=True),
    "offsets_backoff_ms": Case(50, consumer=IN_KAFKA, replicates=True),
    "offsets_timeout_ms": Case(50, COORDINATOR_PAUSED, consumer=IN_KAFKA, replicates=True),
    "offsets_retries": Case(0, COORDINATOR_DOWN, consumer=IN_KAFKA, replicates=True),
}


def test_every_setting_stands_here() -> None:
    """A setting that is added gets a run in which it has an effect."""
    keys = {key for row in BROKER_SETTINGS for key in (row.key, row.key_by_topic) if key}

    assert BROKERS.keys() == keys
    assert PRODUCERS.keys() == {row.key for row in PRODUCER_SETTINGS}
    assert CONSUMERS.keys() == {row.field for row in CONSUMER_SETTINGS}


def scenario(case: Case) -> Fields:
    """The run of a case, without its setting."""
    group = {"consumers": 2, "starts": "1s", "config": dict(case.consumer), **case.group}
    if "filter" not in group:
        group.setdefault("streams", {"clicks": 1})
    if case.replicates:
        return replicated(case, group)
    return {
        "name": "settings",
        "about": "a setting",
        "clusters": {
            "main": {
                "zookeeper": {"servers": 1},
                "brokers": 2,
                "storage": {"config": dict(case.broker)},
                "topics": {"clicks": {"partitions_per_broker": 2}, **case.topics},
            }
        },
        "producers": {"web": {"keys": 5, "config": dict(case.producer)}},
        "groups": {"billing": group},
        "timeline": list(case.timeline),
        "settle": case.settle,
    }


def replicated(case: Case, group: Fields) -> Fields:
    """The run of a case whose brokers replicate."""
    group["config"] = {"auto.offset.reset": "smallest", **group["config"]}
    is_in_kafka = "offsets.storage" in group["config"]
    return {
        "name": "settings",
        "about": "a setting",
        "clusters": {
            "main": {
                "zookeeper": {"servers": 1},
                "brokers": 3,
                "layout": "0.8",
                "leaders": "controller",
                "replication": {"offsets_topic": {"partitions": 1}} if is_in_kafka else {},
                "topics": {"clicks": {"partitions": 2, "replicas": 3}},
            }
        },
        "groups": {"billing": group},
        "timeline": [REPLICATED] if case.timeline == (PRODUCE,) else list(case.timeline),
        "settle": case.settle,
    }


def config_of(fields: Fields, kind: str) -> Fields:
    """The settings of brokers, producers or consumers in a scenario."""
    if kind == "broker":
        place = fields["clusters"]["main"]["storage"]
    elif kind == "producer":
        place = fields["producers"]["web"]
    else:
        place = fields["groups"]["billing"]
    config: Fields = place["config"]
    return config


@cache
def fingerprint(text: str, variant: str) -> str:
    """The fingerprint of a run."""
    return simulate(from_text("settings.yaml", text).plan(variant), 0).trace.fingerprint


KEYS = {row.field: row.key_08 for row in CONSUMER_SETTINGS}
ROWS = [
    *(("broker", key, case) for key, case in BROKERS.items()),
    *(("producer", key, case) for key, case in PRODUCERS.items()),
    *(("consumer", KEYS[field], case) for field, case in CONSUMERS.items()),
]


@pytest.mark.parametrize(
    ("kind", "key", "case"), ROWS, ids=[f"{kind} {key}" for kind, key, _ in ROWS]
)
def test_a_setting_has_an_effect_or_is_refused(kind: str, key: str, case: Case | Refused) -> None:
    """No setting is silently without effect."""
    if isinstance(case, Refused):
        fields = scenario(Case(None))
        config_of(fields, kind)[key] = case.value
        with pytest.raises(ScenarioError, match=case.why):
            from_text("settings.yaml", json.dumps(fields)).plan("hardened")
        return
    fields = scenario(case)
    before = fingerprint(json.dumps(fields), case.variant)
    config_of(fields, kind)[key] = case.value
    assert fingerprint(json.dumps(fields), case.variant) != before


# --- settings that cannot have an effect ---------------------------------------------------


def refusal(change: str) -> str:
    """What is said of a scenario with one field more, `path=value`."""
    fields = scenario(Case(None))
    path, _, value = change.partition("=")
    *place, last = path.split("/")
    part = fields
    for name in place:
        part = part[name]
    part[last] = json.loads(value)
    with pytest.raises(ScenarioError) as raised:
        from_text("settings.yaml", json.dumps(fields)).plan("hardened")
    return str(raised.value)


BROKER = "clusters/main/storage/config"
PRODUCER = "producers/web/config"
WITHOUT_EFFECT = {
    f'{BROKER}/topic.log.file.size={{"view": 100}}': "'view' is not a topic of the cluster",
    f'{BROKER}/topic.flush.intervals.ms="clicks:5,b:2"': "'b' is not a topic of the cluster",
    f'{PRODUCER}/compressed.topics="clicks"': "compression.codec is 0; set a codec",
    f"{PRODUCER}/batch.size=5": "set producer.type: async",
    f"{PRODUCER}/queue.enqueueTimeout.ms=5": "set producer.type: async",
    'groups/billing/fetch_every="100ms"': "where brokers store messages",
}


@pytest.mark.parametrize("change", WITHOUT_EFFECT)
def test_a_setting_that_cannot_have_an_effect_is_refused(change: str) -> None:
    """And the error says what to do."""
    assert WITHOUT_EFFECT[change] in refusal(change)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("fetch.size", 1000),
        ("fetcher.backoff.ms", 10),
        ("queuedchunks.max", 1),
        ("socket.timeout.ms", 10),
        ("consumer.timeout.ms", 10),
    ],
)
def test_settings_of_messages_are_refused_where_a_log_is_a_rate(key: str, value: int) -> None:
    """There are no messages to fetch then."""
    fields = scenario(Case(None))
    fields["groups"]["billing"]["config"] = {key: value}
    del fields["clusters"]["main"]["storage"], fields["producers"]
    with pytest.raises(ScenarioError, match="lacks `storage` and"):
        from_text("settings.yaml", json.dumps(fields)).plan("hardened")
