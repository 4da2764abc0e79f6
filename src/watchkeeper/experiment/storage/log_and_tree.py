"""How much a log has kept makes no difference to it; to a B-tree it does."""

from __future__ import annotations

from dataclasses import replace

from watchkeeper.experiment.apparatus.btree import BTree
from watchkeeper.experiment.apparatus.host import new_host
from watchkeeper.experiment.apparatus.programs import MB, append_all, messages, read_all, took_s
from watchkeeper.experiment.apparatus.rows import UNCHANGED, Outcome, Row, at_least
from watchkeeper.model.log.storage import Append, Flush
from watchkeeper.sim.disk.host_costs import GIB, MachineProfile
from watchkeeper.sim.engine.random_streams import Stream
from watchkeeper.sim.storage.file_contents import zeros

SEGMENT_BYTES = 1_000 * MB
KEPT_GB = (0, 1, 10, 100, 1000)
WORK_BYTES = 500 * MB


def volume(machine: MachineProfile) -> Outcome:
    """Write and read at the end of a log, beside more and more that was kept."""
    rates = {kept: working_rate(machine, kept) for kept in KEPT_GB}
    rows = [Row(f"with {kept} GB kept", rate / MB, "MB/s") for kept, rate in rates.items()]
    rows.append(Row("with 1000 GB against none", rates[1000] / rates[0], "times", UNCHANGED))
    return Outcome(tuple(rows), ("One process writes, one consumer keeps up.",))


def working_rate(machine: MachineProfile, kept_gb: int) -> float:
    """Bytes a second that are written and read at the end."""
    host = new_host(machine)
    for number in range(kept_gb):
        host.storage.files.preload(f"log/{number}", messages(SEGMENT_BYTES))
    took = took_s(host, append_all("end", WORK_BYTES, messages(MB)))
    return WORK_BYTES / (took + took_s(host, read_all("end", WORK_BYTES, MB)))


# --- against a B-tree ------------------------------------------------------------------

ENTRY_BYTES = 40
"""Of an index: a key, a place, and what a page says of them."""
KEY_BYTES = 24
ENTRIES = (10**5, 10**6, 10**7, 10**8, 10**9)
ROUNDS = 4
INSERTS = 200
"""In each round; then all of it is flushed."""


def trees(machine: MachineProfile) -> Outcome:
    """Add entries to a log and to a B-tree of more and more entries."""
    small = replace(machine, memory_bytes=GIB)
    rows: list[Row] = []
    logs = {count: log_us(small, count) for count in ENTRIES}
    found = {count: tree_us(small, count, is_random=True) for count in ENTRIES}
    for count, (us, levels, misses) in found.items():
        rows.append(Row(f"log of {count:,}, an entry", logs[count], "us"))
        rows.append(Row(f"B-tree of {count:,}, {levels} levels, an entry", us, "us"))
        rows.append(Row(f"B-tree of {count:,}, pages from the disk an entry", misses, "pages"))
    first, last = ENTRIES[0], ENTRIES[-1]
    in_order, _, _ = tree_us(small, last, is_random=False)
    rows += [
        Row("log of 1,000,000,000 against 100,000", logs[last] / logs[first], "times", UNCHANGED),
        Row(
            "B-tree of 1,000,000,000 against 100,000",
            found[last][0] / found[first][0],
            "times",
            at_least(2),
        ),
        Row("B-tree of 1,000,000,000 with keys in order, an entry", in_order, "us"),
    ]
    return Outcome(
        tuple(rows),
        (
            f"{ROUNDS} times {INSERTS} entries and a flush, with 1 GiB of memory. Keys of the "
            "B-tree come in random order, as ids of messages do. With keys in order the same "
            "pages are used repeatedly, and the disk has no effect: the page's statement about "
            "disks holds for random keys alone.",
        ),
    )


def log_us(machine: MachineProfile, entries: int) -> float:
    """What it takes to append an entry to a log of so many, on the disk and all."""
    host = new_host(machine)
    host.storage.files.preload("log", zeros(entries * ENTRY_BYTES))
    return took_s(host, append_entries()) * 1e6 / (ROUNDS * INSERTS)


async def append_entries() -> None:
    """Append entries, one by one, and have them on the disk."""
    for _ in range(ROUNDS):
        for _ in range(INSERTS):
            await Append("log", zeros(ENTRY_BYTES))
        await Flush("log")


def tree_us(
    machine: MachineProfile, entries: int, *, is_random: bool
) -> tuple[float, int, float]:
    """What it takes to insert an entry, how many levels there are, and pages from the disk."""
    host = new_host(machine)
    tree = BTree("tree", entries, entry_bytes=ENTRY_BYTES, key_bytes=KEY_BYTES)
    tree.settle(host.storage.files)
    chance = host.kernel.streams("keys") if is_random else None
    us = took_s(host, insert_entries(tree, chance)) * 1e6 / (ROUNDS * INSERTS)
    return (
        us,
        len(tree.levels),
        host.storage.files.reader.device_bytes / 4096 / (ROUNDS * INSERTS),
    )


async def insert_entries(tree: BTree, chance: Stream | None) -> None:
    """Insert entries, one by one, and have them on the disk."""
    for _ in range(ROUNDS):
        for _ in range(INSERTS):
            await tree.insert(tree.entries - 1 if chance is None else tree.somewhere(chance))
        await Flush("tree")
