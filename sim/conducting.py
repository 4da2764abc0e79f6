"""Follows a schedule in the simulation: one thing after the other, each when its cue comes.

Theory of operation
  Programs, clients, servers and fetchers are those of every simulation; `held` keeps each
  process at its next ask. A cue lets one answer, one note or one fault through. Then time
  goes on until every process stands again and nothing is on its way any more. What a
  program asks and what it is answered have to be what the schedule says; where the order
  of children is another, which means nothing, it is given the schedule's.

  After the last cue everybody is held for a moment longer. Only where a group has to come
  to rest, for what is judged at rest, all of them are let go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from model.answers import LEAVE, Seen
from model.asks import CloseSession, FetchExactly, NextNote
from model.cues import Cue, agree, differs, told
from model.errors import ConnectionLoss, Failure, SessionExpired
from model.faults import VERBS, Action, Effect
from model.operations import Exists, GetChildren, GetEphemerals, Operation
from model.plan import Plan
from model.properties import Judgement, judge
from model.trace import Header, Trace
from sim.client import Loss
from sim.connection import Connection, Request
from sim.held import CLOSING, HeldDriver, HeldWorld, Told, stretched
from sim.held_client import HeldClient
from sim.world import WORLD

QUIET_US = 60_000
"""After this, whatever was on its way has arrived."""
PATIENCE_US = 600_000_000
REST_US = 600_000_000
"""What a group is given to come to rest, when all have been let go, in parts, ..."""
PART_US = 10_000_000
MOST_OPERATIONS = 20_000
"""... unless it asks for more than this meanwhile."""


@dataclass(frozen=True, slots=True)
class Followed:
    """What came of following a schedule."""

    trace: Trace
    judgement: Judgement
    differs: str
    """The first difference; empty for none."""


class Another(Exception):
    """Something else came than the schedule says."""


class Conductor:
    """One schedule on its way."""

    def __init__(self, plan: Plan, told: Told, seed: int = 0) -> None:
        self.plan = plan
        self.world = HeldWorld(stretched(plan), seed)
        self.kernel = self.world.kernel
        self.cluster = next(iter(self.world.clusters.values()))
        self.told = told
        self.sessions: dict[int, int] = {}
        """The schedule's number of a session -> the simulation's."""
        self.ghosts: list[tuple[int, Connection, Operation[Any]]] = []

    def follow(self, cues: Iterable[Cue], *, rests: bool) -> Followed:
        """Follow the cues; afterwards let everybody go if the group has to come to rest."""
        self.cluster.ensemble.election.begin()
        self._settle()
        said = ""
        try:
            for cue in cues:
                self._do(cue)
        except Another as another:
            said = str(another)
        if rests and not said:
            self._let_go()
        self.kernel.write("", "run ends")
        trace = Trace(Header(self.plan.name, self.plan.variant, WORLD, 0, {}), self.kernel.rows)
        return Followed(trace, judge(self.plan, trace, ()), said)

    def _do(self, cue: Cue) -> None:
        act = ACTS.get(cue.does)
        if act is None:
            raise Another(f"{cue.place}: the simulation cannot do that {cue.node} {cue.does}")
        act(self, cue)
        self._settle()
        node = self.world.nodes.get(cue.node)
        if cue.session_after and node is not None and node.client is not None:
            self.sessions[cue.session_after] = node.client.session

    # --- time --------------------------------------------------------------------------

    def _settle(self) -> None:
        """Let time go on until every process stands and nothing is on its way."""
        ends_us = self.kernel.now_us + PATIENCE_US
        while self.kernel.now_us < ends_us:
            self.kernel.run_until(self.kernel.now_us + QUIET_US)
            drivers = self.world.held_drivers
            stand = all(driver.stands for driver in drivers)
            if stand and not [driver for driver in drivers if driver.answer_poll()]:
                return
        raise Another("in the simulation not everybody has come to ask for something")

    def _until(self, cue: Cue, is_there: Callable[[], bool]) -> None:
        ends_us = self.kernel.now_us + PATIENCE_US
        while not is_there():
            if self.kernel.now_us > ends_us:
                raise Another(f"{cue.place}, {cue.node}: {told(cue.about)} is not answered")
            self.kernel.step()

    def _let_go(self) -> None:
        for driver in self.world.held_drivers:
            if driver.node.is_alive:
                driver.client_held.let_go()
        for driver in self.world.held_drivers:
            if driver.node.is_alive:
                driver.let_go()
        timeout_us = self.plan.clusters[0].session_timeout_ms * 1000
        self.kernel.run_until(self.kernel.now_us + timeout_us)
        self._end_what_is_left()
        ends_us, most = self.kernel.now_us + REST_US, self.kernel.operations + MOST_OPERATIONS
        while self.kernel.now_us < ends_us and self.kernel.operations < most:
            self.kernel.run_until(self.kernel.now_us + PART_US)

    def _end_what_is_left(self) -> None:
        """The sessions of processes that are no more end, as they would by themselves."""
        sessions = self.cluster.ensemble.sessions
        kept = {
            node.client.session
            for node in self.world.nodes.values()
            if node.is_alive and node.client is not None
        }
        for number, lease in list(sessions.leases.items()):
            if number not in kept and not lease.ending:
                sessions.end(lease, "session expired")

    # --- who is meant ------------------------------------------------------------------

    def _driver(self, cue: Cue) -> HeldDriver:
        driver = self.world.drivers.get(cue.node)
        if not isinstance(driver, HeldDriver) or not driver.node.is_alive:
            raise Another(f"{cue.place}: in the simulation {cue.node} does not run")
        return driver

    def _client(self, cue: Cue) -> HeldClient:
        return self._driver(cue).client_held

    def _asking(self, cue: Cue, kind: type[Any]) -> HeldDriver:
        driver = self._driver(cue)
        if not isinstance(driver.held, kind):
            raise Another(_asks_another(cue, driver))
        return driver

    def _operation(self, cue: Cue) -> tuple[HeldDriver, Operation[Any]]:
        driver = self._driver(cue)
        operation = driver.next_operation
        if operation is None or operation != cue.about:
            raise Another(_asks_another(cue, driver))
        return driver, operation

    # --- processes ---------------------------------------------------------------------

    def _start(self, cue: Cue) -> None:
        if cue.node in self.world.consumers or cue.node in self.world.brokers:
            self.world.start(cue.node)
        else:
            self.world.start_administrator(self.cluster)
        driver = self._driver(cue)
        driver.told = self.told
        driver.life = self.world.lives.get(cue.node, 1) - 1

    def _kill(self, cue: Cue) -> None:
        self.world.kill(self._driver(cue).node)

    def _tell_to_leave(self, cue: Cue) -> None:
        self._driver(cue).node.deliver(LEAVE)

    def _stop_fetching(self, cue: Cue) -> None:
        self._asking(cue, FetchExactly).stop_fetching()

    def _read(self, cue: Cue) -> None:
        fetcher = self._driver(cue).fetcher
        if fetcher is None or cue.about not in fetcher.current:
            raise Another(f"{cue.place}: in the simulation {cue.node} does not fetch {cue.about}")
        fetcher.read_one(cue.about)

    # --- notes -------------------------------------------------------------------------

    def _hear(self, cue: Cue) -> None:
        """What was missed over a break comes in one piece, whose order means nothing."""
        driver = self._asking(cue, NextNote)
        client = driver.client_held
        events = [event for _, event, _ in client.withheld]
        if client.armed is not None and cue.about in events:
            client.withheld.insert(0, client.withheld.pop(events.index(cue.about)))
        came = client.hear_first()
        if came != cue.about and cue.about is not None:
            raise Another(
                f"{cue.place}, {cue.node}: hears of {told(came)}; the schedule says "
                f"{told(cue.about)}"
            )

    def _hear_nothing(self, cue: Cue) -> None:
        self._asking(cue, NextNote).hear_nothing()

    # --- requests ----------------------------------------------------------------------

    def _answer(self, cue: Cue) -> None:
        driver, operation = self._operation(cue)
        came: list[Any] = []

        def answered(answer: Any, zxid: int) -> None:
            came.append(_as_a_server_says(operation, answer))

        driver.client_held.request(operation, answered)
        self._until(cue, lambda: bool(came))
        if not agree(operation, cue.answer, came[0]):
            raise Another(differs(cue, cue.answer, came[0]))
        is_list = isinstance(operation, GetChildren | GetEphemerals)
        driver.take_answer(cue.answer if is_list else came[0])

    def _lose_reply(self, cue: Cue) -> None:
        driver, operation = self._operation(cue)
        client = driver.client_held
        client.lose_next(Loss("reply", _effect(cue)))
        lost: list[Any] = []
        client.request(operation, lambda answer, zxid: lost.append(answer))
        self._until(cue, lambda: bool(lost))
        driver.finish(lost[0])

    def _lose_request(self, cue: Cue) -> None:
        driver, operation = self._operation(cue)
        driver.client_held.break_off()
        driver.finish(Failure(ConnectionLoss, operation.path))

    def _leave_behind(self, cue: Cue) -> None:
        connection = self._client(cue).connection
        self._lose_request(cue)
        if connection is not None:
            connection.is_ghost = True
            self.ghosts += [(cue.session, connection, ghost) for ghost in cue.ghosts]

    def _arrive_late(self, cue: Cue) -> None:
        for at, (session, connection, ghost) in enumerate(self.ghosts):
            if (session, ghost) == (cue.session, cue.about):
                del self.ghosts[at]
                connection.server.receive((connection, Request(ghost)))
                return
        raise Another(f"{cue.place}: in the simulation {cue.node} has left no {told(cue.about)}")

    # --- connections and sessions ------------------------------------------------------

    def _disconnect(self, cue: Cue) -> None:
        driver = self._driver(cue)
        operation = driver.next_operation
        driver.client_held.break_off()
        if operation is not None:
            driver.finish(Failure(ConnectionLoss, operation.path))

    def _be_told(self, cue: Cue) -> None:
        driver = self._driver(cue)
        operation = driver.next_operation
        driver.client_held.be_told_expired()
        if operation is not None:
            driver.finish(Failure(SessionExpired, operation.path))

    def _come_back(self, cue: Cue) -> None:
        client = self._client(cue)
        client.come_back()
        self._until(cue, lambda: client.state in ("connected", "expired"))

    def _expire(self, cue: Cue) -> None:
        self._client(cue).is_deaf = True
        self._end(cue)

    def _end(self, cue: Cue) -> None:
        sessions = self.cluster.ensemble.sessions
        lease = sessions.leases.get(self.sessions.get(cue.session, 0))
        if lease is None or lease.ending:
            raise Another(f"{cue.place}: in the simulation {cue.node} has no such session")
        sessions.end(lease, "session expired")

    def _close(self, cue: Cue) -> None:
        driver = self._asking(cue, CloseSession)
        driver.close_session()
        self._until(cue, lambda: driver.held is not CLOSING)


ACTS: dict[str, Callable[[Conductor, Cue], None]] = {
    "starts": Conductor._start,
    "is killed": Conductor._kill,
    "is told to leave": Conductor._tell_to_leave,
    "stops fetching": Conductor._stop_fetching,
    "reads a message": Conductor._read,
    "hears": Conductor._hear,
    "hears nothing yet": Conductor._hear_nothing,
    "is woken by its timer": Conductor._hear_nothing,
    "is answered": Conductor._answer,
    "loses a reply": Conductor._lose_reply,
    "loses a request": Conductor._lose_request,
    "leaves a request behind": Conductor._leave_behind,
    "arrives late": Conductor._arrive_late,
    "is disconnected": Conductor._disconnect,
    "is told that its session is dead": Conductor._be_told,
    "is connected again": Conductor._come_back,
    "learns that its session is dead": Conductor._come_back,
    "loses its session": Conductor._expire,
    "session ends": Conductor._end,
    "closes its session": Conductor._close,
}


def _as_a_server_says(operation: Operation[Any], answer: Any) -> Any:
    """The simulated service tells the data of a znode to whoever asks if it is there."""
    if isinstance(operation, Exists) and type(answer) is Seen:
        return Seen(None, answer.version, answer.mine, answer.stat)
    return answer


def _asks_another(cue: Cue, driver: HeldDriver) -> str:
    operation = driver.next_operation
    asks = told(operation) if operation is not None else type(driver.held).__name__
    wanted = f" {told(cue.about)}" if cue.about is not None else ""
    return (
        f"{cue.place}: the schedule says that {cue.node} {cue.does}{wanted}; in the simulation "
        f"it asks for {asks}"
    )


def _effect(cue: Cue) -> Effect:
    """Where a fault of a schedule counts what it did."""
    return Effect(Action(0, VERBS["lose"], cue.node))
