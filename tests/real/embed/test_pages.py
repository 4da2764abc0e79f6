"""What is shown of live members is what happens, on a real ZooKeeper."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from threading import Thread

import pytest

from tests import HOME, SOURCE
from tests.support.live_zookeeper import until
from tests.support.pages.markdown import blocks
from tests.support.pages.session import ZOOKEEPER, commands_of
from tests.support.patience import PATIENCE_S
from watchkeeper import Broker
from watchkeeper.real.zookeeper.ensemble import Ensemble

pytestmark = pytest.mark.usefixtures("nothing_left_behind")

NUMBERS = count(1)
PAGE = "docs/how-to/embed-a-member.md"
READ = "has read a message"
TELLING = f"""
import runpy, sys
from watchkeeper import Consumer
store = Consumer.store_offsets
def telling(self, offsets):
    store(self, offsets)
    Consumer.store_offsets = store
    print("{READ}")
Consumer.store_offsets = telling
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a program that tells when it has stored its first offset."""


@pytest.fixture
def hosts(zookeeper: Ensemble) -> str:
    return f"{zookeeper.hosts}/pages/{next(NUMBERS)}"


def written(name: str, folder: Path) -> dict[str, list[str]]:
    """Write the programs of a page; the commands that need a ZooKeeper, with their output."""
    shown = {}
    for block in blocks((HOME / name).read_text()):
        if block.file:
            (folder / block.file).write_text(block.text)
        for step in commands_of(block):
            if ZOOKEEPER in step.command:
                shown[step.command] = list(step.shown)
    return shown


class Started:
    """A program at work, and what it has printed."""

    def __init__(
        self, command: str, hosts: str, folder: Path, *, tells_of_reading: bool = False
    ) -> None:
        tool, *arguments = command.replace(ZOOKEEPER, hosts).split()
        assert tool == "python"
        if tells_of_reading:
            arguments = ["-c", TELLING, *arguments]
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-u", *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reading = Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(map(str.rstrip, self.process.stdout))

    def has_said(self, words: str) -> bool:
        return any(words in line for line in self.lines)

    def end(self) -> list[str]:
        """Wait until it has ended well; what it has printed."""
        code = self.process.wait(PATIENCE_S)
        self._reading.join(PATIENCE_S)
        assert code == 0, self.lines
        return self.lines

    def __enter__(self) -> Started:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)
        self._reading.join(PATIENCE_S)
        if self.process.stdout is not None:
            self.process.stdout.close()


def test_every_program_is_run_below() -> None:
    """A program that is added to the page has to be run here."""
    commands = [
        step.command for block in blocks((HOME / PAGE).read_text()) for step in commands_of(block)
    ]
    assert commands == [
        f"python {name}.py {ZOOKEEPER}" for name in ("billing", "billing_async", "hello")
    ]


def test_the_readme(hosts: str, tmp_path: Path) -> None:
    ((command, shown),) = written("README.md", tmp_path).items()
    with Started(command, hosts, tmp_path) as program:
        assert program.end() == shown


def test_two_share_and_one_is_interrupted(hosts: str, tmp_path: Path) -> None:
    written(PAGE, tmp_path)
    command = f"python billing.py {ZOOKEEPER}"
    with (
        Broker(hosts, id=7, topics={"clicks": 4}),
        Started(command, hosts, tmp_path, tells_of_reading=True) as first,
        Started(command, hosts, tmp_path, tells_of_reading=True) as second,
    ):
        until(lambda: first.has_said("owns=2") and second.has_said("owns=2"))
        until(lambda: first.has_said(READ) and second.has_said(READ))
        first.process.send_signal(signal.SIGINT)
        *_, left, last_line = first.end()
        assert "ended why=left" in left
        assert int(last_line.split()[1]) > 0
        until(lambda: "owns=4" in second.lines[-1])
        second.process.send_signal(signal.SIGINT)
        assert "ended why=left" in second.end()[-2]


def test_the_event_loop(hosts: str, tmp_path: Path) -> None:
    written(PAGE, tmp_path)
    with Broker(hosts, id=7, topics={"clicks": 4}) as broker:
        broker.ready()
        with Started(f"python billing_async.py {ZOOKEEPER}", hosts, tmp_path) as program:
            assert program.end() == ["reading 4 partitions"]


def test_a_program_of_ones_own(hosts: str, tmp_path: Path) -> None:
    written(PAGE, tmp_path)
    with Started(f"python hello.py {ZOOKEEPER}", hosts, tmp_path) as program:
        assert program.end() == ["a program has seen 0 znodes"]
