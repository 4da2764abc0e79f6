"""Live runs with messages: brokers store them, are killed, and lose unflushed ones."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.real.world.test_runs import SHORT_S
from tests.support.live_zookeeper import (
    descendants,
    is_there,
    lived,
    lived_to_a_verdict,
    skip_without_zookeeper,
    until,
)
from tests.support.member_worlds import MEMBER_WORLDS, ran
from tests.support.messages.mutant_brokers import FlushesNothing, LogsThatShowTooMuch
from tests.support.messages.mutant_stores import CommitsPlacesFirst
from watchkeeper.api.result import plain_report
from watchkeeper.api.simulate import judged, scenario_of
from watchkeeper.model.delivery.ledger import MessageRange
from watchkeeper.model.delivery.message_id import merged, payload_of
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import encode
from watchkeeper.model.log.log_manager import LogManager
from watchkeeper.model.log.settings import log_settings
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace
from watchkeeper.real.member.unreported_appends import reported_in, trace_files_of, unreported_in
from watchkeeper.real.results.of_member import DATABASE, SEGMENTS, STORES
from watchkeeper.real.results.segment_file import decoded
from watchkeeper.real.results.sqlite import SqliteResults
from watchkeeper.real.storage.file_storage import FileStorage
from watchkeeper.real.storage.metrics import MeteredStorage
from watchkeeper.real.trace.writer import TraceWriter
from watchkeeper.real.world.hosts import MessageHosts
from watchkeeper.real.world.jobs import Jobs
from watchkeeper.real.world.run import live
from watchkeeper.real.world.world import World
from watchkeeper.reports.messages.message_path import losses, message_path

Fields = dict[str, Any]
Identity = tuple[str, int]
QUICK = {"zookeeper.session.timeout.ms": 1000 * SHORT_S, "auto.commit.interval.ms": 500}
FETCHING = {
    "refresh.leader.backoff.ms": 100,
    "rebalance.backoff.ms": 200,
    "auto.offset.reset": "smallest",
}
PROMISE = {"semantics": "at least once", "most_lost": 700, "most_repeated": 0}
SETTLE = "10s"
"""A busy machine needs time to restart a killed process."""


def crashing(**more: Any) -> Fields:
    """The host of a broker is lost; one group reads from the first message, one starts late.

    By then it has stored 2,400 messages, of which the last 200 or so are not flushed: the clock
    flushes only after 9 s, and 9 s after the restart. Until the second load begins, its log is
    shorter than the position of the early group.
    """
    group = {"consumers": 1, "streams": {"clicks": 1}, "config": {**QUICK, **FETCHING}}
    return {
        "name": "crash",
        "about": "the host of a broker is lost",
        "clusters": {
            "main": {
                "zookeeper": {"servers": 1, "tick": "200ms"},
                "session_timeout": f"{SHORT_S}s",
                "brokers": 1,
                "topics": {"clicks": {"partitions_per_broker": 1}},
                "storage": {
                    "config": {
                        "log.flush.interval": 1000,
                        "log.default.flush.interval.ms": 1000,
                        "log.default.flush.scheduler.interval.ms": 9000,
                    }
                },
            }
        },
        "groups": {
            "early": {**group, "guarantee": PROMISE},
            "late": {**group, "starts": "9s", "guarantee": PROMISE},
        },
        "timeline": [
            {"at": "2s", "produce": "clicks", "rate": "600/s", "size": "100B", "for": "4s"},
            {"at": "7s", "crash_host": "broker/0"},
            {"at": "8s", "restart": "broker/0"},
            {"at": "11s", "produce": "clicks", "rate": "100/s", "size": "100B", "for": "1s"},
        ],
        "settle": SETTLE,
        **more,
    }


# --- accounts, without the ledger ------------------------------------------------------


def messages(event: Event) -> Iterator[tuple[Identity, int]]:
    """The messages of an event, each with the offset behind it; each has 110 bytes."""
    for producer, first, end, at, to, *_ in event.detail["ranges"]:
        assert to - at == 110 * (end - first)
        for number in range(first, end):
            yield (producer, number), at + 110 * (number - first + 1)


def accepted(trace: Trace) -> set[Identity]:
    """The messages that producers have accepted from their applications."""
    return {
        (event.detail["producer"], number)
        for event in trace.of_kind(EventKind.SENT)
        if event.detail["outcome"] == "accepted"
        for number in range(event.detail["first"], event.detail["end"])
    }


def in_logs(trace: Trace) -> set[Identity]:
    """The messages in the logs at the end, without what was cut off."""
    logs: dict[str, dict[int, Identity]] = {}
    for event in trace.of_kind(EventKind.STORED, EventKind.LOG_OPENED):
        log = logs.setdefault(event.place, {})
        if event.kind == EventKind.STORED:
            log.update({to: message for message, to in messages(event)})
        else:
            for to in [to for to in log if to > event.detail["end"]]:
                del log[to]
    return {message for log in logs.values() for message in log.values()}


def consumed(trace: Trace, group: str) -> Counter[Identity]:
    """How often each message was delivered to a group."""
    return Counter(
        message
        for event in trace.of_kind(EventKind.CONSUMED)
        if event.group == group
        for message, _ in messages(event)
    )


# --- the crash -------------------------------------------------------------------------


def test_a_crash_loses_unflushed_messages_and_each_one_is_counted(
    nothing_left_behind: None,
) -> None:
    """Lost messages were delivered to no consumer, and the judge counts what the test counts."""
    result = lived_to_a_verdict(crashing())
    trace = result.trace

    assert result.verdict is Verdict.HOLDS, plain_report(result)
    assert all(effect.is_real for effect in result.effects)
    stored, taken, early = in_logs(trace), accepted(trace), consumed(trace, "early")
    assert set(early) >= stored
    assert set(early.values()) == {1}
    assert set(consumed(trace, "late")) == stored
    lost = taken - stored
    (emulated,) = trace.of_kind(EventKind.HOST_LOSS_EMULATED)
    assert 0 < emulated.detail["bytes"] == 110 * len(lost)
    evidence = result.judgement.finding("delivery to early").evidence
    assert f"{len(taken):,} messages accepted, {len(early):,} handed on" in evidence
    assert f"{len(lost):,} lost ({len(lost):,} never stored" in evidence
    assert "the loss of the host of broker/0 at 7." in plain_report(result)
    (loss,) = losses(message_path(trace))
    assert loss.size_bytes == emulated.detail["bytes"]
    (opened,) = trace.of_kind(EventKind.LOG_OPENED)
    ((_, (_, after)),) = emulated.detail["files"].items()
    assert (opened.detail["end"], opened.detail["clean"]) == (after, False)


@pytest.mark.parametrize(
    ("storage", "logs", "broken"),
    [
        pytest.param(
            FlushesNothing,
            LogManager,
            "delivery to late",
            marks=pytest.mark.slow,
            id="flushes nothing",
        ),
        pytest.param(
            MeteredStorage,
            LogsThatShowTooMuch,
            "delivery to early",
            id="shows what is not flushed",
        ),
    ],
)
def test_a_mutated_broker_is_detected(
    storage: type[MeteredStorage],
    logs: type[LogManager],
    broken: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It loses flushed messages, or shows messages that it loses."""
    monkeypatch.setattr(MessageHosts, "STORAGE", storage)
    monkeypatch.setattr(MessageHosts, "LOGS", logs)

    result = lived(crashing())

    assert broken in result.judgement.violated(), plain_report(result)


