"""Two ways to spread producers over brokers: a layer-4 balancer, and ZooKeeper.

Producers with unequal rates (Zipf: the second sends half as much as the first, the third a
third) send through simulated brokers to a group of two; in the middle of the run another
broker joins. Three ways: through a balancer that deals out connections, where a producer keeps
one connection and its broker chooses the partition; with brokers found in ZooKeeper and any
partition; and with the partition chosen by a key. Everything is counted from the trace of the
run: where each message was stored, and in which order each was handed on. Messages that are
sent together have one key, and the order of a key is that of its messages from one producer.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from watchkeeper.experiment.apparatus.rows import Outcome, Row, at_least, at_most
from watchkeeper.model.delivery.ledger import MessageRange
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace
from watchkeeper.reports.facts.message_ranges import Numbered
from watchkeeper.scenarios import from_text
from watchkeeper.sim.disk.host_costs import MachineProfile
from watchkeeper.sim.world import simulate

SECOND_US = 1_000_000
SENDS_S, JOINS_S, SETTLED_S, ENDS_S = 3, 11, 14, 21
"""When the load begins, when the broker joins, when all know it, when the load ends."""
RATE = 4_000
"""Messages a second of all producers together."""
PARTITIONS = 4
"""Of each broker."""
WAYS = ("layer-4", "ZooKeeper, any partition", "ZooKeeper, by key")

KeyOf = Numbered[tuple[str, int]]
"""Message -> its key, and the number of the first message that was sent with it."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was counted in one run."""

    brokers: int
    producers: int
    way: str
    messages: int
    connections: int
    """From a producer to a broker that stored something of it, before the broker joined."""
    requested: int
    """Operations that producers requested of ZooKeeper, the first reading included."""
    load: float
    """Of the broker that stored most before the other joined, against the mean."""
    new_load: float
    """Of the broker that joined, against the mean, once all know it."""
    stuck: float | None
    """The share of keys whose messages lay in one partition before the broker joined."""
    moved: float | None
    """The share of them that lay in another afterwards; None where they had not one each."""
    disordered: tuple[int, int] | None
    """Messages that were handed on behind a later one of their key: before, and since."""


def scenario(brokers: int, producers: int, way: str, keys: int) -> dict[str, object]:
    """The run as the fields of a scenario."""
    names = [f"p{at}" for at in range(producers)]
    weight = sum(1 / (at + 1) for at in range(producers))
    more: dict[str, object] = {
        "layer-4": {"balanced": True, "keys": keys},
        "ZooKeeper, any partition": {},
        "ZooKeeper, by key": {"keys": keys},
    }
    known = [{"id": at} for at in range(brokers)]
    storage = {"machine": "modern", "config": {"log.flush.interval": 200}}
    return {
        "name": "balancing",
        "about": "Producers of unequal rates, and a broker that joins.",
        "clusters": {
            "main": {
                "zookeeper": {"servers": 1},
                "brokers": [*known, {"id": brokers, "starts": f"{JOINS_S}s"}],
                "storage": storage,
                "topics": {"clicks": {"partitions_per_broker": PARTITIONS}},
            }
        },
        "producers": dict.fromkeys(names, more[way]),
        "groups": {
            "readers": {
                "consumers": 2,
                "streams": {"clicks": 1},
                "guarantee": "measured",
                "config": {"refresh.leader.backoff.ms": 100},
            }
        },
        "timeline": [
            {
                "at": f"{SENDS_S}s",
                "produce": "clicks",
                "rate": f"{max(round(RATE / (at + 1) / weight), 1)}/s",
                "size": "100B",
                "from": name,
                "for": f"{ENDS_S - SENDS_S}s",
            }
            for at, name in enumerate(names)
        ],
        "settle": "8s",
    }


def seen(brokers: int, producers: int, way: str, keys: int, seed: int) -> Seen:
    """Run it, and count."""
    fields = json.dumps(scenario(brokers, producers, way, keys))
    plan = from_text("balancing.yaml", fields).plan("hardened")
    trace = simulate(plan, seed).trace
    of = keys_of(trace)
    before, after = stored(trace, SENDS_S, JOINS_S), stored(trace, SETTLED_S, ENDS_S)
    loads, later = per_broker(before), per_broker(after)
    requested = Counter(event.node for event in trace.of_kind(EventKind.REQUEST))
    has_keys = way != "ZooKeeper, any partition"
    keys_before, keys_after = places(before, of), places(after, of)
    stuck = sticking(keys_before) if has_keys else None
    return Seen(
        brokers,
        producers,
        way,
        messages=sum(messages.size for _, messages in stored(trace, 0, ENDS_S * 2)),
        connections=len({(messages.producer, event.node) for event, messages in before}),
        requested=sum(count for node, count in requested.items() if node[0] == "p"),
        load=max(loads.values()) * brokers / loads.total(),
        new_load=later[f"broker/{brokers}"] * (brokers + 1) / later.total(),
        stuck=stuck,
        moved=moving(keys_before, keys_after) if stuck == 1 else None,
        disordered=disordered(trace, of) if has_keys else None,
    )


