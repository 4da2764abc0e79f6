"""How long one attempt to connect may take.

kazoo waits for a connection as long as the session timeout, and for the answer to it as long
as the session timeout divided by the number of addresses. A server that accepts a connection
and never answers then costs the session. Such servers exist: ZooKeeper 3.9 forgets a
connection without closing it if the first request arrives while the server creates its
database, and a machine without power does not even refuse.

So the first attempt is short. A server that is only slow has to be reached too, so each
attempt that runs out of time doubles the limit for the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

FIRST_S = 2.0


class AttemptLimit:
    """The limit for the attempts of one client, in any of its threads."""

    def __init__(self) -> None:
        self.seconds = FIRST_S

    def of(self, timeout_s: float) -> float:
        """Return the shorter of the limit and of kazoo's own timeout."""
        return min(self.seconds, timeout_s)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Enclose an attempt: double the limit if it runs out of time, reset it on success."""
        began_s = monotonic()
        try:
            yield
        except Exception:
            if monotonic() - began_s >= self.seconds:
                self.seconds *= 2
            raise
        self.seconds = FIRST_S
