"""Pictures and pages: what they say is what the trace says, and nothing is left out silently."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from PIL import Image

from tests import HOME
from watchkeeper import Result, reports, simulate
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.properties.ownership import SINGLE
from watchkeeper.model.properties.verdicts import Finding, Verdict, duration
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Header, Row, Trace, parse
from watchkeeper.reports import (
    write_all,
    write_connections_png,
    write_ownership_html,
    write_ownership_png,
    write_spacetime_html,
)
from watchkeeper.reports.connections.matrix import Matrix
from watchkeeper.reports.facts.connections import Connections, connection_sentences, connections
from watchkeeper.reports.facts.intervals import (
    Place,
    breaches,
    divided,
    fetched,
    gaps,
    hosted,
    zombie_windows,
)
from watchkeeper.reports.facts.names import natural
from watchkeeper.reports.facts.operations import attach_effects, firings, operations
from watchkeeper.reports.facts.selection import Weight, choose_rows, nearest_items
from watchkeeper.reports.facts.sessions import (
    paused,
    process_states,
    server_states,
    without_session,
)
from watchkeeper.reports.facts.spans import Span
from watchkeeper.reports.facts.timeline import entries
from watchkeeper.reports.figure import palette
from watchkeeper.reports.figure.axis_ticks import step_us, tick_text
from watchkeeper.reports.figure.labels import free_place, levels, wrapped
from watchkeeper.reports.figure.page import embedded
from watchkeeper.reports.figure.panel_drawing import ticks_us
from watchkeeper.reports.ownership.ownership import board, shortened_board
from watchkeeper.reports.spacetime.items import items

FILES = ["ownership.png", "ownership.html", "spacetime.html", "connections.png"]
PAGES = [name for name in FILES if name.endswith(".html")]


def event(
    t_us: int,
    node: str,
    kind: str,
    *,
    session: int = 0,
    group: str = "",
    place: str = "",
    zxid: int = 0,
    **detail: Any,
) -> Row:
    """A row of a trace; a place is topic/partition."""
    topic, _, partition = place.partition("/")
    return (t_us, node, kind, session, group, topic, partition, zxid, detail)


def trace_of(*rows: Row, scenario: str = "made up") -> Trace:
    """A trace of these events, and the end of the run."""
    end = event(max((row[0] for row in rows), default=0) + 10, "", EventKind.RUN_ENDED)
    return Trace(Header(scenario, "hardened", "sim", 7), [*rows, end])


def fetching(t_us: int, node: str, does: str, place: str = "clicks/0") -> Row:
    """A member begins or ceases to fetch."""
    return event(
        t_us, node, EventKind.FETCHING, group="g", place=place, does=does, at=-1, stream=0
    )


def hosting(t_us: int, node: str, does: str, place: str = "clicks/0") -> Row:
    """A broker begins or ceases to serve."""
    return event(t_us, node, EventKind.HOSTING, place=place, does=does)


CRASH = {
    "name": "reported",
    "about": "One of three consumers dies while the others hold their share.",
    "clusters": {"main": {"brokers": 3, "topics": {"clicks": {"partitions_per_broker": 2}}}},
    "groups": {
        "billing": {
            "consumers": 3,
            "streams": {"clicks": 1},
            "config": {"zookeeper.session.timeout.ms": 2000},
        }
    },
    "timeline": [{"at": "6s", "crash": "billing/1"}],
    "settle": "12s",
}


def single_ownership(result: Result) -> Finding:
    """What the judge says of single ownership."""
    return next(finding for finding in result.findings if finding.claim == SINGLE)


@pytest.fixture(scope="module")
def crash() -> Trace:
    """A run in which nothing is wrong but a crash."""
    return simulate(CRASH, variant="hardened", seed=0).trace


@pytest.fixture(scope="module")
def split() -> Trace:
    """A run in which two members fetch one partition at once, for a few milliseconds."""
    runs = (simulate(CRASH, variant="documented", seed=seed) for seed in range(30))
    return next(run for run in runs if single_ownership(run).verdict is Verdict.VIOLATED).trace


# --- who fetched what ------------------------------------------------------------------

PLACE = Place("g", "clicks", "0")
MEMBERS = ("a", "b", "c")


@some.composite
def ownership_traces(draw: some.DrawFn) -> Trace:
    """Members, sessions and brokers come and go in any order, often in one moment."""
    kinds = ("fetching begins", "fetching ceases", "hosting begins", "hosting ceases")
    kinds += ("session connected", "session expired", "pause starts", "pause ends", "starts")
    rows, t_us = [], 0
    for _ in range(draw(some.integers(0, 40))):
        t_us += draw(some.sampled_from((0, 0, 1, 5)))
        kind, _, does = draw(some.sampled_from(kinds)).rpartition(" ")
        member = draw(some.sampled_from(MEMBERS))
        if kind == EventKind.FETCHING:
            rows.append(fetching(t_us, member, does))
        elif kind == EventKind.HOSTING:
            rows.append(hosting(t_us, f"broker/{member}", does))
        elif kind == "session":
            number = draw(some.integers(1, 3))
            opened = event(t_us, member, EventKind.CONNECTED, session=number)
            ended = event(t_us, "zk", EventKind.SESSION_EXPIRED, session=number, by=member)
            rows.append(opened if does == "connected" else ended)
        elif kind == "pause":
            fault = EventKind.FAULT if does == "starts" else EventKind.FAULT_ENDED
            rows.append(event(t_us, member, fault, verb="pause", number=0, lasts=True))
        else:
            rows.append(event(t_us, member, EventKind.STARTED, group="g"))
    return trace_of(*rows)


class Seen:
    """What a reader of every event knows of one partition."""

    def __init__(self) -> None:
        self.fetchers: set[str] = set()
        self.hosts: set[str] = set()
        self.still: set[str] = set()
        self.started: set[str] = set()
        self.sessions: dict[str, int] = {}
        self.ended: set[tuple[str, int]] = set()

    def take(self, event: Event) -> None:
        """Take an event into account."""
        if event.kind in (EventKind.FETCHING, EventKind.HOSTING):
            side = self.fetchers if event.kind == EventKind.FETCHING else self.hosts
            (side.add if event.detail["does"] == "begins" else side.discard)(event.node)
        elif event.kind == EventKind.STARTED:
            self.fetchers.discard(event.node)
            self.still.discard(event.node)
            self.sessions.pop(event.node, None)
            self.started.add(event.node)
        elif event.kind == EventKind.CONNECTED:
            self.sessions[event.node] = event.session
        elif event.kind == EventKind.SESSION_EXPIRED:
            self.ended.add((event.detail["by"], event.session))
        elif event.kind == EventKind.FAULT and event.node in self.started:
            self.still.add(event.node)
        elif event.kind == EventKind.FAULT_ENDED:
            self.still.discard(event.node)

    def is_dead(self, name: str) -> bool:
        """Whether the session it was connected with has ended, or it has none since it began."""
        if name not in self.sessions:
            return name in self.started or any(by == name for by, _ in self.ended)
        return (name, self.sessions[name]) in self.ended

    @property
    def amiss(self) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Who has the partition and who of them is dead, where that is not as it should be."""
        dead = {name for name in self.fetchers if self.is_dead(name)}
        members = self.fetchers - (dead & self.still)
        is_amiss = len(members) > 1 or bool(members & dead)
        return [(tuple(sorted(members)), tuple(sorted(members & dead)))] if is_amiss else []


