"""A program that runs live inside an application: a thread, a driver, a session.

    run_live(program, hosts="localhost:2181")

`Member` is what everything that lives in an application shares: it is started once, told
to leave, and waited for. It can be used from plain threads and from an event loop; a
method that has to wait has a twin for the loop, whose name begins with `a`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from threading import Event, Thread
from time import monotonic
from types import TracebackType
from typing import Any, Self

from model.answers import LEAVE, Ordered
from model.asks import NewSession, NextNote
from model.errors import ZooKeeperError
from model.operations import Operation, Pipelined
from model.program import Ended, Program
from real.account import Account
from real.client import Client, Said
from real.driver import Driver, Fetching

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 2.0
"""How long a program rests whose turns fail one after the other."""
LEAVE_WITHIN_S = READY_WITHIN_S = 30.0

Connect = Callable[[Callable[[Said], None]], Client]
"""Makes the client of a driver, which tells it what happens by calling this."""


class Poke:
    """Whoever waits for a note with nothing else to do need not wait any longer."""


class Halt:
    """Stop at once."""


class Halted(Exception):
    """The program was stopped in the middle."""


class LiveDriver(Driver):
    """A driver that can be hurried and halted, and bears with turns that fail."""

    saw: Callable[[Operation[Any] | Pipelined, Any], None] | None = None
    """Told of every answer, in the program's thread."""
    _is_poked = False
    _may_be_poked = False
    _has_chroot = False
    _pause_s = FIRST_PAUSE_S
    _failed_at = 0.0

    def _hear(self, said: Any) -> None:
        if isinstance(said, Halt):
            raise Halted
        if isinstance(said, Poke):
            self._is_poked = True
        else:
            super()._hear(said)

    def _next_note(self, ask: NextNote) -> Any:
        """A note; none at once for a program that was poked and rests for a while anyway."""
        self._may_be_poked = bool(ask.timeout_ms)
        note = super()._next_note(ask)
        if note is None and self._may_be_poked:
            self._is_poked = False
        return note

    def _need_not_wait(self) -> bool:
        return super()._need_not_wait() or (self._is_poked and self._may_be_poked)

    def _operate(self, ask: Any) -> Any:
        answer = super()._operate(ask)
        if self.saw is not None:
            self.saw(ask, answer)
        return answer

    def _new_session(self, ask: NewSession) -> None:
        super()._new_session(ask)
        while self.client.prefix and not self._has_chroot:
            self._has_chroot = self.client.make_chroot()
            super()._new_session(ask)

    def _turn_failed(self, error: ZooKeeperError) -> None:
        super()._turn_failed(error)
        is_again = monotonic() - self._failed_at < 2 * LONGEST_PAUSE_S
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S) if is_again else FIRST_PAUSE_S
        self._wait_for(lambda: False, self._pause_s)
        self._failed_at = monotonic()


