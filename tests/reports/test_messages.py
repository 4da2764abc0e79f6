"""The way of messages, drawn: figures of a trace made by hand, and of runs that are checked."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from watchkeeper import Result, simulate
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.delivery.ledger import MessageRange
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Header, Row, Trace, parse
from watchkeeper.reports import pictures_of, write_all, write_messages_html, write_messages_png
from watchkeeper.reports.facts.lags import Read, Stored, greatest, lags
from watchkeeper.reports.facts.latencies import Took, latencies, over_time, quantiles
from watchkeeper.reports.facts.message_ranges import Numbered
from watchkeeper.reports.facts.metrics import (
    at_risk,
    gauges,
    greatest_risk,
    hit_share,
    hit_shares,
)
from watchkeeper.reports.facts.throughput import flows
from watchkeeper.reports.messages.charts import Chart, charts
from watchkeeper.reports.messages.message_path import losses, message_path, numbers
from watchkeeper.sim.brokers.metrics import HostMetrics

SECOND = 1_000_000
P0, P1 = Partition("clicks", "0-0"), Partition("clicks", "1-0")


def event(t_us: int, node: str, kind: str, place: str = "", /, **detail: Any) -> Row:
    """A row of a trace; a member that consumes is of the group g."""
    topic, _, partition = place.partition("/")
    group = "g" if node.startswith("g/") else ""
    return (t_us, node, kind, 0, group, topic, partition, 0, detail)


def sent(t_us: int, first: int, end: int, outcome: str = "accepted") -> Row:
    """An application received messages."""
    detail = {"producer": "p", "first": first, "end": end, "outcome": outcome}
    return event(t_us, "producer/0", EventKind.SENT, "clicks", **detail)


def ranges(t_us: int, node: str, kind: str, place: str, *found: tuple[int, int, int, int]) -> Row:
    """Messages of the producer were stored or consumed: first, end, at, to."""
    return event(t_us, node, kind, place, ranges=[["p", *item, False] for item in found])


def row(t_us: int, node: str, unflushed: int, most: int, hit: int = 0, missed: int = 0) -> Row:
    """A broker tells of its host."""
    seen = {"unflushed": unflushed, "most_unflushed": most, "hit": hit, "missed": missed}
    return event(t_us, node, EventKind.HOST_METRICS, **seen)


def trace_of(*rows: Row, end_us: int = 10 * SECOND) -> Trace:
    """A trace of these events."""
    return Trace(
        Header("by hand", "hardened", "sim", 7), [*rows, event(end_us, "", EventKind.RUN_ENDED)]
    )


BY_HAND = trace_of(
    event(0, "broker/0", EventKind.STARTED),
    row(0, "broker/0", 0, 0),
    event(0, "g/0", EventKind.OFFSET_RESET, "clicks/0-0", to=0),
    sent(1 * SECOND, 0, 10),
    ranges(1 * SECOND + 5, "broker/0", EventKind.STORED, "clicks/0-0", (0, 10, 0, 1000)),
    row(2 * SECOND, "broker/0", 1000, 1000),
    sent(2 * SECOND, 10, 30),
    ranges(2 * SECOND + 5, "broker/0", EventKind.STORED, "clicks/0-0", (10, 30, 1000, 3000)),
    row(3 * SECOND, "broker/0", 0, 3000, hit=0),
    ranges(3 * SECOND, "g/0", EventKind.CONSUMED, "clicks/0-0", (0, 20, 0, 2000)),
    row(4 * SECOND, "broker/0", 0, 0, hit=1500, missed=500),
    ranges(4 * SECOND, "g/0", EventKind.CONSUMED, "clicks/0-0", (10, 30, 1000, 3000)),
    sent(5 * SECOND, 30, 35),
    ranges(5 * SECOND + 5, "broker/0", EventKind.STORED, "clicks/0-0", (30, 35, 3000, 3500)),
    sent(6 * SECOND, 35, 40, "refused"),
    event(7 * SECOND, "broker/0", EventKind.FAULT, verb="crash_host", number=0, lasts=False),
    event(7 * SECOND, "broker/0", EventKind.ENDED, why="killed"),
    row(7 * SECOND, "broker/0", 500, 500, hit=2500, missed=500),
    event(8 * SECOND, "broker/0", EventKind.STARTED),
    event(
        8 * SECOND, "broker/0", EventKind.LOG_OPENED, "clicks/0-0", start=0, end=3000, clean=False
    ),
    row(8 * SECOND, "broker/0", 0, 0, hit=2500, missed=3500),
)


# --- figures ---------------------------------------------------------------------------


def test_throughput_is_counted_where_messages_pass() -> None:
    """Each second has what was given, accepted, stored and handed on, in messages and bytes."""
    found = flows(BY_HAND, SECOND)

    assert found["produced"].messages == (0, 10, 20, 0, 0, 5, 5, 0, 0, 0, 0)
    assert found["acknowledged"].messages == (0, 10, 20, 0, 0, 5, 0, 0, 0, 0, 0)
    assert found["stored"].messages == (0, 10, 20, 0, 0, 5, 0, 0, 0, 0, 0)
    assert found["consumed"].messages == (0, 0, 0, 20, 20, 0, 0, 0, 0, 0, 0)
    assert found["consumed"].size_bytes == (0, 0, 0, 2000, 2000, 0, 0, 0, 0, 0, 0)


def test_what_came_into_no_log_has_the_size_of_the_others() -> None:
    """Of a message that was refused no member knows its size; it counts as its topic does."""
    assert flows(BY_HAND, SECOND)["produced"].size_bytes[6] == 5 * 100


def test_lag_is_what_is_stored_and_not_handed_on() -> None:
    """It grows with the log, falls when something is handed on, and rises where it is again."""
    (found,) = lags(BY_HAND).items()

    assert found == (
        Read("g", P0),
        [
            (0, 0),
            (1 * SECOND + 5, 10),
            (2 * SECOND + 5, 30),
            (3 * SECOND, 10),
            (4 * SECOND, 0),
            (5 * SECOND + 5, 5),
            (8 * SECOND, 0),
        ],
    )
    assert greatest(found[1]) == (30, 2 * SECOND + 5)


def test_latency_counts_each_message_once() -> None:
    """From being sent to being handed on first; what is handed on again counts no more."""
    took = latencies(BY_HAND)["g"]

    assert took == [
        Took(2 * SECOND, 10, 3 * SECOND),
        Took(1 * SECOND, 10, 3 * SECOND),
        Took(2 * SECOND, 10, 4 * SECOND),
    ]
    assert quantiles(took) == (2 * SECOND, 2 * SECOND, 2 * SECOND)
    assert over_time(took, SECOND) == [
        (3, (1 * SECOND, 2 * SECOND, 2 * SECOND)),
        (4, (2 * SECOND, 2 * SECOND, 2 * SECOND)),
    ]


def test_hits_are_those_of_each_stretch() -> None:
    """The counters only grow; what is drawn is what was read meanwhile, where anything was."""
    lives = gauges(BY_HAND)["broker/0"]

    assert hit_shares(lives, SECOND) == [(4, 0.75), (7, 1.0), (8, 0.0)]
    assert hit_share(lives) == (2500 / 6000, 6000)


def test_bytes_at_risk_are_reported_a_process_at_a_time() -> None:
    """What it was at most is drawn; a line ends with its process, and the next has its own."""
    first, second = map(at_risk, gauges(BY_HAND)["broker/0"])

    assert first == (
        (0, 0),
        (2 * SECOND, 1000),
        (3 * SECOND, 3000),
        (3 * SECOND, 0),
        (4 * SECOND, 0),
        (7 * SECOND, 500),
        (7 * SECOND, 500),
    )
    assert second == ((8 * SECOND, 0), (10 * SECOND, 0))
    assert greatest_risk(gauges(BY_HAND)["broker/0"]) == (3000, 3 * SECOND)


def test_the_figures_that_matter_are_said() -> None:
    """One line each, for a member that does not look at pictures."""
    assert numbers(message_path(BY_HAND)) == [
        (
            "latency",
            "30 messages to g: half within 2.00 s, 99 of 100 within 2.00 s, all within 2.00 s",
        ),
        ("greatest lag", "g was 30 messages behind clicks/0-0, at 2.000 s"),
        ("at risk", "at most 3,000 bytes at broker/0 were not flushed, at 3.000 s"),
        ("at risk", "500 bytes were not flushed at broker/0 when its host was lost, at 7.000 s"),
        ("cache hits", "41.7% of 6,000 bytes read at broker/0 were in its pagecache"),
    ]


def test_what_no_member_knows_is_said_and_not_drawn() -> None:
    """A kernel that does not say what is in memory: what was read is a sum, and no share."""

    def read(t_us: int, size_bytes: int) -> Row:
        seen = {"unflushed": 0, "most_unflushed": 0, "read": size_bytes}
        return event(t_us, "broker/0", EventKind.HOST_METRICS, **seen)

    trace = trace_of(
        event(0, "broker/0", EventKind.STARTED), read(0, 0), read(SECOND, 700), read(2, 900)
    )

    assert (
        "cache hits",
        "not known of the 900 bytes read at broker/0: the system does not say what is in its "
        "pagecache",
    ) in numbers(message_path(trace))
    assert "found in the pagecache, of what was read" not in titles(trace)


def test_a_process_that_dies_a_while_after_its_end_was_decided_upon_loses_what_it_had() -> None:
    """A live one is killed some milliseconds after the fault; earlier ones lose nothing."""
    rows = (
        event(0, "broker/0", EventKind.STARTED),
        row(0, "broker/0", 200, 200),
        event(1 * SECOND, "broker/0", EventKind.ENDED, why="killed"),
        event(2 * SECOND, "broker/0", EventKind.STARTED),
        event(3 * SECOND, "broker/0", EventKind.FAULT, verb="crash_host", number=0, lasts=False),
        row(3 * SECOND + 9000, "broker/0", 500, 600),
        event(3 * SECOND + 9001, "broker/0", EventKind.ENDED, why="killed"),
        event(4 * SECOND, "broker/0", EventKind.STARTED),
        row(4 * SECOND, "broker/0", 0, 0),
    )

    assert losses(message_path(trace_of(*rows))) == [("broker/0", 3 * SECOND + 9001, 500)]


@given(some.lists(some.tuples(some.integers(0, 60), some.integers(1, 15)), max_size=12))
def test_what_is_known_by_number_is_what_was_said_first(reports: list[tuple[int, int]]) -> None:
    """A range at a time or a message at a time: the same."""
    ranges: Numbered[int] = Numbered()
    each: dict[int, int] = {}
    for at, (first, count) in enumerate(reports):
        ranges.add("p", first, first + count, at)
        each = {**dict.fromkeys(range(first, first + count), at), **each}

    for first, count in reports:
        found = [
            value
            for number, value in ranges.parts("p", first, first + count)
            for _ in range(number)
        ]
        assert found == [each[number] for number in range(first, first + count)]
        assert ranges.unknown("p", first, first + count) == []


@given(some.lists(some.integers(1, 5), min_size=1, max_size=8), some.integers(0, 45))
def test_a_log_that_is_cut_has_what_lay_before(counts: list[int], end: int) -> None:
    """Messages of one byte each: as many lie before an offset as it says, and after a cut."""
    log, at = Stored(), 0
    for count in counts:
        log.add(MessageRange("p", at, at + count, at, at + count))
        at += count

    assert [log.before(offset) for offset in range(at + 3)] == [*range(at + 1), at, at]
    log.cut(end)
    assert log.count == log.before(end) == min(end, at)


# --- charts ----------------------------------------------------------------------------


def titles(trace: Trace) -> list[str]:
    """What charts there are."""
    return [chart.title for chart in charts(message_path(trace))]


def test_every_chart_has_its_unit() -> None:
    """Titles say what the numbers along the side are."""
    assert titles(BY_HAND) == [
        "messages a second",
        "kB a second",
        "found in the pagecache, of what was read",
        "kB at risk: appended and not flushed",
        "lag, messages",
        "latency, sent to consumed",
    ]


def test_every_line_of_a_chart_has_a_name_of_its_own() -> None:
    """Also with two groups: a click on a name hides one line."""
    other_group = [
        (*row[:4], row[4].replace("g", "h"), *row[5:])
        for row in BY_HAND.rows
        if row[2] in (EventKind.CONSUMED, EventKind.OFFSET_RESET)
    ]
    rows = sorted([*BY_HAND.rows[:-1], *other_group], key=lambda event: event[0])

    for chart in charts(message_path(trace_of(*rows))):
        names = [line.name for line in chart.lines]
        assert len(set(names)) == len(names), chart.title
    assert {"g: half", "g: 99 of 100", "g: all", "h: half"} <= set(names)


def test_a_trace_without_gauges_shows_what_it_has() -> None:
    """Where brokers tell nothing of their hosts, the charts of hosts are missing."""
    rows = [
        row for row in BY_HAND.rows if row[2] not in (EventKind.HOST_METRICS, EventKind.RUN_ENDED)
    ]

    assert [title.partition(",")[0] for title in titles(trace_of(*rows))] == [
        "messages a second",
        "kB a second",
        "lag",
        "latency",
    ]


@some.composite
def restless(draw: some.DrawFn) -> Trace:
    """A log that grows and is read, again and again, within moments."""
    rows, at, number = [event(0, "g/0", EventKind.OFFSET_RESET, "clicks/0-0", to=0)], 0, 0
    for _ in range(draw(some.integers(20, 60))):
        at += draw(some.integers(1, 30_000))
        count = draw(some.integers(1, 20))
        span = (number, number + count, number, number + count)
        rows.append(ranges(at, "broker/0", EventKind.STORED, "clicks/0-0", span))
        if draw(some.booleans()):
            rows.append(ranges(at + 1, "g/0", EventKind.CONSUMED, "clicks/0-0", span))
        number += count
    return trace_of(*rows, end_us=20 * SECOND)


@given(restless())
def test_no_line_shows_less_than_there_was(trace: Trace) -> None:
    """Where a line changes too often it is drawn as what it was at most in each stretch."""
    path = message_path(trace)
    chart = next(chart for chart in charts(path) if chart.title.startswith("lag"))
    steps = path.lags[Read("g", P0)]
    pieces = chart.lines[0].pieces

    assert "most in" in chart.title
    assert max(value for points in pieces for _, value in points) == greatest(steps)[0]
    for (t_us, lag), (until, _) in pairwise([*steps, (path.end_us, 0)]):
        drawn = [v for points in pieces for (b, v), (e, _) in pairwise(points) if b <= t_us < e]
        assert t_us == until or max(drawn, default=0) >= lag


@given(some.lists(some.integers(0, 5000), min_size=1, max_size=12), some.integers(1, 10))
def test_values_stand_between_bottom_and_top(sizes: list[int], times: int) -> None:
    """Nothing is drawn outside its chart, and its numbers stand inside as well."""
    rows = [
        row(at * SECOND // 3, "broker/0", size, size * times) for at, size in enumerate(sizes)
    ]

    for chart in charts(message_path(trace_of(event(0, "broker/0", EventKind.STARTED), *rows))):
        values = [value for line in chart.lines for points in line.pieces for _, value in points]
        assert all(0 <= chart.share(value) <= 1 for value in values)
        assert all(0 <= chart.share(value) <= 1 for value, _ in chart.ticks)
        assert len(chart.ticks) >= 2


def test_lines_that_are_not_drawn_are_counted(tmp_path: Path) -> None:
    """A chart has room for some lines: the highest are drawn, and the others are counted."""
    rows = [event(0, "g/0", EventKind.OFFSET_RESET, f"clicks/0-{at}", to=0) for at in range(12)]
    rows += [
        ranges(
            SECOND, "broker/0", EventKind.STORED, f"clicks/0-{at}", (0, at + 1, 0, 100 * (at + 1))
        )
        for at in range(12)
    ]
    chart = next(chart for chart in charts(message_path(trace_of(*rows))) if "lag" in chart.title)

    assert [line.name for line in chart.lines] == [
        f"g behind clicks/0-{at}" for at in range(4, 12)
    ]
    assert chart.left_out == 4


# --- against what is judged ------------------------------------------------------------

LOST: dict[str, Any] = {
    "name": "lost",
    "about": "All that was not flushed is lost with the host, and nothing is sent to it later.",
    "clusters": {
        "main": {
            "zookeeper": {"servers": 1},
            "brokers": 1,
            "storage": {
                "config": {
                    "log.flush.interval": 10_000,
                    "log.default.flush.scheduler.interval.ms": 2_000,
                    "log.default.flush.interval.ms": 2_000,
                }
            },
            "topics": {"clicks": {"partitions_per_broker": 2}},
        }
    },
    "groups": {
        "billing": {
            "consumers": 1,
            "streams": {"clicks": 1},
            "guarantee": "measured",
            "config": {"refresh.leader.backoff.ms": 100},
        }
    },
    "timeline": [
        {"at": "1s", "produce": "clicks", "rate": "1000/s", "size": "100B", "for": "5600ms"},
        {"at": "7s", "crash_host": "broker/0"},
        {"at": "8s", "restart": "broker/0"},
    ],
    "settle": "10s",
}
MESSAGE_BYTES = 110
"""What a message of 100 bytes takes in a log."""


@pytest.fixture(scope="module")
def lost() -> Result:
    """A run in which a host is lost when nothing is under way to it."""
    return simulate(LOST, seed=3)


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_what_was_at_risk_is_what_was_lost(seed: int) -> None:
    """Three who do not know each other agree: the gauge, the ledger of messages, the disk."""
    result = simulate(LOST, seed=seed)
    (loss,) = losses(message_path(result.trace))
    delivery = next(
        finding for finding in result.findings if finding.claim.name == "delivery to billing"
    )
    match = re.search(r"([\d,]+) lost \(([\d,]+) never stored", delivery.evidence)
    assert match is not None
    crash = next(effect for effect in result.effects if effect.action.verb.name == "crash_host")

    assert loss.size_bytes > 0
    assert loss.size_bytes == int(match[2].replace(",", "")) * MESSAGE_BYTES
    assert loss.size_bytes == crash.counts["bytes lost"]


def test_bytes_at_risk_go_to_zero_at_a_flush() -> None:
    """Where the load has ended, a flush leaves nothing at risk; the host takes nothing then."""
    timeline = [LOST["timeline"][0] | {"for": "2s"}, *LOST["timeline"][1:]]
    result = simulate({**LOST, "timeline": timeline}, seed=3)
    told_of = gauges(result.trace)["broker/0"][0].told
    most = max(told_of, key=lambda row: row.unflushed)

    assert most.unflushed > 50_000
    assert most.t_us < told_of[-1].t_us < 6 * SECOND
    assert told_of[-1].unflushed == 0
    assert [loss.size_bytes for loss in losses(message_path(result.trace))] == [0]
    assert not any(" lost (" in finding.evidence for finding in result.findings)


def test_lag_ends_where_reading_does(lost: Result) -> None:
    """What was lost is no member's lag any more when the log has been opened."""
    assert {steps[-1][1] for steps in lags(lost.trace).values()} == {0}


