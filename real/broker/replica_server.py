"""The port of a live broker that replicates.

It takes the requests between brokers (`watchkeeper.model.replication.wire`), the offsets request
of 0.8, with which consumers learn the high watermark from the leader, and those of a group to its
coordinator. The requests of one connection are answered one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.log.format import requests_08
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.format.frames import HEAD_BYTES, encode_frame, frame_size
from watchkeeper.model.replication import wire
from watchkeeper.model.replication.replicas import Replicas
from watchkeeper.model.replication.service import answer
from watchkeeper.model.wire_08 import table
from watchkeeper.model.wire_08.group_offsets import (
    CommitRequestV1,
    CommittedRequestV1,
    ConsumerMetadataRequest,
)
from watchkeeper.real.process.tasks import Tasks

OF_GROUPS = (ConsumerMetadataRequest, CommitRequestV1, CommittedRequestV1)
"""The requests of a group to its coordinator, and that for its coordinator."""


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
        except Exception as error:
            self.failed("serve a connection", error)
        finally:
            del self._serving[task]
            writer.close()

    async def _answer(self, frame: bytes, caller: object) -> bytes:
        """Answer a request; raise a LogError for one that is not known here."""
        if table.starts(frame, OF_GROUPS):
            header, of_group = table.decode_request(frame)
            found = await self.tasks.run(answer(self.replicas, of_group), caller)
            return encode_frame(b"", replace(found, correlation_id=header.correlation_id))
        if not wire.knows(frame):
            return requests_08.answer_offsets(
                frame, lambda names: map(self._high_watermark, names)
            )
        correlation_id, request = wire.decode_request(frame)
        response = await self.tasks.run(answer(self.replicas, request), caller)
        return wire.encode_response(request, response, correlation_id)

    def _high_watermark(self, partition: Partition) -> int | None:
        """How far consumers read a partition; None if this broker does not lead it."""
        replica = self.replicas.by_partition.get(partition)
        if replica is None or not self.replicas.leads(replica):
            return None
        return replica.high_watermark
