"""The controller in one broker: its tasks, one a turn.

Whatever happens becomes a task, and tasks wait in line. A task is done from beginning to end
before the next one, as by the one event thread of Kafka's client library. In `kafka_08` a
request is repeated until it is answered, in the next session if the first one ends; so a task
that a reign began ends in whatever session, and the session's end is a task after it. In
`hardened` an error ends the task, and the reign with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from watchkeeper.model.actor.effects import Partition, emit
from watchkeeper.model.actor.events import Command, CommandKind, Fired
from watchkeeper.model.actor.orders import REQUESTS
from watchkeeper.model.actor.retry import Direct, Requests, UntilConnected
from watchkeeper.model.actor.tasks import UNBOUNDED, Drain, put
from watchkeeper.model.controller.after_reign import late, remembered, wait_for_the_thread
from watchkeeper.model.controller.changed_isrs import isrs_changed
from watchkeeper.model.controller.deletion import deletions_requested, replicas_deleted
from watchkeeper.model.controller.election import NO_CONTROLLER, controller_in_registry, elect
from watchkeeper.model.controller.listeners import (
    assignment_changed,
    brokers_changed,
    topics_changed,
)
from watchkeeper.model.controller.preferred import (
    Balancing,
    balance_next,
    preferred_requested,
    rebalance_leaders,
)
from watchkeeper.model.controller.reassignment import reassignment_requested, state_changed
from watchkeeper.model.controller.shutdown import hand_over, leave_in_good_order
from watchkeeper.model.controller.state_machines.channel import (
    RebalanceDue,
    ReplicasStopped,
    Sender,
    close_channel,
)
from watchkeeper.model.controller.state_machines.context import Context
from watchkeeper.model.controller.state_machines.reign import (
    CallbackFailed,
    ControllerSettings,
    Deposed,
    Reign,
    note_error,
)
from watchkeeper.model.controller.state_machines.variants import (
    EpochRaised,
    LeaderBalance,
    QueuedCallbacks,
)
from watchkeeper.model.controller.tasks import Due, Task
from watchkeeper.model.group.variants import RequestPolicy
from watchkeeper.model.registry import paths
from watchkeeper.model.replication.requests import ControlledShutdown, ErrorCode, StillLed
from watchkeeper.model.trace.kinds import EventKind


class ResignReason(StrEnum):
    """Why a reign ends."""

    SESSION = "its session ended"
    CONNECTION = "its connection broke"
    DEPOSED = "another controller raised the epoch"
    DELETED = "/controller was deleted"
    LEAVES = "the broker leaves"


@dataclass(frozen=True, slots=True)
class ControllerState:
    """What the controller of a broker keeps from one turn to the next."""

    due: tuple[Due, ...] = (Due(Task.ELECT),)
    recorded: int = NO_CONTROLLER
    """The broker that `/controller` named when it was read last."""
    context: Context | None = None
    """The cluster, while this broker is the controller."""
    former: Context | None = None
    """What it remembers of its last reign, where it may act on it."""
    leftovers: frozenset[Sender] = frozenset()
    """The batches that an error has left full."""
    balancing: Balancing | None = None
    """What a thread has still to do that lets preferred replicas lead; None while none runs."""

    @property
    def must_elect(self) -> bool:
        """Whether its next task is an election."""
        return bool(self.due) and self.due[0].task in (Task.ELECT, Task.SESSION_ENDED)

    def with_due(self, *tasks: Due) -> ControllerState:
        """Return the state with more tasks, each of which waits only once."""
        return replace(self, due=tuple(dict.fromkeys((*self.due, *tasks))))

    def after(self, reign: Reign) -> ControllerState:
        """Return the state after a task of a reign, or of one that is over."""
        after = replace(self, leftovers=reign.leftovers)
        if reign.is_over:
            return replace(after, former=reign.context)
        return replace(after, context=reign.context)

    def after_event(self, fired: Fired) -> ControllerState:
        """Return the state after a watch fired."""
        task = _task_of(fired.path)
        return self if task is None else self.with_due(task)

    def after_command(self, command: Command) -> ControllerState:
        """Return the state after a command: requests may wait for the controller."""
        return self.with_due(Due(Task.SERVE)) if command.kind is CommandKind.SERVE else self

    def after_expiry(self) -> ControllerState:
        """Return the state at the start of a new session: its first task is to note that."""
        return replace(self, due=(Due(Task.SESSION_ENDED),))

    def after_reconnection(self) -> ControllerState:
        """Return the state with every watched znode to be read: its watch may be lost."""
        return self.with_due(*self._watched())

    def _watched(self) -> tuple[Due, ...]:
        if self.context is None:
            return (Due(Task.CONTROLLER_CHANGED),)
        return (
            Due(Task.CONTROLLER_CHANGED),
            Due(Task.BROKERS_CHANGED),
            Due(Task.TOPICS_CHANGED),
            *(Due(Task.ASSIGNMENT_CHANGED, topic) for topic in self.context.topics),
            *(self._watched_requests(self.context) if self.context.takes_requests else ()),
        )

    def _watched_requests(self, context: Context) -> Iterator[Due]:
        yield from (Due(Task.REASSIGNMENT), Due(Task.PREFERRED), Due(Task.DELETIONS))
        yield Due(Task.ISRS_CHANGED)
        for partition in sorted(context.moves):
            yield Due(Task.STATE_CHANGED, partition.topic, partition.name)


class Step(NamedTuple):
    """The outcome of a task."""

    state: ControllerState
    is_session_new: bool = False
    """Whether the session has ended meanwhile, and with it the broker's registration."""


