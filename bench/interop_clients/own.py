"""This project's own commands on what the other clients wrote."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections.abc import Iterator
from time import monotonic, sleep
from typing import Any

from bench.interop_clients.broker import BROKER_ID, HOST, Place, run_command
from bench.interop_clients.jvm import GROUP
from bench.interop_clients.outcome import Action, expect

from watchkeeper.model.log.format import requests
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.model.log.format.frames import HEAD_BYTES, WireStruct, frame_size
from watchkeeper.model.log.format.message_08 import KeyedMessage, records, wrap
from watchkeeper.model.offset_manager.settings import OFFSETS_TOPIC
from watchkeeper.model.wire_08.by_topic import OfTopic
from watchkeeper.model.wire_08.fetch import FetchRequest, PartitionFetch
from watchkeeper.model.wire_08.group_offsets import (
    CommitRequestV1,
    ConsumerMetadataRequest,
    TimedCommit,
)
from watchkeeper.model.wire_08.metadata import MetadataRequest
from watchkeeper.model.wire_08.produce import PartitionMessages, ProduceRequest
from watchkeeper.model.wire_08.table import decode_response
from watchkeeper.model.wire_08.table import encode_request as encode_request_08

CLIENT = "watchkeeper"
WITHIN_S = 120.0
COUNT = 300
COMMITS = 900
"""So many fill some segments of a partition of offsets."""
COMPACTED = re.compile(r"(__consumer_offsets-\d+) is compacted up to offset \d+: (\d+) messages")


class Own:
    """Runs commands of this project beside a broker of it."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def actions(self) -> Iterator[Action]:
        """What is done while the broker serves."""
        yield Action(CLIENT, "its codec: produce and fetch", self._round)
        yield Action(CLIENT, "commits, until their topic is compacted", self._compacted)
        yield Action(CLIENT, "audit --lag", self._audit)
        yield Action(CLIENT, "a client of 0.7 is recognized in the log", self._of_07)

    def at_rest(self) -> Iterator[Action]:
        """What is done once the broker has ended."""
        yield Action(CLIENT, "the broker ends with code 0, and leaves its marker", self._ended)
        yield Action(CLIENT, "load: offsets without a gap, all topics but one", self._load)

    def _round(self) -> str:
        messages = [KeyedMessage(b"key", b"%d" % number) for number in range(COUNT)]
        parts = (OfTopic("own", (PartitionMessages(0, wrap(messages, Codec.SNAPPY)),)),)
        self._ask(MetadataRequest(("own",)))
        self._ask(ProduceRequest(1, 1000, parts))
        wanted = (OfTopic("own", (PartitionFetch(0, 0, 1 << 20),)),)
        fetched = self._ask(FetchRequest(1000, 1, wanted)).topics[0].parts[0]
        found = [(one.offset, one.value) for one in records(fetched.messages)]
        expect(found, [(at, one.value) for at, one in enumerate(messages)], "messages")
        return f"{COUNT} of {COUNT}"

    def _compacted(self) -> str:
        """The log of a partition of offsets, to which a group of Kafka commits too."""
        self._until_coordinated()
        for number in range(COMMITS):
            commit = CommitRequestV1(GROUP, (OfTopic("own", (TimedCommit(0, number),)),))
            expect(self._ask(commit).topics[0].parts[0].error_code, 0, "error code")
        deadline_s = monotonic() + WITHIN_S
        while not (found := COMPACTED.findall(self.place.log())):
            if monotonic() > deadline_s:
                raise AssertionError("it was not compacted")
            sleep(0.1)
        folder, count = found[-1]
        return f"{folder}: {count} messages less"

    def _until_coordinated(self) -> None:
        deadline_s = monotonic() + WITHIN_S
        while self._ask(ConsumerMetadataRequest(GROUP)).error_code:
            if monotonic() > deadline_s:
                raise AssertionError("no coordinator")
            sleep(0.1)

    def _ask(self, request: WireStruct) -> Any:
        _, _, port = self.place.address.rpartition(":")
        with (
            socket.create_connection((HOST, int(port)), WITHIN_S) as connection,
            connection.makefile("rb") as answers,
        ):
            connection.sendall(encode_request_08(request, 1, CLIENT))
            size_bytes = frame_size(answers.read(HEAD_BYTES))
            return decode_response(request, answers.read(size_bytes), 1)

    def _audit(self) -> str:
        done = self._run("audit", self.place.zookeeper, "--lag", "--json")
        found = json.loads(done.stdout)
        if done.returncode not in (0, 1):
            raise AssertionError(done.stderr[-200:])
        text = json.dumps(found)
        expect("is unknown" in text, False, f"a lag is unknown: {text[:200]}")
        return f"exit code {done.returncode}, every lag known"

    def _of_07(self) -> str:
        _, _, port = self.place.address.rpartition(":")
        with socket.create_connection((HOST, int(port)), WITHIN_S) as connection:
            connection.sendall(
                requests.encode_request(requests.FetchRequest("clicks", 0, 0, 1024))
            )
            expect(connection.recv(1), b"", "what a client of 0.7 receives")
        expect("in the protocol of Kafka 0.7" in self.place.log(), True, "the log says so")
        return "closed, with one sentence"

    def _ended(self) -> str:
        expect(self.place.end(), 0, "exit code")
        expect((self.place.logs / ".kafka_cleanshutdown").exists(), True, "the marker")
        expect("defect" in self.place.log(), False, "a defect of the broker in its log")
        return "ended"

    def _load(self) -> str:
        """Count what `load` reads of every topic, and what is in the files."""
        out = self.place.logs.parent / "loaded"
        names = {folder.name.rpartition("-")[0] for folder in self.place.logs.glob("*-*")}
        names -= {OFFSETS_TOPIC}  # which is compacted, so that offsets are missing
        topics = ("--topics", ",".join(sorted(names)))
        where = ("load", str(self.place.logs), str(out), "--broker", str(BROKER_ID))
        done = self._run(*where, *topics)
        if done.returncode:
            raise AssertionError(f"exit code {done.returncode}: {done.stderr[-200:]}")
        expected = 0
        for path in self.place.logs.glob("*-*/*.log"):
            if path.parent.name.startswith(OFFSETS_TOPIC):
                continue
            data = path.read_bytes()
            expected += sum(1 for _ in records(data)) if data else 0
        loaded = [
            int(each.replace(",", "")) for each in re.findall(r"([\d,]+) messages", done.stdout)
        ]
        expect(expected in loaded, True, f"{expected} messages in {done.stdout[:200]!r}")
        return f"{expected} messages of {len(names)} topics"

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_command(*arguments, within_s=WITHIN_S)
