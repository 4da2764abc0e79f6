"""What an ensemble needs of the world that runs it: time, and the other end of a connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A call that will be made later, unless it is cancelled."""

    def cancel(self) -> None:
        """Do not make the call."""


class Clock(Protocol):
    """The time of a world, and calls at a later time."""

    def now_ms(self) -> float:
        """Milliseconds of a clock that never goes back."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970, for the times in a Stat."""

    def call_later(self, delay_ms: float, call: Callable[[], object]) -> Timer:
        """Make a call once so much time has passed."""


class Transport(Protocol):
    """A stream of bytes to a client; asyncio's transports are such."""

    def write(self, data: bytes) -> None:
        """Send bytes, or keep them until they can be sent."""

    def close(self) -> None:
        """Close the stream once everything written has been sent."""

    def abort(self) -> None:
        """Close the stream now."""

    def pause_reading(self) -> None:
        """Receive nothing more for now."""

    def get_write_buffer_size(self) -> int:
        """How many bytes wait to be sent."""

    def resume_reading(self) -> None:
        """Receive again."""
