"""The port of a live broker that replicates.

It takes the requests between brokers (`watchkeeper.model.replication.wire`), and those of clients
and followers of Kafka 0.8. The requests of one connection are answered one after the other.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from msgspec.structs import replace

from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.format.frames import HEAD_BYTES, encode_frame, frame_size
from watchkeeper.model.log.format.requests_08 import OffsetsRequest
from watchkeeper.model.replication import wire
from watchkeeper.model.replication.replicas import Replicas
from watchkeeper.model.replication.service import answer
from watchkeeper.model.wire_08 import table
from watchkeeper.model.wire_08.fetch import FetchRequest
from watchkeeper.model.wire_08.group_offsets import (
    CommitRequestV1,
    CommittedRequestV1,
    ConsumerMetadataRequest,
)
from watchkeeper.model.wire_08.metadata import MetadataRequest
from watchkeeper.model.wire_08.produce import ProduceRequest
from watchkeeper.real.process.tasks import Tasks

OF_CLIENTS = (
    ProduceRequest,
    FetchRequest,
    OffsetsRequest,
    MetadataRequest,
    CommitRequestV1,
    CommittedRequestV1,
    ConsumerMetadataRequest,
)
"""The requests in the encoding of Kafka's clients. Its followers fetch as its consumers do."""


class ReplicaServer:
    """Serves the replicas of one process."""

    def __init__(
        self, replicas: Replicas, tasks: Tasks, failed: Callable[[str, Exception], object]
    ) -> None:
        """`failed` gets what an answer raised, and the name of the connection."""
        self.replicas = replicas
        self.tasks = tasks
        self.failed = failed
        self._server: asyncio.Server | None = None
        self._serving: dict[asyncio.Task[None], None] = {}

    async def open(self, host: str, port: int) -> None:
        """Listen; raises OSError if the port cannot be had."""
        self._server = await asyncio.start_server(self._serve, host, port)

    async def open_on(self, listener: socket.socket) -> None:
        """Listen on a socket that has its port."""
        self._server = await asyncio.start_server(self._serve, sock=listener)

    async def close(self) -> None:
        """Listen no more, and close every connection."""
        assert self._server is not None, "what is closed was open"
        self._server.close()
        serving = tuple(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a connection is served by a task"
        self._serving[task] = None
        try:
            while True:
                size_bytes = frame_size(await reader.readexactly(HEAD_BYTES))
                writer.write(await self._answer(await reader.readexactly(size_bytes), task))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, LogError):
            # The peer is gone, or it is no broker: it sees that its connection is closed.
            return
        except asyncio.CancelledError:
            # The port is closed. asyncio reports a task of a stream that ends as cancelled.
            return
        except Exception as error:
            self.failed("serve a connection", error)
        finally:
            del self._serving[task]
            writer.close()

    async def _answer(self, frame: bytes, caller: object) -> bytes:
        """Answer a request; raise a LogError for one that is not known here."""
        if table.starts(frame, OF_CLIENTS):
            header, of_client = table.decode_request(frame)
            found = await self.tasks.run(answer(self.replicas, of_client), caller)
            if found is None:
                return b""
            return encode_frame(b"", replace(found, correlation_id=header.correlation_id))
        correlation_id, request = wire.decode_request(frame)
        response = await self.tasks.run(answer(self.replicas, request), caller)
        return wire.encode_response(request, response, correlation_id)
