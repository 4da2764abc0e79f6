"""Brokers of Kafka 0.8.2.2, and its own ZooKeeper 3.4.6, each in a process of its own."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic, sleep

from bench.interop_clients.broker import HOST, Place
from bench.interop_clients.jvm import Jvm, await_port, run_class
from bench.interop_clients.kafka_jars import QUICK_START, java_command
from bench.interop_clients.outcome import Action, Rows
from kazoo.client import KazooClient

WITHIN_S = 180.0
TICK_MS = 500
"""A server grants session timeouts of 2 to 20 ticks."""
BROKER_SETTINGS = """broker.id={broker}
host.name={host}
port={port}
log.dirs={folder}
zookeeper.connect={zookeeper}
num.partitions=2
log.segment.bytes=8000
controlled.shutdown.enable=false
unclean.leader.election.enable=false
{more}"""
ZOOKEEPER_SETTINGS = """tickTime={tick_ms}
dataDir={folder}
clientPort={port}
clientPortAddress={host}
maxClientCnxns=0
"""


class KafkaCluster:
    """Brokers of Kafka at a ZooKeeper, which are started and killed one by one."""

    def __init__(
        self,
        folder: Path,
        zookeeper: str,
        jars: Path,
        *,
        settings: Iterable[str] = (),
        options: tuple[str, ...] = QUICK_START,
    ) -> None:
        self.folder = folder
        self.zookeeper = zookeeper
        self.ports: dict[int, int] = {}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._jars = jars
        self._options = options
        self._more = "".join(f"{line}\n" for line in settings)

    def start(self, broker: int) -> None:
        """Start a broker, on the folder it had before, and wait until it listens."""
        self.folder.mkdir(exist_ok=True)
        port = self.ports[broker] = free_port()
        settings = self.folder / f"{broker}.properties"
        settings.write_text(
            BROKER_SETTINGS.format(
                broker=broker,
                host=HOST,
                port=port,
                folder=self.logs(broker),
                zookeeper=self.zookeeper,
                more=self._more,
            )
        )
        command = [*java_command(self._jars, self._options), "kafka.Kafka", str(settings)]
        with (self.folder / f"{broker}.log").open("wb") as log:
            self._processes[broker] = subprocess.Popen(command, stdout=log, stderr=log)
        await_port(port)

    def kill(self, broker: int) -> None:
        """Kill a broker as `kill -9` does."""
        self._processes[broker].kill()
        self._processes[broker].wait()

    def leave(self, broker: int) -> None:
        """End a broker as a signal does, and wait for it."""
        self._processes[broker].terminate()
        self._processes[broker].wait(WITHIN_S)

    def logs(self, broker: int) -> Path:
        """The folder of a broker's logs."""
        return self.folder / f"logs-{broker}"

    def process(self, broker: int) -> subprocess.Popen[bytes]:
        """The process of a broker."""
        return self._processes[broker]

    def is_alive(self, broker: int) -> bool:
        """Whether the process of a broker runs."""
        return self._processes[broker].poll() is None

    def end(self) -> None:
        """Kill every broker."""
        for broker in self._processes:
            self.kill(broker)

    @property
    def addresses(self) -> str:
        """The addresses of all brokers, in the form of a setting of clients."""
        return ",".join(f"{HOST}:{port}" for port in self.ports.values())

    def jvm(self, broker: int) -> Jvm:
        """Kafka's programs, on one of the brokers."""
        place = Place(
            f"{HOST}:{self.ports[broker]}",
            self.zookeeper,
            self.folder,
            self.folder / f"{broker}.log",
            self._processes[broker],  # type: ignore[arg-type]
        )
        return Jvm(place, self._jars)

    def await_registered(self, broker: int, *, is_there: bool = True) -> None:
        """Wait until a broker is in the registry, or the session of a killed one has expired."""
        with connected(self.zookeeper) as client:
            deadline_s = monotonic() + WITHIN_S
            while (client.exists(f"/brokers/ids/{broker}") is not None) != is_there:
                if monotonic() > deadline_s:
                    raise AssertionError(f"broker {broker} is not in the registry as expected")
                sleep(0.2)


@contextmanager
def connected(zookeeper: str) -> Iterator[KazooClient]:
    """A client of a ZooKeeper, until the end of the block."""
    client = KazooClient(zookeeper)
    client.start(WITHIN_S)
    try:
        yield client
    finally:
        client.stop()
        client.close()


class KafkaZooKeeper:
    """ZooKeeper 3.4.6, which Kafka 0.8.2.2 comes with."""

    def __init__(self, folder: Path, jars: Path) -> None:
        self._folder = folder
        self._jars = jars
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.hosts = f"{HOST}:{self._port}"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self._folder.mkdir()
        settings = self._folder / "zoo.cfg"
        data = self._folder / "data"
        settings.write_text(
            ZOOKEEPER_SETTINGS.format(tick_ms=TICK_MS, folder=data, port=self._port, host=HOST)
        )
        name = "org.apache.zookeeper.server.ZooKeeperServerMain"
        with (self._folder / "zookeeper.log").open("wb") as log:
            command = [*java_command(self._jars), name, str(settings)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        await_port(self._port)

    def end(self) -> None:
        """Kill it, if it was started."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class OnKafka(Rows):
    """Rows on a ZooKeeper and brokers of Kafka, all of which end with the rows."""

    def __init__(self, folder: Path, jars: Path, *, settings: Iterable[str] = ()) -> None:
        self.folder = folder
        self.jars = jars
        self.zookeeper = KafkaZooKeeper(folder / "zookeeper", jars)
        self.cluster = KafkaCluster(
            folder / "kafka", self.zookeeper.hosts, jars, settings=settings
        )

    def start_action(self, brokers: Sequence[int]) -> Action:
        """The first row."""
        name = f"ZooKeeper 3.4.6 and {len(brokers)} brokers start"
        return self.first_action(name, partial(self.start, brokers))

    def end(self) -> None:
        """End every process."""
        self.cluster.end()
        self.zookeeper.end()

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic by Kafka's command."""
        numbers = ("--partitions", str(partitions), "--replication-factor", "2")
        self.topic_command("--create", "--topic", topic, *numbers)

    def topic_command(self, *options: str) -> str:
        """Run Kafka's command for topics, and return what it prints."""
        where = ("--zookeeper", self.zookeeper.hosts)
        return run_class(self.jars, "kafka.admin.TopicCommand", *where, *options)

    def start(self, brokers: Sequence[int]) -> str:
        """Start the ZooKeeper and these brokers."""
        self.folder.mkdir()
        self.zookeeper.start()
        for broker in brokers:
            self.cluster.start(broker)
            self.cluster.await_registered(broker)
        return f"brokers {', '.join(map(str, brokers))}"


def free_port() -> int:
    """A port of this machine that is free now."""
    with socket.create_server((HOST, 0)) as free:
        port: int = free.getsockname()[1]
    return port
