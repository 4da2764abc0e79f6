"""What a program in virtual time cannot do, and how its greenlets end."""

from __future__ import annotations


class VirtualTimeError(Exception):
    """The base of what a world in virtual time raises on its own account."""


class Refused(VirtualTimeError):
    """The program under test wants something that cannot be virtual."""


class Stuck(BaseException):
    """The program under test computes for longer than the watchdog allows.

    No `except Exception` of the program may swallow it.
    """


class Teardown(BaseException):
    """The run is over: the greenlet of a thread unwinds after the verdict."""


class ProcessExit(BaseException):
    """A thread has ended its whole process (`os._exit`)."""
