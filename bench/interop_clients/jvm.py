"""Kafka 0.8.2.2's own programs: producers, consumers and tools, each in a process of its own."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic, sleep

from bench.interop_clients.broker import BROKER_ID, COMMAND, HOME, HOST, PARTITIONS, Place
from bench.interop_clients.kafka_jars import java_command
from bench.interop_clients.outcome import Action, expect
from kazoo.client import KazooClient

from watchkeeper.model.offset_manager.manager import partition_of
from watchkeeper.model.offset_manager.settings import OFFSETS_TOPIC, OffsetSettings

CLIENT = "Kafka 0.8.2.2"
GROUP, OF_OFFSETS = "kept", OffsetSettings().partitions
"""A group with offsets in Kafka, and the number of partitions of their topic."""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(HOME)}
CODECS = ("none", "gzip", "snappy", "lz4")
COUNT = 300
WITHIN_S = 60.0


class Jvm:
    """Runs Kafka's programs on a broker."""

    def __init__(self, place: Place, jars: Path) -> None:
        self.place = place
        self.jars = jars

    def actions(self) -> Iterator[Action]:
        """What is done while the broker serves, in this order."""
        yield self._action("TopicCommand: create, describe", self._create)
        for codec in CODECS:
            yield self._action(f"old producer, {codec}; console consumer", self._old, codec)
            for acks in (0, 1, -1):
                yield self._action(f"new producer, {codec}, acks {acks}", self._new, codec, acks)
        yield self._action("keys, to one partition each", self._keys)
        yield self._action("GetOffsetShell: earliest, latest", self._offsets)
        yield self._action("SimpleConsumerShell", self._simple)
        yield self._action("a group, its offsets in ZooKeeper, ExportZkOffsets", self._group)
        yield self._action("a group, its offsets in Kafka", self._kept_group)
        yield self._action("a group moves its offsets to Kafka: dual commit", self._moved_group)
        yield self._action("dual commit of a group without messages", self._back_group)
        yield self._action("ConsumerOffsetChecker finds the coordinator", self._checked_group)
        yield self._action("OffsetsMessageFormatter", self._formatted)
        yield self._action("to a topic made by TopicCommand", self._to_created)

    def at_rest(self) -> Iterator[Action]:
        """What is done to the folder once the broker has ended."""
        for codec in CODECS:
            yield self._action(f"DumpLogSegments, deep, {codec}", self._dump, codec)
        yield self._action("DumpLogSegments of index files", self._dump_indexes)
        yield self._action("DumpLogSegments of the compacted topic", self._dump_compacted)
        yield self._action("Kafka's broker goes on with the folder", self._broker)
        yield self._action("this broker goes on after Kafka's", self._own_again)

    def _action(self, name: str, run: object, *arguments: object) -> Action:
        assert callable(run), "an action is run by a method"
        return Action(CLIENT, name, partial(run, *arguments))

    # --- while the broker serves -------------------------------------------------------

    def _create(self) -> str:
        options = ("--zookeeper", self.place.zookeeper, "--topic", "made")
        created = ("--create", "--partitions", "4", "--replication-factor", "1")
        self.run("kafka.admin.TopicCommand", *options, *created)
        said = self.run("kafka.admin.TopicCommand", *options, "--describe")
        expect(said.count(f"Replicas: {BROKER_ID}"), 4, "partitions on this broker")
        return "4 partitions on this broker"

    def _to_created(self) -> str:
        self.produce("made", "none", lines_of("made", COUNT), "--sync")
        found = self.consume("made", COUNT)
        expect(found, sorted(lines_of("made", COUNT)), "lines")
        return f"{COUNT} of {COUNT}"

    def _old(self, codec: str) -> str:
        lines = lines_of(f"old-{codec}", COUNT)
        self.produce(f"old-{codec}", codec, lines, "--sync")
        expect(self.consume(f"old-{codec}", COUNT), sorted(lines), "lines")
        return f"{COUNT} of {COUNT}"

    def _new(self, codec: str, acks: int) -> str:
        topic, lines = f"new-{codec}.{acks}", lines_of(f"new-{codec}", COUNT)
        more = ("--new-producer", "--request-required-acks", str(acks))
        self.produce(topic, codec, lines, *more)
        expect(self.consume(topic, COUNT), sorted(lines), "lines")
        return f"{COUNT} of {COUNT}"

    def _keys(self) -> str:
        lines = [f"k{number % 7}\tv{number}" for number in range(COUNT)]
        self.produce("keyed", "gzip", lines, "--property", "parse.key=true")
        found = self.consume("keyed", COUNT, "--property", "print.key=true")
        expect(found, sorted(lines), "lines")
        return f"{COUNT} of {COUNT}"

    def _offsets(self) -> str:
        ends = sum(self._shell("old-gzip", -1))
        expect(sum(self._shell("old-gzip", -2)), 0, "earliest offsets")
        expect(ends, COUNT, "latest offsets, added up")
        return f"earliest 0, latest {ends} in {PARTITIONS} partitions"

    def _shell(self, topic: str, time: int) -> list[int]:
        options = ("--broker-list", self.place.address, "--topic", topic, "--time", str(time))
        said = self.run("kafka.tools.GetOffsetShell", *options)
        found = [int(each) for each in re.findall(rf"^{topic}:\d+:(\d+)$", said, re.MULTILINE)]
        expect(len(found), PARTITIONS, "partitions with an offset")
        return found

    def _simple(self) -> str:
        ends = self._shell("old-snappy", -1)
        partition = ends.index(max(ends))
        options = ("--broker-list", self.place.address, "--topic", "old-snappy")
        more = ("--partition", str(partition), "--offset", "-2", "--no-wait-at-logend")
        said = self.run("kafka.tools.SimpleConsumerShell", *options, *more)
        found = [line for line in said.splitlines() if line.startswith("old-snappy")]
        expect(len(found), ends[partition], f"lines of partition {partition}")
        return f"{len(found)} lines of partition {partition}"

    def _group(self) -> str:
        """A group commits to ZooKeeper; its next member begins there."""
        config = self.config("checked")
        expect(len(self.consume("old-none", COUNT, *config)), COUNT, "lines")
        expect(self.exported("checked"), COUNT, "exported offsets, added up")
        self.reads_on("old-none", config)
        return f"{COUNT} in ZooKeeper; the next member reads the 5 newer messages"

    # --- offsets in Kafka --------------------------------------------------------------

    def _kept_group(self) -> str:
        """A group commits to its coordinator; its next member begins there."""
        config = self._kept()
        expect(len(self.consume("old-gzip", COUNT, *config)), COUNT, "lines")
        expect(self._has_offsets_in_zookeeper(GROUP), False, "offsets in ZooKeeper")
        self.reads_on("old-gzip", config)
        return "none in ZooKeeper; the next member reads the 5 newer messages"

    def _moved_group(self) -> str:
        """A group with offsets in ZooKeeper goes on with dual commit, and then without."""
        before = self.config("moved", "offsets.storage=zookeeper")
        expect(len(self.consume("old-snappy", COUNT, *before)), COUNT, "lines")
        dual = self.config("moved", "offsets.storage=kafka", "dual.commit.enabled=true")
        self.reads_on("old-snappy", dual)
        expect(self.exported("moved"), COUNT + 5, "offsets in ZooKeeper, added up")
        after = self.config("moved", "offsets.storage=kafka", "dual.commit.enabled=false")
        self.reads_on("old-snappy", after)
        expect(self.exported("moved"), COUNT + 5, "offsets in ZooKeeper, added up later")
        return f"{COUNT} in ZooKeeper, 5 in both, 5 in Kafka; none read twice"

    def _back_group(self) -> str:
        """A group goes back to ZooKeeper: with dual commit, no offset is written there."""
        topic, group = "old-lz4", "back"
        kept = self.config(group, "offsets.storage=kafka", "dual.commit.enabled=false")
        expect(len(self.consume(topic, COUNT, *kept)), COUNT, "lines")
        dual = ("offsets.storage=kafka", "dual.commit.enabled=true", "consumer.timeout.ms=4000")
        options = ("--zookeeper", self.place.zookeeper, "--topic", topic)
        self.run("kafka.tools.ConsoleConsumer", *options, *self.config(group, *dual))
        expect(self._has_offsets_in_zookeeper(group), False, "offsets in ZooKeeper")
        expect(self._migrates(group), 1, "exit code of migrate-offsets: not yet")
        expect(self._migrates(group, "--copy"), 0, "exit code of migrate-offsets --copy")
        expect(self.exported(group), COUNT, "offsets in ZooKeeper, added up")
        self.reads_on(topic, self.config(group, "offsets.storage=zookeeper"))
        return (
            "none written by 4 s of commits; copied, and the next member reads 5 newer messages"
        )

    def _migrates(self, group: str, *more: str) -> int:
        command = ("migrate-offsets", self.place.zookeeper, "--to", "zookeeper", "--group", group)
        return subprocess.run(
            [*COMMAND, *command, *more], capture_output=True, timeout=WITHIN_S, env=ENVIRONMENT
        ).returncode

    def _checked_group(self) -> str:
        options = ("--zookeeper", self.place.zookeeper, "--group", GROUP, "--topic", "old-gzip")
        said = self.run("kafka.tools.ConsumerOffsetChecker", *options)
        rows = re.findall(r"^kept\s+old-gzip\s+\d+\s+(\d+)\s+(\d+)\s+(\d+)", said, re.MULTILINE)
        totals = [sum(int(row[column]) for row in rows) for column in range(3)]
        expect(totals, [COUNT + 5, COUNT + 5, 0], "offset, logSize and lag, added up")
        return f"offsets {totals[0]}, lag 0"

    def _formatted(self) -> str:
        """Kafka's own reader of the topic of offsets reads what this broker wrote."""
        options = ("--zookeeper", self.place.zookeeper, "--topic", "__consumer_offsets")
        formatter = "kafka.server.OffsetManager$OffsetsMessageFormatter"
        config = self.config("reader", "exclude.internal.topics=false")
        more = ("--from-beginning", "--formatter", formatter, "--max-messages", "4", *config)
        said = self.run("kafka.tools.ConsoleConsumer", *options, *more)
        found = re.findall(r"^\[\S+,\S+,\d\]::OffsetAndMetadata\[-?\d+,", said, re.MULTILINE)
        expect(len(found), 4, "commits that it shows")
        return str(found[0])

    def config(self, group: str, *lines: str) -> tuple[str, str]:
        """Options of a console consumer that is a member of a group."""
        path = self.place.logs.parent / f"{group}.properties"
        both = (f"group.id={group}", "auto.commit.interval.ms=200", *lines)
        path.write_text("".join(f"{line}\n" for line in both))
        return ("--consumer.config", str(path))

    def _has_offsets_in_zookeeper(self, group: str) -> bool:
        client = KazooClient(self.place.zookeeper)
        client.start(WITHIN_S)
        try:
            return client.exists(f"/consumers/{group}/offsets") is not None
        finally:
            client.stop()
            client.close()

    def exported(self, group: str) -> int:
        """The offsets of a group in ZooKeeper, added up."""
        exported = self.place.logs.parent / f"exported-{group}"
        options = ("--zkconnect", self.place.zookeeper, "--group", group)
        self.run("kafka.tools.ExportZkOffsets", *options, "--output-file", str(exported))
        return sum(map(int, re.findall(r"offsets/[^/]+/\d+:(\d+)", exported.read_text())))

    def reads_on(self, topic: str, config: tuple[str, str]) -> None:
        """Produce five messages; the next member of a group reads them and no others."""
        lines = lines_of("more", 5)
        self.produce(topic, "none", lines, "--sync")
        options = ("--zookeeper", self.place.zookeeper, "--topic", topic, *config)
        said = self.run("kafka.tools.ConsoleConsumer", *options, "--max-messages", "5")
        found = [line for line in said.splitlines() if not line.startswith("Consumed ")]
        expect(sorted(found), sorted(lines), "what the next member reads")

    # --- once it has ended -------------------------------------------------------------

    def _dump(self, codec: str) -> str:
        count = valid = 0
        for path in sorted(self.place.logs.glob(f"old-{codec}-*/*.log")):
            said = self.run(
                "kafka.tools.DumpLogSegments", "--deep-iteration", "--files", str(path)
            )
            entries = [line for line in said.splitlines() if line.startswith("offset:")]
            offsets = [int(line.split()[1]) for line in entries]
            expect(offsets, list(range(len(offsets))), "offsets")
            count += len(entries)
            valid += said.count("isvalid: true")
        expect((count >= COUNT, valid), (True, count), "messages, and valid ones")
        return f"{valid} of {count} messages valid"

    def _dump_compacted(self) -> str:
        """Every message is valid, offsets rise, and those that were removed are missing."""
        folder = self.place.logs / f"{OFFSETS_TOPIC}-{partition_of(GROUP, OF_OFFSETS)}"
        offsets: list[int] = []
        for path in sorted(folder.glob("*.log")):
            said = self.run("kafka.tools.DumpLogSegments", "--files", str(path))
            entries = [line for line in said.splitlines() if line.startswith("offset:")]
            expect(all("isvalid: true" in line for line in entries), True, "valid messages")
            offsets += [int(line.split()[1]) for line in entries]
        expect(offsets, sorted(set(offsets)), "offsets")
        expect(len(offsets) < offsets[-1], True, f"{len(offsets)} messages, last {offsets[-1]}")
        return f"{len(offsets)} messages, the last one at offset {offsets[-1]}"

    def _dump_indexes(self) -> str:
        paths = sorted(self.place.logs.glob("*/*.index"))
        several = ",".join(map(str, paths))
        said = self.run(
            "kafka.tools.DumpLogSegments",
            "--verify-index-only",
            "--deep-iteration",
            *("--files", several),
        )
        expect("ismatch" in said, False, "an entry of an index that Kafka finds wrong")
        return f"{len(paths)} indexes without a mismatch"

    def _broker(self) -> str:
        """Kafka's own broker takes over the folder, under the same id: it serves and appends."""
        with socket.create_server((HOST, 0)) as free:
            port = free.getsockname()[1]
        self.place.address = f"{HOST}:{port}"
        settings = self.place.logs.parent / "server.properties"
        settings.write_text(
            f"broker.id={BROKER_ID}\nhost.name={HOST}\nport={port}\n"
            f"log.dirs={self.place.logs}\nzookeeper.connect={self.place.zookeeper}\n"
        )
        command = [*java_command(self.jars), "kafka.Kafka", str(settings)]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as it:
            try:
                await_port(port)
                found = self.consume("old-none", COUNT + 5)
                expected = [*lines_of("old-none", COUNT), *lines_of("more", 5)]
                expect(found, sorted(expected), "lines")
                self.reads_on("old-gzip", self._kept())
            finally:
                it.terminate()
                it.wait(WITHIN_S)
        return f"{COUNT + 5} messages read; a group goes on from its offsets in Kafka"

    def _kept(self) -> tuple[str, str]:
        return self.config(GROUP, "offsets.storage=kafka", "dual.commit.enabled=false")

    def _own_again(self) -> str:
        """This broker opens the folder that Kafka's has left."""
        self.place.start_again()
        self.reads_on("old-gzip", self._kept())
        expect(self.place.end(), 0, "exit code")
        return "a group goes on from the offsets that Kafka's broker wrote"

    # --- programs ----------------------------------------------------------------------

    def produce(self, topic: str, codec: str, lines: list[str], *more: str) -> None:
        """Send lines with the console producer."""
        options = ("--broker-list", self.place.address, "--topic", topic)
        said = self.run(
            "kafka.tools.ConsoleProducer",
            *(*options, "--compression-codec", codec, *more),
            given="".join(f"{line}\n" for line in lines),
        )
        expect([line for line in said.splitlines() if "ERROR" in line], [], "errors")

    def consume(self, topic: str, count: int, *more: str) -> list[str]:
        """Read lines with the console consumer, and sort them."""
        options = ("--zookeeper", self.place.zookeeper, "--topic", topic)
        limits = ("--from-beginning", "--max-messages", str(count))
        said = self.run("kafka.tools.ConsoleConsumer", *options, *limits, *more)
        return sorted(line for line in said.splitlines() if not line.startswith("Consumed "))

    def run(self, name: str, *arguments: str, given: str = "") -> str:
        """Run a class of Kafka; return what it prints, or raise what it says of its failure."""
        return run_class(self.jars, name, *arguments, given=given)


def run_class(jars: Path, name: str, *arguments: str, given: str = "") -> str:
    """Run a class of Kafka; return what it prints, or raise what it says of its failure."""
    command = [*java_command(jars), name, *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=WITHIN_S)
    if done.returncode:
        raise AssertionError(f"{name} ended with {done.returncode}: {done.stderr[-200:]}")
    return done.stdout + "".join(
        f"{line}\n" for line in done.stderr.splitlines() if line.startswith("ERROR")
    )


def lines_of(word: str, count: int) -> list[str]:
    """Lines to send."""
    return [f"{word}-{number}" for number in range(count)]


def await_port(port: int) -> None:
    """Wait until Kafka's broker listens at a port of this machine."""
    deadline_s = monotonic() + WITHIN_S
    while monotonic() < deadline_s:
        with suppress(OSError), socket.create_connection((HOST, port), 1.0):
            return
        sleep(0.2)
    raise AssertionError(f"Kafka's broker does not listen within {WITHIN_S:g} s")
