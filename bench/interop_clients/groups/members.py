"""Members of a group as processes, which can be killed, stopped and made to leave."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache
from itertools import chain
from pathlib import Path
from time import monotonic, sleep

from bench.interop_clients.broker import HOME
from bench.interop_clients.kafka_jars import java_command
from bench.interop_clients.outcome import Skipped

HERE = Path(__file__).parent
JAVA_MEMBER, OWN_MEMBER = HERE / "GroupMember.java", HERE / "own_member.py"
WITHIN_S = 120.0
SESSION_MS = 6000
CONFIG = {
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    "rebalance.max.retries": "20",
    "rebalance.backoff.ms": "1000",
    "auto.commit.interval.ms": "500",
    "auto.offset.reset": "smallest",
}
OF_JVM = {"zookeeper.connection.timeout.ms": "30000"}
"""What only Kafka's consumer knows."""


Place = tuple[str, int, int]
"""Topic, partition and offset of a message."""


class Kind(StrEnum):
    """A program that can be a member."""

    JVM = "jvm"
    KAFKA_08 = "kafka_08"
    HARDENED = "hardened"


@cache
def java_member(jars: Path) -> tuple[str, ...]:
    """The command of a member by Kafka, compiled; raises Skipped if Java or a part is missing."""
    command = java_command(jars)
    compiler = shutil.which("javac")
    if compiler is None:
        raise Skipped("there is no javac on PATH to compile a member by Kafka's consumer")
    path = f"{jars}:{jars}/*"
    classes = jars / "member"
    done = subprocess.run(
        [compiler, "-nowarn", "-cp", path, "-d", str(classes), str(JAVA_MEMBER)],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
    )
    if done.returncode:
        raise Skipped(f"javac could not compile {JAVA_MEMBER.name}: {done.stderr[-200:]}")
    return (*command[:-1], f"{classes}:{path}", JAVA_MEMBER.stem)


class MemberProcess:
    """A member of a group, in a process of its own."""

    def __init__(self, name: str, command: list[str], log: Path) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=errors,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": str(HOME)},
            )

    def await_said(self, word: str) -> None:
        """Wait until it prints a line with this word alone."""
        deadline_s = monotonic() + WITHIN_S
        while word not in self.log.read_text().splitlines():
            if self._process.poll() is not None or monotonic() > deadline_s:
                said = self.log.read_text()[-200:]
                raise AssertionError(f"{self.name} has not {word}: {said}")
            sleep(0.1)

    def leave(self) -> None:
        """Make it leave its group, and wait for its end."""
        assert self._process.stdin is not None, "it was started with a pipe"
        self._process.stdin.close()
        self._process.wait(WITHIN_S)

    def kill(self) -> None:
        """Kill it as `kill -9` does."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None, "it was started with a pipe"
        self._process.stdin.close()

    def stop(self) -> None:
        """Let it stand still."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it run again."""
        self._process.send_signal(signal.SIGCONT)


class Members:
    """The members of one group."""

    def __init__(self, zookeeper: str, group: str, folder: Path, jars: Path) -> None:
        self.group = group
        self.running: dict[str, MemberProcess] = {}
        self._zookeeper = zookeeper
        self._folder = folder
        self._jars = jars
        self._count = 0

    def start(
        self,
        kind: Kind,
        streams: str,
        *,
        pattern: str = "static",
        config: Mapping[str, str] | None = None,
    ) -> str:
        """Start a member, wait until it has joined, and return its name.

        streams   TOPIC:STREAMS,... or, for a pattern that is not static, EXPRESSION:STREAMS
        """
        self._count += 1
        name = f"{kind}{self._count}"
        settings = self._folder / f"{self.group}-{name}.properties"
        given = {
            **CONFIG,
            **(OF_JVM if kind is Kind.JVM else {}),
            **(config or {}),
            "zookeeper.connect": self._zookeeper,
            "group.id": self.group,
            "consumer.id": name,
            "pattern": pattern,
            "streams": streams,
        }
        settings.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
        if kind is Kind.JVM:
            command = [*java_member(self._jars), str(settings)]
        else:
            command = [sys.executable, "-P", str(OWN_MEMBER), str(settings), kind]
        self.running[name] = MemberProcess(name, command, settings.with_suffix(".log"))
        self.running[name].await_said("joined")
        return name

    def leave(self, name: str) -> None:
        """Make a member leave."""
        self.running.pop(name).leave()

    def kill(self, name: str) -> None:
        """Kill a member."""
        self.running.pop(name).kill()

    def messages(self) -> Counter[Place]:
        """Where the messages are that members have read, and how often each was."""
        logs = sorted(self._folder.glob(f"{self.group}-*.log"))
        return Counter(chain.from_iterable(read_in(log.read_text()) for log in logs))

    def of_kind(self, kind: Kind) -> str:
        """The name of a member of this kind."""
        return next(name for name in self.running if name.startswith(kind))

    def end(self) -> None:
        """Kill what still runs."""
        for name in [*self.running]:
            self.kill(name)


def read_in(text: str) -> Iterator[Place]:
    """The messages in the log of a member; its last line may have been cut off by a kill."""
    whole, _, _ = text.rpartition("\n")
    for topic, number, offset in re.findall(r"^read (\S+) (\d+) (\d+)$", whole, re.MULTILINE):
        yield topic, int(number), int(offset)
