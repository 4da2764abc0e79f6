"""Offsets that Kafka's consumer stores and this project's reads, and the other way round."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

from bench.interop_clients.broker import HOST, run_command
from bench.interop_clients.jvm import Jvm, lines_of
from bench.interop_clients.kafka_cluster import WITHIN_S, OnKafka, connected
from bench.interop_clients.outcome import Action, expect

from watchkeeper import Consumer, SimpleConsumer
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.offset_manager.manager import partition_of
from watchkeeper.model.offset_manager.settings import OFFSETS_TOPIC

CLIENT = "offsets"
BROKERS = (1, 2)
PARTITIONS = 4
COUNT, MORE = 100, 5
"""Messages of a topic, and those that `Jvm.reads_on` produces."""
BEGINNING = "--from-beginning"
VARIANTS = ("kafka_08", "hardened")
OFFSETS_PARTITIONS = 4
SETTINGS = (
    f"offsets.topic.num.partitions={OFFSETS_PARTITIONS}",
    "offsets.topic.replication.factor=2",
)
SHORT = {"zookeeper.session.timeout.ms": 6000, "auto.commit.interval.ms": 500}


class Storage(NamedTuple):
    """Where a group keeps its offsets."""

    name: str
    storage: str
    has_dual_commit: bool

    @property
    def lines(self) -> tuple[str, str]:
        """The settings as Kafka reads them."""
        dual = str(self.has_dual_commit).lower()
        return (f"offsets.storage={self.storage}", f"dual.commit.enabled={dual}")

    @property
    def config(self) -> dict[str, object]:
        """The settings as this project's consumer takes them."""
        if self.storage == "zookeeper":
            return {**SHORT, "offsets.storage": self.storage}
        dual = {"dual.commit.enabled": self.has_dual_commit}
        return {**SHORT, "offsets.storage": self.storage, **dual}

    @property
    def is_in_zookeeper(self) -> bool:
        """Whether ZooKeeper has the offsets."""
        return self.storage == "zookeeper" or self.has_dual_commit


STORAGES = (
    Storage("ZooKeeper", "zookeeper", False),
    Storage("Kafka", "kafka", False),
    Storage("both", "kafka", True),
)


