"""The fence around a program of a user: what it stops, what it lets through."""

from __future__ import annotations

import datetime
import logging
import os
import random
import socket
import time
import uuid
from collections.abc import Callable
from time import time as renamed
from typing import Any

import pytest

from watchkeeper import Program, simulate
from watchkeeper.checker.contracts.contracts import Forbidden
from watchkeeper.model.actor.effects import new_session, next_event, now_ms, sleep
from watchkeeper.model.actor.errors import NoNode

CALLS: dict[str, Callable[[], Any]] = {
    "time.time": lambda: renamed(),
    "time.monotonic": time.monotonic,
    "time.sleep": lambda: time.sleep(0),
    "datetime.now": datetime.datetime.now,
    "random.random": random.random,
    "random.getrandbits": lambda: random.randrange(5),
    "os.urandom": uuid.uuid4,
    "open": lambda: open(os.devnull).close(),
    "os.open": lambda: os.close(os.open(os.devnull, os.O_RDONLY)),
    "socket.bind": lambda: socket.socket().bind(("127.0.0.1", 0)),
}


def program(call: Callable[[], Any]) -> Program:
    """A program that calls a function in its second step."""

    async def turn(zk: Any, me: Any, state: Any) -> Any:
        if state == "new":
            await new_session()
        call()
        await next_event()
        return "old"

    return Program(turn, None, "new")


@pytest.mark.parametrize("what", CALLS)
def test_what_it_stops(what: str) -> None:
    """The error names the process, the function, the line, and how to allow it."""
    with pytest.raises(
        Forbidden, match=rf"billing/0 calls {what}\(\) at .*test_fence.py:"
    ) as stop:
        simulate("steady-join", consumer=program(CALLS[what]))
    assert any("allow=[...]" in note for note in stop.value.__notes__)


@pytest.mark.parametrize("what", ["time.monotonic", "open", "random.random"])
def test_what_is_allowed_by_name(what: str) -> None:
    """It is called, and the run goes on."""
    result = simulate("steady-join", consumer=program(CALLS[what]), allow=[what])
    assert "full cover" in result.violated
    with pytest.raises(Forbidden, match=r"calls time\.time"):
        simulate("steady-join", consumer=program(renamed), allow=[what])


def test_logging_is_let_through(caplog: pytest.LogCaptureFixture) -> None:
    """Though each record has the time of day."""
    simulate("steady-join", consumer=program(lambda: logging.getLogger("own").warning("turn")))
    assert {record.message for record in caplog.records} == {"turn"}


def test_effects_and_errors_pass_the_fence() -> None:
    """Answers reach the program, and so do errors; what it catches is its own affair."""
    seen: list[Any] = []

    async def turn(zk: Any, me: Any, state: Any) -> Any:
        await new_session()
        seen.append(await now_ms())
        try:
            await zk.delete("/never-there")
        except NoNode as error:
            seen.append(type(error))
        await sleep(5)
        seen.append(await now_ms())
        await next_event()
        return state

    simulate("steady-join", consumer=Program(turn, None, None))
    first, error, then = seen[:3]
    assert error is NoNode
    assert then >= first + 5


def test_a_run_is_the_same_with_the_fence_and_without() -> None:
    """The fence changes nothing but what it stops."""
    fenced = simulate("consumer-crash", consumer=program(lambda: None))
    scenario = fenced.scenario
    free = simulate(scenario, consumer=program(time.time), allow=["time.time"])
    assert fenced.fingerprint == free.fingerprint


@pytest.mark.parametrize(
    ("allow", "error", "words"),
    [
        (["time.tim"], ValueError, "did you mean 'time.time'"),
        ("time.time", TypeError, r"expected a list of names, such as \['time.time'\]"),
    ],
)
def test_a_name_that_is_not_fenced(allow: Any, error: type[Exception], words: str) -> None:
    """A misspelt name must not be without effect."""
    with pytest.raises(error, match=words):
        simulate("steady-join", consumer=program(lambda: None), allow=allow)
