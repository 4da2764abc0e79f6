"""The rule by which a request to brokers is retried: for a while, then it is an error."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from time import monotonic, sleep
from typing import TypeVar

from watchkeeper.model.log.format.errors import LogError
from watchkeeper.pipeline.errors import PipelineProblem

PAUSE_S = 0.2
"""Between two attempts: `refresh.leader.backoff.ms` as it is shipped."""
Made = TypeVar("Made")


class Failed(Exception):
    """An attempt has failed, and the next one may succeed."""


RETRIED = (Failed, OSError, LogError)
"""What ends an attempt: an answer that will change, a broken connection, a wrong response."""


def retried(attempt: Callable[[], Made], within_ms: int, what: str) -> Made:
    """Call a function until it returns; PipelineProblem, which begins with `what`, after a while.

    The first attempt is always made, and the second at once: a leader may have moved long ago.
    """
    deadline_s = monotonic() + within_ms / 1000
    for attempts in count(1):
        try:
            return attempt()
        except RETRIED as error:
            if monotonic() >= deadline_s:
                raise PipelineProblem(
                    f"{what}: {reason_of(error)}, after {within_ms / 1000:g} s of retries "
                    "(retryMs); see to the broker, and try again"
                ) from None
        if attempts > 1:
            sleep(PAUSE_S)
    raise AssertionError("attempts do not end")


def reason_of(error: Exception) -> str:
    """Why an attempt has failed, in some words."""
    if isinstance(error, TimeoutError):
        return "there is no answer in time"
    if isinstance(error, OSError):
        return (error.strerror or str(error) or type(error).__name__).lower()
    return str(error)