def _task_of(path: str) -> Due | None:
    """Return the task that a watch on a path stands for; None for a watch of another program."""
    if path in _TASKS_BY_PATH:
        return Due(_TASKS_BY_PATH[path])
    partition = paths.parse_state(path)
    if partition is not None:
        return Due(Task.STATE_CHANGED, partition.topic, partition.name)
    topic = path.removeprefix(f"{paths.TOPICS}/")
    if topic != path and "/" not in topic:
        return Due(Task.ASSIGNMENT_CHANGED, topic)
    return None


_TASKS_BY_PATH = {
    paths.CONTROLLER: Task.CONTROLLER_CHANGED,
    paths.BROKER_IDS: Task.BROKERS_CHANGED,
    paths.TOPICS: Task.TOPICS_CHANGED,
    paths.REASSIGN_PARTITIONS: Task.REASSIGNMENT,
    paths.PREFERRED_REPLICA_ELECTION: Task.PREFERRED,
    paths.DELETE_TOPICS: Task.DELETIONS,
    paths.ISR_CHANGES: Task.ISRS_CHANGED,
}


async def take_step(me: ControllerSettings, state: ControllerState) -> Step:
    """Do the first task that is due."""
    first, *others = state.due
    retries = me.variant.requests is RequestPolicy.RETRY_UNTIL_CONNECTED
    requests: Requests = UntilConnected() if retries else Direct()
    waiting = replace(state, due=tuple(others))
    try:
        after = await _TASKS[first.task](me, requests, waiting, first)
    except Deposed:
        after = await resigned(waiting, ResignReason.DEPOSED)
        after = replace(after, due=(Due(Task.ELECT),))
    return Step(after.after_expiry(), True) if requests.renewed else Step(after)


async def resigned(state: ControllerState, why: ResignReason) -> ControllerState:
    """Return the state without a reign; the trace says why it ended."""
    if state.context is not None:
        for channel in state.context.channels():
            await close_channel(channel)
        await emit(EventKind.CONTROLLER_RESIGNED, epoch=state.context.epoch, why=why.value)
    return replace(state, context=None, recorded=NO_CONTROLLER)


async def after_loss(me: ControllerSettings, state: ControllerState) -> ControllerState:
    """Return the state after an error of the connection that ended a task.

    What the task has done is unknown. So the reign ends, and the broker begins another one, in
    which nothing of the old one can take effect any more.
    """
    if me.variant.requests is RequestPolicy.RETRY_UNTIL_CONNECTED or state.context is None:
        return state
    return replace(await resigned(state, ResignReason.CONNECTION), due=(Due(Task.ELECT),))


# --- tasks -----------------------------------------------------------------------------


_Work = Callable[[ControllerSettings, Requests, ControllerState, Due], Awaitable[ControllerState]]


async def _elect(
    me: ControllerSettings, requests: Requests, state: ControllerState, due: Due
) -> ControllerState:
    """Elect; where the winner has gone meanwhile, look at `/controller` once more.

    The watch has fired for it, and the election has read what the watch reported.
    """
    elected = await elect(me, requests, state.leftovers)
    after = replace(state, recorded=elected.broker, context=elected.context)
    if elected.context is not None:
        kept = tuple(one for one in state.due if not one.is_late)
        after = replace(after, due=kept, former=None)
    if elected.broker == NO_CONTROLLER:
        return after.with_due(Due(Task.CONTROLLER_CHANGED))
    return after


async def _session_ended(
    me: ControllerSettings, requests: Requests, state: ControllerState, due: Due
) -> ControllerState:
    """Resign, elect, and look at every watched znode once.

    As shipped these looks are callbacks of before the resignation, if it was the controller.
    """
    state = await _resigned_by_event(me, state, ResignReason.SESSION)
    elected = await _elect(me, requests, state, due)
    return elected.after_reconnection()


async def _resigned_by_event(
    me: ControllerSettings, state: ControllerState, why: ResignReason
) -> ControllerState:
    """Resign because of an event, with the lock; as shipped queued callbacks run afterwards."""
    context = state.context
    if context is None:
        return await resigned(state, why)
    await wait_for_the_thread(context.epoch, state.balancing)
    runs_late = me.sends and me.variant.queued_callbacks is QueuedCallbacks.RUN
    queued = state.after_reconnection().due if why is ResignReason.SESSION else state.due
    after = replace(await resigned(state, why), balancing=None)
    if not runs_late:
        return after
    return replace(after, former=remembered(context)).with_due(*late(queued))


