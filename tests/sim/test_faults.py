"""Every kind of fault, in every world: it has an effect, or the lack of one is declared."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from watchkeeper import Result, Verdict, simulate
from watchkeeper.model.plan.faults import VERBS
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace
from watchkeeper.real.world.capabilities import LACKING
from watchkeeper.scenarios import ScenarioError, load, shipped
from watchkeeper.sim.faults.faults import HANDLERS

WORLDS = {"sim": frozenset(HANDLERS), "live": frozenset(HANDLERS) - frozenset(LACKING)}
"""World -> the verbs that it knows."""


def scenario(*timeline: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Two brokers and two consumers under a timeline."""
    return {
        "name": "faulty",
        "about": "a kind of fault",
        "clusters": {
            "main": {
                "layout": "0.8",
                "brokers": 2,
                "topics": {"clicks": {"partitions": 4, "replicas": 2}},
            }
        },
        "groups": {
            "group": {
                "consumers": 2,
                "streams": {"clicks": 1},
                "config": {"zookeeper.session.timeout.ms": 2000, "auto.commit.interval.ms": 1000},
            }
        },
        "timeline": [{"at": "0s", "produce": "clicks", "rate": "100/s"}, *timeline],
        "settle": "14s",
        **fields,
    }


def storing(*timeline: dict[str, Any]) -> dict[str, Any]:
    """The same with brokers that have disks."""
    cluster = {
        "layout": "0.7",
        "brokers": 2,
        "topics": {"clicks": {"partitions_per_broker": 2}},
        "storage": {"config": {"log.flush.interval": 10}},
    }
    return scenario(*timeline, clusters={"main": cluster})


def scenario_for(verb: str, *timeline: dict[str, Any]) -> dict[str, Any]:
    """What a verb needs under its timeline: faults of disks need disks."""
    return (storing if verb.startswith("disk_") else scenario)(*timeline)


def after(trace: Trace, at_s: float, kind: str, node: str = "", **detail: Any) -> bool:
    """Whether something happened after a moment."""
    return any(
        event.kind == kind
        and event.t_us >= at_s * 1e6
        and event.node.startswith(node)
        and detail.items() <= event.detail.items()
        for event in trace
    )


def longest_wait_us(trace: Trace, node: str, from_s: float, to_s: float) -> int:
    """The longest time that a process waited for an answer."""
    requested_us, longest = 0, 0
    for event in trace:
        if event.node == node and from_s * 1e6 <= event.t_us <= to_s * 1e6:
            if event.kind == EventKind.REQUEST:
                requested_us = event.t_us
            elif event.kind == EventKind.RESPONSE:
                longest = max(longest, event.t_us - requested_us)
    return longest


Seen = Callable[[Trace], bool]