def seen_of(trace: Trace) -> Iterator[tuple[int, Seen]]:
    """What is known after each event but the last."""
    seen = Seen()
    for event in list(trace)[:-1]:
        seen.take(event)
        yield event.seq, seen


@given(ownership_traces())
def test_breaches_are_what_a_reader_of_every_event_sees(trace: Trace) -> None:
    """Between any two events, a breach names exactly those who fetch, and the zombies."""
    found = breaches(fetched(trace).get(PLACE, []), without_session(trace), paused(trace))

    for seq, seen in seen_of(trace):
        here = [entry for entry in found if entry.span.first_seq <= seq < entry.span.last_seq]
        assert [(breach.members, breach.zombies) for breach in here] == seen.amiss


@given(ownership_traces())
def test_what_stands_still_differs_from_what_runs(trace: Trace) -> None:
    """Between any two events, a member either runs and fetches or stands still."""
    running, held = divided(fetched(trace).get(PLACE, []), paused(trace))

    for seq, seen in seen_of(trace):
        for spans, expected in (
            (running, seen.fetchers - seen.still),
            (held, seen.fetchers & seen.still),
        ):
            here = [span.what for span in spans if span.first_seq <= seq < span.last_seq]
            assert sorted(here) == sorted(expected)


@given(ownership_traces())
def test_gaps_are_what_a_reader_of_every_event_sees(trace: Trace) -> None:
    """A partition that is served and fetched by no member shows a gap, after the first fetch."""
    spans = fetched(trace).get(PLACE, [])
    served = hosted(trace).get(Partition("clicks", "0"), [])
    last = len(trace) - 1
    first = spans[0].first_seq if spans else last
    found = gaps(spans, served, Span("", 0, trace.end_us, first, last))

    for seq, seen in seen_of(trace):
        if trace[seq].t_us < trace[seq + 1].t_us:
            is_gap = any(span.first_seq <= seq < span.last_seq for span in found)
            assert is_gap == (bool(seen.hosts) and not seen.fetchers and seq >= first)


def test_what_is_cut_off_by_the_end_lasts_until_then() -> None:
    """A member that still fetches when the trace ends has fetched until then."""
    trace = trace_of(fetching(5, "a", "begins"))

    assert fetched(trace) == {PLACE: [Span("a", 5, 15, 0, 1)]}


def test_topics_no_member_could_get_are_shown_as_well() -> None:
    """A topic that a group computed shares of has rows, though it was never fetched."""
    trace = trace_of(
        hosting(0, "broker/0", "begins"),
        hosting(0, "broker/0", "begins", "views/0"),
        fetching(1, "a", "begins"),
        event(2, "a", EventKind.ASSIGNED, group="g", plans={"views": ("x", "y")}),
    )

    rows = {row.place.topic: row for row in board(trace).rows}

    assert rows["views"].gaps == (Span("", 1, 12, 2, 4),)


def test_clusters_are_kept_apart() -> None:
    """A partition of the same name in another cluster is another partition."""
    trace = trace_of(
        hosting(0, "one:broker/0", "begins"),
        hosting(0, "two:broker/0", "begins"),
        event(1, "a", EventKind.CONNECTED, group="g", session=1, at="two:zookeeper/1", new=True),
        fetching(2, "a", "begins"),
        fetching(3, "a", "ceases"),
        hosting(5, "two:broker/0", "ceases"),
        fetching(7, "a", "begins"),
    )

    [row] = board(trace).rows

    assert [(gap.start_us, gap.end_us) for gap in row.gaps] == [(3, 5)]
    assert connections(trace).partitions == {}


