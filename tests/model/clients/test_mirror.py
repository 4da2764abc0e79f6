"""A mirror loses nothing and repeats what it must, and what is lost or repeated is counted."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from socket import socket
from typing import Any

import pytest

from tests import HOME
from tests.support.live.broker_process import AT_ONCE, brokers, send_request
from tests.support.live_zookeeper import until
from watchkeeper.model.actor.effects import Emit, Partition, sleep
from watchkeeper.model.actor.tasks import Start, put
from watchkeeper.model.clients.compositions.mirror import Mirror
from watchkeeper.model.clients.consumer.chunks import Chunk, Delivery
from watchkeeper.model.clients.consumer.connector import Connector
from watchkeeper.model.clients.consumer.positions import FetchedChunk, FetchPosition
from watchkeeper.model.clients.producer.settings import producer_settings
from watchkeeper.model.delivery.message_id import payload_of
from watchkeeper.model.group.settings import consumer_settings
from watchkeeper.model.group.state import Consumer
from watchkeeper.model.group.variants import VARIANTS
from watchkeeper.model.judgement.judge import Judgement, judge
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import encode
from watchkeeper.model.log.format.requests import FetchRequest
from watchkeeper.model.plan.delivery_guarantee import DeliveryGuarantee, Semantics
from watchkeeper.model.plan.mirror_routes import Routes
from watchkeeper.model.plan.plan import Forwarding, Plan
from watchkeeper.model.properties.delivery import DeliveryJudge
from watchkeeper.model.properties.verdicts import Finding, Verdict
from watchkeeper.model.registry.subscription import Subscription
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event
from watchkeeper.real.process.tasks import Tasks
from watchkeeper.scenarios import ScenarioError, from_text
from watchkeeper.sim.world import simulate

SEEDS = (0, 1)


def text_of(name: str) -> str:
    return (HOME / "scenarios" / "files" / f"{name}.yaml").read_text()


def judged(plan: Plan, seed: int) -> Judgement:
    done = simulate(plan, seed)
    return judge(plan, done.trace, done.effects)


def run(text: str, seed: int = 0) -> Judgement:
    return judged(from_text("it.yaml", text).plan(), seed)


def delivery(text: str, group: str, seed: int = 0) -> Finding:
    return run(text, seed).finding(f"delivery to {group}")


def number(finding: Finding, words: str) -> int:
    """How many a finding says of something; 0 if it says nothing."""
    before, found, _ = finding.evidence.partition(f" {words}")
    return int(before.split()[-1].lstrip("(").replace(",", "")) if found else 0


# --- a crash -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_a_mirror_that_dies_repeats_and_loses_nothing(seed: int) -> None:
    found = delivery(text_of("mirror-crash"), "reports", seed)
    assert found.verdict is Verdict.HOLDS, found
    assert number(found, "handed on again") == number(found, "stored twice") > 0
    assert number(found, "lost") == 0
    assert "of east's" in found.evidence
    assert "of west's" not in found.evidence


@pytest.mark.parametrize("seed", SEEDS)
def test_a_mirror_that_commits_first_loses_and_is_caught(seed: int) -> None:
    found = delivery(text_of("mirror-commits-first"), "reports", seed)
    assert found.verdict is Verdict.VIOLATED, found
    assert number(found, "lost") == number(found, "never stored") > 0
    assert number(found, "handed on again") == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_an_asynchronous_producer_loses_nothing_if_its_mirror_waits(seed: int) -> None:
    """It is the order that decides, and not the queue."""
    text = text_of("mirror-commits-first").replace("commits: before", "commits: after")
    assert delivery(text, "reports", seed).verdict is Verdict.HOLDS


@pytest.mark.parametrize("guarantee", ["exactly once", "at most once"])
def test_what_is_sent_again_breaks_a_promise_that_forbids_it(guarantee: Semantics) -> None:
    plan = from_text("it.yaml", text_of("mirror-crash")).plan()
    groups = tuple(
        replace(group, guarantee=DeliveryGuarantee(guarantee, ("clicks",)))
        if group.guarantee
        else group
        for group in plan.groups
    )
    assert judged(replace(plan, groups=groups), 0).finding("delivery to reports").verdict is (
        Verdict.VIOLATED
    )


def test_it_is_said_of_which_cluster_the_messages_were() -> None:
    text = text_of("mirror-crash").replace("hub-east", "hub-west")
    found = delivery(text, "reports")
    assert number(found, "handed on again") > 0
    assert "of west's" in found.evidence
    assert "of east's" not in found.evidence


CRASH = "  - {on: {node: hub-east/1, purpose: commit, nth: 8, when: before}, crash: hub-east/1}\n"


def instead_of_the_crash(*entries: str) -> str:
    text = text_of("mirror-crash")
    assert CRASH in text
    return text.replace(CRASH, "".join(f"  - {{{entry}}}\n" for entry in entries))


def test_a_target_that_is_away_is_waited_for() -> None:
    """What is lost is what a connection took that was dead already: 0.7 answers nothing."""
    text = instead_of_the_crash(
        *(f"at: 8s, crash: 'all:broker/{number}'" for number in (0, 1)),
        *(f"at: 12s, restart: 'all:broker/{number}'" for number in (0, 1)),
    )
    text = text.replace("after: crash", "after: restart")
    plan = from_text("it.yaml", text).plan()
    done = simulate(plan, 0)
    found = judge(plan, done.trace, done.effects).finding("delivery to reports")
    assert any(event.kind == EventKind.NOT_MIRRORED for event in done.trace)
    assert number(found, "lost") <= 4 * 200, "one request of each process at most"
    assert number(found, "handed on") > 6_500


def test_what_lies_at_the_source_is_not_lost() -> None:
    """At the end of the run the mirror has not come so far."""
    text = instead_of_the_crash(
        "at: 10s, crash: hub-east/0",
        "at: 10s, crash: hub-east/1",
    )
    text = text.replace("node: hub-east/0, after", "node: hub-west/0, after")
    found = delivery(text, "reports")
    assert found.verdict is Verdict.HOLDS
    assert 300 * 6 < number(found, "not yet mirrored") < 300 * 10
    assert number(found, "lost") == 0


def test_what_has_arrived_does_not_speak_for_what_waits_before_it() -> None:
    """One broker of the target is away, the other takes what comes; then the mirror dies."""
    text = text_of("mirror-commits-first").replace("commits: before", "commits: after")
    crash = CRASH.replace("before", "after_reply")
    assert crash in text
    entries = (
        "at: 7s, crash: 'all:broker/1'",
        "at: 13s, crash: hub-east/1",
        "at: 15s, restart: 'all:broker/1'",
    )
    text = text.replace(crash, "".join(f"  - {{{entry}}}\n" for entry in entries))
    found = delivery(text, "reports")
    assert number(found, "lost") == 0, found
    assert number(found, "handed on again") > 300


@pytest.mark.parametrize(("commits", "repeats"), [("after", True), ("before", False)])
def test_a_member_that_leaves_sends_what_waits(commits: str, repeats: bool) -> None:
    """It leaves first: what it has not sent by then is sent by its successor as well."""
    text = text_of("mirror-commits-first").replace("commits: before", f"commits: {commits}")
    crash = CRASH.replace("before", "after_reply")
    assert crash in text
    text = text.replace(crash, "  - {at: 9.3s, leave: hub-east/1}\n")
    found = delivery(text.replace("after: crash", "after: leave"), "reports")
    assert number(found, "lost") == 0
    assert (number(found, "handed on again") > 0) is repeats


# --- a group that moves --------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_a_group_that_moves_reads_twice_or_misses(seed: int) -> None:
    """Exactly what it had had, or what came between its leaving and its beginning."""
    judgement = run(text_of("mirror-moved-group"), seed)
    had = number(judgement.finding("delivery to billing"), "handed on")
    again = judgement.finding("delivery to smallest")
    missed = judgement.finding("delivery to largest")
    assert number(again, "handed on again") == had > 0
    assert number(again, "lost") == 0
    assert number(missed, "handed on again") == 0
    assert number(missed, "lost") == number(missed, "messages accepted") - number(
        missed, "handed on"
    )
    assert 400 * 3 < number(missed, "lost") < 400 * 5


@pytest.mark.parametrize("group", ["smallest", "largest"])
def test_neither_way_is_exactly_once(group: str) -> None:
    plan = from_text("it.yaml", text_of("mirror-moved-group")).plan()
    groups = tuple(
        replace(group, guarantee=DeliveryGuarantee("exactly once", ("clicks",)))
        for group in plan.groups
    )
    found = judged(replace(plan, groups=groups), 0).finding(f"delivery to {group}")
    assert found.verdict is Verdict.VIOLATED


def test_a_group_without_work_owes_nothing() -> None:
    """Negative: without `follows`, what came before its beginning is no loss of a newcomer."""
    text = text_of("mirror-moved-group").replace("    follows: billing\n", "")
    judgement = run(text)
    assert number(judgement.finding("delivery to largest"), "lost") == 0
    assert number(judgement.finding("delivery to smallest"), "handed on again") == 0


# --- two clusters that have partitions of one name -------------------------------------------


def event(node: str, kind: str, group: str = "", **detail: Any) -> Event:
    return Event(0, 0, node, kind, 0, group, "clicks", "0-0", 0, detail)


def two_clusters() -> list[Event]:
    """Ten messages in each of two partitions of one name; those of one are read."""
    events = []
    for cluster in ("east", "west"):
        message_range = [f"web-{cluster}-0", 0, 10, 0, 1000]
        sent = {"producer": message_range[0], "first": 0, "end": 10, "outcome": "accepted"}
        events += [
            event(f"web-{cluster}/0", EventKind.SENT, **sent),
            event(f"{cluster}:broker/0", EventKind.STORED, ranges=[message_range]),
        ]
    message_range = ["web-west-0", 0, 10, 0, 1000]
    return [*events, event("hub-west/0", EventKind.HANDLED, "hub-west", ranges=[message_range])]


def test_partitions_of_one_name_are_not_mixed_up() -> None:
    plan = from_text("it.yaml", text_of("mirror-crash")).plan()
    judge = DeliveryJudge(
        {"hub-west": DeliveryGuarantee("exactly once", ("clicks",))}, ["hub-west"], Routes(plan)
    )
    for cluster in two_clusters():
        judge.take(cluster)
    found = judge.findings()[0]
    assert found.verdict is Verdict.HOLDS
    assert number(found, "messages accepted") == 10


def test_without_routes_they_would_be() -> None:
    """Negative: the same events, as of one cluster."""
    judge = DeliveryJudge(
        {"hub-west": DeliveryGuarantee("exactly once", ("clicks",))}, ["hub-west"]
    )
    for cluster in two_clusters():
        judge.take(cluster)
    assert judge.findings()[0].verdict is Verdict.VIOLATED


# --- bytes -----------------------------------------------------------------------------------


class SilentListener:
    """Says nothing of what is fetched."""

    def on_fetching(self, place: FetchPosition, does: str) -> None: ...
    def on_failure(self, address: str, times: int) -> None: ...
    def on_reset(self, place: FetchPosition, offset: int, why: str) -> None: ...
    def on_delivery(self, place: FetchPosition, handed: Delivery) -> None: ...


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("commits", ["after", "before"])
def test_messages_of_bytes_are_the_same_on_the_other_side(
    tmp_path: Path, kind: str, commits: Any
) -> None:
    """Against a live broker: payloads arrive unchanged and in order, and positions advance."""
    payloads = [payload_of("web", at, 40) for at in range(50)]
    chunk = Chunk(Partition("clicks", "0-0"), encode(map(Message.of, payloads)), 0)
    with brokers(tmp_path / "logs") as start:
        broker = start(*AT_ONCE)
        given = {"broker.list": f"0:127.0.0.1:{broker.port}", "producer.type": kind}
        if kind == "async":
            given |= {"queue.time": 50, "batch.size": 7}
        forwarding = Forwarding("hub", "all", "clicks", producer_settings(given), commits)
        place = FetchPosition(chunk.partition, "", 0, "", 0)
        handled = asyncio.run(mirrored(forwarding, place, chunk))
        with broker.connect() as connection:
            until(lambda: len(fetched(connection)) == 50)  # 0.7 does not say when it has them
            found = fetched(connection)
    assert found == payloads
    assert handled == 50
    assert place.consumed_offset == 50 * 50


def fetched(connection: socket) -> list[Any]:
    """The payloads that a broker has."""
    response: Any = send_request(FetchRequest("clicks", 0, 0, 1 << 20), connection)
    chunk, found = Chunk(Partition("clicks", "0-0"), response.messages, 0), []
    while (handed := chunk.next(1)) is not None:
        found.append(handed.payload)
    return found


async def mirrored(forwarding: Forwarding, place: FetchPosition, chunk: Chunk) -> int:
    """Let a mirror have a chunk; how many messages it says have arrived."""
    events: list[Emit] = []
    threads = Tasks(remind=print, failed=print)
    threads.answer_immediately(Emit, events.append)
    me = Consumer(
        node="hub/0",
        group="hub",
        configured_id="c0",
        host="here",
        variant=VARIANTS["hardened"],
        layout="0.7",
        subscription=Subscription(),
        settings=consumer_settings("0.8.2", {}),
    )
    connector = Connector(me, SilentListener())
    mirror = Mirror(connector, forwarding, "hub/0")
    (stream,) = mirror.streams("clicks")

    async def main() -> None:
        await Start("mirror", lambda: mirror.handle_all(stream))
        await put(stream.queue, FetchedChunk(place, chunk), 10)
        while arrived(events) < 50:
            await sleep(10)

    try:
        async with asyncio.timeout(20):
            await threads.run(main(), "main")
    finally:
        await threads.end()
    return arrived(events)


def arrived(emits: list[Emit]) -> int:
    """How many messages have arrived, as the mirror says."""
    ranges = [
        message_range
        for event in emits
        if event.kind == EventKind.HANDLED
        for message_range in dict(event.detail)["ranges"]
    ]
    return sum(end - first for _, first, end, *_ in ranges)


# --- scenario files ----------------------------------------------------------------------------

Change = Callable[[str], str]
WRONG = {
    "from: [east, west]|from: [eats, west]": (
        "mirrors.hub.from[0]: 'eats' is not a cluster with `storage`; did you mean 'east'?"
    ),
    "to: all|to: al": "mirrors.hub.to: 'al' is not a cluster with `storage`",
    "to: all|to: east": "mirrors.hub.to: east gets back what it sends, again and again",
    "topics: clicks|topics: '('": "mirrors.hub.topics: ",
    "topics: clicks\n|topics: clicks\n    producer: {zk.connect: all}\n": (
        "mirrors.hub.producer.zk.connect: is not a mirror's to set"
    ),
    "topics: clicks\n|topics: clicks\n    producer: {batch.sise: 7}\n": (
        "mirrors.hub.producer: batch.sise"
    ),
    "config: {auto.commit.interval.ms: 2000|config: {auto.comit.interval.ms: 2000": (
        "mirrors.hub.config.auto.comit.interval.ms: "
    ),
    "guarantee: {sem|follows: hub-est\n    guarantee: {sem": (
        "groups.reports.follows: 'hub-est' is not another group; did you mean 'hub-west'?"
    ),
    "guarantee: {sem|follows: reports\n    guarantee: {sem": (
        "groups.reports.follows: 'reports' is not another group"
    ),
    "  reports:\n    cluster: all|  hub-east:\n    cluster: all": (
        "mirrors.hub: reads east as hub-east, which is a name already"
    ),
}


@pytest.mark.parametrize(("change", "message"), WRONG.items())
def test_what_is_wrong_with_a_mirror_is_said(change: str, message: str) -> None:
    old, _, new = change.partition("|")
    text = text_of("mirror-crash")
    assert old in text
    text = text.replace(old, new, 1)
    with pytest.raises(ScenarioError, match=re.escape(message)):
        from_text("it.yaml", text).plan()


def test_a_source_at_an_address_of_the_target_is_refused() -> None:
    """What is sent to that address would come back by the mirror."""
    text = text_of("mirror-crash").replace("brokers: 1", "brokers: [{id: 0, host: one}]", 1)
    text = text.replace("brokers: 2", "brokers: [{id: 0, host: one}, {id: 1}]")
    message = (
        "mirrors.hub: east and all have brokers at one address, one:9092; give them different"
    )
    with pytest.raises(ScenarioError, match=re.escape(message)) as caught:
        from_text("it.yaml", text).plan()
    assert str(caught.value).count("at one address") == 1
