"""What keeps kazoo from opening the next session before the program wants it.

kazoo opens a session as soon as the last one has ended. A program may not know yet that it has
ended, and go on with what it held in the old one, now with a session that lives: another member
may own the same by then. No simulated client opens a session that its program has not requested.
"""

from __future__ import annotations

from threading import Event, Lock


class SessionGate:
    """Holds the thread of kazoo's connection between two sessions."""

    def __init__(self, *, is_used: bool) -> None:
        """A gate that is not used is open for ever."""
        self._lock = Lock()
        self._stays_open = not is_used
        self._is_open = Event()
        self._is_open.set()

    def session_ended(self) -> None:
        """A session has ended: the next one waits for `open`."""
        with self._lock:
            if not self._stays_open:
                self._is_open.clear()

    def open(self) -> None:
        """The program wants a session."""
        self._is_open.set()

    def open_for_ever(self) -> None:
        """No thread waits for the program any more: it is over."""
        with self._lock:
            self._stays_open = True
            self._is_open.set()

    def wait(self) -> None:
        """Wait until the next session may be opened."""
        self._is_open.wait()
