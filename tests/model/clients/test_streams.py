"""Streams: every message comes, in its order, once, for as long as nothing goes wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.messages.cluster import Cluster, after_a_while, noting, reads, slowly
from tests.support.messages.world import TraceWriter, World
from tests.support.seeds import SEEDS
from watchkeeper.model.actor.effects import Partition, new_session, sleep
from watchkeeper.model.actor.errors import (
    ConnectionLoss,
    Failure,
    NoAuth,
    SessionExpired,
    ZooKeeperError,
)
from watchkeeper.model.actor.operations import Create
from watchkeeper.model.actor.program import Ended
from watchkeeper.model.actor.retry import Direct, create_with_parents
from watchkeeper.model.actor.rpc import CallError
from watchkeeper.model.clients.consumer.chunks import Delivery
from watchkeeper.model.clients.consumer.connector import Connector
from watchkeeper.model.clients.consumer.simple import SimpleConsumer
from watchkeeper.model.clients.consumer.streams import Stream
from watchkeeper.model.clients.errors import ConsumerTimeout, InvalidConfig
from watchkeeper.model.delivery.message_id import payload_of
from watchkeeper.model.group.variants import DOCUMENTED, HARDENED, KAFKA_07, Variant
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.model.log.format.contents import Series, whole_series
from watchkeeper.model.log.format.errors import (
    InvalidMessage,
    InvalidMessageSize,
    LogError,
    OffsetOutOfRange,
    WrongPartition,
)
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import wrap
from watchkeeper.model.log.format.requests import (
    EARLIEST,
    LATEST,
    FetchRequest,
    FetchResponse,
    ProduceRequest,
)
from watchkeeper.model.plan.delivery_guarantee import DeliveryGuarantee
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.trace.kinds import EventKind

ENTRY = 50
"""Bytes of a message that `write` makes."""


def produce(cluster: Cluster, contents: Any, topic: str = "clicks", index: int = 0) -> None:
    """Let contents be appended by the broker."""
    process = cluster.world.processes["b0"]

    async def append() -> None:
        assert process.answer is not None
        await process.answer(ProduceRequest(topic, index, contents))

    process.start(append())
    cluster.world.run(5)


# --- one member --------------------------------------------------------------------------


def test_every_message_comes_once() -> None:
    """From two brokers, what was there before, and what comes while it reads."""
    cluster = Cluster(brokers=2)
    for _ in range(2):
        for broker in range(2):
            cluster.write("clicks", broker, 0, 2)
        if not cluster.members:
            cluster.member("c0", {"clicks": 1})
        cluster.world.run(3000)

    assert sorted(cluster.handed_to("c0")) == [*range(8)]
    assert cluster.violated() == []
    assert cluster.finding("delivery").verdict is Verdict.HOLDS


@pytest.mark.parametrize(
    ("reset", "committed", "number"),
    [
        ("smallest", None, 10),
        ("smallest", 10_000, 10),
        ("smallest", -1, 10),
        ("smallest", 4 * ENTRY, 6),
        ("largest", None, 0),
        ("largest", 10_000, 0),
        ("largest", -1, 0),
    ],
)
def test_where_a_group_begins(reset: str, committed: int | None, number: int) -> None:
    """Where it stands; else at the beginning or at the end, and also if that is out of range."""
    cluster = Cluster()
    cluster.write("clicks", 0, 0, 10)
    if committed is not None:
        preset(cluster, committed)
    cluster.member("c0", {"clicks": 1}, auto_offset_reset=reset)
    cluster.world.run(3000)

    assert len(cluster.handed_to("c0")) == number


def preset(cluster: Cluster, offset: int) -> None:
    """Let the group stand at an offset, as if it had committed it in an earlier life."""

    async def run() -> None:
        await new_session()
        path = "/consumers/group/offsets/clicks/0-0"
        await create_with_parents(Direct(), Create(path, str(offset).encode()))

    cluster.world.process("setup").start(run())
    cluster.world.run(100)
    cluster.world.rows.clear()


def test_what_was_handed_on_is_committed() -> None:
    """By the timer, and no further: what is in the queue does not count."""
    cluster = Cluster()
    cluster.write("clicks", 0, 0, 10)
    cluster.member("c0", {"clicks": 1}, slowly(400))
    cluster.world.run(2100)

    handed = len(cluster.handed_to("c0"))
    assert 3 <= handed <= 6
    assert cluster.offset("clicks", "0-0") in [(handed - at) * ENTRY for at in (0, 1, 2, 3)]


def test_the_next_owner_goes_on_where_the_last_one_stopped() -> None:
    """A member that leaves gracefully commits what it received."""
    cluster = Cluster()
    cluster.write("clicks", 0, 0, 10)
    cluster.member("c0", {"clicks": 1}, slowly(300))
    cluster.world.run(1700)
    cluster.stop("c0")
    cluster.member("c1", {"clicks": 1})
    cluster.world.run(3000)

    assert cluster.handed_to("c0") + cluster.handed_to("c1") == [*range(10)]
    assert cluster.handed_to("c1")


def test_topics_of_one_call_cost_one_rebalance() -> None:
    """Three topics in one registration; each stream gets its own."""
    topics = {"clicks": 2, "views": 1, "likes": 1}
    cluster = Cluster(topics=topics)
    for topic in topics:
        cluster.write(topic, 0, 0, 3)
    found: list[Delivery] = []
    cluster.member("c0", topics, noting(found))
    cluster.world.run(3000)

    ended = [event for event in cluster.world.rows if event.kind == EventKind.REBALANCE_COMPLETED]
    assert [event.detail["owns"] for event in ended] == [4]
    assert {handed.partition.topic for handed in found} == set(topics)
    assert len(cluster.members["c0"].streams) == 4


def test_a_filter_has_streams_for_all_it_allows() -> None:
    """Shared by the topics that are there, and by those that come later."""
    cluster = Cluster(topics={"clicks-a": 2, "clicks-b": 2, "views": 1})
    cluster.member("c0", "clicks.*", streams=2)
    cluster.world.run(1000)
    for topic in ("clicks-a", "clicks-b", "views", "clicks-new"):
        for index in range(2 if topic.startswith("clicks-") and topic != "clicks-new" else 1):
            cluster.write(topic, 0, index, 3)
    cluster.world.run(10_000)

    consumed = [event for event in cluster.world.rows if event.kind == EventKind.CONSUMED]
    assert {event.topic for event in consumed} == {"clicks-a", "clicks-b", "clicks-new"}
    assert {event.detail["stream"] for event in consumed} == {0, 1}
    assert len(cluster.handed_to("c0")) == 15


@pytest.mark.parametrize(
    "wrong",
    [
        lambda connector: connector.create_message_streams({}),
        lambda connector: connector.create_message_streams({"clicks": 0}),
        lambda connector: connector.create_message_streams_by_filter("a.*", 0),
        lambda connector: connector.create_message_streams_by_filter("a(", 1),
        lambda connector: connector.create_message_streams_by_filter("a", 1, "static"),
        lambda connector: [connector.create_message_streams({"a": 1}) for _ in range(2)],
    ],
)
def test_streams_that_make_no_sense_are_refused(wrong: Any) -> None:
    """None, none of a topic, a filter that is none; and streams are made once."""
    cluster = Cluster()
    process = cluster.world.process("c0", "group")
    connector = Connector(cluster.consumer("c0"), TraceWriter(process))

    with pytest.raises(InvalidConfig):
        wrong(connector)


def test_a_stream_says_when_nothing_comes_and_goes_on() -> None:
    """A time-out is no end."""
    cluster = Cluster()
    outcomes: list[str] = []

    async def app(connector: Connector, stream: Stream) -> None:
        while len(outcomes) < 6:
            try:
                handed = await stream.next()
                outcomes.append("message" if handed is not None else "over")
            except ConsumerTimeout:
                outcomes.append("nothing")

    cluster.member("c0", {"clicks": 1}, app, consumer_timeout_ms=500)
    cluster.world.run(1200)
    cluster.write("clicks", 0, 0, 2)
    cluster.world.run(3000)

    assert outcomes == ["nothing", "nothing", "message", "message", "nothing", "nothing"]


def test_shutdown_ends_the_streams_also_for_a_client_that_waits() -> None:
    """Then the member commits and is gone."""
    cluster = Cluster(topics={"clicks": 1, "views": 1})
    ended: list[str] = []

    async def app(connector: Connector, stream: Stream) -> None:
        await reads(connector, stream)
        ended.append(stream.queue)

    cluster.write("clicks", 0, 0, 3)
    cluster.member("c0", {"clicks": 1, "views": 1}, app, auto_commit_interval_ms=900_000)
    cluster.world.run(1000)
    cluster.stop("c0")

    assert len(ended) == 2
    assert cluster.offset("clicks", "0-0") == 3 * ENTRY
    assert cluster.owners() == {}
    assert cluster.world.processes["c0"].ended is not None


# --- what comes of bytes -------------------------------------------------------------------


def test_a_compressed_set_is_handed_on_message_by_message() -> None:
    """All but the last go on where the set begins: a commit in the middle repeats the set."""
    cluster = Cluster()
    messages = [Message.of(payload_of("w", number, 40)) for number in range(10)]
    produce(cluster, wrap(messages, Codec.GZIP))
    cluster.member("c0", {"clicks": 1}, slowly(300))
    cluster.world.run(1700)
    cluster.stop("c0")
    cluster.member("c1", {"clicks": 1})
    cluster.world.run(2000)

    assert cluster.handed_to("c0") == [*range(len(cluster.handed_to("c0")))]
    assert 0 < len(cluster.handed_to("c0")) < 10
    assert cluster.handed_to("c1") == [*range(10)]


def test_a_message_larger_than_a_fetch_is_an_error_of_the_stream() -> None:
    """Not silence: the application learns why nothing comes."""
    cluster = Cluster()
    for size in (20, 20, 200, 20):
        cluster.write("clicks", 0, 0, 1, size)
    outcomes: list[Exception] = []
    cluster.member("c0", {"clicks": 1}, telling(outcomes), fetch_size=100)
    cluster.world.run(5000)

    assert cluster.handed_to("c0") == [0, 1]
    assert [type(error) for error in outcomes] == [InvalidMessageSize]


def telling(errors: list[Exception]) -> Any:
    """Note what goes wrong, and read on."""

    async def app(connector: Connector, stream: Stream) -> None:
        while not stream.is_over:
            try:
                await stream.next()
            except LogError as error:
                errors.append(error)

    return app


def test_a_damaged_message_is_an_error_of_the_stream() -> None:
    """Messages before it are delivered; messages behind it are not skipped silently."""
    cluster = Cluster()
    cluster.write("clicks", 0, 0, 3)
    storage = cluster.world.processes["b0"].storage
    [path] = [name for name in storage.files if name.startswith("clicks-0/")]
    contents = storage.files[path].contents
    assert isinstance(contents, bytes)
    storage.files[path].contents = contents[: ENTRY + 20] + b"!" + contents[ENTRY + 21 :]
    outcomes: list[Exception] = []
    cluster.member("c0", {"clicks": 1}, telling(outcomes))
    cluster.world.run(3000)

    assert cluster.handed_to("c0") == [0]
    assert [type(error) for error in outcomes] == [InvalidMessage]
    assert cluster.offset("clicks", "0-0") == ENTRY


def test_a_series_is_handed_on_as_many_at_a_time_as_are_requested() -> None:
    """Simulated messages, ten thousand of them, cut where a fetch ends."""
    cluster = Cluster()
    produce(cluster, whole_series(Series("w", 0, 10_000, 90)))
    found: list[Delivery] = []

    async def app(connector: Connector, stream: Stream) -> None:
        while (handed := await stream.next(max_messages=300)) is not None:
            found.append(handed)

    cluster.member("c0", {"clicks": 1}, app, fetch_size=100_050)
    cluster.world.run(3000)

    assert sum(handed.size for handed in found) == 10_000
    assert max(handed.size for handed in found) == 300
    assert cluster.handed_to("c0") == [*range(10_000)]
    assert [message.next_offset for message in found[:-1]] == [
        message.offset for message in found[1:]
    ]


# --- queues ------------------------------------------------------------------------------


def test_a_stream_that_is_not_read_holds_no_more_than_its_queue() -> None:
    """The limit of chunks, and the one that the task waits to queue."""
    cluster = Cluster()
    cluster.write("clicks", 0, 0, 100)
    connector = cluster.member(
        "c0", {"clicks": 1}, after_a_while(900_000), fetch_size=ENTRY, queuedchunks_max=3
    )
    cluster.world.run(10_000)

    [place] = connector.fetcher.positions.values()
    assert place.fetch_offset == 3 * ENTRY
    assert place.consumed_offset == 0


def test_no_partition_of_a_stream_waits_for_all_of_another() -> None:
    """One has a thousand messages, the others a few: theirs come early."""
    cluster = Cluster(brokers=2, topics={"clicks": 2})
    cluster.write("clicks", 0, 0, 1000)
    for broker, index in ((0, 1), (1, 0), (1, 1)):
        cluster.write("clicks", broker, index, 5)
    found: list[Delivery] = []
    cluster.member("c0", {"clicks": 1}, noting(found), fetch_size=10 * ENTRY)
    cluster.world.run(5000)

    last_of_few = max(at for at, place in enumerate(found) if place.partition.name != "0-0")
    assert len(found) == 1015
    assert last_of_few < 150


def test_a_stream_that_is_not_read_does_not_keep_a_member_from_stopping() -> None:
    """Its queue is full and a task waits for room; another member joins and gets its share."""
    cluster = Cluster(topics={"clicks": 2})
    for index in range(2):
        cluster.write("clicks", 0, index, 50)
    cluster.member(
        "c1", {"clicks": 1}, after_a_while(900_000), fetch_size=ENTRY, queuedchunks_max=1
    )
    cluster.world.run(3000)
    cluster.member("c0", {"clicks": 1})
    cluster.world.run(5000)

    assert cluster.owners() == {"0-0": "c0-0", "0-1": "c1-0"}
    assert len(cluster.handed_to("c0")) == 50


# --- several members ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_hand_over_in_good_order_loses_and_repeats_nothing(seed: int) -> None:
    """Members join and leave while messages arrive, with any order of the tasks."""
    cluster = Cluster(brokers=2, topics={"clicks": 2}, seed=seed)
    names = ["c2", "c0", "c1"]
    for at, name in enumerate(names):
        cluster.member(name, {"clicks": 1}, slowly(7 * at), fetch_size=3 * ENTRY)
        for number in range(4):
            cluster.write("clicks", number % 2, number // 2, 20)
            cluster.world.run(37 * (seed % 5) + 11)
    cluster.stop("c0")
    cluster.world.run(20_000)

    assert cluster.violated() == []
    assert cluster.finding("delivery").verdict is Verdict.HOLDS
    assert "not yet read" not in cluster.finding("delivery").evidence


def test_a_crash_repeats_no_more_than_was_not_committed() -> None:
    """At least once: nothing is lost."""
    cluster = Cluster()
    cluster.write("clicks", 0, 0, 200)
    cluster.member("c0", {"clicks": 1}, slowly(50))
    cluster.world.run(5500)
    committed = (cluster.offset("clicks", "0-0") or 0) // ENTRY
    handed = len(cluster.handed_to("c0"))
    cluster.crash("c0")
    cluster.world.expire(cluster.world.processes["c0"])
    cluster.member("c1", {"clicks": 1})
    cluster.world.run(10_000)

    assert 0 < committed < handed
    finding = cluster.finding("delivery", DeliveryGuarantee("at least once", ("clicks",)))
    assert finding.verdict is Verdict.HOLDS
    assert f"{handed - committed} handed on again" in finding.evidence


def test_a_broker_that_comes_back_is_read_on() -> None:
    """By the task that has waited for it, from its position."""
    cluster = Cluster()
    cluster.write("clicks", 0, 0, 5)
    cluster.member("c0", {"clicks": 1})
    cluster.world.run(1000)
    was = cluster.world.processes["b0"]
    cluster.world.kill(was)
    cluster.world.run(1500)
    cluster.start_broker(0, was=was)
    cluster.world.run(1000)
    cluster.write("clicks", 0, 0, 5)
    cluster.world.run(8000)

    assert cluster.handed_to("c0") == [*range(10)]


def test_a_group_that_commits_what_it_read_last_repeats_one_message() -> None:
    """As the design pages have it; the offset is the beginning of that message."""
    cluster = Cluster(variant=DOCUMENTED)
    cluster.write("clicks", 0, 0, 10)
    cluster.member("c0", {"clicks": 1})
    cluster.world.run(3000)
    committed = cluster.offset("clicks", "0-0")
    cluster.crash("c0")
    cluster.world.expire(cluster.world.processes["c0"])
    cluster.member("c1", {"clicks": 1})
    cluster.world.run(5000)

    assert committed == 9 * ENTRY
    assert cluster.handed_to("c1") == [9]


# --- committing --------------------------------------------------------------------------


def test_an_application_commits_when_it_likes() -> None:
    """With automatic commits off, only then."""
    cluster = Cluster()
    cluster.write("clicks", 0, 0, 10)
    outcomes: list[bool] = []

    async def app(connector: Connector, stream: Stream) -> None:
        for _ in range(4):
            await stream.next()
        outcomes.append(await connector.commit_offsets())
        for _ in range(3):
            await stream.next()

    cluster.member("c0", {"clicks": 1}, app, auto_commit_enable=False)
    cluster.world.run(20_000)

    assert outcomes == [True]
    assert len(cluster.handed_to("c0")) == 7
    assert cluster.offset("clicks", "0-0") == 4 * ENTRY


def test_threads_that_commit_at_once_wait_for_one_another() -> None:
    """Each commit is reported as done."""
    cluster = Cluster(topics={"clicks": 4}, seed=3)
    for index in range(4):
        cluster.write("clicks", 0, index, 20)
    outcomes: list[bool] = []

    async def app(connector: Connector, stream: Stream) -> None:
        async for _ in stream:
            outcomes.append(await connector.commit_offsets())

    cluster.member("c0", {"clicks": 4}, app, auto_commit_enable=False)
    cluster.world.run(5000)

    assert outcomes == [True] * 80
    assert [cluster.offset("clicks", f"0-{index}") for index in range(4)] == [20 * ENTRY] * 4


def test_a_commit_that_does_not_get_through_is_known_not_to() -> None:
    """The connection is gone: it is not done in time. Later the member commits again."""
    cluster = Cluster()
    cluster.write("clicks", 0, 0, 4)
    outcomes: list[bool] = []

    async def app(connector: Connector, stream: Stream) -> None:
        await stream.next()
        outcomes.append(await connector.commit_offsets())
        cluster.world.disconnect(cluster.world.processes["c0"])
        await sleep(10)
        outcomes.append(await connector.commit_offsets(timeout_ms=500))
        cluster.world.reconnect(cluster.world.processes["c0"])
        await sleep(3000)
        await stream.next()
        outcomes.append(await connector.commit_offsets(timeout_ms=5000))

    cluster.member("c0", {"clicks": 1}, app, auto_commit_enable=False)
    cluster.world.run(20_000)

    assert outcomes == [True, False, True]


@pytest.mark.parametrize("variant", [HARDENED, DOCUMENTED], ids=lambda variant: variant.name)
@pytest.mark.parametrize("why", [ConnectionLoss, SessionExpired, NoAuth])
def test_a_commit_that_fails_is_reported(why: type[ZooKeeperError], variant: Variant) -> None:
    """The application waits without a limit; it goes on, and its next commit is written."""
    cluster = Cluster(variant=variant)
    cluster.write("clicks", 0, 0, 2)
    outcomes: list[bool] = []

    def end() -> None:
        member = cluster.world.processes["c0"]
        if why is ConnectionLoss:
            cluster.world.disconnect(member)
            cluster.world.at(500_000, lambda: cluster.world.reconnect(member))
        elif why is SessionExpired:
            cluster.world.expire(member)

    async def app(connector: Connector, stream: Stream) -> None:
        await stream.next()
        cluster.world.refusals["c0", "commit"] = Failure(why)
        cluster.world.at(0, end)
        outcomes.append(await connector.commit_offsets())
        await sleep(5000)
        await stream.next()
        outcomes.append(await connector.commit_offsets())

    cluster.member("c0", {"clicks": 1}, app, auto_commit_enable=False)
    cluster.world.run(30_000)

    assert outcomes == [False, True]
    assert cluster.offset("clicks", "0-0")


class AlwaysRefused(dict[tuple[str, str], Failure]):
    """Requests that are refused each time."""

    def pop(self, key: tuple[str, str], default: Any = None) -> Any:
        """Keep the refusal."""
        return self.get(key, default)


@pytest.mark.parametrize("variant", [HARDENED, KAFKA_07], ids=lambda variant: variant.name)
def test_a_member_leaves_though_its_last_commit_is_refused(variant: Variant) -> None:
    """A commit that ZooKeeper always refuses is reported, and does not keep the member."""
    cluster = Cluster(variant=variant)
    cluster.write("clicks", 0, 0, 2)
    cluster.member("c0", {"clicks": 1}, auto_commit_interval_ms=60_000)
    cluster.world.run(900)
    cluster.world.refusals = AlwaysRefused({("c0", "commit"): Failure(NoAuth)})
    cluster.stop("c0")

    assert cluster.handed_to("c0") == [0, 1]
    assert cluster.world.processes["c0"].ended == Ended("left")
    assert cluster.owners() == {}


# --- the simple consumer -----------------------------------------------------------------


def test_a_request_that_fails_is_sent_once_more() -> None:
    """Over a new connection, and no third time."""
    for failures, outcomes in ((0, [b"", 1]), (1, [b"", 2]), (2, ["failed", 2])):
        world = World()
        broker = world.process("b0")
        requests: list[Any] = []

        async def answer(request: Any, requests: list[Any] = requests) -> FetchResponse:
            requests.append(request)
            if len(requests) <= failures:  # noqa: B023
                raise WrongPartition("on purpose")
            return FetchResponse(b"")

        broker.answer = answer
        world.listen("b0:9092", broker)
        found: list[Any] = []

        async def app(found: list[Any] = found) -> None:
            try:
                response = await SimpleConsumer("b0:9092").fetch(FetchRequest("a", 0, 0, 1))
                found.append(response.messages)
            except CallError:
                found.append("failed")

        world.process("p").start(app())
        world.run()

        assert [*found, len(requests)] == outcomes


def test_the_simple_consumer_asks_for_offsets_and_for_several_partitions() -> None:
    """And raises what a broker says is wrong."""
    cluster = Cluster(topics={"clicks": 2}, logs={"log.file.size": 90})
    for _ in range(5):
        cluster.write("clicks", 0, 0, 1)
    found: list[Any] = []

    async def app() -> None:
        consumer = SimpleConsumer("b0:9092")
        found.append(await consumer.offsets_before("clicks", 0, LATEST, 10))
        found.append(await consumer.offsets_before("clicks", 0, EARLIEST, 10))
        parts = await consumer.multifetch(
            [FetchRequest("clicks", 0, 200, 1000), FetchRequest("clicks", 1, 7, 1000)]
        )
        found.append([(len(part.messages), part.error_code) for part in parts])
        beyond = await consumer.fetch(FetchRequest("clicks", 0, 999, 1))
        found.append(beyond.error_code)
        await consumer.close()
        try:
            await consumer.offsets_before("clicks", 9, LATEST, 1)
        except LogError as error:
            found.append(type(error))

    cluster.world.process("p").start(app())
    cluster.world.run()

    assert found == [
        (250, 200, 100, 0),
        (0,),
        [(50, 0), (0, 0)],
        OffsetOutOfRange.code,
        WrongPartition,
    ]


def test_partitions_are_named_by_their_number_at_the_broker() -> None:
    """Layout 0.7: what follows the dash."""
    cluster = Cluster(brokers=2, topics={"clicks": 2}, variant=KAFKA_07)
    cluster.write("clicks", 1, 1, 3)
    found: list[Delivery] = []
    cluster.member("c0", {"clicks": 1}, noting(found))
    cluster.world.run(5000)

    assert {place.partition for place in found} == {Partition("clicks", "1-1")}
    assert len(found) == 3
