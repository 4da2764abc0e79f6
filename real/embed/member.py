"""A program that runs live inside an application: a thread, a driver, a session.

    run_live(program, hosts="localhost:2181")

`Member` is the base of every member in an application: `start` starts it once, `close` makes it
leave, `wait_ended` waits for its end. It works from plain threads and from an event loop; a
method that waits has an async twin for the loop, whose name begins with `a`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from threading import Event, Thread
from time import monotonic
from types import TracebackType
from typing import Any, Self

from watchkeeper.model.actor.effects import NewSession, NextEvent
from watchkeeper.model.actor.errors import ZooKeeperError
from watchkeeper.model.actor.events import LEAVE, Command
from watchkeeper.model.actor.operations import Operation, Pipelined
from watchkeeper.model.actor.program import Ended, Program
from watchkeeper.model.actor.rpc import Call
from watchkeeper.real.access import Access
from watchkeeper.real.client.address_check import addresses_problem
from watchkeeper.real.client.client import Client, ClientEvent
from watchkeeper.real.embed.counters import Counters
from watchkeeper.real.process.driver import Driver, Fetching

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 2.0
"""The pause of a program whose turns fail one after the other."""
CONNECTS_WITHIN_S = 0.4
"""After so long without an answer it is looked up why there is none."""
LEAVE_WITHIN_S = READY_WITHIN_S = 30.0

Connect = Callable[[Callable[[ClientEvent], None]], Client]
"""Makes the client of a driver; the client reports by calling the argument."""


class Poke:
    """Ends the wait of a program that waits for a notification with a timeout."""


class Halt:
    """Stops the program at once."""


class Halted(Exception):
    """The program was stopped before its end."""


class LiveDriver(Driver):
    """A driver that can be poked and halted, and survives turns that fail."""

    saw: Callable[[Operation[Any] | Pipelined | Call, Any], None] | None = None
    """Called with every answer, in the thread of the program."""
    _is_poked = False
    _may_be_poked = False
    _has_chroot = False
    _pause_s = FIRST_PAUSE_S
    _failed_at = 0.0

    def _dispatch(self, event: Any) -> None:
        if isinstance(event, Halt):
            raise Halted
        if isinstance(event, Poke):
            self._is_poked = True
        else:
            super()._dispatch(event)

    def _next_event(self, effect: NextEvent) -> Any:
        """Return a notification; None at once for a poked program that waits with a timeout."""
        self._may_be_poked = bool(effect.timeout_ms)
        notification = super()._next_event(effect)
        if notification is None and self._may_be_poked:
            self._is_poked = False
        return notification

    def _need_not_wait(self) -> bool:
        return super()._need_not_wait() or (self._is_poked and self._may_be_poked)

    def _operate(self, effect: Any) -> Any:
        answer = super()._operate(effect)
        if self.saw is not None:
            self.saw(effect, answer)
        return answer

    def _new_session(self, effect: NewSession) -> None:
        super()._new_session(effect)
        while self.client.prefix and not self._has_chroot:
            self._has_chroot = self.client.make_chroot()
            super()._new_session(effect)

    def _turn_failed(self, error: ZooKeeperError) -> None:
        super()._turn_failed(error)
        is_again = monotonic() - self._failed_at < 2 * LONGEST_PAUSE_S
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S) if is_again else FIRST_PAUSE_S
        self._wait_for(lambda: False, self._pause_s)
        self._failed_at = monotonic()


class Member:
    """A program that runs inside an application."""

    not_ready = "has had no answer"
    """The middle of the message of the TimeoutError of `ready`."""

    def __init__(
        self,
        program: Program,
        hosts: str,
        *,
        name: str,
        logger: logging.Logger,
        session_timeout_ms: int = 6000,
        fetching: Fetching | None = None,
        kazoo: Mapping[str, Any] | None = None,
        resends_watches: bool = False,
    ) -> None:
        """Describe a member; `hosts` is written as for ZooKeeper: `one:2181,two:2181/chroot`.

        `resends_watches`: its program relies on a client that sets its watches again after a
        reconnection.
        """
        self.name = name
        self.logger = logger
        self.account = Counters(name, logger)
        self.fetching = fetching
        self.ended: Ended | None = None
        """How it ended; None while it runs."""
        self._error: Exception | None = None
        self._is_ready = Event()
        self._is_over = Event()
        addresses, chroot = hosts_and_chroot(hosts)
        self._access = Access(addresses, tls=tuple((kazoo or {}).items()))

        def connect(hear: Callable[[ClientEvent], None]) -> Client:
            return Client(
                addresses,
                chroot,
                session_timeout_ms,
                hear,
                kazoo,
                resends_watches=resends_watches,
                waits_for_program=True,
            )

        self.driver = self.make_driver(program, connect, fetching)
        self.driver.saw = self._saw
        self.account.hear = self._hear
        self._thread = Thread(target=self._run, name=f"{name} program", daemon=True)
        self._is_started = False

    def make_driver(
        self, program: Program, connect: Connect, fetching: Fetching | None
    ) -> LiveDriver:
        """Return the driver of the program; a member with further tasks has another."""
        return LiveDriver(program, self.account, connect, fetching)

    # --- start and end --------------------------------------------------------------------

    def start(self) -> Self:
        """Start the program, in a thread of its own."""
        if self._is_started:
            raise RuntimeError(f"{self.name} was started before; make another one to start again")
        self._is_started = True
        self._prepare()
        self._thread.start()
        return self

    def look_for_zookeeper(self) -> str:
        """Return why no server answers, and log it; empty if one does, or did before.

        The member goes on trying all the same.
        """
        if self.session != "connecting":
            return ""
        problem = addresses_problem(self._access)
        if problem:
            self.logger.warning("%s: %s; it goes on trying", self.name, problem)
        return problem

    def _prepare(self) -> None:
        """Start what has to run before the program."""

    def tell(self, order: Command) -> None:
        """Put an order into the program's inbox."""
        self.driver.queue.put(order)

    def close(self, timeout_s: float = LEAVE_WITHIN_S) -> bool:
        """Leave, and wait until all threads have ended; return whether it left gracefully.

        After the timeout the session is dropped: its ephemeral znodes stay until ZooKeeper
        expires it.
        """
        self._refuse_in_loop("close")
        return self._close(timeout_s)

    def _close(self, timeout_s: float) -> bool:
        if not self._is_started:
            return True
        self.tell(LEAVE)
        if self._is_in_callback:
            return False
        if self.session == "connecting":  # it never had a session, so nothing of it is anywhere
            self._halt()
        try:
            in_time = self._is_over.wait(timeout_s)
        except BaseException:
            self._halt()
            raise
        if not in_time:
            self.logger.warning(
                "%s: could not leave within %g s (session %s); what is left of it is dropped, "
                "and its claims go when its session expires",
                self.name,
                timeout_s,
                self.driver.client.state,
            )
            self._halt()
            self._is_over.wait(LEAVE_WITHIN_S)
        self._thread.join(LEAVE_WITHIN_S)
        return in_time and self.ended is not None and not self.ended.failed

    def _halt(self) -> None:
        self.driver.queue.put(Halt())

    def ready(self, timeout_s: float = READY_WITHIN_S) -> None:
        """Wait until a consumer has had its first rebalance, or a broker is registered.

        Raises TimeoutError if that takes longer, RuntimeError if the member has failed.
        """
        self._refuse_in_loop("ready")
        unreached = ""
        is_ready = self._is_ready.wait(min(timeout_s, CONNECTS_WITHIN_S))
        if not is_ready:
            unreached = self.look_for_zookeeper()
            is_ready = self._is_ready.wait(max(timeout_s - CONNECTS_WITHIN_S, 0.0))
        if self.ended is not None and self.ended.failed:
            raise RuntimeError(f"{self.name} is over: {self.ended.reason}")
        if not is_ready:
            problem = unreached or self.account.last_problem
            raise TimeoutError(
                f"{self.name} {self.not_ready} within {timeout_s:g} s; its session is "
                f"{self.session}{f'; last, {problem}' if problem else ''}"
            )

    def wait_ended(self, timeout_s: float | None = None) -> Ended | None:
        """Wait until the program has ended; return how, or None after the timeout.

        An exception of the program itself, which is none of ZooKeeper's, is raised here.
        """
        self._refuse_in_loop("wait_ended")
        self._is_over.wait(timeout_s)
        if self._error is not None:
            raise self._error
        return self.ended

    @property
    def session(self) -> str:
        """The state of the session: connecting, connected, suspended, expired or closed."""
        return "connecting" if self.driver.client.state == "new" else self.driver.client.state

    # --- in the program's thread ----------------------------------------------------------

    def _run(self) -> None:
        try:
            self.ended = self.driver.run()
        except Halted:
            self.ended = Ended("halted", failed=True)
        except Exception as error:
            self._error = error
            self.ended = Ended(f"{type(error).__name__}: {error}", failed=True)
            self.logger.exception("%s: its program has failed", self.name)
        finally:
            self._clean_up()
            self._is_over.set()
            self._is_ready.set()

    def _saw(self, effect: Operation[Any] | Pipelined | Call, answer: Any) -> None:
        """Process a response of ZooKeeper."""
        self._is_ready.set()

    def _hear(self, kind: str) -> None:
        """Process an event of the program."""

    def _clean_up(self) -> None:
        """Stop all fetching, and end the threads of kazoo."""
        if self.fetching is not None:
            self.fetching.stop()
        if self.driver.client.state != "closed":
            self.driver.client.close()

    # --- in an event loop -----------------------------------------------------------------

    @property
    def _is_in_callback(self) -> bool:
        return False

    def _refuse_in_loop(self, method: str) -> None:
        """Raise RuntimeError where a wait would block the event loop that the member needs."""

    async def aclose(self, timeout_s: float = LEAVE_WITHIN_S) -> bool:
        """Close as `close` does, from an event loop."""
        if self._is_in_callback:
            return self._close(timeout_s)
        return await asyncio.to_thread(self.close, timeout_s)

    async def aready(self, timeout_s: float = READY_WITHIN_S) -> None:
        """Wait as `ready` does, from an event loop."""
        await asyncio.to_thread(self.ready, timeout_s)

    async def await_ended(self, timeout_s: float | None = None) -> Ended | None:
        """Wait as `wait_ended` does, from an event loop."""
        return await asyncio.to_thread(self.wait_ended, timeout_s)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


def hosts_and_chroot(hosts: str) -> tuple[str, str]:
    """Return the addresses, and the chroot: empty, or a path."""
    addresses, _, chroot = hosts.partition("/")
    chroot = chroot.strip("/")
    if not addresses or "//" in chroot:
        raise ValueError(
            f"hosts is {hosts!r}; expected addresses as in one:2181,two:2181 or with a path "
            "below which everything is, one:2181/kafka"
        )
    return addresses, f"/{chroot}" if chroot else ""


def run_live(
    program: Program,
    hosts: str,
    *,
    name: str = "program",
    session_timeout_ms: int = 6000,
    fetching: Fetching | None = None,
    kazoo: Mapping[str, Any] | None = None,
) -> Ended:
    """Run a program against a real ZooKeeper until it ends; return how it ended.

    After Ctrl-C the program receives the order to leave, and has 30 s to do so.
    """
    member = Member(
        program,
        hosts,
        name=name,
        logger=logging.getLogger("watchkeeper.program"),
        session_timeout_ms=session_timeout_ms,
        fetching=fetching,
        kazoo=kazoo,
    )
    with member:
        ended = member.wait_ended()
    assert ended is not None, "it was waited for without a limit"
    return ended
