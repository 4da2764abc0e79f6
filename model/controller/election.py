"""How a broker becomes the controller, and how it raises the controller epoch.

Kafka 0.8.2.2: ZookeeperLeaderElector, and the first two steps of the failover. It creates
`/controller` and raises `/controller_epoch` afterwards, by a second request. `hardened` does
both in one multi, so no controller acts in the epoch of another one.
"""

from __future__ import annotations

from typing import NamedTuple

from watchkeeper.model.actor.effects import emit, now_ms, sleep
from watchkeeper.model.actor.errors import BadVersion, NodeExists, NoNode, TransactionFailed
from watchkeeper.model.actor.events import ZnodeView
from watchkeeper.model.actor.operations import (
    Create,
    Delete,
    Exists,
    GetData,
    Multi,
    PartOfMulti,
    SetData,
)
from watchkeeper.model.actor.retry import Requests, read_or_none
from watchkeeper.model.controller.failover import fail_over
from watchkeeper.model.controller.preferred import PoisonedElection
from watchkeeper.model.controller.state_machines.channel import Sender, begin_reign
from watchkeeper.model.controller.state_machines.context import Context
from watchkeeper.model.controller.state_machines.reign import (
    CallbackFailed,
    ControllerSettings,
    Reign,
)
from watchkeeper.model.controller.state_machines.variants import EpochRaised
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import Controller, ControllerEpoch
from watchkeeper.model.trace.kinds import EventKind

NO_CONTROLLER = -1
READ_CONTROLLER = GetData(paths.CONTROLLER, True, "elect")
READ_EPOCH = GetData(paths.CONTROLLER_EPOCH, False, "elect")


class Elected(NamedTuple):
    """The outcome of an election: the broker that is the controller, as far as is known."""

    broker: int
    context: Context | None = None
    """What this broker knows of the cluster, if it is the controller."""


class ReignAborted(Exception):
    """A new controller cannot begin its reign."""


async def elect(
    me: ControllerSettings, requests: Requests, leftovers: frozenset[Sender] = frozenset()
) -> Elected:
    """Take part in the election of a controller; the winner fails over before it returns.

    `leftovers` are the batches that errors in earlier reigns of this process have left full.
    """
    if me.variant.epoch_raised is EpochRaised.WITH_ELECTION:
        return await _elect_in_one_multi(me, requests)
    return await _elect_in_steps(me, requests, leftovers)


async def controller_in_registry(requests: Requests) -> int:
    """Read and watch `/controller`: the broker that it names, NO_CONTROLLER without one."""
    while await requests(Exists(paths.CONTROLLER, True, "elect")) is not None:
        seen = await read_or_none(requests, READ_CONTROLLER)
        if seen is not None:
            return _broker_in(seen)
    return NO_CONTROLLER


def _broker_in(seen: ZnodeView) -> int:
    broker = Controller.broker_in(paths.CONTROLLER, seen.data)
    return NO_CONTROLLER if broker is None else broker


async def _begin(
    me: ControllerSettings,
    requests: Requests,
    epoch: int,
    fence: int,
    *,
    raised: bool,
    leftovers: frozenset[Sender] = frozenset(),
) -> Context:
    await emit(EventKind.CONTROLLER_ELECTED, epoch=epoch, raised=raised)
    if me.sends:
        await begin_reign(epoch, me.rebalance_ms)
    reign = Reign(me, requests, Context(epoch, fence), leftovers=leftovers)
    await fail_over(reign)
    return reign.context


# --- as shipped: two requests ----------------------------------------------------------


async def _elect_in_steps(
    me: ControllerSettings, requests: Requests, leftovers: frozenset[Sender]
) -> Elected:
    present = await controller_in_registry(requests)
    if present != NO_CONTROLLER:
        return Elected(present)
    try:
        await _create_controller(me, requests)
    except NodeExists:
        return Elected(await controller_in_registry(requests))
    try:
        epoch, fence, raised = await _raise_epoch(requests)
        context = await _begin(me, requests, epoch, fence, raised=raised, leftovers=leftovers)
        return Elected(me.broker_id, context)
    except (ReignAborted, PoisonedElection, CallbackFailed) as error:
        await _delete_controller(requests)
        if not isinstance(error, ReignAborted):
            why = f"{error} has no state" if isinstance(error, PoisonedElection) else str(error)
            await emit(EventKind.CONTROLLER_RESIGNED, epoch=epoch, why=why)
        return Elected(NO_CONTROLLER)


