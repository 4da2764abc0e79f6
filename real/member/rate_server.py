"""The data plane of a broker without messages: a TCP server that reports the ends of logs.

It answers the offsets request of the protocol that the layout of its registry implies, 0.7 or
0.8, with the end of each log; any other request ends its connection, as with a broker that does
not know it.
"""

from __future__ import annotations

import socketserver
from collections.abc import Callable, Iterable
from threading import Thread

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.broker.registration import Broker
from watchkeeper.model.log.format import requests, requests_08
from watchkeeper.model.log.format.errors import LogError, MalformedRequest, WrongPartition
from watchkeeper.model.log.format.frames import HEAD_BYTES, frame_size
from watchkeeper.model.registry.paths import partition_07
from watchkeeper.real.member.data_plane_file import DataPlaneFile
from watchkeeper.real.ports import HOST


class RateServer(socketserver.ThreadingTCPServer):
    """Serves the partitions of one broker."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(
        self, port: int, me: Broker, cluster: DataPlaneFile, now_us: Callable[[], int]
    ) -> None:
        super().__init__((HOST, port), _RequestHandler)
        self.me = me
        self.cluster = cluster
        self.now_us = now_us
        Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def ends(self, partitions: Iterable[Partition]) -> list[int | None]:
        """The end of each partition's log; None for a partition that is not here."""
        state = self.cluster.read()
        here = state.hosts.get(self.me.node, [])
        now = self.now_us()
        names = map(str, partitions)
        return [state.logs[name].end(now) if name in here else None for name in names]

    def answer(self, frame: bytes) -> bytes:
        """Answer a request; raise a LogError for one that is no offsets request."""
        return self._answer_07(frame) if self.me.layout == "0.7" else self._answer_08(frame)

    def _answer_07(self, frame: bytes) -> bytes:
        request = requests.decode_request(frame)
        if not isinstance(request, requests.OffsetsRequest):
            raise MalformedRequest("a request", "only offsets are known here")
        mine = partition_07(request.topic, self.me.broker_id, request.partition)
        [end] = self.ends([mine])
        if end is None:
            response = requests.OffsetsResponse(error_code=WrongPartition.code)
        else:
            response = requests.OffsetsResponse((end,)[: request.max_offsets])
        return requests.encode_response(response)

    def _answer_08(self, frame: bytes) -> bytes:
        return requests_08.answer_offsets(frame, self.ends)


class _RequestHandler(socketserver.StreamRequestHandler):
    server: RateServer

    def handle(self) -> None:
        try:
            while head := self.rfile.read(HEAD_BYTES):
                frame = self.rfile.read(frame_size(head))
                self.wfile.write(self.server.answer(frame))
        except (ConnectionError, LogError):
            return
