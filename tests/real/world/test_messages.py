"""Messages for real: brokers that store them, are killed, lose what they had not flushed."""

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

from model.clients.identities import merged, payload_of
from model.delivery import Lot
from model.log.logs import Logs
from model.log.message import Message
from model.log.message_set import encode
from model.log.settings import log_settings
from model.trace import Event, Trace
from model.verdicts import Verdict
from real.diary import Diary
from real.gauges import GaugedStorage
from real.jobs import Jobs
from real.live import live
from real.member_results import DATABASE, SEGMENTS, STORES
from real.result_segments import decoded
from real.sites import Sites
from real.sqlite_results import SqliteResults
from real.storage import FileStorage
from real.untold import diaries_of, told_in, untold
from real.world import World
from reports.message_path import losses, message_path
from tests.live import descendants, is_there, lived, skip_without_zookeeper, until
from tests.planted_brokers import FlushesNothing, LogsThatShowTooMuch
from tests.planted_stores import CommitsPlacesFirst
from watchkeeper.printing import plain_report
from watchkeeper.running import judged, scenario_of

Fields = dict[str, Any]
Identity = tuple[str, int]
QUICK = {"zookeeper.session.timeout.ms": 1000, "auto.commit.interval.ms": 500}
FETCHING = {
    "refresh.leader.backoff.ms": 100,
    "rebalance.backoff.ms": 200,
    "auto.offset.reset": "smallest",
}
PROMISE = {"semantics": "at least once", "most_lost": 700, "most_repeated": 0}
SETTLE = "10s"
"""A busy machine takes its time to start what was killed."""


