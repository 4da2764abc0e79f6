"""One cluster of a broker of Kafka 0.8.2.2 and two of this project.

They lead and follow each other. Each row is done twice: while the controller is Kafka's broker,
and while it is one of ours.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from time import monotonic, sleep

from bench.interop_clients.broker import HOST, run_command
from bench.interop_clients.jvm import CODECS, Jvm, lines_of, run_class
from bench.interop_clients.kafka_cluster import OnKafka, connected
from bench.interop_clients.mixed_cluster.load import Load
from bench.interop_clients.mixed_cluster.own_brokers import OwnBrokers
from bench.interop_clients.mixed_cluster.replica_logs import PartitionLog, read_log, until_equal
from bench.interop_clients.outcome import Action, expect
from bench.interop_clients.tools.kafka_tools import PREFERRED, REASSIGN
from bench.interop_clients.tools.topic_state import (
    MOVES,
    Topic,
    moves_of,
    read_topic,
    until,
    until_gone,
    until_preferred,
    until_whole,
)
from kazoo.exceptions import NoNodeError

from watchkeeper import SimpleConsumer
from watchkeeper.model.clients_08.errors import RefusedByBroker

KAFKA, OURS = 1, (2, 3)
EVERY = (KAFKA, *OURS)
PLACES = "1:2:3,2:3:1,3:1:2"
"""The replicas of three partitions: each broker leads one."""
COUNT = 60
WITHIN_S = 60.0
LAG_MS = 2_000
SHORT = ("segment.bytes=4000", "retention.bytes=1000")
"""Of a topic from which Kafka deletes all but its last segment."""
SETTINGS = (
    "delete.topic.enable=true",
    "default.replication.factor=3",
    f"log.segment.bytes={1 << 20}",
    "log.retention.check.interval.ms=2000",
    "auto.leader.rebalance.enable=false",
    "controlled.shutdown.enable=true",
    "controlled.shutdown.retry.backoff.ms=1000",
    f"replica.lag.time.max.ms={LAG_MS}",
    "replica.high.watermark.checkpoint.interval.ms=1000",
)


Row = tuple[str, Callable[..., str], *tuple[object, ...]]
"""A name, and what is called with which arguments."""


class Side(StrEnum):
    """Whose controller, broker or tool."""

    KAFKA = "Kafka's"
    OURS = "ours"


TOOLS = {Side.KAFKA: "Kafka's tool", Side.OURS: "our tool"}


class MixedCluster(OnKafka):
    """Rows on brokers of both kinds in one cluster."""

    client = "mixed cluster"

    def __init__(self, folder: Path, jars: Path) -> None:
        super().__init__(folder / "mixed-cluster", jars, settings=SETTINGS)
        self.own = OwnBrokers(self.folder / "own", self.zookeeper.hosts, lag_ms=LAG_MS)
        self._number = 0

    def actions(self) -> Iterator[Action]:
        """What is done, in this order."""
        name = "ZooKeeper 3.4.6, one broker of Kafka and two of ours start"
        yield self.first_action(name, lambda: self.start((KAFKA,)))
        for controller in Side:
            for name, run, *arguments in self._rows(controller):
                yield self.action(f"controller {controller}: {name}", run, *arguments)
        yield self.action("a log without its beginning moves to the other kind", self._cut_begin)

    def _rows(
        self, controller: Side
    ) -> Iterator[tuple[str, Callable[..., str], *tuple[object, ...]]]:
        yield "the controller is elected", self._elected, controller
        for tool in Side:
            yield f"created by {TOOLS[tool]}; each codec, each leader", self._created, tool
        for broker in (KAFKA, OURS[0]):
            yield f"created at broker {broker} for a producer", self._created_for_client, broker
        yield "a follower of ours stands still: ISR", self._stood_still, OURS[0], KAFKA
        yield "a follower of Kafka's stands still: ISR", self._stood_still, KAFKA, OURS[1]
        for side in Side:
            yield f"controlled shutdown of {side}, and its return", self._left, side
        yield "preferred leaders are elected", self._preferred, controller
        yield "partitions move to the other kind", self._moved
        for side in Side:
            yield f"kill -9 of {side}, messages under way", self._killed, side, controller
        if controller is Side.OURS:
            yield "kill -9 of the controller, messages under way", self._killed, None, controller
        for side in (Side.OURS, Side.KAFKA):
            name = f"{side} stands still longer than its session, messages under way"
            yield name, self._froze, side, controller
        yield "all end, and start on their logs", self._restarted
        for tool in Side:
            yield f"deleted by {TOOLS[tool]}", self._deleted, tool, controller

    def start(self, brokers: Sequence[int]) -> str:
        """Start the ZooKeeper, the brokers of Kafka, and ours."""
        super().start(brokers)
        for broker in OURS:
            self.own.reserve(broker)
        self.own.know(self.cluster.ports)
        for broker in OURS:
            self.own.start(broker)
            self.cluster.await_registered(broker)
        return f"brokers {', '.join(map(str, EVERY))}, Kafka's is {KAFKA}"

    def end(self) -> None:
        """End every process."""
        self.own.end()
        super().end()

    # --- actions -----------------------------------------------------------------------

    def _elected(self, side: Side) -> str:
        return f"broker {self._elect(side)}"

    def _created(self, tool: Side) -> str:
        """Kafka's producer and consumer, which ask brokers of both kinds who leads."""
        topic = self._create(tool)
        due: list[str] = []
        for codec in CODECS:
            for acks in (1, -1):
                lines = lines_of(f"{codec}.{acks}", COUNT)
                due += lines
                keyed = [f"{number}\t{line}" for number, line in enumerate(lines)]
                how = ("--property", "parse.key=true", "--request-required-acks", str(acks))
                self._jvm().produce(topic, codec, keyed, *how)
        logs = self._equal(topic)
        found = self._jvm().consume(topic, len(due))
        expect(found, sorted(due), "lines of the consumer")
        entries = sum(log.entry_count for log in logs.values())
        return f"{len(due)} messages in {entries} entries, equal on 3 brokers"

    def _created_for_client(self, broker: int) -> str:
        """A request for the metadata of a topic that does not exist."""
        self._number += 1
        topic = f"wanted-{self._number}"
        port = {**self.cluster.ports, **self.own.ports}[broker]
        with SimpleConsumer(f"{HOST}:{port}", protocol="0.8") as consumer:
            until(lambda: _leaders(consumer, topic), lambda found: len(found) == 2, "two leaders")
        self._whole(topic, 2)
        self._send(topic, "for a producer")
        self._equal(topic)
        return "2 partitions on 3 brokers each"

    def _stood_still(self, broker: int, leader: int) -> str:
        """The leader takes a silent follower out of the ISR, and in again."""
        topic = self._latest()
        partition = next(n for n, one in self._read(topic).items() if one.leader == leader)
        self._pause(broker)
        try:
            self._until(topic, lambda found: broker not in found[partition].isr, "ISR shrinks")
        finally:
            self._resume(broker)
        self._whole(topic)
        self._send(topic, "after the pause")
        self._equal(topic)
        return f"broker {broker} left the ISR of broker {leader}, and is back"

    def _left(self, side: Side) -> str:
        """Leaders move before the process ends; it finds its log again."""
        topic = self._latest()
        broker = self._one_of(side)
        self._leave(broker)
        found = self._read(topic)
        led = [number for number, one in found.items() if one.leader in (None, broker)]
        expect(led, [], f"partitions that broker {broker} still leads")
        self._send(topic, f"while {broker} is away")
        self._start(broker)
        self._whole(topic)
        self._equal(topic)
        return f"broker {broker} handed over, and caught up"

    def _preferred(self, controller: Side) -> str:
        topic = self._latest()
        behind = [number for number, one in self._read(topic).items() if not one.is_preferred]
        expect(behind != [], True, "a partition is led by another one")
        self._elect(controller)
        run_class(self.jars, PREFERRED, "--zookeeper", self.zookeeper.hosts)
        with connected(self.zookeeper.hosts) as client:
            until_preferred(client, topic)
        self._send(topic, "to preferred leaders")
        self._equal(topic)
        return f"{len(behind)} partitions got another leader"

    def _moved(self) -> str:
        """One replica each, which goes from one kind to the other and has to be complete."""
        self._number += 1
        topic = f"moved-{self._number}"
        self.topic_command("--create", "--topic", topic, "--replica-assignment", "1:2,2:3")
        self._whole(topic, 2)
        self._send(topic, "before")
        for wanted in ({0: [2, 3], 1: [1, 3]}, {0: [3, 1], 1: [1, 2]}):
            self._reassign(topic, wanted)
            found = self._whole(topic, 2)
            now = {number: list(one.replicas) for number, one in found.items()}
            expect(now, wanted, "replicas")
            self._send(topic, "between")
            self._equal(topic)
        until(lambda: self._strays(topic), lambda found: found == [], "logs that stayed behind")
        return "twice; nothing stayed behind"

    def _killed(self, side: Side | None, controller: Side) -> str:
        """A broker of a side, or the controller."""
        return self._struck(side, controller, self._kill_and_start)

    def _kill_and_start(self, broker: int, topic: str) -> None:
        self._kill(broker)
        led_by_another = partial(_is_led_without, broker)
        self._until(topic, led_by_another, f"leaders that are not broker {broker}")
        self.cluster.await_registered(broker, is_there=False)
        self._start(broker)

    def _froze(self, side: Side, controller: Side) -> str:
        """It goes on as a leader that has been deposed, and has to find out."""
        return self._struck(side, controller, self._pause_and_resume)

    def _pause_and_resume(self, broker: int, topic: str) -> None:
        self._pause(broker)
        try:
            self.cluster.await_registered(broker, is_there=False)
            self._until(topic, partial(_is_led_without, broker), "other leaders")
        finally:
            self._resume(broker)
        self.cluster.await_registered(broker)

    def _struck(
        self, side: Side | None, controller: Side, strike: Callable[[int, str], None]
    ) -> str:
        """Send messages with `acks` -1 while something happens to a leader."""
        topic = self._create(Side.KAFKA)
        elected = self._elect(controller)
        broker = elected if side is None else self._one_of(side)
        load = Load(self._addresses(), topic)
        load.run(partial(strike, broker, topic))
        self._whole(topic)
        self._elect(controller)
        return f"broker {broker}: {load.check(self._equal(topic))}"

    def _cut_begin(self) -> str:
        """Kafka deletes old segments: a replica of ours begins where the others begin."""
        topic = "short"
        options = [word for each in SHORT for word in ("--config", each)]
        self.topic_command("--create", "--topic", topic, "--replica-assignment", "1", *options)
        self._whole(topic, 1)
        for number in range(5):
            self._send(topic, f"some more messages, {number}")
        folders = {KAFKA: self._logs[KAFKA]}
        until(lambda: _begin(folders[KAFKA], topic), lambda found: found > 0, "the first offset")
        self.topic_command("--alter", "--topic", topic, "--delete-config", "retention.bytes")
        begins = []
        for broker in (OURS[0], KAFKA):
            self._reassign(topic, {0: [broker]})
            self._whole(topic, 1)
            self._send(topic, f"at broker {broker}")
            begins.append(_begin(self._logs[broker], topic))
        expect(begins[0] > 0, True, "ours begins later than 0")
        due = [f"at broker {broker}-{n}" for broker in (OURS[0], KAFKA) for n in range(COUNT)]
        log = read_log(self._logs[KAFKA], topic, 0)
        values = [(each.value or b"").decode() for each in log.messages]
        expect(values[-len(due) :], due, "the last messages")
        offsets = [each.offset for each in log.messages]
        expect(offsets, [*range(offsets[0], offsets[0] + len(offsets))], "offsets")
        return f"from offset {begins[0]} at ours, from {begins[1]} at Kafka's again"

    def _restarted(self) -> str:
        """Their messages are as before, and more can be sent."""
        topic = self._latest()
        before = self._equal(topic, with_marks=False)
        for broker in EVERY:
            self._leave(broker)
        for broker in EVERY:
            self._start(broker)
        self._whole(topic)
        self._send(topic, "after the restart")
        after = self._equal(topic)
        kept = [after[n].data.startswith(log.data) for n, log in before.items()]
        expect(kept, [True] * len(before), "what was there before is there")
        return f"{sum(log.end for log in before.values())} messages kept, and more sent"

    def _deleted(self, tool: Side, controller: Side) -> str:
        topic = self._create(Side.OURS)
        self._elect(controller)
        self._send(topic, "to be deleted")
        if tool is Side.KAFKA:
            self.topic_command("--delete", "--topic", topic)
        else:
            self._own_tool("topics", "delete", self.zookeeper.hosts, topic)
        with connected(self.zookeeper.hosts) as client:
            for path in (f"/brokers/topics/{topic}", f"/admin/delete_topics/{topic}"):
                until_gone(client, path)
        until(lambda: self._folders(topic), lambda found: found == [], "logs of the topic")
        return "znodes, and the logs of 3 brokers"

    # --- brokers of either kind --------------------------------------------------------

    def _start(self, broker: int) -> None:
        if broker == KAFKA:
            self.cluster.start(broker)
            self.own.know(self.cluster.ports)
        else:
            self.own.start(broker)
        self.cluster.await_registered(broker)

    def _kill(self, broker: int) -> None:
        (self.cluster if broker == KAFKA else self.own).kill(broker)

    def _leave(self, broker: int) -> None:
        (self.cluster if broker == KAFKA else self.own).leave(broker)
        self.cluster.await_registered(broker, is_there=False)

    def _pause(self, broker: int) -> None:
        if broker == KAFKA:
            os.kill(self.cluster.process(broker).pid, signal.SIGSTOP)
        else:
            self.own.pause(broker)

    def _resume(self, broker: int) -> None:
        if broker == KAFKA:
            os.kill(self.cluster.process(broker).pid, signal.SIGCONT)
        else:
            self.own.resume(broker)

    def _controller(self) -> int | None:
        with connected(self.zookeeper.hosts) as client:
            try:
                return int(json.loads(client.get("/controller")[0])["brokerid"])
            except NoNodeError:
                return None

    def _one_of(self, side: Side) -> int:
        """A broker of a side; if it is ours, one that is not the controller."""
        if side is Side.KAFKA:
            return KAFKA
        return next(broker for broker in OURS if broker != self._controller())

    def _elect(self, side: Side) -> int:
        """Restart the controller, until one of this side is elected.

        One of Kafka whose znode is deleted goes on to elect leaders beside its successor.
        """
        deadline_s = monotonic() + WITHIN_S
        while (found := self._controller()) is None or (found == KAFKA) is not (
            side is Side.KAFKA
        ):
            if monotonic() > deadline_s:
                raise AssertionError(f"the controller is {found}; expected {side}")
            if found is not None:
                self._leave(found)
                self._start(found)
            sleep(0.5)
        return found

    # --- topics and messages -----------------------------------------------------------

    def _create(self, tool: Side) -> str:
        """Create a topic of three partitions that is on every broker."""
        self._number += 1
        topic = f"topic-{self._number}"
        if tool is Side.KAFKA:
            self.topic_command("--create", "--topic", topic, "--replica-assignment", PLACES)
        else:
            numbers = ("--partitions", "3", "--replication-factor", "3", "--start", "0")
            self._own_tool(
                "topics", "create", self.zookeeper.hosts, topic, *numbers, "--shift", "0"
            )
        self._whole(topic)
        return topic

    def _reassign(self, topic: str, wanted: dict[int, list[int]]) -> None:
        """Move partitions, and wait until it is done."""
        path = self.folder / "moves.json"
        path.write_text(moves_of(topic, wanted))
        options = ("--zookeeper", self.zookeeper.hosts, "--reassignment-json-file", str(path))
        run_class(self.jars, REASSIGN, *options, "--execute")
        with connected(self.zookeeper.hosts) as client:
            until_gone(client, MOVES)

    def _latest(self) -> str:
        """The topic that was created last on every broker."""
        with connected(self.zookeeper.hosts) as client:
            names = [name for name in client.get_children("/brokers/topics") if "topic-" in name]
        return str(max(names, key=lambda name: int(name.rpartition("-")[2])))

    def _send(self, topic: str, word: str) -> None:
        lines = [f"{number}\t{line}" for number, line in enumerate(lines_of(word, COUNT))]
        how = ("--sync", "--property", "parse.key=true", "--request-required-acks", "-1")
        self._jvm().produce(topic, "none", lines, *how)

    def _jvm(self) -> Jvm:
        """Kafka's clients, which know the addresses of all brokers."""
        jvm = self.cluster.jvm(KAFKA)
        return Jvm(replace(jvm.place, address=self._addresses()), self.jars)

    def _addresses(self) -> str:
        own = (f"{HOST}:{port}" for port in self.own.ports.values())
        return ",".join((self.cluster.addresses, *own))

    def _own_tool(self, *arguments: str) -> None:
        done = run_command(*arguments, within_s=WITHIN_S)
        expect(done.returncode, 0, f"exit code of {arguments[:2]} ({done.stdout}{done.stderr})")

    def _read(self, topic: str) -> Topic:
        with connected(self.zookeeper.hosts) as client:
            return read_topic(client, topic)

    def _whole(self, topic: str, partitions: int = 3) -> Topic:
        with connected(self.zookeeper.hosts) as client:
            return until_whole(client, topic, partitions)

    def _until(self, topic: str, is_right: Callable[[Topic], bool], what: str) -> None:
        until(lambda: self._read(topic), is_right, what)

    def _equal(self, topic: str, *, with_marks: bool = True) -> dict[int, PartitionLog]:
        replicas = {number: one.replicas for number, one in self._read(topic).items()}
        return until_equal(self._logs, topic, replicas, with_marks=with_marks)

    @property
    def _logs(self) -> dict[int, Path]:
        kafka = {KAFKA: self.cluster.logs(KAFKA)}
        return kafka | {broker: self.own.logs(broker) for broker in OURS}

    def _folders(self, topic: str) -> list[str]:
        return [
            f"{path.name} of broker {broker}"
            for broker, logs in self._logs.items()
            for path in logs.glob(f"{topic}-*")
        ]

    def _strays(self, topic: str) -> list[str]:
        """The logs of a topic on brokers that have no replica of it."""
        found = self._read(topic)
        due = {
            f"{topic}-{number} of broker {broker}"
            for number, one in found.items()
            for broker in one.replicas
        }
        return sorted({*self._folders(topic)} - due)


def _is_led_without(broker: int, found: Topic) -> bool:
    """Whether every partition has a leader, which is another broker."""
    return all(one.leader not in (None, broker) for one in found.values())


def _leaders(consumer: SimpleConsumer, topic: str) -> dict[int, str]:
    """Who leads a topic, as a broker says; at first it says that the topic is being made."""
    with suppress(RefusedByBroker):
        return consumer.leaders(topic)
    return {}


def _begin(logs: Path, topic: str) -> int:
    """The first offset in the log of a replica."""
    messages = read_log(logs, topic, 0).messages
    return messages[0].offset if messages else 0
