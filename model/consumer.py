"""A consumer's life: register, watch, rebalance, commit, expire, rejoin, leave.

Theory of operation
  A turn does one thing, chosen from memory alone: get a session, register, leave
  watches, take a note, attempt a rebalance, or commit. A note only ever *marks* that
  something changed; what changed is read afterwards. The mark is cleared before the
  reading begins, so nothing that happens during a rebalance is lost.

  An error that reaches `turn` befell the connection or the session. It ends the turn,
  whatever the turn had in mind, and what memory said before still holds.
"""

from __future__ import annotations

from msgspec.structs import replace

from model import flaws, registry
from model.answers import LEAVE, Fired, Happening, Note, Order, Ordered, SessionNote
from model.asks import (
    Partition,
    close_session,
    connected,
    fetch_exactly,
    forget,
    fresh_id,
    known_positions,
    new_session,
    next_note,
    now_ms,
    sleep,
    tell,
)
from model.errors import ConnectionLoss, SessionExpired, TransactionFailed
from model.joining import leave_child_watch, look_at_topics, register, watch, watch_topic
from model.member import Attempt, Consumer, Memory, generated_id
from model.offsets import acknowledge, commit_blindly, commit_fenced, to_commit
from model.operations import ZooKeeper
from model.program import Ended, Program
from model.rebalance import make
from model.requests import Direct, Requests, UntilConnected
from model.views import topics_of


def consumer(me: Consumer) -> Program:
    """The program of one consumer."""
    return Program(turn, me, Memory())


async def turn(zk: ZooKeeper, me: Consumer, memory: Memory) -> Memory | Ended:
    """Take one turn of a consumer's life."""
    requests = UntilConnected() if me.variant.requests != "fail" else Direct()
    try:
        after = await _turn(me, memory, requests)
    except ConnectionLoss:
        return await _after_connection_loss(me, memory)
    except SessionExpired:
        return await _after_expiry(me, memory)
    if requests.renewed and isinstance(after, Memory):
        owned = () if requests.claims_are_gone else after.owned
        return replace(after, is_registered=False, is_watching=False, is_dirty=True, owned=owned)
    return after


async def _turn(me: Consumer, memory: Memory, requests: Requests) -> Memory | Ended:
    if not memory.has_session:
        return await _begin(me, memory)
    if not memory.is_connected or memory.is_blocked:
        return await _take(me, memory, requests, await next_note())
    if memory.is_leaving:
        return await _leave(me, memory, requests)
    if not memory.is_registered:
        return await register(me, memory, requests)
    if not memory.is_watching:
        return await watch(me, memory, requests)
    has_work = memory.is_dirty or memory.freed
    note = await next_note(0 if has_work else _idle_ms(me))
    if note is not None:
        return await _take(me, memory, requests, note)
    if memory.is_dirty:
        return await _rebalance(me, memory, requests)
    if memory.freed:
        return await _claim_freed(me, memory, requests)
    return await _commit(me, memory, requests)


def _idle_ms(me: Consumer) -> int | None:
    return me.settings.auto_commit_interval_ms if me.settings.auto_commit else None


async def _begin(me: Consumer, memory: Memory) -> Memory:
    """Get a session, and a name if there is none yet."""
    await new_session()
    if memory.consumer_id:
        return replace(memory, has_session=True)
    drawn = "" if me.configured_id else await fresh_id()
    name = generated_id(me, await now_ms(), drawn)
    return replace(memory, has_session=True, consumer_id=name)


# --- notes -----------------------------------------------------------------------------


async def _take(me: Consumer, memory: Memory, requests: Requests, note: Note | None) -> Memory:
    """Take one note."""
    if note is None or note is SessionNote.SUSPENDED:
        return await _suspended(me, memory) if note is not None else memory
    if note is SessionNote.CONNECTED:
        return await _connected_again(me, memory, requests)
    if note is SessionNote.EXPIRED:
        return await _after_expiry(me, memory)
    if note == LEAVE:
        return replace(memory, is_leaving=True, is_blocked=False)
    if isinstance(note, Ordered) and note.order is Order.COMMIT:
        after = await _commit(me, memory, requests)
        await acknowledge(note.number, is_done=after is memory)
        return after
    assert isinstance(note, Fired), "consumers are given no other orders"
    return await _fired(me, memory, requests, note)


async def _suspended(me: Consumer, memory: Memory) -> Memory:
    if me.variant.when_suspended == "go on":
        return memory
    await fetch_exactly(())
    return replace(memory, is_connected=False)


