"""Simulated runs of drawn scenarios, and what their traces say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from watchkeeper import Result, simulate
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace

Fields = dict[str, Any]
SEEDS = 1_000_000


def ms(number: int) -> str:
    """A duration of a scenario file."""
    return f"{number}ms"


def run(dice: Random, fields: Fields, variant: str = "hardened") -> Result:
    """Simulate a drawn scenario with a drawn seed."""
    fields = {"name": "drawn", "about": "a drawn scenario", **fields}
    return simulate(fields, seed=dice.randrange(SEEDS), variant=variant)


def stored_cluster(
    brokers: int,
    partitions: int,
    config: Fields | None = None,
    *,
    topic: str = "clicks",
    servers: int = 1,
) -> Fields:
    """The clusters of a scenario whose brokers store messages, by this configuration."""
    return {
        "main": {
            "zookeeper": {"servers": servers},
            "brokers": brokers,
            "storage": {"config": config or {}},
            "topics": {topic: {"partitions_per_broker": partitions}},
        }
    }


def violations(result: Result, but: tuple[str, ...] = ()) -> list[str]:
    """A sentence for each violated property."""
    return [
        f"{name}: {result.judgement.finding(name).evidence}"
        for name in result.violated
        if name not in but
    ]


def evidence(result: Result, name: str) -> str:
    """The evidence of a property; empty where the run does not judge it."""
    return next((one.evidence for one in result.findings if one.claim.name == name), "")


def ranges(event: Event) -> list[tuple[str, int, int, int, int, bool]]:
    """Producer, first, end, from, to and whether it is one entry, of each stored range."""
    return [tuple(one) for one in event.detail["ranges"]]


def of_node(trace: Trace, kind: EventKind, node: str) -> list[Event]:
    """The events of a kind at a node."""
    return [event for event in trace.of_kind(kind) if event.node == node]


def struck_us(result: Result) -> dict[int, int]:
    """Number of an action that had an effect -> when it struck."""
    return {
        one.action.number: one.at_us
        for one in result.effects
        if one.at_us is not None and one.is_real
    }


def changes(trace: Trace) -> Iterator[tuple[Event, tuple[Any, ...]]]:
    """Every change of a znode: kind of change, path, version, data."""
    for event in trace.of_kind(
        EventKind.APPLIED, EventKind.SESSION_EXPIRED, EventKind.SESSION_CLOSED
    ):
        for change in event.detail["did"]:
            yield event, tuple(change)


def some(dice: Random, of: Mapping[str, Any], most: int) -> dict[str, Any]:
    """A few of the rows of a table."""
    names = dice.sample(sorted(of), dice.randint(0, min(most, len(of))))
    return {name: of[name] for name in names}
