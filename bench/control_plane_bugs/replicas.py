"""Bugs of brokers that replicate and of their consumers, fixed before 0.8.2.2, as mutants."""

from __future__ import annotations

from typing import Any

from bench.control_plane_bugs import replays
from bench.control_plane_bugs.mutant import Mutant, swap

from watchkeeper.model.actor.effects import sleep
from watchkeeper.model.actor.errors import BadVersion, ConnectionLoss, NoNode, SessionExpired
from watchkeeper.model.actor.operations import SetData
from watchkeeper.model.clients.consumer.replicated_fetcher import ReplicatedFetcher
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import NO_LEADER
from watchkeeper.model.replication import leader as leader_module
from watchkeeper.model.replication.registry import RECONNECT_MS
from watchkeeper.model.replication.replica import Replica
from watchkeeper.model.replication.replica_log import NO_EPOCH
from watchkeeper.model.replication.replicas import Replicas

APPEND_WHILE_CUT_MS = 20


async def _until_answered(replica: Replica, state: Any, version: int) -> int | None:
    """Write a state at a version; None if it is refused."""
    path = paths.partition_state(replica.partition)
    while True:
        try:
            return await SetData(path, state.encode(), version, "write isr")
        except (BadVersion, NoNode):
            return None
        except (ConnectionLoss, SessionExpired):
            await sleep(RECONNECT_MS)


async def _unconditional(replica: Replica, state: Any) -> int | None:
    """Write a state whatever there is."""
    return await _until_answered(replica, state, -1)


async def _refused_is_refused(replica: Replica, state: Any) -> int | None:
    """Do not look whether an earlier attempt has taken effect."""
    return await _until_answered(replica, state, replica.version)


async def _no_checkpoint(self: Replicas) -> None:
    """Write no high watermark."""


async def _half_a_checkpoint(self: Replicas) -> None:
    """Write the high watermarks of leaders alone."""
    await self.files.write_checkpoint(
        {partition: one.high_watermark for partition, one in self.by_partition.items()}
        if all(self.leads(one) for one in self.by_partition.values())
        else {one.partition: one.high_watermark for one in self.led()}
    )


async def _zeros_at_first(self: Replicas) -> None:
    """Write 0 for what no controller has spoken of yet."""
    await self.files.write_checkpoint(
        {
            partition: 0 if one.leader_epoch == NO_EPOCH else one.high_watermark
            for partition, one in self.by_partition.items()
        }
    )


async def _forgets_stopped(self: Replicas, request: Any) -> Any:
    """Forget the high watermark of a replica that was only to be stopped."""
    outcome = await _STOP(self, request)
    for partition in request.partitions:
        known = self.by_partition.get(partition)
        if known is not None and not request.deletes:
            known.high_watermark = 0
    return outcome


_STOP = Replicas._stop


async def _no_replica_without_leader(self: Replicas, said: Any, addresses: Any) -> None:
    """Make no replica for a leader that cannot be reached: its high watermark is lost."""
    if said.state.leader not in addresses:
        known = self.by_partition.get(said.partition)
        if known is not None:
            known.high_watermark = 0
        return
    await _FOLLOW(self, said, addresses)


_FOLLOW = Replicas._follow


async def _ends_at_no_leader(self: Replicas, request: Any) -> Any:
    """Drop the rest of a request behind a partition without a leader."""
    states = []
    for said in request.states:
        if said.state.leader == NO_LEADER:
            break
        states.append(said)
    kept = type(request)(
        request.controller, request.controller_epoch, tuple(states), request.leaders
    )
    return await _LEAD_AND_FOLLOW(self, kept)


_LEAD_AND_FOLLOW = Replicas._lead_and_follow


def _takes_all_but_replicas(self: Replica, said: Any) -> None:
    """Keep the replicas of before: a replica that moved away may come back."""
    before = self.replicas
    _TAKE(self, said)
    self.replicas = tuple(dict.fromkeys((*before, *said.replicas)))


_TAKE = Replica.take


async def _needs_a_follower(self: Replicas, replica: Replica) -> None:
    """Raise the high watermark only when a follower fetches."""
    if set(replica.isr) != {self.me.broker_id}:
        await _RAISE(self, replica)


_RAISE = Replicas.raise_high_watermark


