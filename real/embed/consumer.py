"""A consumer inside an application: a live member of a group.

    with Consumer("localhost:2181", group="billing", topics={"clicks": 1},
                  on_partitions_assigned=start, on_partitions_revoked=stop) as consumer:
        consumer.wait_ended()

It runs the same program as the simulation, over a real ZooKeeper, in threads of its own.
`on_partitions_assigned` receives the partitions that it has claimed. It releases a partition only
after `on_partitions_revoked` has returned. In an event loop (`async with`) both may be coroutine
functions.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from inspect import iscoroutinefunction
from typing import Any, Self

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.errors import Failure
from watchkeeper.model.actor.events import LEAVE
from watchkeeper.model.actor.operations import Create, Multi, Operation, Pipelined, SetData
from watchkeeper.model.actor.program import Program
from watchkeeper.model.actor.rpc import Call
from watchkeeper.model.group.consumer import consumer
from watchkeeper.model.group.layout_detection import detecting
from watchkeeper.model.group.state import Consumer as Configuration
from watchkeeper.model.group.variants import OffsetMeaning
from watchkeeper.model.log.format.requests_08 import PartitionError
from watchkeeper.model.offset_manager.migration import Store
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.wire_08.by_topic import flat
from watchkeeper.model.wire_08.group_offsets import CommitRequestV1, CommitResponse
from watchkeeper.real.embed.callbacks import Callbacks
from watchkeeper.real.embed.handover import (
    OnPartitionsAssigned,
    OnPartitionsRevoked,
    RebalanceListener,
)
from watchkeeper.real.embed.member import LEAVE_WITHIN_S, Connect, Halt, LiveDriver, Member, Poke
from watchkeeper.real.embed.task_member import LiveTaskDriver
from watchkeeper.real.embed.validation import consumer_given, subscription_given
from watchkeeper.real.process.driver import Fetching

COMMIT_WITHIN_S = 10.0
LOGGER = logging.getLogger("watchkeeper.consumer")


def _shipped(me: Configuration, layout: str | None) -> Program:
    return detecting(me, consumer) if layout is None else consumer(me)


@dataclass(frozen=True, slots=True)
class ConsumerStatus:
    """The state of a consumer, and counts of what it has done."""

    session: str
    """connecting, connected, suspended, expired or closed."""
    sessions: int
    """The number of sessions since the start."""
    consumer_id: str
    """Its name in the group; empty until it has one."""
    owned: tuple[Partition, ...]
    """The partitions that the application may read."""
    attempts: int
    """Attempts at a rebalance, successful ones included."""
    rebalances: int
    failed_attempts: int
    failed_turns: int
    """Errors that the protocol does not handle; it tries again after a pause."""
    commits: int
    last_commit: float | None
    """The time of the last commit, in seconds since the epoch."""
    callback_errors: int
    slow_callbacks: int
    longest_callback_s: float


class Consumer(Member):
    """A member of a group, run by this application."""

    not_ready = "has had no rebalance"
    _consumer_id = ""
    _commits = 0
    _last_commit: float | None = None

    def __init__(
        self,
        hosts: str,
        *,
        group: str,
        topics: Mapping[str, int] | None = None,
        white_list: str | None = None,
        black_list: str | None = None,
        streams: int = 1,
        on_partitions_assigned: OnPartitionsAssigned | None = None,
        on_partitions_revoked: OnPartitionsRevoked | None = None,
        variant: str = "hardened",
        layout: str | None = None,
        config: Mapping[str, Any] | None = None,
        consumer_id: str = "",
        host: str | None = None,
        program: Program | None = None,
        leave_on_error: bool = False,
        slow_after_s: float | None = None,
        kazoo: Mapping[str, Any] | None = None,
    ) -> None:
        """Describe a consumer, which joins its group at `start`; raise ValueError if invalid.

        topics            topic -> streams; or `white_list` or `black_list` with `streams`
        layout            "0.7" or "0.8"; found in the registry by default, and the variant's own
                          where nothing is registered
        config            Kafka's settings by Kafka's names
        consumer_id       `consumer.id`; drawn where it is empty
        program           one of your own, in place of the shipped consumer
        leave_on_error    whether it leaves its group after a callback has raised
        slow_after_s      when a callback counts as slow; a third of the session timeout
        kazoo             passed to kazoo unchanged: `auth_data`, `use_ssl`, `ca` ...
        """
        wanted = subscription_given(group, topics, white_list, black_list, streams)
        me = self.me = consumer_given(group, wanted, variant, layout, config, consumer_id, host)
        timeout_ms = me.settings.session_timeout_ms
        self.callbacks = Callbacks(me.node, LOGGER, slow_after_s or timeout_ms / 3000)
        self.handover = self.make_listener(on_partitions_assigned, on_partitions_revoked)
        super().__init__(
            _shipped(me, layout) if program is None else replace(program, me=me),
            hosts,
            name=me.node,
            logger=LOGGER,
            session_timeout_ms=timeout_ms,
            fetching=self.handover,
            kazoo=kazoo,
            resends_watches=me.variant.client_resends_watches,
        )
        if leave_on_error:
            self.callbacks.failed = lambda: self.tell(LEAVE)

    def make_listener(
        self,
        on_partitions_assigned: OnPartitionsAssigned | None,
        on_partitions_revoked: OnPartitionsRevoked | None,
    ) -> RebalanceListener:
        """Return the listener; a consumer that fetches by itself makes another one."""
        return RebalanceListener(self.callbacks, on_partitions_assigned, on_partitions_revoked)

    def make_driver(
        self, program: Program, connect: Connect, fetching: Fetching | None
    ) -> LiveDriver:
        """Return a driver that sends requests to brokers too, where offsets are kept there."""
        if self.me.settings.storage.storage is Store.ZOOKEEPER:
            return super().make_driver(program, connect, fetching)
        return LiveTaskDriver(program, self.account, connect, self._task_failed, fetching)

    def _task_failed(self, name: str, error: Exception) -> None:
        self._error = error
        self.driver.queue.put(Halt())

    # --- coming and going -----------------------------------------------------------------

    def start(self) -> Self:
        """Join the group; callbacks run in a thread of their own."""
        given = (self.handover.on_partitions_assigned, self.handover.on_partitions_revoked)
        if self.callbacks.loop is None and any(map(iscoroutinefunction, given)):
            raise TypeError(
                f"the callbacks of {self.name} are coroutine functions, which run in an event "
                "loop: use `async with Consumer(...)`"
            )
        return super().start()

    def _prepare(self) -> None:
        self.callbacks.start()

    async def __aenter__(self) -> Self:
        self.callbacks.loop = asyncio.get_running_loop()
        return self.start()

    def _halt(self) -> None:
        self.handover.give_up()
        super()._halt()

    def _clean_up(self) -> None:
        super()._clean_up()
        if isinstance(self.driver, LiveTaskDriver):
            self.driver.end_tasks()
        if not self.callbacks.stop(LEAVE_WITHIN_S if not self.handover.is_given_up else 0):
            self.logger.error(
                "%s: a callback does not return; its thread is left behind", self.name
            )

    @property
    def _is_in_callback(self) -> bool:
        return self.callbacks.is_inside

    def _refuse_in_loop(self, method: str) -> None:
        loop = self.callbacks.loop
        if loop is None:
            return
        try:
            is_there = asyncio.get_running_loop() is loop
        except RuntimeError:
            return
        if is_there:
            raise RuntimeError(
                f"{method} would wait in the very event loop that {self.name} needs; use "
                f"`await consumer.a{method}(...)`"
            )

    # --- offsets --------------------------------------------------------------------------

    @property
    def positions(self) -> dict[Partition, int | None]:
        """The next offset to be read in each owned partition; None if not known."""
        return self.handover.positions

    def store_offsets(self, offsets: Mapping[Partition, int]) -> None:
        """Store the offset of the next message to be read, for the next commit.

        offsets   partition -> the offset after the last message that was handled

        The protocol commits stored offsets every `auto.commit.interval.ms`, before a partition
        is released, and when the consumer leaves. It does not change where the application
        reads. Raises NotOwned for a partition that is not owned, and ValueError for an offset
        that goes back; then none of the offsets is stored.
        """
        self.handover.store_offsets(offsets)

    def commit(
        self,
        offsets: Mapping[Partition, int] | None = None,
        timeout_s: float = COMMIT_WITHIN_S,
    ) -> bool:
        """Store these offsets and commit all stored offsets now; return whether they are written.

        Within a callback, and while `on_partitions_revoked` runs, nothing can be written: then
        the answer is False, and the next commit writes the offsets; those of released partitions
        are committed as soon as the callback has returned. Raises TimeoutError if the commit
        takes longer, and NotOwned if a partition was released before.
        """
        if not self._is_in_callback:
            self._refuse_in_loop("commit")
        self.store_offsets(offsets or {})
        if self._is_in_callback:
            return False
        known = {partition: at for partition, at in self.positions.items() if at}
        wanted = known if offsets is None else dict(offsets)
        return self.handover.wait_until_committed(wanted, self._poke, timeout_s)

    async def acommit(
        self,
        offsets: Mapping[Partition, int] | None = None,
        timeout_s: float = COMMIT_WITHIN_S,
    ) -> bool:
        """Commit as `commit` does, from an event loop."""
        if self._is_in_callback:
            self.store_offsets(offsets or {})
            return False
        return await asyncio.to_thread(self.commit, offsets, timeout_s)

    def _poke(self) -> None:
        self.driver.queue.put(Poke())

    # --- status ---------------------------------------------------------------------------

    @property
    def owned(self) -> tuple[Partition, ...]:
        """The partitions that the application may read."""
        return self.handover.owned

    @property
    def status(self) -> ConsumerStatus:
        """The present state, and counts since the start."""
        counts = self.account.counts
        return ConsumerStatus(
            session=self.session,
            sessions=self.driver.client.generation,
            consumer_id=self._consumer_id,
            owned=self.owned,
            attempts=counts[EventKind.REBALANCE_STARTED],
            rebalances=counts[EventKind.REBALANCE_COMPLETED],
            failed_attempts=counts[EventKind.REBALANCE_FAILED],
            failed_turns=counts[EventKind.TURN_FAILED],
            commits=self._commits,
            last_commit=self._last_commit,
            callback_errors=self.callbacks.errors,
            slow_callbacks=self.callbacks.slow,
            longest_callback_s=self.callbacks.longest_s,
        )

    def _hear(self, kind: str) -> None:
        if kind == EventKind.REBALANCE_COMPLETED:
            self._is_ready.set()

    def _saw(self, effect: Operation[Any] | Pipelined | Call, answer: Any) -> None:
        if isinstance(effect, Call):
            self._note_committed(_accepted(effect, answer))
            return
        if effect.purpose == "register" and isinstance(effect, Create):
            parsed = paths.parse_member(effect.path)
            self._consumer_id = self._consumer_id if parsed is None else parsed[1]
        if effect.purpose != "commit" or isinstance(answer, Failure):
            return
        self._note_committed(_written(effect))

    def _note_committed(self, found: Iterable[tuple[Partition, int]]) -> None:
        behind = 1 if self.me.variant.offset_means is OffsetMeaning.LAST_CONSUMED else 0
        written = list(found)
        for partition, number in written:
            self.handover.committed(partition, number + behind)
        if written:
            self._commits += 1
            self._last_commit = time.time()


def _written(effect: Operation[Any] | Pipelined) -> Iterator[tuple[Partition, int]]:
    """Yield the offsets that an operation has written."""
    for part in effect.operations if isinstance(effect, Multi) else (effect,):
        if isinstance(part, Create | SetData):
            parsed = paths.parse_offset(part.path)
            if parsed is not None:
                yield parsed[1], paths.decode_number(part.path, part.data)


def _accepted(call: Call, answer: Any) -> Iterator[tuple[Partition, int]]:
    """Yield the offsets that a coordinator has committed."""
    if not isinstance(call.request, CommitRequestV1) or not isinstance(answer, CommitResponse):
        return
    sent = {(topic, one.partition): one.offset for topic, one in flat(call.request.topics)}
    for topic, one in flat(answer.topics):
        if one.error_code == PartitionError.NONE:
            yield Partition(topic, str(one.partition)), sent[topic, one.partition]