@pytest.mark.parametrize("variant", ["documented", "kafka_07", "hardened"])
@pytest.mark.parametrize("seed", [0, 1])
def test_pictures_agree_with_the_judge(variant: str, seed: int) -> None:
    """Split ownership is drawn in just those runs that are judged so, from the same moment."""
    result = simulate(CRASH, variant=variant, seed=seed)
    finding = single_ownership(result)

    found = [
        breach for row in board(result.trace).rows for breach in row.breaches if breach.is_split
    ]

    assert bool(found) == (finding.verdict is Verdict.VIOLATED)
    if found:
        assert min(entry.span.start_us for entry in found) == finding.at_us


@pytest.mark.parametrize("variant", ["kafka_08", "hardened"])
@pytest.mark.parametrize("scenario", ["gc-pause-zombie", "session-expiry"])
def test_zombies_are_those_of_the_judge(scenario: str, variant: str) -> None:
    """A picture measures a zombie owner as the judge does: a paused process fetches nothing."""
    result = simulate(scenario, variant=variant, seed=0)
    stats = result.judgement.stats

    shown = board(result.trace)
    windows = zombie_windows(breach for row in shown.rows for breach in row.breaches)

    assert max(window.duration_us for window in windows) == stats["zombie_window_us"]
    assert sum(window.duration_us for window in windows) == stats["zombie_total_us"]
    assert f"ombie owner once, for {duration(stats['zombie_window_us'])}" in shown.summary


# --- sessions and the timeline ---------------------------------------------------------


def test_a_strip_tells_every_state_of_a_consumer() -> None:
    """Each state is shown while it lasts; what stands still is paused until it wakes."""
    trace = trace_of(
        event(1, "a", EventKind.STARTED, group="g"),
        event(2, "a", EventKind.CONNECTED, session=4, at="zk/1", new=True),
        event(3, "a", EventKind.SUSPENDED, session=4),
        event(4, "a", EventKind.CONNECTED, session=4, at="zk/2", new=False),
        event(5, "a", EventKind.FAULT, verb="pause", number=0, lasts=True, for_us=4),
        event(7, "zk/1", EventKind.SESSION_EXPIRED, session=4, by="a", did=[]),
        event(9, "a", EventKind.FAULT_ENDED, verb="pause", number=0),
        event(10, "a", EventKind.EXPIRED, session=4),
        event(11, "a", EventKind.CONNECTED, session=5, at="zk/2", new=True),
        event(12, "a", EventKind.ENDED, why="killed"),
        event(14, "zk/1", EventKind.SESSION_EXPIRED, session=5, by="a", did=[]),
    )

    states = [
        (process_state.what, process_state.start_us, process_state.end_us)
        for process_state in process_states(trace)["a"]
    ]

    assert states == [
        ("no session", 1, 2),
        ("connected", 2, 3),
        ("suspended", 3, 4),
        ("connected", 4, 5),
        ("paused", 5, 7),
        ("paused, session dead", 7, 9),
        ("session dead, process runs", 9, 10),
        ("no session", 10, 11),
        ("connected", 11, 12),
        ("process gone, session lives on", 12, 14),
        ("not running", 14, 24),
    ]


def test_the_end_of_another_pause_wakes_no_process() -> None:
    """A process that two faults pause is paused until the first of them ends."""
    trace = trace_of(
        event(1, "a", EventKind.STARTED, group="g"),
        event(2, "a", EventKind.FAULT, verb="pause", number=0, lasts=True, for_us=6),
        event(3, "a", EventKind.FAULT, verb="pause", number=1, lasts=True, for_us=2),
        event(5, "a", EventKind.FAULT_ENDED, verb="pause", number=1),
        event(8, "a", EventKind.FAULT_ENDED, verb="pause", number=0),
    )

    (span,) = paused(trace)["a"]

    assert (span.start_us, span.end_us) == (2, 8)


def test_a_leader_that_goes_down_is_down() -> None:
    """A server that loses its office by going down is shown as down, not as up."""
    trace = trace_of(
        event(0, "zk/1", EventKind.LEADER_ELECTED),
        event(5, "zk/1", EventKind.SERVER_STATE, state="down"),
        event(5, "zk/1", EventKind.LEADER_LOST),
        event(8, "zk/1", EventKind.SERVER_STATE, state="up"),
    )

    states = [
        (server_state.what, server_state.start_us)
        for server_state in server_states(trace)["zk/1"]
    ]

    assert states == [("leading", 0), ("down", 5), ("up", 8)]


def test_the_end_of_an_old_session_makes_no_zombie() -> None:
    """Only the end of the session that a process believes in makes it a zombie."""
    trace = trace_of(
        event(1, "a", EventKind.STARTED, group="g"),
        event(1, "a", EventKind.CONNECTED, session=4, at="zk/1", new=True),
        event(2, "a", EventKind.CONNECTED, session=5, at="zk/1", new=True),
        event(3, "zk/1", EventKind.SESSION_EXPIRED, session=4, by="a", did=[]),
    )

    assert [process_state.what for process_state in process_states(trace)["a"]] == [
        "no session",
        "connected",
    ]