# --- processes that are killed ---------------------------------------------------------


def handling(commits: str, guarantee: Any, *timeline: Mapping[str, Any]) -> Fields:
    """A broker, and two consumers whose applications confirm each message."""
    fields = crashing(name="handling", timeline=[])
    fields["clusters"]["main"] |= {
        "brokers": 1,
        "storage": {"config": {"log.flush.interval": 20}},
    }
    fields["clusters"]["main"]["topics"]["clicks"] = {"partitions_per_broker": 2}
    fields["groups"] = {
        "billing": {
            "consumers": 2,
            "streams": {"clicks": 1},
            "guarantee": guarantee,
            "handling": {"each": "2ms", "commits": commits},
            "config": {**QUICK, **FETCHING, "auto.commit.enable": False},
        }
    }
    load = {"at": "2s", "produce": "clicks", "rate": "400/s", "size": "100B", "for": "6s"}
    fields["timeline"] = [load, *timeline]
    return fields


def keeping() -> Fields:
    """Three groups keep results with positions; members of each are killed meanwhile.

    Those of the careless group late: one of them has to have stopped between two commits.
    """
    fields = handling("with the result", "exactly once")
    group = fields["groups"]["billing"]
    fields["groups"] = {
        "billing": group,
        "search": {**group, "handling": {**group["handling"], "store": "segments"}},
        "careless": {**group, "handling": {"commits": "with the result"}},
    }
    fields["timeline"] += [
        {"at": "4s", "crash": "search/0"},
        {"at": "5s", "crash": "billing/1"},
        {"at": "6s", "restart": "search/0"},
        {"at": "8s", "crash": "careless/0"},
        {"at": "8s", "crash": "careless/1"},
        {"at": "9s", "restart": "careless/0"},
    ]
    return fields


