"""What a search may try: how many faults of which kind, and how large the cluster is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from explore.moves import FAULTS

BROKER_FAULTS = ("crash", "restart", "expire", "disconnect", "leave", "lost_reply")
KINDS = (*FAULTS, *(f"broker_{name}" for name in BROKER_FAULTS))
"""Everything that a budget can hold, by name: what befalls consumers, and brokers."""

Begin = Literal["fresh", "settled"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bound of a search."""

    faults: Mapping[str, int] = field(default_factory=dict)
    """Kind of fault -> how many there may be."""
    together: int | None = None
    """How many in all; None for all that are given."""
    messages: int = 0
    """How many there are in each partition, to be read and committed."""
    begin: Begin = "fresh"
    """Whether consumers start while it is looked, or have come to rest before."""

    def of_process(self, *, is_broker: bool) -> frozenset[str]:
        """The faults that may befall a process."""
        prefix = "broker_" if is_broker else ""
        return frozenset(name for name in FAULTS if self.faults.get(f"{prefix}{name}", 0) > 0)
