"""One live run, from the plan to the trace."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from watchkeeper.model.plan.bounds import mix_of
from watchkeeper.model.plan.faults import FaultEffect
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.trace.counts import operations_in
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Header, Row, Trace
from watchkeeper.real.access import Access
from watchkeeper.real.trace.merge import merged
from watchkeeper.real.trace.write_events import CommittedEvent
from watchkeeper.real.world.world import Aborted, Progress, Waits, World
from watchkeeper.real.zookeepers.implementation import Implementation

WORLD = "live"


@dataclass(frozen=True, slots=True)
class LiveRun:
    """The trace of a live run, the effects of its faults, its number of operations."""

    trace: Trace
    effects: tuple[FaultEffect, ...]
    operations: int


def live(
    plan: Plan,
    seed: int = 0,
    *,
    zookeeper: Access | Implementation = Implementation.PYTHON,
    abort_file: Path | None = None,
    versions: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    waits: Waits = lambda what: None,
    inspect: Callable[[World], None] | None = None,
) -> LiveRun:
    """Run a plan against a live ZooKeeper: one of this implementation, or the external one.

    When the abort file appears, the run ends within 0.1 s: no further fault is injected, and
    cuts and delays end. `inspect` is called at the end of the run, before any process ends.
    `progress` is called with the time of the run and its planned end, both in µs; `waits` with
    what the run waits for before its time begins and after its end.
    """
    folder = Path(tempfile.mkdtemp(prefix="watchkeeper-live-"))
    world = World(plan, folder, zookeeper=zookeeper, abort_file=abort_file)
    header = Header(plan.name, plan.variant, WORLD, seed, versions or {}, mix=mix_of(plan))
    try:
        try:
            world.run(progress, waits)
            if inspect is not None:
                inspect(world)
        except (KeyboardInterrupt, Aborted):
            world.write("", EventKind.RUN_ENDED)
            header = replace(header, partial=True)
        waits("the end of its processes, and their traces")
        world.end()
        rows = _rows_of(world, folder)
    finally:
        world.stop()
        shutil.rmtree(folder, ignore_errors=True)
    trace = Trace(header, rows)
    return LiveRun(trace, tuple(world.nemesis.effects), operations_in(trace).total())


def _rows_of(world: World, folder: Path) -> list[Row]:
    """All rows of a finished run, from every source."""
    begin_ns, group_of = world.begin_ns, world.plan.group_of()
    own = list(world.rows)
    services: dict[str, Iterable[CommittedEvent]] = {}
    by_hand: set[int] = set()
    servers_at: dict[str, list[tuple[int, str]]] = {}
    for cluster in world.clusters.values():
        own.extend(cluster.events(begin_ns, group_of))
        services[cluster.prefix] = cluster.service.committed(begin_ns)
        by_hand |= cluster.by_hand.sessions
        for client, at_us, server in cluster.servers_at(begin_ns):
            servers_at.setdefault(client, []).append((at_us, server))
    return merged(own, folder, services, servers_at, by_hand)
