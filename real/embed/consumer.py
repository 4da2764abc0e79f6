"""A consumer inside an application: a live member of a group, in a few lines.

    with Consumer("localhost:2181", group="billing", topics={"clicks": 1},
                  on_claimed=start, on_released=stop) as consumer:
        consumer.over()

It runs the same program as the simulation, over a real ZooKeeper, in threads of its own.
What it has claimed is handed to `on_claimed`; before it gives anything up, `on_released`
has returned. In an event loop (`async with`) both may be coroutine functions.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from inspect import iscoroutinefunction
from typing import Any, Self

from model import registry
from model.answers import LEAVE
from model.asks import Partition
from model.consumer import consumer
from model.errors import Failure
from model.operations import Create, Multi, Operation, Pipelined, SetData
from model.program import Program
from real.callbacks import Callbacks
from real.handover import Handover, OnClaimed, OnReleased
from real.living import LEAVE_WITHIN_S, Member, Poke
from real.wishes import consumer_given, subscription_given

COMMIT_WITHIN_S = 10.0
LOGGER = logging.getLogger("watchkeeper.consumer")


@dataclass(frozen=True, slots=True)
class ConsumerStatus:
    """How a consumer is, and what it has been through."""

    session: str
    """connecting, connected, suspended, expired or closed."""
    sessions: int
    """How many it has had."""
    consumer_id: str
    """Its name in the group; empty until it has one."""
    owned: tuple[Partition, ...]
    """What is the application's to read."""
    attempts: int
    """Attempts at a rebalance, those that succeeded among them."""
    rebalances: int
    failed_attempts: int
    failed_turns: int
    """Errors that the protocol has no answer to; it tries again after a pause."""
    commits: int
    last_commit: float | None
    """When offsets were written last, as `time.time` counts."""
    callback_errors: int
    slow_callbacks: int
    longest_callback_s: float


class Consumer(Member):
    """A member of a group, alive inside this application."""

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
        on_claimed: OnClaimed | None = None,
        on_released: OnReleased | None = None,
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
        """Describe a consumer; nothing happens before it is started.

        topics            topic -> streams; or `white_list` or `black_list` with `streams`
        layout            the variant's own by default
        config            Kafka's settings by Kafka's names
        consumer_id       `consumer.id`; drawn where it is empty
        program           one of your own, in place of the shipped consumer
        leave_on_error    whether it leaves its group after a callback has raised
        slow_after_s      from when a callback counts as slow; a third of the session timeout
        kazoo             handed to kazoo as it is: `auth_data`, `use_ssl`, `ca` ...
        """
        wanted = subscription_given(group, topics, white_list, black_list, streams)
        me = consumer_given(group, wanted, variant, layout, config, consumer_id, host)
        self.me = me
        timeout_ms = me.settings.session_timeout_ms
        self.callbacks = Callbacks(me.node, LOGGER, slow_after_s or timeout_ms / 3000)
        self.handover = self.make_handover(on_claimed, on_released)
        super().__init__(
            consumer(me) if program is None else replace(program, me=me),
            hosts,
            name=me.node,
            logger=LOGGER,
            session_timeout_ms=timeout_ms,
            fetching=self.handover,
            kazoo=kazoo,
        )
        if leave_on_error:
            self.callbacks.failed = lambda: self.tell(LEAVE)

    def make_handover(
        self, on_claimed: OnClaimed | None, on_released: OnReleased | None
    ) -> Handover:
        """What the protocol fetches with; a consumer that reads by itself makes another."""
        return Handover(self.callbacks, on_claimed, on_released)

    # --- coming and going -----------------------------------------------------------------

    def start(self) -> Self:
        """Begin; callbacks come from a thread of their own."""
        given = (self.handover.on_claimed, self.handover.on_released)
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
        """The next message to be read in each partition that is owned; None if not known."""
        return self.handover.positions

    def advance(self, offsets: Mapping[Partition, int]) -> None:
        """Say which message is to be read next in each of these partitions.

        The protocol commits it when it is time: by the clock (`auto.commit.interval.ms`),
        before a partition is released, and when the consumer leaves. NotOwned is raised,
        and nothing noted, for a partition that is not owned.
        """
        self.handover.advance(offsets)

    def commit(
        self,
        offsets: Mapping[Partition, int] | None = None,
        timeout_s: float = COMMIT_WITHIN_S,
    ) -> bool:
        """Note these offsets and have everything committed now; True when it is written.

        False says that they are noted and will be written with the next commit: within a
        callback, and while `on_released` is at work, nothing can be written; what is being
        released is committed as soon as it has returned. TimeoutError says that it is not
        written yet, NotOwned that it never will be.
        """
        if not self._is_in_callback:
            self._refuse_in_loop("commit")
        self.advance(offsets or {})
        if self._is_in_callback:
            return False
        known = {one: at for one, at in self.positions.items() if at}
        wanted = known if offsets is None else dict(offsets)
        return self.handover.wait_until_committed(wanted, self._poke, timeout_s)

    async def acommit(
        self,
        offsets: Mapping[Partition, int] | None = None,
        timeout_s: float = COMMIT_WITHIN_S,
    ) -> bool:
        """Do as `commit`, from an event loop."""
        if self._is_in_callback:
            self.advance(offsets or {})
            return False
        return await asyncio.to_thread(self.commit, offsets, timeout_s)

    def _poke(self) -> None:
        self.driver.queue.put(Poke())

    # --- what happened --------------------------------------------------------------------

    @property
    def owned(self) -> tuple[Partition, ...]:
        """What is the application's to read."""
        return self.handover.owned

    @property
    def status(self) -> ConsumerStatus:
        """How it is now."""
        counts = self.account.counts
        return ConsumerStatus(
            session=self.session,
            sessions=self.driver.client.life,
            consumer_id=self._consumer_id,
            owned=self.owned,
            attempts=counts["rebalance begins"],
            rebalances=counts["rebalance ends"],
            failed_attempts=counts["rebalance fails"],
            failed_turns=counts["turn fails"],
            commits=self._commits,
            last_commit=self._last_commit,
            callback_errors=self.callbacks.errors,
            slow_callbacks=self.callbacks.slow,
            longest_callback_s=self.callbacks.longest_s,
        )

    def _hear(self, kind: str) -> None:
        if kind == "rebalance ends":
            self._is_ready.set()

    def _saw(self, ask: Operation[Any] | Pipelined, answer: Any) -> None:
        if ask.purpose == "register" and isinstance(ask, Create):
            parsed = registry.parse_member(ask.path)
            self._consumer_id = self._consumer_id if parsed is None else parsed[1]
        if ask.purpose != "commit" or isinstance(answer, Failure):
            return
        behind = 1 if self.me.variant.offset_means == "last consumed" else 0
        written = list(_written(ask))
        for partition, number in written:
            self.handover.committed(partition, number + behind)
        if written:
            self._commits += 1
            self._last_commit = time.time()


def _written(ask: Operation[Any] | Pipelined) -> Iterator[tuple[Partition, int]]:
    """The offsets that an operation has written."""
    for part in ask.operations if isinstance(ask, Multi) else (ask,):
        if isinstance(part, Create | SetData):
            parsed = registry.parse_offset(part.path)
            if parsed is not None:
                yield parsed[1], registry.decode_number(part.path, part.data)
