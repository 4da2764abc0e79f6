"""The steps of one process: what it does next, and the faults that it may suffer.

A step that has to come sooner or later is free: a reply, the delivery of a notification, the
discovery of a broken connection, a reconnect, the end of an orphaned session, the execution
of a late request. A step that need not come is a fault and uses up budget. The end of a
sleep, a timer that expires and a message that is read are idle: they may come any number of
times, and no liveness property depends on them.

  fault          effect
  crash          the process ends, with all members in it; its session expires later, maybe
                 after the next life began
  abandon        the program ends, and its process keeps the session: it ends only by a crash of
                 that process, or by expire
  restart        a process that has ended starts again under the same id
  join           a process that was absent starts
  leave          the process receives the order to leave
  expire         the service ends the session; the client learns of it later
  disconnect     the connection breaks; a request under way was executed or was not
  lost_request   it breaks, and the request under way was not executed
  lost_reply     it breaks, and the request under way was executed
  create_topic, add_partitions, delete_topic
                 the process receives the order to change a topic
  late_request   a disconnect whose request may also be executed at any later time
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from watchkeeper.checker.actors.actor import Actor, fetching_exactly, with_earlier_events
from watchkeeper.checker.actors.actor_state import (
    ActorState,
    Broadcast,
    Fetching,
    Kind,
    ProcessChange,
    crashed,
    missed,
    notified,
    without_connection,
)
from watchkeeper.checker.actors.znode_store import Applied, ZnodeStore
from watchkeeper.model.actor.effects import CloseSession, FetchExactly, NextEvent
from watchkeeper.model.actor.errors import ConnectionLoss, Failure
from watchkeeper.model.actor.events import LEAVE, Command, SessionEvent
from watchkeeper.model.actor.operations import (
    WRITES,
    Exists,
    GetChildren,
    GetData,
    GetEphemerals,
    Operation,
    Pipelined,
)
from watchkeeper.model.counterexample.step_kind import StepKind
from watchkeeper.model.plan.bounds import FaultKind
from watchkeeper.model.plan.plan import ProcessPlan

DISCONNECTS = (FaultKind.DISCONNECT, FaultKind.LATE_REQUEST)
"""The faults that break a connection whether a request is under way or not."""
ENDS_PROGRAM = (FaultKind.CRASH, FaultKind.ABANDON)
"""The faults after which the program has forgotten everything."""


class Step(NamedTuple):
    """A transition by values: its kind, and the tree and the process after it."""

    does: StepKind
    tree: int
    state: ActorState
    broadcast: Broadcast = ()
    fault: FaultKind | None = None
    is_idle: bool = False
    about: Any = None
    """The operation, notification or partition that it concerns."""
    answer: Any = None
    deleted: tuple[tuple[str, int], ...] = ()
    followed_by: tuple[tuple[Operation[Any], Any], ...] = ()
    """The reads that were folded into it, each with its answer."""
    is_leftover: bool = False
    """Whether a late request or an orphaned session makes it."""
    then: StepKind | None = None
    """The fault that ends the step before the reads that were folded into it are complete."""


class Transitions:
    """The steps of one process."""

    def __init__(
        self,
        process: Actor,
        service: ZnodeStore,
        faults: frozenset[FaultKind],
        *,
        resends: bool,
        messages: int = 0,
        is_constant: Callable[[str], bool] | None = None,
        topic_changes: Mapping[FaultKind, Command] | None = None,
        shared: ProcessPlan | None = None,
    ) -> None:
        self.process = process
        self.service = service
        self.faults = faults
        """The faults that this process may suffer."""
        self.resends = resends
        """Whether its client sets its watches again after a reconnect."""
        self.messages = messages
        """How many messages each partition holds."""
        self.is_constant = is_constant
        """Whether no process will write a path any more; None where no reads are folded."""
        self.topic_changes = topic_changes or {}
        """The orders to change a topic that this process may receive."""
        self.shared = shared
        """The process in which this member runs with others; None where it runs alone."""

    def with_process(self, state: ActorState, change: ProcessChange) -> ActorState:
        """Return the member after another one of its process was killed or started with it."""
        if self.process.name not in change.members:
            return state
        if change.what == "crash" and state.phase not in ("absent", "gone"):
            return crashed(state)
        if change.what == "restart" and state.phase == "gone":
            return self.process.started(state, state.life + 1)
        return state

    def all(self, tree: int, state: ActorState, *, with_faults: bool = True) -> Iterator[Step]:
        """Yield every step; reads of constant paths are folded into the step before them.

        Without faults the others come in the same order.
        """
        for step in self._all(tree, state, with_faults=with_faults):
            if step.fault or self.is_constant is None:
                yield step
            else:
                yield from self._folded(step, with_faults=with_faults)

    def _folded(self, step: Step, *, with_faults: bool) -> Iterator[Step]:
        """Yield a step with the constant reads after it, and its variants cut short by a fault.

        The answers of these reads are the same in every order, so the states between them
        are left out of the search. A fault between two of them is not: the process loses
        its connection with fewer answers. The end of the program is left out, as it forgets
        the answers anyway, and the search has that end before the first of them.
        """
        while self._reads_what_is_constant(step.state):
            effect = self.process.effect_of(step.state)
            if with_faults:
                for fault in self._faults(step.tree, step.state):
                    if fault.fault not in ENDS_PROGRAM:
                        yield _with_fault(step, fault)
            read = self._reply(step.tree, step.state, effect)
            step = step._replace(
                state=read.state, followed_by=(*step.followed_by, (read.about, read.answer))
            )
        yield step

    def _reads_what_is_constant(self, state: ActorState) -> bool:
        """Whether the next request is a read whose answer no process will change any more."""
        if state.phase != "running" or state.link != "up" or not state.is_alive:
            return False
        effect = self.process.effect_of(state)
        if not isinstance(effect, Operation | Pipelined):
            return False
        operation = _next_operation_of(state, effect)
        if isinstance(operation, GetEphemerals):
            return not state.late_requests
        assert self.is_constant is not None, "nothing is folded without knowing what is settled"
        return type(operation) not in WRITES and self.is_constant(operation.path)

    def _all(self, tree: int, state: ActorState, *, with_faults: bool) -> Iterator[Step]:
        yield from self._leftovers(tree, state)
        if state.phase == "running":
            yield from self._running(tree, state)
        if not with_faults:
            return
        if state.phase == "running":
            yield from self._faults(tree, state)
        elif state.phase == "absent":
            yield from self._start(tree, state, FaultKind.JOIN)
        elif state.phase == "gone":
            yield from self._start(tree, state, FaultKind.RESTART)
        elif state.phase == "abandoned":
            yield from self._crash(tree, state)
            yield from self._expiry(tree, state)

    def _leftovers(self, tree: int, state: ActorState) -> Iterator[Step]:
        """Yield the ends of orphaned sessions, and the execution of the oldest late request."""
        for session in state.orphans:
            done = self.service.end(tree, session)
            others = tuple(orphan for orphan in state.orphans if orphan != session)
            late_requests = tuple(
                request for request in state.late_requests if request[0] != session
            )
            left = notified(
                replace(state, orphans=others, late_requests=late_requests), done.broadcast
            )
            yield Step(
                StepKind.OLD_SESSION_EXPIRED, done.tree, left, done.broadcast, is_leftover=True
            )
        if state.late_requests:
            session, operation = state.late_requests[0]
            done = self.service.apply(tree, session, operation)
            after = notified(
                replace(state, late_requests=state.late_requests[1:]), done.broadcast
            )
            yield _step_of(StepKind.LATE_REQUEST, done, after, operation)._replace(
                is_leftover=True
            )

    def _start(self, tree: int, state: ActorState, fault: FaultKind) -> Iterator[Step]:
        if fault in self.faults:
            life = state.life + (fault is FaultKind.RESTART)
            step = Step(StepKind.START, tree, self.process.started(state, life), fault=fault)
            yield self._of_process(step, "restart") if fault is FaultKind.RESTART else step

    # --- the effect that the program waits for -----------------------------------------

    def _running(self, tree: int, state: ActorState) -> Iterator[Step]:
        effect = self.process.effect_of(state)
        if state.link == "down":
            yield self._connects(tree, state)
        elif state.link == "up" and not state.is_alive:
            yield from self._expiry_learnt(tree, state, effect)
        elif isinstance(effect, Operation | Pipelined):
            yield self._reply(tree, state, effect)
        if isinstance(effect, NextEvent):
            yield from self._waiting(tree, state, effect)
        elif isinstance(effect, FetchExactly):
            stopped = self.process.resumed(fetching_exactly(state, effect), None)
            yield Step(StepKind.STOP_FETCHING, tree, stopped)
        elif isinstance(effect, CloseSession) and state.link == "up" and state.is_alive:
            done = self.service.end(tree, state.session)
            late_requests = tuple(
                request for request in state.late_requests if request[0] != state.session
            )
            closed = replace(
                state,
                link="none",
                is_alive=False,
                watches=frozenset(),
                late_requests=late_requests,
            )
            after = self.process.resumed(closed, None)
            yield Step(StepKind.CLOSE_SESSION, done.tree, after, done.broadcast)
        yield from self._reads(tree, state)

    def _waiting(self, tree: int, state: ActorState, effect: NextEvent) -> Iterator[Step]:
        if state.channel:
            woken = replace(state, inbox=state.channel[:1], channel=state.channel[1:])
            yield Step(
                StepKind.NOTIFICATION, tree, self.process.advanced(woken), about=state.channel[0]
            )
        if effect.timeout_ms == 0:
            yield Step(StepKind.EMPTY_POLL, tree, self.process.resumed(state, None))
        elif effect.timeout_ms is not None and not state.channel:
            after = self.process.resumed(state, None)
            if after != state:
                yield Step(StepKind.TIMER, tree, after, is_idle=True)

    def _reads(self, tree: int, state: ActorState) -> Iterator[Step]:
        """Yield the read of the next message of each partition that is fetched.

        An application that commits by hand orders a commit after each message, and reads no
        further until it has the result.
        """
        if state.awaits:
            return
        for place, fetching in enumerate(state.fetches):
            if fetching.stream >= 0 and fetching.at < self.messages:
                further = Fetching(fetching.partition, fetching.at + 1, fetching.stream)
                fetches = (*state.fetches[:place], further, *state.fetches[place + 1 :])
                read = replace(state, fetches=fetches)
                if self.process.commits_by_hand:
                    read = self.process.ordered_to_commit(read)
                yield Step(
                    StepKind.READ_MESSAGE, tree, read, is_idle=True, about=fetching.partition
                )

    def _reply(self, tree: int, state: ActorState, effect: Any) -> Step:
        """Execute and answer the request under way, or the next one of the batch."""
        operation = _next_operation_of(state, effect)
        done, after = self._execute(tree, state, operation)
        if type(effect) is Pipelined:
            answers = (*after.batch, done.answer)
            known = after.known if state.batch else len(state.inbox)
            after = replace(after, batch=answers, known=known)
            if len(answers) < len(effect.operations):
                return _step_of(StepKind.REPLY, done, after, operation)
            after = with_earlier_events(after, effect, answers)
            return _step_of(StepKind.REPLY, done, self.process.resumed(after, answers), operation)
        after = with_earlier_events(after, effect, done.answer)
        return _step_of(StepKind.REPLY, done, self.process.resumed(after, done.answer), operation)

    def _execute(
        self, tree: int, state: ActorState, operation: Operation[Any]
    ) -> tuple[Applied, ActorState]:
        """Execute an operation, and set its watch."""
        done = self.service.apply(tree, state.session, operation)
        state = notified(state, done.broadcast)
        if getattr(operation, "watch", False) and type(done.answer) is not Failure:
            assert isinstance(operation, Exists | GetData | GetChildren), "only reads do that"
            kind: Kind = "child" if isinstance(operation, GetChildren) else "data"
            if done.answer is None:
                kind = "exist"
            state = replace(state, watches=state.watches | {(kind, operation.path)})
        return done, state

    # --- the connection and the session ------------------------------------------------

    def _connects(self, tree: int, state: ActorState) -> Step:
        """Reconnect: the session goes on, or the client learns that it is dead."""
        if not state.is_alive:
            return Step(StepKind.EXPIRY_ON_RECONNECT, tree, self._with_dead_session(state))
        fired = missed(self.service.trees[tree], state)
        kept = state.watches.difference(watch for watch, event in fired if event is not None)
        up = replace(
            state,
            link="up",
            inbox=(*state.inbox, SessionEvent.CONNECTED),
            channel=tuple(event for _, event in fired if event is not None),
            watches=kept,
            touched=frozenset(),
        )
        return Step(StepKind.RECONNECT, tree, self.process.advanced(up))

    def _with_dead_session(self, state: ActorState) -> ActorState:
        informed = replace(
            state,
            link="expired",
            inbox=(*state.inbox, *state.channel, SessionEvent.EXPIRED),
            channel=(),
            watches=frozenset(),
            touched=frozenset(),
        )
        return self.process.advanced(informed)

    def _expiry_learnt(self, tree: int, state: ActorState, effect: Any) -> Iterator[Step]:
        """Yield the ways in which a connected client notices that its session is dead."""
        yield Step(StepKind.DISCONNECT, tree, self._disconnected(state))
        if isinstance(effect, Operation | Pipelined):
            yield Step(StepKind.EXPIRY_ON_REQUEST, tree, self._with_dead_session(state))

    def _disconnected(self, state: ActorState) -> ActorState:
        """Return the process after its connection broke: the request under way fails."""
        disconnected = without_connection(state, resends=self.resends)
        disconnected = replace(disconnected, inbox=(*state.inbox, SessionEvent.SUSPENDED))
        effect = self.process.effect_of(state)
        if isinstance(effect, Operation | Pipelined):
            path = "" if type(effect) is Pipelined else effect.path  # type: ignore[union-attr]
            return self.process.resumed(disconnected, Failure(ConnectionLoss, path, sent=True))
        return self.process.advanced(disconnected)

    # --- faults ------------------------------------------------------------------------

    def _faults(self, tree: int, state: ActorState) -> Iterator[Step]:
        faults = self.faults
        yield from self._crash(tree, state)
        if FaultKind.ABANDON in faults and state.is_alive:
            yield Step(StepKind.ABANDON, tree, _abandoned(state), fault=FaultKind.ABANDON)
        if FaultKind.LEAVE in faults and LEAVE not in state.inbox:
            informed = replace(state, inbox=(*state.inbox, LEAVE), has_leave_command=True)
            yield Step(
                StepKind.LEAVE, tree, self.process.advanced(informed), fault=FaultKind.LEAVE
            )
        for kind, order in self.topic_changes.items():
            if order not in state.orders:
                yield self._topic_change(tree, state, kind, order)
        yield from self._expiry(tree, state)
        if state.link == "up" and state.is_alive:
            yield from self._disconnects(tree, state)

    def _crash(self, tree: int, state: ActorState) -> Iterator[Step]:
        if FaultKind.CRASH in self.faults:
            step = Step(StepKind.CRASH, tree, crashed(state), fault=FaultKind.CRASH)
            yield self._of_process(step, "crash")

    def _of_process(self, step: Step, what: Literal["crash", "restart"]) -> Step:
        """Return a step of this member as one of its process, if others run in that too."""
        if self.shared is None:
            return step
        change = ProcessChange(self.shared.name, what, self.shared.members, self.process.name)
        return step._replace(broadcast=(change,), about=change)

    def _expiry(self, tree: int, state: ActorState) -> Iterator[Step]:
        if FaultKind.EXPIRE in self.faults and state.is_alive:
            done = self.service.end(tree, state.session)
            late_requests = tuple(
                request for request in state.late_requests if request[0] != state.session
            )
            watches = frozenset() if state.link == "up" else state.watches
            dead = replace(state, is_alive=False, late_requests=late_requests, watches=watches)
            yield Step(
                StepKind.SESSION_EXPIRED, done.tree, dead, done.broadcast, fault=FaultKind.EXPIRE
            )

    def _topic_change(
        self, tree: int, state: ActorState, kind: FaultKind, order: Command
    ) -> Step:
        informed = replace(state, inbox=(*state.inbox, order), orders=(*state.orders, order))
        after = self.process.advanced(informed)
        return Step(StepKind.CHANGE_TOPIC, tree, after, fault=kind, about=order)

    def _disconnects(self, tree: int, state: ActorState) -> Iterator[Step]:
        """Yield the ways in which the connection may break, with or without a request."""
        effect = self.process.effect_of(state)
        drops = [kind for kind in DISCONNECTS if kind in self.faults]
        if not isinstance(effect, Operation | Pipelined):
            for fault in drops[:1]:
                yield Step(StepKind.DISCONNECT, tree, self._disconnected(state), fault=fault)
            return
        left = _remaining_of(state, effect)
        # A plain disconnect leaves open whether the request was executed: it has both outcomes.
        for fault in (*drops, *self.faults.intersection((FaultKind.LOST_REQUEST,))):
            yield Step(
                StepKind.LOST_REQUEST, tree, self._disconnected(state), fault=fault, about=left[0]
            )
        for fault in (*drops, *self.faults.intersection((FaultKind.LOST_REPLY,))):
            yield from self._loses_reply(tree, state, left[0], fault)
        writes = tuple(
            (state.session, operation) for operation in left if type(operation) in WRITES
        )
        if FaultKind.LATE_REQUEST in self.faults and writes:
            disconnected = self._disconnected(state)
            delayed = replace(disconnected, late_requests=(*disconnected.late_requests, *writes))
            yield Step(
                StepKind.DELAYED_REQUEST,
                tree,
                delayed,
                fault=FaultKind.LATE_REQUEST,
                about=left[0],
            )

    def _loses_reply(
        self, tree: int, state: ActorState, operation: Operation[Any], fault: FaultKind
    ) -> Iterator[Step]:
        """Yield the loss of a reply; of a read it would equal the loss of the request."""
        if type(operation) not in WRITES:
            return
        done = self.service.apply(tree, state.session, operation)
        if type(done.answer) is not Failure:
            disconnected = self._disconnected(notified(state, done.broadcast))
            yield _step_of(StepKind.LOST_REPLY, done, disconnected, operation)._replace(
                fault=fault
            )


def _abandoned(state: ActorState) -> ActorState:
    """Return the process whose program is over and whose client keeps the session alive.

    The client reads what ZooKeeper sends, and no program hears of it: no watch counts.
    """
    return ActorState(
        "abandoned",
        state.life,
        link="up",
        session=state.session,
        is_alive=True,
        orphans=state.orphans,
        late_requests=state.late_requests,
        orders=state.orders,
        raised_epochs=state.raised_epochs,
    )


def _with_fault(step: Step, fault: Step) -> Step:
    """Return a step that a fault ends; the answers before the fault count as folded reads."""
    first = ((step.about, step.answer),) if isinstance(step.about, Operation) else ()
    return fault._replace(
        does=step.does,
        then=fault.does,
        broadcast=(*step.broadcast, *fault.broadcast),
        followed_by=(*first, *step.followed_by),
        is_leftover=step.is_leftover,
    )


def _next_operation_of(state: ActorState, effect: Any) -> Operation[Any]:
    if type(effect) is Pipelined:
        operation: Operation[Any] = effect.operations[len(state.batch)]
        return operation
    return effect  # type: ignore[no-any-return]


def _remaining_of(state: ActorState, effect: Any) -> tuple[Operation[Any], ...]:
    return effect.operations[len(state.batch) :] if type(effect) is Pipelined else (effect,)


def _step_of(does: StepKind, done: Applied, state: ActorState, operation: Operation[Any]) -> Step:
    return Step(
        does,
        done.tree,
        state,
        done.broadcast,
        about=operation,
        answer=done.answer,
        deleted=done.deleted,
    )
