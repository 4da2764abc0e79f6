"""What a process promises to its threads, held in every world that runs them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.task_worlds import WORLDS, run
from watchkeeper.model.actor.effects import fresh_id, now_ms, sleep
from watchkeeper.model.actor.events import LEAVE
from watchkeeper.model.actor.tasks import (
    Drain,
    Draw,
    Post,
    Posted,
    Remind,
    Start,
    below,
    put,
    take,
)
from watchkeeper.real.process.queues import Queue

SOON_MS = 20
every_world = pytest.mark.parametrize("world", WORLDS)


async def putting(queue: str, item: Any, bound: int, seen: list[Any], **how: Any) -> None:
    """Put something into a queue, and take down when that is done, or given up."""
    seen.append(("put", item, await put(queue, item, bound, **how)))


async def taking(queue: str, who: str, seen: list[Any], timeout_ms: int | None = None) -> None:
    """Take something from a queue, and take down what it was."""
    seen.append((who, await take(queue, timeout_ms=timeout_ms)))


async def starting(*bodies: Callable[[], Any]) -> None:
    """Start threads one after the other, each when the one before it waits."""
    for number, body in enumerate(bodies):
        await Start(f"thread {number}", body)
        await sleep(1)


# --- queues ----------------------------------------------------------------------------


@every_world
def test_items_leave_in_the_order_in_which_they_came(world: str) -> None:
    """Whether they were put in before a task waited or after."""
    seen: list[Any] = []

    async def main() -> None:
        await put("q", 1, 9)
        await put("q", 2, 9)
        for who in "abc":
            await Start(who, lambda who=who: taking("q", who, seen))
        await sleep(1)
        await put("q", 3, 9)
        await sleep(1)

    run(world, main)
    assert seen == [("a", 1), ("b", 2), ("c", 3)]


@every_world
def test_a_queue_holds_no_more_than_its_bound(world: str) -> None:
    """A task that comes too late waits until something leaves."""
    seen: list[Any] = []

    async def main() -> None:
        assert await put("q", "a", 2, timeout_ms=0)
        assert await put("q", "b", 2, timeout_ms=0)
        assert not await put("q", "c", 2, timeout_ms=0)
        await starting(lambda: putting("q", "d", 2, seen))
        assert seen == []
        assert await take("q") == "a"
        await sleep(1)
        assert seen == [("put", "d", True)]
        assert [await take("q"), await take("q"), await take("q", timeout_ms=0)] == [
            *("b", "d"),
            None,
        ]

    run(world, main)


@every_world
def test_what_is_larger_than_the_bound_goes_in_alone(world: str) -> None:
    """Only into an empty queue, and nothing with it."""

    async def main() -> None:
        assert await put("q", "small", 10, size=1, timeout_ms=0)
        assert not await put("q", "large", 10, size=99, timeout_ms=0)
        await take("q")
        assert await put("q", "large", 10, size=99, timeout_ms=0)
        assert not await put("q", "small", 10, size=1, timeout_ms=0)

    run(world, main)


@every_world
def test_no_task_overtakes_with_a_smaller_item(world: str) -> None:
    """There would be room for it, but a task stands before it."""
    seen: list[Any] = []

    async def main() -> None:
        await put("q", "first", 10, size=6)
        await starting(lambda: putting("q", "large", 10, seen, size=9))
        assert not await put("q", "small", 10, size=1, timeout_ms=0)
        await starting(lambda: putting("q", "small", 10, seen, size=1))
        assert seen == []
        assert await take("q") == "first"
        await sleep(1)
        assert seen == [("put", "large", True), ("put", "small", True)]

    run(world, main)


@every_world
def test_a_task_that_gives_up_lets_the_others_pass(world: str) -> None:
    """One that would not have fitted, in front of one that does."""
    seen: list[Any] = []

    async def main() -> None:
        await put("q", "first", 10, size=6)
        await starting(
            lambda: putting("q", "large", 10, seen, size=9, timeout_ms=SOON_MS),
            lambda: putting("q", "small", 10, seen, size=1),
        )
        assert seen == []
        await sleep(5 * SOON_MS)
        assert set(seen) == {("put", "large", False), ("put", "small", True)}
        assert await Drain("q") == ("first", "small")

    run(world, main)


@every_world
def test_what_came_too_late_reaches_no_task(world: str) -> None:
    """Who has waited in vain has None, and what comes then is for the next."""
    seen: list[Any] = []

    async def main() -> None:
        await starting(lambda: taking("q", "late", seen, SOON_MS))
        await sleep(5 * SOON_MS)
        assert seen == [("late", None)]
        await put("q", "item", 1)
        assert await take("q", timeout_ms=0) == "item"

    run(world, main)


@every_world
def test_a_drain_takes_all_and_lets_in_who_waits(world: str) -> None:
    """What waits for room is not drained with the rest."""
    seen: list[Any] = []

    async def main() -> None:
        await put("q", 1, 2)
        await put("q", 2, 2)
        await starting(*(lambda item=item: putting("q", item, 2, seen) for item in (3, 4, 5)))
        assert await Drain("q") == (1, 2)
        await sleep(1)
        assert seen == [("put", 3, True), ("put", 4, True)]
        assert await Drain("q") == (3, 4)
        await sleep(1)
        assert [await Drain("q"), await Drain("q")] == [(5,), ()]

    run(world, main)


@every_world
@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3)), max_size=12), st.integers(1, 6))
def test_nothing_is_lost_whatever_the_sizes(
    world: str, items: list[tuple[int, int]], bound: int
) -> None:
    """Some put, one takes: everything arrives once, each one's in its order."""
    seen: list[Any] = []

    async def put_all(who: int) -> None:
        for number, (size, _) in enumerate(items):
            await put("q", (who, number), bound, size=size)

    async def main() -> None:
        for who in range(3):
            await Start(f"{who}", lambda who=who: put_all(who))
        for _ in range(3 * len(items)):
            seen.append(await take("q"))
        assert await take("q", timeout_ms=0) is None

    run(world, main)
    for who in range(3):
        assert [number for snapshot, number in seen if snapshot == who] == list(range(len(items)))


