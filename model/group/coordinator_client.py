"""What a member wants from the coordinator of its group: to commit offsets, and to fetch them.

A member reads the brokers from ZooKeeper, and any of them names the coordinator: the broker that
leads a partition of the offsets topic. That one may change at any time, so after each failure the
member asks again who it is. An error ends the attempt here; the caller pauses and tries again.

The trace has what is sent and what is answered: a commit or a fetch may take effect at any moment
between the two, and a commit without an answer at any later one.

Kafka 0.8.2.2: ZookeeperConsumerConnector.commitOffsets and fetchOffsets, ClientUtils.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from watchkeeper.model.actor.effects import Partition, emit
from watchkeeper.model.actor.retry import Requests
from watchkeeper.model.actor.rpc import Call, CallError
from watchkeeper.model.group.reads import broker_addresses
from watchkeeper.model.group.state import Consumer
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.format.requests_08 import PartitionError, error_name
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.wire_08.by_topic import flat, grouped
from watchkeeper.model.wire_08.group_offsets import (
    NO_COMMITTED_OFFSET,
    CommitRequestV1,
    CommitResponse,
    CommittedRequestV1,
    CommittedResponse,
    ConsumerMetadataRequest,
    ConsumerMetadataResponse,
    PartitionCommitted,
    PartitionNumber,
    TimedCommit,
)

Offset = tuple[Partition, int]
SHARE_OF_SESSION = 3
"""`hardened` waits for a broker no longer than the part of the session timeout that is left when
its client has noticed that ZooKeeper is silent."""


class CoordinatorUnavailable(Exception):
    """The coordinator of a group does not serve now; the text says why. It may soon."""


@dataclass(slots=True)
class CoordinatorClient:
    """A member as a client of the coordinator of its group."""

    me: Consumer
    requests: Requests
    address: str = ""
    """Of the coordinator; empty until it is known."""

    async def commit(self, offsets: Sequence[Offset]) -> list[Offset]:
        """Commit offsets, and return those that the coordinator has accepted.

        Raises CoordinatorUnavailable if it cannot be reached, or accepts none.
        """
        if not offsets:
            return []
        await self._find()
        topics = grouped(
            (at.topic, TimedCommit(int(at.name), offset)) for at, offset in sorted(offsets)
        )
        await emit(EventKind.OFFSET_COMMIT_SENT, offsets=_rows(offsets))
        response: CommitResponse = await self._call(
            self.address, CommitRequestV1(self.me.group, topics)
        )
        codes = {
            Partition(topic, str(one.partition)): one.error_code
            for topic, one in flat(response.topics)
        }
        accepted = [each for each in offsets if codes.get(each[0]) == PartitionError.NONE]
        refused = {code: None for code in codes.values() if code != PartitionError.NONE}
        await emit(
            EventKind.OFFSET_COMMIT_ANSWERED,
            accepted=_rows(accepted),
            errors=[error_name(code) for code in refused],
        )
        if not accepted:
            raise self._unavailable(f"answers {', '.join(map(error_name, refused))}")
        return accepted

    async def committed(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """Return the committed offsets; partitions without one are left out.

        Raises CoordinatorUnavailable if the coordinator cannot be reached, or cannot say.
        """
        if not partitions:
            return {}
        await self._find()
        topics = grouped((at.topic, PartitionNumber(int(at.name))) for at in sorted(partitions))
        await emit(EventKind.OFFSET_FETCH_SENT, partitions=[list(at) for at in partitions])
        response: CommittedResponse = await self._call(
            self.address, CommittedRequestV1(self.me.group, topics)
        )
        found = [
            (Partition(topic, str(one.partition)), one) for topic, one in flat(response.topics)
        ]
        known = [(at, one.offset) for at, one in found if one.error_code == PartitionError.NONE]
        await emit(
            EventKind.OFFSET_FETCH_ANSWERED,
            offsets=_rows(known),
            errors=list(
                dict.fromkeys(error_name(one.error_code) for _, one in found if one.error_code)
            ),
        )
        for _, one in found:
            self._check(one)
        return {at: offset for at, offset in known if offset != NO_COMMITTED_OFFSET}

    def _check(self, one: PartitionCommitted) -> None:
        """Refuse an answer that does not say whether there is an offset.

        As shipped a broker that does not know the topic yet makes a member begin without one.
        """
        code = one.error_code
        is_unknown = code == PartitionError.UNKNOWN_TOPIC_OR_PARTITION
        if code != PartitionError.NONE and not (is_unknown and not self.me.variant.fenced):
            raise self._unavailable(f"answers {error_name(code)}")

    # --- who it is ---------------------------------------------------------------------

    async def _find(self) -> None:
        """Find the coordinator, unless it is known."""
        if self.address:
            return
        if self.me.layout == "0.7":
            why = "expected a registry in the layout of 0.8: brokers of 0.7 coordinate no groups"
            raise CoordinatorUnavailable(why)
        why = "no broker is registered"
        for address in await self._brokers():
            try:
                found: ConsumerMetadataResponse = await Call(
                    address, ConsumerMetadataRequest(self.me.group), self._timeout_ms
                )
            except (CallError, LogError) as error:
                why = str(error)
                continue
            if found.error_code == PartitionError.NONE:
                self.address = f"{found.host}:{found.port}"
                return
            raise CoordinatorUnavailable(f"{address} answers {error_name(found.error_code)}")
        raise CoordinatorUnavailable(f"no broker names the coordinator of {self.me.group}: {why}")

    async def _brokers(self) -> list[str]:
        """Return the addresses of the registered brokers; each member begins at another one."""
        found = await broker_addresses(self.requests, "find coordinator")
        first = crc32(self.me.node.encode()) % len(found) if found else 0
        return [*found[first:], *found[:first]]

    async def _call(self, address: str, request: Any) -> Any:
        try:
            return await Call(address, request, self._timeout_ms)
        except (CallError, LogError) as error:
            self.address = ""
            raise CoordinatorUnavailable(str(error)) from None

    @property
    def _timeout_ms(self) -> int:
        settings = self.me.settings
        if not self.me.variant.fenced:
            return settings.offsets_timeout_ms
        return min(settings.offsets_timeout_ms, settings.session_timeout_ms // SHARE_OF_SESSION)

    def _unavailable(self, why: str) -> CoordinatorUnavailable:
        address, self.address = self.address, ""
        return CoordinatorUnavailable(f"the coordinator of {self.me.group}, {address}, {why}")


def _rows(offsets: Iterable[Offset]) -> list[list[Any]]:
    return [[*partition, offset] for partition, offset in offsets]