class GroupOffsets(OnKafka):
    """Groups that are continued by a member of the other kind."""

    client = CLIENT

    def __init__(self, folder: Path, jars: Path) -> None:
        super().__init__(folder / "offsets", jars, settings=SETTINGS)

    def actions(self) -> Iterator[Action]:
        """What is done, in this order."""
        yield self.start_action(BROKERS)
        for storage in STORAGES:
            name = f"in {storage.name}"
            yield self.action(f"{name}: Kafka's, continued by ours", self._theirs, storage)
            for variant in VARIANTS:
                what = f"{name}: of {variant}, continued by Kafka's"
                yield self.action(what, self._ours, storage, variant)
        yield self.action("both: the greater one counts, as in Kafka", self._greater)
        yield self.action("export, reset, and Kafka's goes on from there", self._reset)
        yield self.action("migrate-offsets --copy on Kafka's brokers", self._copied)
        for variant in VARIANTS:
            name = f"the coordinator is killed, and {variant} commits again"
            yield self.action(name, self._coordinator_killed, variant)

    # --- actions -----------------------------------------------------------------------

    def _theirs(self, storage: Storage) -> str:
        """Kafka's consumer reads all and commits; ours begin at the end, and change nothing."""
        topic = group = f"theirs-{storage.name.lower()}"
        self._filled(topic)
        self._read_by_jvm(topic, group, storage, BEGINNING)
        ends = self._ends(topic)
        for variant in VARIANTS:
            with self._member(topic, group, storage, variant) as consumer:
                expect(consumer.positions, of_numbers(topic, ends), f"where {variant} begins")
        self._jvm.reads_on(topic, self._config(group, storage))
        return f"{COUNT} messages, both variants begin at their ends; Kafka's reads {MORE} newer"

    def _ours(self, storage: Storage, variant: str) -> str:
        """Ours commits the ends; Kafka's checker shows them, its consumer reads what is newer."""
        topic = group = f"ours-{storage.name.lower()}-{variant}"
        self._filled(topic)
        ends = self._ends(topic)
        with self._member(topic, group, storage, variant) as consumer:
            self._committed(consumer, of_numbers(topic, ends))
            found = self._checked(topic, group)
            owners = frozenset({f"{consumer.status.consumer_id}-0"})
            expect(found, Checked(COUNT, COUNT, 0, owners), "what ConsumerOffsetChecker says")
        if storage.is_in_zookeeper:
            expect(self._jvm.exported(group), COUNT, "offsets in ZooKeeper, added up")
        self._jvm.reads_on(topic, self._config(group, storage))
        return f"lag 0 by ConsumerOffsetChecker; Kafka's reads the {MORE} newer messages"

    def _greater(self) -> str:
        """A group is ahead in one store and behind in the other, each way round."""
        both = STORAGES[2]
        for ahead, behind in ((STORAGES[0], STORAGES[1]), (STORAGES[1], STORAGES[0])):
            topic = group = f"ahead-in-{ahead.name.lower()}"
            self._filled(topic)
            ends = self._ends(topic)
            for storage, offsets in ((behind, dict.fromkeys(ends, 1)), (ahead, ends)):
                with self._member(topic, group, storage, "kafka_08") as consumer:
                    self._committed(consumer, of_numbers(topic, offsets))
            for variant in VARIANTS:
                with self._member(topic, group, both, variant) as consumer:
                    expect(consumer.positions, of_numbers(topic, ends), f"where {variant} begins")
            self._jvm.reads_on(topic, self._config(group, both))
        return "ahead in ZooKeeper, ahead in Kafka: both variants and Kafka's agree"

    def _reset(self) -> str:
        """`offsets export` reads what Kafka's consumer wrote; after `reset` it reads again."""
        topic = group = "reset"
        zookeeper = STORAGES[0]
        self._filled(topic)
        self._read_by_jvm(topic, group, zookeeper, BEGINNING)
        path = self.folder / "exported.json"
        self._done("offsets", self.zookeeper.hosts, "export", str(path), "--group", group)
        text = path.read_text()
        expect(added_up(text), COUNT, "exported offsets, added up")
        path.write_text(set_back(text))
        self._done("offsets", self.zookeeper.hosts, "reset", str(path), "--group", group)
        found = self._read_by_jvm(topic, group, zookeeper)
        return f"{COUNT} exported; set back to 0, Kafka's reads {found} messages again"

    def _copied(self) -> str:
        """Offsets that Kafka's consumer has in Kafka are copied to ZooKeeper."""
        topic = group = "copied"
        self._filled(topic)
        self._read_by_jvm(topic, group, STORAGES[1], BEGINNING)
        where = ("migrate-offsets", self.zookeeper.hosts, "--to", "zookeeper", "--group", group)
        before = run_command(*where, within_s=WITHIN_S)
        expect(before.returncode, 1, f"exit code before ({before.stdout}{before.stderr})")
        self._done(*where, "--copy")
        expect(self._jvm.exported(group), COUNT, "offsets in ZooKeeper, added up")
        self._jvm.reads_on(topic, self._config(group, STORAGES[0]))
        return f"{COUNT} copied; Kafka's reads the {MORE} newer messages"

    def _coordinator_killed(self, variant: str) -> str:
        """The other broker coordinates from then on."""
        topic = group = f"killed-{variant}"
        kept = STORAGES[1]
        self._filled(topic)
        ends = self._ends(topic)
        with self._member(topic, group, kept, variant) as consumer:
            self._committed(consumer, of_numbers(topic, dict.fromkeys(ends, 1)))
            coordinator = self._coordinator(group)
            self.cluster.kill(coordinator)
            self._committed(consumer, of_numbers(topic, ends))
        self.cluster.start(coordinator)
        self.cluster.await_registered(coordinator)
        self._jvm.reads_on(topic, self._config(group, kept))
        return f"broker {coordinator} killed; nothing committed is lost"

    # --- what they share ---------------------------------------------------------------

    @property
    def _jvm(self) -> Jvm:
        return self.cluster.jvm(BROKERS[0])

    def _config(self, group: str, storage: Storage) -> tuple[str, str]:
        return self._jvm.config(group, *storage.lines)

    def _filled(self, topic: str) -> None:
        """Make a topic, and produce messages that their keys spread over its partitions."""
        self.create(topic, PARTITIONS)
        lines = [f"{number}\t{line}" for number, line in enumerate(lines_of(topic, COUNT))]
        self._jvm.produce(topic, "none", lines, "--sync", "--property", "parse.key=true")

    def _read_by_jvm(self, topic: str, group: str, storage: Storage, *more: str) -> int:
        """Let Kafka's consumer read all messages; it commits when it ends."""
        where = ("--zookeeper", self.zookeeper.hosts, "--topic", topic)
        limit = ("--max-messages", str(COUNT), *more, *self._config(group, storage))
        said = self._jvm.run("kafka.tools.ConsoleConsumer", *where, *limit)
        found = sorted(line for line in said.splitlines() if line.startswith(f"{topic}-"))
        expect(found, sorted(lines_of(topic, COUNT)), "lines")
        return len(found)

    def _ends(self, topic: str) -> dict[int, int]:
        """The end of each partition, as its leader says."""
        ends = {}
        first = f"{HOST}:{self.cluster.ports[BROKERS[0]]}"
        with SimpleConsumer(first, protocol="0.8") as broker:
            leaders = broker.leaders(topic)
        for partition, address in leaders.items():
            with SimpleConsumer(address, protocol="0.8") as leader:
                ends[partition] = leader.latest(topic, partition)
        expect((sum(ends.values()), 0 in ends.values()), (COUNT, False), "ends, added up")
        return ends

    @contextmanager
    def _member(
        self, topic: str, group: str, storage: Storage, variant: str
    ) -> Iterator[Consumer]:
        """A member of ours, once it owns everything."""
        with Consumer(
            self.zookeeper.hosts,
            group=group,
            topics={topic: 1},
            variant=variant,
            layout="0.8",
            config=storage.config,
        ) as consumer:
            deadline_s = monotonic() + WITHIN_S
            while len(consumer.owned) < PARTITIONS:
                if monotonic() > deadline_s:
                    raise AssertionError(f"{variant} owns {consumer.owned}: {consumer.status}")
                sleep(0.1)
            yield consumer

    def _checked(self, topic: str, group: str) -> Checked:
        where = ("--zookeeper", self.zookeeper.hosts, "--group", group, "--topic", topic)
        said = self._jvm.run("kafka.tools.ConsumerOffsetChecker", *where)
        return checked(said, group, topic)

    def _committed(self, consumer: Consumer, offsets: dict[Partition, int]) -> None:
        expect(consumer.commit(offsets, timeout_s=WITHIN_S), True, "is committed")

    def _done(self, *arguments: str) -> None:
        done = run_command(*arguments, within_s=WITHIN_S)
        expect(done.returncode, 0, f"exit code of {arguments[0]} ({done.stdout}{done.stderr})")

    def _coordinator(self, group: str) -> int:
        """The broker that coordinates a group: the leader of one partition of offsets."""
        number = partition_of(group, OFFSETS_PARTITIONS)
        path = f"/brokers/topics/{OFFSETS_TOPIC}/partitions/{number}/state"
        with connected(self.zookeeper.hosts) as client:
            leader: int = json.loads(client.get(path)[0])["leader"]
        return leader


