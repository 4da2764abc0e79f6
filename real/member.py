"""A member of a live run: one process, one program.

    python -m real.member

Its job is the first line of its standard input. It ends when its program is over, when it is
told to, or when whoever started it is gone, which closes its standard input.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from model.program import Ended
from real import consuming, producing, storing
from real.driver import Driver
from real.fetching import Fetcher
from real.job import Consumes, Sends, Stores, decoded
from real.parent import end_with_parent
from real.serving import DataServer
from real.workplace import Workplace, say


def main() -> None:
    """Say that the imports are done, read the job, and do it."""
    end_with_parent()
    say(ready=os.getpid())
    place = Workplace(decoded(sys.stdin.buffer.readline()))
    ended = PARTS[type(place.job.part)](place)
    assert place.client is not None, "a program that is over has had a client"
    slowest_us = place.client.slowest_ns // 1000
    say(ended=ended.reason, failed=ended.failed, slowest_us=slowest_us)
    os._exit(0)


def without_messages(place: Workplace) -> Ended:
    """Run a program where a log is but a rate."""
    job, diary = place.job, place.diary
    fetcher = None
    if job.fetch_every_s:
        fetcher = Fetcher(
            diary,
            place.cluster,
            job.fetch_every_s,
            lambda: place.session,
            ends_on_error=job.ends_on_error,
        )
    if job.port:
        DataServer(job.port, job.node, place.cluster, diary.t_us)
    driver = Driver(job.program, diary, place.connect, fetcher, place.channel, job.skew_ms)
    place.listen(driver)
    return driver.run()


PARTS: dict[type[Any], Callable[[Workplace], Ended]] = {
    type(None): without_messages,
    Stores: storing.run,
    Consumes: consuming.run,
    Sends: producing.run,
}
"""What a process has to do with messages -> what it does."""


if __name__ == "__main__":
    main()
