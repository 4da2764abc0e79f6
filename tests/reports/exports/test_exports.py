"""A trace in the formats of Perfetto and ShiViz: what their readers require of a file."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from watchkeeper import simulate
from watchkeeper.cli.main import run_command
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports.exports import perfetto, shiviz

SCENARIOS = ("consumer-crash", "zookeeper-minority", "gc-pause-zombie")


@cache
def trace_of(scenario: str) -> Trace:
    return simulate(scenario, seed=1).trace


@cache
def exported(scenario: str) -> list[dict[str, Any]]:
    value = json.loads(perfetto.trace_events(trace_of(scenario)))
    return list(value["traceEvents"])


# --- Perfetto --------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_spans_of_a_thread_do_not_overlap(scenario: str) -> None:
    """Viewers nest spans of one thread, so a partial overlap would be drawn wrongly."""
    spans: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for record in exported(scenario):
        if record["ph"] == "X":
            spans[record["pid"], record["tid"]].append((record["ts"], record["dur"]))

    assert len(spans) > 10
    for found in spans.values():
        found.sort()
        for (start, duration), (following, _) in pairwise(found):
            assert start + duration <= following


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_process_and_thread_has_a_name(scenario: str) -> None:
    """And those of the run are all there."""
    records = exported(scenario)
    named = {(each["pid"], each["tid"]) for each in records if each["ph"] == "M"}
    processes = {each["args"]["name"] for each in records if each["name"] == "process_name"}

    assert {(each["pid"], each["tid"]) for each in records if each["ph"] != "M"} <= named
    assert {event.node for event in trace_of(scenario).of_kind(EventKind.STARTED)} <= processes


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_arrows_have_two_ends_within_spans(scenario: str) -> None:
    """An arrow that binds to no span is dropped by viewers."""
    records = exported(scenario)
    spans = {
        (each["pid"], each["tid"], moment)
        for each in records
        if each["ph"] == "X"
        for moment in (each["ts"], each["ts"] + each["dur"])
    }
    ends: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        if record["ph"] in "sf":
            assert (record["pid"], record["tid"], record["ts"]) in spans
            ends[record["id"]].append(record)

    assert len(ends) > 10
    for first, second in ends.values():
        assert (first["ph"], second["ph"]) == ("s", "f")
        assert first["ts"] <= second["ts"]


def test_faults_and_owners_are_there() -> None:
    """The crash strikes the whole trace, and each partition has a track with its owners."""
    records = exported("consumer-crash")
    crash = [each for each in records if each["ph"] == "i" and "crash" in each["name"]]
    names = {each["args"]["name"]: each["pid"] for each in records if each["ph"] == "M"}
    partitions = names["partitions"]
    owners = {each["name"] for each in records if each["ph"] == "X" and each["pid"] == partitions}

    assert [(each["s"], each["ts"]) for each in crash] == [("g", 14_000_000)]
    assert owners == {"billing/0", "billing/1", "billing/2"}


# --- ShiViz ----------------------------------------------------------------------------

Clock = dict[str, int]


def parsed(scenario: str) -> list[tuple[str, Clock, str]]:
    """What ShiViz reads: by the expression of the first line, with Python's named groups."""
    parser, delimiter, *lines = shiviz.log(trace_of(scenario)).split("\n")
    assert delimiter == ""
    text = "\n".join(lines)
    found = list(re.finditer(parser.replace("(?<", "(?P<"), text))
    assert sum(len(each.group().split("\n")) for each in found) == len(lines) - 1
    return [(each["host"], json.loads(each["clock"]), each["event"]) for each in found]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_clocks_count_the_events_of_each_host(scenario: str) -> None:
    """A host's own entry grows by one with each event, and no clock runs ahead of another."""
    so_far: Clock = defaultdict(int)
    latest: dict[str, Clock] = {}
    for host, clock, _ in parsed(scenario):
        so_far[host] += 1
        assert clock[host] == so_far[host]
        assert all(count <= so_far[other] for other, count in clock.items())
        assert all(clock[other] >= count for other, count in latest.get(host, {}).items())
        latest[host] = clock

    assert len(so_far) > 5


def comes_before(one: tuple[str, Clock, str], other: tuple[str, Clock, str]) -> bool:
    return other[1].get(one[0], 0) >= one[1][one[0]]


def test_a_write_is_between_its_request_and_its_answer() -> None:
    """So are watches: a process hears of one after it has fired at the server."""
    events = parsed("consumer-crash")

    def first(host: str, words: str, *, begin: int = 0) -> int:
        return next(
            at
            for at, (its_host, _, text) in enumerate(events)
            if at >= begin and its_host.startswith(host) and text.endswith(words)
        )

    write = "create /consumers/billing/ids/billing_c0"
    asks = first("billing/0", f"request: {write}")
    applies = first("zookeeper/", f"applied: {write}", begin=asks)
    answers = first("billing/0", "response: create", begin=applies)
    request, applied, response = events[asks], events[applies], events[answers]
    heard = [each for each in events if " notified" in each[2]]
    fired = [each for each in events if " watch fired" in each[2]]

    assert comes_before(request, applied)
    assert comes_before(applied, response)
    assert not comes_before(applied, request)
    assert heard
    assert all(any(comes_before(each, one) for each in fired) for one in heard)


# --- the command -----------------------------------------------------------------------


def test_the_command_writes_a_file_beside_the_trace(tmp_path: Path) -> None:
    """The same run gives the same file; --out puts it elsewhere."""
    (tmp_path / "trace.jsonl").write_bytes(b"".join(trace_of("consumer-crash").lines()))
    trace = str(tmp_path / "trace.jsonl")
    elsewhere = tmp_path / "deep" / "x.json"
    for words in (
        (trace,),
        (str(tmp_path), "--format", "shiviz"),
        (trace, "--out", str(elsewhere)),
    ):
        assert run_command(["export", *words]) == 0

    assert elsewhere.read_text() == (tmp_path / "perfetto.json").read_text()
    assert (tmp_path / "shiviz.log").read_text() == shiviz.log(trace_of("consumer-crash"))
