"""The life of a consumer: register, watch, rebalance, commit, expire, rejoin, leave.

Theory of operation
  A turn does one thing, chosen from the state alone: get a session, register, set watches,
  take an event, attempt a rebalance, or commit. An event only *marks* that something
  changed (`is_dirty`); a rebalance then reads what changed. The mark is cleared before the
  first read, so a change during the rebalance marks the state again and is not lost.

  An error that reaches `turn` is a lost connection or session. It ends the turn, whatever
  the turn was about to do, and the state from before the turn still holds.

`GroupMember` has a method for each of these things. A member that behaves differently in
one of them is a subclass; `consumer` makes the program of the shipped one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from immutables import Map
from msgspec.structs import replace

from watchkeeper.model.actor.effects import (
    Partition,
    close_session,
    connected,
    emit,
    fetch_exactly,
    forget,
    fresh_id,
    known_positions,
    new_session,
    next_event,
    now_ms,
    sleep,
)
from watchkeeper.model.actor.errors import (
    ConnectionLoss,
    SessionExpired,
    TransactionFailed,
    ZooKeeperError,
)
from watchkeeper.model.actor.events import (
    Command,
    CommandKind,
    Fired,
    Notification,
    SessionEvent,
    WatchEventType,
)
from watchkeeper.model.actor.operations import ZooKeeper
from watchkeeper.model.actor.orders import execute
from watchkeeper.model.actor.program import Ended, Program
from watchkeeper.model.actor.retry import Direct, Requests, UntilConnected
from watchkeeper.model.group.coordinator_client import CoordinatorUnavailable
from watchkeeper.model.group.offset_stores import (
    commit_at_last,
    commit_offsets,
    commit_once,
    pause,
)
from watchkeeper.model.group.offsets import to_commit
from watchkeeper.model.group.reads import topics_of
from watchkeeper.model.group.rebalance import STEPS, StepFunction, take_steps
from watchkeeper.model.group.registration import (
    read_topics,
    register,
    set_child_watch,
    watch,
    watch_topic,
)
from watchkeeper.model.group.state import Attempt, Consumer, ConsumerState, generated_id
from watchkeeper.model.group.variants import (
    AfterFailure,
    RequestPolicy,
    Step,
    WatchedPaths,
    WhenSuspended,
)
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind

Outcome = ConsumerState | Ended
"""What a turn comes to."""


class GroupMember:
    """What a consumer does in a turn. It keeps no state of its own: all is in the arguments."""

    attempt_class: type[Attempt] = Attempt
    steps: Mapping[Step, StepFunction] = STEPS

    def requests_of(self, me: Consumer) -> Requests:
        """Return the way in which requests of one turn are made."""
        if me.variant.requests is RequestPolicy.FAIL:
            return Direct()
        return UntilConnected()

    async def turn(self, zk: ZooKeeper, me: Consumer, state: ConsumerState) -> Outcome:
        """Take one turn of a consumer's life."""
        requests = self.requests_of(me)
        try:
            after = await self._turn(me, state, requests)
        except ConnectionLoss:
            return await self.after_connection_loss(me, state)
        except SessionExpired:
            return await self.after_expiry(me, state)
        if requests.renewed and isinstance(after, ConsumerState):
            # A retried request went on in a new session, without watches and registration.
            owned = () if requests.claims_are_gone else after.owned
            return replace(
                after,
                is_registered=False,
                is_watching=False,
                is_dirty=True,
                owned=owned,
                known=Map(),
            )
        return after

    async def _turn(self, me: Consumer, state: ConsumerState, requests: Requests) -> Outcome:
        if not state.has_session:
            return await self._begin(me, state)
        if not state.is_connected or state.is_blocked:
            return await self.take(me, state, requests, await next_event())
        if state.is_leaving:
            return await self._leave(me, state, requests)
        if not state.is_registered:
            return await register(me, state, requests)
        if not state.is_watching:
            return await watch(me, state, requests)
        has_work = state.is_dirty or state.freed
        notification = await next_event(0 if has_work else _idle_ms(me))
        if notification is not None:
            return await self.take(me, state, requests, notification)
        if state.is_dirty:
            return await self.rebalance(me, state, requests)
        if state.freed:
            return await self._claim_freed(me, state, requests)
        after, _ = await _commit(me, state, requests)
        return after

    async def _begin(self, me: Consumer, state: ConsumerState) -> ConsumerState:
        """Get the first session, and an id."""
        await new_session()
        drawn = "" if me.configured_id else await fresh_id()
        name = generated_id(me, await now_ms(), drawn)
        return replace(state, has_session=True, consumer_id=name)

    # --- events --------------------------------------------------------------------------

    async def take(
        self,
        me: Consumer,
        state: ConsumerState,
        requests: Requests,
        notification: Notification | None,
    ) -> ConsumerState:
        """Take one event of the inbox."""
        if notification is None or notification is SessionEvent.SUSPENDED:
            return await _suspended(me, state) if notification is not None else state
        if notification is SessionEvent.CONNECTED:
            return await self.reconnected(me, state, requests)
        if notification is SessionEvent.EXPIRED:
            return await self.after_expiry(me, state)
        if isinstance(notification, Command):
            work = ORDERS[notification.kind]
            return await execute(notification, work(me, state, requests))
        return await _fired(me, state, requests, notification)

    async def reconnected(
        self, me: Consumer, state: ConsumerState, requests: Requests
    ) -> ConsumerState:
        """Go on in the same session; without watches everything has to be read again."""
        if me.variant.client_resends_watches:
            return state
        return replace(state, is_connected=True, is_blocked=False, is_dirty=True, known=Map())

    # --- the rebalance and its outcome ---------------------------------------------------

    async def rebalance(
        self, me: Consumer, state: ConsumerState, requests: Requests
    ) -> ConsumerState:
        """Attempt a rebalance, and decide what follows."""
        await emit(EventKind.REBALANCE_STARTED, attempt=state.attempt + 1)
        # Cleared before the first read: a change from here on marks the state again.
        attempt = await self._attempt(me, replace(state, is_dirty=False, freed=()), requests)
        if attempt.succeeded:
            owned = len(attempt.state.owned)
            await emit(EventKind.REBALANCE_COMPLETED, attempt=state.attempt + 1, owns=owned)
            return await self.after_success(me, state, attempt, requests)
        await emit(EventKind.REBALANCE_FAILED, attempt=state.attempt + 1, why=attempt.stopped)
        return await self.after_failure(me, state, attempt, requests)

    async def _attempt(self, me: Consumer, state: ConsumerState, requests: Requests) -> Attempt:
        """Attempt all topics at once, or, as the pages have it, one after the other."""
        if not me.variant.topic_by_topic:
            attempt = self.attempt_class(me, state, requests)
            await take_steps(attempt, me.variant.steps, self.steps)
            return attempt
        attempt = self.attempt_class(me, state, requests, succeeded=True)
        for topic in topics_of(
            me.subscription,
            state.topics or (),
            hides_internal=me.settings.exclude_internal_topics,
        ):
            attempt = self.attempt_class(me, attempt.state, requests, only_topic=topic)
            await take_steps(attempt, me.variant.steps, self.steps)
            if not attempt.succeeded:
                break
        return attempt

    async def after_success(
        self, me: Consumer, before: ConsumerState, attempt: Attempt, requests: Requests
    ) -> ConsumerState:
        """Return the state after a rebalance that succeeded."""
        must_watch = attempt.state.sees_no_brokers and not before.sees_no_brokers
        is_watching = attempt.state.is_watching and not must_watch
        return replace(attempt.state, attempt=0, is_watching=is_watching)

    async def after_failure(
        self, me: Consumer, before: ConsumerState, attempt: Attempt, requests: Requests
    ) -> ConsumerState:
        """Wait for a watch, try again at once, or back off, as the variant says."""
        state = attempt.state
        if attempt.lacks_coordinator:
            # As shipped this is a loop without end within the attempt.
            await pause(me)
            return replace(state, is_dirty=True)
        if me.variant.after_failure is AfterFailure.WAIT_FOR_WATCH:
            return replace(state, is_dirty=not attempt.is_final)
        if me.variant.after_failure is AfterFailure.TRY_AGAIN:
            return replace(state, is_dirty=True)
        if attempt.is_final:
            await emit(EventKind.REBALANCE_ABANDONED, attempts=state.attempt + 1)
            return replace(state, attempt=0)
        await fetch_exactly(())
        if me.settings.auto_commit or me.variant.release == "0.7.2":
            offsets = to_commit(me, await known_positions(), state.owned)
            state = await commit_once(me, state, requests, offsets)
        await sleep(me.settings.rebalance_backoff_ms)
        if state.attempt + 1 >= me.settings.rebalance_retries:
            # As shipped: the member stays registered and waits for a watch.
            await emit(EventKind.REBALANCE_ABANDONED, attempts=state.attempt + 1)
            return replace(state, attempt=0)
        return replace(state, attempt=state.attempt + 1, is_dirty=True)

    async def _claim_freed(
        self, me: Consumer, state: ConsumerState, requests: Requests
    ) -> ConsumerState:
        """Claim the released partitions of the last assignment; rebalance if that fails."""
        attempt = self.attempt_class(me, state, requests)
        attempt.take_plan()
        attempt.claimed = state.owned
        await take_steps(attempt, me.variant.steps_when_freed, self.steps)
        if attempt.succeeded:
            await emit(EventKind.FREED_CLAIMS_ACQUIRED, owns=len(attempt.state.owned))
        return replace(attempt.state, is_dirty=not attempt.succeeded)

    # --- the end of a connection, of a session, of the member ----------------------------

    async def after_connection_loss(self, me: Consumer, state: ConsumerState) -> ConsumerState:
        """Return the state after a request whose connection broke.

        The request may still take effect, at any later time. So the fence version is
        forgotten: the next rebalance raises it, and a late write then fails its check.
        """
        if me.variant.when_suspended is WhenSuspended.STOP_FETCHING:
            await fetch_exactly(())
            return replace(state, is_connected=False, fence_version=None, is_dirty=True, plan=())
        try:
            await connected()
        except SessionExpired:
            return await self.after_expiry(me, state)
        return replace(state, is_watching=False, is_dirty=True)

    async def after_expiry(self, me: Consumer, state: ConsumerState) -> ConsumerState:
        """Begin again under the same id: the session and its ephemerals are gone.

        Stopping first limits the overlap with the next owner to the time before this member
        learns of the expiry. The shipped consumers do not stop.
        """
        if me.variant.when_suspended is WhenSuspended.STOP_FETCHING:
            await fetch_exactly(())
            await forget(None)
        await new_session()
        return ConsumerState(
            consumer_id=state.consumer_id,
            has_session=True,
            is_leaving=state.is_leaving,
            sees_no_brokers=state.sees_no_brokers,
            topics=state.topics,
        )

    async def _leave(self, me: Consumer, state: ConsumerState, requests: Requests) -> Ended:
        """Stop, commit, and close the session, which deletes the registration and the claims."""
        await fetch_exactly(())
        offsets = to_commit(me, await known_positions(), state.owned)
        if me.settings.auto_commit and Step.COMMIT in me.variant.steps:
            await _commit_once(me, state, requests, offsets)
        await close_session()
        return Ended("left")


