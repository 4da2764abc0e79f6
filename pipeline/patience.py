"""Work that is waited for so long and no longer."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

from pipeline.problems import PipelineProblem

Made = TypeVar("Made")


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