def test_faults_are_bands_or_moments() -> None:
    """What lasts goes from its beginning to its end, and what takes no time is a moment."""
    trace = trace_of(
        event(1, "a", EventKind.FAULT, verb="crash", number=0, lasts=False, for_us=0),
        event(
            2, "zookeeper", EventKind.FAULT, verb="quorum_loss", number=1, lasts=True, for_us=3
        ),
        event(5, "zookeeper", EventKind.FAULT_ENDED, verb="quorum_loss", number=1),
        event(6, "b", EventKind.FAULT, verb="pause", number=2, lasts=True, for_us=100),
    )

    found = [
        (entry.label, entry.lasts, entry.span.start_us, entry.span.end_us)
        for entry in entries(trace)
    ]

    assert found == [
        ("crash a", False, 1, 1),
        ("quorum loss zookeeper", True, 2, 5),
        ("pause b", True, 6, 16),
    ]


# --- operations and watches ------------------------------------------------------------


def asks(t_us: int, node: str, op: str, purpose: str, path: str = "/p") -> Row:
    """A program asks."""
    return event(t_us, node, EventKind.REQUEST, op=op, path=path, purpose=purpose)


def answers(
    t_us: int, node: str, op: str, purpose: str, answer: Any = None, zxid: int = 0
) -> Row:
    """The answer has come."""
    return event(t_us, node, EventKind.RESPONSE, zxid=zxid, op=op, answer=answer, purpose=purpose)


def applied(t_us: int, by: str, op: str, purpose: str, zxid: int, path: str = "/p") -> Row:
    """A write took effect."""
    detail = {"op": op, "purpose": purpose, "path": path, "by": by, "did": []}
    return event(t_us, "zk/1", EventKind.APPLIED, zxid=zxid, **detail)


def test_answers_find_their_operations() -> None:
    """An answer belongs to the operation of its own process; what never came stays open."""
    trace = trace_of(
        event(0, "a", EventKind.CONNECTED, session=1, at="zk/1", new=True),
        asks(1, "a", "create", "claim"),
        asks(2, "b", "create", "claim"),
        answers(3, "b", "create", "claim", {"error": "NodeExists"}),
        answers(4, "a", "create", "claim", "/p"),
        asks(5, "a", "set", "commit"),
        event(6, "a", EventKind.SUSPENDED, session=1),
        answers(6, "a", "set", "commit", {"error": "ConnectionLoss"}),
        asks(7, "a", "get", "read offsets"),
        event(8, "a", EventKind.ENDED, why="killed"),
        answers(9, "a", "get", "read offsets", None),
    )

    found = [
        (
            operation.ask.t_us,
            operation.server,
            operation.outcome,
            operation.answer and operation.answer.t_us,
        )
        for operation in operations(trace)
    ]

    assert found == [
        (1, "zk/1", "ok", 4),
        (2, "", "error", 3),
        (5, "zk/1", "lost", 6),
        (7, "", "lost", None),
    ]


def test_writes_are_found_where_they_took_effect() -> None:
    """By its zxid, or, for a lost one that landed late, as the latest that fits."""
    trace = trace_of(
        event(0, "a", EventKind.CONNECTED, session=1, at="zk/1", new=True),
        asks(1, "a", "create", "claim"),
        answers(2, "a", "create", "claim", {"error": "ConnectionLoss"}),
        asks(3, "a", "create", "claim"),
        applied(4, "a", "create", "claim", zxid=8),
        applied(5, "a", "create", "claim", zxid=9),
        answers(6, "a", "create", "claim", "/p", zxid=8),
        applied(7, "stranger", "create", "claim", zxid=10),
    )
    requests = operations(trace)

    left_over = attach_effects(requests, trace.of_kind(EventKind.APPLIED))

    assert [[effect.zxid for effect in each.effects] for each in requests] == [[9], [8]]
    assert [event.zxid for event in left_over] == [10]


def test_parts_of_a_batch_are_its_effects() -> None:
    """Each write of a pipelined batch belongs to the batch."""
    parts = [["create", "/a"], ["create", "/b"]]
    trace = trace_of(
        event(1, "a", EventKind.REQUEST, op="pipelined", parts=parts, number=2, purpose="commit"),
        applied(2, "a", "create", "commit", zxid=1, path="/a"),
        applied(3, "a", "create", "commit", zxid=2, path="/b"),
        answers(4, "a", "pipelined", "commit", [None, None]),
    )
    [request] = operations(trace)

    left_over = attach_effects([request], trace.of_kind(EventKind.APPLIED))

    assert len(request.effects) == 2
    assert left_over == []


def test_a_firing_is_heard_or_it_is_not() -> None:
    """A firing goes with the note that came of it; what a broken connection took is unheard."""
    what = {"what": "deleted", "path": "/owners/clicks/1"}
    trace = trace_of(
        event(1, "a", EventKind.WATCH_FIRED, at="zk/1", **what),
        event(2, "a", EventKind.NOTIFIED, **what),
        event(3, "a", EventKind.WATCH_FIRED, at="zk/1", **what),
        event(4, "a", EventKind.SUSPENDED),
        event(5, "a", EventKind.NOTIFIED, **what),
    )

    assert [len(firing.heard) for firing in firings(trace)] == [1, 0]


