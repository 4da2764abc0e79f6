"""Exactly once: the offset in the store of the results, beside a two-phase commit.

A consumer reads a batch, and writes its result and its offset. With both in one store they are
one transaction of that store. With two stores a coordinator lets both prepare, notes its
decision, and lets both commit; a store that has prepared keeps its locks until it learns the
decision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from watchkeeper.experiment.apparatus.host import new_host, run
from watchkeeper.experiment.apparatus.programs import ENTRY_BYTES, messages
from watchkeeper.experiment.apparatus.rows import Outcome, Row, at_least
from watchkeeper.model.log.storage import Append, CreateFile, Flush
from watchkeeper.sim.disk.host_costs import MachineProfile
from watchkeeper.sim.storage.host_effects import GiveLock, Idle, Lock, TakeLock

BATCHES = 200
AWAY_S = (10, 60)
"""For so long the process that has died is away."""
NOTICED_US = 1_000_000
"""After so much time a store sees that the connection of a client has ended."""


@dataclass(slots=True)
class Store:
    """A store with a log of its own and one row that all transactions change."""

    name: str
    lock: Lock = field(default_factory=Lock)
    has_prepared: bool = False
    """Whether it has promised to commit, so that the decision is not its own any more."""

    async def write(self) -> None:
        """Write a record, and have it on the disk."""
        await Append(self.name, messages(ENTRY_BYTES))
        await Flush(self.name)


class Cost:
    """What was spent."""

    def __init__(self, machine: MachineProfile) -> None:
        self.machine = machine
        self.round_trips = 0
        self.flushes = 0

    async def request(self, store: Store) -> None:
        """Let a store on another host write a record."""
        self.round_trips += 1
        self.flushes += 1
        await Idle(self.machine.hop_us)
        await store.write()
        await Idle(self.machine.hop_us)


def committing(machine: MachineProfile) -> Outcome:
    """Process batches in either way; then let the process die in the middle of one."""
    together, two_phase = _spent(machine, 1), _spent(machine, 2)
    return Outcome(
        (
            Row("offset beside the result: a batch", together[0], "us"),
            Row("offset beside the result: round trips a batch", together[1], "trips"),
            Row("offset beside the result: flushes a batch", together[2], "flushes"),
            Row("two-phase commit: a batch", two_phase[0], "us"),
            Row("two-phase commit: round trips a batch", two_phase[1], "trips", at_least(2)),
            Row("two-phase commit: flushes a batch", two_phase[2], "flushes"),
            Row("two-phase commit against the other", two_phase[0] / together[0], "times"),
            *_blocked(machine),
        ),
        (
            "Both give each batch once, also after a crash. A store that has prepared may "
            "neither commit nor forget until the coordinator is back; a store without a "
            "coordinator gives a transaction up when the connection of its client ends.",
        ),
    )


def _spent(machine: MachineProfile, count: int) -> tuple[float, float, float]:
    """Return microseconds, round trips and flushes of a batch, with so many stores."""
    host, cost = new_host(machine), Cost(machine)
    stores = _stores(count)
    body = _work(cost, stores)
    run(host, [host.start(host.process(), body)])
    each = host.kernel.now_us / BATCHES
    return each, cost.round_trips / BATCHES, cost.flushes / BATCHES


def _blocked(machine: MachineProfile) -> Iterator[Row]:
    """Yield how long others wait for a row when the process dies."""
    for away_s in AWAY_S:
        beside, two_phase = (blocked_s(machine, count, away_s) for count in (1, 2))
        what = f"others wait for the row, the process away for {away_s} s"
        yield Row(f"offset beside the result: {what}", beside, "s")
        yield Row(f"two-phase commit: {what}", two_phase, "s", at_least(away_s))


def _stores(count: int) -> list[Store]:
    return [Store(f"store-{number}") for number in range(count)]


async def _work(cost: Cost, stores: Sequence[Store]) -> None:
    await _create(stores)
    for _ in range(BATCHES):
        await _commit(cost, stores)


async def _create(stores: Sequence[Store]) -> None:
    for name in ("decisions", *(store.name for store in stores)):
        await CreateFile(name)


async def _commit(cost: Cost, stores: Sequence[Store]) -> None:
    """Commit a batch: in one transaction with one store, in two phases with more."""
    for store in stores:
        await TakeLock(store.lock)
        await cost.request(store)
    if len(stores) > 1:
        await _decide(cost)
        for store in stores:
            await cost.request(store)
    for store in stores:
        await GiveLock(store.lock)


async def _decide(cost: Cost) -> None:
    """Have the decision on the disk of the coordinator."""
    cost.flushes += 1
    await Append("decisions", messages(ENTRY_BYTES))
    await Flush("decisions")


# --- a crash in the middle -------------------------------------------------------------


def blocked_s(machine: MachineProfile, count: int, away_s: int) -> float:
    """Return how long others wait for a row when the process dies before the end."""
    host, cost = new_host(machine), Cost(machine)
    stores = _stores(count)
    run(host, [host.start(host.process(), _create(stores))])
    doomed = host.process()
    run(host, [host.start(doomed, _begin(cost, stores))])
    host.kill(doomed)
    died_us = host.kernel.now_us
    for store in stores:
        host.start(host.process(), _connection_ends(store))
    host.start(host.process(), _recover(stores, away_s))
    run(host, [host.start(host.process(), _take(stores[0]))])
    return (host.kernel.now_us - died_us) / 1e6


async def _begin(cost: Cost, stores: Sequence[Store]) -> None:
    """Write to each store, and with several of them let each prepare."""
    for store in stores:
        await TakeLock(store.lock)
        await cost.request(store)
        store.has_prepared = len(stores) > 1


async def _connection_ends(store: Store) -> None:
    """Give the transaction of a client up that is gone, unless the store has prepared it."""
    await Idle(NOTICED_US)
    if not store.has_prepared:
        await _end(store)


async def _recover(stores: Sequence[Store], away_s: int) -> None:
    """Be back, find no decision on the disk, and abort what the stores have prepared."""
    await Idle(away_s * 1_000_000)
    for store in stores:
        if store.has_prepared:
            await _end(store)


async def _end(store: Store) -> None:
    await store.write()
    store.has_prepared = False
    await GiveLock(store.lock)


async def _take(store: Store) -> None:
    await TakeLock(store.lock)
