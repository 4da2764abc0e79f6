"""A broker's process for tests: started on a free port, spoken to over a raw socket."""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from model.log.message import Message
from model.log.message_set import encode
from model.log.requests import (
    RESPONSES,
    FetchRequest,
    FetchResponse,
    ProduceRequest,
    Request,
    Response,
    decode_response,
    encode_request,
)
from tests.live import PS

HOST = "127.0.0.1"
COMMAND = (sys.executable, "-P", "-m", "watchkeeper", "broker")
PATIENCE_S = 20.0
AT_ONCE = ("log.flush.interval=1",)


class BrokerProcess:
    """One `watchkeeper broker`, and what it has said."""

    def __init__(self, folder: Path, settings: tuple[str, ...], more: tuple[str, ...]) -> None:
        options = [word for one in settings for word in ("--set", one)]
        self._errors = folder.with_suffix(".log")
        with self._errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [*COMMAND, "--log-dir", str(folder), "--port", "0", *options, *more],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert self.process.stdout is not None, "it was started with a pipe"
        self.said = [self.process.stdout.readline().strip()]
        assert "listens on" in self.said[0], self.errors
        self.port = int(self.said[0].partition(f"{HOST}:")[2].partition(":")[0])
        self._hearing = Thread(target=self._hear, daemon=True)
        self._hearing.start()

    def _hear(self) -> None:
        assert self.process.stdout is not None, "it was started with a pipe"
        self.said.extend(line.strip() for line in self.process.stdout)

    @property
    def errors(self) -> str:
        """Its own log."""
        return self._errors.read_text()

    @property
    def resident_bytes(self) -> int:
        """How much memory it has."""
        listing = subprocess.run(
            [PS, "-o", "rss=", "-p", str(self.process.pid)], capture_output=True, text=True
        )
        return int(listing.stdout) * 1024

    def connect(self) -> socket.socket:
        """A connection to it."""
        return socket.create_connection((HOST, self.port), timeout=PATIENCE_S)

    def kill(self) -> None:
        """End it as `kill -9` does."""
        self.process.kill()
        self._end()

    def terminate(self) -> int:
        """Ask it to end; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self._end()

    def _end(self) -> int:
        code = self.process.wait(PATIENCE_S)
        self._hearing.join(PATIENCE_S)
        assert self.process.stdout is not None, "it was started with a pipe"
        self.process.stdout.close()
        return code


Starts = Callable[..., BrokerProcess]


@contextmanager
def brokers(folder: Path) -> Iterator[Starts]:
    """Starts brokers on one folder, and lets none of them outlive this."""
    started: list[BrokerProcess] = []

    def start(*settings: str, more: tuple[str, ...] = ()) -> BrokerProcess:
        started.append(BrokerProcess(folder, settings, more))
        return started[-1]

    try:
        yield start
    finally:
        for one in started:
            if one.process.poll() is None:
                one.kill()


def received(connection: socket.socket, size_bytes: int) -> bytes:
    """So many bytes; fewer if the other side ends the connection."""
    data = b""
    while len(data) < size_bytes and (piece := connection.recv(size_bytes - len(data))):
        data += piece
    return data


def is_closed(connection: socket.socket) -> bool:
    """Whether the other side has ended the connection, as it has to in time."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def response_to(request: Request, connection: socket.socket) -> Response:
    """Wait for the response to a request that was sent."""
    assert type(request) in RESPONSES, "there would be nothing to wait for"
    (size_bytes,) = struct.unpack(">i", received(connection, 4))
    return decode_response(request, received(connection, size_bytes))


def ask(request: Request, connection: socket.socket) -> Response:
    """Send a request, and wait for its response."""
    connection.sendall(encode_request(request))
    return response_to(request, connection)


def messages(*payloads: bytes) -> bytes:
    """A message set."""
    return encode(map(Message.of, payloads))


def produce(connection: socket.socket, data: bytes, topic: str = "test") -> None:
    """Append to the first partition of a topic."""
    connection.sendall(encode_request(ProduceRequest(topic, 0, data)))


def fetched(
    connection: socket.socket, offset: int = 0, topic: str = "test", max_bytes: int = 1 << 20
) -> bytes:
    """What is read at an offset."""
    response = ask(FetchRequest(topic, 0, offset, max_bytes), connection)
    assert isinstance(response, FetchResponse)
    assert response.error_code == 0
    assert isinstance(response.messages, bytes)
    return response.messages