def in_database(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The results in the database, each with its group."""
    store = SqliteResults(folder / DATABASE)
    for group in ("billing", "careless"):
        yield from ((group, kept.body) for kept in store.results_of(group))
    store.close()


def in_segments(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The results in segments, whose folders still belong to live processes."""
    for path in (folder / SEGMENTS).rglob("*.segment"):
        steps = decoded(path.read_bytes())
        assert steps is not None
        yield from ((step.group, body) for step in steps for body in step.results)


def test_results_are_stored_exactly_once_though_members_die() -> None:
    """The files show which messages were stored; a store that commits positions separately
    has lost some, and the judge has noticed.

    The judge knows what a process wrote to the trace. One that is killed between the store and
    the trace has stored more; so only the files show that the other groups have everything.
    """
    skip_without_zookeeper()
    scenario = scenario_of(keeping())
    plan = scenario.plan()
    *careful, last = plan.groups
    careless = replace(last, handling=replace(last.handling, store="careless"))
    stored: dict[str, Counter[Identity]] = {group.name: Counter() for group in plan.groups}

    def look(world: World) -> None:
        for group, body in (*in_database(world.folder), *in_segments(world.folder)):
            stored_range = msgspec.json.decode(body, type=MessageRange)
            stored[group].update(
                (stored_range.producer, at) for at in range(stored_range.first, stored_range.end)
            )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Jobs, "STORES", {**STORES, "careless": CommitsPlacesFirst})
        done: Any = live(replace(plan, groups=(*careful, careless)), inspect=look)

    result = judged(scenario, plan, 0, done)
    deliveries = {f"delivery to {group.name}" for group in plan.groups}
    violated = set(result.judgement.violated())
    assert {"delivery to careless"} <= violated <= deliveries, plain_report(result)
    taken = accepted(result.trace)
    for item in careful:
        assert stored[item.name] == Counter(taken)
    match = re.search(r"([\d,]+) lost", result.judgement.finding("delivery to careless").evidence)
    assert match is not None
    assert 0 < int(match[1].replace(",", "")) <= len(taken) - len(stored["careless"])


