"""The load on a topic, the same in every world."""

from __future__ import annotations

from typing import Any

from watchkeeper.model.plan.faults import Action, FaultEffect


class Load:
    """Messages that are written at a rate."""

    __slots__ = ("_effect", "rate_per_1000_s", "size_bytes")

    def __init__(self, rate_per_1000_s: int, size_bytes: int, effect: FaultEffect) -> None:
        self.rate_per_1000_s = rate_per_1000_s
        self.size_bytes = size_bytes
        self._effect: FaultEffect | None = effect

    @classmethod
    def of(cls, action: Action, effect: FaultEffect) -> Load:
        """The load that a timeline action describes."""
        return cls(int(action.option("rate")), int(action.option("size", 100)), effect)

    @property
    def detail(self) -> dict[str, Any]:
        """The load as the detail of a trace event."""
        return {"rate_per_1000_s": self.rate_per_1000_s, "size": self.size_bytes}

    def flows(self) -> None:
        """Record that a broker serves the topic, so that messages are written."""
        if self._effect is not None:
            self._effect.add("messages a second", max(self.rate_per_1000_s // 1000, 1))
            self._effect = None
