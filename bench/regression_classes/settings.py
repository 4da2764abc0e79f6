"""Codecs and settings: each has its effect, or is refused by a sentence.

Class: `settings`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, NamedTuple

from bench.regression_classes.outcome import Outcome, RegressionClass
from bench.regression_classes.runs import Fields, ms, ranges, stored_cluster

from watchkeeper.model.log.format.codecs import CODECS_07, Codec
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace
from watchkeeper.scenarios import ScenarioError, from_text
from watchkeeper.sim.world import Simulated, simulate

# --- codecs --------------------------------------------------------------------------------


def draw_settings(dice: Random) -> Outcome:
    """Draw a load under each codec, or a scenario with settings."""
    return _draw_codecs(dice) if dice.random() < 0.3 else _draw_settings(dice)


def _draw_codecs(dice: Random) -> Outcome:
    size, seed = dice.choice((200, 500, 1_000)), dice.randrange(10**6)
    config = {
        "producer.type": dice.choice(("sync", "async")),
        "queue.time": dice.choice((50, 200)),
    }
    if config["producer.type"] == "sync":
        del config["queue.time"]
    fields = _base()
    fields["clusters"] = stored_cluster(
        1, dice.randint(1, 2), {"log.flush.interval": dice.choice((1, 100))}
    )
    fields["timeline"] = [
        {"at": "2s", "produce": "clicks", "rate": f"{dice.choice((300, 2_000))}/s",
         "size": f"{size}B", "for": ms(dice.randrange(500, 1_500))}
    ]  # fmt: skip
    traces = {}
    for codec in sorted(CODECS_07):
        fields["producers"]["web"]["config"] = {**config, "compression.codec": int(codec)}
        traces[codec] = _simulated(fields, seed).trace
    return Outcome(tuple(codecs_wrong(traces, size)), len(CODECS_07))


def codecs_wrong(traces: Mapping[Codec, Trace], size: int) -> Iterator[str]:
    """What is wrong with the logs of one load under each codec."""
    stored = {
        codec: [one for event in trace.of_kind(EventKind.STORED) for one in ranges(event)]
        for codec, trace in traces.items()
    }
    numbers = {
        codec: sum(end - first for _, first, end, *_ in found) for codec, found in stored.items()
    }
    sizes = {
        codec: sum(to - at for _, _, _, at, to, _ in found) for codec, found in stored.items()
    }
    if sizes[Codec.NONE] != numbers[Codec.NONE] * (size + 10):
        yield f"without a codec {numbers[Codec.NONE]} messages take {sizes[Codec.NONE]} bytes"
    for codec, found in stored.items():
        whole = [one[5] for one in found if one[2] - one[1] > 1]
        if any(is_entry != (codec is not Codec.NONE) for is_entry in whole):
            yield f"{codec.name}: a set of several messages has the wrong number of offsets"
    each = {codec: sizes[codec] / max(numbers[codec], 1) for codec in CODECS_07}
    if not each[Codec.GZIP] < each[Codec.SNAPPY] < each[Codec.NONE]:
        yield f"bytes a message: {each}"


# --- settings ------------------------------------------------------------------------------


class Setting(NamedTuple):
    """A setting, and the values that are drawn for it."""

    kind: str
    """Where it stands: broker, producer or consumer."""
    key: str
    default: Any
    values: tuple[Any, ...]
    """Valid ones and invalid ones; the default is not among them."""
    shows: bool = False
    """Whether each valid value changes the trace of each run of the class."""


INVALID: tuple[Any, ...] = (-7, "many", [], None)

SETTINGS = (
    Setting("broker", "log.file.size", 512 * 2**20, (2_000, 20_000)),
    Setting("broker", "log.roll.hours", 168, (1, 24)),
    Setting("broker", "log.flush.interval", 500, (1, 7, 40), shows=True),
    Setting("broker", "log.default.flush.interval.ms", 3_000, (10, 100)),
    Setting("broker", "log.default.flush.scheduler.interval.ms", 3_000, (20, 100), shows=True),
    Setting("broker", "log.retention.hours", 168, (1, 24)),
    Setting("broker", "log.retention.size", -1, (5_000, 30_000)),
    Setting("broker", "log.cleanup.interval.mins", 10, (1, 3)),
    Setting("broker", "num.partitions", 1, (2, 3)),
    Setting("broker", "max.message.size", 1_000_000, (100, 200), shows=True),
    Setting("broker", "log.check.compressed", True, (False,)),
    Setting("broker", "topic.log.file.size", {}, ({"clicks": 5_000}, {"gone": 5})),
    Setting("broker", "topic.log.roll.hours", {}, ({"clicks": 1}, "clicks:1", "x:1")),
    Setting("broker", "topic.flush.intervals.ms", {}, ({"clicks": 50}, "clicks")),
    Setting("broker", "topic.log.retention.hours", {}, ({"clicks": 1}, {"clicks": -3})),
    Setting("broker", "topic.log.retention.size", {}, ({"clicks": 30_000},)),
    Setting("broker", "topic.partition.count.map", {}, ({"clicks": 5},)),
    Setting("producer", "broker.list", "", ("0:main-b0.example:9092", "0:nowhere"), shows=True),
    Setting("producer", "zk.connect", "", ("elsewhere:2181",)),
    Setting("producer", "partitioner.class", "java", ("murmur2", "random", "mine")),
    Setting("producer", "producer.type", "sync", ("async",), shows=True),
    Setting("producer", "serializer.class", "default", ("string",)),
    Setting("producer", "compression.codec", 0, (1, 2, 3), shows=True),
    Setting("producer", "compressed.topics", (), ("clicks", "clicks,views")),
    Setting("producer", "zk.read.num.retries", 3, (0, 9)),
    Setting("producer", "num.retries", 0, (1, 3)),
    Setting("producer", "buffer.size", 102_400, (1_000, 5_000)),
    Setting("producer", "connect.timeout.ms", 5_000, (10, 100)),
    Setting("producer", "socket.timeout.ms", 30_000, (50, 1_000)),
    Setting("producer", "reconnect.interval", 30_000, (5, 50), shows=True),
    Setting("producer", "reconnect.time.interval.ms", 10_000_000, (100, 400), shows=True),
    Setting("producer", "max.message.size", 1_000_000, (100, 200), shows=True),
    Setting("producer", "queue.time", 5_000, (50, 300)),
    Setting("producer", "queue.size", 10_000, (20, 100)),
    Setting("producer", "queue.enqueueTimeout.ms", 0, (50, 200)),
    Setting("producer", "batch.size", 200, (5, 20)),
    Setting("consumer", "zookeeper.session.timeout.ms", 6_000, (2_000, 4_000), shows=True),
    Setting("consumer", "zookeeper.sync.time.ms", 2_000, (100, 500)),
    Setting("consumer", "rebalance.max.retries", 4, (1, 9)),
    Setting("consumer", "rebalance.backoff.ms", 2_000, (100, 500)),
    Setting("consumer", "auto.commit.enable", True, (False,)),
    Setting("consumer", "auto.commit.interval.ms", 60_000, (200, 700), shows=True),
    Setting("consumer", "auto.offset.reset", "largest", ("smallest", "middle")),
    Setting("consumer", "exclude.internal.topics", True, (False,)),
    Setting("consumer", "partition.assignment.strategy", "range", ("roundrobin", "alphabet")),
    Setting("consumer", "fetch.message.max.bytes", 1_048_576, (400, 2_000), shows=True),
    Setting("consumer", "refresh.leader.backoff.ms", 200, (10, 50), shows=True),
    Setting("consumer", "queued.max.message.chunks", 2, (1, 5)),
    Setting("consumer", "socket.timeout.ms", 30_000, (50, 900)),
    Setting("consumer", "consumer.timeout.ms", -1, (20, 60), shows=True),
)
"""Every setting of brokers, producers and consumers."""
FOLLOWS = {"rebalance.backoff.ms": "zookeeper.sync.time.ms"}
"""Setting -> the one whose value it has by default: both with one value change nothing."""


def _base() -> Fields:
    return {
        "name": "drawn",
        "about": "a drawn scenario",
        "clusters": {},
        "producers": {"web": {"keys": 5, "config": {}}},
        "groups": {
            "billing": {
                "consumers": 1, "starts": "1s", "streams": {"clicks": 1}, "config": {},
            }
        },
        "settle": "4s",
    }  # fmt: skip


def _draw_settings(dice: Random) -> Outcome:
    """One setting with a drawn value, in a scenario with up to three others."""
    fields, seed = _base(), dice.randrange(10**6)
    fields["clusters"] = stored_cluster(dice.randint(1, 2), dice.randint(1, 2))
    size = dice.choice((250, 300, 700))
    fields["timeline"] = [
        {"at": "2s", "produce": "clicks", "rate": "200/s", "size": f"{size}B", "for": "2s"}
    ]
    chosen, *drawn = dice.sample(SETTINGS, dice.randint(1, 3))
    others = [other for other in drawn if other.key != FOLLOWS.get(chosen.key)]
    for other in others:
        _place(fields, other)[other.key] = dice.choice(other.values)
    values = chosen.values if dice.random() < 0.85 else INVALID
    value = dice.choice([one for one in values if one != chosen.default])
    return setting_judged(fields, chosen, value, seed, is_alone=not others)


def _place(fields: Fields, setting: Setting) -> Fields:
    places: dict[str, Callable[[], Fields]] = {
        "broker": lambda: fields["clusters"]["main"]["storage"]["config"],
        "producer": lambda: fields["producers"]["web"]["config"],
        "consumer": lambda: fields["groups"]["billing"]["config"],
    }
    return places[setting.kind]()


def setting_judged(
    fields: Fields, setting: Setting, value: Any, seed: int, *, is_alone: bool
) -> Outcome:
    """Run with and without a value: it is refused by a sentence that names it, or matters."""
    try:
        before = from_text("drawn.yaml", json.dumps(fields)).plan("hardened")
    except ScenarioError as error:
        return Outcome(exercised=1, refusal=str(error))
    place = _place(fields, setting)
    place[setting.key] = value
    try:
        after = from_text("drawn.yaml", json.dumps(fields)).plan("hardened")
    except ScenarioError as error:
        is_named = setting.key in str(error) or "is not a topic of the cluster" in str(error)
        wrong = () if is_named else (f"{setting.key} is refused without its name: {error}",)
        return Outcome(wrong, 1, str(error))
    done = simulate(after, seed)
    wrong_now = []
    if before == after:
        wrong_now.append(f"{setting.key}: {value!r} changes nothing in the plan")
    elif setting.shows and is_alone and _is_same(before, seed, done):
        wrong_now.append(f"{setting.key}: {value!r} changes nothing in the run")
    return Outcome(tuple(wrong_now), 1)


def _is_same(plan: Plan, seed: int, done: Simulated) -> bool:
    return simulate(plan, seed).trace.fingerprint == done.trace.fingerprint


def _simulated(fields: Fields, seed: int) -> Simulated:
    return simulate(from_text("drawn.yaml", json.dumps(fields)).plan("hardened"), seed)


SETTINGS_CLASS = RegressionClass(
    "settings",
    "codecs and settings: what is stored differs, and no value is without effect",
    draw_settings,
)
