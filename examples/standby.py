"""A protocol of your own: one member works, the others stand by.

The claim of the only partition is a lock: the member that creates it works, the others watch it.
"""

from contextlib import suppress

from watchkeeper import Ended, Program
from watchkeeper.model.actor.effects import (
    Fetch,
    Partition,
    close_session,
    connected,
    fetch_exactly,
    new_session,
    next_event,
)
from watchkeeper.model.actor.errors import ConnectionLoss, NodeExists, SessionExpired
from watchkeeper.model.actor.events import LEAVE
from watchkeeper.model.actor.retry import Direct, create_with_parents
from watchkeeper.model.registry import paths

JOBS = Partition("jobs", "0")
GROUP = "group"
"""The group whose members `watchkeeper.strategies.faults` names."""
CLAIM = paths.owner(GROUP, JOBS)


async def turn(zk, me, state):
    """Take one step; handle a lost connection and a lost session."""
    try:
        return await STEPS[state](zk)
    except ConnectionLoss:
        await connected()
        return "outside" if state == "outside" else "standby"
    except SessionExpired:
        await fetch_exactly([])
        return "outside"


async def come(zk):
    """Open a session."""
    await new_session()
    return "standby"


async def stand_by(zk):
    """Claim the partition, or wait until its claim changes."""
    claim = await zk.exists(CLAIM, watch=True)
    if claim is None:
        with suppress(NodeExists):  # another member is faster: the next turn watches its claim
            await create_with_parents(Direct(), zk.create(CLAIM, ephemeral=True, purpose="claim"))
        return "standby"
    if claim.mine:
        return "working"
    return "leaving" if await next_event() == LEAVE else "standby"


async def work(zk):
    """Fetch, until a notification says that the claim may be lost."""
    await fetch_exactly([Fetch(JOBS, 0, 0, "")])
    return "leaving" if await next_event() == LEAVE else "standby"


async def leave(zk):
    """Stop fetching, and then end the session, which deletes the claim."""
    await fetch_exactly([])
    await close_session()
    return Ended("left")


STEPS = {"outside": come, "standby": stand_by, "working": work, "leaving": leave}
STANDBY = Program(turn, None, "outside")
