"""One action of kafka-python on a broker: ADDRESS ACTION [CODEC ACKS]. Prints what came of it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from kafka.client_async import KafkaClient
from kafka.protocol.commit import GroupCoordinatorRequest, OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.fetch import FetchRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.offset import OffsetRequest
from kafka.protocol.produce import ProduceRequest

COUNT = 300
OF_0_8 = (0, 8, 2)
IN_ZOOKEEPER = (0, 8, 1)
"""The version with which kafka-python keeps offsets in ZooKeeper."""
QUIET_MS = 1500


def expect(found: object, expected: object, what: str) -> None:
    """Fail unless what was found is what was expected."""
    if found != expected:
        raise AssertionError(f"{what}: {found}; expected {expected}")


class Client:
    """The actions, by their names."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._raw: KafkaClient | None = None
        self._node: int | None = None

    # --- producers and consumers -------------------------------------------------------

    def produce(self, topic: str, pairs: list[tuple[Any, Any]], **settings: Any) -> list[Any]:
        """Send keys and values; return what the broker says of each."""
        producer = KafkaProducer(
            bootstrap_servers=self.address, api_version=OF_0_8, linger_ms=10, **settings
        )
        sent = [producer.send(topic, value, key=key) for key, value in pairs]
        producer.flush(30)
        found = [each.get(10) for each in sent]
        producer.close()
        return found

    def consume(
        self, topic: str, group: str | None = None, version: tuple[int, ...] = IN_ZOOKEEPER
    ) -> tuple[list[Any], KafkaConsumer]:
        """Read a topic from its beginning; return its messages, and the consumer."""
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=self.address,
            api_version=version,
            group_id=group,
            auto_offset_reset="earliest",
            consumer_timeout_ms=QUIET_MS,
            enable_auto_commit=False,
        )
        return list(consumer), consumer

    def round(self, codec: str, acks: str) -> str:
        """Produce with a codec, and consume."""
        topic = f"kp-{codec}.{acks}"
        pairs = [(None, b"%d" % number) for number in range(COUNT)]
        found = self.produce(
            topic, pairs, acks=int(acks), compression_type=None if codec == "none" else codec
        )
        read, _ = self.consume(topic)
        expect(sorted(each.value for each in read), sorted(value for _, value in pairs), "values")
        if int(acks):
            offsets = {(each.partition, each.offset) for each in found}
            expect(offsets, {(each.partition, each.offset) for each in read}, "offsets")
        return f"{COUNT} of {COUNT}"

    def keys(self) -> str:
        """Messages of one key go to one partition, and come back with it; tombstones too."""
        pairs = [(b"k%d" % (number % 7), b"%d" % number) for number in range(COUNT)]
        self.produce("kp-keys", [*pairs, (b"k0", None)])
        read, _ = self.consume("kp-keys")
        expect(len(read), COUNT + 1, "messages")
        expect(sum(each.value is None for each in read), 1, "tombstones")
        places: dict[bytes, set[int]] = {}
        for each in read:
            places.setdefault(each.key, set()).add(each.partition)
        expect({len(numbers) for numbers in places.values()}, {1}, "partitions of a key")
        return f"{len(places)} keys, one partition each, a tombstone"

    # --- requests ----------------------------------------------------------------------

    def ask(self, request: Any) -> Any:
        """Send a request to the broker; return the response."""
        if self._raw is None:
            self._raw = KafkaClient(bootstrap_servers=self.address, api_version=OF_0_8)
            self._node = self._raw.least_loaded_node()
        while not self._raw.ready(self._node):
            self._raw.poll(timeout_ms=50)
        sent = self._raw.send(self._node, request)
        self._raw.poll(future=sent)
        if sent.failed():
            raise sent.exception
        return sent.value

    def metadata(self) -> str:
        """The metadata of a topic that is made on demand, and of a name that cannot be one."""
        self.produce("kp-meta", [(None, b"1")])
        response = self.ask(MetadataRequest[0](["kp-meta"]))
        [(error, name, partitions)] = response.topics
        expect((error, name, len(partitions)), (0, "kp-meta", 2), "topic")
        expect({tuple(each[3]) for each in partitions}, {(3,)}, "replicas")
        [(error, _, _)] = self.ask(MetadataRequest[0](["no/name"])).topics
        expect(error, 17, "the error of an invalid name")
        return "2 partitions; error 17 for an invalid name"

    def offsets(self) -> str:
        """The earliest and the latest offset, and none before the first segment."""
        self.produce("kp-times", [(None, b"1")] * 10)
        found = []
        for at in (-2, -1):
            partitions = [(number, at, 1) for number in (0, 1)]
            response = self.ask(OffsetRequest[0](-1, [("kp-times", partitions)]))
            found.append(sum(each[2][0] for each in response.topics[0][1]))
        expect(found, [0, 10], "earliest and latest, added up")
        [(_, [(_, error, _)])] = self.ask(
            OffsetRequest[0](-1, [("kp-none", [(0, -1, 1)])])
        ).topics
        expect(error, 3, "the error of an unknown partition")
        return "earliest 0, latest 10; error 3 for an unknown topic"

    def fetch(self, topic: str, offset: int, wait_ms: int, min_bytes: int) -> tuple[Any, float]:
        """Fetch from the first partition; return the part, and the seconds that it took."""
        began = time.monotonic()
        parts = [(topic, [(0, offset, 1 << 20)])]
        response = self.ask(FetchRequest[0](-1, wait_ms, min_bytes, parts))
        return response.topics[0][1][0], time.monotonic() - began

    def out_of_range(self) -> str:
        """An offset behind the end has error 1."""
        self.produce("kp-range", [(None, b"1")] * 4)
        part, _ = self.fetch("kp-range", 1000, 1000, 1)
        expect((part[1], part[2]), (1, -1), "error code, high watermark")
        return "error 1"

    def waits(self) -> str:
        """A fetch at the end of a log waits as long as it says, and not longer."""
        self.produce("kp-wait", [(None, b"1")] * 10)
        end = self.ask(OffsetRequest[0](-1, [("kp-wait", [(0, -1, 1)])])).topics[0][1][0][2][0]
        part, took_s = self.fetch("kp-wait", end, 700, 1)
        expect((part[1], len(part[3])), (0, 0), "error code, messages")
        if took_s < 0.6:
            raise AssertionError(f"it waited {took_s:.2f} s, and 0.7 s were requested")
        return "0.7 s, then nothing"

    def commits(self) -> str:
        """Offsets of version 0, in ZooKeeper, through the broker."""
        self.produce("kp-commit", [(None, b"%d" % number) for number in range(50)])
        read, consumer = self.consume("kp-commit", "kp-group")
        consumer.commit()
        committed = {
            place.partition: consumer.committed(place) for place in consumer.assignment()
        }
        ends = {
            number: max(each.offset + 1 for each in read if each.partition == number)
            for number in {each.partition for each in read}
        }
        expect({number: committed[number] for number in ends}, ends, "committed offsets")
        again, _ = self.consume("kp-commit", "kp-group")
        expect(len(again), 0, "messages after the committed offsets")
        unknown = self.ask(OffsetFetchRequest[0]("no-group", [("kp-commit", [0])]))
        expect(unknown.topics[0][1][0], (0, -1, "", 3), "a group that never committed")
        return f"{committed}; error 3 for a group without offsets"

    def long_metadata(self) -> str:
        """A commit whose text is too long has error 12."""
        self.produce("kp-long", [(None, b"1")])
        parts = [("kp-long", [(0, 1, "x" * 4096), (1, 1, "x" * 4097)])]
        response = self.ask(OffsetCommitRequest[0]("kp-group", parts))
        expect(response.topics[0][1], [(0, 0), (1, 12)], "error codes")
        return "0 for 4096 characters, 12 for 4097"

    def coordinator(self, group: str) -> Any:
        """The coordinator of a group, once there is one; the topic may have to be created."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            found = self.ask(GroupCoordinatorRequest[0](group))
            if found.error_code != 15:
                return found
            time.sleep(0.1)
        raise AssertionError("no coordinator within 10 s")

    def in_kafka(self) -> str:
        """A consumer commits to the coordinator; the next one begins there."""
        self.produce("kp-kept", [(None, b"%d" % number) for number in range(50)])
        found = self.coordinator("kp-kept")
        expect((found.error_code, found.coordinator_id), (0, 3), "error code, coordinator")
        read, consumer = self.consume("kp-kept", "kp-kept", OF_0_8)
        expect(len(read), 50, "messages")
        consumer.commit()
        committed = [consumer.committed(place) for place in consumer.assignment()]
        expect(sum(each or 0 for each in committed), 50, "committed offsets, added up")
        again, _ = self.consume("kp-kept", "kp-kept", OF_0_8)
        expect(len(again), 0, "messages after the committed offsets")
        return "50 committed, with metadata; the next consumer reads none"

    def version_1(self) -> str:
        """Commits and fetches of version 1: texts, an unknown partition, one never committed."""
        self.produce("kp-v1", [(None, b"1")])
        self.coordinator("kp-v1")
        parts = [(0, 1, -1, "a text"), (1, 2, -1, "x" * 4097)]
        commit = OffsetCommitRequest[1]("kp-v1", -1, "", [("kp-v1", parts)])
        expect(self.ask(commit).topics[0][1], [(0, 0), (1, 12)], "commit")
        fetched = self.ask(OffsetFetchRequest[1]("kp-v1", [("kp-v1", [0, 1, 9])]))
        rows = [(0, 1, "a text", 0), (1, -1, "", 0), (9, -1, "", 3)]
        expect(fetched.topics[0][1], rows, "fetch")
        return "0 and 12; -1 without an error where none was committed; 3 for no partition"

    def internal(self) -> str:
        """A client cannot write to the topic of offsets."""
        self.coordinator("kp-v1")
        parts = [("__consumer_offsets", [(0, self._messages())])]
        response = self.ask(ProduceRequest[0](1, 300, parts))
        expect(response.topics[0][1][0][1], 17, "error code")
        return "error 17"

    def two_acks(self) -> str:
        """More replicas than there are cannot have the messages."""
        self.produce("kp-two", [(None, b"1")])
        data = self._messages()
        began = time.monotonic()
        response = self.ask(ProduceRequest[0](2, 300, [("kp-two", [(0, data)])]))
        expect(response.topics[0][1][0][1], 7, "error code")
        if time.monotonic() - began < 0.25:
            raise AssertionError("it did not wait")
        bad = self.ask(ProduceRequest[0](-2, 300, [("kp-two", [(0, data)])]))
        expect(bad.topics[0][1][0][1], 21, "the error of acks -2")
        return "error 7 after 0.3 s; error 21 for acks -2"

    def damaged(self) -> str:
        """A message whose CRC is wrong has error 2, and one that is too large error 10."""
        self.produce("kp-bad", [(None, b"1")])
        data = bytearray(self._messages())
        data[-1] ^= 1
        found = []
        for each in (bytes(data), self._messages(b"x" * 1_000_013)):
            response = self.ask(ProduceRequest[0](1, 300, [("kp-bad", [(0, each)])]))
            found.append(response.topics[0][1][0][1])
        expect(found, [2, 10], "error codes")
        return "error 2; error 10 for one that is too large"

    def _messages(self, value: bytes = b"value") -> bytes:
        from kafka.record.legacy_records import LegacyRecordBatchBuilder

        builder = LegacyRecordBatchBuilder(0, 0, 1 << 22)
        builder.append(0, None, None, value)
        return bytes(builder.build())


ACTIONS: dict[str, Callable[..., str]] = {
    "produce and consume": Client.round,
    "keys": Client.keys,
    "metadata": Client.metadata,
    "offsets by time": Client.offsets,
    "an offset out of range": Client.out_of_range,
    "a fetch waits for messages": Client.waits,
    "commit and fetch offsets in ZooKeeper": Client.commits,
    "metadata of a commit that is too long": Client.long_metadata,
    "commit and fetch offsets in Kafka": Client.in_kafka,
    "requests of version 1": Client.version_1,
    "a message to the topic of offsets": Client.internal,
    "acks 2 times out": Client.two_acks,
    "a damaged message is refused": Client.damaged,
}


def main() -> None:
    """Run the action that the command line names."""
    address, name, *arguments = sys.argv[1:]
    print(json.dumps(ACTIONS[name](Client(address), *arguments)))


if __name__ == "__main__":
    main()
