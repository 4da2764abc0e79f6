"""A broker's process for tests: started on a free port, used over a raw socket."""

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

from tests.support.live_zookeeper import PS
from tests.support.patience import PATIENCE_S
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import encode
from watchkeeper.model.log.format.requests import (
    RESPONSES,
    FetchRequest,
    FetchResponse,
    ProduceRequest,
    Request,
    Response,
    decode_response,
    encode_request,
)

HOST = "127.0.0.1"
COMMAND = (sys.executable, "-P", "-m", "watchkeeper", "broker")
AT_ONCE = ("log.flush.interval=1",)


class BrokerProcess:
    """A `watchkeeper broker` process and its output."""

    def __init__(self, folder: Path, settings: tuple[str, ...], more: tuple[str, ...]) -> None:
        options = [word for setting in settings for word in ("--set", setting)]
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
        """The broker's own log."""
        return self._errors.read_text()

    @property
    def resident_bytes(self) -> int:
        """The resident memory of the process."""
        listing = subprocess.run(
            [PS, "-o", "rss=", "-p", str(self.process.pid)], capture_output=True, text=True
        )
        return int(listing.stdout) * 1024

    def connect(self) -> socket.socket:
        """A new connection to the broker."""
        return socket.create_connection((HOST, self.port), timeout=PATIENCE_S)

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self.process.kill()
        self._end()

    def terminate(self) -> int:
        """End it with SIGTERM; return its exit code."""
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
    """Starts brokers in one folder, and ends all of them."""
    started: list[BrokerProcess] = []

    def start(*settings: str, more: tuple[str, ...] = ()) -> BrokerProcess:
        started.append(BrokerProcess(folder, settings, more))
        return started[-1]

    try:
        yield start
    finally:
        for client in started:
            if client.process.poll() is None:
                client.kill()


def received(connection: socket.socket, size_bytes: int) -> bytes:
    """Receive this many bytes, or fewer if the peer closes the connection."""
    data = b""
    while len(data) < size_bytes and (received_bytes := connection.recv(size_bytes - len(data))):
        data += received_bytes
    return data


def is_closed(connection: socket.socket) -> bool:
    """Whether the peer has closed the connection, which it has to do in time."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def response_to(request: Request, connection: socket.socket) -> Response:
    """Wait for the response to a request that was sent."""
    assert type(request) in RESPONSES, "there would be nothing to wait for"
    (size_bytes,) = struct.unpack(">i", received(connection, 4))
    return decode_response(request, received(connection, size_bytes))


def send_request(request: Request, connection: socket.socket) -> Response:
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
    """The messages at an offset."""
    response = send_request(FetchRequest(topic, 0, offset, max_bytes), connection)
    assert isinstance(response, FetchResponse)
    assert response.error_code == 0
    assert isinstance(response.messages, bytes)
    return response.messages
