"""Bugs of Kafka's controller, fixed before 0.8.2.2, as mutants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from bench.control_plane_bugs import replays
from bench.control_plane_bugs.mutant import Mutant, nothing, swap

from watchkeeper.model.actor.effects import now_ms, sleep
from watchkeeper.model.actor.operations import GetData
from watchkeeper.model.controller import controller, failover, preferred, shutdown
from watchkeeper.model.controller import topic_settings as settings_module
from watchkeeper.model.controller.election import NO_CONTROLLER
from watchkeeper.model.controller.state_machines import channel as channel_module
from watchkeeper.model.controller.state_machines import context as context_module
from watchkeeper.model.controller.state_machines import replicas as replica_machine
from watchkeeper.model.controller.state_machines import selectors, writes
from watchkeeper.model.controller.state_machines.reign import Reign
from watchkeeper.model.controller.state_machines.states import ReplicaStatus
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import NO_LEADER, ControllerEpoch
from watchkeeper.model.replication.requests import Outcome

IDLE_MS = 600_000
"""`connections.max.idle.ms` of 0.8.2."""
FOR_EVER_MS = 3_600_000


async def _no_states(reign: Any) -> None:
    """Forget at a failover the states whose leader is dead."""
    await _READ_STATES(reign)
    for partition, known in list(reign.context.leadership.items()):
        if known.state.leader not in reign.context.live:
            left = reign.context.leadership.delete(partition)
            reign.context = replace(reign.context, leadership=left)


_READ_STATES = failover._read_states


async def _still_acting(state: Any, why: Any) -> Any:
    """Resign, and go on as the controller."""
    return replace(state, recorded=controller.NO_CONTROLLER)


def _empty_isr(
    partition: Any, broker: int, before: Any, epoch: int, last: Any, *, allows_unclean: bool
) -> Any:
    """Let the last member leave the ISR."""
    state = before.state
    if broker not in state.isr:
        return None
    isr = tuple(one for one in state.isr if one != broker)
    left = NO_LEADER if state.leader == broker else state.leader
    return writes._next(partition, before, left, isr, epoch)


async def _stops_what_it_leads(reign: Any, replica: Any) -> None:
    """Stop the replicas of a broker that leaves, also where it leads."""
    await replica_machine.move(reign, [replica], ReplicaStatus.OFFLINE)


def _without_leaving(self: Any) -> Any:
    """Tell brokers no address of a broker that is about to leave."""
    return tuple(one for one in _ADDRESSES(self) if one.broker not in self.shutting_down)


_ADDRESSES = context_module.Context.addresses


def _forgets_nothing(self: Any, gone: Any) -> Any:
    """Keep the partitions of a deleted topic."""
    return self


def _head_of_isr(
    replicas: Any, state: Any, live: Any, *, allows_unclean: bool
) -> selectors.Choice:
    """Elect a live replica of the assignment, in the ISR or not."""
    alive = [one for one in replicas if one in live]
    if not alive:
        raise selectors.NoLeader("no replica is alive")
    return selectors.Choice(
        alive[-1], tuple(one for one in state.isr if one in live) or (alive[-1],)
    )


async def _ended_by_deleted_topic(requests: Any, number: int) -> bool:
    """Fail at the notification of a topic without settings."""
    path = paths.config_change(number)
    seen = await settings_module.read_or_none(
        requests, settings_module.GetData(path, False, "read settings")
    )
    assert seen is not None, "a notification stays for longer than this reads it"
    topic = settings_module.ConfigChange.decode(path, seen.data).topic
    at = paths.topic_config(topic)
    if (
        await settings_module.read_or_none(
            requests, settings_module.GetData(at, False, "read settings")
        )
        is None
    ):
        raise paths.BadPayload(at, None, "settings")
    return await _APPLY_SETTINGS(requests, number)


_APPLY_SETTINGS = settings_module._apply


def _never_elects(self: Any) -> Any:
    """Stand for no election in a new session."""
    return replace(self, due=())


async def _deaf_in_second_reign(reign: Any, *more: Any) -> None:
    """Do nothing about changes in a reign that is not the first of any broker."""
    if reign.context.epoch == 1:
        await _BROKERS_CHANGED(reign)


_BROKERS_CHANGED = controller.brokers_changed


async def _elects_or_waits(me: Any, requests: Any, state: Any, due: Any) -> Any:
    """Take for its own leftover a `/controller` of the broker that was the last one."""
    after = await _ELECT(me, requests, state, due)
    if after.context is None and after.recorded == state.recorded != NO_CONTROLLER:
        _waiting.add(me.broker_id)
    return after


async def _waits_for_leftover(me: Any, requests: Any, state: Any, due: Any) -> Any:
    """Look at no change of `/controller` while it waits for its own leftover to go."""
    if me.broker_id in _waiting:
        return state
    return await _CONTROLLER_CHANGED(me, requests, state, due)


_ELECT, _CONTROLLER_CHANGED = controller._elect, controller._controller_changed
_waiting: set[int] = set()


@contextmanager
def _leftovers() -> Iterator[None]:
    """Let brokers wait for what they take for their own leftovers."""
    _waiting.clear()
    changed = {controller.Task.CONTROLLER_CHANGED: _waits_for_leftover}
    with (
        patch.object(controller, "_elect", _elects_or_waits),
        patch.dict(controller._TASKS, changed),
    ):
        yield


async def _acts_on(me: Any, requests: Any, state: Any, due: Any) -> Any:
    """Go on with the reign that was resigned, where another broker is elected."""
    after = await _ELECT(me, requests, state, due)
    return replace(after, context=after.context or state.context)


async def _waits_for_its_thread(state: Any, why: Any) -> Any:
    """Hold the lock, and wait for a thread that needs it."""
    while state.context is not None and why is not controller.ResignReason.LEAVES:
        await sleep(FOR_EVER_MS)
    return await _RESIGNED(state, why)


_RESIGNED = controller.resigned


async def _lost_after_idle(channel: Any, request: Any) -> Any:
    """Lose the first request over a connection that the broker has closed meanwhile."""
    now = await now_ms()
    last = _last_ms.get(channel, now)
    _last_ms[channel] = now
    return Outcome() if now - last > IDLE_MS else await _SEND(channel, request)


_SEND = channel_module._send
_last_ms: dict[Any, int] = {}


@contextmanager
def _idle_connections() -> Iterator[None]:
    """Let brokers close connections that are not used."""
    _last_ms.clear()
    with patch.object(channel_module, "_send", _lost_after_idle):
        yield


def _tells_the_leader(reign: Any, replica: Any) -> None:
    """Let the leader know of a smaller ISR, and no other replica."""
    known = reign.context.leadership[replica.partition]
    reign.batch.stop(replica.broker, replica.partition, deletes=False)
    reign.lead(replica.partition, [known.state.leader])


def _forgets_one(self: Any, gone: Any) -> Any:
    """Forget the first partition of a deleted topic, and keep the others."""
    return _WITHOUT(self, list(gone)[:1])


_WITHOUT = context_module.Context.without_partitions


async def _signs_with_the_latest(self: Reign, write: Any) -> bool:
    """Sign with whatever epoch there is by now."""
    seen = await self.requests(GetData(paths.CONTROLLER_EPOCH, False, "raise epoch"))
    epoch = ControllerEpoch.decode(paths.CONTROLLER_EPOCH, seen.data).epoch
    self.context = replace(self.context, epoch=epoch)
    state = replace(write.state, controller_epoch=epoch)
    return await _WRITE(self, replace(write, state=state))


_WRITE = Reign.write


BUGS: tuple[Mutant, ...] = (
    Mutant(
        "KAFKA-464",
        "a broker stands for no election after its session has expired",
        "kafka_08",
        ("two-controllers-expire", "drawn"),
        swap((controller.ControllerState, "after_expiry", _never_elects)),
    ),
    Mutant(
        "KAFKA-849",
        "a failover forgets the states whose leader is dead",
        "kafka_08",
        ("leader-and-successor-crash", "controller-crash", "drawn"),
        swap((failover, "_read_states", _no_states)),
    ),
    Mutant(
        "KAFKA-828",
        "a preferred election stays when it is done",
        "hardened",
        ("preferred-leader-dead", "leaders-balanced", "drawn"),
        swap((preferred, "_delete_request", nothing)),
    ),
    Mutant(
        "KAFKA-928",
        "the listeners of a second reign do nothing",
        "hardened",
        (replays.SECOND_REIGN, "controller-crash", "drawn"),
        swap((controller, "brokers_changed", _deaf_in_second_reign)),
    ),
    Mutant(
        "KAFKA-1578",
        "a controller that has resigned acts on",
        "kafka_08",
        (replays.FORMER_CONTROLLER, "two-controllers-expire", "drawn"),
        swap((controller, "resigned", _still_acting), (controller, "_elect", _acts_on)),
    ),
    Mutant(
        "KAFKA-1681",
        "a failover does not go on with deletions",
        "hardened",
        (replays.DELETION_AT_FAILOVER, "topic-deleted-controller-crashes", "drawn"),
        swap((failover, "resume_deletions", nothing)),
    ),
    Mutant(
        "KAFKA-708",
        "the last member leaves the ISR",
        "kafka_08",
        ("last-in-sync-crashes", "drawn"),
        swap((replica_machine, "without_replica", _empty_isr)),
    ),
    Mutant(
        "KAFKA-705",
        "what a leaving broker leads is stopped, and not handed over",
        "hardened",
        ("rolling-restart", "drawn"),
        swap((shutdown, "_hand_over", _stops_what_it_leads)),
    ),
    Mutant(
        "KAFKA-999",
        "followers do not learn the address of a leader that is about to leave",
        "kafka_08",
        (replays.BACK_WHILE_ITS_LEADER_LEAVES, "rolling-restart", "drawn"),
        swap((context_module.Context, "addresses", _without_leaving)),
    ),
    Mutant(
        "KAFKA-1558",
        "a controller keeps the partitions of a deleted topic",
        "hardened",
        ("topic-deleted-by-hand", "topic-deleted", "drawn"),
        swap((context_module.Context, "without_partitions", _forgets_nothing)),
    ),
    Mutant(
        "KAFKA-1398",
        "the notification of a deleted topic ends the batch",
        "kafka_08",
        (replays.TWO_NOTIFICATIONS, "settings-changed-twice", "drawn"),
        swap((settings_module, "_apply", _ended_by_deleted_topic)),
    ),
    Mutant(
        "KAFKA-1028",
        "a replica outside of the ISR leads although that is not allowed",
        "hardened",
        ("last-in-sync-crashes", "drawn"),
        swap((selectors, "when_offline", _head_of_isr)),
    ),
    Mutant(
        "KAFKA-840",
        "a preferred election that waits at a failover is not carried out",
        "hardened",
        (replays.PREFERRED_AT_FAILOVER, "drawn"),
        swap((failover, "preferred_at_failover", nothing)),
    ),
    Mutant(
        "KAFKA-1029",
        "a broker waits for a controller that it takes for its own leftover",
        "kafka_08",
        (replays.SAME_CONTROLLER_TWICE, "drawn"),
        _leftovers,
    ),
    Mutant(
        "KAFKA-1663",
        "a controller that resigns waits for ever for the thread that deletes topics",
        "kafka_08",
        (replays.CONTROLLER_EXPIRES, "two-controllers-expire", "drawn"),
        swap((controller, "resigned", _waits_for_its_thread)),
    ),
    Mutant(
        "KAFKA-1738",
        "the first request after ten minutes is lost",
        "kafka_08",
        (replays.IDLE_CHANNEL,),
        _idle_connections,
    ),
    Mutant(
        "KAFKA-1188",
        "only the leader learns of a smaller ISR",
        "hardened",
        (replays.FOLLOWER_CRASHES, "drawn"),
        swap((replica_machine, "_tell_stopped", _tells_the_leader)),
    ),
    Mutant(
        "KAFKA-1742",
        "a controller keeps partitions of a deleted topic but for the first one",
        "hardened",
        ("topic-deleted-by-hand", "topic-recreated", "drawn"),
        swap((context_module.Context, "without_partitions", _forgets_one)),
    ),
    Mutant(
        "KAFKA-1096",
        "a deposed controller signs with the epoch of its successor",
        "kafka_08",
        (replays.PAUSED_BEFORE_IT_SIGNS, "controller-paused", "drawn"),
        swap((Reign, "write", _signs_with_the_latest)),
    ),
)
"""What was wrong with controllers."""