def crashing(**more: Any) -> Fields:
    """The host of a broker is lost; one group reads from the first message on, one too late.

    It has stored 2,400 messages by then, of which the last 200 or so are not flushed: the
    clock does that after 9 s only, and again 9 s after the restart. Until the second load
    begins its log is shorter than what whoever was shown those messages has read.
    """
    group = {"consumers": 1, "streams": {"clicks": 1}, "config": {**QUICK, **FETCHING}}
    return {
        "name": "crash",
        "about": "the host of a broker is lost",
        "clusters": {
            "main": {
                "zookeeper": {"servers": 1, "tick": "200ms"},
                "session_timeout": "1s",
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
            "early": {**group, "promise": PROMISE},
            "late": {**group, "starts": "9s", "promise": PROMISE},
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
    """The messages of an event, each with the offset behind it; all are of 110 bytes."""
    for producer, first, end, at, to, *_ in event.detail["lots"]:
        assert to - at == 110 * (end - first)
        for number in range(first, end):
            yield (producer, number), at + 110 * (number - first + 1)


def accepted(trace: Trace) -> set[Identity]:
    """What producers took from their applications."""
    return {
        (event.detail["producer"], number)
        for event in trace.of_kind("sent")
        if event.detail["outcome"] == "accepted"
        for number in range(event.detail["first"], event.detail["end"])
    }


def in_logs(trace: Trace) -> set[Identity]:
    """What lies in the logs at the end: what was cut off is in them no longer."""
    logs: dict[str, dict[int, Identity]] = {}
    for event in trace.of_kind("stored", "opened"):
        log = logs.setdefault(event.place, {})
        if event.kind == "stored":
            log.update({to: message for message, to in messages(event)})
        else:
            for to in [to for to in log if to > event.detail["end"]]:
                del log[to]
    return {message for log in logs.values() for message in log.values()}


def consumed(trace: Trace, group: str) -> Counter[Identity]:
    """How often each message was handed to a group."""
    return Counter(
        message
        for event in trace.of_kind("consumed")
        if event.group == group
        for message, _ in messages(event)
    )


# --- the crash -------------------------------------------------------------------------


def test_a_crash_loses_what_was_not_flushed_and_each_message_is_accounted_for(
    nothing_left_behind: None,
) -> None:
    """Nobody has seen what is lost, and the judge counts what sets of messages say."""
    result = lived(crashing())
    trace = result.trace

    assert result.verdict is Verdict.HOLDS, plain_report(result)
    assert all(effect.is_real for effect in result.effects)
    stored, taken, early = in_logs(trace), accepted(trace), consumed(trace, "early")
    assert set(early) >= stored
    assert set(early.values()) == {1}
    assert set(consumed(trace, "late")) == stored
    lost = taken - stored
    (emulated,) = trace.of_kind("host emulated")
    assert 110 * 100 <= emulated.detail["bytes"] == 110 * len(lost)
    said = result.judgement.finding("delivery to early").evidence
    assert f"{len(taken):,} messages accepted, {len(early):,} handed on" in said
    assert f"{len(lost):,} lost ({len(lost):,} never stored" in said
    assert "emulated the loss of the host of broker/0 at 7." in plain_report(result)
    (loss,) = losses(message_path(trace))
    assert loss.size_bytes == emulated.detail["bytes"]
    (opened,) = trace.of_kind("opened")
    ((_, (_, after)),) = emulated.detail["files"].items()
    assert (opened.detail["end"], opened.detail["clean"]) == (after, False)


@pytest.mark.parametrize(
    ("storage", "logs", "broken"),
    [
        (FlushesNothing, Logs, "delivery to late"),
        (GaugedStorage, LogsThatShowTooMuch, "delivery to early"),
    ],
    ids=["flushes nothing", "shows what is not flushed"],
)
def test_a_broker_that_breaks_its_word_is_found_out(
    storage: type[GaugedStorage],
    logs: type[Logs],
    broken: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It loses what it said was safe, or takes back what it had shown."""
    monkeypatch.setattr(Sites, "STORAGE", storage)
    monkeypatch.setattr(Sites, "LOGS", logs)

    result = lived(crashing())

    assert broken in result.judgement.violated(), plain_report(result)


# --- processes that are killed ---------------------------------------------------------


def handling(commits: str, promise: Any, *timeline: Mapping[str, Any]) -> Fields:
    """A broker, and two consumers whose applications say when they are done."""
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
            "promise": promise,
            "handling": {"each": "2ms", "commits": commits},
            "config": {**QUICK, **FETCHING, "auto.commit.enable": False},
        }
    }
    load = {"at": "2s", "produce": "clicks", "rate": "400/s", "size": "100B", "for": "6s"}
    fields["timeline"] = [load, *timeline]
    return fields


def keeping() -> Fields:
    """Three groups keep results with their places; members of each are killed on the way."""
    fields = handling("with the result", "exactly once")
    group = fields["groups"]["billing"]
    fields["groups"] = {
        "billing": group,
        "search": {**group, "handling": {**group["handling"], "store": "segments"}},
        "careless": {**group, "handling": {"commits": "with the result"}},
    }
    fields["timeline"] += [
        {"at": "4s", "crash": "search/0"},
        {"at": "4500ms", "crash": "careless/0"},
        {"at": "5s", "crash": "billing/1"},
        {"at": "5s", "crash": "careless/1"},
        {"at": "6s", "restart": "search/0"},
        {"at": "6s", "restart": "careless/0"},
    ]
    return fields


def in_database(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The results in the database, each with its group."""
    store = SqliteResults(folder / DATABASE)
    for group in ("billing", "careless"):
        yield from ((group, kept.body) for kept in store.results_of(group))
    store.close()


def in_segments(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The results in segments; their folders are still those of living processes."""
    for path in (folder / SEGMENTS).rglob("*.segment"):
        steps = decoded(path.read_bytes())
        assert steps is not None
        yield from ((step.group, body) for step in steps for body in step.results)


def test_results_are_stored_exactly_once_though_members_die() -> None:
    """The files themselves are asked which messages they have; a store that commits its
    places by themselves has lost some, and the judge has seen that."""
    skip_without_zookeeper()
    scenario = scenario_of(keeping())
    plan = scenario.plan()
    *careful, last = plan.groups
    careless = replace(last, handling=replace(last.handling, store="careless"))
    stored: dict[str, Counter[Identity]] = {group.name: Counter() for group in plan.groups}

    def look(world: World) -> None:
        for group, body in (*in_database(world.folder), *in_segments(world.folder)):
            lot = msgspec.json.decode(body, type=Lot)
            stored[group].update((lot.producer, at) for at in range(lot.first, lot.end))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Jobs, "STORES", {**STORES, "careless": CommitsPlacesFirst})
        done: Any = live(replace(plan, groups=(*careful, careless)), look=look)

    result = judged(scenario, plan, 0, done)
    assert result.judgement.violated() == ["delivery to careless"], plain_report(result)
    taken = accepted(result.trace)
    for one in careful:
        assert stored[one.name] == Counter(taken)
    said = re.search(r"([\d,]+) lost", result.judgement.finding("delivery to careless").evidence)
    assert said is not None
    assert 0 < int(said[1].replace(",", "")) <= len(taken) - len(stored["careless"])


def test_a_producer_goes_on_under_other_numbers_and_leaves_nothing_behind() -> None:
    """One is killed and comes back, one leaves in good order and sends what it still has."""
    queues = {"producer.type": "async", "queue.time": 300, "batch.size": 1000}
    promise = {"semantics": "at least once", "most_lost": 150}
    fields = handling(
        "as configured",
        promise,
        {"at": "4s", "crash": "web/0"},
        {"at": "5s", "restart": "web/0"},
        {"at": "6s", "leave": "web/1"},
    )
    fields["producers"] = {"web": {"number": 2, "balanced": True, "config": queues}}
    fields["groups"]["billing"] |= {"handling": {"commits": "as configured"}}

    result = lived(fields)

    assert result.verdict is Verdict.HOLDS, plain_report(result)
    taken, stored = accepted(result.trace), in_logs(result.trace)
    assert stored == set(consumed(result.trace, "billing"))
    assert {name for name, _ in taken - stored} <= {"web-0"}
    lives = {number >= 1_000_000_000 for name, number in stored if name == "web-0"}
    assert lives == {False, True}


def test_what_a_killed_broker_could_not_tell_is_told_by_the_next(tmp_path: Path) -> None:
    """What lies behind the last offset that a diary names; a line may have been cut short."""
    storage = FileStorage(tmp_path / "logs")
    logs = Logs(log_settings({"log.file.size": 500}))
    storage.run(logs.start())
    log = storage.run(logs.get_or_create("clicks", 0))
    for first in range(0, 20, 4):
        payloads = [payload_of("p", number, 90) for number in range(first, first + 4)]
        storage.run(log.append(encode(map(Message.of, payloads))))
    storage.run(log.flush())
    for life, lots in {1: [["p", 0, 4, 0, 400]], 10: [["p", 4, 8, 400, 800]]}.items():
        diary = Diary(tmp_path / f"broker-0.{life}.jsonl", "broker/0", "", 0)
        diary.write("stored", {"lots": lots}, topic="clicks", partition="0-0")
        diary.close()
    with (tmp_path / "broker-0.10.jsonl").open("ab") as file:
        file.write(b'[17,"broker/0","stored",0')

    told = told_in(diaries_of(tmp_path / "broker-0.11.jsonl"))

    assert told == {("clicks", "0-0"): 800}
    assert merged(untold(log, tmp_path / "logs", 800)) == [Lot("p", 8, 20, 800, 2000)]
    assert not list(untold(log, tmp_path / "logs", 2000))


# --- the end of a run ------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_a_run_that_is_ended(number: signal.Signals, tmp_path: Path) -> None:
    """No process and no file, whether it was asked to end or killed."""
    skip_without_zookeeper()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    file = tmp_path / "crash.yaml"
    file.write_text(str(crashing()))
    command = [sys.executable, "-m", "watchkeeper", "run", str(file), "--world", "live"]
    with subprocess.Popen(
        [*command, "--no-pictures", "--out", str(tmp_path / "runs")],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as run:
        until(lambda: list(temporary.glob("*/main/broker-0/logs/*/*.kafka")), 60)
        started = descendants(run.pid)
        run.send_signal(number)

    assert run.returncode == (2 if number is signal.SIGINT else -signal.SIGKILL)
    assert len(started) >= 6
    until(lambda: not any(map(is_there, started)))
    until(lambda: not list(temporary.iterdir()))
