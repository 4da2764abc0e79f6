"""The data plane of a broker: a TCP server that tells how far a partition's log has come.

A request is a line of JSON, a list of partitions; the response is a line with
the end of each log, or null where this broker does not serve the partition.
"""

from __future__ import annotations

import socketserver
from collections.abc import Callable
from threading import Thread

import msgspec

from real.cluster import ClusterFile
from real.ports import HOST


class DataServer(socketserver.ThreadingTCPServer):
    """Serves the partitions of one broker."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(
        self, port: int, node: str, cluster: ClusterFile, now_us: Callable[[], int]
    ) -> None:
        super().__init__((HOST, port), _Conversation)
        self.node = node
        self.cluster = cluster
        self.now_us = now_us
        Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def ends(self, wanted: list[str]) -> list[int | None]:
        """How far the log of each partition has come; None for one that is not here."""
        state = self.cluster.read()
        here = state.hosts.get(self.node, [])
        now = self.now_us()
        return [
            state.logs[partition].end(now) if partition in here else None for partition in wanted
        ]


class _Conversation(socketserver.StreamRequestHandler):
    server: DataServer

    def handle(self) -> None:
        try:
            for line in self.rfile:
                wanted = msgspec.json.decode(line, type=list[str])
                self.wfile.write(msgspec.json.encode(self.server.ends(wanted)) + b"\n")
        except ConnectionError:
            return
