"""A broker that is about to leave hands over what it leads.

Kafka 0.8.2.2: KafkaServer.controlledShutdown, KafkaController.shutdownBroker. That a broker is
leaving is remembered by the controller alone, and forgotten with its reign.
"""

from __future__ import annotations

from dataclasses import replace

from watchkeeper.model.actor.effects import Partition, emit, sleep
from watchkeeper.model.actor.operations import GetData
from watchkeeper.model.actor.retry import Direct, read_or_none
from watchkeeper.model.actor.rpc import Call, CallError
from watchkeeper.model.controller.state_machines import partitions, replicas
from watchkeeper.model.controller.state_machines.context import Context, Replica
from watchkeeper.model.controller.state_machines.reign import ControllerSettings, Reign
from watchkeeper.model.controller.state_machines.selectors import shutting_down
from watchkeeper.model.controller.state_machines.states import PartitionStatus, ReplicaStatus
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.payloads import Controller
from watchkeeper.model.replication.requests import ControlledShutdown, ErrorCode, StillLed
from watchkeeper.model.trace.kinds import EventKind

TRIES = 3
"""`controlled.shutdown.max.retries`."""
SOCKET_TIMEOUT_MS = 30_000
"""`controller.socket.timeout.ms`."""


async def hand_over(reign: Reign, broker: int) -> StillLed:
    """Let other replicas lead what a broker leads, and stop what it follows.

    A broker that is not registered is refused: the controller would wait for its death.
    """
    context = reign.context
    if broker not in (*context.live, *context.shutting_down):
        return StillLed(ErrorCode.BROKER_NOT_AVAILABLE)
    leaving = tuple(sorted({*context.shutting_down, broker}))
    live = tuple(one for one in context.live if one != broker)
    reign.context = replace(context, live=live, shutting_down=leaving)
    for replica in context.replicas_on((broker,)):
        if len(context.assignment[replica.partition]) > 1:
            await _hand_over(reign, replica)
    return StillLed(ErrorCode.NONE, tuple(_still_led(reign.context, broker)))


async def _hand_over(reign: Reign, replica: Replica) -> None:
    known = reign.context.leadership.get(replica.partition)
    if known is not None and known.state.leader == replica.broker:
        await partitions.move(
            reign, [replica.partition], PartitionStatus.ONLINE, select=shutting_down
        )
    else:
        await replicas.move(reign, [replica], ReplicaStatus.OFFLINE)


def _still_led(context: Context, broker: int) -> list[Partition]:
    return [
        partition
        for partition in context.led_by((broker,))
        if len(context.assignment.get(partition, ())) > 1
    ]


async def leave_in_good_order(me: ControllerSettings, own: Reign | None, backoff_ms: int) -> None:
    """Ask the controller to take over what this broker leads, until nothing is left.

    `own` is the reign of this broker, if it is the controller itself. After the last try the
    broker leaves anyway.
    """
    left: StillLed | None = None
    for attempt in range(TRIES):
        if attempt:
            await sleep(backoff_ms)
        left = await (_ask(me) if own is None else hand_over(own, me.broker_id))
        if left is not None and left.error is ErrorCode.NONE and not left.partitions:
            break
    await emit(
        EventKind.SHUT_DOWN,
        is_clean=left is not None and left.error is ErrorCode.NONE and not left.partitions,
        led=[str(partition) for partition in left.partitions] if left is not None else [],
    )


async def _ask(me: ControllerSettings) -> StillLed | None:
    """Send the request to the controller; None if that cannot be done."""
    address = await _controller_address(me.broker_id)
    if address is None:
        return None
    try:
        left: StillLed = await Call(address, ControlledShutdown(me.broker_id), SOCKET_TIMEOUT_MS)
    except CallError:
        return None
    return left


async def _controller_address(own: int) -> str | None:
    """Where the controller listens; None without one, or if it is this broker."""
    requests = Direct()
    seen = await read_or_none(requests, GetData(paths.CONTROLLER, False, "elect"))
    broker = None if seen is None else Controller.broker_in(paths.CONTROLLER, seen.data)
    if broker is None or broker == own:
        return None
    path = paths.broker(broker)
    registered = await read_or_none(requests, GetData(path, False, "read cluster"))
    try:
        return None if registered is None else paths.decode_broker(path, registered.data).address
    except BadPayload:
        return None
