"""What a hardened member reads again, and what it knows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from immutables import Map

from watchkeeper import Result, simulate
from watchkeeper.model.actor.events import Fired, WatchEventType
from watchkeeper.model.actor.retry import Direct
from watchkeeper.model.group.consumer import SHIPPED
from watchkeeper.model.group.state import Consumer, ConsumerState
from watchkeeper.model.group.variants import HARDENED
from watchkeeper.model.properties.progress import READS
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event

MEMBERS = 6
JOINS_US = 12_000_000


def group(consumers: Any, timeline: list[dict[str, Any]], layout: str = "0.7") -> dict[str, Any]:
    return {
        "name": "reads",
        "about": "a group reads its registry",
        "clusters": {
            "main": {
                "layout": layout,
                "brokers": 2,
                "topics": {"clicks": {"partitions_per_broker": 4}},
            }
        },
        "groups": {
            "group": {
                "consumers": consumers,
                "streams": {"clicks": 1},
                "config": {"zookeeper.session.timeout.ms": 6000},
            }
        },
        "timeline": timeline,
        "settle": "12s",
    }


def reads_of(event: Event) -> list[tuple[str, str]]:
    """The reads of a request: operation and path."""
    detail = event.detail
    if detail["op"] == "pipelined":
        return [(part[0], part[1]) for part in detail["parts"] if part[0] in READS]
    return [(detail["op"], event.path)] if detail["op"] in READS else []


def reads_since(result: Result, at_us: int) -> dict[str, Counter[str]]:
    """Node -> what it has read since a moment, but for offsets and claims in its way."""
    found: dict[str, Counter[str]] = {}
    for event in result.trace.of_kind(EventKind.REQUEST):
        if event.t_us >= at_us and event.group:
            counts = found.setdefault(event.node, Counter())
            counts.update(
                path
                for _, path in reads_of(event)
                if paths.parse_owner(path) is None and paths.parse_offset(path) is None
            )
    return found


@pytest.mark.parametrize("layout", ["0.7", "0.8"])
def test_a_member_that_joins_costs_the_others_two_reads(layout: str) -> None:
    """The names, which have changed, and the one registration that is new; and the claims."""
    consumers = [{} for _ in range(MEMBERS)] + [{"starts": "never"}]
    join = {"at": f"{JOINS_US}us", "start": f"group/{MEMBERS}"}
    result = simulate(group(consumers, [join], layout))
    members, owners = paths.members("group"), paths.owners("group")

    found = reads_since(result, JOINS_US)
    newcomer = found.pop(f"group/{MEMBERS}")

    assert result.verdict is Verdict.HOLDS
    assert len([path for path in newcomer if paths.parse_member(path)]) == MEMBERS + 1
    assert len(found) == MEMBERS
    for counts in found.values():
        registrations = [path for path in counts if paths.parse_member(path)]
        assert counts.keys() == {members, owners, *registrations}
        assert (counts[members], len(registrations), counts[registrations[0]]) == (1, 1, 1)


def test_a_registration_that_is_replaced_between_two_reads_is_read_again() -> None:
    """A paused member finds the same names as before, and one of them wants more."""
    stranger = paths.member("group", "stranger")
    timeline = [
        {"at": "6s", "write_znode": stranger, "data": '{"clicks": 1}', "for": "4s"},
        {"at": "9.5s", "pause": "group/0", "for": "2s"},
        {"at": "10.5s", "write_znode": stranger, "data": '{"clicks": 3}', "for": "6s"},
    ]

    result = simulate(group(2, timeline))

    plans = {
        event.node: event.detail["plans"]
        for event in result.trace.of_kind(EventKind.ASSIGNED)
        if event.t_us < 16_000_000
    }
    reads = reads_since(result, 11_500_000)["group/0"]
    assert (reads[paths.members("group")], reads[stranger]) == (2, 1)
    assert plans["group/0"] == plans["group/1"]
    assert result.verdict is Verdict.HOLDS


# --- what an event makes of what is known -----------------------------------------------


ME = Consumer("group/0", "group", "host", None, "0.7", HARDENED, None)  # type: ignore[arg-type]
IDS, OTHER = paths.members("group"), paths.member("group", "other")
KNOWN: Map[str, Any] = Map({IDS: ("me", "other"), OTHER: b"{}"})
STATE = ConsumerState(consumer_id="me", has_session=True, is_registered=True, known=KNOWN)


def taken(state: ConsumerState, what: WatchEventType, path: str) -> ConsumerState:
    """The state after a fired watch."""
    turn: Any = SHIPPED.take(ME, state, Direct(), Fired(what, path))
    with pytest.raises(StopIteration) as ended:
        turn.send(None)
    after: ConsumerState = ended.value.value
    return after


@pytest.mark.parametrize("what", [WatchEventType.CHANGED, WatchEventType.DELETED])
def test_a_registration_whose_watch_has_fired_is_not_known(what: WatchEventType) -> None:
    """A fence is no reason to rebalance; a member that goes changes the list as well."""
    after = taken(STATE, what, OTHER)

    assert (after.known, after.is_dirty) == (Map({IDS: ("me", "other")}), False)


def test_names_whose_watch_has_fired_are_not_known() -> None:
    after = taken(STATE, WatchEventType.CHILDREN, IDS)

    assert (after.known, after.is_dirty) == (Map({OTHER: b"{}"}), True)


def test_a_member_that_waits_for_its_id_looks_again() -> None:
    """The watch on a registration in its way has fired."""
    waiting = ConsumerState(consumer_id="other", has_session=True, is_blocked=True)

    after = taken(waiting, WatchEventType.DELETED, OTHER)

    assert (after.is_blocked, after.is_dirty) == (False, True)