class Checked(NamedTuple):
    """What ConsumerOffsetChecker prints of a topic."""

    offset: int
    log_size: int
    lag: int
    owners: frozenset[str]


def checked(said: str, group: str, topic: str) -> Checked:
    """Read what ConsumerOffsetChecker prints: sums, and the members that own a partition."""
    rows = re.findall(
        rf"^{group}\s+{topic}\s+\d+\s+(\d+)\s+(\d+)\s+(\d+)\s+(\S+)$", said, re.MULTILINE
    )
    sums = [sum(int(row[column]) for row in rows) for column in range(3)]
    return Checked(sums[0], sums[1], sums[2], frozenset(row[3] for row in rows))


def set_back(text: str) -> str:
    """The offsets that `offsets export` has written, each of them 0."""
    found = json.loads(text)
    found["offsets"] = {
        topic: dict.fromkeys(partitions, 0) for topic, partitions in found["offsets"].items()
    }
    return json.dumps(found)


def added_up(text: str) -> int:
    """The sum of the offsets that `offsets export` has written."""
    topics = json.loads(text)["offsets"].values()
    return sum(offset for partitions in topics for offset in partitions.values())


def of_numbers(topic: str, offsets: Mapping[int, int]) -> dict[Partition, int]:
    """Offsets by partition, as a consumer takes them."""
    return {Partition(topic, str(number)): offset for number, offset in offsets.items()}
