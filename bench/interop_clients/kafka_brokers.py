"""Kafka 0.8.2.2's own brokers: this project's readers of live brokers read from them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic, sleep

from bench.interop_clients.broker import COMMAND, HOME, HOST, Place
from bench.interop_clients.jvm import CODECS, COUNT, lines_of
from bench.interop_clients.kafka_cluster import WITHIN_S, KafkaCluster
from bench.interop_clients.outcome import Action, expect

from watchkeeper import Producer, SimpleConsumer
from watchkeeper.real.embed.simple_consumer import KeyedMessageAndOffset

CLIENT = "watchkeeper on Kafka"
IDS = (9, 10)
SPARK_PROGRAM = Path(__file__).parent / "spark_program.py"


class KafkaBrokers:
    """Two brokers of Kafka, in a chroot of their own, and what reads them."""

    def __init__(self, beside: Place, jars: Path) -> None:
        self._zookeeper = beside.zookeeper.replace("/interop", "/kafka")
        self._folder = beside.logs.parent / "kafka"
        self._cluster = KafkaCluster(self._folder, self._zookeeper, jars)
        self._out = self._folder / "out"

    def actions(self) -> Iterator[Action]:
        """What is done while they run, in this order."""
        yield Action(CLIENT, "two brokers of Kafka start, and get messages", self._started)
        yield Action(CLIENT, "load --brokers: each message, once", self._loaded)
        yield Action(CLIENT, "load --brokers again: what is new", self._loaded_more)
        yield Action(CLIENT, "kafkalog brokers=, in batch and as a stream", self._in_spark)
        for codec in CODECS:
            for acks in (0, 1, -1):
                name = f"Producer of 0.8, {codec}, acks {acks}; console consumer"
                yield Action(CLIENT, name, partial(self._produced, codec, acks))
        yield Action(CLIENT, "SimpleConsumer of 0.8: leaders, keys, offsets", self._simple)
        yield Action(CLIENT, "load --brokers while the leader is killed", self._leader_killed)
        yield Action(
            CLIENT, "Producer of 0.8, acks -1, while the leader is killed", self._all_acknowledged
        )

    @contextmanager
    def ending(self) -> Iterator[None]:
        """End the brokers after the block."""
        try:
            yield
        finally:
            self._cluster.end()

    # --- actions -----------------------------------------------------------------------

    def _started(self) -> str:
        for broker in IDS:
            self._cluster.start(broker)
        jvm = self._cluster.jvm(IDS[0])
        options = ("--zookeeper", self._zookeeper, "--create", "--partitions", "2")
        for codec in CODECS:
            more = ("--topic", f"of-{codec}", "--replication-factor", "2")
            jvm.run("kafka.admin.TopicCommand", *options, *more)
            acknowledged = ("--sync", "--request-required-acks", "-1")
            jvm.produce(f"of-{codec}", codec, lines_of(codec, COUNT), *acknowledged)
        return f"{COUNT} messages each of {', '.join(CODECS)}"

    def _loaded(self) -> str:
        said = self._load("--split-bytes", "1000")
        expect(self._payloads(), self._due(COUNT), "payloads")
        return said

    def _loaded_more(self) -> str:
        more = lines_of("gzip", COUNT + 5)[COUNT:]
        self._cluster.jvm(IDS[1]).produce("of-gzip", "gzip", more, "--sync")
        said = self._load()
        expect(self._payloads(), sorted([*self._due(COUNT), *more]), "payloads")
        return said

    def _in_spark(self) -> str:
        where = f"{HOST}:{self._cluster.ports[IDS[0]]}"
        program = [sys.executable, "-P", str(SPARK_PROGRAM)]
        found = json.loads(_printed([*program, where, str(self._folder / "spark")]))
        due = self._payloads()
        for kind in ("batch", "stream"):
            expect(found[kind], due, f"payloads of the {kind}")
        return f"{len(due)} messages, in {found['batches']} batches of the stream"

    def _leader_killed(self) -> str:
        """Half of the partitions have to move; the load finds their new leaders."""
        out = self._folder / "killed"
        where = self._cluster.addresses
        topics = ",".join(f"of-{codec}" for codec in CODECS)
        how = ("--split-bytes", "1000", "--retry-ms", "90000", "--topics", topics)
        with subprocess.Popen(
            [*COMMAND, "load", "--brokers", where, str(out), *how],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(HOME)},
        ) as loading:
            deadline_s = monotonic() + WITHIN_S
            while len([*out.glob("*.parquet")]) < 3 and monotonic() < deadline_s:
                sleep(0.01)
            was_under_way = loading.poll() is None
            self._cluster.kill(IDS[0])
            _, errors = loading.communicate(timeout=WITHIN_S)
        expect(was_under_way, True, "the load was under way when the broker was killed")
        expect(loading.returncode, 0, f"exit code ({errors[-300:]})")
        expect(self._payloads(out), self._payloads(), "payloads")
        return f"{len(self._payloads(out))} messages, each once"

    def _produced(self, codec: str, acks: int) -> str:
        """At once, by key, and through the queue; Kafka's consumer reads it."""
        topic, lines = f"sent-{codec}.{acks}", lines_of(codec, COUNT)
        config = self._config(codec, acks)
        with Producer(config, protocol="0.8") as producer:
            producer.send(topic, *(line.encode() for line in lines[:100]))
            for line in lines[100:200]:
                producer.send(topic, line.encode(), key=line)
        with Producer(config | {"producer.type": "async"}, protocol="0.8") as producer:
            for line in lines[200:]:
                producer.send(topic, line.encode(), key=line.encode())
        found = self._cluster.jvm(IDS[0]).consume(topic, COUNT)
        expect(found, sorted(lines), "lines")
        return f"{COUNT} of {COUNT}"

    def _simple(self) -> str:
        """Keys are where Kafka's hash puts them, with the partitions' leaders."""
        topic, count = "sent-gzip.1", 0
        for partition, address in self._leaders(topic).items():
            with SimpleConsumer(address, protocol="0.8") as consumer:
                end = consumer.latest(topic, partition)
                messages = consumer.fetch(topic, partition, 0, 1 << 20)
                expect([each.offset for each in messages], [*range(end)], "offsets")
                keyed = [each for each in messages if isinstance(each, KeyedMessageAndOffset)]
                expect(len(keyed), len(messages), "messages with a place for a key")
                keys = [each.key for each in keyed if each.key is not None]
                expect(keys == [each.payload for each in keyed if each.key], True, "keys")
                count += end
        expect(count, COUNT, "messages")
        return f"{count} messages at their offsets"

    def _all_acknowledged(self) -> str:
        """What `send` has returned for is there, once or more; one that raised may be."""
        self._cluster.await_registered(IDS[0], is_there=False)
        self._cluster.start(IDS[0])
        self._cluster.await_registered(IDS[0])
        topic, acknowledged = "kept", []
        jvm = self._cluster.jvm(IDS[0])
        options = ("--zookeeper", self._zookeeper, "--topic", topic)
        created = ("--create", "--partitions", "2", "--replication-factor", "2")
        jvm.run("kafka.admin.TopicCommand", *options, *created)
        config = self._config("none", -1) | {"message.send.max.retries": 600}
        with Producer(config, protocol="0.8") as producer:
            for number in range(2 * COUNT):
                if number == COUNT:
                    self._cluster.kill(IDS[1])
                message = b"kept %d" % number
                producer.send(topic, message, key=str(number))
                acknowledged.append(message)
        found: set[object] = set()
        for partition, address in self._leaders(topic).items():
            with SimpleConsumer(address, protocol="0.8") as consumer:
                offset = 0
                while messages := consumer.fetch(topic, partition, offset, 1 << 20):
                    found |= {each.payload for each in messages}
                    offset = messages[-1].next_offset
        expect(len({*acknowledged} - found), 0, "acknowledged messages that are lost")
        return f"{len(acknowledged)} acknowledged, none lost"

    # --- what they share ---------------------------------------------------------------

    def _config(self, codec: str, acks: int) -> dict[str, object]:
        where = self._cluster.addresses
        found = {"metadata.broker.list": where, "compression.codec": codec}
        return found | {"request.required.acks": acks, "message.send.max.retries": 60}

    def _leaders(self, topic: str) -> dict[int, str]:
        """The leaders of a topic, when each partition has one that is alive."""
        deadline_s = monotonic() + WITHIN_S
        while monotonic() < deadline_s:
            for broker, port in self._cluster.ports.items():
                if not self._cluster.is_alive(broker):
                    continue
                with SimpleConsumer(f"{HOST}:{port}", protocol="0.8") as consumer:
                    found = consumer.leaders(topic)
                if all(found.values()):
                    return found
            sleep(0.2)
        raise AssertionError(f"{topic} has no leaders")

    # --- programs ---------------------------------------------------------------

    def _load(self, *more: str) -> str:
        where = f"{HOST}:{self._cluster.ports[IDS[0]]}"
        printed = _printed([*COMMAND, "load", "--brokers", where, str(self._out), *more])
        [said] = re.findall(r"^[\d,]+ messages of .*? in \d+ new files?", printed, re.M)
        return str(said)

    def _payloads(self, out: Path | None = None) -> list[str]:
        import pyarrow.dataset

        table = pyarrow.dataset.dataset(out or self._out, format="parquet").to_table()
        return sorted(each.decode() for each in table["payload"].to_pylist())

    def _due(self, count: int) -> list[str]:
        return sorted(line for codec in CODECS for line in lines_of(codec, count))


def _printed(command: list[str]) -> str:
    """What a command of the project prints; AssertionError if it fails."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        env={**os.environ, "PYTHONPATH": str(HOME)},
    )
    if done.returncode:
        raise AssertionError(f"exit code {done.returncode}: {done.stderr[-200:]}")
    return done.stdout
