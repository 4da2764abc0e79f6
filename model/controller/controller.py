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
from typing import NamedTuple

from watchkeeper.model.actor.effects import Partition, emit
from watchkeeper.model.actor.events import Command, CommandKind, Fired
from watchkeeper.model.actor.orders import REQUESTS
from watchkeeper.model.actor.retry import Direct, Requests, UntilConnected
from watchkeeper.model.actor.tasks import UNBOUNDED, Drain, put
from watchkeeper.model.controller.changed_isrs import isrs_changed
from watchkeeper.model.controller.deletion import deletions_requested, replicas_deleted
from watchkeeper.model.controller.election import NO_CONTROLLER, controller_in_registry, elect
from watchkeeper.model.controller.listeners import (
    assignment_changed,
    brokers_changed,
    topics_changed,
)
from watchkeeper.model.controller.preferred import preferred_requested, rebalance_leaders
from watchkeeper.model.controller.reassignment import reassignment_requested, state_changed
from watchkeeper.model.controller.shutdown import hand_over, leave_in_good_order
from watchkeeper.model.controller.state_machines.channel import ReplicasStopped, close_channel
from watchkeeper.model.controller.state_machines.context import Context
from watchkeeper.model.controller.state_machines.reign import ControllerSettings, Deposed, Reign
from watchkeeper.model.controller.state_machines.variants import EpochRaised
from watchkeeper.model.group.variants import RequestPolicy
from watchkeeper.model.registry import paths
from watchkeeper.model.replication.requests import ControlledShutdown, ErrorCode, StillLed
from watchkeeper.model.trace.kinds import EventKind


class Task(StrEnum):
    """What a controller has to do."""

    ELECT = "elect"
    SESSION_ENDED = "session ended"
    CONTROLLER_CHANGED = "controller changed"
    BROKERS_CHANGED = "brokers changed"
    TOPICS_CHANGED = "topics changed"
    ASSIGNMENT_CHANGED = "assignment changed"
    STATE_CHANGED = "state changed"
    REASSIGNMENT = "reassignment requested"
    PREFERRED = "preferred election requested"
    DELETIONS = "deletions requested"
    ISRS_CHANGED = "ISRs changed"
    SERVE = "serve requests"


class Due(NamedTuple):
    """A task that waits."""

    task: Task
    topic: str = ""
    """For an assignment: of which topic."""
    partition: str = ""
    """For a state: of which partition of the topic."""


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

    @property
    def must_elect(self) -> bool:
        """Whether its next task is an election."""
        return bool(self.due) and self.due[0].task in (Task.ELECT, Task.SESSION_ENDED)

    def with_due(self, *tasks: Due) -> ControllerState:
        """Return the state with more tasks, each of which waits only once."""
        return replace(self, due=tuple(dict.fromkeys((*self.due, *tasks))))

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
    elected = await elect(me, requests)
    after = replace(state, recorded=elected.broker, context=elected.context)
    if elected.broker == NO_CONTROLLER:
        return after.with_due(Due(Task.CONTROLLER_CHANGED))
    return after


async def _session_ended(
    me: ControllerSettings, requests: Requests, state: ControllerState, due: Due
) -> ControllerState:
    """Resign, elect, and look at every watched znode once."""
    state = await resigned(state, ResignReason.SESSION)
    elected = await _elect(me, requests, state, due)
    return elected.after_reconnection()


async def _controller_changed(
    me: ControllerSettings, requests: Requests, state: ControllerState, due: Due
) -> ControllerState:
    """Note who is the controller; if it is gone, elect another one."""
    present = await controller_in_registry(requests)
    if present != NO_CONTROLLER and _is_settled(me, state, present):
        return replace(state, recorded=present)
    if state.recorded == me.broker_id:
        state = await resigned(state, ResignReason.DELETED)
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
        if state.context is None:
            return state
        reign = Reign(me, requests, state.context)
        await listener(reign, due)
        return replace(state, context=reign.context)

    return listen


async def _serve(
    me: ControllerSettings, requests: Requests, state: ControllerState, due: Due
) -> ControllerState:
    """Serve what other processes, and the tasks of this one, want of the controller."""
    for request, answer_to in await Drain(REQUESTS):
        answer: StillLed = StillLed(ErrorCode.UNKNOWN)
        if state.context is not None:
            reign = Reign(me, requests, state.context)
            if isinstance(request, ControlledShutdown):
                answer = await hand_over(reign, request.broker)
            elif isinstance(request, ReplicasStopped):
                await replicas_deleted(
                    reign, request.broker, request.partitions, succeeded=request.is_done
                )
            else:
                await rebalance_leaders(reign)
            state = replace(state, context=reign.context)
        if answer_to:
            await put(answer_to, answer, UNBOUNDED)
    return state


async def leave(me: ControllerSettings, state: ControllerState) -> ControllerState:
    """Hand over what this broker leads, before it leaves."""
    if not me.sends or not me.shuts_down_controlled:
        return state
    if state.context is None:
        await leave_in_good_order(me, None)
        return state
    reign = Reign(me, Direct(), state.context)
    try:
        await leave_in_good_order(me, reign)
    except Deposed:
        return await leave(me, await resigned(state, ResignReason.DEPOSED))
    return replace(state, context=reign.context)


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
}
"""Task -> the function that does it."""
