"""Orders that a task gives its program: each has a result, whatever becomes of the work."""

from __future__ import annotations

from inspect import CORO_CLOSED, getcoroutinestate
from typing import Any

import pytest

from watchkeeper.model.actor.effects import Sleep, sleep
from watchkeeper.model.actor.errors import ConnectionLoss
from watchkeeper.model.actor.events import LEAVE, Command, CommandKind
from watchkeeper.model.actor.orders import OrderResult, execute, give
from watchkeeper.model.actor.tasks import Put, Remind, Take

ORDER = Command(CommandKind.COMMIT, ticket=7)


async def works(error: Exception | None, *, is_done: bool) -> tuple[str, bool]:
    """Take a moment, then raise, or return the state after the order."""
    await sleep(1)
    if error is not None:
        raise error
    return "after", is_done


@pytest.mark.parametrize("is_done", [True, False])
def test_the_result_of_an_order_is_reported(is_done: bool) -> None:
    """And the program has the state after it."""
    executing = execute(ORDER, works(None, is_done=is_done))
    assert isinstance(executing.send(None), Sleep)
    reported: Any = executing.send(None)
    assert isinstance(reported, Put)
    assert reported.item == OrderResult(7, is_done)
    with pytest.raises(StopIteration, match="after"):
        executing.send(True)


@pytest.mark.parametrize("error", [ConnectionLoss("/"), RuntimeError("a fault of the program")])
def test_an_order_that_fails_is_reported_as_not_done(error: Exception) -> None:
    """Before the error goes on to the program."""
    executing = execute(ORDER, works(error, is_done=True))
    executing.send(None)
    reported: Any = executing.send(None)
    assert reported.item == OrderResult(7, is_done=False)
    with pytest.raises(type(error)):
        executing.send(True)


def test_a_process_may_be_killed_during_an_order() -> None:
    """Nothing is reported then: a coroutine that is closed must not await anything."""
    executing = execute(ORDER, works(None, is_done=True))
    executing.send(None)
    executing.close()

    assert getcoroutinestate(executing) == CORO_CLOSED


def test_an_order_without_a_ticket_is_not_reported() -> None:
    """The end of the process is the answer to the order to leave."""
    executing = execute(LEAVE, works(None, is_done=True))
    executing.send(None)
    with pytest.raises(StopIteration, match="after"):
        executing.send(None)


def test_a_task_skips_the_results_that_came_too_late_for_others() -> None:
    """They lie in the queue before its own."""
    giving = give(ORDER, timeout_ms=50)
    reminded: Any = giving.send(None)
    assert isinstance(reminded, Remind)
    assert reminded.notification == ORDER
    assert isinstance(giving.send(None), Take)
    assert isinstance(giving.send(OrderResult(6, is_done=False)), Take)
    with pytest.raises(StopIteration) as over:
        giving.send(OrderResult(7, is_done=True))
    assert over.value.value is True


def test_an_order_without_a_result_in_time_is_not_done() -> None:
    """As far as the task knows."""
    giving = give(ORDER, timeout_ms=50)
    giving.send(None)
    giving.send(None)
    with pytest.raises(StopIteration) as over:
        giving.send(None)
    assert over.value.value is False