def test_a_storm_of_firings_is_drawn_as_one() -> None:
    """What one server tells one process of one place, closely together, is one firing."""
    many = [{"what": "deleted", "path": f"/owners/clicks/{at}"} for at in range(50)]
    trace = trace_of(
        *(
            event(at * 20, "a", EventKind.WATCH_FIRED, at="zk/1", **details)
            for at, details in enumerate(many)
        ),
        *(
            event(2000 + at, "a", EventKind.NOTIFIED, **details)
            for at, details in enumerate(many)
        ),
    )

    [firing] = firings(trace)

    assert (len(firing.fired), len(firing.heard)) == (50, 50)


NOT_DRAWN = {
    EventKind.WAITING,
    EventKind.WOKEN,
    EventKind.FETCHED,
    EventKind.HOSTING,
    EventKind.TOPIC_LOAD,
    EventKind.HOST_METRICS,
    EventKind.RUN_ENDED,
}
"""Messages delivered, programs at rest and disks would hide everything else."""


@pytest.mark.parametrize(
    "kind", sorted(set(EventKind) - NOT_DRAWN - {EventKind.RESPONSE, EventKind.NOTIFIED})
)
def test_every_kind_of_event_is_drawn(kind: str) -> None:
    """A space-time diagram shows all that happens; what is a pair shows with its first half."""
    detail = {"does": "begins", "verb": "crash", "number": 0, "what": "deleted", "path": "/p"}
    begun = event(0, "a", EventKind.REBALANCE_STARTED, group="g", attempt=1)
    trace = trace_of(begun, event(1, "a", kind, group="g", place="clicks/0", **detail))

    assert 1 in {event.seq for item in items(trace) for event in item.events}


def test_nothing_of_a_run_is_lost(split: Trace) -> None:
    """Every event of a run is in its space-time diagram, but those it means to leave out."""
    drawn = {event.seq for item in items(split) for event in item.events}

    assert {event.kind for event in split if event.seq not in drawn} <= NOT_DRAWN


# --- connections -----------------------------------------------------------------------


def test_connections_are_counted_by_topic(crash: Trace) -> None:
    """Two members share three brokers over four connections once the third is gone."""
    found = connections(crash)

    assert found.consumers == ["billing/0", "billing/2"]
    assert sum(len(partition) for partition in found.partitions.values()) == 6
    assert connection_sentences(found) == [
        "billing · clicks: 4 connections between 2 consumers and 3 brokers; "
        "the fewest possible are 3."
    ]


def test_replicas_are_fetched_from_the_leader() -> None:
    """Where two brokers serve a partition, the connection goes to the one that leads it."""
    state = '{"controller_epoch":1,"isr":[1],"leader":1,"leader_epoch":0,"version":1}'
    trace = trace_of(
        hosting(0, "broker/0", "begins"),
        hosting(0, "broker/1", "begins"),
        event(
            1,
            "zk",
            EventKind.APPLIED,
            by="broker/0",
            did=[["created", "/brokers/ids/0", 1, "{}"]],
        ),
        event(
            2,
            "zk",
            EventKind.APPLIED,
            by="broker/1",
            did=[["created", "/brokers/ids/1", 2, "{}"]],
        ),
        event(
            3,
            "zk",
            EventKind.APPLIED,
            by="administrator",
            did=[["created", "/brokers/topics/clicks/partitions/0/state", 0, state]],
        ),
        fetching(4, "a", "begins"),
    )

    assert list(connections(trace).partitions) == [("a", "broker/1")]


def test_many_members_are_in_a_matrix(tmp_path: Path) -> None:
    """Beyond eight of them lines cannot be followed."""
    rows = [hosting(0, f"broker/{at}", "begins", f"clicks/{at}") for at in range(9)]
    rows += [fetching(1, "g/0", "begins", f"clicks/{at}") for at in range(2)]
    found = connections(trace_of(*rows))
    matrix = Matrix(found, found.consumers, found.brokers, {"g/0": "#2f66b3"})

    assert [matrix.number("g/0", broker) for broker in found.brokers] == [1, 1, *[0] * 7]
    assert matrix.is_level
    assert not replace(matrix, brokers=[f"broker/{at}" for at in range(40)]).is_level
    many, few = tmp_path / "many", tmp_path / "few"
    for folder, drawn in ((many, rows), (few, rows[1:])):
        folder.mkdir()
        write_connections_png(trace_of(*drawn), folder)
    heights = [Image.open(one / "connections.png").height for one in (many, few)]
    expected = 160 * (0.95 + 0.2 * len(heading_lines(found)) + matrix.height)
    assert abs(heights[0] - expected) <= 1
    assert heights[0] != heights[1]


def heading_lines(found: Connections) -> list[str]:
    """The sentences above the picture of connections: that on the moment, and on each topic."""
    return ["moment", *connection_sentences(found)]


# --- what is left out ------------------------------------------------------------------


def test_the_most_urgent_rows_are_kept_in_their_order() -> None:
    """Rows are chosen by urgency, and shown in the order they had."""
    weights = [Weight((urgency,), 1) for urgency in (0, 5, 0, 9)]

    assert choose_rows(weights, most_rows=3, most_marks=10) == [0, 1, 3]
    assert choose_rows(weights, most_rows=4, most_marks=2) == [1, 3]


def test_rows_that_are_not_drawn_are_announced(split: Trace) -> None:
    """A picture with fewer partitions says how many are missing, and what they would show."""
    complete = board(split)

    shown = shortened_board(complete, most_rows=4, most_marks=1000, most_strips=2)

    assert len(shown.rows) == 4
    assert "4 of 6 partitions are drawn" in shown.banner
    assert "2 of 3 consumers have a strip" in shown.banner
    assert shown.summary == complete.summary
    assert not shortened_board(complete, most_rows=6, most_marks=1000, most_strips=3).banner


