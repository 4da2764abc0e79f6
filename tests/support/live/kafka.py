"""Kafka's own brokers and console tools, as far as Maven and Java are there."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.live.maven import classpath_of
from tests.support.live_zookeeper import connected, disconnect, until
from tests.support.patience import PATIENCE_S
from watchkeeper.real.ports import free_ports
from watchkeeper.real.zookeeper.java import find_java

ARTIFACTS = {
    "0.8.2.2": ("org.apache.kafka:kafka_2.10:0.8.2.2",),
    "1.1.1": ("org.apache.kafka:kafka_2.11:1.1.1",),
}
OPENED = ("java.base/java.lang", "java.base/java.nio", "java.base/sun.nio.ch")
"""Packages that programs of that time look into, and that Java has closed since."""
SETTINGS = """broker.id=0
host.name=127.0.0.1
port={port}
zookeeper.connect={hosts}
log.dirs={folder}
num.partitions=2
offsets.topic.replication.factor=1
"""


class KafkaBroker:
    """A broker of Kafka, and its tools."""

    def __init__(self, version: str, hosts: str, folder: Path) -> None:
        self._hosts = hosts
        [self.port] = free_ports(1)
        self.address = f"127.0.0.1:{self.port}"
        self._folder = folder
        self._classpath = classpath_of(ARTIFACTS[version], folder)
        self._settings = folder / "server.properties"
        text = SETTINGS.format(port=self.port, hosts=hosts, folder=self.logs)
        self._settings.write_text(text)

    def command(self, main_class: str, *arguments: str) -> list[str]:
        """Return the command of a program of this version."""
        opened = [f"--add-opens={package}=ALL-UNNAMED" for package in OPENED]
        return [str(find_java()), *opened, "-cp", self._classpath, main_class, *arguments]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the broker from its registration to the end of the block."""
        command = self.command("kafka.Kafka", str(self._settings))
        with (
            (self._folder / "broker.log").open("wb") as log,
            subprocess.Popen(command, stdout=log, stderr=log) as process,
        ):
            client = connected(self._hosts)
            try:
                until(lambda: client.exists("/brokers/ids/0") is not None)
                yield
            finally:
                disconnect(client)
                process.kill()

    @property
    def logs(self) -> Path:
        """The folder of its logs."""
        return self._folder / "logs"

    def produce(self, topic: str, *messages: str, codec: str = "none") -> None:
        """Send messages with the console producer, and wait until the broker has them."""
        options = ("--broker-list", self.address, "--topic", topic, "--sync")
        options += ("--compression-codec", codec)
        options += ("--request-required-acks", "1")
        command = self.command("kafka.tools.ConsoleProducer", *options)
        subprocess.run(
            command,
            input="".join(f"{message}\n" for message in messages),
            text=True,
            check=True,
            capture_output=True,
            timeout=PATIENCE_S,
        )

    def dumped(self, segment: Path) -> str:
        """Return what Kafka's own tool finds in a segment, in wrappers, too."""
        options = ("--deep-iteration", "--print-data-log", "--files", str(segment))
        command = self.command("kafka.tools.DumpLogSegments", *options)
        done = subprocess.run(
            command, text=True, check=True, capture_output=True, timeout=PATIENCE_S
        )
        return done.stdout