async def _connected_again(me: Consumer, memory: Memory, requests: Requests) -> Memory:
    """The connection is back. Whoever keeps no watches over a break must look at everything."""
    if me.variant.client_resends_watches:
        return memory
    if me.variant.flaw == "goes on after a break as before" and not memory.is_dirty:
        return await flaws.resumed(me, memory, requests)
    return replace(memory, is_connected=True, is_blocked=False, is_dirty=True)


async def _fired(me: Consumer, memory: Memory, requests: Requests, note: Fired) -> Memory:
    """A watch fired: leave it again if it is one that stays, and mark the change."""
    if me.variant.watches == "all that was read":
        claim = registry.parse_owner(note.path)
        if claim is not None:
            return _claim_changed(memory, note, claim[1])
        if note.path != registry.TOPICS or memory.topics is None:
            return replace(memory, is_dirty=True, is_blocked=False)
    marked = replace(memory, is_dirty=True)
    if note.path == registry.TOPICS:
        return await _topics_changed(me, memory, requests)
    if note.path == registry.members(me.group):
        await leave_child_watch(requests, note.path, "watch members")
    elif note.path == registry.BROKER_IDS:
        await leave_child_watch(requests, note.path, "watch brokers")
    elif note.path.startswith(registry.TOPICS):
        await watch_topic(me, requests, note.path.rpartition("/")[2])
    return marked


def _claim_changed(memory: Memory, note: Fired, partition: Partition) -> Memory:
    """A claim that I watched has come or gone; only one that has gone is of use to me.

    One that was only renamed, for another stream of its owner, stands in my way as before;
    but the watch is used up, and nothing would tell me when it goes.
    """
    if note.what is Happening.CREATED or partition in memory.owned:
        return memory
    if partition not in (planned for planned, _, _ in memory.plan):
        return memory
    if note.what is Happening.CHANGED:
        return replace(memory, is_dirty=True)
    return replace(memory, freed=(*memory.freed, partition))


async def _topics_changed(me: Consumer, memory: Memory, requests: Requests) -> Memory:
    """Step 4: a change of the topics matters only if the filter now allows others."""
    topics = await look_at_topics(me, requests, watch=True)
    if topics == memory.topics:
        return memory
    if me.variant.watches == "members and topics":
        for topic in topics:
            if topic not in (memory.topics or ()):
                await watch_topic(me, requests, topic)
    return replace(memory, topics=topics, is_dirty=True)


# --- the rebalance and its outcome -----------------------------------------------------


async def _rebalance(me: Consumer, memory: Memory, requests: Requests) -> Memory:
    """Attempt a rebalance, and decide what comes after a failure."""
    await tell("rebalance begins", attempt=memory.attempt + 1)
    done = await _attempt(me, replace(memory, is_dirty=False, freed=()), requests)
    if done.succeeded:
        watching = done.memory.is_watching and not _must_watch_brokers(memory, done.memory)
        await tell("rebalance ends", attempt=memory.attempt + 1, owns=len(done.memory.owned))
        after = replace(done.memory, attempt=0, is_watching=watching)
        if me.variant.flaw == "notes that come during a rebalance are dropped":
            return await _without_notes(me, after, requests)
        return after
    await tell("rebalance fails", attempt=memory.attempt + 1, why=done.stopped)
    if me.variant.flaw == "a failed attempt leaves no memory":
        done.memory = memory
    return await _after_failure(me, done, requests)


async def _without_notes(me: Consumer, memory: Memory, requests: Requests) -> Memory:
    """Drop what watches have told meanwhile; only a flawed variant does."""
    while isinstance(note := await next_note(0), Fired):
        pass
    return await _take(me, memory, requests, note)


def _must_watch_brokers(before: Memory, after: Memory) -> bool:
    return after.sees_no_brokers and not before.sees_no_brokers


async def _attempt(me: Consumer, memory: Memory, requests: Requests) -> Attempt:
    """Attempt all topics at once, or, as the pages have it, one after the other."""
    if not me.variant.topic_by_topic:
        attempt = Attempt(me, memory, requests)
        await make(attempt, me.variant.steps)
        return attempt
    attempt = Attempt(me, memory, requests, succeeded=True)
    for topic in topics_of(me, me.subscription, memory.topics or ()):
        attempt = Attempt(me, attempt.memory, requests, only_topic=topic)
        await make(attempt, me.variant.steps)
        if not attempt.succeeded:
            break
    return attempt