def test_items_that_are_not_drawn_are_announced(crash: Trace, tmp_path: Path) -> None:
    """A page with fewer items than there are says how many of which sort are missing."""
    everything = items(crash)

    write_spacetime_html(crash, tmp_path, most=100)
    page = (tmp_path / "spacetime.html").read_text()

    assert f"100 of {len(everything)} items are drawn" in page
    assert re.search(r"Not drawn, farther away: [a-z ]+\d+, .*operations \d+", page)
    assert len(data_of(page)["items"]["from"]) == 100


def test_a_page_may_begin_later(crash: Trace, tmp_path: Path) -> None:
    """A reader of a later part of a run sees what came before it."""
    write_spacetime_html(crash, tmp_path, from_us=6_000_000)
    page = (tmp_path / "spacetime.html").read_text()

    assert "before 6.000 s are not drawn" in page
    assert data_of(page)["items"]["from"][0] == 6_000_000


def test_nothing_is_announced_where_everything_is_drawn() -> None:
    """There is no banner without a reason."""
    assert nearest_items([1, 2], 2, moments_us=(), noun=str, at_us=int) == ([1, 2], "")


def test_the_items_around_moments_are_drawn() -> None:
    """Those nearest to any of the moments, in their order, and how far they reach."""
    numbers = [0, 10, 48, 50, 53, 70, 99, 101]

    kept, cut = nearest_items(numbers, 5, moments_us=(50, 100), noun=lambda _: "x", at_us=int)

    assert kept == [48, 50, 53, 99, 101]
    assert cut == (
        "5 of 8 items are drawn: those within 3 us of a violation or an entry of the timeline. "
        "Not drawn, farther away: x 3."
    )
    early, sentence = nearest_items(numbers, 2, moments_us=(), noun=lambda _: "x", at_us=int)
    assert early == [0, 10]
    assert "of the begin" in sentence


# --- pages -----------------------------------------------------------------------------

HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)">&amp;\''