async def _controller_changed(
    me: ControllerSettings, requests: Requests, state: ControllerState, due: Due
) -> ControllerState:
    """Note who is the controller; if it is gone, elect another one."""
    present = await controller_in_registry(requests)
    if present != NO_CONTROLLER and _is_settled(me, state, present):
        return replace(state, recorded=present)
    if state.recorded == me.broker_id:
        state = await _resigned_by_event(me, state, ResignReason.DELETED)
    return await _elect(me, requests, state, due)


def _is_settled(me: ControllerSettings, state: ControllerState, present: int) -> bool:
    """Whether this broker acts as the controller exactly if `/controller` names it.

    As shipped, a broker only notes whom it names. It may be named without acting: the reply to
    its election was lost, or the znode is one of an earlier session.
    """
    if me.variant.epoch_raised is EpochRaised.AFTER_ELECTION:
        return True
    return (state.context is not None) == (present == me.broker_id)


def _listening(listener: Callable[[Reign, Due], Awaitable[None]]) -> _Work:
    """Return the task that runs a listener, if this broker is the controller."""

    async def listen(
        me: ControllerSettings, requests: Requests, state: ControllerState, due: Due
    ) -> ControllerState:
        context = state.former if due.is_late and state.context is None else state.context
        if context is None:
            return state
        reign = Reign(
            me, requests, context, leftovers=state.leftovers, is_over=state.context is None
        )
        if reign.is_over:
            await emit(EventKind.CALLBACK_LATE, task=due.task.value, topic=due.topic)
        try:
            await listener(reign, due)
        except CallbackFailed as why:
            await note_error(str(why))
        return state.after(reign)

    return listen


async def _serve(
    me: ControllerSettings, requests: Requests, state: ControllerState, due: Due
) -> ControllerState:
    """Serve what other processes, and the tasks of this one, want of the controller."""
    for request, answer_to in await Drain(REQUESTS):
        answer: StillLed = StillLed(ErrorCode.UNKNOWN)
        if isinstance(request, RebalanceDue) and _balances_by_a_thread(me):
            state = state.with_due(Due(Task.BALANCE))
        elif state.context is not None:
            reign = Reign(me, requests, state.context, leftovers=state.leftovers)
            try:
                answer = await _answer(reign, request)
            except CallbackFailed as why:
                await note_error(str(why))
            state = state.after(reign)
        if answer_to:
            await put(answer_to, answer, UNBOUNDED)
    return state


async def _answer(reign: Reign, request: Any) -> StillLed:
    """Do what a request is about; only one to hand over has an answer."""
    if isinstance(request, ControlledShutdown):
        return await hand_over(reign, request.broker)
    if isinstance(request, ReplicasStopped):
        await replicas_deleted(
            reign, request.broker, request.partitions, succeeded=request.is_done
        )
    else:
        await rebalance_leaders(reign)
    return StillLed(ErrorCode.UNKNOWN)


def _balances_by_a_thread(me: ControllerSettings) -> bool:
    return me.variant.leader_balance is LeaderBalance.BY_A_THREAD


async def _balance(
    me: ControllerSettings, requests: Requests, state: ControllerState, due: Due
) -> ControllerState:
    """Let one preferred replica lead; the next one after the tasks that wait already."""
    if state.context is None:
        return replace(state, balancing=None)
    reign = Reign(me, requests, state.context, leftovers=state.leftovers)
    left = await balance_next(reign, state.balancing)
    after = replace(state.after(reign), balancing=left)
    return after if left is None else after.with_due(Due(Task.BALANCE))


async def leave(me: ControllerSettings, state: ControllerState) -> ControllerState:
    """Hand over what this broker leads, before it leaves."""
    if not me.sends or me.shutdown_backoff_ms is None:
        return state
    if state.context is None:
        await leave_in_good_order(me, None, me.shutdown_backoff_ms)
        return state
    reign = Reign(me, Direct(), state.context, leftovers=state.leftovers)
    try:
        await leave_in_good_order(me, reign, me.shutdown_backoff_ms)
    except Deposed:
        return await leave(me, await resigned(state, ResignReason.DEPOSED))
    return state.after(reign)


_TASKS: Mapping[Task, _Work] = {
    Task.ELECT: _elect,
    Task.SESSION_ENDED: _session_ended,
    Task.CONTROLLER_CHANGED: _controller_changed,
    Task.BROKERS_CHANGED: _listening(lambda reign, due: brokers_changed(reign)),
    Task.TOPICS_CHANGED: _listening(lambda reign, due: topics_changed(reign)),
    Task.ASSIGNMENT_CHANGED: _listening(lambda reign, due: assignment_changed(reign, due.topic)),
    Task.STATE_CHANGED: _listening(
        lambda reign, due: state_changed(reign, Partition(due.topic, due.partition))
    ),
    Task.REASSIGNMENT: _listening(lambda reign, due: reassignment_requested(reign)),
    Task.PREFERRED: _listening(lambda reign, due: preferred_requested(reign)),
    Task.DELETIONS: _listening(lambda reign, due: deletions_requested(reign)),
    Task.ISRS_CHANGED: _listening(lambda reign, due: isrs_changed(reign)),
    Task.SERVE: _serve,
    Task.BALANCE: _balance,
}
"""Task -> the function that does it."""
