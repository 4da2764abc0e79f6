"""kafka-python as a client of 0.8, in its own process: not every machine has it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.interop_clients.broker import Place
from bench.interop_clients.outcome import Action, Skipped

WITHIN_S = 90.0
PROGRAM = Path(__file__).with_name("kafka_python_program.py")
MISSING = "kafka-python is not installed (pip install kafka-python==1.4.7 python-snappy)"
ACTIONS: tuple[tuple[Any, ...], ...] = (
    *(("produce and consume", codec, acks) for codec in ("none", "gzip") for acks in (0, 1, -1)),
    *(("produce and consume", "snappy", acks) for acks in (0, 1, -1)),
    ("keys",),
    ("metadata",),
    ("offsets by time",),
    ("an offset out of range",),
    ("a fetch waits for messages",),
    ("commit and fetch offsets in ZooKeeper",),
    ("metadata of a commit that is too long",),
    ("commit and fetch offsets in Kafka",),
    ("requests of version 1",),
    ("a message to the topic of offsets",),
    ("acks 2 times out",),
    ("a damaged message is refused",),
)


class KafkaPython:
    """Runs actions of kafka-python on a broker."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def actions(self) -> Iterator[Action]:
        """What is done while the broker serves, in this order."""
        for name, *arguments in ACTIONS:
            words = ", ".join(str(each) for each in arguments[:1])
            acks = f", acks {arguments[1]}" if len(arguments) > 1 else ""
            title = f"{name} {words}{acks}".strip()
            yield Action("kafka-python", title, partial(self._run, name, *arguments))

    def _run(self, name: str, *arguments: object) -> str:
        if find_spec("kafka") is None:
            raise Skipped(MISSING)
        done = subprocess.run(
            [sys.executable, str(PROGRAM), self.place.address, name, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
        )
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or ["no word"]
            raise AssertionError(last[0])
        answer: str = json.loads(done.stdout)
        return answer
