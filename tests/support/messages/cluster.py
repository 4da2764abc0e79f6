"""A cluster in the small world: brokers that store messages, members that read them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from tests.support.messages.world import Process, TraceWriter, World
from watchkeeper.model.actor.effects import Partition, emit, sleep
from watchkeeper.model.actor.rpc import CallError
from watchkeeper.model.broker.registration import Broker, broker
from watchkeeper.model.broker.request_handler import Reply, Serving
from watchkeeper.model.clients.compositions.kafka_07 import SOUND, ClientSet
from watchkeeper.model.clients.consumer.chunks import Delivery
from watchkeeper.model.clients.consumer.connector import Connector
from watchkeeper.model.clients.consumer.streams import Stream
from watchkeeper.model.clients.errors import ClientError
from watchkeeper.model.clients.producer.metadata import metadata_program
from watchkeeper.model.clients.producer.producer import Plugins, Producer, ProducerData
from watchkeeper.model.clients.producer.settings import producer_settings
from watchkeeper.model.delivery.ledger import Outcome
from watchkeeper.model.delivery.message_id import payload_of, ranges_in
from watchkeeper.model.group.settings import consumer_settings
from watchkeeper.model.group.state import Consumer
from watchkeeper.model.group.variants import HARDENED, Variant
from watchkeeper.model.log.format.contents import Contents
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import encode
from watchkeeper.model.log.format.requests import ProduceRequest
from watchkeeper.model.log.log import AppendResult, FileView
from watchkeeper.model.log.log_manager import LogManager
from watchkeeper.model.log.settings import log_settings
from watchkeeper.model.log.storage import Read
from watchkeeper.model.plan.delivery_guarantee import DeliveryGuarantee
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.delivery import DeliveryJudge
from watchkeeper.model.properties.history import History
from watchkeeper.model.properties.ownership import MONOTONE, OwnershipJudge
from watchkeeper.model.properties.starvation import PunctualityJudge, StarvationJudge
from watchkeeper.model.properties.verdicts import Finding, Verdict
from watchkeeper.model.registry.subscription import Subscription
from watchkeeper.model.trace.kinds import EventKind

SESSION_MS = 6000
NO_PLAN = Plan("test", "a test", "hardened", (), (), (), 0)
QUICK = {
    "zookeeper.session.timeout.ms": SESSION_MS,
    "auto.commit.interval.ms": 1000,
    "fetcher.backoff.ms": 100,
    "auto.offset.reset": "smallest",
}
"""Settings with short intervals."""

App = Callable[[Connector, Stream], Coroutine[Any, Any, None]]
"""An application that reads one stream."""


class Cluster:
    """Brokers, a ZooKeeper, and their clients."""

    def __init__(
        self,
        *,
        brokers: int = 1,
        topics: Mapping[str, int] | None = None,
        seed: int | None = None,
        variant: Variant = HARDENED,
        clients: ClientSet = SOUND,
        logs: Mapping[str, Any] | None = None,
    ) -> None:
        self.world = World(seed)
        self.variant = variant
        self.clients = clients
        self.topics = {"clicks": 1} if topics is None else dict(topics)
        self.log_settings = {"log.flush.interval": 1, **(logs or {})}
        self.sent = 0
        """The number of messages that have numbers."""
        self.members: dict[str, Connector] = {}
        for number in range(brokers):
            self.start_broker(number)
        self.world.run(100)

    # --- brokers ---------------------------------------------------------------------------

    def start_broker(self, number: int, host: str = "", was: Process | None = None) -> Process:
        """Start a broker; with `was`, restart that process with its disk."""
        world, host = self.world, host or f"b{number}"
        made = world.process(f"b{number}")
        if was is not None:
            made.storage = was.storage
        counts = {"topic.partition.count.map": self.topics}
        settings = log_settings({**counts, **self.log_settings})

        def stored(topic: str, index: int, contents: Contents, appended: AppendResult) -> None:
            place = Partition(topic, f"{number}-{index}")
            ranges = ranges_in(contents, appended.offset)
            world.write(made.name, EventKind.STORED, partition=place, ranges=ranges)

        serving = Serving(LogManager(settings), stored)

        async def run() -> None:
            await serving.logs.start()
            made.answer = answering(serving)
            world.listen(f"{host}:9092", made)
            me = Broker(
                made.name,
                number,
                host,
                9092,
                "0.7",
                self.variant,
                topics=tuple(sorted(self.topics.items())),
            )
            made.run_program(broker(me))

        made.start(run())
        return made

    def kill_broker(self, number: int) -> Process:
        """Kill a broker, and let ZooKeeper notice at once."""
        process = self.world.processes[f"b{number}"]
        self.world.kill(process)
        if process.session in self.world.sessions:
            self.world.expire(process)
        return process

    # --- messages --------------------------------------------------------------------------

    def write(self, topic: str, broker_: int, index: int, count: int, size: int = 40) -> None:
        """Append messages to a log, as a producer outside of the test."""
        first = self.sent
        self.sent += count
        payloads = [payload_of("w", number, size) for number in range(first, self.sent)]
        contents = encode([Message.of(payload) for payload in payloads])
        process = self.world.processes[f"b{broker_}"]

        async def append() -> None:
            assert process.answer is not None, "the broker has started"
            await process.answer(ProduceRequest(topic, index, contents))

        self.world.write(
            "w",
            EventKind.SENT,
            partition=Partition(topic, ""),
            producer="w",
            first=first,
            end=self.sent,
            outcome="accepted",
        )
        process.start(append())
        self.world.run(5)

    def producer(
        self, given: Mapping[str, Any], name: str = "p", plugins: Plugins | None = None
    ) -> tuple[Process, Producer]:
        """Start a producer in its own process, with the program that discovers brokers."""
        process = self.world.process(name)
        settings = producer_settings({"zk.connect": "zk:2181", **given})
        if settings.finds_brokers:
            process.run_program(metadata_program())
        return process, self.clients.producer(settings, plugins or Plugins(), name=name)

    # --- members ---------------------------------------------------------------------------

    def member(
        self,
        name: str,
        wanted: Mapping[str, int] | str,
        app: App | None = None,
        *,
        streams: int = 1,
        **given: Any,
    ) -> Connector:
        """Start a member of the group that subscribes to topics, or to a filter."""
        process = self.world.process(name, "group")
        connector = self.clients.connector(self.consumer(name, **given), TraceWriter(process))
        if isinstance(wanted, str):
            made = connector.create_message_streams_by_filter(wanted, streams)
        else:
            made = [
                member
                for group in connector.create_message_streams(wanted).values()
                for member in group
            ]
        process.fetcher = connector.fetcher
        process.run_program(connector.program)
        for stream in made:
            process.start((app or reads)(connector, stream), stream.queue)
        self.members[name] = connector
        return connector

    def consumer(self, name: str, **given: Any) -> Consumer:
        """Return the configuration of a member."""
        settings = {**QUICK, **{key.replace("_", "."): value for key, value in given.items()}}
        return Consumer(
            node=name,
            group="group",
            host=f"{name}.example",
            subscription=Subscription(),
            layout="0.7",
            variant=self.variant,
            settings=consumer_settings(self.variant.release, settings),
            configured_id=name,
        )

    def crash(self, name: str) -> None:
        """Kill a member; its session survives until it is expired."""
        self.world.kill(self.world.processes[name])

    def stop(self, name: str) -> None:
        """Shut a member down gracefully."""
        self.world.processes[name].start(self.members[name].shutdown())
        self.world.run(2000)

    # --- outcome -----------------------------------------------------------------------------

    def handed_to(self, name: str) -> list[int]:
        """Return the numbers of the messages that a member received, in order."""
        return [
            number
            for event in self.world.rows
            if event.kind == EventKind.CONSUMED and event.node == name
            for message_range in event.detail["ranges"]
            for number in range(message_range.first, message_range.end)
        ]

    def findings(self, guarantee: DeliveryGuarantee | None = None) -> list[Finding]:
        """Return the findings of all properties."""
        world = self.world
        delivery = DeliveryJudge(
            {"group": guarantee or DeliveryGuarantee("exactly once", tuple(self.topics))}
        )
        starvation, punctuality = StarvationJudge(5_000_000), PunctualityJudge(2_000_000)
        history = History(NO_PLAN)
        ownership = OwnershipJudge(history)
        for event in world.rows:
            for judge in (delivery, starvation, punctuality):
                if event.kind in judge.KINDS:
                    judge.take(event)
            if event.kind == EventKind.APPLIED:
                ownership.before(event)
                history.handlers[EventKind.APPLIED](event)
        monotone = ownership.monotone.finding(MONOTONE, "no offset went back", ownership.commits)
        waits = [starvation.finding(world.now_us), punctuality.finding()]
        return [*delivery.findings(), *waits, monotone]

    def finding(self, name: str, guarantee: DeliveryGuarantee | None = None) -> Finding:
        """Return the finding of one property."""
        return named(name, self.findings(guarantee))

    def violated(self, guarantee: DeliveryGuarantee | None = None) -> list[str]:
        """Return the violated properties with their evidence."""
        return [
            f"{finding.claim.name}: {finding.evidence}"
            for finding in self.findings(guarantee)
            if finding.verdict is Verdict.VIOLATED
        ]

    def offset(self, topic: str, partition: str) -> int | None:
        """Return the committed offset of the group."""
        path = f"/consumers/group/offsets/{topic}/{partition}"
        znode = self.world.server.tree.nodes.get(path)
        return None if znode is None or znode.data is None else int(znode.data)

    def owners(self, topic: str = "clicks") -> dict[str, str]:
        """Return the owner of each claimed partition."""
        above = f"/consumers/group/owners/{topic}/"
        return {
            path.removeprefix(above): (znode.data or b"").decode().removeprefix("group_")
            for path, znode in sorted(self.world.server.tree.nodes.items())
            if path.startswith(above)
        }


def named(name: str, findings: Iterable[Finding]) -> Finding:
    """Return the finding of a property."""
    return next(finding for finding in findings if finding.claim.name.startswith(name))


def answering(serving: Serving) -> Callable[[Any], Coroutine[Any, Any, Any]]:
    """Return the function that answers the requests to a broker."""

    async def answer(request: Any) -> Any:
        reply = await serving.answer(request)
        if not isinstance(reply, Reply):
            return reply
        found: dict[FileView, Contents] = {}
        for part in reply.parts:
            if part.view is not None and part.size_bytes:
                found[part.view] = await Read(*part.view)
        return reply.response(found.__getitem__)

    return answer


# --- applications --------------------------------------------------------------------------


async def reads(connector: Connector, stream: Stream) -> None:
    """Read all messages, without processing time."""
    async for _ in stream:
        pass


def slowly(each_ms: int) -> App:
    """Process each message for `each_ms`."""

    async def app(connector: Connector, stream: Stream) -> None:
        async for _ in stream:
            await sleep(each_ms)

    return app


def noting(found: list[Delivery]) -> App:
    """Record all deliveries."""

    async def app(connector: Connector, stream: Stream) -> None:
        async for handed in stream:
            found.append(handed)

    return app


def after_a_while(wait_ms: int, app: App = reads) -> App:
    """Start an application after a delay."""

    async def later(connector: Connector, stream: Stream) -> None:
        await sleep(wait_ms)
        await app(connector, stream)

    return later


async def sends(
    producer: Producer, keys: Iterable[Any], *, first: int = 0, pause_ms: int = 0
) -> None:
    """Send a numbered message for each key, and report its outcome."""
    topic = "clicks"
    for number, key in enumerate(keys, first):
        outcome: Outcome = "accepted"
        try:
            await producer.send(
                ProducerData(topic, (payload_of(producer.name, number, 40),), key)
            )
        except CallError:
            outcome = "unknown"
        except (ClientError, LogError):
            outcome = "refused"
        await emit(
            EventKind.SENT,
            topic=topic,
            producer=producer.name,
            first=number,
            end=number + 1,
            outcome=outcome,
        )
        if pause_ms:
            await sleep(pause_ms)
