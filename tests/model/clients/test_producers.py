"""Producers: what they refuse to be, where they send, how they gather, and how they close."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

import pytest

from tests.support.messages.world import Process, World
from watchkeeper.model.actor.effects import new_session, now_ms, sleep
from watchkeeper.model.actor.rpc import CallError
from watchkeeper.model.clients.errors import (
    ClientError,
    InvalidConfig,
    InvalidPartition,
    NoBrokersForPartition,
    QueueClosed,
    QueueFull,
    UnavailableProducer,
)
from watchkeeper.model.clients.producer.batch_sender import BatchSender
from watchkeeper.model.clients.producer.connection_pool import ConnectionPool, Sender
from watchkeeper.model.clients.producer.interceptors import DefaultEventHandler, Hooks
from watchkeeper.model.clients.producer.metadata import BROKERS, BrokerPartition, BrokerTable
from watchkeeper.model.clients.producer.partitioners import (
    PARTITIONERS,
    by_java_hash,
    by_murmur2,
    custom,
    java_remainder,
    murmur2,
)
from watchkeeper.model.clients.producer.producer import Plugins, Producer, ProducerData
from watchkeeper.model.clients.producer.record_batch import RecordBatch, encode_bytes
from watchkeeper.model.clients.producer.settings import PRODUCER_SETTINGS, producer_settings
from watchkeeper.model.log.format.contents import Series
from watchkeeper.model.log.format.errors import MessageSizeTooLarge
from watchkeeper.model.log.format.message_set_07 import payloads
from watchkeeper.model.log.format.requests import (
    MultiProduceRequest,
    OffsetsRequest,
    OffsetsResponse,
    ProduceRequest,
)
from watchkeeper.model.trace.kinds import EventKind

LISTED = {"broker.list": "0:b0:9092,1:b1:9092"}
ONE = {"broker.list": "0:b0:9092"}
FOUND = {"zk.connect": "zk:2181"}


# --- settings --------------------------------------------------------------------------


def test_the_defaults_are_those_of_kafka() -> None:
    """The table of 0.7.2."""
    settings = producer_settings(ONE)

    assert {
        row.key: getattr(settings, row.field)
        for row in PRODUCER_SETTINGS
        if row.field not in ("brokers", "zookeeper", "partitioner", "serializer")
    } == {
        "producer.type": "sync",
        "compression.codec": 0,
        "compressed.topics": (),
        "zk.read.num.retries": 3,
        "num.retries": 0,
        "buffer.size": 102_400,
        "connect.timeout.ms": 5000,
        "socket.timeout.ms": 30_000,
        "reconnect.interval": 30_000,
        "reconnect.time.interval.ms": 10_000_000,
        "max.message.size": 1_000_000,
        "queue.time": 5000,
        "queue.size": 10_000,
        "queue.enqueueTimeout.ms": 0,
        "batch.size": 200,
    }


def test_brokers_are_read_from_their_list() -> None:
    """By id, with the address of each."""
    settings = producer_settings({"broker.list": "2:[::1]:9092, 1:b1.example:9093"})

    assert settings.brokers == ((1, "b1.example:9093"), (2, "[::1]:9092"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "neither broker.list nor zk.connect"),
        ({**ONE, **FOUND}, "are both given"),
        ({**ONE, "partitioner.class": "murmur2"}, "partitioner.class is given with broker.list"),
        ({"broker.list": "b0:9092"}, "expected id:host:port"),
        ({"broker.list": "0:b0:9092,0:b1:9092"}, "an id occurs twice"),
        ({"broker.list": 7}, "expected id:host:port"),
        ({"zk.connect": 7}, "expected text"),
        ({**ONE, "producer.type": "fast"}, "expected one of sync, async"),
        ({**ONE, "compression.codec": True}, "expected one of 0, 1, 2"),
        ({**ONE, "compression.codec": "true"}, "expected one of 0, 1, 2"),
        ({**ONE, "batch.size": 0}, "whole number of at least 1"),
        ({**ONE, "batch.size": "two"}, "whole number of at least 1"),
        ({**ONE, "queue.enqueueTimeout.ms": -2}, "whole number of at least -1"),
        ({**ONE, "compressed.topics": 1}, "expected topics"),
        ({**ONE, "batchsize": 1}, "did you mean batch.size?"),
        ({**ONE, "colour": 1}, "expected one of broker.list"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, Any], message: str) -> None:
    """In a sentence that says what was expected."""
    with pytest.raises(InvalidConfig, match=message):
        producer_settings(given)


def test_numbers_may_be_text() -> None:
    """As in a file of Kafka's settings."""
    texts = {**ONE, "producer.type": "async", "batch.size": "50", "compression.codec": "2"}

    assert producer_settings(texts).batch_messages == 50
    assert producer_settings(texts).codec_for("clicks") == 2


