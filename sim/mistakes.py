"""What a program of a user may do wrong, as errors that say where."""

from __future__ import annotations


class NotAnAsk(TypeError):
    """A program awaited something that no world can answer."""

    def __init__(self, node: str, ask: object) -> None:
        super().__init__(
            f"{node} awaited {type(ask).__name__!r}, which is not an operation; protocol code "
            "may only await what model.operations and model.asks provide"
        )


class ProgramLoops(RuntimeError):
    """A program goes on and on while no time passes."""

    def __init__(self, node: str, why: str) -> None:
        super().__init__(
            f"{node} {why}; between two turns, and after an error, a program has to wait for "
            "something: a note, an answer, a pause"
        )