async def _create_controller(me: ControllerSettings, requests: Requests) -> None:
    """Create `/controller`, or raise NodeExists if another broker's is there.

    One with this broker's id is taken for a leftover of an earlier session: the broker sleeps
    and tries again, without bound. One with equal data is the work of a request whose reply was
    lost.
    """
    while True:
        data = Controller(me.broker_id, str(await now_ms())).encode()
        try:
            await requests(Create(paths.CONTROLLER, data, ephemeral=True, purpose="elect"))
            return
        except NodeExists:
            there = await read_or_none(requests, READ_CONTROLLER)
        if there is None:
            continue
        if there.data == data:
            return
        if _broker_in(there) != me.broker_id:
            raise NodeExists(paths.CONTROLLER)
        await sleep(me.session_timeout_ms)


async def _delete_controller(requests: Requests) -> None:
    """Delete `/controller`, whose ever it is."""
    try:
        await requests(Delete(paths.CONTROLLER, purpose="elect"))
    except NoNode:
        return


async def _raise_epoch(requests: Requests) -> tuple[int, int, bool]:
    """Raise the epoch; return it, the version of its znode, and whether it was raised.

    As shipped, a controller whose write is refused goes on with the epoch that it has read.
    """
    seen = await read_or_none(requests, READ_EPOCH)
    if seen is None:
        return await _create_epoch(requests)
    epoch = ControllerEpoch.decode(paths.CONTROLLER_EPOCH, seen.data).epoch
    data = ControllerEpoch(epoch + 1).encode()
    write = SetData(paths.CONTROLLER_EPOCH, data, seen.version, "raise epoch")
    try:
        return epoch + 1, await requests(write), True
    except BadVersion:
        return epoch, seen.version, False
    except NoNode:
        return await _create_epoch(requests)


async def _create_epoch(requests: Requests) -> tuple[int, int, bool]:
    data = ControllerEpoch(1).encode()
    try:
        await requests(Create(paths.CONTROLLER_EPOCH, data, purpose="raise epoch"))
    except NodeExists:
        raise ReignAborted from None
    return 1, 0, True


# --- hardened: one multi ---------------------------------------------------------------


async def _elect_in_one_multi(me: ControllerSettings, requests: Requests) -> Elected:
    """Create `/controller` and raise the epoch at once.

    A broker that has `/controller` already, after a lost connection, raises the epoch again:
    so every request of its earlier reign that is still under way is refused.
    """
    while True:
        seen = await requests(Exists(paths.CONTROLLER, True, "elect"))
        if seen is not None and not seen.mine:
            present = await controller_in_registry(requests)
            if present == NO_CONTROLLER:
                continue
            return Elected(present)
        known = await read_or_none(requests, READ_EPOCH)
        if known is None:
            await _create_zero(requests)
            continue
        raised = await _raise_with_election(me, requests, known, is_elected=seen is not None)
        if raised is not None:
            context = await _begin(me, requests, *raised, raised=True)
            return Elected(me.broker_id, context)


async def _create_zero(requests: Requests) -> None:
    """Create the epoch of no reign, which the first controller raises to 1."""
    data = ControllerEpoch(0).encode()
    try:
        await requests(Create(paths.CONTROLLER_EPOCH, data, purpose="elect"))
    except NodeExists:
        return


async def _raise_with_election(
    me: ControllerSettings, requests: Requests, known: ZnodeView, *, is_elected: bool
) -> tuple[int, int] | None:
    """Return the new epoch and the version of its znode; None if another broker was faster."""
    epoch = ControllerEpoch.decode(paths.CONTROLLER_EPOCH, known.data).epoch + 1
    data = ControllerEpoch(epoch).encode()
    operations: list[PartOfMulti] = [
        SetData(paths.CONTROLLER_EPOCH, data, known.version, "raise epoch")
    ]
    if not is_elected:
        controller = Controller(me.broker_id, str(await now_ms())).encode()
        creation = Create(paths.CONTROLLER, controller, ephemeral=True, purpose="raise epoch")
        operations.insert(0, creation)
    try:
        answers = await requests(Multi(tuple(operations), "raise epoch"))
    except TransactionFailed:
        return None
    return epoch, answers[-1]