def test_some_topics_are_compressed_or_all() -> None:
    """No topic named means every topic; no codec means none."""
    some = producer_settings({**ONE, "compression.codec": 2, "compressed.topics": "a,b"})

    assert [some.codec_for(topic) for topic in "abc"] == [2, 2, 0]
    assert producer_settings({**ONE, "compression.codec": 1}).codec_for("c") == 1


# --- partitioners ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
    ],
)
def test_murmur2_is_that_of_kafka(key: str, value: int) -> None:
    """Known values."""
    assert murmur2(key.encode()) == value


def answered(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The value of a coroutine that asks for nothing."""
    with pytest.raises(StopIteration) as done:
        coroutine.send(None)
    return done.value.value


def test_the_hash_of_java_and_its_one_defect() -> None:
    """`abs` of the lowest number is negative, and so is what is left of it."""
    assert answered(by_java_hash("test-group", 50)) == 12
    assert answered(by_java_hash("polygenelubricants", 7)) == -2
    assert answered(by_murmur2("polygenelubricants", 7)) in range(7)
    assert [java_remainder(code, 3) for code in (-4, -3, -1, 0, 4)] == [-1, 0, -1, 0, 1]


def test_a_negative_partition_is_an_error() -> None:
    """No message is sent to a partition that does not exist."""
    world, app = producing(brokers=2)
    outcome = run(
        world, app, FOUND, ProducerData("new", (b"m",), "polygenelubricants"), partitions=7
    )

    assert isinstance(outcome, InvalidPartition)
    assert "partition -2 of 7" in str(outcome)


# --- a world with brokers that write down what they are sent ------------------------------

Requests = list[tuple[str, Any]]


def producing(brokers: int = 1, seed: int | None = None) -> tuple[World, Process]:
    """Brokers that take everything, and a process for a producer."""
    world = World(seed)
    for number in range(brokers):
        recorder(world, number)
    return world, world.process("p")


def recorder(world: World, number: int, takes_ms: int = 0) -> Process:
    """A broker that writes down the messages that it is sent."""
    broker = world.process(f"b{number}")

    async def answer(request: Any) -> OffsetsResponse | None:
        if takes_ms:
            await sleep(takes_ms)
        if isinstance(request, OffsetsRequest):
            return OffsetsResponse((0,))
        received(world).append((broker.name, request))
        return None

    broker.answer = answer
    world.listen(f"b{number}:9092", broker)
    return broker


def comes_up(world: World) -> None:
    """Broker 0 is there from now on."""
    recorder(world, 0)


def received(world: World) -> Requests:
    """What brokers were sent, in order."""
    found: Requests = world.__dict__.setdefault("received", [])
    return found


def table(*counts: int, topic: str = "new") -> BrokerTable:
    """Return the numbers of partitions of a topic at each broker, from broker 0 on."""
    brokers = tuple((number, f"b{number}:9092") for number in range(len(counts)))
    return BrokerTable(brokers, ((topic, tuple(enumerate(counts))),))


def run(
    world: World,
    app: Process,
    given: dict[str, Any],
    *data: ProducerData,
    partitions: int = 1,
    plugins: Plugins | None = None,
) -> Producer | ClientError:
    """Send once; the producer, or why it would not."""
    producer = Producer(producer_settings(given), plugins or Plugins())
    if producer.settings.finds_brokers:
        app.posted.setdefault(BROKERS, table(partitions))
    outcome: list[Any] = []

    async def application() -> None:
        try:
            await producer.send(*data)
            outcome.append(producer)
        except (ClientError, MessageSizeTooLarge) as error:
            outcome.append(error)

    app.start(application())
    world.run()
    return outcome[0]  # type: ignore[no-any-return]


def sent_to(world: World) -> list[tuple[str, str, int]]:
    """Broker, topic and partition of each single request."""
    return [(name, place.topic, place.partition) for name, place in received(world)]


# --- where to --------------------------------------------------------------------------

LENGTH = Plugins(partitioner=custom(lambda key, number: len(key) % number))


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (table(1, 1), ("b0", 0)),
        (table(4, 1), ("b1", 0)),
        (table(2, 3), ("b1", 2)),
        (BrokerTable(((0, "b0:9092"),), (("new", ((0, 4), (1, 1))),)), ("b0", 0)),
        (BrokerTable(((0, "b0:9092"), (1, "b1:9092"))), ("b0", 0)),
    ],
    ids=["one each", "4 mod 5", "4 mod 5 of 2 and 3", "broker 1 is dead", "an unknown topic"],
)
def test_a_key_chooses_among_all_partitions(
    known: BrokerTable, expected: tuple[str, int]
) -> None:
    """Sorted by broker and then by number; a topic that is nowhere has partition 0 everywhere."""
    world, app = producing(brokers=2)
    app.posted[BROKERS] = known
    run(world, app, FOUND, ProducerData("new", (b"m",), "four"), plugins=LENGTH)

    broker, partition = expected
    assert sent_to(world) == [(broker, "new", partition)]


def test_a_listed_broker_chooses_the_partition() -> None:
    """The request says -1, and any of the brokers gets it."""
    world, app = producing(brokers=2)
    for _ in range(20):
        run(world, app, LISTED, ProducerData("new", (b"m",), "key"))

    assert {partition for _, _, partition in sent_to(world)} == {-1}
    assert {broker for broker, _, _ in sent_to(world)} == {"b0", "b1"}


def test_without_a_key_any_partition_is_chosen() -> None:
    """And by the partitioner named random with a key as well."""
    world, app = producing()
    for _ in range(40):
        run(world, app, FOUND, ProducerData("new", (b"m",)), partitions=4)
        run(
            world,
            app,
            {**FOUND, "partitioner.class": "random"},
            ProducerData("new", (b"m",), "key"),
        )

    assert {partition for _, _, partition in sent_to(world)} == {0, 1, 2, 3}


@pytest.mark.parametrize("name", [name for name in PARTITIONERS if name != "random"])
def test_a_key_goes_to_the_same_partition_always(name: str) -> None:
    """Whichever producer sends it."""
    world, app = producing()
    for _ in range(5):
        run(
            world,
            app,
            {**FOUND, "partitioner.class": name},
            ProducerData("new", (b"m",), "key"),
            partitions=5,
        )

    assert len({partition for _, _, partition in sent_to(world)}) == 1


def test_without_a_broker_the_key_is_named() -> None:
    """The table is read again so often, and then there is none."""
    world, app = producing()
    app.posted[BROKERS] = BrokerTable()

    async def session() -> None:
        await new_session()

    app.start(session())
    outcome = run(world, app, FOUND, ProducerData("new", (b"m",), "a-key"))

    assert isinstance(outcome, NoBrokersForPartition)
    assert "a-key" in str(outcome)


def test_the_pool_says_which_brokers_it_has() -> None:
    """An unknown broker has no sender."""
    pool: ConnectionPool[Sender] = ConnectionPool(
        lambda broker, address: Sender(address, producer_settings(ONE))
    )
    answered(pool.follow([(0, "b0:9092"), (2, "b2:9092")]))

    with pytest.raises(UnavailableProducer, match=r"broker 1.*\[0, 2\]"):
        pool.sender(1)


# --- at once ---------------------------------------------------------------------------


def test_what_goes_to_one_broker_goes_together() -> None:
    """One message in a request of its own, several in one request."""
    world, app = producing(brokers=2)
    app.posted[BROKERS] = table(1, 1)
    run(world, app, FOUND, ProducerData("new", (b"1",), "a"), plugins=LENGTH)
    many = [
        ProducerData("new", (b"2",), "aa"),
        ProducerData("new", (b"3",), "a"),
        ProducerData("old", (b"4",), "aaaa"),
    ]
    run(world, app, FOUND, *many, plugins=LENGTH)

    assert [(name, type(request)) for name, request in received(world)] == [
        ("b1", ProduceRequest),
        ("b0", MultiProduceRequest),
        ("b1", ProduceRequest),
    ]
    assert [produce.topic for produce in received(world)[1][1].produces] == ["new", "old"]


def test_no_messages_make_no_request() -> None:
    """Neither alone nor beside others."""
    world, app = producing()
    run(world, app, ONE, ProducerData("new", ()))
    run(world, app, ONE, ProducerData("new", ()), ProducerData("new", (b"m",)))

    assert [type(request) for _, request in received(world)] == [ProduceRequest]


@pytest.mark.parametrize(
    ("given", "messages"),
    [
        ({}, (b"x" * 101,)),
        ({"compression.codec": 1}, tuple(bytes([65 + at] * 10 + [at] * 10) for at in range(20))),
    ],
    ids=["payload", "wrapper"],
)
def test_a_message_that_is_too_large_is_refused(
    given: dict[str, Any], messages: tuple[bytes, ...]
) -> None:
    """By the size with which it would be sent: compressed, if it is."""
    world, app = producing()
    outcome = run(
        world, app, {**ONE, "max.message.size": 100, **given}, ProducerData("new", messages)
    )

    assert isinstance(outcome, MessageSizeTooLarge)
    assert received(world) == []


def test_what_is_sent_is_encoded_and_compressed() -> None:
    """Text by the encoder of that name, all of one request in one wrapper."""
    world, app = producing()
    given = {**ONE, "serializer.class": "string", "compression.codec": 1}
    run(world, app, given, ProducerData("new", ("eins", "zwei")))
    refused = run(world, app, ONE, ProducerData("new", ("eins",)))

    [(_, request)] = received(world)
    assert payloads(request.messages) == [b"eins", b"zwei"]
    assert isinstance(refused, InvalidConfig)


def test_a_connection_that_cannot_be_made_is_tried_for_a_while() -> None:
    """With pauses of 1, 10, 100, 1,000 ms; a fifth would be over after the time that is set."""
    for comes_back_ms, number in ((1_000, 1), (1_500, 0)):
        world, app = producing(brokers=0)
        world.at(comes_back_ms * 1000, partial(comes_up, world))
        failed: list[str] = []

        async def application(failed: list[str] = failed) -> None:
            try:
                await Producer(producer_settings(ONE)).send(ProducerData("new", (b"m",)))
            except Exception as error:
                failed.append(str(error))

        app.start(application())
        world.run()

        assert len(received(world)) == number
        assert len(failed) == 1 - number


@pytest.mark.parametrize(
    ("retries", "failed", "stored"), [(0, [2], [[b"0"]]), (1, [], [[b"0"], [b"2"]])]
)
def test_a_first_write_into_a_dead_connection_is_swallowed(
    retries: int, failed: list[int], stored: list[list[bytes]]
) -> None:
    """The loss is not reported; the next request fails, and is retried if that is configured."""
    world, app = producing()
    producer = Producer(producer_settings({**ONE, "num.retries": retries}))
    outcome: list[int] = []

    async def application() -> None:
        for number in range(3):
            await sleep(100)
            try:
                await producer.send(ProducerData("new", (b"%d" % number,)))
            except CallError:
                outcome.append(number)

    def restart() -> None:
        world.kill(world.processes["b0"])
        recorder(world, 0)

    app.start(application())
    world.at(150_000, restart)
    world.run()

    assert outcome == failed
    assert [payloads(batch.messages) for _, batch in received(world)] == stored


def test_a_balancer_deals_out_connections() -> None:
    """One connection is one broker, until it is renewed after a number of messages."""
    world, app = producing(brokers=3)
    brokers = [world.processes[f"b{number}"] for number in range(3)]
    dealt = iter(brokers * 10)
    world.listening["balancer:9092"] = lambda: next(dealt)
    given = {"broker.list": "0:balancer:9092", "reconnect.interval": 4}
    producer = Producer(producer_settings(given))

    async def application() -> None:
        for number in range(12):
            await producer.send(ProducerData("new", (b"%d" % number,)))

    app.start(application())
    world.run()

    by_number = sorted(
        (int(payloads(batch.messages)[0]), name) for name, batch in received(world)
    )
    assert [name for _, name in by_number] == ["b0"] * 4 + ["b1"] * 4 + ["b2"] * 4


def test_a_connection_is_made_anew_after_some_time() -> None:
    """However little went over it."""
    world, app = producing(brokers=2)
    dealt = iter([world.processes["b0"], world.processes["b1"]])
    world.listening["balancer:9092"] = lambda: next(dealt)
    given = {"broker.list": "0:balancer:9092", "reconnect.time.interval.ms": 1000}
    producer = Producer(producer_settings(given))

    async def application() -> None:

        for _ in range(4):
            await producer.send(ProducerData("new", (b"m",)))
            await sleep(600)

    app.start(application())
    world.run()

    assert [broker for broker, _, _ in sent_to(world)] == ["b0", "b0", "b0", "b1"]


# --- by a queue ------------------------------------------------------------------------

ASYNC = {**ONE, "producer.type": "async"}
Script = Callable[[Producer], Coroutine[Any, Any, None]]


def batches(world: World) -> list[list[tuple[str, int, int]]]:
    """Of each request: topic, partition and number of messages of each of its parts."""
    return [
        [(part.topic, part.partition, len(payloads(part.messages))) for part in request.produces]
        for _, request in received(world)
    ]


def scripted(
    given: dict[str, Any],
    script: Script,
    *,
    takes_ms: int = 0,
    plugins: Plugins | None = None,
    known: BrokerTable | None = None,
) -> tuple[World, Producer]:
    """Let an application work with an asynchronous producer."""
    world = World()
    recorder(world, 0, takes_ms)
    app = world.process("p")
    if known is not None:
        app.posted[BROKERS] = known
    producer = Producer(producer_settings({**ASYNC, **given}), plugins or Plugins())
    app.start(script(producer))
    world.run()
    return world, producer


async def send(producer: Producer, number: int, topic: str = "new", key: Any = None) -> None:
    """Send a number of messages, one by one."""
    for message in range(number):
        await producer.send(ProducerData(topic, (b"%d" % message,), key))


def unstarted(world: World, **given: Any) -> BatchSender:
    """A queue whose sending task is not started."""
    recorder(world, 0)
    settings = producer_settings({**ASYNC, **given})
    return BatchSender(
        "queue",
        Sender("b0:9092", settings),
        settings,
        encode=encode_bytes,
        hooks=Hooks(),
        handler=DefaultEventHandler(settings),
    )


ELEVEN = [RecordBatch("new", -1, (b"%d" % number,)) for number in range(11)]


def test_a_full_queue_refuses_at_once() -> None:
    """The eleventh is refused, and closing sends the ten in one request."""
    world = World()
    queue = unstarted(world, **{"queue.size": 10, "batch.size": 100})
    refused: list[RecordBatch] = []

    async def script() -> None:
        for message in ELEVEN:
            try:
                await queue.send(message)
            except QueueFull:
                refused.append(message)
        await queue.start()
        await queue.close()

    world.process("p").start(script())
    world.run()

    assert refused == ELEVEN[10:]
    assert batches(world) == [[("new", -1, 10)]]


@pytest.mark.parametrize(("timeout_ms", "waited_ms"), [(-1, 2000), (300, 300), (2500, 2000)])
def test_a_full_queue_can_make_the_application_wait(timeout_ms: int, waited_ms: int) -> None:
    """For ever, or for this long; the sending task starts after two seconds."""
    world = World()
    queue = unstarted(world, **{"queue.size": 10, "queue.enqueueTimeout.ms": timeout_ms})
    outcome: list[tuple[str, int]] = []

    async def script() -> None:
        for item in ELEVEN[:10]:
            await queue.send(item)
        try:
            await queue.send(ELEVEN[10])
            outcome.append(("sent", await now_ms()))
        except QueueFull:
            outcome.append(("refused", await now_ms()))

    async def late() -> None:
        await sleep(2000)
        await queue.start()

    app = world.process("p")
    app.start(script())
    app.start(late())
    world.run()

    assert outcome == [("refused" if waited_ms == 300 else "sent", waited_ms)]


def test_closing_sends_what_waits_and_refuses_the_rest() -> None:
    """Ten, close, and one more."""
    outcome: list[type[BaseException]] = []

    async def script(producer: Producer) -> None:
        await send(producer, 10)
        await producer.close()
        try:
            await send(producer, 1)
        except QueueClosed as error:
            outcome.append(type(error))

    world, _ = scripted({}, script)

    assert outcome == [QueueClosed]
    assert batches(world) == [[("new", -1, 10)]]


def test_batches_are_of_the_size_that_is_set() -> None:
    """Ten, a pause, one more: five, five, and one, in that order."""

    async def script(producer: Producer) -> None:
        await send(producer, 10)
        await sleep(1000)
        await send(producer, 1)
        await producer.close()

    world, _ = scripted({"batch.size": 5}, script)

    assert batches(world) == [[("new", -1, 5)], [("new", -1, 5)], [("new", -1, 1)]]


def test_a_batch_waits_no_longer_than_is_set() -> None:
    """Three within the time; nothing closes the producer."""

    async def script(producer: Producer) -> None:
        await send(producer, 3)

    world, _ = scripted({"queue.time": 200}, script)

    assert batches(world) == [[("new", -1, 3)]]


def test_messages_that_trickle_in_do_not_make_a_batch_wait() -> None:
    """The time runs from the batch before, not from the last message."""

    async def script(producer: Producer) -> None:
        began = await now_ms()
        while await now_ms() < began + 2000:
            await send(producer, 1)
            await sleep(50)

    world, _ = scripted({"queue.time": 500}, script)

    assert [parts[0][2] for parts in batches(world)] == [10, 10, 10, 10]


def test_a_slow_broker_does_not_keep_close_from_returning() -> None:
    """A produce request has no response to wait for."""
    closed: list[bool] = []

    async def script(producer: Producer) -> None:
        await send(producer, 10)
        await producer.close()
        closed.append(True)

    scripted({"batch.size": 2}, script, takes_ms=1000)

    assert closed == [True]


@pytest.mark.parametrize(
    ("given", "messages", "expected"),
    [
        ({"batch.size": 10}, [("a", 0), ("b", 0)], [("a", 0, 5), ("b", 0, 5)]),
        (
            {"batch.size": 20},
            [("t2", 0), ("t2", 1), ("t1", 0), ("t1", 1)],
            [("t2", 0, 5), ("t2", 1, 5), ("t1", 0, 5), ("t1", 1, 5)],
        ),
    ],
    ids=["by topic", "by topic and partition"],
)
def test_a_batch_is_put_together_by_partition(
    given: dict[str, Any], messages: list[tuple[str, int]], expected: list[tuple[str, int, int]]
) -> None:
    """Five of each, mixed: one request, with a part for each."""
    known = BrokerTable(((0, "b0:9092"),), tuple((name, ((0, 2),)) for name in ("t1", "t2")))
    known = BrokerTable(known.brokers, (*known.topics, ("a", ((0, 1),)), ("b", ((0, 1),))))

    async def script(producer: Producer) -> None:
        for _ in range(5):
            for topic, partition in messages:
                await send(producer, 1, topic, partition)

    by_key = Plugins(partitioner=custom(lambda key, number: key))
    world, _ = scripted_found(given, script, known, by_key)

    assert batches(world) == [expected]


def scripted_found(
    given: dict[str, Any], script: Script, known: BrokerTable, plugins: Plugins
) -> tuple[World, Producer]:
    """The same with brokers that were found."""
    world = World()
    recorder(world, 0)
    app = world.process("p")
    app.posted[BROKERS] = known
    settings = producer_settings({**FOUND, "producer.type": "async", **given})
    producer = Producer(settings, plugins)
    app.start(script(producer))
    world.run()
    return world, producer


def test_a_batch_that_cannot_be_sent_is_dropped() -> None:
    """The application is not notified; the next batch is sent."""

    async def script(producer: Producer) -> None:
        await send(producer, 3)
        await sleep(10_000)
        await send(producer, 2)
        await producer.close()

    world = World()
    app = world.process("p")
    settings = producer_settings({**ASYNC, "queue.time": 100, "connect.timeout.ms": 500})
    producer = Producer(settings)
    app.start(script(producer))
    world.at(5_000_000, lambda: comes_up(world))
    world.run()

    assert batches(world) == [[("new", -1, 2)]]
    assert [
        event.detail["dropped"] for event in world.rows if event.kind == EventKind.SEND_FAILED
    ] == [3]


def test_a_series_is_sent_in_batches_too() -> None:
    """Simulated messages count by their number, wherever messages are counted."""

    async def script(producer: Producer) -> None:
        await producer.send(ProducerData("new", Series("p", 0, 12, 100)))
        await producer.close()

    world, _ = scripted({"batch.size": 5}, script)

    series = [
        [piece.series for part in request.produces for piece in part.messages]
        for _, request in received(world)
    ]
    assert [[(piece.first, piece.count) for piece in batch] for batch in series] == [
        [(0, 5)],
        [(5, 5)],
        [(10, 2)],
    ]


# --- hooks -----------------------------------------------------------------------------


class Noting(Hooks):
    """Writes down when each hook is called, and adds what it may add."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def start(self) -> None:
        self.calls.append("start")

    async def before_enqueue(self, item: RecordBatch) -> RecordBatch:
        self.calls.append("before")
        return item._replace(messages=(*item.messages, b"added"))  # type: ignore[misc]

    async def after_enqueue(self, item: RecordBatch, *, was_added: bool) -> None:
        self.calls.append("added" if was_added else "refused")

    async def after_dequeuing(self, item: RecordBatch | None) -> Sequence[RecordBatch]:
        self.calls.append("time is up" if item is None else "dequeued")
        return await super().after_dequeuing(item)

    async def before_sending(self, batch: Sequence[RecordBatch]) -> Sequence[RecordBatch]:
        self.calls.append(f"sends {sum(part.size for part in batch)}")
        return batch

    async def last_batch(self) -> Sequence[RecordBatch]:
        self.calls.append("last")
        return (RecordBatch("new", -1, (b"bye",)),)

    async def close(self) -> None:
        self.calls.append("close")


def test_hooks_are_called_in_their_order() -> None:
    """Around the queue, around each batch, and at the end."""
    hooks = Noting()

    async def script(producer: Producer) -> None:
        await send(producer, 2)
        await producer.close()

    world, _ = scripted({"batch.size": 3}, script, plugins=Plugins(hooks=hooks))

    enqueuing = [call for call in hooks.calls if call in ("start", "before", "added")]
    sending = [call for call in hooks.calls if call not in ("start", "before", "added")]
    assert enqueuing == ["start", "before", "added", "before", "added"]
    assert sending == ["dequeued", "dequeued", "sends 3", "last", "sends 2", "close"]
    assert [parts[0][2] for parts in batches(world)] == [3, 2]


def test_an_event_handler_of_ones_own_sends_instead() -> None:
    """It gets the batch, what sends, and the encoder."""
    handled: list[int] = []

    class Handler:
        async def handle(self, batch: Sequence[RecordBatch], sender: Sender, encode: Any) -> None:
            handled.append(sum(part.size for part in batch))

    async def script(producer: Producer) -> None:
        await send(producer, 4)
        await producer.close()

    world, _ = scripted({"batch.size": 3}, script, plugins=Plugins(handler=Handler()))

    assert handled == [3, 1]
    assert received(world) == []


# --- brokers that come and go ------------------------------------------------------------


def test_what_waits_for_a_broker_that_moves_goes_to_its_new_address() -> None:
    """Before what comes later: a broker has one queue, wherever it listens."""

    world = World()
    for number in range(2):
        recorder(world, number)
    app = world.process("p")
    app.posted[BROKERS] = table(1)
    settings = producer_settings({**FOUND, "producer.type": "async", "queue.time": 1000})
    producer = Producer(settings)

    async def script() -> None:
        await send(producer, 3)
        app.posted[BROKERS] = BrokerTable(((0, "b1:9092"),), (("new", ((0, 1),)),))
        await send(producer, 2)
        await sleep(100)
        await producer.close()

    app.start(script())
    world.run()

    assert [
        (name, len(payloads(request.produces[0].messages))) for name, request in received(world)
    ] == [
        ("b1", 5),
    ]


def test_places_are_sorted_by_broker_and_number() -> None:
    """As numbers: broker 10 comes after broker 2."""
    brokers = ((10, "b10:9092"), (2, "b2:9092"))
    known = BrokerTable(brokers, (("new", ((10, 2), (2, 1))),))

    assert known.partitions_of("new") == (
        BrokerPartition(2, 0),
        BrokerPartition(10, 0),
        BrokerPartition(10, 1),
    )
    assert known.address(2) == "b2:9092"
    assert known.address(3) is None
