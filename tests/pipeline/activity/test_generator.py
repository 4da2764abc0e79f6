"""The generator of activity: what it draws, what it promises, and where events go."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import log
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.live.broker_process import AT_ONCE, brokers
from tests.support.live_zookeeper import until
from tests.support.pipeline import activity_plain as plain
from tests.support.pipeline.activity_plain import of
from watchkeeper.cli.main import run_command
from watchkeeper.pipeline.activity.events import (
    TOPICS,
    Event,
    Follow,
    Mail,
    Metric,
    Search,
    View,
    Vote,
    topic_of,
)
from watchkeeper.pipeline.activity.generator import GREETINGS, encoded, generated, sent_ms
from watchkeeper.pipeline.activity.random_draws import Chance, Weighted, zipf
from watchkeeper.pipeline.activity.settings import (
    Activity,
    Crawlers,
    Hosts,
    Rules,
    Spammers,
    Zipf,
)
from watchkeeper.pipeline.kafkalog.logs import cut, read
from watchkeeper.pipeline.kafkalog.options import options_of
from watchkeeper.pipeline.kafkalog.scan.split_reader import Asked, Counts

EVENTS = 3_000
SEEDS = range(8)
PATIENCE_S = 60
Output = pytest.CaptureFixture[str]


def made(seed: int = 1, site: Activity | None = None, events: int = EVENTS) -> list[Event]:
    """The events of a site."""
    return list(generated(site or Activity(), seed, events))


# --- chance ----------------------------------------------------------------------------


def exponent_of(ranks: Sequence[int], count: int) -> float:
    """The exponent under which these ranks, of so many, are likeliest."""
    logs = [log(rank) for rank in range(1, count + 1)]
    seen = sum(logs[rank - 1] for rank in ranks)

    def likelihood(exponent: float) -> float:
        norm = log(sum(rank**-exponent for rank in range(1, count + 1)))
        return -exponent * seen - len(ranks) * norm

    low, high = 0.0, 5.0
    while high - low > 1e-4:  # it has one peak
        third = (high - low) / 3
        if likelihood(low + third) < likelihood(high - third):
            low += third
        else:
            high -= third
    return (low + high) / 2


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0, 1.7])
def test_ranks_have_the_exponent_of_the_settings(exponent: float) -> None:
    drawn, chance = zipf(200, exponent), Chance(3, "test")
    ranks = [drawn.draw(chance) + 1 for _ in range(6_000)]
    assert exponent_of(ranks, 200) == pytest.approx(exponent, abs=0.05)


ZIPF = Zipf(members=0.6, followed=1.3, pages=0.9, phrases=1.6)
RANKS: dict[str, tuple[int, Callable[[list[Event]], list[int]]]] = {
    "members": (
        100,
        lambda events: [event.member for event in of(Search, events)],
    ),
    "followed": (100, lambda events: [event.followed for event in of(Follow, events)]),
    "pages": (400, lambda events: [event.page for event in of(View, events)]),
    "phrases": (30, lambda events: [event.phrase for event in of(Search, events)]),
}


@pytest.fixture(scope="module")
def uneven() -> list[Event]:
    """The events of a site with exponents of its own, and no crawler."""
    site = Activity(
        members=100,
        pages=400,
        phrases=30,
        follows=40,
        zipf=ZIPF,
        crawlers=Crawlers(count=0),
        hosts=Hosts(count=0),
    )
    return made(5, site, 12_000)


@pytest.mark.parametrize("what", RANKS)
def test_events_have_the_exponents_of_the_configuration(what: str, uneven: list[Event]) -> None:
    """Estimated from a sample, by the greatest likelihood."""
    count, ranks = RANKS[what]
    assert exponent_of(ranks(uneven), count) == pytest.approx(getattr(ZIPF, what), abs=0.08)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any))
def test_what_has_no_weight_is_never_drawn(weights: list[int]) -> None:
    drawn, chance = Weighted(weights), Chance(1, "test")
    assert {drawn.draw(chance) for _ in range(60)} <= {
        place for place, weight in enumerate(weights) if weight
    }


# --- events ----------------------------------------------------------------------------


def test_a_seed_gives_the_same_events() -> None:
    """And another seed others."""
    assert made(1, events=300) == made(1, events=300)
    assert made(1, events=300) != made(2, events=300)


def test_a_seed_gives_these_very_bytes() -> None:
    """On any machine and under any Python: what is generated may change, but not unnoticed."""
    first = [event for event in made(7, events=300) if isinstance(event, Vote)][:2]
    assert [encoded(event) for event in first] == [
        b'{"at_ms":1793491217385,"member":24,"page":1,"stars":1}',
        b'{"at_ms":1793491235722,"member":2,"page":6,"stars":3}',
    ]


def test_one_purpose_leaves_the_others_alone() -> None:
    """Without crawlers and hosts, members do what they did."""
    few = Activity(crawlers=Crawlers(count=0), hosts=Hosts(count=0), spammers=Spammers(count=0))
    members = [event for event in made() if isinstance(event, Search | Vote | Follow)]
    assert [
        event for event in made(site=few) if isinstance(event, Search | Vote | Follow)
    ] == members


@pytest.mark.parametrize("seed", SEEDS)
def test_events_come_in_the_order_in_which_they_are_sent(seed: int) -> None:
    """Only what hosts measure is older than what was sent before it, and not by too much."""
    events = [event for event in made(seed, events=500) if topic_of(event) != "labels"]
    moments = [sent_ms(event) for event in events]
    assert moments == sorted(moments)
    late = [
        event.sent_ms - event.at_ms for event in of(Metric, events) if event.sent_ms > event.at_ms
    ]
    in_time = [lateness for lateness in late if lateness <= Rules().late_s * 1000]
    assert in_time
    assert max(in_time) < Activity().hosts.late_ms


def test_all_that_was_requested_is_there() -> None:
    """Every kind of event, as many things as members were to do, crawlers and spam."""
    events = made()
    counts = Counter(map(topic_of, events))
    site = Activity()
    assert set(counts) == set(TOPICS)
    mails = [event for event in of(Mail, events) if event.text in GREETINGS]
    views = [event for event in of(View, events) if event.member is not None]
    follows = [event for event in of(Follow, events) if event.at_ms > site.begins_ms]
    actions = len(mails) + len(views) + len(follows) + counts["votes"] + counts["searches"]
    assert (
        EVENTS - 20 <= actions <= EVENTS
    )  # users who were to follow themselves have done nothing
    assert counts["views"] - len(views) == site.crawlers.count * site.crawlers.pages
    assert counts["mails"] - len(mails) == site.spammers.count * site.spammers.mails
    assert 0 < counts["clicks"] < counts["searches"]


def test_a_topic_has_the_columns_of_its_events() -> None:
    for topic in TOPICS.values():
        columns = [column.split()[0] for column in topic.columns.split(", ")]
        assert columns == [field.name for field in msgspec.structs.fields(topic.kind)]


# --- what is found ---------------------------------------------------------------------

FINDS: dict[str, tuple[str, Callable[[plain.Row], str]]] = {
    "crawlers": ("crawler", lambda row: str(row[2])),
    "spam": ("spammer", lambda row: str(row[2])),
    "alerts": ("incident", lambda row: str(row[2])),
}


@pytest.mark.parametrize("table", FINDS)
def test_what_is_labelled_is_found_and_hardly_anything_else(table: str) -> None:
    """Over several seeds; the jobs answer as these plain answers do."""
    what, who = FINDS[table]
    hits = found_count = there_count = 0
    for seed in SEEDS:
        events, rules = made(seed), Rules()
        found = {who(row) for row in plain.ANSWERS[table](events, rules)}
        until_ms = max(map(sent_ms, events)) - 3_600_000
        there = plain.labelled(events, what, until_ms)
        anybody = plain.labelled(events, what, 1 << 60)
        hits += len(found & there)
        there_count += len(there)
        found_count += len(found)
        assert len(found & anybody) >= 0.9 * len(found)  # precision
    assert there_count >= len(SEEDS)
    assert hits >= 0.95 * there_count  # recall


def test_a_rule_that_is_too_lax_finds_the_innocent() -> None:
    """So the precision above can fail."""
    rules = msgspec.convert({"crawler": {"pages": 2, "different_per_cent": 10}}, Rules)
    events = made()
    found = {row[2] for row in plain.crawlers(events, rules)}
    assert len(found - plain.labelled(events, "crawler", 1 << 60)) > 10


# --- where events go -------------------------------------------------------------------


def messages_in(home: Path) -> Iterator[tuple[str, int, bytes]]:
    """Topic, partition and payload of every message in the logs of a folder."""
    options = Asked(("topic", "partition", "payload"))
    for folder in options_of({"path": str(home)}).logs():
        for split in cut(folder).splits:
            for batch in read(split, options, Counts()):
                for row in batch.to_pylist():
                    yield row["topic"], row["partition"], row["payload"]


def produce(*options: object) -> int:
    """Run the command; its exit code."""
    return run_command(["activity", "produce", *map(str, options)])


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy"])
def test_logs_hold_every_event_in_the_partition_of_its_key(
    compression: str, tmp_path: Path, capsys: Output
) -> None:
    """In the order in which they were sent."""
    how = ("--events", 400, "--seed", 3, "--partitions", 3, "--compression", compression)
    assert produce("--logs", tmp_path / "logs", *how, "--json") == 0
    printed = json.loads(capsys.readouterr().out)["events"]
    events = made(3, events=400)
    assert printed == dict(sorted(Counter(map(topic_of, events)).items()))
    found: dict[str, list[bytes]] = {}
    partition_of: dict[tuple[str, str], int] = {}
    for topic, partition, payload in messages_in(tmp_path / "logs"):
        found.setdefault(f"{topic}-{partition}", []).append(payload)
        event = msgspec.json.decode(payload, type=TOPICS[topic].kind)
        key = (topic, TOPICS[topic].key(event))
        assert partition_of.setdefault(key, partition) == partition
    due: dict[str, list[bytes]] = {}
    for event in events:
        topic = topic_of(event)
        partition = partition_of[topic, TOPICS[topic].key(event)]
        due.setdefault(f"{topic}-{partition}", []).append(encoded(event))
    assert found == due
    assert len(found) > len(TOPICS)


def test_logs_of_a_seed_are_the_same_files(tmp_path: Path, capsys: Output) -> None:
    for name in ("one", "other"):
        assert produce("--logs", tmp_path / name, "--events", 100) == 0
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*"))
    assert len(files) > len(TOPICS)
    for path in files:
        first, second = tmp_path / "one" / path, tmp_path / "other" / path
        assert first.is_dir() or first.read_bytes() == second.read_bytes()


def test_a_broker_gets_every_event(tmp_path: Path, capsys: Output) -> None:
    """Through the producer, over a connection, into whichever partition it chooses."""
    home = tmp_path / "logs"
    due = Counter((topic_of(event), encoded(event)) for event in made(0, events=300))

    def is_there() -> bool:
        found = list(messages_in(home)) if any(home.glob("*-*")) else []
        return len(found) >= due.total()

    with brokers(home) as start:
        broker = start(*AT_ONCE, "num.partitions=2")
        address = f"127.0.0.1:{broker.port}"
        assert produce("--brokers", address, "--events", 300, "--compression", "snappy") == 0
        until(is_there, PATIENCE_S)
        assert broker.terminate() == 0
    assert Counter((topic, payload) for topic, _, payload in messages_in(home)) == due


# --- bad input -------------------------------------------------------------------------

WRONG: dict[str, tuple[str, str]] = {
    "a field": ("activity: {pagess: 3}", "in activity: Object contains unknown field `pagess`"),
    "a value": ("activity: {zipf: {pages: -1}}", "in activity.zipf.pages: Expected `float` >= 0"),
    "a type": ("rules: {limit: {most: many}}", "in rules.limit.most: Expected `int`, got `str`"),
    "no mapping": ("[1, 2]", "Expected `object`, got `array`"),
    "no YAML": ("a: [", "cannot be read: while parsing"),
    "too few members": ("activity: {members: 1}", "in activity.members: expected more than"),
    "too many followed": ("activity: {members: 9, follows: 9}", "in activity.follows"),
    "nothing to do": (
        "activity: {shares: {views: 0, searches: 0, votes: 0, mails: 0, follows: 0}}",
        "in activity.shares: expected one that is not 0",
    ),
    "a slide": ("rules: {alert: {slide_s: 7}}", "in rules.alert.slide_s: expected a part of"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_of_settings_that_is_wrong(name: str, tmp_path: Path, capsys: Output) -> None:
    """It is reported with the file and the place, and nothing is produced."""
    text, printed = WRONG[name]
    file = tmp_path / "activity.yaml"
    file.write_text(text)
    assert produce("--logs", tmp_path / "logs", "--config", file) == 4
    error = capsys.readouterr().err
    assert str(file) in error
    assert printed in error
    assert not (tmp_path / "logs").exists()


REFUSED: dict[str, tuple[list[str], str]] = {
    "no target": ([], "expected either --brokers HOST:PORT or --logs DIR"),
    "two targets": (["--brokers", "x:1", "--logs", "y"], "expected either --brokers"),
    "no address": (["--brokers", "localhost"], "expected HOST:PORT"),
    "no folder": (["--logs", "{file}", "--events", "9"], "takes no events: "),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_events_cannot_go_to(name: str, tmp_path: Path, capsys: Output) -> None:
    options, printed = REFUSED[name]
    file = tmp_path / "file"
    file.write_text("")
    assert produce(*(option.format(file=file) for option in options)) == 4
    assert printed in capsys.readouterr().err


def test_a_broker_that_is_not_there(capsys: Output) -> None:
    """The producer gives up after a while, and the command says so."""
    assert produce("--brokers", "127.0.0.1:9", "--events", 50) == 4
    printed = capsys.readouterr().err
    assert "not all events were sent: " in printed
    assert "see whether the brokers run" in printed


def test_a_file_of_settings_counts(tmp_path: Path, capsys: Output) -> None:
    file = tmp_path / "activity.yaml"
    file.write_text("activity: {members: 20, crawlers: {count: 0}, begins: 2011-06-01}\n")
    assert produce("--logs", tmp_path / "logs", "--events", 60, "--config", file) == 0
    views = [
        msgspec.json.decode(payload, type=View)
        for topic, _, payload in messages_in(tmp_path / "logs")
        if topic == "views"
    ]
    assert views
    assert all(view.member is not None and view.member <= 20 for view in views)
    assert min(view.at_ms for view in views) // 86_400_000 == 15_126


def test_the_commands_are_the_jobs() -> None:
    jobs: Any = pytest.importorskip("watchkeeper.pipeline.activity.jobs")
    from watchkeeper.logs.activity_command import ABOUT

    assert list(ABOUT) == list(jobs.JOBS)
