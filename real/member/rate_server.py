"""The data plane of a broker without messages: a TCP server that reports the ends of logs.

A request is a line of JSON, a list of partitions; the response is a line with the end of each
log, or null for a partition that this broker does not serve. `log_ends` is the client of this
protocol.
"""

from __future__ import annotations

import socket
import socketserver
from collections.abc import Callable, Iterable, Mapping
from threading import Thread

import msgspec

from watchkeeper.model.actor.effects import Partition
from watchkeeper.real.member.data_plane_file import DataPlaneFile
from watchkeeper.real.ports import HOST

TIMEOUT_S = 2.0


class RateServer(socketserver.ThreadingTCPServer):
    """Serves the partitions of one broker."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(
        self, port: int, node: str, cluster: DataPlaneFile, now_us: Callable[[], int]
    ) -> None:
        super().__init__((HOST, port), _RequestHandler)
        self.node = node
        self.cluster = cluster
        self.now_us = now_us
        Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def ends(self, requested: list[str]) -> list[int | None]:
        """The end of each partition's log; None for a partition that is not here."""
        state = self.cluster.read()
        here = state.hosts.get(self.node, [])
        now = self.now_us()
        return [
            state.logs[partition].end(now) if partition in here else None
            for partition in requested
        ]


class _RequestHandler(socketserver.StreamRequestHandler):
    server: RateServer

    def handle(self) -> None:
        try:
            for line in self.rfile:
                requested = msgspec.json.decode(line, type=list[str])
                self.wfile.write(msgspec.json.encode(self.server.ends(requested)) + b"\n")
        except ConnectionError:
            return


# --- client ----------------------------------------------------------------------------


def log_ends(
    partitions: Mapping[str, Iterable[Partition]],
) -> tuple[dict[Partition, int], list[str]]:
    """Ask brokers (address -> partitions) for the ends of their logs.

    Returns the ends, and a sentence for each broker that does not answer in this protocol.
    Another program at that port gets one line and is not trusted.
    """
    ends: dict[Partition, int] = {}
    reasons = []
    for address, requested in sorted(partitions.items()):
        try:
            ends |= _request_ends(address, list(requested))
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            reasons.append(
                f"the lag at {address} is unknown: it does not answer as watchkeeper's own "
                f"brokers do ({error})"
            )
    return ends, reasons


def _request_ends(address: str, requested: list[Partition]) -> dict[Partition, int]:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), TIMEOUT_S) as line:
        line.settimeout(TIMEOUT_S)
        line.sendall(msgspec.json.encode([str(partition) for partition in requested]) + b"\n")
        with line.makefile("rb") as answers:
            response = answers.readline(64 * (len(requested) + 1))
    ends = msgspec.json.decode(response, type=list[int | None])
    return {
        partition: end for partition, end in zip(requested, ends, strict=True) if end is not None
    }
