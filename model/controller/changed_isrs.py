"""How other brokers learn of an ISR that its leader has changed.

A leader changes the ISR in ZooKeeper by itself. As shipped the controller does not look, and the
metadata of every other broker has the ISR of the last election (KAFKA-1367). In `hardened` the
leader leaves a notification, as since 0.9: the controller reads the states, tells every broker,
and deletes the notification.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from watchkeeper.model.actor.effects import Partition, emit
from watchkeeper.model.actor.errors import NoNode
from watchkeeper.model.actor.operations import Delete
from watchkeeper.model.controller.state_machines.reign import Reign, children_of
from watchkeeper.model.controller.state_machines.variants import IsrsOfLeaders
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.payloads import IsrChange
from watchkeeper.model.trace.kinds import EventKind


async def isrs_changed(reign: Reign) -> None:
    """Tell every broker the ISRs that notifications name, and delete the notifications."""
    if reign.me.variant.isrs_of_leaders is IsrsOfLeaders.UNSEEN:
        return
    names = await children_of(reign.requests, paths.ISR_CHANGES)
    notifications = [f"{paths.ISR_CHANGES}/{name}" for name in names]
    if not notifications:
        return
    await _tell(reign, await _named_in(reign, notifications))
    for path in notifications:
        with suppress(NoNode):
            await reign.fenced(Delete(path, purpose="announce isr"))


async def _named_in(reign: Reign, notifications: list[str]) -> list[Partition]:
    """The assigned partitions that notifications name."""
    named: dict[Partition, None] = {}
    seen = await reign.read_all(notifications, watch=False)
    for path, znode in zip(notifications, seen, strict=True):
        try:
            rows = () if znode is None else IsrChange.decode(path, znode.data).partitions
        except BadPayload as error:
            await emit(EventKind.REQUEST_UNREADABLE, path=path, why=str(error))
            continue
        named |= dict.fromkeys(Partition(topic, str(index)) for topic, index in rows)
    return [partition for partition in named if partition in reign.context.assignment]


async def _tell(reign: Reign, partitions: Iterable[Partition]) -> None:
    known = await reign.read_states(list(partitions))
    said = [reign.context.said_of(partition) for partition in known]
    reign.batch.tell(reign.context.live, [one for one in said if one is not None])
    await reign.send()
