"""The scenarios of late and lost requests, short pauses, and partitions lost twice.

Each has to catch a mutant that the scenario nearest to it, which was there before, misses.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.support.seeds import SEEDS
from watchkeeper import Result, simulate
from watchkeeper.model.actor.operations import ZooKeeper
from watchkeeper.model.actor.program import Ended, Program
from watchkeeper.model.group.consumer import SHIPPED
from watchkeeper.model.group.state import Consumer, ConsumerState
from watchkeeper.model.trace.kinds import EventKind


def mutated(name: str, mutant: str, seed: int) -> Result:
    """A run of a scenario with a mutant of the catalogue."""
    return simulate(name, seed=seed, variant=mutant)


CAUGHT = {
    "late-requests": ("old-fence", "monotone offsets", "connection-loss-mid-claim"),
    "pause-amid-join": ("kafka-265-deaf", "consensus", "consumer-crash"),
    "lost-and-regained-twice": ("stale-memory", "truthful registry", "rebalance-duplicates"),
}
"""Scenario -> a mutant, the property that catches it, and a scenario that misses it."""


@pytest.mark.parametrize("name", CAUGHT)
def test_a_scenario_catches_what_an_earlier_one_misses(name: str) -> None:
    """The mutant violates the property in the new scenario, and nothing in the earlier one."""
    mutant, what, earlier = CAUGHT[name]
    seeds = range(3)

    assert all(what in mutated(name, mutant, seed).violated for seed in seeds)
    assert all(not mutated(earlier, mutant, seed).violated for seed in seeds)


def test_a_lost_registration_catches_a_member_that_waits_at_its_own_znode() -> None:
    """It waits for the end of a session that it keeps alive; a restart does not show it."""

    async def turn(zk: ZooKeeper, me: Consumer, state: ConsumerState) -> ConsumerState | Ended:
        """A turn of hardened that takes its own znode for that of a dead session (KAFKA-1387)."""
        after = await SHIPPED.turn(zk, me, state)
        if isinstance(after, Ended) or state.is_registered or not after.is_registered:
            return after
        was_there = after.fence_version is None
        return replace(after, is_registered=False, is_blocked=True) if was_there else after

    waits = Program(turn, None, ConsumerState())
    for seed in range(3):
        lost = simulate("registration-reply-lost", seed=seed, consumer=waits)
        restarted = simulate("consumer-restart-same-id", seed=seed, consumer=waits)
        assert "full cover" in lost.violated
        assert not restarted.violated, restarted


def test_kafka_08_takes_what_it_wrote_itself_for_its_own() -> None:
    """zkclient repeats the create with the same data, and the comparison finds it."""
    for seed in range(SEEDS):
        result = simulate("registration-reply-lost", seed=seed, variant="kafka_08")
        assert result.holds, result


def test_late_requests_land_when_the_session_has_another_connection() -> None:
    """Each fault ends, which is its landing, after its client has connected again."""
    for seed in range(SEEDS):
        trace = simulate("late-requests", seed=seed).trace
        ends = [event.t_us for event in trace.of_kind(EventKind.FAULT_ENDED)]
        again = [e.t_us for e in trace.of_kind(EventKind.CONNECTED) if not e.detail["new"]]
        assert len(ends) == len(again) == 3
        assert all(back < end for back, end in zip(sorted(again), sorted(ends), strict=True))
        assert not list(trace.of_kind(EventKind.SESSION_EXPIRED))
