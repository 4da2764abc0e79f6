"""Bounded waits for Spark, and its errors in one line."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

from watchkeeper.pipeline.errors import PipelineProblem

Made = TypeVar("Made")

LONGEST = 300
"""The greatest length of a foreign message."""


def within(patience_s: float, work: Callable[[], Made], late: str) -> Made:
    """The result of a call; PipelineProblem if it takes too long, or fails.

    It runs in a thread of its own: otherwise Spark would take over Ctrl-C.
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


def what_failed(message: str) -> str:
    """The line of Spark's message that names the error."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    telling = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return (telling or lines or ["no message"])[0][:LONGEST]
