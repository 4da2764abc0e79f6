"""Mutants of the producer of 0.8: mistakes of clients, each in a dispatcher that is correct."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from watchkeeper.model.clients_08.dispatcher import Acknowledged, Dispatcher, Outgoing, Parts
from watchkeeper.model.log.format.requests_08 import PartitionError
from watchkeeper.model.wire_08.by_topic import flat


class TakesSilenceForSuccess(Dispatcher):
    """A request without an answer counts as served, as it does with acks 0."""

    async def _send_to(self, address: str, parts: Parts) -> list[Outgoing]:
        failed = await super()._send_to(address, parts)
        return failed if " answers " in self._why else []


class TakesTimeoutsForSuccess(Dispatcher):
    """The code REQUEST_TIMED_OUT counts as an acknowledgement: the leader has the messages."""

    async def _refused(self, address: str, parts: Parts, response: Any) -> list[Outgoing]:
        failed = await super()._refused(address, parts, response)
        timed_out = [
            (topic, one)
            for topic, one in flat(response.topics)
            if one.error_code == PartitionError.REQUEST_TIMED_OUT
        ]
        for topic, one in timed_out:
            sent = parts[topic, one.partition]
            failed = [each for each in failed if each not in sent]
            if self.confirm is not None:
                messages = tuple(each.message for each in sent)
                await self.confirm(Acknowledged(topic, one.partition, one.offset, messages))
        return failed


class KeepsItsLeaders(Dispatcher):
    """Leaders are looked up once: a retry goes to the old one."""

    async def _refresh(self, topics: set[str]) -> None:
        if any(not self._leaders.partitions_of(topic) for topic in topics):
            await super()._refresh(topics)


class RetriesInReverse(Dispatcher):
    """Messages that failed are sent again in the reverse order."""

    async def _send(self, messages: Iterable[Outgoing]) -> list[Outgoing]:
        failed = await super()._send(messages)
        return sorted(failed, key=lambda each: each.message.value or b"", reverse=True)