# --- counting --------------------------------------------------------------------------


def keys_of(trace: Trace) -> KeyOf:
    """The key of each message, as its application gave it."""
    found: KeyOf = Numbered()
    for event in trace.of_kind(EventKind.SENT):
        detail = event.detail
        if "key" in detail:
            first = detail["first"]
            found.add(detail["producer"], first, detail["end"], (detail["key"], first))
    return found


def ranges_of(event: Event) -> list[MessageRange]:
    """Return the message ranges of an event."""
    return [MessageRange(*row) for row in event.detail["ranges"]]


def stored(trace: Trace, from_s: int, until_s: int) -> list[tuple[Event, MessageRange]]:
    """Return the message ranges stored between two moments."""
    return [
        (event, messages)
        for event in trace.of_kind(EventKind.STORED)
        if from_s * SECOND_US <= event.t_us < until_s * SECOND_US
        for messages in ranges_of(event)
    ]


def per_broker(found: Sequence[tuple[Event, MessageRange]]) -> Counter[str]:
    """Return the number of messages that each broker stored."""
    counts: Counter[str] = Counter()
    for event, messages in found:
        counts[event.node] += messages.size
    return counts


def places(found: Sequence[tuple[Event, MessageRange]], of: KeyOf) -> dict[str, list[str]]:
    """Return key -> the partition of each send, for keys that were sent more than once."""
    where: dict[str, dict[tuple[str, int], str]] = {}
    for event, messages in found:
        for _, (key, begun) in of.parts(messages.producer, messages.first, messages.end):
            where.setdefault(key, {})[messages.producer, begun] = event.partition
    return {key: list(sent.values()) for key, sent in where.items() if len(sent) > 1}


def sticking(before: dict[str, list[str]]) -> float:
    """Return the share of keys that had one partition."""
    return sum(1 for found in before.values() if len(set(found)) == 1) / len(before)


def moving(before: dict[str, list[str]], after: dict[str, list[str]]) -> float:
    """Return the share of keys that had another partition afterwards."""
    again = [key for key in before if key in after]
    return sum(1 for key in again if set(after[key]) != set(before[key])) / len(again)


def disordered(trace: Trace, of: KeyOf) -> tuple[int, int]:
    """Count messages delivered after a later one of their key, before and after the join."""
    latest: dict[tuple[str, str], int] = {}
    handed: Numbered[bool] = Numbered()
    counts = [0, 0]
    for event in trace.of_kind(EventKind.CONSUMED):
        for messages in ranges_of(event):
            for first, end in handed.unknown(messages.producer, messages.first, messages.end):
                for key, begin, until in batches(of, messages.producer, first, end):
                    known = latest.get((messages.producer, key), 0)
                    if begin < known:
                        counts[event.t_us >= JOINS_S * SECOND_US] += until - begin
                    latest[messages.producer, key] = max(known, until)
            handed.add(messages.producer, messages.first, messages.end, True)
    return counts[0], counts[1]


def batches(of: KeyOf, producer: str, first: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Messages as they were sent: each key with the numbers that were sent together."""
    for count, (key, begun) in of.parts(producer, first, end):
        begin = max(begun, first)
        yield key, begin, begin + count


# --- as an experiment ------------------------------------------------------------------

BROKERS, PRODUCERS, KEYS = 3, 8, 150


@cache
def _in_each_way() -> tuple[Seen, ...]:
    return tuple(seen(BROKERS, PRODUCERS, way, KEYS, 0) for way in WAYS)


def balancing(machine: MachineProfile) -> Outcome:
    """Let eight producers send to three brokers in each way; a fourth one joins."""
    del machine  # what is counted does not depend on its speed
    layer_4, any_partition, by_key = _in_each_way()
    rows: list[Row] = []
    for run, connections in ((layer_4, at_most(1)), (any_partition, None), (by_key, None)):
        rows += [
            Row(
                f"{run.way}: connections a producer", run.connections / PRODUCERS, "", connections
            ),
            Row(f"{run.way}: requests to ZooKeeper", run.requested, "requests"),
            Row(f"{run.way}: the busiest broker against the mean", run.load, "times"),
            Row(f"{run.way}: the new broker against the mean", run.new_load, "times"),
        ]
    stuck = [run.stuck or 0 for run in (layer_4, by_key)]
    rows += [
        Row(f"{layer_4.way}: keys that stay in one partition", 100 * stuck[0], "%"),
        Row(f"{by_key.way}: keys that stay in one partition", 100 * stuck[1], "%", at_least(100)),
    ]
    return Outcome(
        tuple(rows),
        (
            "All is counted from the trace of a run, on brokers with the disks of today. A "
            "balancer deals out connections, and no producer has a reason to connect again.",
        ),
    )
