"""Policies: each is repeatable, replayed by its record, and finds what it should."""

from __future__ import annotations

import gc
import threading
import time
from typing import Any

import pytest

from tests.support.virtual_time import Machine
from watchkeeper.virtual.schedule.delay_bounded import DelayBounded
from watchkeeper.virtual.schedule.first_in_first_out import FirstInFirstOut
from watchkeeper.virtual.schedule.pct import Pct, bound
from watchkeeper.virtual.schedule.policies import parse_policy
from watchkeeper.virtual.schedule.random_policy import RandomPolicy
from watchkeeper.virtual.schedule.recorded import Recorded
from watchkeeper.virtual.threads.current import current_scheduler
from watchkeeper.virtual.threads.errors import VirtualTimeError
from watchkeeper.virtual.threads.task import Policy, Schedule


def count_without_a_lock(threads: int = 2) -> int:
    """A counter that is read and written in two steps, with a lock for each step alone."""
    value, guard = [0], threading.Lock()

    def add() -> None:
        with guard:
            before = value[0]
        with guard:
            value[0] = before + 1

    running = [threading.Thread(target=add) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return value[0]


def run(policy: Policy, function: Any = count_without_a_lock) -> tuple[Any, Schedule, list[Any]]:
    """The result, the schedule, and who had which turn."""
    machine, turns = Machine(policy), []
    scheduler = machine.scheduler
    scheduler.after_turn = lambda task: turns.append((scheduler.now_ns, task.name))
    machine.process("main", function)
    return machine.run()["main"], scheduler.schedule, turns


def test_the_default_schedule_decides_nothing() -> None:
    """First in, first out leaves no decision to record, and does not find the race."""
    result, schedule, _ = run(FirstInFirstOut())

    assert result == 2
    assert len(schedule) == 0


@pytest.mark.parametrize("name", ["random", "pct:2", "pct:3"])
def test_a_lost_update_is_found(name: str) -> None:
    """Some seeds of each policy interleave the two steps."""
    choice = parse_policy(name)
    results = {run(choice.make(seed, steps=30))[0] for seed in range(200)}

    assert results == {1, 2}


def busy() -> list[str]:
    """A program with sleeps, locks and four threads."""
    order: list[str] = []
    lock = threading.Lock()

    def work(name: str) -> None:
        for _ in range(5):
            with lock:
                order.append(name)
            time.sleep(0.001)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return order


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", ["random", "pct:3"])
def test_a_record_replays_its_run(name: str, seed: int) -> None:
    """The recorded decisions alone give the same turns at the same moments."""
    result, schedule, turns = run(parse_policy(name).make(seed, steps=200), busy)
    again, recorded, same = run(Recorded(schedule), busy)

    assert len(schedule) > 0
    assert (again, same) == (result, turns)
    assert recorded == schedule


def test_no_collection_of_garbage_comes_within_a_run() -> None:
    """A callback of the collector may read the clock, which costs virtual time."""
    within: list[str] = []

    def read_the_clock(phase: str, info: dict[str, int]) -> None:
        scheduler = current_scheduler()
        if scheduler is not None and not scheduler.is_torn_down:
            within.append(f"{phase} at {time.perf_counter()}")

    before = gc.get_threshold()
    gc.callbacks.append(read_the_clock)
    gc.set_threshold(1)
    try:
        run(FirstInFirstOut(), busy)
        assert gc.isenabled()
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(read_the_clock)
    assert within == []


def test_a_search_by_delays_is_complete_within_its_bound() -> None:
    """Without delays there is one schedule; with one, each comes once and one has the race."""
    found = {}
    for delays in (0, 1):
        search, results, schedules = DelayBounded(delays), set(), []
        while (policy := search.next()) is not None:
            result, schedule, _ = run(policy)
            search.finished()
            results.add(result)
            schedules.append(repr(schedule))
        assert search.is_complete
        assert len(set(schedules)) == len(schedules) == search.runs
        found[delays] = (search.runs, results)

    assert found[0] == (1, {2})
    assert found[1][0] > 10
    assert found[1][1] == {1, 2}


def test_pct_runs_the_thread_of_the_highest_priority() -> None:
    """A thread that polls gives way all the same, and the bound falls with threads and steps."""

    def poll() -> bool:
        until = time.monotonic() + 1
        done: list[bool] = []
        threading.Timer(0.5, done.append, [True]).start()
        while time.monotonic() < until:
            pass
        return bool(done)

    assert all(run(Pct(seed, depth=2, steps=100), poll)[0] for seed in range(20))
    assert bound(2, 10, 1) == 0.5
    assert bound(2, 10, 3) < bound(2, 10, 2) < bound(1, 10, 2)


@pytest.mark.parametrize("text", ["", "chance", "random:3", "pct:0", "pct:x", "delay:-1"])
def test_a_wrong_name_is_a_sentence(text: str) -> None:
    """The error names what was expected."""
    with pytest.raises(VirtualTimeError, match=r"random|number"):
        parse_policy(text)


def test_random_stalls_are_bounded() -> None:
    """Stalls are seldom, and none is longer than a fifth of a second."""
    policy = RandomPolicy(1)
    stalls = [policy.stall_ns(step, None) for step in range(10_000)]  # type: ignore[arg-type]
    struck = [stall for stall in stalls if stall]

    assert 50 < len(struck) < 500
    assert max(struck) <= 200_000_000
