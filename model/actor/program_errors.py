"""The mistakes that a user's program can make: each error names the process and the cause."""

from __future__ import annotations


class NotAnEffect(TypeError):
    """A program awaited something that no world can answer."""

    def __init__(self, node: str, effect: object) -> None:
        super().__init__(
            f"{node} awaited {type(effect).__name__!r}, which is not an operation; protocol code "
            "may only await what watchkeeper.model.actor.operations and "
            "watchkeeper.model.actor.effects provide"
        )


class ProgramLoops(RuntimeError):
    """A program continues without end while no simulated time passes."""

    def __init__(self, node: str, why: str) -> None:
        super().__init__(
            f"{node} {why}; between two turns, and after an error, a program has to wait for "
            "something: a notification, an answer, a pause"
        )
