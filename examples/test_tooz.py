"""A library from the package index in virtual time: OpenStack's tooz, on its ZooKeeper driver.

Three services join a group and campaign for its lead. This works; an ended session leaves a
service that is in no group and does not learn it, and two that believe that they lead.

    pip install 'watchkeeper[virtual]' tooz pytest && pytest examples/test_tooz.py
"""

import time
from contextlib import suppress

import pytest

from watchkeeper.virtual import Violation, World, faults, simulated

tooz = pytest.importorskip("tooz", reason="tooz is not installed; pip install tooz")
coordination = pytest.importorskip("tooz.coordination")

NAMES = ("api", "cron", "mail")
leads: set[str] = set()
members: dict[str, set[bytes]] = {}


def serve(world: World, name: str) -> None:
    """Join, campaign, and look at the group every second."""
    coordinator = coordination.get_coordinator(
        f"zookeeper://{world.hosts}?timeout=4", name.encode()
    )
    coordinator.start(start_heart=True)
    with suppress(coordination.GroupAlreadyExist):
        coordinator.create_group(b"services").get()
    coordinator.join_group(b"services").get()
    coordinator.watch_elected_as_leader(b"services", lambda event: leads.add(name))
    while True:
        with suppress(tooz.ToozError):
            coordinator.run_watchers()
            members[name] = coordinator.get_members(b"services").get()
        time.sleep(1)


def prepare(world: World, *, group: bool, lead: bool) -> None:
    """In the end each sees three members, besides the driver's `leader`, and one leads."""
    leads.clear()
    members.clear()
    for name in NAMES:
        world.process(name, serve, world, name)
    if group:
        world.finally_(lambda: all(len(seen) > 3 for seen in members.values()), name="all join")
    if lead:
        world.finally_(lambda: len(leads) == 1, name="one leads")


@simulated(seeds=20, until_s=30)
def test_without_faults(world: World) -> None:
    """It works, in any order of threads."""
    prepare(world, group=True, lead=True)


@simulated(seeds=100, until_s=30, faults=[faults.expire()])
def membership(world: World) -> None:
    """A session ends: its service is a member again, or still."""
    prepare(world, group=True, lead=False)


@simulated(seeds=100, until_s=30, faults=[faults.expire()])
def leadership(world: World) -> None:
    """A session ends: not two services lead."""
    prepare(world, group=False, lead=True)


def test_a_service_whose_session_has_ended_is_no_member() -> None:
    """The search needs a few seeds; its message has the command that replays what it found."""
    with pytest.raises(Violation, match="all join is violated"):
        membership()


def test_two_believe_that_they_lead() -> None:
    """The session of the leader ends, another one is elected, and the first goes on."""
    with pytest.raises(Violation, match="one leads is violated"):
        leadership()