SHIPPED = GroupMember()
turn = SHIPPED.turn


def consumer(me: Consumer, member: GroupMember = SHIPPED) -> Program:
    """Return the program of one consumer."""
    return Program(member.turn, me, ConsumerState())


def _idle_ms(me: Consumer) -> int | None:
    return me.settings.auto_commit_interval_ms if me.settings.auto_commit else None


# --- events ----------------------------------------------------------------------------


async def _suspended(me: Consumer, state: ConsumerState) -> ConsumerState:
    if me.variant.when_suspended is WhenSuspended.GO_ON:
        return state
    await fetch_exactly(())
    return replace(state, is_connected=False)


async def _fired(
    me: Consumer, state: ConsumerState, requests: Requests, notification: Fired
) -> ConsumerState:
    """Mark the change that a watch reports, and set the watch again if it is to stay."""
    if me.variant.watches is WatchedPaths.ALL_READ:
        claim = paths.parse_owner(notification.path)
        if claim is not None:
            return _claim_changed(state, notification, claim[1])
        if notification.path in state.known:
            state = replace(state, known=state.known.delete(notification.path))
        if paths.parse_member(notification.path) is not None and not state.is_blocked:
            # A fence, which changes nothing, or a member that goes: the watch on the list of
            # members reports that as well.
            return state
        if notification.path != paths.TOPICS or state.topics is None:
            # The next rebalance reads it, and sets its watch again.
            return replace(state, is_dirty=True, is_blocked=False)
    marked = replace(state, is_dirty=True)
    if notification.path == paths.TOPICS:
        return await _topics_changed(me, state, requests)
    if notification.path == paths.members(me.group):
        await set_child_watch(requests, notification.path, "watch members")
    elif notification.path == paths.BROKER_IDS:
        await set_child_watch(requests, notification.path, "watch brokers")
    elif notification.path.startswith(paths.TOPICS):
        await watch_topic(me, requests, notification.path.rpartition("/")[2])
    return marked