CASES: dict[str, tuple[list[dict[str, Any]], Seen]] = {
    "start": (
        [{"at": "6s", "crash": "group/1"}, {"at": "9s", "start": "group/1", "as": "new id"}],
        lambda trace: after(trace, 9, EventKind.STARTED, "group/1"),
    ),
    "restart": (
        [{"at": "6s", "crash": "group/1"}, {"at": "9s", "restart": "group/1"}],
        lambda trace: after(trace, 9, EventKind.STARTED, "group/1"),
    ),
    "leave": (
        [{"at": "6s", "leave": "group/1"}],
        lambda trace: (
            after(trace, 6, EventKind.SESSION_CLOSED)
            and after(trace, 6, EventKind.ENDED, "group/1", failed=False)
        ),
    ),
    "crash": (
        [{"at": "6s", "crash": "group/1"}],
        lambda trace: (
            after(trace, 7.5, EventKind.SESSION_EXPIRED)
            and after(trace, 6, EventKind.ENDED, "group/1")
        ),
    ),
    "crash_host": (
        [{"at": "6s", "crash_host": "group/1"}],
        lambda trace: (
            after(trace, 7.5, EventKind.SESSION_EXPIRED)
            and after(trace, 6, EventKind.ENDED, "group/1")
        ),
    ),
    "abandon": (
        [{"at": "6s", "abandon": "group/1", "for": "5s"}],
        lambda trace: (
            after(trace, 6, EventKind.ABANDONED, "group/1")
            and after(trace, 11, EventKind.ENDED, "group/1")
            and after(trace, 12.5, EventKind.SESSION_EXPIRED)
        ),
    ),
    "pause": (
        [{"at": "6s", "pause": "group/1", "for": "5s"}],
        lambda trace: (
            after(trace, 7.5, EventKind.SESSION_EXPIRED)
            and after(trace, 11, EventKind.EXPIRED, "group/1")
        ),
    ),
    "expire": (
        [{"at": "6s", "expire": "group/1"}],
        lambda trace: (
            after(trace, 6, EventKind.SESSION_EXPIRED)
            and after(trace, 6, EventKind.EXPIRED, "group/1")
        ),
    ),
    "disconnect": (
        [{"at": "6s", "disconnect": "group/1", "for": "300ms"}],
        lambda trace: (
            after(trace, 6, EventKind.SUSPENDED, "group/1")
            and after(trace, 6.3, EventKind.SESSION_MOVED)
        ),
    ),
    "lose": (
        [{"on": {"node": "group/1", "purpose": "claim"}, "lose": "reply"}],
        lambda trace: after(trace, 1, EventKind.SUSPENDED, "group/1"),
    ),
    "partition": (
        [{"at": "6s", "partition": "group/1", "for": "5s"}],
        lambda trace: (
            after(trace, 6, EventKind.SUSPENDED, "group/1")
            and after(trace, 11, EventKind.EXPIRED, "group/1")
        ),
    ),
    "delay": (
        [{"at": "6s", "delay": "group/1", "by": "80ms", "for": "5s"}],
        lambda trace: longest_wait_us(trace, "group/1", 6, 11) >= 80_000,
    ),
    "skew": (
        [
            {"at": "6s", "skew": "group/1", "by": "1h"},
            {"at": "7s", "crash": "group/1"},
            {"at": "11s", "restart": "group/1"},
        ],
        lambda trace: _stamp(trace, "group/1") - _stamp(trace, "group/0") > 3_000_000,
    ),
    "lag": (
        [
            {"at": "500ms", "lag": f"zookeeper/{number}", "by": "400ms", "for": "8s"}
            for number in (1, 2, 3)
        ],
        lambda trace: _latest_waking_us(trace, 1, 8) >= 390_000,
    ),
    "disk_slow": (
        [{"at": "6s", "disk_slow": "broker/0", "times": 1000, "for": "4s"}],
        lambda trace: not _consumed_from_broker_0(trace, 7, 10),
    ),
    "disk_full": (
        [{"at": "6s", "disk_full": "broker/0", "for": "4s"}],
        lambda trace: after(trace, 6, EventKind.BROKER_FAILED, "broker/0"),
    ),
    "rolling_restart": (
        [{"at": "6s", "rolling_restart": "zookeeper", "each": "2s"}],
        lambda trace: (
            after(trace, 6, EventKind.LEADER_LOST)
            and len(_kinds(trace, EventKind.SERVER_STATE, 6)) >= 6
        ),
    ),
    "quorum_loss": (
        [{"at": "6s", "quorum_loss": "zookeeper", "for": "5s"}],
        lambda trace: (
            after(trace, 6, EventKind.SUSPENDED, "group/")
            and not _applied_between(trace, 6.5, 11)
        ),
    ),
    "move": (
        [{"at": "6s", "move": "broker/1", "to": "spare.example:9093"}],
        lambda trace: after(
            trace, 6, EventKind.STARTED, "broker/1", address="spare.example:9093"
        ),
    ),
    "create_topic": (
        [{"at": "6s", "create_topic": "views", "partitions": 2}],
        lambda trace: _created(trace, "/brokers/topics/views"),
    ),
    "add_partitions": (
        [{"at": "6s", "add_partitions": "clicks", "partitions": 6}],
        lambda trace: _created(trace, "/brokers/topics/clicks/partitions/5"),
    ),
    "delete_topic": (
        [{"at": "6s", "delete_topic": "clicks"}],
        lambda trace: after(trace, 6, EventKind.FETCHING, "group/", does="ceases"),
    ),
    "move_leader": (
        [{"at": "6s", "move_leader": "clicks/0", "to": "broker/1"}],
        lambda trace: _changed(trace, "/brokers/topics/clicks/partitions/0/state", 6),
    ),
    "unregister": (
        [{"at": "6s", "unregister": "group/1"}],
        lambda trace: after(trace, 6, EventKind.APPLIED, by="operator", op="delete"),
    ),
    "delete_znode": (
        [{"at": "6s", "delete_znode": "/consumers/group/owners/clicks/3"}],
        lambda trace: after(trace, 6, EventKind.APPLIED, by="operator", op="delete"),
    ),
    "write_znode": (
        [{"at": "6s", "write_znode": "/brokers/ids/1", "data": "here"}],
        lambda trace: _changed(trace, "/brokers/ids/1", 6),
    ),
    "produce": (
        [{"at": "6s", "produce": "clicks", "rate": "900/s", "for": "2s"}],
        lambda trace: _fetched(trace, 6, 9) > 2 * _fetched(trace, 2, 5),
    ),
}
"""Verb -> a timeline with it, and what has to be seen in the trace."""


