"""The simple consumer: one broker, and every request says where to read.

It keeps nothing but the address. A request that fails is sent once more over a new
connection, and no third time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from model.calls import Call, CallError, HangUp
from model.log.errors import NO_ERROR, error_of
from model.log.requests import (
    FetchRequest,
    FetchResponse,
    MultiFetchRequest,
    MultiFetchResponse,
    OffsetsRequest,
    Request,
)


class SimpleConsumer:
    """What asks one broker for messages and offsets."""

    def __init__(self, address: str, *, timeout_ms: int = 30_000) -> None:
        self.address = address
        self.timeout_ms = timeout_ms

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Read from one partition; the response says what went wrong there."""
        response: FetchResponse = await self._ask(request)
        return response

    async def multifetch(self, requests: Sequence[FetchRequest]) -> tuple[FetchResponse, ...]:
        """Read from several partitions: a response for each, in their order."""
        asked = MultiFetchRequest(tuple(requests))
        response: MultiFetchResponse = await self._ask(asked)
        if response.error_code != NO_ERROR:
            raise error_of(response.error_code)(self.address)
        return response.responses

    async def offsets_before(
        self, topic: str, partition: int, time_ms: int, at_most: int
    ) -> tuple[int, ...]:
        """Offsets at which segments begin that were written before a moment, latest first.

        `model.log.requests` has the moments that stand for the end and the beginning.
        """
        response = await self._ask(OffsetsRequest(topic, partition, time_ms, at_most))
        if response.error_code != NO_ERROR:
            raise error_of(response.error_code)(f"{topic}-{partition} at {self.address}")
        offsets: tuple[int, ...] = response.offsets
        return offsets

    async def close(self) -> None:
        """Give up the connection."""
        await HangUp(self.address)

    async def _ask(self, request: Request) -> Any:
        try:
            return await Call(self.address, request, self.timeout_ms)
        except CallError:
            await HangUp(self.address)
            return await Call(self.address, request, self.timeout_ms)