async def _cuts_before_it_follows(self: Replicas, said: Any, addresses: Any) -> None:
    """Cut the log of a leader that has to follow, and let it lead a moment longer."""
    replica = await self._replica(said.partition)
    await self.cut(replica, replica.high_watermark)
    await sleep(APPEND_WHILE_CUT_MS)
    self._cut_held = _no_cut  # type: ignore[method-assign]
    await _FOLLOW(self, said, addresses)
    del self._cut_held


async def _no_cut(replica: Replica, end: int) -> None:
    """Cut nothing: that was done."""


def _takes_any_epoch(self: Replicas, controller_epoch: int) -> bool:
    """Take the requests of a controller that was deposed."""
    return False


async def _finds_leaders_once(self: ReplicatedFetcher) -> None:
    """Give up where a partition has no leader now."""
    waiting = self._without_leader()
    for topic in sorted({position.partition.topic for position in waiting}):
        await self._leaders.refresh(topic)
    for position in waiting:
        position.address = self._leaders.address_of(position.partition)
    await self._run_fetchers()


BUGS: tuple[Mutant, ...] = (
    Mutant(
        "KAFKA-428",
        "a leader writes the ISR whatever version there is",
        "hardened",
        ("leader-stands-still", "drawn"),
        swap((leader_module, "_write", _unconditional)),
    ),
    Mutant(
        "KAFKA-758",
        "no high watermark is written",
        "kafka_08",
        ("rolling-restart", "rolling-restart-by-kill", "drawn"),
        swap((Replicas, "write_checkpoint", _no_checkpoint)),
    ),
    Mutant(
        "KAFKA-831",
        "the high watermarks of followers are not written",
        "kafka_08",
        ("rolling-restart", "rolling-restart-by-kill", "drawn"),
        swap((Replicas, "write_checkpoint", _half_a_checkpoint)),
    ),
    Mutant(
        "KAFKA-769",
        "the first checkpoint has no high watermarks",
        "kafka_08",
        (replays.CHECKPOINT_BEFORE_REQUESTS, "drawn"),
        swap((Replicas, "write_checkpoint", _zeros_at_first)),
    ),
    Mutant(
        "KAFKA-858",
        "a replica that is stopped loses its high watermark",
        "kafka_08",
        (replays.STOPPED_BEFORE_IT_LEAVES, "rolling-restart", "drawn"),
        swap((Replicas, "_stop", _forgets_stopped)),
    ),
    Mutant(
        "KAFKA-1647",
        "a replica whose leader cannot be reached loses its high watermark",
        "kafka_08",
        (replays.BACK_WITHOUT_LEADER, "cold-start", "rolling-restart-by-kill", "drawn"),
        swap((Replicas, "_follow", _no_replica_without_leader)),
    ),
    Mutant(
        "KAFKA-1382",
        "a leader does not recognise its own write of an ISR",
        "kafka_08",
        ("isr-reply-lost",),
        swap((leader_module, "_write", _refused_is_refused)),
    ),
    Mutant(
        "KAFKA-1152",
        "a partition without a leader ends a request",
        "kafka_08",
        (replays.CRASHES_IN_TURN, "drawn"),
        swap((Replicas, "_lead_and_follow", _ends_at_no_leader)),
    ),
    Mutant(
        "KAFKA-1097",
        "a leader does not learn that a replica has moved away",
        "kafka_08",
        (replays.DROPPED_REPLICA_IS_LATE, "partition-moves", "drawn"),
        swap((Replica, "take", _takes_all_but_replicas)),
    ),
    Mutant(
        "KAFKA-420",
        "a leader without followers commits nothing",
        "hardened",
        (replays.ALONE_IN_SYNC,),
        swap((Replicas, "raise_high_watermark", _needs_a_follower)),
    ),
    Mutant(
        "KAFKA-1154",
        "a leader that has to follow cuts its log first, and appends to it before it follows",
        "kafka_08",
        (replays.LEADERSHIP_MOVES, "leaders-balanced", "drawn"),
        swap((Replicas, "_follow", _cuts_before_it_follows)),
    ),
    Mutant(
        "KAFKA-532",
        "brokers take the requests of a deposed controller",
        "kafka_08",
        (replays.LATE_METADATA, "controller-paused", "drawn"),
        swap((Replicas, "_is_stale", _takes_any_epoch)),
    ),
    Mutant(
        "KAFKA-693",
        "a consumer gives up a partition that has no leader now",
        "hardened",
        (replays.LEADER_AWAY, "group-reads-replicas"),
        swap((ReplicatedFetcher, "_find_leaders", _finds_leaders_once)),
    ),
)
"""What was wrong with brokers and consumers."""