def _kinds(trace: Trace, kind: str, from_s: float) -> list[Any]:
    return [event for event in trace if event.kind == kind and event.t_us >= from_s * 1e6]


def _created(trace: Trace, path: str) -> bool:
    return any(
        did[0] == "created" and did[1] == path
        for event in trace
        for did in event.detail.get("did", ())
    )


def _changed(trace: Trace, path: str, from_s: float) -> bool:
    return any(
        did[0] == "changed" and did[1] == path
        for event in _kinds(trace, EventKind.APPLIED, from_s)
        for did in event.detail["did"]
    )


def _applied_between(trace: Trace, from_s: float, to_s: float) -> bool:
    return any(
        from_s * 1e6 < event.t_us < to_s * 1e6 for event in _kinds(trace, EventKind.APPLIED, 0)
    )


def _fetched(trace: Trace, from_s: float, to_s: float) -> int:
    return sum(
        end - start
        for event in _kinds(trace, EventKind.FETCHED, from_s)
        if event.t_us < to_s * 1e6
        for start, end in event.detail["moved"].values()
    )


def _consumed_from_broker_0(trace: Trace, from_s: float, to_s: float) -> bool:
    return any(
        event.partition.startswith("0-") and event.t_us < to_s * 1e6
        for event in _kinds(trace, EventKind.CONSUMED, from_s)
    )


def _stamp(trace: Trace, node: str) -> int:
    """The time that a member last wrote into its registration, in milliseconds."""
    stamps = [
        int(json.loads(did[3])["timestamp"])
        for event in trace
        if event.detail.get("by") == node
        for did in event.detail.get("did", ())
        if did[0] == "created" and "/ids/" in did[1]
    ]
    return stamps[-1]


def _latest_waking_us(trace: Trace, from_s: float, to_s: float) -> int:
    """The longest time from a change of the members to a watch that fires for it."""
    changed_us = {
        event.zxid: event.t_us
        for event in _kinds(trace, EventKind.APPLIED, from_s)
        if any("/ids/" in did[1] for did in event.detail["did"])
    }
    return max(
        (event.t_us - changed_us[event.zxid])
        for event in _kinds(trace, EventKind.WATCH_FIRED, from_s)
        if event.zxid in changed_us and event.t_us < to_s * 1e6
    )


def effects(result: Result, verb: str) -> dict[str, int]:
    """What the last action with this verb did."""
    return [effect for effect in result.effects if effect.action.verb.name == verb][-1].counts


def test_there_is_a_case_for_every_verb() -> None:
    """A new verb needs a case here, or a sentence that says why no world can do it."""
    doable = {name for name, verb in VERBS.items() if verb.worlds}
    assert set(CASES) == doable
    for world, verbs in WORLDS.items():
        assert {name for name, verb in VERBS.items() if world in verb.worlds} == verbs
    assert all(verb.lacking for verb in VERBS.values() if not verb.worlds)


@pytest.mark.parametrize("verb", CASES)
def test_has_its_effect(verb: str) -> None:
    """The effect is counted, and it can be seen in the trace."""
    timeline, seen = CASES[verb]
    result = simulate(scenario_for(verb, *timeline))
    assert any(effects(result, verb).values()), effects(result, verb)
    assert seen(result.trace), "counted, but nothing of it in the trace"