class Member:
    """A program at work inside an application."""

    not_ready = "has had no answer"
    """What is said of it when `ready` has waited too long."""

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
    ) -> None:
        """`hosts` as clients of ZooKeeper write them: `one:2181,two:2181/chroot`."""
        self.name = name
        self.logger = logger
        self.account = Account(name, logger)
        self.fetching = fetching
        self.ended: Ended | None = None
        """How it ended; None while it runs."""
        self._error: Exception | None = None
        self._is_ready = Event()
        self._is_over = Event()
        addresses, chroot = hosts_and_chroot(hosts)

        def connect(hear: Callable[[Said], None]) -> Client:
            return Client(addresses, chroot, session_timeout_ms, hear, kazoo)

        self.driver = self.make_driver(program, connect, fetching)
        self.driver.saw = self._saw
        self.account.hear = self._hear
        self._thread = Thread(target=self._run, name=f"{name} program", daemon=True)
        self._is_started = False

    def make_driver(
        self, program: Program, connect: Connect, fetching: Fetching | None
    ) -> LiveDriver:
        """What runs the program; one that has threads beside it needs another."""
        return LiveDriver(program, self.account, connect, fetching)

    # --- coming and going -----------------------------------------------------------------

    def start(self) -> Self:
        """Begin; whatever is to happen happens in threads of its own."""
        if self._is_started:
            raise RuntimeError(f"{self.name} was started before; make another one to start again")
        self._is_started = True
        self._prepare()
        self._thread.start()
        return self

    def _prepare(self) -> None:
        """Begin what has to be there before the program."""

    def tell(self, order: Ordered) -> None:
        """Put an order into the program's inbox."""
        self.driver.queue.put(order)

    def close(self, timeout_s: float = LEAVE_WITHIN_S) -> bool:
        """Leave, and come back when nothing is left of it; whether it left gracefully.

        What cannot be done within this time is given up: then the session is dropped, and
        ZooKeeper ends it when its timeout is over.
        """
        self._refuse_in_loop("close")
        return self._close(timeout_s)

    def _close(self, timeout_s: float) -> bool:
        if not self._is_started:
            return True
        self.tell(LEAVE)
        if self._is_in_callback:
            return False
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
        """Wait until it takes part: a consumer in its first rebalance, a broker by its id.

        TimeoutError says that it does not yet, RuntimeError why it never will.
        """
        self._refuse_in_loop("ready")
        is_ready = self._is_ready.wait(timeout_s)
        if self.ended is not None and self.ended.failed:
            raise RuntimeError(f"{self.name} is over: {self.ended.reason}")
        if not is_ready:
            raise TimeoutError(
                f"{self.name} {self.not_ready} within {timeout_s:g} s; its session is "
                f"{self.session}"
            )

    def over(self, timeout_s: float | None = None) -> Ended | None:
        """Wait until the program is over; how it ended, or None when the time is up.

        What the program itself raised, no matter of ZooKeeper's, is raised here.
        """
        self._refuse_in_loop("over")
        self._is_over.wait(timeout_s)
        if self._error is not None:
            raise self._error
        return self.ended

    @property
    def session(self) -> str:
        """How the session is: connecting, connected, suspended, expired or closed."""
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

    def _saw(self, ask: Operation[Any] | Pipelined, answer: Any) -> None:
        """Told of every answer of ZooKeeper's."""
        self._is_ready.set()

    def _hear(self, kind: str) -> None:
        """Told of every event."""

    def _clean_up(self) -> None:
        """Whatever has happened, nobody goes on reading, and no thread of kazoo's is left."""
        if self.fetching is not None:
            self.fetching.stop()
        if self.driver.client.state != "closed":
            self.driver.client.close()

    # --- in an event loop -----------------------------------------------------------------

    @property
    def _is_in_callback(self) -> bool:
        return False

    def _refuse_in_loop(self, method: str) -> None:
        """What waits in the thread of a loop keeps that loop from what is waited for."""

    async def aclose(self, timeout_s: float = LEAVE_WITHIN_S) -> bool:
        """Do as `close`, from an event loop."""
        if self._is_in_callback:
            return self._close(timeout_s)
        return await asyncio.to_thread(self.close, timeout_s)

    async def aready(self, timeout_s: float = READY_WITHIN_S) -> None:
        """Do as `ready`, from an event loop."""
        await asyncio.to_thread(self.ready, timeout_s)

    async def aover(self, timeout_s: float | None = None) -> Ended | None:
        """Do as `over`, from an event loop."""
        return await asyncio.to_thread(self.over, timeout_s)

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
    """The addresses, and the path below which everything is."""
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
    """Run a program against a real ZooKeeper until it is over; how it ended.

    Interrupted (Ctrl-C), the program finds the order to leave in its inbox and has 30 s to
    do so.
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
        ended = member.over()
    assert ended is not None, "it was waited for without a limit"
    return ended