# --- the rest --------------------------------------------------------------------------


@every_world
def test_a_thread_is_alone_until_it_asks(world: str) -> None:
    """A task that looks and changes without a request in between is not disturbed."""
    shared = {"count": 0, "inside": 0}

    async def work() -> None:
        for _ in range(50):
            shared["inside"] += 1
            assert shared["inside"] == 1
            before = shared["count"]
            sum(range(200))
            shared["count"] = before + 1
            shared["inside"] -= 1
            await sleep(0)
        await put("done", True, 99)

    async def main() -> None:
        for number in range(4):
            await Start(f"{number}", work)
        for _ in range(4):
            await take("done")

    run(world, main)
    assert shared["count"] == 200


@every_world
def test_a_thread_begins_when_who_starts_it_waits(world: str) -> None:
    """And not before: what stands between is done first."""
    seen: list[str] = []

    async def second() -> None:
        seen.append("started")

    async def main() -> None:
        await Start("other", second)
        seen.append("goes on")
        await sleep(1)
        seen.append("has waited")

    run(world, main)
    assert seen == ["goes on", "started", "has waited"]


@every_world
def test_chance_is_within_its_bounds_and_reaches_them(world: str) -> None:
    """So many bits, and whatever is below a bound."""
    drawn: list[int] = []

    async def main() -> None:
        drawn.extend([await Draw(3) for _ in range(300)])
        drawn.extend([await below(8) for _ in range(300)])
        assert await below(1) == 0

    run(world, main)
    assert set(drawn[:300]) == set(drawn[300:]) == set(range(8))


@every_world
def test_what_is_posted_is_known_by_its_name(world: str) -> None:
    """The last value, and None before the first."""

    async def main() -> None:
        assert await Posted("name") is None
        await Post("name", 1)
        await Post("name", 2)
        assert [await Posted("name"), await Posted("other")] == [2, None]

    run(world, main)


@every_world
def test_a_note_comes_to_the_inbox_of_the_process(world: str) -> None:
    """As if its operator had sent it."""

    async def main() -> None:
        await Remind(LEAVE)

    assert run(world, main).notes == [LEAVE]


@every_world
def test_time_passes_and_names_differ(world: str) -> None:
    """A pause lasts as long as requested, and no task is given a name twice."""

    async def main() -> None:
        began = await now_ms()
        await sleep(SOON_MS)
        assert await now_ms() - began >= SOON_MS
        assert len({await fresh_id() for _ in range(20)}) == 20

    run(world, main)


def test_a_task_that_has_to_wait_stands_in_the_line_before_he_waits() -> None:
    """Else a task could overtake him while no task awaits what he was given."""

    async def main() -> None:
        queue = Queue()
        assert queue.put_at_once("a", 1, 1)
        second = queue.put("b", 1, 1, None)
        assert queue.take_at_once() == "a"
        assert not queue.put_at_once("c", 1, 1)
        assert await second
        assert queue.take_at_once() == "b"
        third, fourth = queue.take(None), queue.take(None)
        assert queue.put_at_once("d", 1, 1)
        assert queue.put_at_once("e", 1, 1)
        assert await fourth == "e"
        assert await third == "d"

    asyncio.run(main())
