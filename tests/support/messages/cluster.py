"""A cluster in the small world: brokers that store messages, members that read them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from model.asks import Partition, sleep, tell
from model.broker import Broker, broker
from model.calls import CallError
from model.clients.chunks import Handed
from model.clients.connector import Connector
from model.clients.discovery import discovery
from model.clients.errors import ClientError
from model.clients.identities import lots_in, payload_of
from model.clients.producer import Data, Plugins, Producer
from model.clients.producer_settings import producer_settings
from model.clients.streams import Stream
from model.clients.versions import SOUND, Clients
from model.delivered import DeliveryJudge
from model.delivery import Outcome
from model.history import History
from model.log.contents import Contents
from model.log.errors import LogError
from model.log.log import Appended, View
from model.log.logs import Logs
from model.log.message import Message
from model.log.message_set import encode
from model.log.requests import ProduceRequest
from model.log.settings import log_settings
from model.log.storage import Read
from model.member import Consumer
from model.ownership import MONOTONE, OwnershipJudge
from model.plan import Plan
from model.promise import Promise
from model.serving import Reply, Serving
from model.settings import consumer_settings
from model.subscriptions import Subscription
from model.variants import HARDENED, Variant
from model.verdicts import Finding, Verdict
from model.waiting import PunctualityJudge, StarvationJudge
from tests.message_world import Journal, Process, World

SESSION_MS = 6000
NO_PLAN = Plan("test", "a test", "hardened", (), (), (), 0)
QUICK = {
    "zookeeper.session.timeout.ms": SESSION_MS,
    "auto.commit.interval.ms": 1000,
    "fetcher.backoff.ms": 100,
    "auto.offset.reset": "smallest",
}
"""Settings with which little time passes."""

App = Callable[[Connector, Stream], Coroutine[Any, Any, None]]
"""What an application does with one stream."""


class Cluster:
    """Brokers, a ZooKeeper, and whoever uses them."""

    def __init__(
        self,
        *,
        brokers: int = 1,
        topics: Mapping[str, int] | None = None,
        seed: int | None = None,
        variant: Variant = HARDENED,
        clients: Clients = SOUND,
        logs: Mapping[str, Any] | None = None,
    ) -> None:
        self.world = World(seed)
        self.variant = variant
        self.clients = clients
        self.topics = {"clicks": 1} if topics is None else dict(topics)
        self.log_settings = {"log.flush.interval": 1, **(logs or {})}
        self.sent = 0
        """How many messages were given numbers."""
        self.members: dict[str, Connector] = {}
        for number in range(brokers):
            self.start_broker(number)
        self.world.run(100)

    # --- brokers ---------------------------------------------------------------------------

    def start_broker(self, number: int, host: str = "", was: Process | None = None) -> Process:
        """Start a broker; with the disk of another process, as that one comes back."""
        world, host = self.world, host or f"b{number}"
        made = world.process(f"b{number}")
        if was is not None:
            made.storage = was.storage
        counts = {"topic.partition.count.map": self.topics}
        settings = log_settings({**counts, **self.log_settings})

        def stored(topic: str, index: int, contents: Contents, appended: Appended) -> None:
            place = Partition(topic, f"{number}-{index}")
            lots = lots_in(contents, appended.offset)
            world.write(made.name, "stored", partition=place, lots=lots)

        serving = Serving(Logs(settings), stored)

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
        """Let messages lie in a log, as a producer that is not part of the test wrote them."""
        first = self.sent
        self.sent += count
        payloads = [payload_of("w", number, size) for number in range(first, self.sent)]
        contents = encode([Message.of(one) for one in payloads])
        process = self.world.processes[f"b{broker_}"]

        async def append() -> None:
            assert process.answer is not None, "the broker has started"
            await process.answer(ProduceRequest(topic, index, contents))

        self.world.write(
            "w",
            "sent",
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
        """A producer in a process of its own, which finds the brokers."""
        process = self.world.process(name)
        settings = producer_settings({"zk.connect": "zk:2181", **given})
        if settings.finds_brokers:
            process.run_program(discovery())
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
        """Start a member of the group that wants topics, or what a filter allows."""
        process = self.world.process(name, "group")
        connector = self.clients.connector(self.consumer(name, **given), Journal(process))
        if isinstance(wanted, str):
            made = connector.create_message_streams_by_filter(wanted, streams)
        else:
            made = [
                one
                for group in connector.create_message_streams(wanted).values()
                for one in group
            ]
        process.fetching = connector.fetching
        process.run_program(connector.program)
        for stream in made:
            process.start((app or reads)(connector, stream), stream.queue)
        self.members[name] = connector
        return connector

    def consumer(self, name: str, **given: Any) -> Consumer:
        """What a member of the group is told when it starts."""
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
        """Kill a member; its session lives on until it is expired."""
        self.world.kill(self.world.processes[name])

    def stop(self, name: str) -> None:
        """Let a member leave in good order."""
        self.world.processes[name].start(self.members[name].shutdown())
        self.world.run(2000)

    # --- what is to be said of it ------------------------------------------------------------

    def handed_to(self, name: str) -> list[int]:
        """The numbers of the messages that a member was handed, in order."""
        return [
            number
            for event in self.world.rows
            if event.kind == "consumed" and event.node == name
            for lot in event.detail["lots"]
            for number in range(lot.first, lot.end)
        ]

    def findings(self, promise: Promise | None = None) -> list[Finding]:
        """What judges say of all that has happened."""
        world = self.world
        delivery = DeliveryJudge(
            {"group": promise or Promise("exactly once", tuple(self.topics))}
        )
        starvation, punctuality = StarvationJudge(5_000_000), PunctualityJudge(2_000_000)
        ownership, history = OwnershipJudge(), History(NO_PLAN)
        for event in world.rows:
            for judge in (delivery, starvation, punctuality):
                if event.kind in judge.KINDS:
                    judge.take(event)
            if event.kind == "applied":
                ownership.before(event, history)
                history.handler("applied")(event)
        monotone = ownership.monotone.finding(MONOTONE, "no offset went back")
        waits = [starvation.finding(world.now_us), punctuality.finding()]
        return [*delivery.findings(), *waits, monotone]

    def finding(self, name: str, promise: Promise | None = None) -> Finding:
        """What is said of one property."""
        return named(name, self.findings(promise))

    def violated(self, promise: Promise | None = None) -> list[str]:
        """What is violated, with what speaks for it."""
        return [
            f"{one.claim.name}: {one.evidence}"
            for one in self.findings(promise)
            if one.verdict is Verdict.VIOLATED
        ]

    def offset(self, topic: str, partition: str) -> int | None:
        """What the group has committed."""
        path = f"/consumers/group/offsets/{topic}/{partition}"
        znode = self.world.service.tree.nodes.get(path)
        return None if znode is None or znode.data is None else int(znode.data)

    def owners(self, topic: str = "clicks") -> dict[str, str]:
        """Partition -> whose claim stands on it."""
        above = f"/consumers/group/owners/{topic}/"
        return {
            path.removeprefix(above): (znode.data or b"").decode().removeprefix("group_")
            for path, znode in sorted(self.world.service.tree.nodes.items())
            if path.startswith(above)
        }


def named(name: str, findings: Iterable[Finding]) -> Finding:
    """The finding for a property."""
    return next(one for one in findings if one.claim.name.startswith(name))


def answering(serving: Serving) -> Callable[[Any], Coroutine[Any, Any, Any]]:
    """What a broker answers, read from its files."""

    async def answer(request: Any) -> Any:
        reply = await serving.answer(request)
        if not isinstance(reply, Reply):
            return reply
        found: dict[View, Contents] = {}
        for part in reply.parts:
            if part.view is not None and part.size_bytes:
                found[part.view] = await Read(*part.view)
        return reply.response(found.__getitem__)

    return answer


# --- applications --------------------------------------------------------------------------


async def reads(connector: Connector, stream: Stream) -> None:
    """Read whatever comes, in no time."""
    async for _ in stream:
        pass


def slowly(each_ms: int) -> App:
    """Take so long for each message."""

    async def app(connector: Connector, stream: Stream) -> None:
        async for _ in stream:
            await sleep(each_ms)

    return app


def noting(found: list[Handed]) -> App:
    """Keep what was handed on."""

    async def app(connector: Connector, stream: Stream) -> None:
        async for handed in stream:
            found.append(handed)

    return app


def after_a_while(wait_ms: int, app: App = reads) -> App:
    """Begin later."""

    async def later(connector: Connector, stream: Stream) -> None:
        await sleep(wait_ms)
        await app(connector, stream)

    return later


async def sends(
    producer: Producer, keys: Iterable[Any], *, first: int = 0, pause_ms: int = 0
) -> None:
    """Send a numbered message for each key, and say what was told of it."""
    topic = "clicks"
    for number, key in enumerate(keys, first):
        outcome: Outcome = "accepted"
        try:
            await producer.send(Data(topic, (payload_of(producer.name, number, 40),), key))
        except CallError:
            outcome = "unknown"
        except (ClientError, LogError):
            outcome = "refused"
        await tell(
            "sent",
            topic=topic,
            producer=producer.name,
            first=number,
            end=number + 1,
            outcome=outcome,
        )
        if pause_ms:
            await sleep(pause_ms)
