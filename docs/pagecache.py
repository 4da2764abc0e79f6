"""Makes the page about the pagecache: what the design page says, and what is simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sim.experiments.catalogue import EXPERIMENTS
from sim.experiments.rows import Outcome, Row, shown, shown_said
from sim.machine import GIB, MACHINES, MachineProfile
from watchkeeper.heap_pauses import HEAPS_GIB, STRICT, heap_pause

Page = Callable[..., str]
Table = Callable[[list[str], Iterator[list[str]]], str]

INTRO = (
    "A broker of the early design pages keeps nothing in its own memory. It appends to files "
    "and sends from files, and leaves it to the operating system what of them is in memory: "
    "the *pagecache*. The design page gives reasons, some with numbers. Here each of them is "
    "an experiment in a simulated host, on a server of the page's time and on one of today.",
    "`python bench/claims.py` makes these experiments, and with `--profile` on "
    "[a machine that was measured](../how-to/calibrate.md). No outcome is written down "
    "anywhere: each follows from what a machine is said to do, in the table at the end, by "
    "what the experiment does there. A number *differs* where it misses that of the page by "
    "more than half.",
)
MODEL = (
    "## What is simulated",
    "**Pages** of 4 KiB are kept as intervals: what was used in one go is one object. The page "
    "that was not used for the longest time goes first, if it is clean. Dirty pages are "
    "written back when more than a tenth of the memory is dirty, when they are half a minute "
    "old, or when somebody flushes; where more than a fifth is dirty, writers wait. Who reads "
    "in order gets pages ahead of time, in windows that double; who reads elsewhere gets no "
    "page more than asked for. A page that is on its way is not asked for twice.",
    "**Disks** merge adjacent requests and serve them in one direction. A rotating disk has an "
    "arm at a place and a platter at an angle, so that writing what was just read waits for a "
    "rotation. A RAID-5 array writes whole rows at once, and for a part of one reads old data "
    "and old parity first. Its random writes follow from that and are written down nowhere.",
    "**Calls, copies and the network** cost what the table says, and are shared: cores, the bus "
    "between memory and everything else, the network card.",
    "**The end of a process** is nothing to its storage. **The end of a host** leaves what the "
    "disk had sworn, what it had written without being asked to, and of the write under way as "
    "many sectors as had passed. A file may come back longer than its data, with zeros behind.",
    "### What is not",
    "- The pagecache is strictly LRU. Linux keeps what was read once apart from what was used "
    "again, so that one who reads a lot once drives out less there.\n"
    "- Every write of a disk goes to the medium. A disk with a cache of its own that lies about "
    "it would lose more.\n"
    "- The network has no packets that are lost; a connection takes what the other side takes.\n"
    "- A B-tree is known by the pages that it touches, not by its keys, and its locks are one.",
)


def pagecache_page(page: Page, table: Table) -> str:
    """The page."""
    parts = [*INTRO]
    disagreements: list[str] = []
    for name, experiment in EXPERIMENTS.items():
        found = {one: experiment.measure(machine) for one, machine in MACHINES.items()}
        parts += [f"## {name}", f"> {experiment.states}", experiment.how]
        parts.append(table(_head(), _rows(found)))
        parts += found["page"].notes
        differing = [row for row in found["page"].rows if row.agrees is False]
        disagreements += [f"- **{name}**: {_difference(row)}." for row in differing]
    parts += ["## zombies", *_zombies(table)]
    parts += ["## Where the simulation and the page differ", "\n".join(disagreements)]
    return page("The pagecache", *parts, *MODEL, *_machines(table))


def _head() -> list[str]:
    return ["", "the page", *(f"`{name}`" for name in MACHINES), "unit", ""]


def _rows(found: dict[str, Outcome]) -> Iterator[list[str]]:
    for rows in zip(*(outcome.rows for outcome in found.values()), strict=True):
        first: Row = rows[0]
        verdict = {None: "", True: "agrees", False: "**differs**"}[first.agrees]
        values = [shown(row.value) for row in rows]
        yield [first.what, shown_said(first.said), *values, first.unit, verdict]


def _difference(row: Row) -> str:
    return f"{row.what}, {shown(row.value)} {row.unit} against {shown_said(row.said)}"


def _zombies(table: Table) -> Iterator[str]:
    yield (
        "A consumer whose heap is collected stands still. When that takes longer than its "
        "session of 6 s lives, its partitions are given away, and it does not know when it "
        "wakes. The pauses are those of full heaps above; each is let happen to a consumer of "
        "a simulated group."
    )
    rows = []
    for gib in HEAPS_GIB:
        found = heap_pause(MACHINES["page"], gib)
        rows.append([f"{gib} GiB", f"{shown(found.pause_s)} s", found.verdict.value])
    yield table(["heap", "longest pause", STRICT], iter(rows))


def _machines(table: Table) -> Iterator[str]:
    yield "## The machines"
    yield "\n".join(
        f"- `{one.name}`: {one.about}; {one.device.about}." for one in MACHINES.values()
    )
    yield table(["", *(f"`{name}`" for name in MACHINES)], _figures(list(MACHINES.values())))


def _figures(machines: list[MachineProfile]) -> Iterator[list[str]]:
    told: dict[str, Callable[[MachineProfile], str]] = {
        "disks, of which data": lambda m: f"{m.device.members}, {max(m.device.members - 1, 1)}",
        "one disk writes in line, MB/s": lambda m: shown(m.device.write_bytes_per_s / 1e6),
        "one disk reads in line, MB/s": lambda m: shown(m.device.read_bytes_per_s / 1e6),
        "a request takes beside its data, read and write, us": lambda m: (
            f"{m.device.read_us}, {m.device.write_us}"
        ),
        "its arm goes to the next track, and across, us": lambda m: (
            f"{m.device.arm.track_us}, {m.device.arm.stroke_us}" if m.device.arm else ""
        ),
        "rotations a minute": lambda m: (
            str(m.device.arm.rotations_per_minute) if m.device.arm else ""
        ),
        "requests at once": lambda m: str(m.device.channels),
        "memory for pages, GiB": lambda m: str(m.memory_bytes // GIB),
        "cores": lambda m: str(m.cores),
        "a system call, ns": lambda m: str(m.call_ns),
        "what a write takes beside it, ns": lambda m: str(m.write_ns),
        "a core copies, MB/s": lambda m: shown(m.copy_bytes_per_s / 1e6),
        "a new page, ns": lambda m: str(m.page_ns),
        "a read of memory at random, ns": lambda m: str(m.access_ns),
        "between memory and all else, MB/s": lambda m: shown(m.bus_bytes_per_s / 1e6),
        "the network, MB/s": lambda m: shown(m.network_bytes_per_s / 1e6),
        "to another machine, one way, us": lambda m: str(m.hop_us),
        "is read ahead at most, KiB": lambda m: str(m.readahead_bytes >> 10),
        "dirty before it is written back, and before writers wait, %": lambda m: (
            f"{m.background_percent}, {m.dirty_percent}"
        ),
    }
    for what, tell in told.items():
        yield [what, *(tell(machine) for machine in machines)]
