"""Interrupts reach tests and their children, whatever the parent of pytest ignores."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def interrupts_are_not_ignored() -> Iterator[None]:
    """Handle SIGINT as Python does by itself.

    A shell that starts a command in the background (`nohup pytest &`, many services that run
    tests) has it ignore SIGINT. A process hands what it ignores on to its children, and a
    child that interrupts are sent to would never end. What a process handles, its children
    get the default action for.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