def data_of(page: str) -> Any:
    """What a page's script reads."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert found is not None
    return json.loads(found[1])


def hostile_trace() -> Trace:
    """A run in which every name is out to break a page."""
    name = f"g/{HOSTILE}"
    return trace_of(
        event(0, name, EventKind.STARTED, group=HOSTILE, variant=HOSTILE),
        event(0, f"broker/{HOSTILE}", EventKind.HOSTING, place=f"{HOSTILE[2:]}/0", does="begins"),
        event(1, name, EventKind.CONNECTED, session=1, at=HOSTILE, new=True),
        asks(2, name, "get", HOSTILE, HOSTILE),
        answers(3, name, "get", HOSTILE, {"data": HOSTILE}),
        event(
            4,
            name,
            EventKind.FETCHING,
            group=HOSTILE,
            place="clicks/<b>",
            does="begins",
            stream=0,
        ),
        event(5, HOSTILE, EventKind.FAULT, verb=HOSTILE, number=0, lasts=False, for_us=0),
        event(6, name, HOSTILE, why=HOSTILE),
        scenario=HOSTILE,
    )


@pytest.mark.parametrize("page", PAGES)
def test_pages_escape_whatever_comes_from_a_trace(page: str, tmp_path: Path) -> None:
    """No name can become markup: a page has the scripts it came with and no others."""
    write_all(hostile_trace(), tmp_path)
    text = (tmp_path / page).read_text()

    assert text.count("<script") == 2
    assert text.count("</script") == 2
    assert "<img" not in text
    assert f"g/{HOSTILE}" in json.dumps(data_of(text), ensure_ascii=False).replace('\\"', '"')


@given(some.recursive(some.text(), some.lists))
def test_embedded_data_comes_back(value: Any) -> None:
    """Data in a page is read back as it was, and holds nothing that ends its element."""
    text = embedded(value)

    assert json.loads(text) == value
    assert not set("<>&") & set(text)


@pytest.mark.parametrize("page", PAGES)
def test_pages_need_nothing_but_themselves(page: str, crash: Trace, tmp_path: Path) -> None:
    """A page names no other host, loads no file, and forbids itself to."""
    write_all(crash, tmp_path)
    text = (tmp_path / page).read_text()

    assert not re.findall(r"(?i)https?:|//[a-z0-9-]+\.[a-z]|@import|url\((?!#)", text)
    assert not re.findall(r"(?i)<(?:link|iframe|img|object|script[^>]* src)", text)
    assert "default-src 'none'" in text


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("page", PAGES)
def test_scripts_can_be_parsed(page: str, crash: Trace, tmp_path: Path) -> None:
    """The script of a page is JavaScript."""
    write_all(crash, tmp_path)
    script = (tmp_path / page).read_text().rpartition("<script>")[2].partition("</script>")[0]
    (tmp_path / "page.js").write_text(script)

    check = ["node", "--check", str(tmp_path / "page.js")]
    done = subprocess.run(check, capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")


BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)


@pytest.mark.skipif(BROWSER is None, reason="there is no browser")
@pytest.mark.parametrize(("page", "marks"), [("ownership.html", 4), ("spacetime.html", 6)])
def test_a_browser_draws_hostile_names_as_text(page: str, marks: int, tmp_path: Path) -> None:
    """In a browser the page draws its marks, and nothing of the trace becomes an element."""
    write_all(hostile_trace(), tmp_path)
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command = [BROWSER or "", *flags, f"--user-data-dir={tmp_path}/browser", "--dump-dom"]

    done = subprocess.run(
        [*command, (tmp_path / page).as_uri()], capture_output=True, text=True, timeout=120
    )

    assert done.stdout.count("data-tip") >= marks
    assert "<img" not in done.stdout
    assert done.stdout.count("<script") == 2


@pytest.mark.skipif(BROWSER is None, reason="there is no browser")
def test_a_browser_that_darkens_pages_leaves_these_alone(crash: Trace, tmp_path: Path) -> None:
    """The colours have meanings: a page shows its own dark colours, and no inverted ones."""
    write_ownership_html(crash, tmp_path)
    image = tmp_path / "page.png"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    dark = ["--force-dark-mode", "--enable-features=WebContentsForceDark"]
    where = [f"--user-data-dir={tmp_path}/browser", f"--screenshot={image}"]

    subprocess.run(
        [BROWSER or "", *flags, *dark, *where, (tmp_path / "ownership.html").as_uri()],
        capture_output=True,
        check=True,
        timeout=120,
    )

    assert Image.open(image).convert("RGB").getpixel((0, 0)) == (18, 23, 30)


# --- images ----------------------------------------------------------------------------


def colours_in(path: Path) -> set[str]:
    """The colours of a picture above its legend, of those that cover some of it."""
    image = Image.open(BytesIO(path.read_bytes())).convert("RGB")
    drawn = image.crop((0, 0, image.width, image.height - LEGEND_PIXELS))
    found = drawn.getcolors(1 << 24) or []
    return {f"#{rgb[0]:02x}{rgb[1]:02x}{rgb[2]:02x}" for number, rgb in found if number > 40}


LEGEND_PIXELS = 64


def test_images_show_members_in_one_colour(crash: Trace, tmp_path: Path) -> None:
    """Each member has the same colour in both images, and no overlap is shown without one."""
    write_ownership_png(crash, tmp_path)
    write_connections_png(crash, tmp_path)
    colours = board(crash).colours

    assert set(colours.values()) <= colours_in(tmp_path / "ownership.png")
    assert {colours["billing/0"], colours["billing/2"]} <= colours_in(
        tmp_path / "connections.png"
    )
    assert palette.BREACH not in colours_in(tmp_path / "ownership.png")


def test_an_overlap_too_short_to_be_seen_is_seen(tmp_path: Path) -> None:
    """A millisecond of split ownership in a run of a minute is red in the picture."""
    rows = [fetching(0, "a", "begins"), fetching(1_000_000, "b", "begins")]
    rows += [fetching(1_001_000, "a", "ceases"), event(60_000_000, "b", EventKind.WAITING)]

    write_ownership_png(trace_of(*rows), tmp_path)

    assert palette.BREACH in colours_in(tmp_path / "ownership.png")


@pytest.mark.parametrize("rows", [[], [event(0, "broker/0", EventKind.STARTED)]])
def test_empty_runs_have_pictures_too(rows: list[Row], tmp_path: Path) -> None:
    """A run without consumers, or a trace without events, is drawn and not a failure."""
    trace = trace_of(*rows) if rows else Trace(Header("empty", "hardened", "sim", 0), [])

    assert write_all(trace, tmp_path) == FILES
    assert "No member fetched anything." in (tmp_path / "ownership.html").read_text()


# --- all together ----------------------------------------------------------------------


def test_write_all_names_what_it_writes(crash: Trace, tmp_path: Path) -> None:
    """The door writes four whole files and leaves nothing else behind."""
    written = write_all(crash, tmp_path / "new" / "folder")

    assert written == FILES
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == sorted(FILES)


def test_a_trace_read_back_gives_the_same_reports(split: Trace, tmp_path: Path) -> None:
    """The same trace gives the same bytes, whether it was just made or read from a file."""
    again = parse(split.lines(), name="trace.jsonl")

    write_all(split, tmp_path / "one")
    write_all(again, tmp_path / "other")

    for name in FILES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


WRITE_PAGES = """
import sys
from pathlib import Path
from watchkeeper.model.trace.trace import parse
from watchkeeper.reports import write_ownership_html, write_spacetime_html
trace = parse(Path(sys.argv[1]).open("rb"), name="trace")
write_ownership_html(trace, Path(sys.argv[2]))
write_spacetime_html(trace, Path(sys.argv[2]))
assert not {"matplotlib", "networkx", "simpy"} & set(sys.modules), "too much is imported"
"""


def test_pages_do_not_depend_on_hashes_nor_on_matplotlib(split: Trace, tmp_path: Path) -> None:
    """Another hash seed gives the same pages, and pages need no library for images."""
    (tmp_path / "trace").write_bytes(b"".join(split.lines()))
    home = HOME / "src"
    for seed in ("1", "2"):
        (tmp_path / seed).mkdir()
        command = [sys.executable, "-c", WRITE_PAGES, tmp_path / "trace", tmp_path / seed]
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(home)}
        subprocess.run(command, check=True, env=environment, timeout=60)

    for page in PAGES:
        assert (tmp_path / "1" / page).read_bytes() == (tmp_path / "2" / page).read_bytes()


def test_reports_import_only_traces_and_counterexamples() -> None:
    """Of the project the package imports values of the model alone, and no plan."""
    allowed = (
        "actor.effects",
        "actor.errors",
        "counterexample.browsed_state",
        "counterexample.counterexample",
        "counterexample.replicas",
        "counterexample.step_kind",
        "delivery.",
        "nemesis.world.OPERATOR",
        "offset_manager.settings.OFFSETS_TOPIC",
        "properties.ownership",
        "properties.verdicts",
        "registry.paths",
        "registry.payloads",
        "sweep_summary",
        "trace.assignments",
        "trace.kinds",
        "trace.text",
        "trace.trace",
    )
    for path in Path(reports.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                top, _, inner = node.module.partition(".")
                package, _, rest = inner.partition(".")
                assert top != "watchkeeper" or package in ("", "model", "reports"), path
                names = [f"{rest}.{alias.name}" for alias in node.names]
                assert package != "model" or all(name.startswith(allowed) for name in names), path


# --- colours and words -----------------------------------------------------------------

BLINDNESS = {
    "none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
"""How linear light is seen by those who lack one kind of cone (Machado and others, 2009)."""
SRGB_TO_XYZ = (
    (0.4339, 0.3762, 0.1899),
    (0.2127, 0.7152, 0.0722),
    (0.0178, 0.1095, 0.8730),
)
"""Each row divided by the white point."""


def times(matrix: Any, vector: Any) -> list[float]:
    """A matrix times a vector."""
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def lab(colour: str, blindness: Any) -> tuple[float, float, float]:
    """A colour in CIELAB, as it is seen."""
    shares = [channel / 255 for channel in palette.channels(colour)]
    light = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    seen = [min(max(channel, 0), 1) for channel in times(blindness, light)]
    x, y, z = (
        value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116
        for value in times(SRGB_TO_XYZ, seen)
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("blindness", BLINDNESS)
def test_colours_differ_for_every_eye(blindness: str) -> None:
    """The hues of members, and the red of overlaps, differ clearly for every kind of eye."""
    seen = [lab(colour, BLINDNESS[blindness]) for colour in (*palette.HUES, palette.BREACH)]

    for colour, second in combinations(seen, 2):
        assert sum((a - b) ** 2 for a, b in zip(colour, second, strict=True)) ** 0.5 > 14


def test_many_members_have_many_colours() -> None:
    """The first three times as many members as there are hues all differ in colour."""
    names = [f"billing/{at}" for at in range(3 * len(palette.HUES))]

    colours = palette.consumer_colours(reversed(names))

    assert len(set(colours.values())) == len(names)
    assert [colours[name] for name in names[: len(palette.HUES)]] == list(palette.HUES)


def test_names_are_sorted_as_people_sort_them() -> None:
    """Two comes before ten, whatever stands around the numbers."""
    assert sorted(["b/10", "b/2", "a", "2-10", "2-9"], key=natural) == [
        "2-9",
        "2-10",
        "a",
        "b/2",
        "b/10",
    ]


@given(some.lists(some.tuples(some.floats(0, 100), some.floats(1, 30)), max_size=12))
def test_flags_do_not_cover_one_another(flags: list[tuple[float, float]]) -> None:
    """No pole goes through a cloth: a flag flies above all whose poles stand under it."""
    places = sorted((at, at + wide) for at, wide in flags)
    found = levels(places, 5)

    for (pair, following), (level, higher) in zip(
        combinations(places, 2), combinations(found, 2), strict=True
    ):
        if level is not None and higher is not None and following[0] < pair[1]:
            assert level > higher


def test_names_keep_clear_of_what_is_taken() -> None:
    """A name goes to the first place with room, or nowhere."""
    assert free_place(0, 10, 3, [(2, 2), (4, 5)]) == 5
    assert free_place(0, 10, 2, [(2, 2)]) == 0
    assert free_place(0, 10, 6, [(5, 5)]) is None


def test_lines_break_between_words() -> None:
    """No line is too wide if its words allow, and a number stays with its unit."""
    assert wrapped("for 2.03 s on clicks", 10, len) == ["for 2.03\u00a0s", "on clicks"]


@given(some.integers(0, 10**9), some.integers(0, 10**9), some.integers(-1, 40))
def test_the_moments_on_an_axis(begins: int, lasts: int, most: int) -> None:
    """They are in the part that is drawn, few, and evenly apart by a round step."""
    found = ticks_us(begins, begins + lasts, most)

    assert len(found) <= max(most, 1) + 1
    assert all(begins <= at <= begins + lasts for at in found)
    apart = {after - before for before, after in pairwise(found)}
    assert len(apart) <= 1
    for step in apart:
        assert str(step).rstrip("0") in ("1", "2", "5")
        assert all(at % step == 0 for at in found)


def test_ticks_are_round_and_few() -> None:
    """An axis has round numbers, no more of them than it has room for."""
    assert step_us(18_000_000, 20) == 1_000_000
    assert [tick_text(at) for at in (0, 500_000, 3_000_000)] == ["0", "0.5", "3"]


def test_single_writers_are_at_the_door(crash: Trace, tmp_path: Path) -> None:
    """Each writer can be had by itself, and an unknown name is refused."""
    assert write_ownership_html(crash, tmp_path) == "ownership.html"
    with pytest.raises(AttributeError, match="no attribute 'write_poem'"):
        reports.write_poem  # noqa: B018
