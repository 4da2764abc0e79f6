"""Users' own programs: every interleaving is searched, and what is claimed is judged."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.support.checker.user_programs import example
from watchkeeper import Ended, Program, Verdict, explore
from watchkeeper.checker.counterexample.path import successors
from watchkeeper.checker.user_model.system import Claims, UserSystem
from watchkeeper.checker.user_model.view import State
from watchkeeper.model.actor.effects import (
    close_session,
    connected,
    new_session,
    next_event,
    sleep,
)
from watchkeeper.model.actor.errors import ConnectionLoss, NodeExists, SessionExpired
from watchkeeper.model.actor.events import LEAVE, SessionEvent
from watchkeeper.model.actor.operations import ZooKeeper

# --- the worked examples ---------------------------------------------------------------


@pytest.fixture(scope="module")
def lock(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return example("lock", tmp_path_factory.mktemp("lock"))


@pytest.fixture(scope="module")
def election(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return example("election", tmp_path_factory.mktemp("election"))


@pytest.mark.parametrize(
    "faults",
    [
        {},
        {"crash": 1, "restart": 1},
        {"expire": 1, "disconnect": 1},
        {"expire": 2},
        {"lost_request": 1, "lost_reply": 1},
        {"late_request": 1},
        {"leave": 1, "expire": 1},
        {"join": 1, "expire": 1},
    ],
    ids=str,
)
def test_a_lock_has_one_holder_under_any_fault(lock: Any, faults: dict[str, int]) -> None:
    found = lock.search("careful", **faults)

    assert found.holds, found


def test_a_holder_that_outlives_its_session_is_caught(lock: Any) -> None:
    found = lock.search("careless", expire=1)

    assert (found.verdict, found.violated) == (Verdict.VIOLATED, "one at a time")
    end = found.counterexample.steps[-1].snapshots
    assert sorted(stand.session for stand in end.values()) == ["alive", "dead"]
    assert [step.scheduled.fault for step in found.counterexample.steps].count("expire") == 1


def test_a_carefree_holder_is_safe_without_faults(lock: Any) -> None:
    assert lock.search("careless").holds


def test_no_client_can_promise_that_no_member_works_beside_it(lock: Any) -> None:
    def no_other_beside(state: State) -> bool:
        return sum(process.state == "at work" for process in state.running.values()) <= 1

    programs = {name: Program(lock.turn, "careful", "outside") for name in lock.NAMES}

    found = explore(programs, always={"strictly one": no_other_beside}, faults={"expire": 1})

    assert found.violated == "strictly one"
    assert "dead, and it does not know" in str(found)


@pytest.mark.parametrize("faults", [{}, {"crash": 2}, {"expire": 1}], ids=str)
def test_an_election_finds_a_leader_under_any_fault(
    election: Any, faults: dict[str, int]
) -> None:
    found = election.search(election.previous_in_line, **faults)

    assert found.holds, found


def test_an_election_that_watches_the_wrong_node_is_caught(election: Any) -> None:
    found = election.search(election.previous_number, crash=1)

    assert found.violated == "a leader exists"
    assert "nothing has to come any more" in str(found)
    waiting = [
        snapshot
        for snapshot in found.counterexample.steps[-1].snapshots.values()
        if snapshot.phase == "running"
    ]
    assert [pending.waits_for for pending in waiting] == ["a notification", "a notification"]


def test_watching_the_wrong_node_goes_well_as_long_as_no_member_goes(election: Any) -> None:
    assert election.search(election.previous_number).holds


# --- nothing is left out ---------------------------------------------------------------


def one_by_one(system: UserSystem) -> int:
    """How many states there are, counted in the simplest way."""
    first = (*system.initial(), 0)
    seen, waiting = {first}, deque([first])
    while waiting:
        for taken in successors(system, waiting.popleft()):
            if taken.after not in seen:
                seen.add(taken.after)
                waiting.append(taken.after)
    return len(seen)


@pytest.mark.parametrize("faults", [{}, {"crash": 1}, {"expire": 1, "disconnect": 1}], ids=str)
def test_there_are_as_many_states_as_a_plain_search_counts(
    lock: Any, faults: dict[str, int]
) -> None:
    programs = {name: Program(lock.turn, "careful", "outside") for name in lock.NAMES}
    system = UserSystem(programs, Claims({}, {}, {}, {}), faults)

    assert explore(programs, faults=faults).states == one_by_one(system)


def alone(turn: Callable[..., Any], state: Any = "begin", **claims: Any) -> Any:
    """Explore one program by itself."""
    return explore({"one": Program(turn, None, state)}, **claims)


def remembers(state: Any) -> Callable[[State], bool]:
    """Whether anybody remembers this."""
    return lambda seen: any(process.state == state for process in seen.running.values())


async def sleeps_with_it(zk: ZooKeeper, me: Any, state: str) -> Any:
    """Asks no member for anything while it has it."""
    if state == "begin":
        return "has it"
    await sleep(1_000)
    return Ended("done")


def test_what_is_held_during_a_pause_is_seen() -> None:
    assert alone(sleeps_with_it, sometimes={"has it": remembers("has it")}).holds


async def waits_for_a_session(zk: ZooKeeper, me: Any, state: str) -> Any:
    await new_session()
    return Ended("done")


def test_what_is_held_until_there_is_a_session_is_seen() -> None:
    assert alone(waits_for_a_session, sometimes={"begin": remembers("begin")}).holds


async def writes(zk: ZooKeeper, me: str, state: str) -> Any:
    if state == "begin":
        await new_session()
        return "write"
    if state == "write":
        await zk.create(f"/{me}", b"here", ephemeral=True)
        return "wrote"
    await next_event()
    return state


def test_a_claim_sees_znodes_and_whose_they_are() -> None:
    seen: set[tuple[bytes | None, str, bool]] = set()

    def look(state: State) -> bool:
        seen.update(
            (znode.data, znode.owner, znode.is_current) for znode in state.znodes.values()
        )
        return set(state.znodes) <= {"/a", "/b"}

    found = explore(
        {name: Program(writes, name, "begin") for name in "ab"}, always={"look": look}
    )

    assert found.holds
    assert seen == {(b"here", "a", True), (b"here", "b", True)}


def test_a_claim_cannot_change_what_it_sees() -> None:
    def meddles(state: State) -> bool:
        state.programs["a"] = state.programs["a"]  # type: ignore[index]
        return True

    with pytest.raises(TypeError) as caught:
        explore({"a": Program(writes, "a", "begin")}, always={"meddles": meddles})

    assert any(
        "in the claim 'meddles'" in notification for notification in caught.value.__notes__
    )


# --- what comes ------------------------------------------------------------------------


async def tries_for_ever(zk: ZooKeeper, me: Any, state: str) -> Any:
    """Begins anew whenever a member was quicker."""
    await new_session()
    try:
        await zk.create("/one", ephemeral=True)
    except NodeExists:
        return state
    await next_event()
    return state


def test_a_program_that_goes_round_in_a_circle_does_not_come_to_rest() -> None:
    found = explore(
        {name: Program(tries_for_ever, name, "begin") for name in "ab"},
        at_rest={"anything": lambda state: True},
    )

    assert found.violated == "comes to rest"
    assert "all is as it was after step" in str(found)


async def gives_way(zk: ZooKeeper, me: str, state: str) -> Any:
    """Waits for the other at a door, each as polite as the other."""
    path = "/b" if me == "a" else "/a"
    if state == "begin":
        await new_session()
        await zk.create(f"/{me}")
        return "at the door"
    if await zk.exists(path):
        await zk.delete(f"/{me}")
        await sleep(1_000)
        return "begin"
    await zk.delete(f"/{me}")
    return Ended("went through")


def test_who_give_way_to_each_other_may_do_so_for_ever() -> None:
    programs = {name: Program(gives_way, name, "begin") for name in "ab"}

    found = explore(programs, at_rest={"anything": lambda state: True})

    assert found.violated == "comes to rest"
    assert "no process passed over" in str(found)
    assert "all is as it was after step" in str(found)
    assert explore({"a": programs["a"]}, at_rest={"anything": lambda state: True}).holds


def test_what_comes_by_the_clock_is_claimed_of_what_comes_eventually() -> None:
    async def polls(zk: ZooKeeper, me: Any, state: str) -> Any:
        await new_session()
        if await zk.exists("/one"):
            return Ended("found it")
        await sleep(1_000)
        return state

    async def comes(zk: ZooKeeper, me: Any, state: str) -> Any:
        await new_session()
        await zk.create("/one")
        return Ended("made it")

    programs = {"polls": Program(polls, None, ""), "comes": Program(comes, None, "")}
    over = {"it is found": lambda state: state["polls"].phase == "over"}

    assert explore(programs, eventually=over).holds
    found = explore(programs, eventually=over, faults={"crash": 1})
    assert found.violated == "it is found"
    assert found.counterexample is not None
    assert [step.scheduled.fault for step in found.counterexample.steps] == ["crash"]


def test_a_timer_that_changes_something_has_to_come() -> None:
    async def wakes(zk: ZooKeeper, me: Any, state: str) -> Any:
        await next_event(1_000 if state == "begin" else None)
        return "woken"

    found = alone(wakes, at_rest={"it is awake": remembers("woken")})

    assert found.holds, found


def test_a_member_that_waits_for_what_does_not_come_waits_in_vain() -> None:
    async def hopes(zk: ZooKeeper, me: Any, state: str) -> Any:
        await connected()
        return state

    found = alone(hopes)

    assert found.violated == "no process waits in vain"
    assert "one still wait" in str(found)


def test_what_never_happens_is_reported() -> None:
    found = alone(sleeps_with_it, sometimes={"it lost it": remembers("lost it")})

    assert (found.verdict, found.violated) == (Verdict.VIOLATED, "it lost it")
    assert "in no state does this hold: it lost it" in str(found)


# --- faults ----------------------------------------------------------------------------


async def listens(zk: ZooKeeper, me: Any, state: tuple[Any, ...]) -> Any:
    """Remembers every note."""
    await new_session()
    try:
        notification = await next_event()
    except (ConnectionLoss, SessionExpired):
        return state
    return (*state, notification)


@pytest.mark.parametrize(
    ("fault", "notifications"),
    [
        ("leave", {(LEAVE,)}),
        ("disconnect", {(SessionEvent.SUSPENDED,)}),
        ("expire", {(SessionEvent.SUSPENDED,)}),
    ],
)
def test_a_fault_is_heard(fault: str, notifications: set[Any]) -> None:
    for heard in notifications:
        found = alone(listens, (), sometimes={"heard": remembers(heard)}, faults={fault: 1})
        assert found.holds, found
        assert not alone(listens, (), sometimes={"heard": remembers(heard)}).holds


def test_the_last_program_joins_later_if_ever() -> None:
    programs = {name: Program(writes, name, "begin") for name in "ab"}
    phases = {
        name: {snapshot.phase for snapshot in seen}
        for name, seen in seen_of(programs, {"join": 1}).items()
    }

    assert phases == {"a": {"running"}, "b": {"absent", "running"}}


def test_a_process_that_was_killed_starts_again() -> None:
    programs = {"a": Program(writes, "a", "begin")}

    seen = seen_of(programs, {"crash": 1, "restart": 1})

    assert {process.phase for process in seen["a"]} == {"running", "gone"}


def seen_of(programs: Mapping[str, Program], faults: Mapping[str, int]) -> dict[str, set[Any]]:
    """Everything that a claim sees of each program."""
    seen: dict[str, set[Any]] = {name: set() for name in programs}

    def look(state: State) -> bool:
        for name, stands in state.programs.items():
            seen[name].add(stands)
        return True

    assert explore(programs, always={"look": look}, faults=faults).holds
    return seen


def test_faults_can_be_bounded_together(lock: Any) -> None:
    programs = {name: Program(lock.turn, "careful", "outside") for name in lock.NAMES}
    faults = {"expire": 1, "crash": 1}

    bounded = explore(programs, faults=faults, together=1)
    both = explore(programs, faults=faults)

    assert bounded.states < both.states
    assert "at most 1 together" in str(bounded)


# --- verdicts --------------------------------------------------------------------------


def test_a_search_that_gives_up_is_unknown(lock: Any) -> None:
    programs = {name: Program(lock.turn, "careful", "outside") for name in lock.NAMES}

    found = explore(programs, at_rest={"never": lambda state: False}, max_states=50)

    assert found.verdict is Verdict.UNKNOWN
    assert not found.holds
    assert "50 states were seen" in str(found)


def test_a_memory_that_grows_for_ever_is_unknown() -> None:
    async def counts(zk: ZooKeeper, me: Any, state: int) -> Any:
        await sleep(1)
        return state + 1

    assert alone(counts, 0, max_states=500).verdict is Verdict.UNKNOWN


def test_a_program_that_closes_its_session_leaves_nothing_behind() -> None:
    async def goes(zk: ZooKeeper, me: Any, state: str) -> Any:
        await new_session()
        await zk.create("/one", ephemeral=True)
        await close_session()
        return Ended("done")

    found = alone(
        goes,
        at_rest={"nothing is left": lambda state: not state.znodes},
        sometimes={"something was there": lambda state: "/one" in state.znodes},
    )

    assert found.holds, found


# --- arguments -------------------------------------------------------------------------

FINE = {"one": Program(writes, "one", "begin")}


@pytest.mark.parametrize(
    ("programs", "named", "error", "message"),
    [
        ([], {}, TypeError, "programs have to be a mapping"),
        ({}, {}, ValueError, "there has to be a program"),
        ({"one": writes}, {}, TypeError, "one has to be a Program"),
        ({1: FINE["one"]}, {}, TypeError, "the name of a program"),
        (FINE, {"always": [len]}, TypeError, "always has to be a mapping"),
        (FINE, {"at_rest": {"x": True}}, TypeError, "'x' has to be a function"),
        (FINE, {"always": {"x": bool}, "sometimes": {"x": bool}}, ValueError, "called 'x'"),
        (FINE, {"faults": {"crush": 1}}, ValueError, "did you mean 'crash'"),
        (FINE, {"faults": {"crash": "1"}}, TypeError, "crash has to be a number"),
        (FINE, {"faults": {"crash": -1}}, ValueError, "crash has to be 0 or more"),
        (FINE, {"faults": {"join": 2}}, ValueError, "2 programs cannot join"),
        (FINE, {"faults": "crash"}, TypeError, "faults have to be a mapping"),
        (FINE, {"max_states": 0}, ValueError, "max_states has to be 1 or more"),
        (FINE, {"max_seconds": "1"}, TypeError, "max_seconds has to be a number"),
        (FINE, {"together": True}, TypeError, "together has to be a number"),
    ],
)
def test_wrong_arguments_are_refused(
    programs: Any, named: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        explore(programs, **named)


def test_the_longest_example_takes_seconds(election: Any) -> None:
    found = election.search(election.previous_in_line, expire=1, disconnect=1)

    assert found.holds, found
    assert found.states > 100_000
    assert found.seconds < 60
