"""The offsets of a consumer in the stores that its settings name: ZooKeeper, Kafka, or both.

    offsets.storage   dual.commit.enabled    commits to               begins at
    zookeeper         without effect         ZooKeeper                ZooKeeper's
    kafka             true                   Kafka, then ZooKeeper    the greater of both
    kafka             false                  Kafka                    Kafka's

Nothing fences a commit to Kafka: the coordinator of 0.8.2 takes it from any client. `hardened`
checks its registration in ZooKeeper before. A member that stands still between the two may
commit what another one owns by then.

Kafka 0.8.2.2 copies no offset to ZooKeeper that equals the last one that it wrote there or began
at (KAFKA-987). With dual commit it may have begun at Kafka's: then ZooKeeper's stays behind until
a message arrives. With ZooKeeper alone this saves writes and changes nothing else.

Kafka 0.8.2.2: ZookeeperConsumerConnector.commitOffsets and fetchOffsets.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from watchkeeper.model.actor.effects import Partition, emit, sleep
from watchkeeper.model.actor.operations import Check, Multi
from watchkeeper.model.actor.retry import Requests
from watchkeeper.model.group.coordinator_client import (
    CoordinatorClient,
    CoordinatorUnavailable,
    Offset,
)
from watchkeeper.model.group.offsets import (
    commit_blindly,
    commit_fenced,
    read_committed,
    unknown_start,
)
from watchkeeper.model.group.state import Attempt, Consumer, ConsumerState, id_path
from watchkeeper.model.offset_manager.migration import Store
from watchkeeper.model.trace.kinds import EventKind

PARTS_OF_SESSION = 10
"""`hardened` pauses no longer than this part of its session timeout: it hears nothing then."""


async def commit_offsets(
    me: Consumer, state: ConsumerState, requests: Requests, offsets: Sequence[Offset]
) -> ConsumerState:
    """Commit offsets to the stores of a consumer; return the state afterwards.

    Raises TransactionFailed with index 0 if a fenced write is refused, and
    CoordinatorUnavailable if the coordinator has not accepted all of them.
    """
    if me.settings.storage.storage is Store.ZOOKEEPER:
        await _write(me, state, requests, offsets)
        return state
    if me.variant.fenced and offsets:
        assert state.fence_version is not None, "a fenced commit needs the version to check"
        fence = Check(id_path(me, state), state.fence_version, "check fence")
        await requests(Multi((fence,), "check fence"))
    client = CoordinatorClient(me, requests, state.coordinator)
    accepted = await client.commit(offsets)
    state = replace(state, coordinator=client.address)
    if me.settings.dual_commit:
        state = await _copy(me, state, requests, accepted)
    if len(accepted) < len(offsets):
        refused = len(offsets) - len(accepted)
        raise CoordinatorUnavailable(f"{client.address} does not accept {refused} offsets")
    return state


async def _write(
    me: Consumer, state: ConsumerState, requests: Requests, offsets: Sequence[Offset]
) -> None:
    if me.variant.fenced:
        await commit_fenced(me, state, requests, offsets)
    else:
        await commit_blindly(me, requests, offsets)


async def _copy(
    me: Consumer, state: ConsumerState, requests: Requests, accepted: Sequence[Offset]
) -> ConsumerState:
    """Write to ZooKeeper what Kafka has accepted."""
    if not me.variant.is_shipped:
        await _write(me, state, requests, accepted)
        return state
    new = [(at, offset) for at, offset in accepted if state.checkpointed.get(at) != offset]
    await _write(me, state, requests, new)
    return replace(state, checkpointed=state.checkpointed.update(new))


async def commit_once(
    me: Consumer, state: ConsumerState, requests: Requests, offsets: Sequence[Offset]
) -> ConsumerState:
    """Commit as shipped before a release: a coordinator that does not serve is passed over."""
    try:
        return await commit_offsets(me, state, requests, offsets)
    except CoordinatorUnavailable as refused:
        await emit(EventKind.COMMIT_REFUSED, why=str(refused))
        return replace(state, coordinator="")


async def commit_at_last(
    me: Consumer, state: ConsumerState, requests: Requests, offsets: Sequence[Offset]
) -> None:
    """Commit before leaving, up to `offsets.commit.max.retries` times more than once."""
    for _ in range(me.settings.offsets_retries):
        try:
            await commit_offsets(me, state, requests, offsets)
        except CoordinatorUnavailable:
            state = replace(state, coordinator="")
            await pause(me)
        else:
            return
    await commit_offsets(me, state, requests, offsets)


async def pause(me: Consumer) -> None:
    """Pause before the coordinator is looked up again: `offsets.channel.backoff.ms`."""
    backoff_ms = me.settings.offsets_backoff_ms
    if me.variant.fenced:
        backoff_ms = min(backoff_ms, max(me.settings.session_timeout_ms // PARTS_OF_SESSION, 1))
    await sleep(backoff_ms)


async def read_offsets(attempt: Attempt, partitions: Sequence[Partition]) -> None:
    """Read the offset at which the group goes on in each of these partitions.

    EARLIEST or LATEST, by `auto.offset.reset`, where none is committed. Raises BadPayload if a
    znode holds no number, and CoordinatorUnavailable.
    """
    me, storage = attempt.me, attempt.me.settings.storage
    committed: dict[Store, dict[Partition, int]] = {}
    if Store.KAFKA in storage.commits_to:
        client = CoordinatorClient(me, attempt.requests, attempt.state.coordinator)
        committed[Store.KAFKA] = await client.committed(partitions)
        attempt.update(coordinator=client.address)
    if Store.ZOOKEEPER in storage.commits_to:
        committed[Store.ZOOKEEPER] = await read_committed(me, attempt.requests, partitions)
    for partition in partitions:
        found = {store: offsets.get(partition) for store, offsets in committed.items()}
        begin = storage.begins_at(found)
        attempt.offsets[partition] = unknown_start(me) if begin is None else begin
        if begin is not None and me.variant.is_shipped and storage.dual_commit:
            noted = attempt.state.checkpointed.set(partition, begin)
            attempt.update(checkpointed=noted)
