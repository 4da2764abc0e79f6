"""What is produced to a topic: alike in every world."""

from __future__ import annotations

from typing import Any

from model.faults import Action, Effect


class Load:
    """Messages that are written at a rate."""

    __slots__ = ("_effect", "rate_per_1000_s", "size_bytes")

    def __init__(self, rate_per_1000_s: int, size_bytes: int, effect: Effect) -> None:
        self.rate_per_1000_s = rate_per_1000_s
        self.size_bytes = size_bytes
        self._effect: Effect | None = effect

    @classmethod
    def of(cls, action: Action, effect: Effect) -> Load:
        """What an action of a timeline asks for."""
        return cls(int(action.option("rate")), int(action.option("size", 100)), effect)

    @property
    def detail(self) -> dict[str, Any]:
        """What a trace says of it."""
        return {"rate_per_1000_s": self.rate_per_1000_s, "size": self.size_bytes}

    def flows(self) -> None:
        """Somebody serves the topic, so that messages are really written."""
        if self._effect is not None:
            self._effect.add("messages a second", max(self.rate_per_1000_s // 1000, 1))
            self._effect = None
