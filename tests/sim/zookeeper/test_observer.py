"""A measurement goes on though the connection of its observer breaks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.support.zookeeper.programs import play, say
from watchkeeper.model.actor.effects import close_session, new_session, sleep
from watchkeeper.model.actor.operations import ZooKeeper
from watchkeeper.model.calibration.probe_program import OBSERVER, QUICK, Procedure

CUT_OFF = {"partition": "clients/0", "from": "zookeeper", "at": "2s", "for": "3s"}


@dataclass(frozen=True)
class Me:
    """The identity of the observer."""

    node: str = f"{OBSERVER}/0"


async def observes(zk: ZooKeeper) -> None:
    """Observe two sessions, and say that they have ended."""
    ended = await Procedure(replace(QUICK, sessions=2)).turn(zk, Me(), None)
    assert not ended.failed, ended
    await say("ended")


async def sleeps(zk: ZooKeeper) -> None:
    """Have two ephemerals, of which one is deleted while the observer is cut off."""
    await new_session()
    await sleep(1000)
    for number in range(2):
        await zk.create(f"/asleep-{number}", ephemeral=True)
    await sleep(2000)
    await zk.delete("/asleep-0")
    await sleep(4000)
    await close_session()


def test_no_session_is_waited_for_that_has_ended() -> None:
    """Its end came while no watch was set; the other session ends later, and is waited for."""
    run = play(observes, sleeps, timeout_ms=4000, timeline=[CUT_OFF], settle="10s")

    assert run.why_not_real() == []
    assert run.only(0, "ended").t_us > 7_000_000