def _claim_changed(
    state: ConsumerState, notification: Fired, partition: Partition
) -> ConsumerState:
    """Mark a partition of the last assignment as freed once its claim is deleted.

    A claim that only changed, because its owner gave the partition to another of its
    streams, is still in the way. But its watch is used up, so the next deletion would go
    unnoticed: a rebalance sets it again.
    """
    if notification.what is WatchEventType.CREATED or partition in state.owned:
        return state
    if partition not in [planned for planned, _, _ in state.plan]:
        return state
    if notification.what is WatchEventType.CHANGED:
        return replace(state, is_dirty=True)
    return replace(state, freed=(*state.freed, partition))


async def _topics_changed(
    me: Consumer, state: ConsumerState, requests: Requests
) -> ConsumerState:
    """Step 4: a change of the topics matters only if the filter now allows others."""
    topics = await read_topics(me, requests, watch=True)
    if topics == state.topics:
        return state
    if me.variant.watches is WatchedPaths.MEMBERS_AND_TOPICS:
        for topic in topics:
            if topic not in (state.topics or ()):
                await watch_topic(me, requests, topic)
    return replace(state, topics=topics, is_dirty=True)


# --- orders ----------------------------------------------------------------------------


async def _ordered_to_leave(
    me: Consumer, state: ConsumerState, requests: Requests
) -> tuple[ConsumerState, bool]:
    return replace(state, is_leaving=True, is_blocked=False), True