@pytest.mark.parametrize("world", MEMBER_WORLDS)
def test_a_restarted_producer_uses_new_numbers(world: str) -> None:
    """One is killed and restarted, one leaves and sends what it still has."""
    queues = {"producer.type": "async", "queue.time": 300, "batch.size": 1000}
    guarantee = {"semantics": "at least once", "most_lost": 150}
    fields = handling(
        "as configured",
        guarantee,
        {"at": "4s", "crash": "web/0"},
        {"at": "5s", "restart": "web/0"},
        {"at": "6s", "leave": "web/1"},
    )
    fields["producers"] = {"web": {"number": 2, "balanced": True, "config": queues}}
    fields["groups"]["billing"] |= {"handling": {"commits": "as configured"}}

    result = ran(fields, world)

    assert result.verdict is Verdict.HOLDS, result.judgement.violated()
    taken, stored = accepted(result.trace), in_logs(result.trace)
    assert stored == set(consumed(result.trace, "billing"))
    assert {name for name, _ in taken - stored} <= {"web-0"}
    lives = {number >= 1_000_000_000 for name, number in stored if name == "web-0"}
    assert lives == {False, True}


@pytest.mark.parametrize("world", MEMBER_WORLDS)
def test_a_topic_that_is_deleted_and_created_begins_at_0(world: str) -> None:
    """On a broker that runs, and on one that was down; as in a simulation."""
    result = ran("topic-recreated", world)

    assert result.verdict is Verdict.HOLDS, result.judgement.violated()
    created_us = next(
        event.t_us
        for event in result.trace.of_kind(EventKind.CHANGE)
        if event.detail["verb"] == "create_topic"
    )
    first: dict[str, int] = {}
    for event in result.trace.of_kind(EventKind.STORED):
        if event.t_us > created_us:
            first.setdefault(event.partition, event.detail["ranges"][0][3])
    assert first == {"0-0": 0, "1-0": 0}


def test_unreported_appends_are_reported_by_the_next_process(tmp_path: Path) -> None:
    """What lies behind the last offset in a trace file, whose last line may be truncated."""
    storage = FileStorage(tmp_path / "logs")
    logs = LogManager(log_settings({"log.file.size": 500}))
    storage.run(logs.start())
    log = storage.run(logs.get_or_create("clicks", 0))
    for first in range(0, 20, 4):
        payloads = [payload_of("p", number, 90) for number in range(first, first + 4)]
        storage.run(log.append(encode(map(Message.of, payloads))))
    storage.run(log.flush())
    for life, ranges in {1: [["p", 0, 4, 0, 400]], 10: [["p", 4, 8, 400, 800]]}.items():
        writer = TraceWriter(tmp_path / f"broker-0.{life}.jsonl", "broker/0", "", 0)
        writer.write(EventKind.STORED, {"ranges": ranges}, topic="clicks", partition="0-0")
        writer.close()
    with (tmp_path / "broker-0.10.jsonl").open("ab") as file:
        file.write(b'[17,"broker/0","stored",0')

    reported = reported_in(trace_files_of(tmp_path / "broker-0.11.jsonl"))

    assert reported == {("clicks", "0-0"): 800}
    assert merged(unreported_in(log, tmp_path / "logs", 800)) == [
        MessageRange("p", 8, 20, 800, 2000)
    ]
    assert not list(unreported_in(log, tmp_path / "logs", 2000))


# --- the end of a run ------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_ended_run_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    """No process and no file, whether it was interrupted or killed."""
    skip_without_zookeeper()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    file, printed = tmp_path / "crash.yaml", tmp_path / "printed"
    file.write_text(str(crashing()))
    command = [sys.executable, "-m", "watchkeeper", "run", str(file), "--world", "live"]
    with subprocess.Popen(
        [*command, "--no-pictures", "--out", str(tmp_path / "runs")],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=printed.open("wb"),
        stderr=subprocess.STDOUT,
    ) as run:
        until(lambda: list(temporary.glob("*/main/broker-0/logs/*/*.kafka")))
        started = descendants(run.pid)
        run.send_signal(number)

    expected = 2 if number is signal.SIGINT else -signal.SIGKILL
    assert run.returncode == expected, printed.read_text()
    assert len(started) >= 6
    until(lambda: not any(map(is_there, started)))
    until(lambda: not list(temporary.iterdir()))
