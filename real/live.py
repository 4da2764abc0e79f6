"""One live run, from the plan to the trace."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from model.counting import operations_in
from model.faults import Effect
from model.plan import Plan
from model.trace import Header, Row, Trace
from real.access import Access
from real.ledger import Agreed
from real.merging import merged
from real.world import Aborted, Tell, World

WORLD = "live"


@dataclass(frozen=True, slots=True)
class Lived:
    """What a live run has left."""

    trace: Trace
    effects: tuple[Effect, ...]
    operations: int


def live(
    plan: Plan,
    seed: int = 0,
    *,
    access: Access | None = None,
    abort_file: Path | None = None,
    versions: Mapping[str, str] | None = None,
    tell: Tell | None = None,
    look: Callable[[World], None] | None = None,
) -> Lived:
    """Run a plan against a real ZooKeeper: one started for it, or one that runs already.

    Whoever creates the abort file ends the run within a tenth of a second: nothing strikes
    any more, and what was held up is let go. `look` is called at the end of the run, while
    everybody is still there.
    """
    folder = Path(tempfile.mkdtemp(prefix="watchkeeper-live-"))
    world = World(plan, folder, access=access, abort_file=abort_file)
    header = Header(plan.name, plan.variant, WORLD, seed, versions or {})
    try:
        try:
            world.run(tell)
            if look is not None:
                look(world)
        except (KeyboardInterrupt, Aborted):
            world.write("", "run ends")
            header = replace(header, partial=True)
        world.end()
        rows = _told(world, folder)
    finally:
        world.stop()
        shutil.rmtree(folder, ignore_errors=True)
    trace = Trace(header, rows)
    return Lived(trace, tuple(world.nemesis.effects), operations_in(trace).total())


def _told(world: World, folder: Path) -> list[Row]:
    """Everything that was seen in a run that is over, from whoever has seen it."""
    begin_ns, group_of = world.begin_ns, world.plan.group_of()
    own = list(world.rows)
    services: dict[str, Iterable[Agreed]] = {}
    places: dict[str, list[tuple[int, str]]] = {}
    for cluster in world.clusters.values():
        own.extend(cluster.events(begin_ns, group_of))
        services[cluster.prefix] = cluster.service.agreed(begin_ns)
        for client, at_us, server in cluster.places(begin_ns):
            places.setdefault(client, []).append((at_us, server))
    return merged(own, folder, services, places)
