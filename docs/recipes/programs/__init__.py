"""Programs that use each recipe of kazoo as its documentation shows, and what has to hold.

Each function prepares a world: three processes, unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping

from docs.recipes.programs import barriers, groups, locks, queues, requests, watchers
from docs.recipes.programs.clients import Prepare, in_rounds

PROGRAMS: dict[str, Prepare] = {
    "Lock": in_rounds(locks.take_lock),
    "ReadLock and WriteLock": in_rounds(locks.read_or_write),
    "Semaphore": in_rounds(locks.take_semaphore),
    "Election": locks.election,
    "Barrier": barriers.barrier,
    "DoubleBarrier": barriers.double_barrier,
    "Counter": queues.counter,
    "Party": groups.party,
    "ShallowParty": groups.shallow_party,
    "Queue": queues.queue,
    "LockingQueue": queues.locking_queue,
    "SetPartitioner": groups.set_partitioner,
    "ChildrenWatch": watchers.children_watch,
    "DataWatch": watchers.data_watch,
    "PatientChildrenWatch": watchers.patient_children_watch,
    "TreeCache": watchers.tree_cache,
    "NonBlockingLease": in_rounds(locks.take_lease),
    "MultiNonBlockingLease": in_rounds(locks.take_one_of_leases),
    "start, stop, restart": requests.start_stop,
    "retry": requests.retries,
    "transaction": requests.transactions,
}
"""Recipe -> the program that uses it."""


def programs_of(library: str) -> Mapping[str, Prepare]:
    """The programs on kazoo's recipes, or on those of another library."""
    if library == "kazoo":
        return PROGRAMS
    from docs.recipes.programs.tooz_driver import TOOZ_PROGRAMS

    return TOOZ_PROGRAMS
