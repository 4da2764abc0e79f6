"""This project's tools on Kafka's controller, with three of its brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.interop_clients.broker import HOST, run_command
from bench.interop_clients.jvm import lines_of
from bench.interop_clients.kafka_cluster import WITHIN_S, OnKafka, connected
from bench.interop_clients.outcome import Action, expect
from bench.interop_clients.tools.topic_state import (
    MOVES,
    PartitionState,
    Topic,
    described,
    read_topic,
    until,
    until_gone,
    until_preferred,
    until_whole,
)

from watchkeeper import Producer, SimpleConsumer

CLIENT = "our tools on Kafka"
BROKERS = (1, 2, 3)
TOPIC, OTHER = "made", "small"
COUNT = 100
LARGE_BYTES = 5000
SETTINGS = ("delete.topic.enable=true", "auto.leader.rebalance.enable=false")


class OwnTools(OnKafka):
    """`topics`, `config`, `reassign`, `prefer`, `controller` and `audit` on Kafka's brokers."""

    client = CLIENT

    def __init__(self, folder: Path, jars: Path) -> None:
        super().__init__(folder / "own-tools", jars, settings=SETTINGS)

    def actions(self) -> Iterator[Action]:
        """What is done, in this order."""
        yield self.start_action(BROKERS)
        yield self.action("topics create, describe", self._created)
        yield self.action("topics alter: more partitions", self._altered)
        yield self.action("config: the brokers obey a setting", self._configured)
        yield self.action("reassign --off, --verify: no message is lost", self._moved_off)
        yield self.action("reassign --to all again", self._moved_back)
        yield self.action("the controller is killed, and comes back", self._controller_killed)
        yield self.action("prefer", self._preferred)
        yield self.action("audit of all that", self._audited)
        yield self.action("topics delete: znodes and logs are gone", self._deleted)

    # --- actions -----------------------------------------------------------------------

    def _created(self) -> str:
        numbers = ("--partitions", "4", "--replication-factor", "2")
        self._done("topics", "create", self.zookeeper.hosts, TOPIC, *numbers)
        self._agreed(4)
        lines = [f"{number}\t{line}" for number, line in enumerate(lines_of(TOPIC, COUNT))]
        keyed = ("--sync", "--property", "parse.key=true", "--request-required-acks", "-1")
        self.cluster.jvm(BROKERS[0]).produce(TOPIC, "none", lines, *keyed)
        return "4 partitions; describe says the same as Kafka's tool"

    def _altered(self) -> str:
        self._done("topics", "alter", self.zookeeper.hosts, TOPIC, "--partitions", "6")
        self._agreed(6)
        return "6 partitions; describe says the same as Kafka's tool"

    def _configured(self) -> str:
        """Brokers refuse a large message while a setting forbids it."""
        once = ("--partitions", "1", "--replication-factor", "1")
        self._done("topics", "create", self.zookeeper.hosts, OTHER, *once)
        with connected(self.zookeeper.hosts) as client:
            until_whole(client, OTHER, 1)
        until(self._appends_large, lambda found: found == 1, "messages appended at first")
        change = ("config", self.zookeeper.hosts, OTHER)
        self._done(*change, "--set", "max.message.bytes=1000")
        until(self._appends_large, lambda found: found == 0, "messages appended while forbidden")
        self._done(*change, "--unset", "max.message.bytes")
        until(self._appends_large, lambda found: found == 1, "messages appended in the end")
        return f"max.message.bytes=1000 refuses {LARGE_BYTES} bytes, until it is unset"

    def _moved_off(self) -> str:
        path = str(self.folder / "moves.json")
        self._reassign(path, "--off", str(BROKERS[-1]), "--topic", TOPIC)
        found = self._agreed(6)
        left = [one for one in found.values() if BROKERS[-1] in one.replicas]
        expect(left, [], f"partitions on broker {BROKERS[-1]}")
        lines = self.cluster.jvm(BROKERS[0]).consume(TOPIC, COUNT)
        expect(lines, sorted(lines_of(TOPIC, COUNT)), "lines")
        return f"none on broker {BROKERS[-1]}; {COUNT} of {COUNT} messages"

    def _moved_back(self) -> str:
        to = ",".join(map(str, BROKERS))
        places = ("--topic", TOPIC, "--start", "0", "--shift", "0")
        self._reassign(str(self.folder / "back.json"), "--to", to, *places)
        found = self._agreed(6)
        used = {broker for one in found.values() for broker in one.replicas}
        expect(used, {*BROKERS}, "brokers that have a replica")
        return f"on brokers {to}"

    def _controller_killed(self) -> str:
        """What it led moves, `describe` shows what lacks a replica, and both heal."""
        first = self._controller()
        self.cluster.kill(first)
        self.cluster.await_registered(first, is_there=False)
        until(self._controller, lambda found: found not in (None, first), "a controller")
        with connected(self.zookeeper.hosts) as client:
            until(
                lambda: read_topic(client, TOPIC),
                lambda found: all(one.leader not in (None, first) for one in found.values()),
                "leaders that live",
            )
            lacking = [n for n, one in read_topic(client, TOPIC).items() if not one.is_whole]
        expect([*self._described("--under-replicated")], lacking, "under-replicated partitions")
        self.cluster.start(first)
        self.cluster.await_registered(first)
        self._agreed(6)
        return f"broker {first}; {len(lacking)} partitions lacked a replica meanwhile"

    def _preferred(self) -> str:
        behind = self._described("--not-preferred")
        expect(behind != {}, True, "a partition is led by a replica that is not preferred")
        self._done("prefer", self.zookeeper.hosts)
        with connected(self.zookeeper.hosts) as client:
            until_preferred(client, TOPIC)
        expect(self._described("--not-preferred"), {}, "partitions that are not preferred")
        return f"{len(behind)} partitions got another leader"

    def _audited(self) -> str:
        self._done("audit", self.zookeeper.hosts)
        return "exit code 0"

    def _deleted(self) -> str:
        self._done("topics", "delete", self.zookeeper.hosts, TOPIC)
        with connected(self.zookeeper.hosts) as client:
            for path in (f"/brokers/topics/{TOPIC}", f"/admin/delete_topics/{TOPIC}"):
                until_gone(client, path)
        until(self._logs, lambda found: found == [], "logs of the topic")
        return "znodes and logs are gone"

    # --- what they share ---------------------------------------------------------------

    def _done(self, *arguments: str) -> str:
        done = run_command(*arguments, within_s=WITHIN_S)
        expect(done.returncode, 0, f"exit code of {arguments[0]} ({done.stdout}{done.stderr})")
        return done.stdout

    def _agreed(self, partitions: int) -> Topic:
        """Wait until a topic is whole; then both sides have to describe it alike."""
        with connected(self.zookeeper.hosts) as client:
            found = until_whole(client, TOPIC, partitions)
        expect(self._described(), found, "what describe prints")
        said = self.topic_command("--describe", "--topic", TOPIC)
        expect(described(said)[TOPIC], found, "what Kafka's --describe prints")
        return found

    def _described(self, *options: str) -> Topic:
        """The partitions of the topic that `topics describe` shows."""
        where = ("topics", "describe", self.zookeeper.hosts, TOPIC)
        return own_description(self._done(*where, *options, "--json")).get(TOPIC, {})

    def _reassign(self, path: str, *options: str) -> None:
        hosts = self.zookeeper.hosts
        self._done("reassign", hosts, *options, "--save", path)
        with connected(hosts) as client:
            until_gone(client, MOVES)
        self._done("reassign", hosts, "--file", path, "--verify")

    def _controller(self) -> Any:
        done = run_command("controller", self.zookeeper.hosts, "--json", within_s=WITHIN_S)
        return json.loads(done.stdout).get("broker")

    def _appends_large(self) -> int:
        """How many of one large message a broker appends."""
        with connected(self.zookeeper.hosts) as client:
            leader = read_topic(client, OTHER)[0].leader
        assert leader is not None, "the topic has a leader"
        with SimpleConsumer(f"{HOST}:{self.cluster.ports[leader]}", protocol="0.8") as consumer:
            before = consumer.latest(OTHER, 0)
            config = {"metadata.broker.list": self.cluster.addresses, "request.required.acks": 1}
            # A message that is refused is the outcome that is looked for: the end tells.
            with suppress(Exception), Producer(config, protocol="0.8") as producer:
                producer.send(OTHER, b"x" * LARGE_BYTES)
            return consumer.latest(OTHER, 0) - before

    def _logs(self) -> list[str]:
        return [path.name for path in self.folder.glob(f"kafka/logs-*/{TOPIC}-*")]


def own_description(text: str) -> dict[str, Topic]:
    """Read what `topics describe --json` prints."""
    return {
        topic["topic"]: {
            row["partition"]: PartitionState(
                row["leader"], tuple(row["replicas"]), tuple(sorted(row["isr"]))
            )
            for row in topic["partitions"]
        }
        for topic in json.loads(text)["topics"]
    }
