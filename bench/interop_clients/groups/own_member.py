"""A member of a group by this project's consumer, which leaves when its input ends.

    python own_member.py FILE VARIANT

FILE has the settings that `GroupMember.java` reads. With `brokers`, the address of one, it reads
messages too, and prints where each of them is.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

from watchkeeper import Consumer, SimpleConsumer
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.rpc import CallError
from watchkeeper.model.clients_08.errors import RefusedByBroker

PAUSE_S = 0.1


class Reader(Thread):
    """Reads one partition from its leader, until it has to stop."""

    def __init__(
        self, broker: str, partition: Partition, offset: int, store: Callable[..., None]
    ) -> None:
        super().__init__(daemon=True)
        self.offset = offset
        self._broker = broker
        self._partition = partition
        self._store = store
        self._done = Event()

    def run(self) -> None:
        """Find the leader, and read; find it again when it has failed."""
        while not self._done.wait(PAUSE_S):
            with suppress(CallError, RefusedByBroker):
                self._read(self._leader())

    def stop(self) -> None:
        """Stop, and wait for that."""
        self._done.set()
        self.join()

    def _leader(self) -> str:
        with SimpleConsumer(self._broker, protocol="0.8") as consumer:
            leaders = consumer.leaders(self._partition.topic)
        return leaders[int(self._partition.name)] or self._broker

    def _read(self, leader: str) -> None:
        topic, number = self._partition.topic, int(self._partition.name)
        with SimpleConsumer(leader, protocol="0.8") as consumer:
            while not self._done.wait(PAUSE_S):
                for message in consumer.fetch(topic, number, self.offset):
                    sys.stdout.write(f"read {topic} {number} {message.offset}\n")
                    sys.stdout.flush()
                    self.offset = message.next_offset
                    self._store({self._partition: self.offset})


class Readers:
    """The readers of the partitions that a consumer has."""

    consumer: Consumer

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self._readers: dict[Partition, Reader] = {}

    def start(self, claims: Iterable[Any]) -> None:
        """Read partitions from where the group has committed."""
        for claim in claims if self._broker else ():
            store = self.consumer.store_offsets
            reader = Reader(self._broker, claim.partition, claim.offset or 0, store)
            self._readers[claim.partition] = reader
            reader.start()

    def stop(self, partitions: Iterable[Partition]) -> None:
        """Stop before partitions are released."""
        for partition in partitions if self._broker else ():
            self._readers.pop(partition).stop()


def settings_in(text: str) -> dict[str, str]:
    """The settings of a file of properties."""
    lines = (line.partition("=") for line in text.splitlines())
    return {name: value for name, _, value in lines}


def member_of(settings: dict[str, str], variant: str) -> Consumer:
    """The consumer that these settings describe."""
    pattern, streams = settings.pop("pattern"), settings.pop("streams")
    subscription: dict[str, Any]
    if pattern == "static":
        parts = (each.rpartition(":") for each in streams.split(","))
        subscription = {"topics": {topic: int(count) for topic, _, count in parts}}
    else:
        expression, _, count = streams.rpartition(":")
        subscription = {pattern: expression, "streams": int(count)}
    readers = Readers(settings.pop("brokers", ""))
    readers.consumer = Consumer(
        settings.pop("zookeeper.connect"),
        group=settings.pop("group.id"),
        consumer_id=settings.pop("consumer.id"),
        variant=variant,
        config={name: _typed(value) for name, value in settings.items()},
        on_partitions_assigned=readers.start,
        on_partitions_revoked=readers.stop,
        **subscription,
    )
    return readers.consumer


def _typed(value: str) -> str | int | bool:
    if value in ("true", "false"):
        return value == "true"
    return int(value) if value.isdecimal() else value


def main(path: str, variant: str) -> None:
    """Join, and leave at the end of the input."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    with member_of(settings_in(Path(path).read_text()), variant) as consumer:
        consumer.ready()
        print("joined", flush=True)
        sys.stdin.read()
    print("left", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