@pytest.mark.parametrize("verb", CASES)
def test_is_not_seen_without_it(verb: str) -> None:
    """What is looked for in the trace comes of the fault, not of the run."""
    timeline, seen = CASES[verb]
    others = [entry for entry in timeline if verb not in entry]
    assert not seen(simulate(scenario_for(verb, *others)).trace)


@pytest.mark.parametrize(
    "entry",
    [
        {"at": "6s", "crash": "group/1"},
        {"at": "6s", "crash_host": "group/1"},
        {"at": "6s", "pause": "group/1", "for": "1s"},
        {"at": "6s", "abandon": "group/1"},
        {"at": "6s", "expire": "group/1"},
        {"at": "6s", "disconnect": "group/1"},
        {"at": "6s", "partition": "group/1", "for": "1s"},
        {"at": "6s", "delay": "group/1", "by": "5ms", "for": "1s"},
        {"at": "6s", "skew": "group/1", "by": "5ms"},
        {"at": "6s", "leave": "group/1"},
        {"at": "6s", "unregister": "group/1"},
        {"at": "6s", "delete_znode": "/consumers/group/owners/views/0"},
        {"on": {"node": "group/1", "purpose": "claim"}, "lose": "reply"},
        {"on": {"node": "group/1", "purpose": "claim"}, "crash": "group/1"},
    ],
    ids=lambda entry: "-".join(entry),
)
def test_without_effect_the_run_is_unknown(entry: dict[str, Any]) -> None:
    """Whatever is aimed at a process that is gone already shows nothing; the run says so."""
    gone = {
        "on": {"node": "group/1", "purpose": "register", "when": "before"},
        "crash": "group/1",
    }
    result = simulate(scenario(gone, entry))
    assert result.effects[1].is_real
    assert not result.effects[2].is_real, result.effects[2].counts
    assert result.verdict is Verdict.UNKNOWN, result


@pytest.mark.parametrize("verb", [name for name, verb in VERBS.items() if not verb.worlds])
def test_what_no_world_can_do_is_refused(verb: str) -> None:
    """The reason is given, with the line."""
    with pytest.raises(ScenarioError, match=re.escape(VERBS[verb].lacking)):
        simulate(scenario({"at": "6s", verb: "broker/0"}))


STEPS = (("register", 1), ("read members", 2), ("claim", 2), ("release", 1), ("commit", 2))


@pytest.mark.parametrize(("purpose", "nth"), STEPS)
def test_a_step_is_hit_exactly_after_its_reply(purpose: str, nth: int) -> None:
    """A fault at a step strikes when that request has been answered, and at no other."""
    events = _struck_at({"node": "group/0", "purpose": purpose, "nth": nth})
    assert events[-1].kind == EventKind.RESPONSE
    assert events[-1].detail["purpose"] == purpose
    assert _asked(events, purpose) == nth


@pytest.mark.parametrize(("purpose", "nth"), STEPS)
def test_a_step_is_hit_exactly_before_it(purpose: str, nth: int) -> None:
    """A fault before a step strikes when everything up to it has been done, and no more."""
    events = _struck_at({"node": "group/0", "purpose": purpose, "nth": nth, "when": "before"})
    assert _asked(events, purpose) == nth - 1
    unhurt = [event for event in simulate(scenario(LEAVES)).trace if event.node == "group/0"]
    assert unhurt[: len(events)] == events
    following = next(event for event in unhurt[len(events) :] if event.kind == EventKind.REQUEST)
    assert following.detail["purpose"] == purpose


LEAVES = {"at": "9s", "leave": "group/1"}


def _struck_at(trigger: dict[str, Any]) -> list[Event]:
    """What group/0 did before it was killed at this step."""
    result = simulate(scenario({"on": trigger, "crash": "group/0"}, LEAVES))
    events = [event for event in result.trace if event.node == "group/0"]
    at = next(at for at, event in enumerate(events) if event.kind == EventKind.FAULT)
    return events[:at]


def _asked(events: list[Event], purpose: str) -> int:
    return sum(
        event.kind == EventKind.REQUEST and event.detail["purpose"] == purpose for event in events
    )


def test_shipped_scenarios_are_about_what_they_show() -> None:
    """Every fault of every shipped scenario has an effect, with the scenario's own variant."""
    for name in shipped():
        result = simulate(load(name))
        assert result.met, result
        assert all(effect.is_real for effect in result.effects), name
