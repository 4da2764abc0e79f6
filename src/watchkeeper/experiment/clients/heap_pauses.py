"""A heap that stands still, in a scenario: which size of it makes a zombie owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from watchkeeper.api.simulate import simulate
from watchkeeper.experiment.apparatus.rows import Outcome, Row
from watchkeeper.experiment.storage.heaps import SESSION_TIMEOUT_S, longest_silence_s
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.sim.disk.host_costs import GIB, MachineProfile

STRICT = "strict single ownership"
HEAPS_GIB = (1, 2, 4, 8)


def zombies(machine: MachineProfile) -> Outcome:
    """Let consumers stand still for as long as their heaps do."""
    found = [heap_pause(machine, gib) for gib in HEAPS_GIB]
    doubled = [one.heap_gib for one in found if one.verdict is Verdict.VIOLATED]
    rows = [Row(f"heap of {one.heap_gib} GiB: longest pause", one.pause_s, "s") for one in found]
    rows += [Row("heaps whose pause makes two owners of a partition", len(doubled), "")]
    rows += [Row("the smallest of them", min(doubled), "GiB")] if doubled else []
    return Outcome(
        tuple(rows),
        (
            f"The session of the consumer ends after {SESSION_TIMEOUT_S} s; another one takes "
            "its partitions, and it does not know when it goes on.",
        ),
    )


@dataclass(frozen=True, slots=True)
class HeapPause:
    """What a collection of a whole heap does to a consumer's partitions."""

    heap_gib: int
    pause_s: float
    verdict: Verdict
    """The verdict on strict single ownership, where zombie owners count."""


def heap_pause(machine: MachineProfile, heap_gib: int) -> HeapPause:
    """Fill a heap, and let a consumer stand still for as long as its longest pause."""
    pause_s = longest_silence_s(machine, heap_gib * GIB)
    result = simulate(_scenario(round(pause_s * 1000)), variant="hardened")
    found = {finding.claim.name: finding.verdict for finding in result.findings}
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
