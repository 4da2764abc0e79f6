"""Orders: commands that a task gives the program of its process, and waits for.

    is_done = await give(Command(CommandKind.COMMIT, ticket=7))       in the task
    state = await execute(order, work)                                in the program

A task that waits without a limit goes on only if every order has a result. So a program that
may be given orders with a ticket takes them by `execute`, which reports a result whatever
becomes of the work. No task waits for an order without a ticket: the answer to `LEAVE` is the
end of the process, and a change of topics is seen in the registry.

A request of another process is handed in: after the command `SERVE` the program drains the
queue `REQUESTS`, and puts each answer where the request says.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import NamedTuple, TypeVar

from msgspec import Struct

from watchkeeper.model.actor.events import Command, CommandKind
from watchkeeper.model.actor.tasks import UNBOUNDED, Remind, put, take

RESULTS = "results of orders"
"""The queue of the results, in the order of the tickets."""
MOST_RESULTS = 1000
"""Results whose tasks gave up waiting stay until the next task takes its own."""

REQUESTS = "requests to the program"
"""The queue of what other processes and tasks want the program to serve."""

T = TypeVar("T")


class OrderResult(NamedTuple):
    """The result of an order."""

    ticket: int
    is_done: bool


async def give(order: Command, *, timeout_ms: int | None = None) -> bool:
    """Give an order to the program of this process; return whether it is known to be done.

    Only one task at a time may wait, and tickets have to increase.
    """
    assert order.ticket, "a task waits for the result of an order that has a ticket"
    await Remind(order)
    result: OrderResult | None = await take(RESULTS, timeout_ms=timeout_ms)
    # Skip the late results of earlier orders that timed out.
    while result is not None and result.ticket < order.ticket:
        result = await take(RESULTS, timeout_ms=timeout_ms)
    return result is not None and result.is_done


async def execute(order: Command, work: Awaitable[tuple[T, bool]]) -> T:
    """Do the work of an order, and report to the task that waits whether it is done.

    Work that raises is reported as not done: it may still take effect.
    """
    try:
        after, is_done = await work
    except Exception:
        # No `finally`: when a process is killed its coroutines are closed, and a coroutine
        # that is being closed must not await anything.
        await _report(order, is_done=False)
        raise
    await _report(order, is_done=is_done)
    return after


async def hand_in(request: Struct, *, answer_to: str = "") -> None:
    """Let the program of this process serve a request, and put the answer into a queue."""
    await put(REQUESTS, (request, answer_to), UNBOUNDED)
    await Remind(Command(CommandKind.SERVE))


async def _report(order: Command, *, is_done: bool) -> None:
    if order.ticket:
        await put(RESULTS, OrderResult(order.ticket, is_done), MOST_RESULTS, timeout_ms=0)