async def _claim_freed(me: Consumer, memory: Memory, requests: Requests) -> Memory:
    """Claim what was in the way of the last rebalance; if that fails, look again."""
    attempt = Attempt(me, memory, requests)
    attempt.wanted = tuple((partition, stream) for partition, stream, _ in memory.plan)
    attempt.addresses = {
        registry.broker_of(partition): address
        for partition, _, address in memory.plan
        if me.layout == "0.7"
    }
    attempt.held = memory.owned
    await make(attempt, me.variant.steps_when_freed)
    if attempt.succeeded:
        await tell("claimed what was freed", owns=len(attempt.memory.owned))
    return replace(attempt.memory, is_dirty=not attempt.succeeded)


async def _after_failure(me: Consumer, done: Attempt, requests: Requests) -> Memory:
    memory = done.memory
    if me.variant.after_failure == "wait for a watch":
        if me.variant.flaw == "gives up what is claimed":
            return flaws.given_up(me, memory)
        return replace(memory, is_dirty=not done.is_final)
    if me.variant.after_failure == "try again":
        return replace(memory, is_dirty=True)
    if done.is_final:
        await tell("rebalance given up", attempts=memory.attempt + 1)
        return replace(memory, attempt=0)
    await fetch_exactly(())
    if me.settings.auto_commit or me.variant.release == "0.7.2":
        offsets = to_commit(me, await known_positions(), memory.owned)
        await commit_blindly(me, requests, offsets)
    await sleep(me.settings.rebalance_backoff_ms)
    if memory.attempt + 1 >= me.settings.rebalance_retries:
        await tell("rebalance given up", attempts=memory.attempt + 1)
        return replace(memory, attempt=0)
    return replace(memory, attempt=memory.attempt + 1, is_dirty=True)


async def _commit(me: Consumer, memory: Memory, requests: Requests) -> Memory:
    """Commit by the timer."""
    offsets = to_commit(me, await known_positions(), memory.owned)
    if not me.variant.fenced:
        await commit_blindly(me, requests, offsets)
        return memory
    if memory.guard is None:
        return replace(memory, is_dirty=True)
    try:
        await commit_fenced(me, memory, requests, offsets)
    except TransactionFailed:
        return replace(memory, guard=None, is_dirty=True)
    return memory


# --- losing the connection, the session, the wish to go on -----------------------------


async def _after_connection_loss(me: Consumer, memory: Memory) -> Memory:
    """The connection broke under a request, which may still take effect."""
    if me.variant.when_suspended == "stop fetching":
        await fetch_exactly(())
        kept = memory.guard if me.variant.flaw == "the fence is not raised" else None
        return replace(memory, is_connected=False, guard=kept, is_dirty=True, plan=())
    try:
        await connected()
    except SessionExpired:
        return await _after_expiry(me, memory)
    return replace(memory, is_watching=False, is_dirty=True)


async def _after_expiry(me: Consumer, memory: Memory) -> Memory:
    """The session is dead and every ephemeral of it is gone: begin again under the same name.

    Whoever stops fetching first leaves no gap in which another owner reads beside it, but
    for the time until it has learnt of the expiry. The shipped consumers do not stop.
    """
    if me.variant.when_suspended == "stop fetching":
        await fetch_exactly(())
        await forget(None)
    await new_session()
    outlives = me.variant.flaw == "claims outlive their session"
    return Memory(
        consumer_id=memory.consumer_id,
        has_session=True,
        owned=memory.owned if outlives else (),
        is_leaving=memory.is_leaving,
        sees_no_brokers=memory.sees_no_brokers,
        topics=memory.topics,
    )


async def _leave(me: Consumer, memory: Memory, requests: Requests) -> Ended:
    """Leave: stop, commit, and end the session, which takes the id and the claims along."""
    await fetch_exactly(())
    offsets = to_commit(me, await known_positions(), memory.owned)
    if me.settings.auto_commit and "commit" in me.variant.steps:
        if not me.variant.fenced:
            await commit_blindly(me, requests, offsets)
        elif memory.guard is not None:
            await _commit_once(me, memory, requests, offsets)
    await close_session()
    return Ended("left")


async def _commit_once(
    me: Consumer,
    memory: Memory,
    requests: Requests,
    offsets: list[tuple[Partition, int]],
) -> None:
    try:
        await commit_fenced(me, memory, requests, offsets)
    except TransactionFailed as failed:
        await tell("commit refused", why=str(failed))