async def _ordered_to_commit(
    me: Consumer, state: ConsumerState, requests: Requests
) -> tuple[ConsumerState, bool]:
    return await _commit(me, state, requests)


ORDERS: dict[
    CommandKind,
    Callable[[Consumer, ConsumerState, Requests], Awaitable[tuple[ConsumerState, bool]]],
] = {
    CommandKind.LEAVE: _ordered_to_leave,
    CommandKind.COMMIT: _ordered_to_commit,
}
"""What a consumer does for each order: the state after it, and whether it is done."""


# --- commits ---------------------------------------------------------------------------


async def _commit(
    me: Consumer, state: ConsumerState, requests: Requests
) -> tuple[ConsumerState, bool]:
    """Commit when the timer fires, or when a task of the process requests it.

    Returns the state, and whether all is committed.
    """
    offsets = to_commit(me, await known_positions(), state.owned)
    if me.variant.fenced and state.fence_version is None:
        # Without a fence nothing may be written; a rebalance raises it.
        return replace(state, is_dirty=True), False
    try:
        return await commit_offsets(me, state, requests, offsets), True
    except TransactionFailed:
        return replace(state, fence_version=None, is_dirty=True), False
    except CoordinatorUnavailable as refused:
        # The next commit has these offsets too.
        await emit(EventKind.COMMIT_REFUSED, why=str(refused))
        return replace(state, coordinator=""), False


async def _commit_once(
    me: Consumer,
    state: ConsumerState,
    requests: Requests,
    offsets: list[tuple[Partition, int]],
) -> None:
    """Commit before leaving; a refused commit is reported and not tried again.

    Otherwise a commit that ZooKeeper always refuses would keep the member from leaving.
    """
    try:
        if not me.variant.fenced or state.fence_version is not None:
            await commit_at_last(me, state, requests, offsets)
    except (ConnectionLoss, SessionExpired):
        raise
    except (ZooKeeperError, CoordinatorUnavailable) as refused:
        await emit(EventKind.COMMIT_REFUSED, why=str(refused))
