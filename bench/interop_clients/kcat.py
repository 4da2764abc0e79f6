"""kcat, a client in C: librdkafka, told that the broker is of 0.8.2."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial

from bench.interop_clients.broker import BROKER_ID, Place
from bench.interop_clients.outcome import Action, Skipped, expect

CODECS = ("none", "gzip", "snappy", "lz4")
COUNT = 300
WITHIN_S = 60.0
OF_0_8 = ("-X", "api.version.request=false", "-X", "broker.version.fallback=0.8.2.2")


class Kcat:
    """Runs kcat on a broker."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def actions(self) -> Iterator[Action]:
        """What is done while the broker serves, in this order."""
        for codec in CODECS:
            for acks in (0, 1, -1):
                yield Action(
                    "kcat",
                    f"produce {codec}, acks {acks}; consume",
                    partial(self._round, codec, acks),
                )
        yield Action("kcat", "keys", self._keys)
        yield Action("kcat", "metadata", self._metadata)
        yield Action("kcat", "offsets by time", self._offsets)

    def _round(self, codec: str, acks: int) -> str:
        topic = f"kcat-{codec}.{acks}"
        lines = [f"{codec}-{number}" for number in range(COUNT)]
        options = ("-P", "-t", topic, "-z", codec, "-X", f"topic.request.required.acks={acks}")
        self.run(*options, given="\n".join(lines))
        found = self.run("-C", "-t", topic, "-e", "-q", "-o", "beginning").splitlines()
        expect(sorted(found), sorted(lines), "lines")
        return f"{COUNT} of {COUNT}"

    def _keys(self) -> str:
        lines = [f"k{number % 7}:v{number}" for number in range(COUNT)]
        self.run("-P", "-t", "kcat-keys", "-K", ":", given="\n".join(lines))
        found = self.run("-C", "-t", "kcat-keys", "-e", "-q", "-K", ":", "-o", "beginning")
        expect(sorted(found.splitlines()), sorted(lines), "lines")
        return f"{COUNT} of {COUNT}"

    def _metadata(self) -> str:
        said = self.run("-L", "-t", "kcat-keys")
        found = re.findall(r"partition \d+, leader (\d+), replicas: (\d+), isrs: (\d+)", said)
        expect({*found}, {(str(BROKER_ID),) * 3}, "leader, replicas, ISR")
        expect(f"broker {BROKER_ID} at {self.place.address}" in said, True, "the broker is named")
        return f"{len(found)} partitions, all led"

    def _offsets(self) -> str:
        said = self.run("-Q", "-t", "kcat-keys:0:-1", "-t", "kcat-keys:1:-1")
        ends = [int(each) for each in re.findall(r"offset (\d+)", said)]
        expect(sum(ends), COUNT, "latest offsets, added up")
        return f"latest {sum(ends)} in {len(ends)} partitions"

    def run(self, *arguments: str, given: str = "") -> str:
        """Run kcat; return what it prints, or raise what it says of its failure."""
        program = shutil.which("kcat") or shutil.which("kafkacat")
        if program is None:
            raise Skipped("kcat is not installed (apt-get install kcat)")
        done = subprocess.run(
            [program, "-b", self.place.address, *OF_0_8, *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
        )
        if done.returncode:
            raise AssertionError(f"kcat ended with {done.returncode}: {done.stderr[-200:]}")
        return done.stdout
