"""The broker that clients are let loose on, and its ZooKeeper, which is that in Python."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from watchkeeper.real.zookeepers.implementation import Implementation, ensemble_of

HOST = "127.0.0.1"
BROKER_ID = 3
PARTITIONS = 2
SETTINGS = (
    f"num.partitions={PARTITIONS}",
    *("log.cleaner.enable=true", "log.cleaner.backoff.ms=100"),
    "offsets.topic.segment.bytes=20000",
)
HOME = Path(__file__).resolve().parent.parent.parent
COMMAND = (sys.executable, "-P", "-m", "watchkeeper")
END_S = 30.0


@dataclass(slots=True)
class Place:
    """A broker that serves, with its folder and its ZooKeeper."""

    address: str
    zookeeper: str
    logs: Path
    log_file: Path
    process: subprocess.Popen[str]

    def log(self) -> str:
        """What the broker has logged."""
        return self.log_file.read_text()

    def end(self) -> int:
        """End the broker as a signal does; return its exit code."""
        self.process.terminate()
        return self.process.wait(END_S)

    def start_again(self) -> None:
        """Start a broker on the folder of the one that has ended, under the same id."""
        assert self.process.stdout is not None, "it was started with a pipe"
        self.process.stdout.close()
        again = _started(self.logs.parent, self.zookeeper)
        self.address, self.process = again.address, again.process


@contextmanager
def place(folder: Path) -> Iterator[Place]:
    """Start a ZooKeeper and a broker of 0.8; both end with the context."""
    ensemble = ensemble_of(Implementation.PYTHON)
    ensemble.start()
    try:
        hosts = f"{ensemble.hosts}/interop"
        broker = _started(folder, hosts)
        try:
            yield broker
        finally:
            if broker.process.poll() is None:
                broker.end()
            assert broker.process.stdout is not None, "it was started with a pipe"
            broker.process.stdout.close()
    finally:
        ensemble.stop()


def _started(folder: Path, hosts: str) -> Place:
    logs, log_file = folder / "logs", folder / "broker.log"
    options = (
        *("--protocol", "0.8", "--log-dir", str(logs), "--port", "0", "--id", str(BROKER_ID)),
        *("--zookeeper", hosts, *(word for each in SETTINGS for word in ("--set", each))),
    )
    with log_file.open("w") as errors:
        process = subprocess.Popen(
            [*COMMAND, "broker", *options],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "PYTHONPATH": str(HOME)},
        )
    assert process.stdout is not None, "it was started with a pipe"
    listens, registered = process.stdout.readline(), process.stdout.readline()
    if "is registered" not in registered:
        process.kill()
        raise SystemExit(f"the broker has not begun: {listens}{log_file.read_text()}")
    port = listens.partition(f"{HOST}:")[2].partition(":")[0]
    return Place(f"{HOST}:{port}", hosts, logs, log_file, process)


def run_command(*arguments: str, within_s: float) -> subprocess.CompletedProcess[str]:
    """Run a command of this project."""
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=within_s,
        env={**os.environ, "PYTHONPATH": str(HOME)},
    )