SCENARIOS = ("broker-crash-unflushed", "broker-disk-full", "rebalance-duplicates")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_gauges_tell_what_files_say(scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The running sum is that of all files, after a crash and on a full disk as well."""
    tell, looked = HostMetrics.sample, []

    def check(gauges: HostMetrics) -> None:
        files = gauges.files
        looked.append(sum(file.unflushed_bytes for file in files.tree.files.values()))
        assert files.unflushed_bytes == looked[-1] <= files.most_unflushed_bytes
        tell(gauges)

    monkeypatch.setattr(HostMetrics, "sample", check)
    simulate(scenario, seed=1)

    assert max(looked) > 0


def test_only_changes_are_reported(lost: Result) -> None:
    """A host on which nothing happens is silent."""
    told_of = [dict(event.detail) for event in lost.trace.of_kind(EventKind.HOST_METRICS)]

    assert all(row != following for row, following in pairwise(told_of))
    assert not [
        event for event in lost.trace.of_kind(EventKind.HOST_METRICS) if event.t_us > 12 * SECOND
    ]


# --- files -----------------------------------------------------------------------------

FILES = ("messages.png", "messages.html")


def test_only_runs_with_messages_have_pictures_of_them(lost: Result, tmp_path: Path) -> None:
    """A log that is but a rate has nothing to be shown."""
    without = trace_of(event(0, "broker/0", EventKind.STARTED))

    assert write_all(lost.trace, tmp_path / "with") == pictures_of(lost.trace)
    assert set(pictures_of(lost.trace)) - set(pictures_of(without)) == set(FILES)
    assert not set(write_all(without, tmp_path / "without")) & set(FILES)


def test_the_same_trace_gives_the_same_bytes(lost: Result, tmp_path: Path) -> None:
    """Two runs of one seed, one of them read back from its file."""
    again = parse(simulate(LOST, seed=3).trace.lines(), name="trace.jsonl")
    for trace, name in ((lost.trace, "one"), (again, "other")):
        (tmp_path / name).mkdir()
        write_messages_png(trace, tmp_path / name)
        write_messages_html(trace, tmp_path / name)

    for file in FILES:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "other" / file).read_bytes()


def test_a_run_that_ended_at_once_has_pictures_too(tmp_path: Path) -> None:
    """A trace in which hardly anything happened is drawn and not a failure."""
    trace = trace_of(row(0, "broker/0", 0, 0), end_us=0)

    assert set(FILES) <= set(write_all(trace, tmp_path))


HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)">'


def hostile() -> Trace:
    """A run in which every name is out to break a page."""
    told_of = {"unflushed": 1, "most_unflushed": 1, "hit": 0, "missed": 1}
    return trace_of(
        event(0, HOSTILE, EventKind.STARTED),
        event(0, HOSTILE, EventKind.HOST_METRICS, **told_of),
        event(0, f"g/{HOSTILE}", EventKind.OFFSET_RESET, "clicks/<b>", to=0),
        ranges(SECOND, HOSTILE, EventKind.STORED, "clicks/<b>", (0, 10, 0, 1000)),
        event(2 * SECOND, HOSTILE, EventKind.FAULT, verb=HOSTILE, number=0, lasts=True),
    )


def test_a_page_of_messages_escapes_whatever_comes_from_a_trace(tmp_path: Path) -> None:
    """No name can become markup, and the page loads nothing."""
    write_messages_html(hostile(), tmp_path)
    text = (tmp_path / "messages.html").read_text()

    assert text.count("<script") == text.count("</script") == 2
    assert "<img" not in text
    assert not re.findall(r"(?i)https?:|@import|url\((?!#)", text)


BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)


def drawn(trace: Trace, folder: Path) -> str:
    """Write the page of a trace, open it in a browser, and return what is then in it."""
    write_messages_html(trace, folder)
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command = [BROWSER or "", *flags, f"--user-data-dir={folder}/browser", "--dump-dom"]
    done = subprocess.run(
        [*command, (folder / "messages.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stdout


@pytest.mark.skipif(BROWSER is None, reason="there is no browser")
def test_a_browser_draws_the_charts(tmp_path: Path) -> None:
    """In a browser every chart has its title and every name is text."""
    dom = drawn(hostile(), tmp_path)

    for title in titles(hostile()):
        assert title in dom
    assert dom.count("<path") >= 4
    assert "<img" not in dom


@pytest.mark.skipif(BROWSER is None, reason="there is no browser")
def test_the_timeline_crosses_out_no_name(tmp_path: Path) -> None:
    """The names of charts and lines are drawn after the lines of faults, so they lie above."""
    dom = drawn(BY_HAND, tmp_path)
    fault = dom.rindex('stroke-dasharray="4 2"')

    for name in (*titles(BY_HAND), "acknowledged", "g: 99 of 100"):
        assert fault < dom.index(f">{name}</text>")


def shares_of(page: str) -> list[float]:
    """Every height in the data of a page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert found is not None
    lines = [line for chart in json.loads(found[1])["charts"] for line in chart["lines"]]
    return [share for line in lines for points in line["pieces"] for _, share, _ in points]


def test_a_page_draws_what_the_picture_draws(lost: Result, tmp_path: Path) -> None:
    """Heights in a page are shares of its charts, none of them outside."""
    write_messages_html(lost.trace, tmp_path)
    shares = shares_of((tmp_path / "messages.html").read_text())

    assert len(shares) > 200
    assert min(shares) == 0
    assert 0.85 < max(shares) <= 1


def test_a_chart_of_times_has_powers_of_ten() -> None:
    """Equal steps up are equal factors."""
    chart = Chart("times", (), 1_000.0, 100_000.0, (), is_logarithmic=True)

    assert [chart.share(value) for value in (10, 1_000, 10_000, 100_000)] == [0, 0, 0.5, 1]
