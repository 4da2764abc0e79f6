"""The load on a topic, the same in every world."""

from __future__ import annotations

from typing import Any

from watchkeeper.model.plan.faults import Action, FaultEffect
from watchkeeper.model.replication.requests import ALL

ACKS = {"none": 0, "leader": 1, "all": ALL}
"""Word in a scenario -> what it is on the wire."""


class Load:
    """Messages that are written at a rate."""

    __slots__ = ("_effect", "acks", "rate_per_1000_s", "size_bytes")

    def __init__(
        self, rate_per_1000_s: int, size_bytes: int, effect: FaultEffect, acks: int = 1
    ) -> None:
        self.rate_per_1000_s = rate_per_1000_s
        self.size_bytes = size_bytes
        self.acks = acks
        """Replicated: whose confirmation a producer waits for, as on the wire."""
        self._effect: FaultEffect | None = effect

    @classmethod
    def of(cls, action: Action, effect: FaultEffect) -> Load:
        """The load that a timeline action describes."""
        acks = action.option("acks", "leader")
        acks = ACKS.get(acks, acks)
        return cls(int(action.option("rate")), int(action.option("size", 100)), effect, acks)

    @property
    def detail(self) -> dict[str, Any]:
        """The load as the detail of a trace event."""
        return {"rate_per_1000_s": self.rate_per_1000_s, "size": self.size_bytes}

    def flows(self) -> None:
        """Record that a broker serves the topic, so that messages are written."""
        if self._effect is not None:
            self._effect.add("messages a second", max(self.rate_per_1000_s // 1000, 1))
            self._effect = None
