"""Replays a schedule in the simulation: one action after the other.

Theory of operation
  Programs, clients, servers and fetchers are those of every simulation; `stepped_process`
  blocks each process at its next effect. An action lets one answer, one notification or one
  fault through. Then time goes on until every process is blocked again and nothing is under
  way. The requests of a program and their answers have to be those of the schedule. Only the
  order of children, which means nothing, may differ; the program gets the schedule's order.

  After the last action all processes stay blocked for a moment. Only where a group has to
  become quiescent, for the properties that are judged then, all of them are released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from watchkeeper.model.actor.effects import CloseSession, FetchExactly, NextEvent
from watchkeeper.model.actor.errors import ConnectionLoss, Failure, SessionExpired
from watchkeeper.model.actor.events import LEAVE, Command, ZnodeView
from watchkeeper.model.actor.operations import Exists, GetChildren, GetEphemerals, Operation
from watchkeeper.model.counterexample.replay_steps import ReplayStep, agree, describe, differs
from watchkeeper.model.counterexample.step_kind import StepKind
from watchkeeper.model.judgement.judge import Judgement, judge
from watchkeeper.model.plan.bounds import mix_of
from watchkeeper.model.plan.faults import VERBS, Action, FaultEffect
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Header, Trace
from watchkeeper.sim.replay.stepped_client import SteppedClient
from watchkeeper.sim.replay.stepped_process import (
    CLOSING,
    ScheduledValues,
    SteppedDriver,
    SteppedWorld,
    stretched,
)
from watchkeeper.sim.world import WORLD
from watchkeeper.sim.zookeeper.client import Loss
from watchkeeper.sim.zookeeper.connection import Connection, Request

QUIET_US = 60_000
"""Everything that was on its way arrives within this time."""
PATIENCE_US = 600_000_000
"""The longest wait for an answer, or for all processes to block."""
REST_US = 600_000_000
"""The time that a released group has to become quiescent; it passes in parts of PART_US."""
PART_US = 10_000_000
MOST_OPERATIONS = 20_000
"""A released group that performs more operations than this is stopped early."""


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """The result of a replay."""

    trace: Trace
    judgement: Judgement
    differs: str
    """The first difference from the schedule; empty for none."""
    waiting: tuple[str, ...] = ()
    """The processes whose application still waits for the result of an order."""


class Divergence(Exception):
    """The simulation did something else than the schedule says."""


class Replayer:
    """Replays one schedule in a simulated world of its own."""

    def __init__(self, plan: Plan, values: ScheduledValues, seed: int = 0) -> None:
        self.plan = plan
        self.world = SteppedWorld(stretched(plan), seed)
        self.kernel = self.world.kernel
        self.cluster = next(iter(self.world.clusters.values()))
        self.values = values
        self.sessions: dict[int, int] = {}
        """The schedule's number of a session -> the simulation's."""
        self.late_requests: list[tuple[int, Connection, Operation[Any]]] = []
        """Delayed requests that no step has executed: session, broken connection, operation."""

    def follow(self, actions: Iterable[ReplayStep], *, rests: bool) -> ReplayOutcome:
        """Perform the actions; then, if `rests`, let the released group become quiescent."""
        self.cluster.ensemble.election.begin()
        self._run_until_blocked()
        difference = ""
        try:
            for action in actions:
                self._do(action)
        except Divergence as divergence:
            difference = str(divergence)
        if rests and not difference:
            self._release()
        self.kernel.write("", EventKind.RUN_ENDED)
        header = Header(self.plan.name, self.plan.variant, WORLD, 0, {}, mix=mix_of(self.plan))
        trace = Trace(header, self.kernel.rows)
        waiting = tuple(
            driver.node.name
            for driver in self.world.stepped_drivers
            if driver.node.runs_program and driver.awaits
        )
        return ReplayOutcome(trace, judge(self.plan, trace, ()), difference, waiting)

    def _do(self, action: ReplayStep) -> None:
        act = ACTIONS.get(action.does)
        if act is None:
            raise Divergence(
                f"{action.place}: the simulation cannot do that {action.node} {action.does.text}"
            )
        act(self, action)
        self._run_until_blocked()
        node = self.world.nodes.get(action.node)
        if action.session_after and node is not None and node.client is not None:
            self.sessions[action.session_after] = node.client.session

    # --- time --------------------------------------------------------------------------

    def _run_until_blocked(self) -> None:
        """Let time pass until every process is blocked and nothing is on its way."""
        ends_us = self.kernel.now_us + PATIENCE_US
        while self.kernel.now_us < ends_us:
            self.kernel.run_until(self.kernel.now_us + QUIET_US)
            drivers = self.world.stepped_drivers
            # An answered poll sets its program going, so it takes another round. All polls are
            # answered in one round: `any` over a generator would stop at the first.
            if all(driver.is_blocked for driver in drivers):
                answered = [driver for driver in drivers if driver.answer_poll()]
                if not answered:
                    return
        raise Divergence("in the simulation not every process has come to its next effect")

    def _until(self, action: ReplayStep, is_there: Callable[[], bool]) -> None:
        ends_us = self.kernel.now_us + PATIENCE_US
        while not is_there():
            if self.kernel.now_us > ends_us:
                raise Divergence(
                    f"{action.place}, {action.node}: {describe(action.about)} is not answered"
                )
            self.kernel.step()

    def _release(self) -> None:
        for driver in self.world.stepped_drivers:
            if driver.node.is_alive:
                driver.stepped_client.release()
        for driver in self.world.stepped_drivers:
            if driver.node.runs_program:
                driver.release()
        timeout_us = self.plan.clusters[0].session_timeout_ms * 1000
        self.kernel.run_until(self.kernel.now_us + timeout_us)
        self._end_orphaned_sessions()
        ends_us, most = self.kernel.now_us + REST_US, self.kernel.operations + MOST_OPERATIONS
        while self.kernel.now_us < ends_us and self.kernel.operations < most:
            self.kernel.run_until(self.kernel.now_us + PART_US)

    def _end_orphaned_sessions(self) -> None:
        """End the sessions of killed processes; stretched timeouts would keep them too long."""
        sessions = self.cluster.ensemble.sessions
        kept = {
            node.client.session
            for node in self.world.nodes.values()
            if node.is_alive and node.client is not None
        }
        for number, lease in list(sessions.leases.items()):
            if number not in kept and not lease.ending:
                sessions.end(lease, EventKind.SESSION_EXPIRED)

    # --- the process of an action ------------------------------------------------------

    def _driver(self, action: ReplayStep) -> SteppedDriver:
        driver = self.world.drivers.get(action.node)
        if not isinstance(driver, SteppedDriver) or not driver.node.is_alive:
            raise Divergence(f"{action.place}: in the simulation {action.node} does not run")
        return driver

    def _client(self, action: ReplayStep) -> SteppedClient:
        return self._driver(action).stepped_client

    def _waiting_for(self, action: ReplayStep, kind: type[Any]) -> SteppedDriver:
        driver = self._driver(action)
        if not isinstance(driver.pending, kind):
            raise Divergence(_other_request(action, driver))
        return driver

    def _operation(self, action: ReplayStep) -> tuple[SteppedDriver, Operation[Any]]:
        driver = self._driver(action)
        operation = driver.next_operation
        if operation is None or operation != action.about:
            raise Divergence(_other_request(action, driver))
        return driver, operation

    # --- processes ---------------------------------------------------------------------

    def _start(self, action: ReplayStep) -> None:
        self.world.start(action.node)
        driver = self._driver(action)
        driver.values = self.values
        driver.life = self.world.lives.get(action.node, 1) - 1

    def _kill(self, action: ReplayStep) -> None:
        self.world.kill(self._driver(action).node)

    def _abandon(self, action: ReplayStep) -> None:
        self._driver(action)
        self.world.abandon(action.node)

    def _order_to_leave(self, action: ReplayStep) -> None:
        self._driver(action).node.deliver(LEAVE)

    def _change_topic(self, action: ReplayStep) -> None:
        """Change the disk of a broker, or the assignment, and give the order to the process."""
        order: Command = action.about
        driver = self._driver(action)
        broker = self.world.brokers.get(action.node)
        if broker is None:
            alive = tuple(
                sorted(
                    plan.broker_id
                    for plan in self.cluster.plan.brokers
                    if self.world.running(plan.node) is not None
                )
            )
            self.cluster.reassign(order, alive)
        else:
            self.cluster.change_disk(broker[1].broker_id, order)
        for plan in self.cluster.plan.brokers:
            if self.world.running(plan.node) is not None:
                self.cluster.remove(plan.node, order.topic)
                kept = self.cluster.partitions_of(plan.broker_id)
                self.cluster.serve(
                    plan.node, [partition for partition in kept if partition.topic == order.topic]
                )
        driver.node.deliver(order)

    def _stop_fetching(self, action: ReplayStep) -> None:
        self._waiting_for(action, FetchExactly).stop_fetching()

    def _read(self, action: ReplayStep) -> None:
        fetcher = self._driver(action).fetcher
        if fetcher is None or action.about not in fetcher.current:
            raise Divergence(
                f"{action.place}: in the simulation {action.node} does not fetch {action.about}"
            )
        fetcher.read_one(action.about)
        if action.order is not None:
            self._driver(action).order(action.order)

    # --- notifications -----------------------------------------------------------------

    def _notify(self, action: ReplayStep) -> None:
        driver = self._waiting_for(action, NextEvent)
        client = driver.stepped_client
        # Events missed during a break arrive together once the watches are set again. Their order
        # means nothing, so the scheduled one goes first.
        events = [event for _, event, _ in client.withheld]
        if client.armed is not None and action.about in events:
            client.withheld.insert(0, client.withheld.pop(events.index(action.about)))
        actual = client.deliver_first()
        if actual != action.about and action.about is not None:
            raise Divergence(
                f"{action.place}, {action.node}: receives {describe(actual)}; the schedule says "
                f"{describe(action.about)}"
            )

    def _notify_nothing(self, action: ReplayStep) -> None:
        self._waiting_for(action, NextEvent).wake_without_event()

    # --- requests ----------------------------------------------------------------------

    def _answer(self, action: ReplayStep) -> None:
        driver, operation = self._operation(action)
        actual: list[Any] = []

        def answered(answer: Any, zxid: int) -> None:
            actual.append(_as_answered_by_server(operation, answer))

        driver.stepped_client.request(operation, answered)
        self._until(action, lambda: bool(actual))
        if not agree(operation, action.answer, actual[0]):
            raise Divergence(differs(action, action.answer, actual[0]))
        is_list = isinstance(operation, GetChildren | GetEphemerals)
        driver.take_answer(action.answer if is_list else actual[0])

    def _lose_reply(self, action: ReplayStep) -> None:
        driver, operation = self._operation(action)
        client = driver.stepped_client
        client.lose_next(Loss("reply", _effect(action)))
        lost: list[Any] = []
        client.request(operation, lambda answer, zxid: lost.append(answer))
        self._until(action, lambda: bool(lost))
        driver.finish(lost[0])

    def _lose_request(self, action: ReplayStep) -> None:
        driver, operation = self._operation(action)
        driver.stepped_client.break_off()
        driver.finish(Failure(ConnectionLoss, operation.path))

    def _delay_request(self, action: ReplayStep) -> None:
        connection = self._client(action).connection
        self._lose_request(action)
        if connection is not None:
            connection.has_late_requests = True
            self.late_requests += [
                (action.session, connection, operation) for operation in action.late_requests
            ]

    def _execute_late(self, action: ReplayStep) -> None:
        for at, (session, connection, operation) in enumerate(self.late_requests):
            if (session, operation) == (action.session, action.about):
                del self.late_requests[at]
                connection.server.receive((connection, Request(operation)))
                return
        raise Divergence(
            f"{action.place}: in the simulation {action.node} has no late request "
            f"{describe(action.about)}"
        )

    # --- connections and sessions ------------------------------------------------------

    def _disconnect(self, action: ReplayStep) -> None:
        driver = self._driver(action)
        operation = driver.next_operation
        driver.stepped_client.break_off()
        if operation is not None:
            driver.finish(Failure(ConnectionLoss, operation.path))

    def _answer_expired(self, action: ReplayStep) -> None:
        driver = self._driver(action)
        operation = driver.next_operation
        driver.stepped_client.expire()
        if operation is not None:
            driver.finish(Failure(SessionExpired, operation.path))

    def _reconnect(self, action: ReplayStep) -> None:
        client = self._client(action)
        client.reconnect()
        self._until(action, lambda: client.state in ("connected", "expired"))

    def _expire(self, action: ReplayStep) -> None:
        # The client must not learn of the end before a step says so: it no longer receives
        # anything, while its connection stays open.
        self._client(action).ignores_events = True
        self._end(action)

    def _end(self, action: ReplayStep) -> None:
        sessions = self.cluster.ensemble.sessions
        lease = sessions.leases.get(self.sessions.get(action.session, 0))
        if lease is None or lease.ending:
            raise Divergence(
                f"{action.place}: in the simulation {action.node} has no such session"
            )
        sessions.end(lease, EventKind.SESSION_EXPIRED)

    def _close(self, action: ReplayStep) -> None:
        driver = self._waiting_for(action, CloseSession)
        driver.close_session()
        self._until(action, lambda: driver.pending is not CLOSING)


ACTIONS: dict[StepKind, Callable[[Replayer, ReplayStep], None]] = {
    StepKind.START: Replayer._start,
    StepKind.CRASH: Replayer._kill,
    StepKind.ABANDON: Replayer._abandon,
    StepKind.LEAVE: Replayer._order_to_leave,
    StepKind.CHANGE_TOPIC: Replayer._change_topic,
    StepKind.STOP_FETCHING: Replayer._stop_fetching,
    StepKind.READ_MESSAGE: Replayer._read,
    StepKind.NOTIFICATION: Replayer._notify,
    StepKind.EMPTY_POLL: Replayer._notify_nothing,
    StepKind.TIMER: Replayer._notify_nothing,
    StepKind.REPLY: Replayer._answer,
    StepKind.LOST_REPLY: Replayer._lose_reply,
    StepKind.LOST_REQUEST: Replayer._lose_request,
    StepKind.DELAYED_REQUEST: Replayer._delay_request,
    StepKind.LATE_REQUEST: Replayer._execute_late,
    StepKind.DISCONNECT: Replayer._disconnect,
    StepKind.EXPIRY_ON_REQUEST: Replayer._answer_expired,
    StepKind.RECONNECT: Replayer._reconnect,
    StepKind.EXPIRY_ON_RECONNECT: Replayer._reconnect,
    StepKind.SESSION_EXPIRED: Replayer._expire,
    StepKind.OLD_SESSION_EXPIRED: Replayer._end,
    StepKind.CLOSE_SESSION: Replayer._close,
}


def _as_answered_by_server(operation: Operation[Any], answer: Any) -> Any:
    """Remove the data from the answer to `exists`: the simulated service adds it, no server."""
    if isinstance(operation, Exists) and type(answer) is ZnodeView:
        return ZnodeView(None, answer.version, answer.mine, answer.stat)
    return answer


def _other_request(action: ReplayStep, driver: SteppedDriver) -> str:
    operation = driver.next_operation
    request = describe(operation) if operation is not None else type(driver.pending).__name__
    expected = f" {describe(action.about)}" if action.about is not None else ""
    return (
        f"{action.place}: the schedule says that {action.node} {action.does.text}{expected}; "
        f"in the simulation it requests {request}"
    )


def _effect(action: ReplayStep) -> FaultEffect:
    """Return the effect record that a fault of a schedule needs; no timeline has the fault."""
    return FaultEffect(Action(0, VERBS["lose"], action.node))
