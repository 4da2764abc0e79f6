"""Mistakes of Kafka's controller and brokers, put back one at a time.

`BUGS` are bugs that were fixed before 0.8.2.2: each replaces a function by one with the mistake.
`ANSWERS` are the answers of the two tables of variants in which `hardened` differs from 0.8.2.2:
each is taken back by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import fields, replace
from typing import Any, NamedTuple
from unittest.mock import patch

from watchkeeper.model.actor.effects import sleep
from watchkeeper.model.actor.errors import BadVersion, ConnectionLoss, NoNode, SessionExpired
from watchkeeper.model.actor.operations import SetData
from watchkeeper.model.controller import controller, failover, preferred, shutdown
from watchkeeper.model.controller import topic_settings as settings_module
from watchkeeper.model.controller.state_machines import context as context_module
from watchkeeper.model.controller.state_machines import replicas as replica_machine
from watchkeeper.model.controller.state_machines import selectors, variants, writes
from watchkeeper.model.controller.state_machines.states import ReplicaStatus
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import NO_LEADER
from watchkeeper.model.replication import leader as leader_module
from watchkeeper.model.replication import variants as replication_variants
from watchkeeper.model.replication.registry import RECONNECT_MS
from watchkeeper.model.replication.replica import Replica
from watchkeeper.model.replication.replicas import Replicas

Apply = Callable[[], AbstractContextManager[Any]]


class Mutant(NamedTuple):
    """A mistake, and the runs in which it has to be caught."""

    name: str
    says: str
    variant: str
    scenarios: tuple[str, ...]
    """Shipped scenarios, or drawn ones by `drawn`."""
    apply: Apply


# --- what the mistakes do --------------------------------------------------------------


async def _no_states(reign: Any) -> None:
    """Forget at a failover the states whose leader is dead."""
    await _READ_STATES(reign)
    for partition, known in list(reign.context.leadership.items()):
        if known.state.leader not in reign.context.live:
            left = reign.context.leadership.delete(partition)
            reign.context = replace(reign.context, leadership=left)


_READ_STATES = failover._read_states


async def _nothing(*arguments: Any, **more: Any) -> None:
    """Do nothing."""


async def _still_acting(state: Any, why: Any) -> Any:
    """Resign, and go on as the controller."""
    return replace(state, recorded=controller.NO_CONTROLLER)


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


def _no_checkpoint(self: Replicas) -> None:
    """Write no high watermark."""


def _half_a_checkpoint(self: Replicas) -> None:
    """Write the high watermarks of leaders alone."""
    self.store.write_checkpoint(
        {partition: one.high_watermark for partition, one in self.by_partition.items()}
        if all(self.leads(one) for one in self.by_partition.values())
        else {one.partition: one.high_watermark for one in self.led()}
    )


async def _forgets_stopped(self: Replicas, request: Any) -> Any:
    """Forget a replica that was only to be stopped."""
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
    return await _LEAD_AND_FOLLOW(self, _with_states(request, tuple(states)))


def _with_states(request: Any, states: tuple[Any, ...]) -> Any:
    return type(request)(request.controller, request.controller_epoch, states, request.leaders)


_LEAD_AND_FOLLOW = Replicas._lead_and_follow


async def _stops_what_it_leads(reign: Any, replica: Any) -> None:
    """Stop the replicas of a broker that leaves, also where it leads."""
    await replica_machine.move(reign, [replica], ReplicaStatus.OFFLINE)


def _without_leaving(self: Any) -> Any:
    """Tell brokers no address of a broker that is about to leave."""
    return tuple(one for one in _ADDRESSES(self) if one.broker not in self.shutting_down)


_ADDRESSES = context_module.Context.addresses


def _takes_all_but_replicas(self: Replica, said: Any) -> None:
    """Keep the replicas of before: a replica that moved away may come back."""
    before = self.replicas
    _TAKE(self, said)
    self.replicas = tuple(dict.fromkeys((*before, *said.replicas)))


_TAKE = Replica.take


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


async def _ended_by_deleted_topic(requests: Any, number: int) -> None:
    """Fail at the notification of a topic without settings."""
    path = paths.config_change(number)
    seen = await settings_module.read_or_none(
        requests, settings_module.GetData(path, False, "read settings")
    )
    topic = settings_module.ConfigChange.decode(path, seen.data).topic
    at = paths.topic_config(topic)
    if (
        await settings_module.read_or_none(
            requests, settings_module.GetData(at, False, "read settings")
        )
        is None
    ):
        raise paths.BadPayload(at, None, "settings")
    await _APPLY_SETTINGS(requests, number)


_APPLY_SETTINGS = settings_module._apply


def _never_elects(self: Any) -> Any:
    """Stand for no election in a new session."""
    return replace(self, due=())


async def _deaf_in_second_reign(reign: Any, *more: Any) -> None:
    """Do nothing about changes in a reign that is not the first of any broker."""
    if reign.context.epoch == 1:
        await _BROKERS_CHANGED(reign)


_BROKERS_CHANGED = controller.brokers_changed


def _swap(*swaps: tuple[Any, str, Any]) -> Apply:
    """Return what replaces these attributes."""

    @contextmanager
    def applied() -> Iterator[None]:
        with ExitStack() as stack:
            for where, name, mistake in swaps:
                stack.enter_context(patch.object(where, name, mistake))
            yield

    return applied


BUGS: tuple[Mutant, ...] = (
    Mutant(
        "KAFKA-464",
        "a broker stands for no election after its session has expired",
        "kafka_08",
        ("two-controllers-expire", "drawn"),
        _swap((controller.ControllerState, "after_expiry", _never_elects)),
    ),
    Mutant(
        "KAFKA-849",
        "a failover forgets the states whose leader is dead",
        "kafka_08",
        ("leader-and-successor-crash", "controller-crash", "drawn"),
        _swap((failover, "_read_states", _no_states)),
    ),
    Mutant(
        "KAFKA-828",
        "a preferred election stays when it is done",
        "hardened",
        ("preferred-leader-dead", "leaders-balanced", "drawn"),
        _swap((preferred, "_delete_request", _nothing)),
    ),
    Mutant(
        "KAFKA-928",
        "the listeners of a second reign do nothing",
        "hardened",
        ("controller-crash", "leader-failover", "drawn"),
        _swap((controller, "brokers_changed", _deaf_in_second_reign)),
    ),
    Mutant(
        "KAFKA-1578",
        "a controller that has resigned acts on",
        "kafka_08",
        ("two-controllers-expire", "controller-paused", "drawn"),
        _swap((controller, "resigned", _still_acting)),
    ),
    Mutant(
        "KAFKA-1681",
        "a failover does not go on with deletions",
        "hardened",
        ("topic-deleted-controller-crashes", "drawn"),
        _swap((failover, "resume_deletions", _nothing)),
    ),
    Mutant(
        "KAFKA-428",
        "a leader writes the ISR whatever version there is",
        "hardened",
        ("leader-stands-still", "drawn"),
        _swap((leader_module, "_write", _unconditional)),
    ),
    Mutant(
        "KAFKA-708",
        "the last member leaves the ISR",
        "kafka_08",
        ("last-in-sync-crashes", "drawn"),
        _swap((replica_machine, "without_replica", _empty_isr)),
    ),
    Mutant(
        "KAFKA-758",
        "no high watermark is written",
        "kafka_08",
        ("rolling-restart", "rolling-restart-by-kill", "drawn"),
        _swap((Replicas, "write_checkpoint", _no_checkpoint)),
    ),
    Mutant(
        "KAFKA-831",
        "the high watermarks of followers are not written",
        "kafka_08",
        ("rolling-restart", "rolling-restart-by-kill", "drawn"),
        _swap((Replicas, "write_checkpoint", _half_a_checkpoint)),
    ),
    Mutant(
        "KAFKA-858",
        "a replica that is stopped loses its high watermark",
        "kafka_08",
        ("rolling-restart", "drawn"),
        _swap((Replicas, "_stop", _forgets_stopped)),
    ),
    Mutant(
        "KAFKA-1647",
        "a replica whose leader cannot be reached loses its high watermark",
        "kafka_08",
        ("cold-start", "rolling-restart-by-kill", "drawn"),
        _swap((Replicas, "_follow", _no_replica_without_leader)),
    ),
    Mutant(
        "KAFKA-1382",
        "a leader does not recognise its own write of an ISR",
        "kafka_08",
        ("isr-reply-lost",),
        _swap((leader_module, "_write", _refused_is_refused)),
    ),
    Mutant(
        "KAFKA-1152",
        "a partition without a leader ends a request",
        "kafka_08",
        ("drawn",),
        _swap((Replicas, "_lead_and_follow", _ends_at_no_leader)),
    ),
    Mutant(
        "KAFKA-705",
        "what a leaving broker leads is stopped, and not handed over",
        "hardened",
        ("rolling-restart", "drawn"),
        _swap((shutdown, "_hand_over", _stops_what_it_leads)),
    ),
    Mutant(
        "KAFKA-999",
        "followers do not learn the address of a leader that is about to leave",
        "kafka_08",
        ("rolling-restart", "drawn"),
        _swap((context_module.Context, "addresses", _without_leaving)),
    ),
    Mutant(
        "KAFKA-1097",
        "a leader does not learn that a replica has moved away",
        "hardened",
        ("partition-moves", "drawn"),
        _swap((Replica, "take", _takes_all_but_replicas)),
    ),
    Mutant(
        "KAFKA-1558",
        "a controller keeps the partitions of a deleted topic",
        "hardened",
        ("topic-deleted-by-hand", "topic-deleted", "drawn"),
        _swap((context_module.Context, "without_partitions", _forgets_nothing)),
    ),
    Mutant(
        "KAFKA-1398",
        "the notification of a deleted topic ends the batch",
        "kafka_08",
        ("settings-changed-twice", "drawn"),
        _swap((settings_module, "_apply", _ended_by_deleted_topic)),
    ),
    Mutant(
        "KAFKA-1028",
        "a replica outside of the ISR leads although that is not allowed",
        "hardened",
        ("last-in-sync-crashes", "drawn"),
        _swap((selectors, "when_offline", _head_of_isr)),
    ),
)


def answers() -> Iterator[Mutant]:
    """Yield a mutant for each answer of `hardened` that 0.8.2.2 does not give."""
    tables = (
        (variants.CONTROLLERS, variants.KAFKA_08, variants.HARDENED),
        (
            replication_variants.REPLICATIONS,
            replication_variants.KAFKA_08,
            replication_variants.HARDENED,
        ),
    )
    for table, shipped, hardened in tables:
        for field in fields(hardened):
            old, new = getattr(shipped, field.name), getattr(hardened, field.name)
            if field.name == "name" or old == new:
                continue
            weaker = replace(hardened, **{field.name: old})
            says = f"{field.name.replace('_', ' ')}: {_in_words(old)}"
            yield Mutant(
                field.name, says, "hardened", ("every", "drawn"), _in_table(table, weaker)
            )


def _in_table(table: dict[str, Any], weaker: Any) -> Apply:
    return lambda: patch.dict(table, {"hardened": weaker})


def _in_words(answer: Any) -> str:
    return str(getattr(answer, "name", answer))
