"""Waiting for others no longer than it was said, and telling what they said in a line."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

from pipeline.problems import PipelineProblem

Made = TypeVar("Made")

LONGEST = 300
"""How much is shown of what somebody else has said."""


def within(patience_s: float, work: Callable[[], Made], late: str) -> Made:
    """What the work makes; PipelineProblem if it takes too long, or cannot be done.

    It is done in a thread of its own. So Spark, which would otherwise take over Ctrl-C,
    leaves that as it is.
    """
    made: Future[Made] = Future()

    def do() -> None:
        try:
            made.set_result(work())
        except BaseException as error:
            made.set_exception(error)

    Thread(target=do, daemon=True).start()
    try:
        return made.result(patience_s)
    except TimeoutError:
        raise PipelineProblem(late) from None


def what_failed(said: str) -> str:
    """The line that tells what went wrong, of all that Spark says of it."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return (telling or lines or ["nothing was said"])[0][:LONGEST]
