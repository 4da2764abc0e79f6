"""The simple consumer: a client of one broker; each request names its offset.

Its only state is the address. A request that fails is retried once, over a new connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from watchkeeper.model.actor.rpc import Call, CallError, HangUp
from watchkeeper.model.log.format.errors import NO_ERROR, error_of
from watchkeeper.model.log.format.requests import (
    FetchRequest,
    FetchResponse,
    MultiFetchRequest,
    MultiFetchResponse,
    OffsetsRequest,
    Request,
)


class SimpleConsumer:
    """Fetches messages and offsets from one broker."""

    def __init__(self, address: str, *, timeout_ms: int = 30_000) -> None:
        self.address = address
        self.timeout_ms = timeout_ms

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Fetch from one partition; the response carries the error code of the broker."""
        response: FetchResponse = await self._call(request)
        return response

    async def multifetch(self, requests: Sequence[FetchRequest]) -> tuple[FetchResponse, ...]:
        """Fetch from several partitions; return a response for each, in their order.

        Raises the `LogError` that the broker answers for the request as a whole.
        """
        request = MultiFetchRequest(tuple(requests))
        response: MultiFetchResponse = await self._call(request)
        if response.error_code != NO_ERROR:
            raise error_of(response.error_code)(self.address)
        return response.responses

    async def offsets_before(
        self, topic: str, partition: int, time_ms: int, max_messages: int
    ) -> tuple[int, ...]:
        """Offsets at which segments begin that were written before a moment, latest first.

        `watchkeeper.model.log.format.requests` has the moments that stand for the end and the
        beginning.
        """
        response = await self._call(OffsetsRequest(topic, partition, time_ms, max_messages))
        if response.error_code != NO_ERROR:
            raise error_of(response.error_code)(f"{topic}-{partition} at {self.address}")
        offsets: tuple[int, ...] = response.offsets
        return offsets

    async def close(self) -> None:
        """Close the connection."""
        await HangUp(self.address)

    async def _call(self, request: Request) -> Any:
        try:
            return await Call(self.address, request, self.timeout_ms)
        except CallError:
            await HangUp(self.address)
            return await Call(self.address, request, self.timeout_ms)
