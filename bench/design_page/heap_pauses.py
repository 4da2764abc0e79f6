"""A heap that stands still, in a scenario: which size of it makes a zombie owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from model.verdicts import Verdict
from sim.experiments.heaps import SESSION_TIMEOUT_S, longest_silence_s
from sim.machine import GIB, MachineProfile
from watchkeeper.running import simulate

STRICT = "strict single ownership"
HEAPS_GIB = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class HeapPause:
    """What a collection of a whole heap does to a consumer's partitions."""

    heap_gib: int
    pause_s: float
    verdict: Verdict
    """Whether nobody fetched what was another's, zombies counted."""


def heap_pause(machine: MachineProfile, heap_gib: int) -> HeapPause:
    """Fill a heap, and let a consumer stand still for as long as its longest pause."""
    pause_s = longest_silence_s(machine, heap_gib * GIB)
    result = simulate(_scenario(round(pause_s * 1000)), variant="hardened")
    found = {one.claim.name: one.verdict for one in result.findings}
    return HeapPause(heap_gib, pause_s, found[STRICT])


def _scenario(pause_ms: int) -> dict[str, Any]:
    """Two consumers, of whom one stands still for so long."""
    config = {"zookeeper.session.timeout.ms": SESSION_TIMEOUT_S * 1000}
    return {
        "name": "heap-pause",
        "about": "A consumer stands still while the garbage of its heap is collected.",
        "clusters": {"main": {"brokers": 2, "topics": {"clicks": {"partitions_per_broker": 2}}}},
        "groups": {"billing": {"consumers": 2, "streams": {"clicks": 1}, "config": config}},
        "timeline": [
            {"at": "0s", "produce": "clicks", "rate": "100/s", "size": "200B"},
            {"at": "20s", "pause": "billing/1", "for": f"{pause_ms}ms"},
        ],
        "settle": "30s",
        "strict": True,
    }
